//! Routing while packets are sampled, or counted by flow.

use crate::paths::{Packets, Path, Work, path};

/// The route of all packets.
const ROUTE: &str = "ip route add 20.0.0.0/8 via 10.1.0.2 bench1";

/// All of them.
pub fn all() -> Vec<Path> {
    // One of 16 M packets: the cost of those that are not sampled.
    let idle = [ROUTE, "sflow sampling-rate 16777216", "sflow enable-disable bench0"];
    let idle = path("ip4-sflow-idle", Work::Ip4, Packets::Ip4Flows { count: 1 }, &idle, None);
    let flows = [("64k", 64_000), ("1m", 1_000_000)].map(|(name, count)| recorded(name, count));
    [idle].into_iter().chain(flows).collect()
}

/// So many flows, each with an entry in the table.
fn recorded(name: &str, count: u32) -> Path {
    let table = format!("flowprobe table max-entries {}", 2 * count);
    let setup = [ROUTE, &table, "flowprobe feature add-del bench0 ip4"];
    path(&format!("ip4-flowprobe-{name}"), Work::Ip4, Packets::Ip4Flows { count }, &setup, None)
}
