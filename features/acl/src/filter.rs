//! The nodes: the first rule that a packet matches says whether it goes on.

use std::marker::PhantomData;
use std::sync::Arc;

use quiver_classifier::{Key, NONE, field};
use quiver_core::cpu::Variant;
use quiver_core::graph::arc::{ArcId, DEVICE_INPUT, INTERFACE_OUTPUT};
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet, WorkerId};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{noted, packet_in_frame};
use quiver_forwarding::nodes;

use crate::tables::{Attached, BAD, DENY, Direction, NOBODY, Part, Search};

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
}

/// The filter of a family at a place.
pub(crate) struct Filter<F: Part, const PLACE: u8> {
    attached: Arc<Attached>,
    arc: ArcId,
    own: NodeId,
    lookup: NodeId,
    worker: WorkerId,
    family: PhantomData<fn() -> F>,
}

/// State of one receiving interface.
#[derive(Clone, Copy)]
pub(crate) struct InterfaceState {
    /// Fields of fragments after the first.
    later: u32,
    behind: Behind,
}

impl<F: Part, const PLACE: u8> Filter<F, PLACE> {
    const PLACE: Place = Place::of(PLACE);

    /// The packet's IP header and what follows; none when it is of another protocol.
    #[inline(always)]
    fn packet<'p>(&self, packet: &'p Packet) -> Option<&'p [u8]> {
        let bytes = packet.bytes();
        match Self::PLACE {
            Place::Routed => Some(bytes),
            Place::Sent if self.attached.is_bare(packet.tx) => {
                bytes.first().filter(|first| **first >> 4 == F::VERSION).map(|_| bytes)
            }
            Place::LayerTwo | Place::Sent => bytes.get(packet_in_frame::<F>(bytes)?..),
        }
    }

    #[inline(always)]
    fn search(&self, variant: Variant, is_uniform: bool) -> Search {
        Search { variant, worker: self.worker, is_uniform }
    }

    /// Behind this feature.
    #[inline(always)]
    fn behind(
        &self,
        context: StageContext<'_>,
        state: InterfaceState,
        packet: &mut Packet,
    ) -> Result<NodeId, AclDrop> {
        match Self::PLACE {
            Place::Routed => Ok(state.behind.take(packet)),
            Place::LayerTwo => {
                let row = context.interface(packet.rx).ok_or(AclDrop::Gone)?;
                Ok(context.next_in_arc(DEVICE_INPUT, packet.rx, packet, row.input))
            }
            Place::Sent => {
                let row = context.interface(packet.tx).ok_or(AclDrop::Gone)?;
                Ok(context.next_in_arc(INTERFACE_OUTPUT, packet.tx, packet, row.tx))
            }
        }
    }
}

/// Why what was found drops a packet.
#[cold]
fn reason(found: u32, is_whole: bool) -> AclDrop {
    match found {
        _ if !is_whole => AclDrop::Malformed,
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
        InterfaceState { later, behind: cx.behind(self.arc, rx, self.own, self.lookup) }
    }

    #[inline(always)]
    fn key(&self, state: InterfaceState, packet: &mut Packet) -> Key<F::Address> {
        let nobody = Key { owner: NOBODY, ..Key::default() };
        let Some(bytes) = self.packet(packet) else { return nobody };
        let interface = match Self::PLACE.direction() {
            Direction::Input => packet.rx,
            Direction::Output => packet.tx,
        };
        let (length, whole) = (packet.length(), packet.segment_length());
        let owner = interface.index() as u32;
        match F::key(bytes, noted(packet), state.later) {
            Some(key) => {
                let length = (length - whole + bytes.len()) as u32;
                Key { owner, length, ..key }
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
        let search = self.search(variant, false);
        self.attached.find::<F>(Self::PLACE.direction(), search, context.pass(), keys, found);
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
        let search = self.search(variant, true);
        self.attached.find::<F>(Self::PLACE.direction(), search, context.pass(), keys, found);
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
        let is_whole = (key.length != 0) | (key.owner == NOBODY);
        if (found & DENY == 0) & is_whole {
            self.behind(context, state, packet)
        } else {
            Err(reason(found, is_whole))
        }
    }
}

/// The declaration.
pub(crate) fn spec<F: Part, const PLACE: u8>(arc: ArcId, attached: &Arc<Attached>) -> NodeSpec {
    let attached = attached.clone();
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
        arc,
        own: wiring.id,
        lookup: match place {
            Place::Routed => wiring.node(lookup),
            _ => wiring.id,
        },
        worker: wiring.worker,
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
