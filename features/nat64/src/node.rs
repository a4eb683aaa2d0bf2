//! `nat64-in2out` and `nat64-out2in`: the session of a packet, found by its key, says what it
//! becomes. A packet without one goes on as it is, dies, or goes to the slow path.

use std::cell::Cell;
use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::memory::packet::handover::Handover;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::handover::TableIndex;
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily, IpTables};
use quiver_forwarding::requests::FragmentRequest;
use quiver_forwarding::{IcmpErrorRequest, nodes};
use quiver_tables::exact::NOT_FOUND;
use quiver_translation::flow::{End, Flow, key_of};
use quiver_translation::rewrite::{clamp_mss, tcp_flags};
use quiver_translation::tcp::{Direction, flag};
use quiver_translation::versions::address::Prefix;
use quiver_translation::versions::read::{Kind, Read4, Read6, read4, read6};
use quiver_translation::versions::to6::Done;
use quiver_translation::versions::{Refused, to4, to6};
use quiver_wire::IpProtocol;

use crate::reasons::Nat64Drop;
use crate::session::{Flags, Inside, Key, NO_KEY, Session, outside_key, protocol_of};
use crate::tables::{Rules, Shared};

/// The names of the nodes.
pub(crate) const IN2OUT: &str = "nat64-in2out";
pub(crate) const OUT2IN: &str = "nat64-out2in";
pub(crate) const SLOW_PATH: &str = "nat64-slowpath";
pub(crate) const HAIRPIN: &str = "nat64-hairpin";
pub(crate) const FRAGMENT: &str = "nat64-fragment";

/// Hop limit and TTL are over (RFC 7915 §4.1, §5.1).
const TIME_EXCEEDED6: IcmpErrorRequest = IcmpErrorRequest { kind: 3, code: 0, detail: 0 };
const TIME_EXCEEDED4: IcmpErrorRequest = IcmpErrorRequest { kind: 11, code: 0, detail: 0 };
/// RFC 6146 §3.4: a protocol that is not translated.
const PORT_UNREACHABLE6: IcmpErrorRequest = IcmpErrorRequest { kind: 1, code: 4, detail: 0 };
const PROTOCOL_UNREACHABLE4: IcmpErrorRequest = IcmpErrorRequest { kind: 3, code: 2, detail: 0 };

/// Request to the slow path: the side that a packet came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlowRequest {
    pub from_inside: bool,
}

impl Handover for SlowRequest {
    fn to_index(self) -> u32 {
        self.from_inside.into()
    }

    fn from_index(index: u32) -> SlowRequest {
        SlowRequest { from_inside: index != 0 }
    }
}

/// What all nodes hold.
pub(crate) struct Translator {
    pub shared: Arc<Shared>,
    pub tables: Arc<IpTables>,
    pub lookup4: NodeId,
    pub lookup6: NodeId,
    pub error4: NodeId,
    pub error6: NodeId,
    pub hairpin: NodeId,
    fragment: NodeId,
    /// Of the next packet of IPv4 that routers may cut.
    identification: Cell<u16>,
}

impl Translator {
    pub fn new(shared: &Arc<Shared>, wiring: &Wiring<'_>) -> Translator {
        // Workers begin at different places of the same sequence.
        let first = wiring.worker.0.wrapping_mul(0x4e35);
        Translator {
            shared: shared.clone(),
            tables: wiring.shared(),
            lookup4: wiring.node(nodes::ip4::LOOKUP_IN_TABLE),
            lookup6: wiring.node(nodes::ip6::LOOKUP_IN_TABLE),
            error4: wiring.node(nodes::ip4::ICMP_ERROR),
            error6: wiring.node(nodes::ip6::ICMP_ERROR),
            hairpin: wiring.node(HAIRPIN),
            fragment: wiring.node(FRAGMENT),
            identification: Cell::new(first),
        }
    }

    fn next_identification(&self) -> u16 {
        let next = self.identification.get().wrapping_add(1);
        self.identification.set(next);
        next
    }

    /// Let the sender of an IPv6 packet know.
    pub fn tell6(&self, packet: &mut Packet, request: IcmpErrorRequest) -> NodeId {
        packet.hand_over(request);
        self.error6
    }

    /// Let the sender of an IPv4 packet know.
    pub fn tell4(&self, packet: &mut Packet, request: IcmpErrorRequest) -> NodeId {
        packet.hand_over(request);
        self.error4
    }

    /// Translate a packet of IPv6 by its session; where it goes.
    #[inline(always)]
    pub fn send_out(
        &self,
        packet: &mut Packet,
        read: &Read6,
        session: Session<'_>,
        now_s: u32,
    ) -> Result<NodeId, Nat64Drop> {
        // The error must quote the packet as its sender knows it.
        if read.hop_limit <= 1 {
            return Ok(self.tell6(packet, TIME_EXCEEDED6));
        }
        let delta = session.delta(Direction::InToOut);
        let identification = self.next_identification();
        to4::packet(packet, read, &session.ends4(), delta, identification)?;
        session.refresh(now_s);
        if let Some(flags) = tcp_flags(packet)
            && !session.tcp().stays(flags)
        {
            session.track(Direction::InToOut, flags);
            self.clamp(packet, flags);
        }
        let table = session.outside().table;
        packet.hand_over(TableIndex(table));
        Ok(if session.flags().has(Flags::HAIRPIN) { self.hairpin } else { self.lookup4 })
    }

    /// Translate a packet of IPv4 by its session; where it goes.
    #[inline(always)]
    pub fn send_in(
        &self,
        packet: &mut Packet,
        read: &Read4,
        (session, prefix): (Session<'_>, Prefix),
        now_s: u32,
    ) -> Result<NodeId, Nat64Drop> {
        if read.ttl <= 1 {
            return Ok(self.tell4(packet, TIME_EXCEEDED4));
        }
        let flags = tcp_flags(packet);
        if let Some(flags) = flags.filter(|flags| flags & flag::SYN != 0) {
            self.clamp(packet, flags);
        }
        let delta = session.delta(Direction::OutToIn);
        let mtu_bytes = self.shared.ip6_mtu();
        let done = to6::packet(packet, read, &session.ends6(prefix), delta, mtu_bytes)?;
        session.refresh(now_s);
        if let Some(flags) = flags
            && !session.tcp().stays(flags)
        {
            session.track(Direction::OutToIn, flags);
        }
        let table = session.inside().table;
        if done == Done::ToCut {
            packet.hand_over(FragmentRequest { mtu_bytes, table });
            return Ok(self.fragment);
        }
        packet.hand_over(TableIndex(table));
        Ok(self.lookup6)
    }

    #[cold]
    fn clamp(&self, packet: &mut Packet, flags: u8) {
        let mss = self.shared.mss();
        if flags & flag::SYN != 0 && mss != 0 {
            clamp_mss(packet, mss);
        }
    }

    /// Read a packet of IPv6 to a prefix; or where it goes that cannot be translated.
    pub fn read_inside(
        &self,
        context: impl Fn(Nat64Drop),
        packet: &mut Packet,
    ) -> Result<Result<Read6, NodeId>, Nat64Drop> {
        let read = match read6(packet) {
            Err(Refused::SourceRoute(request)) => {
                context(Nat64Drop::SourceRoute);
                return Ok(Err(self.tell6(packet, request)));
            }
            read => read?,
        };
        if is_unknown(read.kind, read.protocol, IpProtocol::ICMP6) {
            context(Nat64Drop::UnknownProtocol);
            return Ok(Err(self.tell6(packet, PORT_UNREACHABLE6)));
        }
        check(read.kind, read.is_fragment())?;
        Ok(Ok(read))
    }

    /// Read a packet of IPv4 to an address of the pool; or where it goes that cannot be translated.
    pub fn read_outside(
        &self,
        context: impl Fn(Nat64Drop),
        packet: &mut Packet,
    ) -> Result<Result<Read4, NodeId>, Nat64Drop> {
        let read = match read4(packet) {
            Err(Refused::SourceRoute(request)) => {
                context(Nat64Drop::SourceRoute);
                return Ok(Err(self.tell4(packet, request)));
            }
            read => read?,
        };
        if is_unknown(read.kind, read.protocol, IpProtocol::ICMP) {
            context(Nat64Drop::UnknownProtocol);
            return Ok(Err(self.tell4(packet, PROTOCOL_UNREACHABLE4)));
        }
        check(read.kind, read.is_fragment())?;
        Ok(Ok(read))
    }
}

/// Is it neither TCP, UDP nor this ICMP?
fn is_unknown(kind: Kind, protocol: IpProtocol, icmp: IpProtocol) -> bool {
    matches!(kind, Kind::Data { .. })
        && protocol != IpProtocol::TCP
        && protocol != IpProtocol::UDP
        && protocol != icmp
}

fn check(kind: Kind, is_fragment: bool) -> Result<(), Nat64Drop> {
    match kind {
        Kind::OtherIcmp | Kind::Query | Kind::Answer | Kind::Error if is_fragment => {
            Err(Nat64Drop::FragmentedIcmp)
        }
        Kind::OtherIcmp => Err(Nat64Drop::NoCounterpart),
        Kind::LostFragment => Err(Nat64Drop::FragmentWithoutFirst),
        Kind::Data { .. } | Kind::Query | Kind::Answer | Kind::Error => Ok(()),
    }
}

/// The flow of a packet of IPv6 to an address behind a prefix.
pub(crate) fn inside_of(read: &Read6, rules: &Rules, table: u32) -> Option<(Inside, Prefix)> {
    let rule = rules.prefix_of(table, read.destination)?;
    let remote = rule.prefix.extract(read.destination)?;
    let protocol = protocol_of(read.protocol);
    let inside = Inside {
        host: read.source,
        remote,
        ports: read.ports,
        protocol,
        table,
        prefix: rule.number,
    };
    Some((inside, rule.prefix))
}

/// The flow of a packet of IPv4.
pub(crate) fn outside_of(read: &Read4, table: u32) -> Flow {
    let end = |address, port| End { address, port };
    Flow {
        source: end(read.source, read.ports.source),
        destination: end(read.destination, read.ports.destination),
        protocol: read.protocol,
        table,
    }
}

/// Where packets of an interface go that are to be left alone.
#[derive(Clone, Copy)]
pub(crate) struct InterfaceState {
    /// Small number of the interface's table.
    table: u32,
    behind: Behind,
    now_s: u32,
    /// The prefix of its packets that is looked for first: bits, length and number.
    prefix: Option<(Prefix, u8)>,
}

/// `nat64-in2out`.
struct In2Out {
    translator: Translator,
    arc: ArcId,
    own: NodeId,
    slow: NodeId,
    lookup: NodeId,
}

impl In2Out {
    /// A packet whose key is not found at once: what the fast path does not read, and new ones.
    #[cold]
    #[inline(never)]
    fn look_closer(
        &self,
        context: StageContext<'_>,
        state: InterfaceState,
        packet: &mut Packet,
    ) -> Result<NodeId, Nat64Drop> {
        let rules = self.translator.shared.rules(context.pass());
        let destination = Ip6::destination(packet.bytes()).unwrap_or_default();
        let Some(rule) = rules.prefix_of(state.table, destination) else {
            return Ok(state.behind.take(packet));
        };
        if rule.prefix.is_well_known()
            && let Some(remote) = rule.prefix.extract(destination)
            && !quiver_translation::versions::address::is_global(remote)
        {
            return Err(Nat64Drop::NotGlobal);
        }
        let count = |reason| context.count(reason, 1);
        let read = match self.translator.read_inside(count, packet)? {
            Ok(read) => read,
            Err(next) => return Ok(next),
        };
        if rule.prefix.contains(read.source) {
            return Err(Nat64Drop::Translated);
        }
        if read.kind != Kind::Error
            && let Some((inside, _)) = inside_of(&read, rules, state.table)
            && let Some((table, objects, _)) = self.translator.shared.table()
            && let Some(index) = table.lookup(&inside.key())
        {
            let session = Session(objects.get(index >> 1));
            return self.translator.send_out(packet, &read, session, state.now_s);
        }
        packet.hand_over(SlowRequest { from_inside: true });
        Ok(self.slow)
    }
}

impl LookUp for In2Out {
    const NAME: &'static str = IN2OUT;
    const LOOKS_BEHIND: bool = true;
    type Reason = Nat64Drop;
    type Key = Key;
    type Found = u32;
    type InterfaceState = InterfaceState;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> InterfaceState {
        let table = self.translator.tables.interfaces.table6(rx);
        let rules = self.translator.shared.rules(cx.pass);
        InterfaceState {
            table,
            behind: cx.behind(self.arc, rx, self.own, self.lookup),
            now_s: (cx.now_ns / 1_000_000_000) as u32,
            prefix: rules.prefix_for(table).map(|rule| (rule.prefix, rule.number)),
        }
    }

    /// Of TCP and UDP without extension headers; others are read more slowly.
    #[inline(always)]
    fn key(&self, state: InterfaceState, packet: &mut Packet) -> Key {
        let Some(head) = packet.bytes().first_chunk::<44>() else { return NO_KEY };
        let (Some((prefix, number)), 6 | 17) = (state.prefix, head[6]) else { return NO_KEY };
        let word = |at: usize| {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(&head[at..at + 16]);
            u128::from_be_bytes(bytes)
        };
        let Some(remote) = prefix.extract(word(24)) else { return NO_KEY };
        let ports = quiver_translation::versions::ends::Ports {
            source: u16::from_be_bytes([head[40], head[41]]),
            destination: u16::from_be_bytes([head[42], head[43]]),
        };
        let (host, protocol) = (word(8), IpProtocol(head[6]));
        Inside { host, remote, ports, protocol, table: state.table, prefix: number }.key()
    }

    #[inline(always)]
    fn find(&self, variant: Variant, _: InterfaceState, keys: &[Key], found: &mut [u32]) {
        match self.translator.shared.table() {
            Some((table, ..)) => table.lookup_slice(variant, keys, found),
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
    ) -> Result<NodeId, Nat64Drop> {
        if found != NOT_FOUND
            && let Some((_, objects, _)) = self.translator.shared.table()
            && let Ok(read) = read6(packet)
        {
            let session = Session(objects.get(found >> 1));
            return self.translator.send_out(packet, &read, session, state.now_s);
        }
        self.look_closer(context, state, packet)
    }
}

/// `nat64-out2in`.
struct Out2In {
    translator: Translator,
    arc: ArcId,
    own: NodeId,
    slow: NodeId,
    lookup: NodeId,
}

impl Out2In {
    /// A packet without session: to a binding, an ICMP error, the router's own, or nobody's.
    #[cold]
    #[inline(never)]
    fn look_closer(
        &self,
        context: StageContext<'_>,
        state: InterfaceState,
        packet: &mut Packet,
    ) -> Result<NodeId, Nat64Drop> {
        let rules = self.translator.shared.rules(context.pass());
        let to = Ip4::destination(packet.bytes()).unwrap_or_default();
        let is_own = match rules.external.get(&to) {
            Some(is_own) if state.table == rules.outside_table => *is_own,
            _ => return Ok(state.behind.take(packet)),
        };
        let count = |reason| context.count(reason, 1);
        let read = if is_own {
            // What is not translated is the router's own.
            match read4(packet) {
                Ok(read) if check(read.kind, read.is_fragment()).is_ok() => read,
                _ => return Ok(state.behind.take(packet)),
            }
        } else {
            match self.translator.read_outside(count, packet)? {
                Ok(read) => read,
                Err(next) => return Ok(next),
            }
        };
        let flow = outside_of(&read, state.table);
        let bindings = self.translator.shared.table().map(|(_, _, bindings)| bindings);
        let is_bound = read.kind == Kind::Error
            || bindings.is_some_and(|bindings| {
                bindings.of_external(flow.destination, flow.protocol, flow.table).is_some()
            });
        match is_bound {
            true => {
                packet.hand_over(SlowRequest { from_inside: false });
                Ok(self.slow)
            }
            false if is_own => Ok(state.behind.take(packet)),
            false => Err(Nat64Drop::NoTranslation),
        }
    }
}

impl LookUp for Out2In {
    const NAME: &'static str = OUT2IN;
    type Reason = Nat64Drop;
    type Key = Key;
    type Found = u32;
    type InterfaceState = InterfaceState;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> InterfaceState {
        InterfaceState {
            table: self.translator.tables.interfaces.table4(rx),
            behind: cx.behind(self.arc, rx, self.own, self.lookup),
            now_s: (cx.now_ns / 1_000_000_000) as u32,
            prefix: None,
        }
    }

    #[inline(always)]
    fn key(&self, state: InterfaceState, packet: &mut Packet) -> Key {
        outside_key(key_of(packet, state.table))
    }

    #[inline(always)]
    fn find(&self, variant: Variant, _: InterfaceState, keys: &[Key], found: &mut [u32]) {
        match self.translator.shared.table() {
            Some((table, ..)) => table.lookup_slice(variant, keys, found),
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
    ) -> Result<NodeId, Nat64Drop> {
        if found != NOT_FOUND
            && let Some((_, objects, _)) = self.translator.shared.table()
            && let Ok(read) = read4(packet)
        {
            let session = Session(objects.get(found >> 1));
            let rules = self.translator.shared.rules(context.pass());
            if let Some(prefix) = rules.prefix(session.inside().prefix) {
                let by = (session, prefix);
                return self.translator.send_in(packet, &read, by, state.now_s);
            }
        }
        self.look_closer(context, state, packet)
    }
}

/// The declaration of `nat64-in2out`; `arc` is `ip6-unicast`.
pub(crate) fn spec_in2out(arc: ArcId, shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    NodeSpec::look_up("Translates IPv6 packets to a prefix of NAT64", move |wiring| In2Out {
        translator: Translator::new(&shared, wiring),
        arc,
        own: wiring.id,
        slow: wiring.node(SLOW_PATH),
        lookup: wiring.node(nodes::ip6::LOOKUP),
    })
    .describe(|record, names| format!("to {}", names.node(record.next)))
}

/// The declaration of `nat64-out2in`; `arc` is `ip4-unicast`.
pub(crate) fn spec_out2in(arc: ArcId, shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    NodeSpec::look_up("Translates IPv4 packets to the pool of NAT64", move |wiring| Out2In {
        translator: Translator::new(&shared, wiring),
        arc,
        own: wiring.id,
        slow: wiring.node(SLOW_PATH),
        lookup: wiring.node(nodes::ip4::LOOKUP),
    })
    .describe(|record, names| format!("to {}", names.node(record.next)))
}
