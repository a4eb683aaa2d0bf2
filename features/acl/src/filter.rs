//! The nodes: the first rule that a packet matches says whether it goes on.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

use quiver_access_lists::{Twins, none_is};
use quiver_classifier::{Key, NONE, field};
use quiver_core::cpu::Variant;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::{DROP, NodeSpec};
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet, WorkerId};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{noted, packet_in_frame};
use quiver_forwarding::nodes;

use crate::compiled::Part;
use crate::log::Logger;
use crate::log_config::{Rings, recorder};
use crate::session::{is_direct, opens};
use crate::slow_path::{SLOW_PATH, SlowRequest, session_key};
use crate::stateful::{Belongs, makes_session};
use crate::tables::{Attached, BAD, DENY, Direction, NOBODY, REFLECT, Search};

quiver_core::reasons! {
    /// Why lists drop packets.
    pub enum AclDrop {
        /// A rule says so.
        Denied = "acl-deny", "a rule of an access list denies it (`show acl-plugin acl`)";
        /// None permits it.
        NoRule = "acl-no-rule", "no rule of the interface's access lists matches it";
        /// Ports that cannot be known.
        HeaderCut = "acl-header-cut",
            "the upper layer's header is cut off, and the access lists look at it";
        /// Not even an IP header.
        Malformed = "acl-malformed", "the IP header is not whole";
        /// Neither of a session nor the first of one.
        NotSyn = "acl-not-syn", "a TCP packet that a permit+reflect rule matches begins no \
            connection, and no session has it";
        /// The owner has no room, and `on-full` is deny.
        Full = "acl-sessions-full", "new sessions refused: all are in use (`set acl-plugin session \
            table max-entries`)";
        /// Two sessions want the same place.
        Crowded = "acl-sessions-crowded", "new sessions refused: the session table has no room \
            at this key";
        /// No ring.
        Congestion = "acl-congestion", "more packets without a session than can wait for the \
            worker that makes sessions";
        /// The table went meanwhile.
        NotOpen = "acl-no-table", "the packet waited for a session while the table was closed";
        /// Made.
        Made = info "acl-sessions-made", "new sessions";
        /// The table is full, and `on-full` is stateless.
        Stateless = info "acl-stateless", "packets that passed without a session because all are \
            in use";
        /// RFC 792: of a session.
        IcmpError = info "acl-icmp-errors", "ICMP errors about packets of sessions that passed";
        /// Passes.
        BackPressure = info "acl-back-pressure", "passes in which a worker read no packets \
            because too many packets waited for their sessions";
        /// Gone meanwhile.
        Gone = "interface-removed", "the interface was deleted while the packet was under way";
    }
}

/// Where a filter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Behind `ip4-input` or `ip6-input`.
    Routed,
    /// Before a bridge, a cross-connect or a patch: frames.
    LayerTwo,
    /// Before the device: frames, or packets of interfaces without a link layer.
    Sent,
}

impl Place {
    pub const ALL: [Place; 3] = [Place::Routed, Place::LayerTwo, Place::Sent];

    /// The interface whose lists a packet meets there, and what they filter.
    #[inline(always)]
    pub fn of_packet(self, packet: &Packet) -> (InterfaceId, Direction) {
        match self.direction() {
            Direction::Input => (packet.rx, Direction::Input),
            Direction::Output => (packet.tx, Direction::Output),
        }
    }

    pub const fn of(number: u8) -> Place {
        match number {
            0 => Place::Routed,
            1 => Place::LayerTwo,
            _ => Place::Sent,
        }
    }

    pub const fn direction(self) -> Direction {
        match self {
            Place::Routed | Place::LayerTwo => Direction::Input,
            Place::Sent => Direction::Output,
        }
    }

    /// The name of a family's node.
    pub const fn node(self, family: Family) -> &'static str {
        match (self, family) {
            (Place::Routed, Family::Ip4) => "acl-plugin-in-ip4-fa",
            (Place::Routed, Family::Ip6) => "acl-plugin-in-ip6-fa",
            (Place::LayerTwo, Family::Ip4) => "acl-plugin-in-ip4-l2",
            (Place::LayerTwo, Family::Ip6) => "acl-plugin-in-ip6-l2",
            (Place::Sent, Family::Ip4) => "acl-plugin-out-ip4-fa",
            (Place::Sent, Family::Ip6) => "acl-plugin-out-ip6-fa",
        }
    }

    /// The arc of a family's node.
    pub const fn arc(self, family: Family) -> &'static str {
        match (self, family) {
            (Place::Routed, Family::Ip4) => "ip4-unicast",
            (Place::Routed, Family::Ip6) => "ip6-unicast",
            (Place::LayerTwo, _) => "device-input",
            (Place::Sent, _) => "interface-output",
        }
    }

    /// The packet's IP header and what follows; none when it is of another protocol.
    #[inline(always)]
    pub fn bytes<'p, F: Part>(self, attached: &Attached, packet: &'p Packet) -> Option<&'p [u8]> {
        let bytes = packet.bytes();
        match self {
            Place::Routed => Some(bytes),
            Place::Sent if attached.is_bare(packet.tx) => {
                bytes.first().filter(|first| **first >> 4 == F::VERSION).map(|_| bytes)
            }
            Place::LayerTwo | Place::Sent => bytes.get(packet_in_frame::<F>(bytes)?..),
        }
    }
}

/// The filter of a family at a place.
pub(crate) struct Filter<F: Part, const PLACE: u8> {
    attached: Arc<Attached>,
    twins: Twins,
    lookup: NodeId,
    slow: NodeId,
    worker: WorkerId,
    /// Only this node's worker borrows it, and never twice.
    logger: RefCell<Logger>,
    family: PhantomData<fn() -> F>,
}

/// State of one receiving interface.
#[derive(Clone, Copy)]
pub(crate) struct InterfaceState {
    /// Fields of fragments after the first.
    later: u32,
    /// Where received packets of the family go on.
    behind: Behind,
}

impl<F: Part, const PLACE: u8> Filter<F, PLACE> {
    const PLACE: Place = Place::of(PLACE);

    #[inline(always)]
    fn search(&self, context: StageContext<'_>, variant: Variant, is_uniform: bool) -> Search {
        let now_s = (context.now_ns() / 1_000_000_000) as u32;
        Search { variant, worker: self.worker, is_uniform, now_s }
    }

    /// Ask sessions and lists, and log what rules with `log` say.
    #[inline(always)]
    fn find_logged(
        &self,
        context: StageContext<'_>,
        search: Search,
        keys: &[Key<F::Address>],
        found: &mut [u32],
    ) {
        let (direction, pass) = (Self::PLACE.direction(), context.pass());
        if self.attached.log_rate() != 0
            && let Ok(mut logger) = self.logger.try_borrow_mut()
        {
            let log = Some((&mut *logger, context.now_ns()));
            return self.attached.find::<F>(direction, search, pass, keys, found, log);
        }
        self.attached.find::<F>(direction, search, pass, keys, found, None);
    }

    /// Behind this feature, of a packet of the family.
    #[inline(always)]
    fn behind(
        &self,
        context: StageContext<'_>,
        state: InterfaceState,
        packet: &mut Packet,
    ) -> Result<NodeId, AclDrop> {
        match Self::PLACE {
            Place::Routed | Place::LayerTwo => Ok(state.behind.take(packet)),
            Place::Sent => {
                let row = context.interface(packet.tx).ok_or(AclDrop::Gone)?;
                Ok(self.twins.next(context, packet.tx, packet, row.tx))
            }
        }
    }

    /// Where the arc of an interface ends.
    #[inline(always)]
    fn end(context: StageContext<'_>, on: InterfaceId) -> Option<NodeId> {
        let row = context.interface(on)?;
        Some(if Self::PLACE == Place::Sent { row.tx } else { row.input })
    }

    /// Behind this feature, of a packet that is none of the family.
    #[inline(always)]
    fn behind_of_others(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, AclDrop> {
        let (on, _) = Self::PLACE.of_packet(packet);
        let end = Self::end(context, on).ok_or(AclDrop::Gone)?;
        Ok(context.next_in_arc(self.twins.arc, on, packet, end))
    }
}

impl<F: Part, const PLACE: u8> Filter<F, PLACE> {
    /// A packet that the lists deny, or that makes a session, unless it is one of ICMP that belongs
    /// to a session.
    #[cold]
    #[inline(never)]
    fn without_session(
        &self,
        context: StageContext<'_>,
        state: InterfaceState,
        key: Key<F::Address>,
        found: u32,
        packet: &mut Packet,
    ) -> Result<NodeId, AclDrop> {
        let is_icmp = !is_direct(key.fields);
        if is_icmp && let Some(bytes) = Self::PLACE.bytes::<F>(&self.attached, packet) {
            let search = self.search(context, Variant::Scalar, false);
            let (noted, pass) = (noted(packet), context.pass());
            let belongs = self.attached.is_of_session::<F>(bytes, noted, &key, search, pass);
            if belongs == Some(Belongs::Error) {
                context.count(AclDrop::IcmpError, 1);
            }
            if belongs.is_some() {
                return self.behind(context, state, packet);
            }
        }
        if !makes_session(found) {
            return Err(reason(found));
        }
        if !opens(key.fields) {
            return Err(AclDrop::NotSyn);
        }
        let bytes = Self::PLACE.bytes::<F>(&self.attached, packet).unwrap_or_default();
        // What has no ports and no identifier passes as by `permit`.
        if session_key::<F>(bytes, noted(packet), &key).is_none() {
            return self.behind(context, state, packet);
        }
        packet.hand_over(SlowRequest { place: Self::PLACE, family: F::FAMILY });
        Ok(self.slow)
    }
}

/// Why what was found drops a packet.
#[cold]
pub(crate) fn reason(found: u32) -> AclDrop {
    match found {
        NONE => AclDrop::NoRule,
        BAD => AclDrop::HeaderCut,
        _ => AclDrop::Denied,
    }
}

impl<F: Part, const PLACE: u8> LookUp for Filter<F, PLACE> {
    const NAME: &'static str = Place::of(PLACE).node(F::FAMILY);
    type Reason = AclDrop;
    type Key = Key<F::Address>;
    type Found = u32;
    type InterfaceState = InterfaceState;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> InterfaceState {
        let matches = self.attached.matches_later_fragments();
        let later = if matches { field::UPPER | field::ANY_UPPER } else { 0 };
        let end = match Self::PLACE {
            Place::Routed => self.lookup,
            Place::LayerTwo | Place::Sent => cx.interface(rx).map_or(DROP, |row| row.input),
        };
        InterfaceState { later, behind: self.twins.behind(cx, rx, end) }
    }

    /// A block without a packet of the family.
    #[inline(always)]
    fn decide_all(
        &self,
        context: StageContext<'_>,
        _: InterfaceState,
        packets: &mut [Packet],
    ) -> Option<NodeId> {
        if Self::PLACE == Place::Routed {
            return None;
        }
        let (on, _) = Self::PLACE.of_packet(packets.first()?);
        let is_bare = Self::PLACE == Place::Sent && self.attached.is_bare(on);
        if !none_is::<F>(packets, is_bare) {
            return None;
        }
        Some(self.twins.pass(context, on, packets, Self::end(context, on)?))
    }

    #[inline(always)]
    fn key(&self, state: InterfaceState, packet: &mut Packet) -> Key<F::Address> {
        let nobody = Key { owner: NOBODY, ..Key::default() };
        let Some(bytes) = Self::PLACE.bytes::<F>(&self.attached, packet) else { return nobody };
        let (interface, _) = Self::PLACE.of_packet(packet);
        let (length, whole) = (packet.length(), packet.segment_length());
        let owner = interface.index() as u32;
        match F::key(bytes, noted(packet), state.later) {
            Some(key) => {
                let length = (length - whole + bytes.len()) as u32;
                Key { owner, length, rx: packet.rx.index() as u32, ..key }
            }
            // Without a length: see `resolve`.
            None => Key { owner, ..Key::default() },
        }
    }

    fn find(&self, _: Variant, _: InterfaceState, _: &[Self::Key], found: &mut [u32]) {
        found.fill(NONE); // the loop calls the others
    }

    #[inline(always)]
    fn find_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        _: InterfaceState,
        keys: &[Self::Key],
        found: &mut [u32],
    ) {
        self.find_logged(context, self.search(context, variant, false), keys, found);
    }

    #[inline(always)]
    fn find_uniform_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        _: InterfaceState,
        keys: &[Self::Key],
        found: &mut [u32],
    ) {
        self.find_logged(context, self.search(context, variant, true), keys, found);
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        state: InterfaceState,
        key: Self::Key,
        found: u32,
        packet: &mut Packet,
    ) -> Result<NodeId, AclDrop> {
        let is_whole = key.length != 0;
        if (found & (DENY | REFLECT) == 0) & is_whole {
            return self.behind(context, state, packet);
        }
        if key.owner == NOBODY {
            return self.behind_of_others(context, packet);
        }
        if !is_whole {
            return Err(AclDrop::Malformed);
        }
        self.without_session(context, state, key, found, packet)
    }
}

/// The declaration.
pub(crate) fn spec<F: Part, const PLACE: u8>(
    arc: ArcId,
    attached: &Arc<Attached>,
    rings: &Rings,
) -> NodeSpec {
    let (attached, rings) = (attached.clone(), rings.clone());
    let place = Place::of(PLACE);
    let lookup = match F::FAMILY {
        Family::Ip4 => nodes::ip4::LOOKUP,
        Family::Ip6 => nodes::ip6::LOOKUP,
    };
    let help = match place {
        Place::Routed => "Lets received packets pass that access lists permit",
        Place::LayerTwo => "Lets received frames pass that access lists permit",
        Place::Sent => "Lets packets leave that access lists permit",
    };
    NodeSpec::look_up(help, move |wiring| Filter::<F, PLACE> {
        attached: attached.clone(),
        twins: Twins::new::<F>(wiring, arc, |family| place.node(family)),
        lookup: match place {
            Place::Routed => wiring.node(lookup),
            _ => wiring.id,
        },
        slow: wiring.node(SLOW_PATH),
        worker: wiring.worker,
        logger: RefCell::new(Logger::new(recorder(&rings))),
        family: PhantomData,
    })
    .takes_offloads()
    .describe(move |record, names| {
        let interface = match place.direction() {
            Direction::Input => names.interface(record.rx),
            Direction::Output => names.interface(record.tx),
        };
        format!("{} {interface}, to {}", place.direction().word(), names.node(record.next))
    })
}
