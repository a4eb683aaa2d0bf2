//! IPv6.

pub(crate) mod advertisement;
pub(crate) mod discovery;
pub(crate) mod drop;
pub(crate) mod echo;
pub(crate) mod fragment;
pub(crate) mod hop_by_hop;
pub(crate) mod icmp_error;
pub(crate) mod icmp_input;
pub(crate) mod input;
pub(crate) mod link_local;
pub(crate) mod local;
pub(crate) mod lookup;
pub(crate) mod lookup_in_table;
pub(crate) mod rewrite;
pub(crate) mod solicitation;
pub(crate) mod upper;

use quiver_core::graph::node::Wiring;
use quiver_wire::{Header, Ip6Header};

/// The nodes that a route can lead to.
pub(crate) const ROUTE_TARGETS: [&str; 13] = [
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

/// Hop limit of packets that the router makes.
pub(crate) const HOP_LIMIT: u8 = 64;

/// Edges to all nodes that a route can lead to, for `show graph`.
pub(crate) fn wire_route_targets(wiring: &Wiring<'_>) {
    for name in ROUTE_TARGETS {
        wiring.node(name);
    }
}

/// A packet in words: `2001:db8::1 → 2001:db8:1::2 udp, hop limit 64, 100 bytes`.
pub(crate) fn words(bytes: &[u8]) -> String {
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
