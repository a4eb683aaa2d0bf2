//! Routers, and what their nodes have done.

use quiver_core::WorkerId;
use quiver_core::statistics::NodeTotals;
use quiver_testkit::{Register, Router, Settings};

/// What is built into routers with segments and bridges.
pub const WITH_SEGMENTS: [Register; 6] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_bridge::register,
    quiver_srv6::register,
    quiver_superblocks::register,
];

/// How many vectors are sent of how many packets, to see whether a superblock takes them.
pub const ROUNDS: u64 = 128;
pub const PACKETS: u64 = 200;

/// A router with these ports, which has been told these lines.
pub fn router(settings: Settings, features: &[Register], ports: &[&str], lines: &[&str]) -> Router {
    let mut router = Router::with(settings, features);
    for port in ports {
        router.interface(port);
    }
    lines.iter().for_each(|line| drop(router.cli(line)));
    router
}

/// The address of a port.
pub fn mac(router: &mut Router, port: &str) -> [u8; 6] {
    let id = router.id(port);
    router.engine().interface(id).expect("made above").row().mac
}

/// What a node has done.
pub fn totals(router: &mut Router, node: &str) -> NodeTotals {
    let engine = router.engine();
    engine.node_totals(WorkerId(0), engine.node_id(node).expect("built in"))
}

/// So many of them go node by node at most, until the chain is found.
const ALONE_MAX: u64 = 13;

/// [`ROUNDS`] vectors went through these nodes, and nearly all of them through a superblock.
pub fn assert_taken(router: &mut Router, nodes: &[&str], what: &str) {
    for node in nodes {
        let totals = totals(router, node);
        assert_eq!((totals.calls, totals.vectors), (ROUNDS, ROUNDS * PACKETS), "{what} {node}");
        let alone = ROUNDS - totals.fused;
        assert!((1..=ALONE_MAX).contains(&alone), "{what} {node}: {}", totals.fused);
        assert!(totals.clocks > 0, "{what} {node} has its share of the clocks");
    }
}
