//! `nat44-ed-in2out` and `nat44-ed-out2in`: the session of a packet, found by its key, says what it
//! becomes. A packet without one goes on as it is, dies, or goes to the slow path.

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::memory::packet::handover::Handover;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::handover::TableIndex;
use quiver_forwarding::ip::{Ip4, IpFamily, IpTables};
use quiver_forwarding::{IcmpErrorRequest, nodes};
use quiver_tables::exact::NOT_FOUND;
use quiver_translation::rewrite::{clamp_mss, tcp_flags};
use quiver_translation::routing::Routing;
use quiver_wire::ip4::address::is_unicast;

use crate::session::{Direction, Session, flag};
use crate::softwires::encapsulate::ENCAPSULATE;
use crate::softwires::{B4Number, b4_of};
use crate::tables::{Filtering, Rules, Shared, Sides};
use crate::translate::translate;
use quiver_translation::flow::{Flow, Key, Kind, classify_with, key_with};

quiver_core::reasons! {
    /// What becomes of packets on an interface that translates.
    pub enum Nat44Drop {
        /// From outside to an address of ours.
        NoTranslation = "no-translation", "no session and no static mapping (`show nat44 \
            sessions`, `show nat44 static mappings`)";
        /// VPP drops it too.
        NonSyn = "non-syn", "a TCP packet without session that opens no connection";
        /// RFC 5508 REQ-1.
        BadIcmpType = "bad-icmp-type", "ICMP that is neither a query nor an error about a session";
        /// RFC 5508 REQ-3.
        BadIcmpError = "bad-icmp-error", "an ICMP error that is cut, or with a wrong checksum";
        /// RFC 5508 REQ-4 and -5.
        InnerHasNoSession = "inner-has-no-session", "an ICMP error about a packet that no session \
            sent";
        /// Needs virtual reassembly.
        FragmentWithoutFirst = "fragment-without-first", "a fragment whose first one is not known";
        /// Its headers are not whole.
        Truncated = "truncated", "the headers of the upper layer are not whole";
        /// The table has no room at this key; it does not happen by chance.
        Crowded = "crowded", "the session table has no room at this key";
        /// The owner does not keep up.
        Congestion = "congestion", "too many packets wait for the worker that makes sessions";
        /// RFC 4787 §5.
        Filtered = "filtered", "from outside to a mapping, by a remote host that it does not admit";
        /// RFC 2637 §4.1.
        NoCall = "no-call", "GRE version 1 of a call that no control connection of PPTP has named";
        /// The sender sends it again.
        HelperHeld = "helper-held", "a segment that ends within a command of FTP, to come again";
        /// The sender sends it again.
        HelperGap = "helper-gap", "a segment of FTP's control connection that cannot be \
            translated: behind a gap, a part of a text that was replaced, or too long";
        /// Not enabled any more.
        NotEnabled = "not-enabled", "NAT44 was disabled meanwhile";
        /// RFC 6888 REQ-11; the sender gets an ICMP error.
        OutOfPorts = info "out-of-ports", "new sessions refused: every port that may be used \
            is in use for this destination";
        /// RFC 6888 REQ-11; the sender gets an ICMP error.
        SessionsExceeded = info "maximum-sessions-exceeded", "new sessions refused: all sessions \
            are in use";
        /// RFC 6888 REQ-4; the sender gets an ICMP error.
        SubscriberLimit = info "subscriber-limit", "new sessions refused: the subscriber has as \
            many sessions, ports or blocks as it may have, or makes sessions too fast";
        /// The sender gets an ICMP error.
        BindingsExceeded = info "bindings-exceeded", "new sessions refused: all bindings are in \
            use (`nat44 plugin enable` takes their number)";
        /// RFC 6333 §11.
        NotAdmitted = "b4-not-admitted", "from a host of IPv6 that may be no B4 (`dslite add \
            b4-prefix`)";
        /// As many as there may be.
        B4sExceeded = "b4s-exceeded", "from a new B4: all numbers of B4s are in use";
        /// RFC 7785 §4.
        B4Limit = "b4-limit", "from a new B4 whose prefix has as many as it may have (`dslite set \
            b4-limit`)";
        /// Wrong.
        InnerWrong = "inner-wrong", "from a B4: the packet inside is no whole packet of IPv4";
        /// RFC 6333 §11.
        InnerSource = "inner-source", "from a B4: the source of the packet inside is no host's";
        /// RFC 6040 §4.2.
        InnerCongestion = "inner-congestion", "from a B4: the outer header says congestion, and \
            the sender of the packet inside does not know of it";
        /// Round and round.
        TunnelLoop = "loop", "the packet came out of tunnels too often";
        /// Too many headers in front already.
        NoHeadroom = "no-headroom", "no room in the buffer for a header";
        /// RFC 6333 §6.5.
        AftrAddress = "aftr-address", "to 192.0.0.1, and no ping";
        /// RFC 792.
        SoftwireTtl = "softwire-ttl", "from a B4, with a TTL that ends here, and no ICMP error may \
            be sent";
        /// RFC 792.
        NotOutside = "not-outside", "from a B4, to a destination that no outside interface leads \
            to, and no ICMP error may be sent";
        /// RFC 6333 §6.5.
        SoftwireErrors = info "softwire-errors", "ICMP errors sent to hosts behind B4s";
        /// Passes.
        BackPressure = info "back-pressure", "passes in which a worker read no packets because \
            too many packets waited for their sessions";
        /// Made.
        Made = info "sessions-made", "new sessions";
        /// RFC 5508 REQ-4 and -5.
        ErrorTranslated = info "icmp-errors", "ICMP errors translated";
        /// From inside to inside, by an outside address.
        Hairpinned = info "hairpinned", "new sessions between two hosts inside";
    }
}

/// RFC 792: the TTL is over.
pub(crate) const TIME_EXCEEDED: IcmpErrorRequest =
    IcmpErrorRequest { kind: 11, code: 0, detail: 0 };

/// Request to the slow path: the side that a packet came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlowRequest {
    Outside = 0,
    Inside = 1,
    /// From a B4, in a packet of IPv6.
    Softwire = 2,
}

impl Handover for SlowRequest {
    fn to_index(self) -> u32 {
        self as u32
    }

    fn from_index(index: u32) -> SlowRequest {
        match index {
            0 => SlowRequest::Outside,
            1 => SlowRequest::Inside,
            _ => SlowRequest::Softwire,
        }
    }
}

/// In the place of an interface's table: no packet is routed in it.
const NO_TABLE: u32 = u32::MAX;

/// Where packets of an interface go that are translated or are to be left alone.
#[derive(Clone, Copy)]
pub(crate) struct InterfaceState {
    /// Small number of the interface's table.
    pub table: u32,
    pub behind: Behind,
    pub sides: Sides,
    pub mss: u16,
    pub now_s: u32,
    /// Are packets of GRE known by their calls?
    pub has_calls: bool,
}

/// What both nodes and the slow path hold.
pub(crate) struct Translator {
    pub shared: Arc<Shared>,
    pub tables: Arc<IpTables>,
    pub arc: ArcId,
    pub lookup: NodeId,
    lookup_in_table: NodeId,
    pub icmp_error: NodeId,
    encapsulate: NodeId,
    routing: Routing,
}

impl Translator {
    pub fn new(
        shared: &Arc<Shared>,
        arc: ArcId,
        wiring: &quiver_core::graph::node::Wiring<'_>,
    ) -> Translator {
        Translator {
            shared: shared.clone(),
            tables: wiring.shared(),
            arc,
            lookup: wiring.node(nodes::ip4::LOOKUP),
            lookup_in_table: wiring.node(nodes::ip4::LOOKUP_IN_TABLE),
            icmp_error: wiring.node(nodes::ip4::ICMP_ERROR),
            encapsulate: wiring.node(ENCAPSULATE),
            routing: Routing::new(wiring),
        }
    }

    /// What holds for packets of an interface, behind the feature `own`.
    pub fn interface_state(
        &self,
        cx: &Context<'_>,
        rx: InterfaceId,
        own: NodeId,
    ) -> InterfaceState {
        InterfaceState {
            table: self.tables.interfaces.table4(rx),
            behind: cx.behind(self.arc, rx, own, self.lookup),
            sides: self.shared.sides(rx),
            mss: self.shared.mss(),
            now_s: (cx.now_ns / 1_000_000_000) as u32,
            has_calls: self.shared.algs.has_calls(),
        }
    }

    /// What holds for packets that came out of softwires by an interface: it has no table of IPv4
    /// that they are routed in.
    pub fn softwire_state(&self, cx: &Context<'_>, rx: InterfaceId, own: NodeId) -> InterfaceState {
        let sides = Sides { inside: true, outside: false, output: false };
        InterfaceState { table: NO_TABLE, sides, ..self.interface_state(cx, rx, own) }
    }

    /// Translate a packet by its session; where it goes.
    #[inline(always)]
    pub fn pass_on(
        &self,
        state: InterfaceState,
        packet: &mut Packet,
        session: Session<'_>,
        direction: Direction,
    ) -> NodeId {
        // The error must quote the packet as its sender knows it.
        if packet.bytes().get(8).is_some_and(|ttl| *ttl <= 1) {
            packet.hand_over(TIME_EXCEEDED);
            return self.icmp_error;
        }
        let flags = tcp_flags(packet);
        translate(packet, session, direction);
        session.refresh(direction, flags.is_some(), state.now_s);
        if let Some(flags) = flags
            && !session.tcp().stays(flags)
        {
            session.track(direction, flags);
            if flags & flag::SYN != 0 && state.mss != 0 {
                clamp_mss(packet, state.mss);
            }
        }
        self.next(state, packet, session.next_table(direction))
    }

    /// Where a translated packet goes that is to be routed in `table`.
    #[inline(always)]
    pub fn next(&self, state: InterfaceState, packet: &mut Packet, table: u32) -> NodeId {
        if table == state.table {
            return state.behind.take(packet);
        }
        if let Some(number) = b4_of(table) {
            packet.hand_over(B4Number(number));
            return self.encapsulate;
        }
        packet.hand_over(TableIndex(table));
        self.lookup_in_table
    }

    /// Does a destination lead out of an outside interface, of one that translates all that leaves
    /// by it where only that counts?
    fn leads_outside(&self, table: u32, destination: u32, output: bool) -> bool {
        self.routing.leads_outside(table, destination, |id| {
            let sides = self.shared.sides(id);
            if output { sides.output } else { sides.outside }
        })
    }

    /// Small number of the table outside in which a destination of packets of `table` is reached
    /// by an outside interface.
    pub fn outside_table(
        &self,
        rules: &Rules,
        state: InterfaceState,
        destination: u32,
    ) -> Option<u32> {
        let (table, output) = (state.table, !state.sides.inside);
        match rules.vrf_routes.get(&table) {
            None => {
                let outside = rules.outside_table;
                self.leads_outside(outside, destination, output).then_some(outside)
            }
            Some(tables) => {
                let mut all = tables.iter().copied().chain([table]);
                all.find(|outside| self.leads_outside(*outside, destination, output))
            }
        }
    }

    /// May a packet from inside that has no session be translated?
    fn is_for_outside(&self, rules: &Rules, state: InterfaceState, destination: u32) -> bool {
        (state.sides.inside && rules.external.contains_key(&destination))
            || (!self.routing.is_local(state.table, destination)
                && !rules.is_excluded(destination)
                && self.outside_table(rules, state, destination).is_some())
    }

    /// May a packet from a B4 be translated, or is it for another host inside (RFC 4787 REQ-9)?
    pub fn leads_outside_of_b4(&self, rules: &Rules, destination: u32) -> bool {
        let outside = rules.outside_table;
        is_unicast(destination.into())
            && (rules.external.contains_key(&destination)
                || (!self.routing.is_local(outside, destination)
                    && !rules.is_excluded(destination)
                    && self.leads_outside(outside, destination, false)))
    }

    /// A packet from inside without session: the slow path makes one, unless it stays inside.
    #[cold]
    #[inline(never)]
    fn new_from_inside(
        &self,
        context: StageContext<'_>,
        state: InterfaceState,
        packet: &mut Packet,
    ) -> Option<SlowRequest> {
        let destination = destination(packet)?;
        let rules = self.shared.rules(context.pass());
        if rules.is_of_twice(destination) {
            let (_, flow) = classify_with(packet, state.table, state.has_calls);
            if self.is_expected(&flow) {
                return Some(SlowRequest::Inside);
            }
        }
        let is_for_outside =
            is_unicast(destination.into()) && self.is_for_outside(rules, state, destination);
        if is_for_outside && !rules.identity_local.is_empty() {
            let (_, flow) = classify_with(packet, state.table, state.has_calls);
            if rules.is_identity_of(flow.source, flow.protocol, flow.table) {
                return None;
            }
        }
        is_for_outside.then_some(SlowRequest::Inside)
    }

    /// Is a packet from outside to an endpoint-independent mapping that may admit it?
    fn is_mapped(&self, rules: &Rules, flow: &Flow) -> bool {
        let filtering = rules.provider.independent;
        let filters = |filtering| filtering != Filtering::AddressAndPortDependent;
        filtering.is_some_and(filters)
            && self.shared.bindings().is_some_and(|readers| {
                readers.live_mapping_to(flow.destination, flow.protocol).is_some()
            })
    }

    /// Does a helper expect a packet?
    fn is_expected(&self, flow: &Flow) -> bool {
        self.shared.expected().is_some_and(|readers| readers.expected(flow).is_some())
    }

    /// A packet from outside without session: to a static mapping, an ICMP error, the router's own,
    /// or nobody's.
    #[cold]
    #[inline(never)]
    fn new_from_outside(
        &self,
        context: StageContext<'_>,
        state: InterfaceState,
        packet: &mut Packet,
    ) -> Result<Option<SlowRequest>, Nat44Drop> {
        let Some(to) = destination(packet).filter(|to| is_unicast((*to).into())) else {
            return Ok(None);
        };
        let rules = self.shared.rules(context.pass());
        if !rules.identity.is_empty() {
            let (_, flow) = classify_with(packet, state.table, state.has_calls);
            if rules.is_identity_to(flow.destination, flow.protocol) {
                return Ok(None);
            }
        }
        let Some(is_own) = rules.external.get(&to) else {
            let passes =
                rules.forwarding || state.sides.inside || self.routing.is_local(state.table, to);
            return if passes { Ok(None) } else { Err(Nat44Drop::NoTranslation) };
        };
        let slow = Ok(Some(SlowRequest::Outside));
        match classify_with(packet, state.table, state.has_calls) {
            (Kind::IcmpError, _) => slow,
            (Kind::Data { .. } | Kind::Query { .. }, flow)
                if rules.mapping_to(flow.destination, flow.protocol).is_some() =>
            {
                slow
            }
            (Kind::Data { .. }, flow) if self.is_mapped(rules, &flow) => slow,
            (Kind::Data { .. }, flow) if self.is_expected(&flow) => slow,
            _ if *is_own => Ok(None),
            (Kind::LostFragment, _) => Err(Nat44Drop::FragmentWithoutFirst),
            (Kind::Truncated, _) => Err(Nat44Drop::Truncated),
            _ => Err(Nat44Drop::NoTranslation),
        }
    }
}

/// A packet's destination.
pub(crate) fn destination(packet: &Packet) -> Option<u32> {
    let place = packet.bytes().get(16..)?.first_chunk()?;
    Some(u32::from_be_bytes(*place))
}

/// The node of a side.
pub(crate) struct Translate<const INSIDE: bool> {
    translator: Translator,
    own: NodeId,
    slow: NodeId,
}

/// The names of the nodes.
pub(crate) const IN2OUT: &str = "nat44-ed-in2out";
pub(crate) const OUT2IN: &str = "nat44-ed-out2in";
pub(crate) const SLOW_PATH: &str = "nat44-ed-slowpath";

impl<const INSIDE: bool> LookUp for Translate<INSIDE> {
    const NAME: &'static str = if INSIDE { IN2OUT } else { OUT2IN };
    type Reason = Nat44Drop;
    type Key = Key;
    type Found = u32;
    type InterfaceState = InterfaceState;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> InterfaceState {
        self.translator.interface_state(cx, rx, self.own)
    }

    #[inline(always)]
    fn key(&self, state: InterfaceState, packet: &mut Packet) -> Key {
        key_with(packet, state.table, state.has_calls)
    }

    #[inline(always)]
    fn find(&self, variant: Variant, _: InterfaceState, keys: &[Key], found: &mut [u32]) {
        match self.translator.shared.table() {
            Some((table, _)) => table.lookup_slice(variant, keys, found),
            None => found.fill(NOT_FOUND),
        }
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        state: InterfaceState,
        _: Key,
        found: u32,
        packet: &mut Packet,
    ) -> Result<NodeId, Nat44Drop> {
        if found != NOT_FOUND
            && let Some((_, objects)) = self.translator.shared.table()
        {
            let session = Session(objects.get(found >> 1));
            if session.is_helped() {
                packet.hand_over(if INSIDE { SlowRequest::Inside } else { SlowRequest::Outside });
                return Ok(self.slow);
            }
            return Ok(self.translator.pass_on(state, packet, session, Direction::of_index(found)));
        }
        let request = if INSIDE {
            self.translator.new_from_inside(context, state, packet)
        } else {
            self.translator.new_from_outside(context, state, packet)?
        };
        match request {
            None => Ok(state.behind.take(packet)),
            Some(request) => {
                packet.hand_over(request);
                Ok(self.slow)
            }
        }
    }
}

/// The declaration of a side's node.
pub(crate) fn spec<const INSIDE: bool>(arc: ArcId, shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    let help = if INSIDE {
        "Translates packets from inside by their sessions"
    } else {
        "Translates packets from outside by their sessions"
    };
    NodeSpec::look_up(help, move |wiring| Translate::<INSIDE> {
        translator: Translator::new(&shared, arc, wiring),
        own: wiring.id,
        slow: wiring.node(SLOW_PATH),
    })
    .describe(|record, names| {
        let flow = <Ip4 as IpFamily>::describe(record.bytes());
        format!("{flow}, to {}", names.node(record.next))
    })
}
