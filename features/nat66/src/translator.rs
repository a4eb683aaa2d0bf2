//! What all nodes of NAPT66 hold: a packet is translated by its session, or its sender hears why it
//! is not.

use std::sync::Arc;

use quiver_bindings::Flags;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::Wiring;
use quiver_core::memory::packet::handover::Handover;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::handover::TableIndex;
use quiver_forwarding::ip::{Ip6, IpTables};
use quiver_forwarding::{IcmpErrorRequest, nodes};
use quiver_translation::ip6::flow::{self, Flow};
use quiver_translation::ip6::rewrite::{Which, set_end};
use quiver_translation::routing::Routing;
use quiver_translation::tcp::Direction;
use quiver_translation::versions::Refused;
use quiver_translation::versions::read::{Kind, Read6, read6};
use quiver_wire::{Header, Ip6Header, IpProtocol};

use crate::reasons::Nat66Drop;
use crate::session::Session;
use crate::tables::{Rules, Shared};

/// The arc of both nodes.
pub(crate) const ARC: &str = "ip6-unicast";
/// The names of the nodes.
pub(crate) const IN2OUT: &str = "nat66-in2out";
pub(crate) const OUT2IN: &str = "nat66-out2in";
pub(crate) const SLOW_PATH: &str = "nat66-slowpath";
pub(crate) const HAIRPIN: &str = "nat66-hairpin";

/// The hop limit is over (RFC 4443 §3.3).
const TIME_EXCEEDED: IcmpErrorRequest = IcmpErrorRequest { kind: 3, code: 0, detail: 0 };
/// A header that a translator cannot pass on (RFC 4443 §3.4): the next header of IPv6.
const NEXT_HEADER: IcmpErrorRequest = IcmpErrorRequest { kind: 4, code: 1, detail: 6 };
/// Where an IPv6 header has its hop limit.
const HOP_LIMIT_AT: usize = 7;
/// Where a TCP header has its flags.
const TCP_FLAGS_AT: usize = 13;

/// Where TCP and UDP begin in packets that the fast path reads.
pub(crate) const PLAIN_UPPER: usize = Ip6Header::LEN;

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

/// Where packets of an interface go that are translated or are to be left alone.
#[derive(Clone, Copy)]
pub(crate) struct InterfaceState {
    /// Small number of the interface's table.
    pub table: u32,
    pub behind: Behind,
    pub now_s: u32,
}

/// Where the upper layer of a packet begins, and its protocol; a later fragment has none.
pub(crate) type UpperAt = Option<(usize, IpProtocol)>;

/// Where the upper layer is of a packet that was read.
pub(crate) fn upper_of(read: &Read6) -> UpperAt {
    (!read.is_later_fragment()).then_some((read.upper, read.protocol))
}

/// What all nodes hold.
pub(crate) struct Translator {
    pub shared: Arc<Shared>,
    pub tables: Arc<IpTables>,
    pub routing: Routing<Ip6>,
    arc: ArcId,
    pub lookup: NodeId,
    lookup_in_table: NodeId,
    error: NodeId,
    pub hairpin: NodeId,
}

impl Translator {
    pub fn new(arc: ArcId, shared: &Arc<Shared>, wiring: &Wiring<'_>) -> Translator {
        Translator {
            shared: shared.clone(),
            tables: wiring.shared(),
            routing: Routing::new(wiring),
            arc,
            lookup: wiring.node(nodes::ip6::LOOKUP),
            lookup_in_table: wiring.node(nodes::ip6::LOOKUP_IN_TABLE),
            error: wiring.node(nodes::ip6::ICMP_ERROR),
            hairpin: wiring.node(HAIRPIN),
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
            table: self.tables.interfaces.table6(rx),
            behind: cx.behind(self.arc, rx, own, self.lookup),
            now_s: (cx.now_ns / 1_000_000_000) as u32,
        }
    }

    /// Let the sender of a packet know.
    pub fn answer(&self, packet: &mut Packet, request: IcmpErrorRequest) -> NodeId {
        packet.hand_over(request);
        self.error
    }

    /// Where a translated packet goes that is to be routed in `table`.
    #[inline(always)]
    pub fn next(&self, state: InterfaceState, packet: &mut Packet, table: u32) -> NodeId {
        if table == state.table {
            return state.behind.take(packet);
        }
        packet.hand_over(TableIndex(table));
        self.lookup_in_table
    }

    /// Translate a packet by its session; where it goes.
    #[inline(always)]
    pub fn pass_on(
        &self,
        state: InterfaceState,
        packet: &mut Packet,
        upper: UpperAt,
        session: Session<'_>,
        direction: Direction,
    ) -> NodeId {
        let bytes = packet.bytes_mut();
        // The error must quote the packet as its sender knows it.
        if bytes.get(HOP_LIMIT_AT).is_some_and(|hops| *hops <= 1) {
            return self.answer(packet, TIME_EXCEEDED);
        }
        let (which, end) = match direction {
            Direction::InToOut => (Which::Source, session.external()),
            Direction::OutToIn => (Which::Destination, session.host()),
        };
        set_end(bytes, upper, which, end, session.delta(direction));
        if let Some((begin, IpProtocol::TCP)) = upper
            && let Some(flags) = bytes.get(begin + TCP_FLAGS_AT).copied()
            && !session.tcp().stays(flags)
        {
            session.track(direction, flags);
        }
        session.refresh(state.now_s);
        match direction {
            // The route of the host's table leads outside.
            Direction::InToOut if session.flags().has(Flags::HAIRPIN) => self.hairpin,
            Direction::InToOut => state.behind.take(packet),
            Direction::OutToIn => self.next(state, packet, session.inside_table()),
        }
    }

    /// Read a packet that is to be translated, and its flow; or where it goes that cannot be.
    pub fn read(
        &self,
        count: impl Fn(Nat66Drop),
        packet: &mut Packet,
        table: u32,
    ) -> Result<Result<(Read6, Kind, Flow), NodeId>, Nat66Drop> {
        let read = match read6(packet) {
            Err(Refused::SourceRoute(request)) => {
                count(Nat66Drop::SourceRoute);
                return Ok(Err(self.answer(packet, request)));
            }
            read => read?,
        };
        let (kind, flow) = flow::of(packet, &read, table);
        match kind {
            Kind::OtherIcmp => Err(Nat66Drop::BadIcmpType),
            Kind::Error if read.is_fragment() => Err(Nat66Drop::BadIcmpType),
            Kind::LostFragment => Err(Nat66Drop::FragmentWithoutFirst),
            _ if flow.protocol == IpProtocol::AUTHENTICATION => {
                count(Nat66Drop::Authenticated);
                Ok(Err(self.answer(packet, NEXT_HEADER)))
            }
            _ => Ok(Ok((read, kind, flow))),
        }
    }

    /// Is a packet of a table to this destination to be translated: does its route lead outside?
    pub fn is_for_outside(&self, rules: &Rules, table: u32, destination: u128) -> bool {
        self.routing.leads_outside(table, destination, |id| rules.outside.contains(&id))
    }
}
