//! IPv6: the nodes that every packet passes.

pub mod input;
pub mod link_local;
pub mod rewrite;

use quiver_core::graph::node::Wiring;
use quiver_wire::{Header, Ip6Header};

use crate::nodes;

/// The nodes that a route can lead to.
pub const ROUTE_TARGETS: [&str; 13] = [
    nodes::ip6::REWRITE,
    nodes::ip6::CONFIRM_NEIGHBOR,
    nodes::ip6::ADJACENCY_COUNTER,
    nodes::ip6::LOCAL,
    nodes::ip6::DISCOVER_NEIGHBOR,
    nodes::ip6::GLEAN,
    nodes::ip6::DROP,
    nodes::ip6::PUNT,
    nodes::ip6::LINK_LOCAL,
    nodes::ip6::LOOKUP_IN_TABLE,
    nodes::ip6::SOURCE_LOOKUP_IN_TABLE,
    nodes::ip6::INTERFACE_RX,
    nodes::ip4::LOOKUP_IN_TABLE,
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
