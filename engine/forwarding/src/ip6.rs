//! IPv6: the nodes that every packet passes.

pub mod input;
pub mod link_local;
pub mod rewrite;

use quiver_core::graph::node::Wiring;
use quiver_wire::{Header, Ip6Header};

/// The nodes that a route can lead to.
pub const ROUTE_TARGETS: [&str; 13] = [
    "ip6-rewrite",
    "ip6-confirm-neighbor",
    "ip6-adjacency-counter",
    "ip6-local",
    "ip6-discover-neighbor",
    "ip6-glean",
    "ip6-drop",
    "ip6-punt",
    "ip6-link-local",
    "ip6-lookup-in-table",
    "ip6-source-lookup-in-table",
    "ip6-interface-rx",
    "ip4-lookup-in-table",
];

/// Edges to all nodes that a route can lead to, for `show graph`.
pub fn wire_route_targets(wiring: &Wiring<'_>) {
    for name in ROUTE_TARGETS {
        wiring.node(name);
    }
}

/// A packet in words: `2001:db8::1 → 2001:db8:1::2 udp, hop limit 64, 100 bytes`.
pub fn describe(bytes: &[u8]) -> String {
    let Some(header) = Ip6Header::overlay(bytes) else {
        return format!("{} bytes that are no IPv6 packet", bytes.len());
    };
    format!(
        "{} → {} {}, hop limit {}, {} bytes",
        header.source(),
        header.destination(),
        header.next_header(),
        header.hop_limit(),
        usize::from(header.payload_length()) + Ip6Header::LEN
    )
}
