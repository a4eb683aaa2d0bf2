//! What all nodes of the border relay hold: tables, the nodes behind them, and what senders are
//! told.

use std::sync::Arc;

use quiver_core::graph::node::Wiring;
use quiver_core::graph::stage::StageContext;
use quiver_core::memory::epoch::Pass;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{NodeId, Packet};
use quiver_forwarding::handover::{NextHopIndex, TableIndex};
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily, IpTables, noted};
use quiver_forwarding::{IcmpErrorRequest, nodes};
use quiver_tables::GroupId;
use quiver_translation::rewrite::{clamp_mss, tcp_flags};
use quiver_translation::tcp::flag;

use crate::domain::{Domain, Nobody};
use crate::reasons::MapDrop;
use crate::tables::{Direction, Shared};
use crate::upper::{self, End, Port};

/// The names of the nodes.
pub(crate) const TO_CUSTOMERS: &str = "ip4-map";
pub(crate) const FROM_CUSTOMERS: &str = "ip6-map";
pub(crate) const FROM_CUSTOMERS_LOCAL: &str = "ip6-map-local";
pub(crate) const CUT_INNER: &str = "map-inner-fragment";
pub(crate) const TO_IP6: &str = "ip4-map-t";
pub(crate) const TO_IP4: &str = "ip6-map-t";
pub(crate) const CUT_TRANSLATED: &str = "map-t-fragment";

/// The space in which a node claims packets of IPv4 in packets of IPv6 to addresses whose routes
/// lead to it, and not to the border relay.
const REST_CLAIMS: &str = "ip6-protocol-without-domain";

/// Small number of the table that both sides are routed in.
pub(crate) const TABLE: u32 = 0;
/// TTL and hop limit are over.
const TIME_EXCEEDED4: IcmpErrorRequest = IcmpErrorRequest { kind: 11, code: 0, detail: 0 };
const TIME_EXCEEDED6: IcmpErrorRequest = IcmpErrorRequest { kind: 3, code: 0, detail: 0 };
/// RFC 7596 §5.2: host unreachable.
const UNREACHABLE4: IcmpErrorRequest = IcmpErrorRequest { kind: 3, code: 1, detail: 0 };
/// RFC 7597 §8.1: source address failed ingress or egress policy.
const SOURCE_FAILED6: IcmpErrorRequest = IcmpErrorRequest { kind: 1, code: 5, detail: 0 };

/// A worker's instance of what they hold.
pub(crate) struct Border {
    pub shared: Arc<Shared>,
    pub tables: Arc<IpTables>,
    worker: usize,
    /// The node that routes to domains that encapsulate lead to.
    pub to_customers: NodeId,
    lookup4: NodeId,
    lookup6: NodeId,
    pub error4: NodeId,
    error6: NodeId,
    pub done: NodeId,
    /// Who takes packets of IPv4 in reassembled packets of IPv6 to an address of its own.
    rest: Option<NodeId>,
}

impl Border {
    pub fn new(shared: &Arc<Shared>, wiring: &Wiring<'_>) -> Border {
        Border {
            shared: shared.clone(),
            tables: wiring.shared(),
            worker: wiring.worker.index(),
            to_customers: wiring.node(TO_CUSTOMERS),
            lookup4: wiring.node(nodes::ip4::LOOKUP_IN_TABLE),
            lookup6: wiring.node(nodes::ip6::LOOKUP_IN_TABLE),
            error4: wiring.node(nodes::ip4::ICMP_ERROR),
            error6: wiring.node(nodes::ip6::ICMP_ERROR),
            done: wiring.node(nodes::IP_DONE),
            rest: wiring.claims(REST_CLAIMS).first().map(|(_, node)| *node),
        }
    }

    /// The domain to which the route of an IPv4 address leads by `node`.
    #[inline(always)]
    pub fn domain_of4<'p>(&self, ip4: u32, node: NodeId, pass: Pass<'p>) -> Option<&'p Domain> {
        self.domain_of_route(Ip4::table(&self.tables, TABLE).lookup(ip4), node, pass)
    }

    /// The domain to which a route leads by `node`.
    #[inline(always)]
    pub fn domain_of_route<'p>(
        &self,
        route: GroupId,
        node: NodeId,
        pass: Pass<'p>,
    ) -> Option<&'p Domain> {
        let hop = self.tables.groups.resolve(route, 0);
        if hop.next != node {
            return None;
        }
        self.shared.domain(hop.index, pass)
    }

    /// Ask for the domain of a packet of IPv4 whose route leads to it.
    #[inline(always)]
    pub fn ask_for_domain(&self, packet: &Packet) {
        let NextHopIndex(index) = packet.handed_over();
        self.shared.prefetch(index);
    }

    /// Ask for the address of the customer to whom such a packet goes, if a rule says it. The port
    /// is that of a packet without options, as almost all are.
    #[inline(always)]
    pub fn ask_for_customer(&self, context: StageContext<'_>, packet: &Packet) {
        let NextHopIndex(index) = packet.handed_over();
        let Some(domain) = self.shared.domain(index, context.pass()) else { return };
        if domain.has_rules()
            && let Some([.., high, low]) = packet.bytes().first_chunk::<24>()
        {
            domain.prefetch_binding(u16::from_be_bytes([*high, *low]));
        }
    }

    /// Where a reassembled packet goes whose destination is another node's than the border relay's.
    pub fn other_end(&self, destination6: u128) -> Option<NodeId> {
        let rest = self.rest?;
        let group = Ip6::table(&self.tables, TABLE).lookup(destination6);
        (self.tables.groups.resolve(group, 0).next == rest).then_some(rest)
    }

    /// Count packets, and the bytes of all.
    #[inline(always)]
    pub fn count(&self, direction: Direction, packets: u64, bytes: usize) {
        if let Some(traffic) = self.shared.traffic(self.worker) {
            traffic.count(direction, packets, bytes);
        }
    }

    /// To the route of an IPv6 destination.
    #[inline(always)]
    pub fn route6(&self, packet: &mut Packet) -> NodeId {
        packet.hand_over(TableIndex(TABLE));
        self.lookup6
    }

    /// To the route of an IPv4 destination.
    #[inline(always)]
    pub fn route4(&self, packet: &mut Packet) -> NodeId {
        packet.hand_over(TableIndex(TABLE));
        self.lookup4
    }

    #[cold]
    pub fn answer4(&self, packet: &mut Packet, request: IcmpErrorRequest) -> NodeId {
        packet.hand_over(request);
        self.error4
    }

    #[cold]
    pub fn answer6(&self, packet: &mut Packet, request: IcmpErrorRequest) -> NodeId {
        packet.hand_over(request);
        self.error6
    }

    #[cold]
    pub fn time_exceeded4(&self, context: StageContext<'_>, packet: &mut Packet) -> NodeId {
        context.count(MapDrop::Ttl, 1);
        self.answer4(packet, TIME_EXCEEDED4)
    }

    #[cold]
    pub fn time_exceeded6(&self, context: StageContext<'_>, packet: &mut Packet) -> NodeId {
        context.count(MapDrop::Ttl, 1);
        self.answer6(packet, TIME_EXCEEDED6)
    }

    /// Nobody has the destination of a packet of IPv4 (RFC 7596 §5.2).
    #[cold]
    pub fn nobody4(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
        nobody: Nobody,
    ) -> Result<NodeId, MapDrop> {
        match nobody {
            Nobody::NoPort | Nobody::LaterFragment => Err(nobody.into()),
            Nobody::Port | Nobody::NoRule => {
                context.count(MapDrop::from(nobody), 1);
                Ok(self.answer4(packet, UNREACHABLE4))
            }
        }
    }

    /// A packet of IPv6 whose source does not have its IPv4 source and port; the packet is as it
    /// came (RFC 7597 §8.1).
    #[cold]
    pub fn refuse6(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
        why: MapDrop,
    ) -> Result<NodeId, MapDrop> {
        let is_told = matches!(
            why,
            MapDrop::NoDomain | MapDrop::NoRule | MapDrop::PortOfNobody | MapDrop::Spoofed
        );
        if !(is_told && self.shared.params(context.pass()).tells_refused) {
            return Err(why);
        }
        context.count(why, 1);
        Ok(self.answer6(packet, SOURCE_FAILED6))
    }

    /// Has the sender of a packet of IPv6 its IPv4 source and port?
    #[inline(always)]
    pub fn check_source(
        &self,
        domain: &Domain,
        ip6: u128,
        (ip4, port): (u32, Port),
        pass: Pass<'_>,
    ) -> Result<(), MapDrop> {
        let params = self.shared.params(pass);
        if !params.checks_source {
            return Ok(());
        }
        match domain.customer(ip4, port) {
            Ok(customer) if customer == ip6 => Ok(()),
            Ok(_) => Err(MapDrop::Spoofed),
            Err(Nobody::LaterFragment) if !params.checks_fragments => {
                domain.may_have(ip6, ip4).then_some(()).ok_or(MapDrop::Spoofed)
            }
            Err(nobody) => Err(nobody.into()),
        }
    }
}

/// The destination's port of a packet of IPv4, if the domain asks for it.
#[inline(always)]
pub(crate) fn destination_port(packet: &Packet, domain: &Domain) -> Result<Port, MapDrop> {
    if !domain.is_shared() {
        return Ok(Port::Absent);
    }
    match upper::port(packet.bytes(), End::Destination)? {
        Port::InFirstFragment => Ok(noted_port(packet)),
        port => Ok(port),
    }
}

/// What virtual reassembly has noted of the first fragment.
#[cold]
fn noted_port(packet: &Packet) -> Port {
    match noted(packet) {
        Some(upper) if upper.protocol.has_ports() || upper.icmp.is_some() => {
            Port::Known(upper.destination_port)
        }
        Some(_) => Port::Absent,
        None => Port::InFirstFragment,
    }
}

/// Lower the segment size of a SYN (RFC 4459 §3.2), of a packet of IPv4.
#[inline(always)]
pub(crate) fn clamp(packet: &mut Packet, mss_bytes: u16) {
    if mss_bytes != 0 && tcp_flags(packet).is_some_and(|flags| flags & flag::SYN != 0) {
        clamp_mss(packet, mss_bytes);
    }
}

/// Has the router itself made the packet?
#[inline(always)]
pub(crate) fn is_own(packet: &Packet) -> bool {
    packet.has(PacketFlags::LOCALLY_ORIGINATED)
}

/// A packet of either version in words.
pub(crate) fn describe(bytes: &[u8]) -> String {
    match bytes.first().map(|first| first >> 4) {
        Some(4) => Ip4::describe(bytes),
        _ => Ip6::describe(bytes),
    }
}
