//! `mpls-drop`: the label's route says so.

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame};
use quiver_forwarding::mpls::describe;
use quiver_forwarding::nodes;

use crate::reasons::MplsDrop;

struct Drop;

impl Node for Drop {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|_| Err(MplsDrop::RouteDrops));
    }
}

/// The declaration.
pub(crate) fn spec() -> NodeSpec {
    NodeSpec::new(nodes::mpls::DROP, "Drops what no label's route takes", |_| Box::new(Drop))
        .reasons::<MplsDrop>()
        .describe(|record, _| describe(record.bytes()))
}
