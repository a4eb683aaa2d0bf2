//! The nodes in the order in which they are declared. The FIB must know their numbers before they
//! exist, and they must know the FIB's tables: so the numbers are counted out first.

use std::sync::Arc;

use quiver_core::NodeId;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::builder::GraphBuilder;
use quiver_core::graph::node::NodeSpec;
use quiver_core::memory::buffer::BufferPool;
use quiver_forwarding as forwarding;
use quiver_forwarding::adjacency::counts::AdjacencyCounts;
use quiver_forwarding::adjacency_counter::Payload;
use quiver_forwarding::fib::{Family, FamilyNodes, FibNodes, LabelledNodes};
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::ip::{Ip4, Ip6};
use quiver_forwarding::lookup_in_table::{Destination, Source};
use quiver_forwarding::nodes;
use quiver_forwarding::{adjacency_counter, interface_rx, lookup_in_table};
use quiver_wire::icmp6::kind;
use quiver_wire::{EtherType, IpProtocol};

use crate::local::done;
use crate::local::icmp_limits::IcmpLimits;
use crate::local::pending_pings::WaitingPings;
use crate::local::punt::{self, PuntTable};
use crate::neighbor::pending_packets::HeldCounts;
use crate::neighbor::resolution::{self, Kind};
use crate::neighbor::{advertisement, arp_input, confirm, solicitation};
use crate::{ip_input, ip4, ip6, route_drop};

/// What the nodes are made of.
struct Parts<'a> {
    tables: &'a IpTables,
    numbers: Numbers,
    shared: Shared<'a>,
    workers: usize,
    pool: Arc<BufferPool>,
    arc4: ArcId,
    arc6: ArcId,
}

/// A node's name, and its declaration.
type Declaration = (&'static str, fn(&Parts<'_>) -> NodeSpec);

/// All nodes but `ip-done`, in the order of their numbers.
const NODES: [Declaration; 44] = [
    (nodes::IP_INPUT, |_| ip_input::spec()),
    (nodes::ARP_INPUT, |p| arp_input::spec(p.tables, p.numbers.fib_nodes())),
    (nodes::ip4::INPUT, |p| forwarding::ip4::input::spec(p.arc4, p.tables)),
    (nodes::ip4::LOOKUP, |p| forwarding::lookup::spec::<Ip4>(p.tables)),
    (nodes::ip4::LOOKUP_IN_TABLE, |p| lookup_in_table::spec::<Ip4, Destination>(p.tables)),
    (nodes::ip4::SOURCE_LOOKUP_IN_TABLE, |p| lookup_in_table::spec::<Ip4, Source>(p.tables)),
    (nodes::ip4::INTERFACE_RX, |_| interface_rx::spec(Family::Ip4)),
    (nodes::ip4::REWRITE, |p| forwarding::ip4::rewrite::spec(p.tables)),
    (nodes::ip4::TOO_BIG, |p| ip4::too_big::spec(p.tables)),
    (nodes::ip4::FRAG, |p| ip4::fragment::spec(p.tables)),
    (nodes::ip4::LOCAL, |p| ip4::local::spec(p.tables)),
    (nodes::ip4::ICMP_INPUT, |p| ip4::icmp_input::spec(p.shared.pings)),
    (nodes::ip4::ICMP_ECHO_REQUEST, |_| ip4::echo::spec()),
    (nodes::ip4::ICMP_ERROR, |p| ip4::icmp_error::spec(p.tables, p.shared.limits)),
    (nodes::ip4::ARP, |p| p.asks(nodes::ip4::ARP, Kind::NextHop(Payload::Ip4))),
    (nodes::ip4::GLEAN, |p| p.asks(nodes::ip4::GLEAN, Kind::Glean(Family::Ip4))),
    (nodes::ip4::CONFIRM_NEIGHBOR, |p| p.confirms(nodes::ip4::CONFIRM_NEIGHBOR, Payload::Ip4)),
    (nodes::ip4::ADJACENCY_COUNTER, |p| p.counts(Payload::Ip4)),
    (nodes::ip4::DIRECTED_BROADCAST, |p| ip4::directed_broadcast::spec(p.tables)),
    (nodes::ip4::DROP, |p| route_drop::spec::<Ip4>(p.tables)),
    (nodes::ip4::PUNT, |p| punt::spec::<Ip4>(p.tables, p.shared.punts)),
    (nodes::ip6::INPUT, |p| forwarding::ip6::input::spec(p.arc6)),
    (nodes::ip6::LOOKUP, |p| forwarding::lookup::spec::<Ip6>(p.tables)),
    (nodes::ip6::LOOKUP_IN_TABLE, |p| lookup_in_table::spec::<Ip6, Destination>(p.tables)),
    (nodes::ip6::SOURCE_LOOKUP_IN_TABLE, |p| lookup_in_table::spec::<Ip6, Source>(p.tables)),
    (nodes::ip6::INTERFACE_RX, |_| interface_rx::spec(Family::Ip6)),
    (nodes::ip6::LINK_LOCAL, |p| forwarding::ip6::link_local::spec(p.tables)),
    (nodes::ip6::REWRITE, |p| forwarding::ip6::rewrite::spec(p.tables)),
    (nodes::ip6::FRAG, |p| ip6::fragment::spec(p.tables, p.workers)),
    (nodes::ip6::LOCAL, |p| ip6::local::spec(p.tables)),
    (nodes::ip6::ICMP_INPUT, |p| ip6::icmp_input::spec(p.shared.pings)),
    (nodes::ip6::ICMP_ECHO_REQUEST, |p| ip6::echo::spec(p.tables)),
    (nodes::ip6::ICMP_ERROR, |p| ip6::icmp_error::spec(p.tables, p.shared.limits)),
    (nodes::ip6::NEIGHBOR_SOLICITATION, |p| solicitation::spec(p.tables, p.numbers.fib_nodes())),
    (nodes::ip6::NEIGHBOR_ADVERTISEMENT, |p| advertisement::spec(p.tables, p.numbers.fib_nodes())),
    (nodes::ip6::DISCOVER_NEIGHBOR, |p| {
        p.asks(nodes::ip6::DISCOVER_NEIGHBOR, Kind::NextHop(Payload::Ip6))
    }),
    (nodes::ip6::GLEAN, |p| p.asks(nodes::ip6::GLEAN, Kind::Glean(Family::Ip6))),
    (nodes::ip6::CONFIRM_NEIGHBOR, |p| p.confirms(nodes::ip6::CONFIRM_NEIGHBOR, Payload::Ip6)),
    (nodes::ip6::ADJACENCY_COUNTER, |p| p.counts(Payload::Ip6)),
    (nodes::ip6::DROP, |p| route_drop::spec::<Ip6>(p.tables)),
    (nodes::ip6::PUNT, |p| punt::spec::<Ip6>(p.tables, p.shared.punts)),
    (nodes::mpls::RESOLVE_NEIGHBOR, |p| {
        p.asks(nodes::mpls::RESOLVE_NEIGHBOR, Kind::NextHop(Payload::Labelled))
    }),
    (nodes::mpls::CONFIRM_NEIGHBOR, |p| {
        p.confirms(nodes::mpls::CONFIRM_NEIGHBOR, Payload::Labelled)
    }),
    (nodes::mpls::ADJACENCY_COUNTER, |p| p.counts(Payload::Labelled)),
];

/// Where the numbers begin: `ip-done` has this one, the others follow.
#[derive(Clone, Copy)]
pub(crate) struct Numbers(NodeId);

impl Numbers {
    /// Declare `ip-done`, which needs no table, and count from it.
    pub fn begin(graph: &mut GraphBuilder) -> Numbers {
        Numbers(graph.node(done::done()))
    }

    fn of(self, name: &str) -> NodeId {
        let place = NODES.iter().position(|(known, _)| *known == name).expect("a name of the list");
        NodeId(self.0.0 + 1 + place as u16)
    }

    /// What the FIB's hops name.
    pub fn fib_nodes(self) -> FibNodes {
        FibNodes {
            ip4: FamilyNodes {
                rewrite: self.of(nodes::ip4::REWRITE),
                confirm: self.of(nodes::ip4::CONFIRM_NEIGHBOR),
                count: self.of(nodes::ip4::ADJACENCY_COUNTER),
                local: self.of(nodes::ip4::LOCAL),
                incomplete: self.of(nodes::ip4::ARP),
                glean: self.of(nodes::ip4::GLEAN),
                drop: self.of(nodes::ip4::DROP),
                punt: self.of(nodes::ip4::PUNT),
                lookup: self.of(nodes::ip4::LOOKUP_IN_TABLE),
                source_lookup: self.of(nodes::ip4::SOURCE_LOOKUP_IN_TABLE),
                interface_rx: self.of(nodes::ip4::INTERFACE_RX),
            },
            ip6: FamilyNodes {
                rewrite: self.of(nodes::ip6::REWRITE),
                confirm: self.of(nodes::ip6::CONFIRM_NEIGHBOR),
                count: self.of(nodes::ip6::ADJACENCY_COUNTER),
                local: self.of(nodes::ip6::LOCAL),
                incomplete: self.of(nodes::ip6::DISCOVER_NEIGHBOR),
                glean: self.of(nodes::ip6::GLEAN),
                drop: self.of(nodes::ip6::DROP),
                punt: self.of(nodes::ip6::PUNT),
                lookup: self.of(nodes::ip6::LOOKUP_IN_TABLE),
                source_lookup: self.of(nodes::ip6::SOURCE_LOOKUP_IN_TABLE),
                interface_rx: self.of(nodes::ip6::INTERFACE_RX),
            },
            ip6_link_local: self.of(nodes::ip6::LINK_LOCAL),
            ip4_broadcast: self.of(nodes::ip4::DIRECTED_BROADCAST),
            labelled: LabelledNodes {
                incomplete: self.of(nodes::mpls::RESOLVE_NEIGHBOR),
                confirm: self.of(nodes::mpls::CONFIRM_NEIGHBOR),
                count: self.of(nodes::mpls::ADJACENCY_COUNTER),
            },
        }
    }
}

/// What nodes and the control thread share beside the tables.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub pings: &'a Arc<WaitingPings>,
    pub limits: &'a Arc<IcmpLimits>,
    pub held: &'a Arc<HeldCounts>,
    pub counts: &'a Arc<AdjacencyCounts>,
    pub punts: &'a Arc<PuntTable>,
}

impl Parts<'_> {
    /// A node that resolves neighbours.
    fn asks(&self, name: &str, kind: Kind) -> NodeSpec {
        resolution::spec(name, kind, self.tables, self.shared.held, &self.pool)
    }

    /// A node that has neighbours confirmed.
    fn confirms(&self, name: &str, payload: Payload) -> NodeSpec {
        confirm::spec(name, payload, self.tables, self.shared.counts)
    }

    /// A node that counts packets by adjacency.
    fn counts(&self, payload: Payload) -> NodeSpec {
        adjacency_counter::spec(payload, self.tables, self.shared.counts)
    }
}

/// Declare all nodes but `ip-done`.
pub(crate) fn declare(
    graph: &mut GraphBuilder,
    numbers: Numbers,
    tables: &IpTables,
    shared: &Shared<'_>,
) {
    let parts = Parts {
        tables,
        numbers,
        shared: *shared,
        workers: graph.workers(),
        pool: graph.pool().clone(),
        arc4: graph.arc("ip4-unicast"),
        arc6: graph.arc("ip6-unicast"),
    };
    for (name, spec) in NODES {
        let spec = spec(&parts);
        assert_eq!(spec.name, name, "a node of IP is declared under another name");
        assert_eq!(graph.node(spec), numbers.of(name));
    }
    let workers = parts.workers;
    ip6::hop_by_hop::declare(graph);
    graph.node(ip6::fragment::spec_in_table(tables, workers));
    graph.claim("ethertype", EtherType::ARP.0.into(), nodes::ARP_INPUT);
    graph.claim("ip4-protocol", IpProtocol::ICMP.0.into(), nodes::ip4::ICMP_INPUT);
    graph.claim("ip6-protocol", IpProtocol::ICMP6.0.into(), nodes::ip6::ICMP_INPUT);
    graph.claim(
        "icmp6-type",
        kind::NEIGHBOR_SOLICITATION.into(),
        nodes::ip6::NEIGHBOR_SOLICITATION,
    );
    graph.claim(
        "icmp6-type",
        kind::NEIGHBOR_ADVERTISEMENT.into(),
        nodes::ip6::NEIGHBOR_ADVERTISEMENT,
    );
}
