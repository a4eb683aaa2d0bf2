//! IPv4.

pub(crate) mod directed_broadcast;
pub(crate) mod drop;
pub(crate) mod echo;
pub(crate) mod fragment;
pub(crate) mod icmp_error;
pub(crate) mod icmp_input;
pub(crate) mod input;
pub(crate) mod local;
pub(crate) mod lookup;
pub(crate) mod lookup_in_table;
pub(crate) mod rewrite;
pub(crate) mod too_big;

use quiver_core::graph::node::Wiring;
use quiver_wire::checksum::{self, Sum};
use quiver_wire::{Header, Ip4Header};

/// The nodes that a route can lead to.
pub(crate) const ROUTE_TARGETS: [&str; 13] = [
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

/// TTL of packets that the router makes.
pub(crate) const TTL: u8 = 64;

/// Edges to all nodes that a route can lead to, for `show graph`.
pub(crate) fn wire_route_targets(wiring: &Wiring<'_>) {
    for name in ROUTE_TARGETS {
        wiring.node(name);
    }
}

/// A packet in words: `10.0.0.1 → 10.1.0.2 udp, ttl 64, 100 bytes`.
pub(crate) fn words(bytes: &[u8]) -> String {
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

/// Give the header at the start of `bytes` the checksum that it should have, options included.
pub(crate) fn fill_checksum(bytes: &mut [u8]) {
    let Some(header) = Ip4Header::overlay_mut(bytes) else { return };
    let length = header.header_len();
    if length == Ip4Header::LEN {
        let sum = checksum::header_checksum(header);
        return header.set_checksum(sum);
    }
    header.set_checksum(0);
    let sum = Sum::new().bytes(bytes.get(..length).unwrap_or_default()).checksum();
    if let Some(header) = Ip4Header::overlay_mut(bytes) {
        header.set_checksum(sum);
    }
}
