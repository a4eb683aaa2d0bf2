//! `ip-done`: packets that the router itself has dealt with end here, and are no drops.

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame};
use quiver_forwarding::nodes;

struct Done;

impl Node for Done {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        for packet in frame.drain() {
            cx.buffers.free(packet);
        }
    }
}

pub(crate) fn done() -> NodeSpec {
    NodeSpec::new(nodes::IP_DONE, "Frees packets that the router itself has dealt with", |_| {
        Box::new(Done)
    })
}
