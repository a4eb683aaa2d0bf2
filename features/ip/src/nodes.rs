//! The nodes in the order in which they are declared. The FIB must know their numbers before they
//! exist, and they must know the FIB's tables: so the numbers are counted out first.

use std::sync::Arc;

use quiver_core::NodeId;
use quiver_core::graph::builder::GraphBuilder;
use quiver_forwarding as forwarding;
use quiver_forwarding::adjacency::counts::AdjacencyCounts;
use quiver_forwarding::fib::{Family, FamilyNodes, FibNodes};
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::ip::{Ip4, Ip6};
use quiver_forwarding::{adjacency_counter, interface_rx, source_lookup};
use quiver_wire::icmp6::kind;
use quiver_wire::{EtherType, IpProtocol};

use crate::local::done;
use crate::local::icmp_limits::IcmpLimits;
use crate::local::pending_pings::WaitingPings;
use crate::local::punt::{self, PuntTable};
use crate::neighbor::pending_packets::HeldCounts;
use crate::neighbor::resolution::{self, Kind};
use crate::neighbor::{advertisement, arp_input, confirm, solicitation};
use crate::{ip_input, ip4, ip6};

/// Names in the order of [`declare`].
const NAMES: [&str; 41] = [
    "ip-input",
    "arp-input",
    "ip4-input",
    "ip4-lookup",
    "ip4-lookup-in-table",
    "ip4-source-lookup-in-table",
    "ip4-interface-rx",
    "ip4-rewrite",
    "ip4-too-big",
    "ip4-frag",
    "ip4-local",
    "ip4-icmp-input",
    "ip4-icmp-echo-request",
    "ip4-icmp-error",
    "ip4-arp",
    "ip4-glean",
    "ip4-confirm-neighbor",
    "ip4-adjacency-counter",
    "ip4-directed-broadcast",
    "ip4-drop",
    "ip4-punt",
    "ip6-input",
    "ip6-lookup",
    "ip6-lookup-in-table",
    "ip6-source-lookup-in-table",
    "ip6-interface-rx",
    "ip6-link-local",
    "ip6-rewrite",
    "ip6-frag",
    "ip6-local",
    "ip6-icmp-input",
    "ip6-icmp-echo-request",
    "ip6-icmp-error",
    "icmp6-neighbor-solicitation",
    "icmp6-neighbor-advertisement",
    "ip6-discover-neighbor",
    "ip6-glean",
    "ip6-confirm-neighbor",
    "ip6-adjacency-counter",
    "ip6-drop",
    "ip6-punt",
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
        let place = NAMES.iter().position(|known| *known == name).expect("a name of the list");
        NodeId(self.0.0 + 1 + place as u16)
    }

    /// What the FIB's hops name.
    pub fn fib_nodes(self) -> FibNodes {
        FibNodes {
            ip4: FamilyNodes {
                rewrite: self.of("ip4-rewrite"),
                confirm: self.of("ip4-confirm-neighbor"),
                count: self.of("ip4-adjacency-counter"),
                local: self.of("ip4-local"),
                incomplete: self.of("ip4-arp"),
                glean: self.of("ip4-glean"),
                drop: self.of("ip4-drop"),
                punt: self.of("ip4-punt"),
                lookup: self.of("ip4-lookup-in-table"),
                source_lookup: self.of("ip4-source-lookup-in-table"),
                interface_rx: self.of("ip4-interface-rx"),
            },
            ip6: FamilyNodes {
                rewrite: self.of("ip6-rewrite"),
                confirm: self.of("ip6-confirm-neighbor"),
                count: self.of("ip6-adjacency-counter"),
                local: self.of("ip6-local"),
                incomplete: self.of("ip6-discover-neighbor"),
                glean: self.of("ip6-glean"),
                drop: self.of("ip6-drop"),
                punt: self.of("ip6-punt"),
                lookup: self.of("ip6-lookup-in-table"),
                source_lookup: self.of("ip6-source-lookup-in-table"),
                interface_rx: self.of("ip6-interface-rx"),
            },
            ip6_link_local: self.of("ip6-link-local"),
            ip4_broadcast: self.of("ip4-directed-broadcast"),
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

/// Declare all nodes but `ip-done`.
pub(crate) fn declare(
    graph: &mut GraphBuilder,
    numbers: Numbers,
    tables: &IpTables,
    shared: &Shared<'_>,
) {
    let Shared { pings, limits, held, counts, punts } = *shared;
    let (workers, pool) = (graph.workers(), graph.pool().clone());
    let (arc4, arc6) = (graph.arc("ip4-unicast"), graph.arc("ip6-unicast"));
    let asks = |name, six, glean| resolution::spec(name, Kind { six, glean }, tables, held, &pool);
    let specs = [
        ip_input::spec(),
        arp_input::spec(tables, numbers.fib_nodes()),
        forwarding::ip4::input::spec(arc4, tables),
        forwarding::lookup::spec::<Ip4>(tables),
        forwarding::lookup_in_table::spec::<Ip4>(tables),
        source_lookup::spec::<Ip4>(tables),
        interface_rx::spec(Family::Ip4),
        forwarding::ip4::rewrite::spec(tables),
        ip4::too_big::spec(tables),
        ip4::fragment::spec(tables),
        ip4::local::spec(tables),
        ip4::icmp_input::spec(pings),
        ip4::echo::spec(),
        ip4::icmp_error::spec(tables, limits),
        asks("ip4-arp", false, false),
        asks("ip4-glean", false, true),
        confirm::spec("ip4-confirm-neighbor", false, tables, counts),
        adjacency_counter::spec(false, tables, counts),
        ip4::directed_broadcast::spec(tables),
        ip4::drop::spec(tables),
        punt::spec::<Ip4>(tables, punts),
        forwarding::ip6::input::spec(arc6),
        forwarding::lookup::spec::<Ip6>(tables),
        forwarding::lookup_in_table::spec::<Ip6>(tables),
        source_lookup::spec::<Ip6>(tables),
        interface_rx::spec(Family::Ip6),
        forwarding::ip6::link_local::spec(tables),
        forwarding::ip6::rewrite::spec(tables),
        ip6::fragment::spec(tables, workers),
        ip6::local::spec(tables),
        ip6::icmp_input::spec(pings),
        ip6::echo::spec(tables),
        ip6::icmp_error::spec(tables, limits),
        solicitation::spec(tables, numbers.fib_nodes()),
        advertisement::spec(tables, numbers.fib_nodes()),
        asks("ip6-discover-neighbor", true, false),
        asks("ip6-glean", true, true),
        confirm::spec("ip6-confirm-neighbor", true, tables, counts),
        adjacency_counter::spec(true, tables, counts),
        ip6::drop::spec(tables),
        punt::spec::<Ip6>(tables, punts),
    ];
    for (spec, name) in specs.into_iter().zip(NAMES) {
        assert_eq!(spec.name, name, "the nodes of IP are declared in the order of their names");
        assert_eq!(graph.node(spec), numbers.of(name));
    }
    ip6::hop_by_hop::declare(graph);
    graph.node(ip6::fragment::spec_in_table(tables, workers));
    graph.claim("ethertype", EtherType::ARP.0.into(), "arp-input");
    graph.claim("ip4-protocol", IpProtocol::ICMP.0.into(), "ip4-icmp-input");
    graph.claim("ip6-protocol", IpProtocol::ICMP6.0.into(), "ip6-icmp-input");
    graph.claim("icmp6-type", kind::NEIGHBOR_SOLICITATION.into(), "icmp6-neighbor-solicitation");
    graph.claim("icmp6-type", kind::NEIGHBOR_ADVERTISEMENT.into(), "icmp6-neighbor-advertisement");
}
