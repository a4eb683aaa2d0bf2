//! IPv4: the nodes that every packet passes.

pub mod input;
pub mod rewrite;

use quiver_core::graph::node::Wiring;
use quiver_wire::{Header, Ip4Header};

/// The nodes that a route can lead to.
pub const ROUTE_TARGETS: [&str; 13] = [
    "ip4-rewrite",
    "ip4-confirm-neighbor",
    "ip4-adjacency-counter",
    "ip4-local",
    "ip4-arp",
    "ip4-glean",
    "ip4-directed-broadcast",
    "ip4-drop",
    "ip4-punt",
    "ip4-lookup-in-table",
    "ip4-source-lookup-in-table",
    "ip4-interface-rx",
    "ip6-lookup-in-table",
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
