//! IPv4: the nodes that every packet passes.

pub mod input;
pub mod rewrite;

use quiver_core::graph::node::Wiring;
use quiver_wire::{Header, Ip4Header};

use crate::nodes;

/// The nodes that a route can lead to.
pub const ROUTE_TARGETS: [&str; 13] = [
    nodes::ip4::REWRITE,
    nodes::ip4::CONFIRM_NEIGHBOR,
    nodes::ip4::ADJACENCY_COUNTER,
    nodes::ip4::LOCAL,
    nodes::ip4::ARP,
    nodes::ip4::GLEAN,
    nodes::ip4::DIRECTED_BROADCAST,
    nodes::ip4::DROP,
    nodes::ip4::PUNT,
    nodes::ip4::LOOKUP_IN_TABLE,
    nodes::ip4::SOURCE_LOOKUP_IN_TABLE,
    nodes::ip4::INTERFACE_RX,
    nodes::ip6::LOOKUP_IN_TABLE,
];

/// Edges to all nodes that a route can lead to, for `show graph`.
pub fn wire_route_targets(wiring: &Wiring<'_>) {
    for name in ROUTE_TARGETS {
        wiring.node(name);
    }
}

/// A packet in words: `10.0.0.1 → 10.1.0.2 udp, ttl 64, 100 bytes`.
pub fn describe(bytes: &[u8]) -> String {
    let Some(header) = Ip4Header::overlay(bytes) else {
        return format!("{} bytes that are no IPv4 packet", bytes.len());
    };
    let fragment = if header.is_fragment() { " fragment" } else { "" };
    format!(
        "{} → {} {}{fragment}, ttl {}, {} bytes",
        header.source(),
        header.destination(),
        header.protocol(),
        header.ttl(),
        header.total_length()
    )
}
