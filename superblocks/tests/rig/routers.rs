//! Routers, and what their nodes have done.

use quiver_core::WorkerId;
use quiver_core::control::statistics::NodeTotals;
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

/// How many vectors are sent of how many packets, to see whether they go through in one pass.
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

/// [`ROUNDS`] vectors went through these nodes, all of them in passes of several nodes.
pub fn assert_one_pass(router: &mut Router, nodes: &[&str], what: &str) {
    for node in nodes {
        let totals = totals(router, node);
        let counted = (totals.calls, totals.vectors, totals.fused);
        assert_eq!(counted, (ROUNDS, ROUNDS * PACKETS, ROUNDS), "{what} {node}");
        assert!(totals.clocks > 0, "{what} {node} has its share of the clocks");
    }
}
