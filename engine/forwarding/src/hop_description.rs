//! Where a look-up sent a packet, in words, for traces.

use std::sync::Arc;

use quiver_core::graph::node::Names;
use quiver_core::graph::trace::TraceRecord;

use crate::adjacency::Adjacencies;
use crate::handover::{AdjacencyIndex, ReceivingInterface};
use crate::nodes;
use crate::route_end::RouteEnd;

/// Says what next node and index of a look-up's record mean: `via 10.1.0.2 on e1`.
pub fn describe(adjacencies: &Arc<Adjacencies>, record: &TraceRecord, names: &dyn Names) -> String {
    let next = names.node(record.next);
    let via = || {
        let adjacency = adjacencies.get(record.handed_over::<AdjacencyIndex>().0);
        (adjacency.next_hop(), names.interface(adjacency.tx))
    };
    match next.as_str() {
        nodes::ip4::CONFIRM_NEIGHBOR | nodes::ip6::CONFIRM_NEIGHBOR => {
            let (next_hop, interface) = via();
            format!("via {next_hop} on {interface}, which was not heard from for some time")
        }
        nodes::ip4::REWRITE
        | nodes::ip6::REWRITE
        | nodes::ip4::ADJACENCY_COUNTER
        | nodes::ip6::ADJACENCY_COUNTER => {
            let (next_hop, interface) = via();
            if next_hop.is_unspecified() {
                format!("out of {interface}")
            } else {
                format!("via {next_hop} on {interface}")
            }
        }
        nodes::mpls::IMPOSE_IP4
        | nodes::mpls::IMPOSE_IP6
        | nodes::mpls::IMPOSE_ETHERNET
        | nodes::mpls::OUTPUT
        | nodes::mpls::SWAP
        | nodes::mpls::POP
        | nodes::mpls::CONFIRM_NEIGHBOR
        | nodes::mpls::ADJACENCY_COUNTER => {
            let (next_hop, interface) = via();
            let adjacency = adjacencies.get(record.handed_over::<AdjacencyIndex>().0);
            format!(
                "via {next_hop} on {interface}, {} labels out ({next})",
                adjacency.label_count()
            )
        }
        nodes::ip4::ARP | nodes::ip6::DISCOVER_NEIGHBOR => {
            let (next_hop, interface) = via();
            format!("via {next_hop} on {interface}, whose MAC address is not known")
        }
        nodes::ip4::GLEAN | nodes::ip6::GLEAN => {
            format!("connected on {}, a neighbour not known yet", via().1)
        }
        nodes::ip4::DIRECTED_BROADCAST => format!("to all hosts on {}", via().1),
        nodes::ip4::LOCAL | nodes::ip6::LOCAL => "for the router itself".to_owned(),
        nodes::ip4::PUNT | nodes::ip6::PUNT => "for the host".to_owned(),
        nodes::ip4::DROP | nodes::ip6::DROP => match record.handed_over() {
            RouteEnd::NoRoute => "no route".to_owned(),
            RouteEnd::Unreachable => "the route says unreachable".to_owned(),
            RouteEnd::Prohibited => "the route prohibits it".to_owned(),
            RouteEnd::Dropped | RouteEnd::NotEnabled => "the route drops".to_owned(),
        },
        nodes::ip4::SOURCE_LOOKUP_IN_TABLE | nodes::ip6::SOURCE_LOOKUP_IN_TABLE => {
            "by the route of its source".to_owned()
        }
        nodes::ip4::INTERFACE_RX | nodes::ip6::INTERFACE_RX => {
            let ReceivingInterface(on) = record.handed_over();
            format!("received once more, on {}", names.interface(on))
        }
        nodes::ip4::LOOKUP_IN_TABLE | nodes::ip6::LOOKUP_IN_TABLE => {
            "on to another table".to_owned()
        }
        _ => format!("to {next} with index {}", record.index),
    }
}
