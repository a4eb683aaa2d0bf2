//! Where a look-up sent a packet, in words, for traces.

use std::sync::Arc;

use quiver_core::graph::node::Names;
use quiver_core::graph::trace::TraceRecord;

use crate::adjacency::Adjacencies;
use crate::handover::{AdjacencyIndex, ReceivingInterface};
use crate::route_end::RouteEnd;

/// Says what next node and index of a look-up's record mean: `via 10.1.0.2 on e1`.
pub fn describe(adjacencies: &Arc<Adjacencies>, record: &TraceRecord, names: &dyn Names) -> String {
    let next = names.node(record.next);
    let via = || {
        let adjacency = adjacencies.get(record.handed_over::<AdjacencyIndex>().0);
        (adjacency.next_hop(), names.interface(adjacency.tx))
    };
    match next.as_str() {
        "ip4-confirm-neighbor" | "ip6-confirm-neighbor" => {
            let (next_hop, interface) = via();
            format!("via {next_hop} on {interface}, which was not heard from for some time")
        }
        "ip4-rewrite" | "ip6-rewrite" | "ip4-adjacency-counter" | "ip6-adjacency-counter" => {
            let (next_hop, interface) = via();
            if next_hop.is_unspecified() {
                format!("out of {interface}")
            } else {
                format!("via {next_hop} on {interface}")
            }
        }
        "ip4-arp" | "ip6-discover-neighbor" => {
            let (next_hop, interface) = via();
            format!("via {next_hop} on {interface}, whose MAC address is not known")
        }
        "ip4-glean" | "ip6-glean" => format!("connected on {}, a neighbour not known yet", via().1),
        "ip4-directed-broadcast" => format!("to all hosts on {}", via().1),
        "ip4-local" | "ip6-local" => "for the router itself".to_owned(),
        "ip4-punt" | "ip6-punt" => "for the host".to_owned(),
        "ip4-drop" | "ip6-drop" => match record.handed_over() {
            RouteEnd::NoRoute => "no route".to_owned(),
            RouteEnd::Unreachable => "the route says unreachable".to_owned(),
            RouteEnd::Prohibited => "the route prohibits it".to_owned(),
            RouteEnd::Dropped | RouteEnd::NotEnabled => "the route drops".to_owned(),
        },
        "ip4-source-lookup-in-table" | "ip6-source-lookup-in-table" => {
            "by the route of its source".to_owned()
        }
        "ip4-interface-rx" | "ip6-interface-rx" => {
            let ReceivingInterface(on) = record.handed_over();
            format!("received once more, on {}", names.interface(on))
        }
        "ip4-lookup-in-table" | "ip6-lookup-in-table" => "on to another table".to_owned(),
        _ => format!("to {next} with index {}", record.index),
    }
}
