//! Where a route's hops lead, for those who look at it: `show ip fib`, `show mpls fib`.

use std::fmt;
use std::net::IpAddr;

use quiver_core::{Engine, InterfaceId};
use serde::Serialize;

use crate::fib::{Family, Fib, POPPED_UNIFORM};
use crate::next_hop_group::Hop;
use crate::nodes;

/// What workers do with a hop: the node that they hand packets to, and what that node looks up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HopView {
    /// The hop's share of the flows, relative to the others of its route.
    pub weight: u32,
    /// The node that packets go to.
    pub node: String,
    /// What packets are handed over with: the place of an adjacency, of a table, or other.
    pub index: u32,
    /// The neighbour, where the hop is an adjacency with one.
    pub next_hop: Option<IpAddr>,
    /// The interface that packets leave by, or that they are received on once more.
    pub interface: Option<String>,
    /// The operator's number of the table that packets are looked up in.
    pub table: Option<u32>,
}

impl HopView {
    /// The hops of a route or of a group.
    pub fn all(engine: &Engine, fib: &Fib, hops: &[(Hop, u32)]) -> Vec<HopView> {
        hops.iter().map(|(hop, weight)| HopView::new(engine, fib, *hop, *weight)).collect()
    }

    /// One hop with its weight.
    fn new(engine: &Engine, fib: &Fib, hop: Hop, weight: u32) -> HopView {
        let node = engine.node_name(hop.next);
        let place = hop.index & !POPPED_UNIFORM;
        let (mut next_hop, mut interface, mut table) = (None, None, None);
        match node.as_str() {
            nodes::ip4::LOOKUP_IN_TABLE => table = fib.table_id(Family::Ip4, hop.index),
            nodes::ip6::LOOKUP_IN_TABLE => table = fib.table_id(Family::Ip6, hop.index),
            nodes::mpls::POP_IP4 => table = fib.table_id(Family::Ip4, place),
            nodes::mpls::POP_IP6 => table = fib.table_id(Family::Ip6, place),
            nodes::mpls::LOOKUP_IN_TABLE => table = fib.label_table_id(place),
            name if RECEIVING.contains(&name) => {
                interface = Some(engine.interface_name(InterfaceId(hop.index)));
            }
            name if ADJACENT.contains(&name) => {
                let adjacency = fib.adjacencies().get(hop.index);
                interface = Some(engine.interface_name(adjacency.tx));
                let is_glean = matches!(name, nodes::ip4::GLEAN | nodes::ip6::GLEAN);
                next_hop = (!is_glean).then(|| adjacency.next_hop());
            }
            _ => {}
        }
        HopView { weight, node, index: hop.index, next_hop, interface, table }
    }
}

/// The node and where it leads, without the weight: `ip4-rewrite: adjacency 5, 192.0.2.2 e1`.
impl fmt::Display for HopView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HopView { node, index, .. } = self;
        match (self.next_hop, &self.interface, self.table) {
            (Some(next_hop), Some(interface), _) => {
                write!(f, "{node}: adjacency {index}, {next_hop} {interface}")
            }
            (_, Some(interface), _) if RECEIVING.contains(&node.as_str()) => {
                write!(f, "{node}: on {interface}")
            }
            (_, Some(interface), _) => write!(f, "{node}: neighbours on {interface}"),
            (.., Some(table)) => write!(f, "{node}: table {table}"),
            _ => f.write_str(node),
        }
    }
}

/// Nodes whose packets name an interface that receives them.
const RECEIVING: [&str; 4] = [
    nodes::ip4::INTERFACE_RX,
    nodes::ip6::INTERFACE_RX,
    nodes::mpls::INTERFACE_RX,
    nodes::mpls::FRAME_RX,
];

/// Nodes whose packets name an adjacency.
const ADJACENT: [&str; 19] = [
    nodes::mpls::IMPOSE_IP4,
    nodes::mpls::IMPOSE_IP6,
    nodes::mpls::IMPOSE_ETHERNET,
    nodes::mpls::OUTPUT,
    nodes::mpls::SWAP,
    nodes::mpls::POP,
    nodes::mpls::RESOLVE_NEIGHBOR,
    nodes::mpls::CONFIRM_NEIGHBOR,
    nodes::mpls::ADJACENCY_COUNTER,
    nodes::ip4::ADJACENCY_COUNTER,
    nodes::ip6::ADJACENCY_COUNTER,
    nodes::ip4::CONFIRM_NEIGHBOR,
    nodes::ip6::CONFIRM_NEIGHBOR,
    nodes::ip4::REWRITE,
    nodes::ip6::REWRITE,
    nodes::ip4::ARP,
    nodes::ip6::DISCOVER_NEIGHBOR,
    nodes::ip4::GLEAN,
    nodes::ip6::GLEAN,
];
