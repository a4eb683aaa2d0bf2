//! What becomes of a packet whose session is known, or is looked for.

use std::sync::Arc;

use quiver_core::graph::arc::ArcId;
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::Wiring;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::handover::TableIndex;
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::{IcmpErrorRequest, nodes};
use quiver_translation::checksum::delta;
use quiver_translation::flow::{End, Flow, Kind, icmp};
use quiver_translation::rewrite::{set_ends, tcp_flags};
use quiver_translation::routing::Routing;
use quiver_translation::tcp::{Direction, Tcp, flag};
use quiver_translation::{flow, icmp_error};
use quiver_wire::IpProtocol;

use crate::mapping::{Block, Mapping};
use crate::reasons::Det44Drop;
use crate::slots::{Ends, Found, Life, Slots};
use crate::tables::{Rules, Shared};

/// RFC 792: the TTL is over.
const TIME_EXCEEDED: IcmpErrorRequest = IcmpErrorRequest { kind: 11, code: 0, detail: 0 };
/// RFC 6888 REQ-11.
const HOST_UNREACHABLE: IcmpErrorRequest = IcmpErrorRequest { kind: 3, code: 1, detail: 0 };
/// Other workers that may take the free place of a look-up first.
const TRIES: usize = 4;

/// What holds for packets of an interface.
#[derive(Clone, Copy)]
pub(crate) struct InterfaceState {
    /// Small number of the interface's table.
    pub table: u32,
    pub behind: Behind,
    pub now_s: u32,
    /// Where packets are routed that were translated: to hosts, and from them.
    pub inside_table: u32,
    pub outside_table: u32,
}

/// The ends of a flow from inside as slots have them: queries of ICMP have one identifier, so that
/// the far end has none.
#[inline(always)]
pub(crate) fn ends_from_inside(flow: &Flow) -> Ends {
    let remote_port = if flow.is_icmp() { 0 } else { flow.destination.port };
    Ends { remote: flow.destination.address, remote_port, inside_port: flow.source.port }
}

/// Is a packet from outside one of the session with these ends?
#[inline(always)]
pub(crate) fn comes_from(ends: Ends, flow: &Flow) -> bool {
    let port = if flow.is_icmp() { 0 } else { flow.source.port };
    (ends.remote == flow.source.address) & (ends.remote_port == port)
}

/// What both nodes hold.
pub(crate) struct Translator {
    pub shared: Arc<Shared>,
    tables: Arc<IpTables>,
    arc: ArcId,
    routing: Routing,
    lookup: NodeId,
    lookup_in_table: NodeId,
    icmp_error: NodeId,
}

impl Translator {
    pub fn new(shared: &Arc<Shared>, arc: ArcId, wiring: &Wiring<'_>) -> Translator {
        Translator {
            shared: shared.clone(),
            tables: wiring.shared(),
            arc,
            routing: Routing::new(wiring),
            lookup: wiring.node(nodes::ip4::LOOKUP),
            lookup_in_table: wiring.node(nodes::ip4::LOOKUP_IN_TABLE),
            icmp_error: wiring.node(nodes::ip4::ICMP_ERROR),
        }
    }

    /// What holds for packets of an interface, behind the feature `own`.
    pub fn interface_state(
        &self,
        cx: &Context<'_>,
        rx: InterfaceId,
        own: NodeId,
    ) -> InterfaceState {
        let rules = self.shared.rules(cx.pass);
        InterfaceState {
            table: self.tables.interfaces.table4(rx),
            behind: cx.behind(self.arc, rx, own, self.lookup),
            now_s: (cx.now_ns / 1_000_000_000) as u32,
            inside_table: rules.inside_table,
            outside_table: rules.outside_table,
        }
    }

    /// Where a translated packet goes that is to be routed in `table`.
    #[inline(always)]
    fn next(&self, state: &InterfaceState, packet: &mut Packet, table: u32) -> NodeId {
        if table == state.table {
            return state.behind.take(packet);
        }
        packet.hand_over(TableIndex(table));
        self.lookup_in_table
    }

    /// Give a packet of a session its new source or destination `to`, and refresh the session.
    #[inline(always)]
    pub fn pass_on(
        &self,
        state: &InterfaceState,
        packet: &mut Packet,
        slots: &Slots,
        (place, life): (usize, Life),
        (direction, to): (Direction, End),
    ) -> NodeId {
        // The error must quote the packet as its sender knows it.
        if packet.bytes().get(8).is_some_and(|ttl| *ttl <= 1) {
            packet.hand_over(TIME_EXCEEDED);
            return self.icmp_error;
        }
        slots.refresh(place, life, direction, tcp_flags(packet), state.now_s);
        set_end(packet, direction, to);
        match direction {
            Direction::InToOut => self.next(state, packet, state.outside_table),
            Direction::OutToIn => self.next(state, packet, state.inside_table),
        }
    }

    /// The session of a packet from inside that is not where its look-up begins: another one was
    /// there before it.
    #[inline(never)]
    pub fn displaced(
        &self,
        rules: &Rules,
        state: &InterfaceState,
        slots: &Slots,
        (host, session): (u32, (Ends, u8)),
    ) -> Option<(usize, Life, End)> {
        let block = rules.of_inside(host)?.block(host);
        match slots.find(&block, session, &self.shared.timeouts, state.now_s) {
            Found::Session(at) => {
                let place = block.slot + at as usize;
                Some((place, slots.get(place).1, outside_end(&block, at)))
            }
            Found::Free(_) | Found::Full => None,
        }
    }

    /// A packet from inside that has no session.
    #[cold]
    #[inline(never)]
    pub fn other_from_inside(
        &self,
        cx: &impl Count,
        (rules, state): (&Rules, &InterfaceState),
        packet: &mut Packet,
    ) -> Result<NodeId, Det44Drop> {
        let slots = self.shared.slots().ok_or(Det44Drop::NotEnabled)?;
        let (kind, flow) = flow::classify(packet, state.table);
        let goes_out = |to: u32| {
            let is_outside = |id| self.shared.is_outside(id);
            !self.routing.is_local(state.table, to)
                && self.routing.leads_outside(state.outside_table, to, is_outside)
        };
        if kind == Kind::IcmpError && goes_out(flow.destination.address) {
            return self.error_from_inside(cx, (rules, state), packet, slots);
        }
        let Some(mapping) = rules.of_inside(flow.source.address) else {
            return Ok(state.behind.take(packet));
        };
        if !goes_out(flow.destination.address) {
            return Ok(state.behind.take(packet));
        }
        let tcp_flags = check_translatable(kind, &flow)?;
        let block = mapping.block(flow.source.address);
        let session = (ends_from_inside(&flow), flow.protocol.0);
        let timeouts = &self.shared.timeouts;
        for _ in 0..TRIES {
            let at = match slots.find(&block, session, timeouts, state.now_s) {
                Found::Session(at) => at,
                Found::Free(at) => {
                    check_opens(kind, &flow)?;
                    let tcp = match flow.protocol {
                        IpProtocol::TCP => Tcp::default().after(Direction::InToOut, tcp_flags),
                        _ => Tcp::default(),
                    };
                    let place = block.slot + at as usize;
                    if !slots.take(place, session, tcp, (timeouts, state.now_s)) {
                        continue;
                    }
                    cx.count(Det44Drop::Made);
                    at
                }
                Found::Full => break,
            };
            let place = block.slot + at as usize;
            let life = slots.get(place).1;
            let to = outside_end(&block, at);
            return Ok(self.pass_on(state, packet, slots, (place, life), (Direction::InToOut, to)));
        }
        cx.count(Det44Drop::OutOfPorts);
        packet.hand_over(HOST_UNREACHABLE);
        Ok(self.icmp_error)
    }

    /// A packet from outside whose port has no session with its sender.
    #[cold]
    #[inline(never)]
    pub fn other_from_outside(
        &self,
        cx: &impl Count,
        (rules, state): (&Rules, &InterfaceState),
        packet: &mut Packet,
    ) -> Result<NodeId, Det44Drop> {
        let slots = self.shared.slots().ok_or(Det44Drop::NotEnabled)?;
        let (kind, flow) = flow::classify(packet, state.table);
        if rules.of_outside(flow.destination.address).is_none() {
            return Ok(state.behind.take(packet));
        }
        match kind {
            Kind::IcmpError => {
                let table = self.error_from_outside(packet, (rules, state), slots)?;
                cx.count(Det44Drop::ErrorTranslated);
                Ok(self.next(state, packet, table))
            }
            _ => {
                check_translatable(kind, &flow)?;
                Err(Det44Drop::NoTranslation)
            }
        }
    }

    /// An ICMP error from inside about a packet that came from outside (RFC 5508 REQ-5).
    fn error_from_inside(
        &self,
        cx: &impl Count,
        (rules, state): (&Rules, &InterfaceState),
        packet: &mut Packet,
        slots: &Slots,
    ) -> Result<NodeId, Det44Drop> {
        let quote = icmp_error::read(packet, state.table)?;
        let quoted = quote.flow();
        let Some(mapping) = rules.of_inside(quoted.destination.address) else {
            return Ok(state.behind.take(packet));
        };
        let (sent, to) = self.as_it_came(mapping, &quoted, state, slots)?;
        quote.set_ends(packet, &sent, (Some(to.address), quoted.source.address));
        cx.count(Det44Drop::ErrorTranslated);
        Ok(self.next(state, packet, state.outside_table))
    }

    /// The flow of a quoted packet to a host inside as it came from outside, and the outside end.
    fn as_it_came(
        &self,
        mapping: &Mapping,
        quoted: &Flow,
        state: &InterfaceState,
        slots: &Slots,
    ) -> Result<(Flow, End), Det44Drop> {
        let back = quoted.reversed();
        let block = mapping.block(back.source.address);
        let session = (ends_from_inside(&back), back.protocol.0);
        match slots.find(&block, session, &self.shared.timeouts, state.now_s) {
            Found::Session(at) => {
                let to = outside_end(&block, at);
                Ok((quote_of(quoted, |sent| sent.destination = to, to.port), to))
            }
            Found::Free(_) | Found::Full => Err(Det44Drop::InnerHasNoSession),
        }
    }

    /// Translate an ICMP error from outside, or of the router itself, about a packet that left. The
    /// small number of the table that it is routed in comes back.
    pub fn error_from_outside(
        &self,
        packet: &mut Packet,
        (rules, state): (&Rules, &InterfaceState),
        slots: &Slots,
    ) -> Result<u32, Det44Drop> {
        let quote = icmp_error::read(packet, state.table)?;
        let quoted = quote.flow();
        let from = quoted.source;
        let found = rules.of_outside(from.address);
        let found = found.and_then(|mapping| mapping.host(from.address, from.port));
        let (host, place) = found.ok_or(Det44Drop::InnerHasNoSession)?;
        let (ends, life) = slots.get(place);
        let is_its = comes_from(ends, &quoted.reversed())
            && life.protocol() == quoted.protocol.0
            && life.lives(&self.shared.timeouts, state.now_s);
        if !is_its {
            return Err(Det44Drop::InnerHasNoSession);
        }
        let to = End { address: host, port: ends.inside_port };
        let sent = quote_of(&quoted, |sent| sent.source = to, to.port);
        quote.set_ends(packet, &sent, (None, host));
        Ok(state.inside_table)
    }

    /// Translate an ICMP error of the router itself about a packet that came in and was translated
    /// already. The small number of the table that it is routed in comes back.
    pub fn error_about_inside(
        &self,
        packet: &mut Packet,
        (rules, state): (&Rules, &InterfaceState),
        slots: &Slots,
    ) -> Result<u32, Det44Drop> {
        let quote = icmp_error::read(packet, state.table)?;
        let quoted = quote.flow();
        let mapping = rules.of_inside(quoted.destination.address);
        let mapping = mapping.ok_or(Det44Drop::InnerHasNoSession)?;
        let (sent, _) = self.as_it_came(mapping, &quoted, state, slots)?;
        quote.set_ends(packet, &sent, (None, quoted.source.address));
        Ok(state.outside_table)
    }
}

/// Counts a reason.
pub(crate) trait Count {
    /// One more.
    fn count(&self, reason: Det44Drop);
}

/// The outside end of a place in a block.
#[inline(always)]
pub(crate) fn outside_end(block: &Block, at: u32) -> End {
    End { address: block.address, port: block.first + at as u16 }
}

/// A quoted flow with one end changed; queries of ICMP have their identifier at both.
fn quote_of(quoted: &Flow, change: impl FnOnce(&mut Flow), identifier: u16) -> Flow {
    let mut sent = *quoted;
    change(&mut sent);
    if sent.is_icmp() {
        (sent.source.port, sent.destination.port) = (identifier, identifier);
    }
    sent
}

/// May a packet be translated at all? Its TCP flags.
fn check_translatable(kind: Kind, flow: &Flow) -> Result<u8, Det44Drop> {
    match kind {
        Kind::IcmpError | Kind::OtherIcmp => Err(Det44Drop::BadIcmpType),
        Kind::LostFragment => Err(Det44Drop::FragmentWithoutFirst),
        Kind::Truncated => Err(Det44Drop::Truncated),
        Kind::Query { .. } => Ok(0),
        Kind::Data { tcp_flags } => match flow.protocol {
            IpProtocol::TCP | IpProtocol::UDP => Ok(tcp_flags),
            _ => Err(Det44Drop::UnsupportedProtocol),
        },
    }
}

/// Does a packet from inside open something?
fn check_opens(kind: Kind, flow: &Flow) -> Result<(), Det44Drop> {
    match kind {
        Kind::Data { tcp_flags } if flow.protocol == IpProtocol::TCP => {
            let opens = flag::SYN | flag::ACK | flag::RST | flag::FIN;
            (tcp_flags & opens == flag::SYN).then_some(()).ok_or(Det44Drop::NonSyn)
        }
        Kind::Query { kind: icmp::ECHO_REPLY | icmp::TIMESTAMP_REPLY } => {
            Err(Det44Drop::BadIcmpType)
        }
        _ => Ok(()),
    }
}

/// Give a packet a new source (to outside) or destination (to inside).
#[inline(always)]
fn set_end(packet: &mut Packet, direction: Direction, to: End) {
    let Some(head) = packet.bytes().first_chunk::<20>() else { return };
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (source, destination, protocol) = (word(12), word(16), head[9]);
    let behind = usize::from(head[0] & 15) * 4;
    let is_icmp = IpProtocol(protocol) == IpProtocol::ICMP;
    let place = if is_icmp { behind + 4 } else { behind };
    let ports = packet.bytes().get(place..).and_then(|bytes| bytes.first_chunk::<4>());
    let ports = u32::from_be_bytes(ports.copied().unwrap_or_default());
    let (old, addresses) = match direction {
        Direction::InToOut => (source, u64::from(to.address) << 32 | u64::from(destination)),
        Direction::OutToIn => (destination, u64::from(source) << 32 | u64::from(to.address)),
    };
    let (old_port, new_ports) = match (is_icmp, direction) {
        (true, _) => ((ports >> 16) as u16, u32::from(to.port)),
        (false, Direction::InToOut) => {
            ((ports >> 16) as u16, u32::from(to.port) << 16 | ports & 0xffff)
        }
        (false, Direction::OutToIn) => (ports as u16, ports & 0xffff_0000 | u32::from(to.port)),
    };
    let halves = |address: u32| [(address >> 16) as u16, address as u16];
    let ([a, b], [c, d]) = (halves(old), halves(to.address));
    let of_addresses = delta(&[a, b], &[c, d]);
    let of_upper = match is_icmp {
        true => delta(&[old_port], &[to.port]),
        false => delta(&[a, b, old_port], &[c, d, to.port]),
    };
    set_ends(packet, addresses, new_ports, (of_addresses, of_upper));
}
