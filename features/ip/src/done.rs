//! `ip-done`: packets that the router itself has dealt with end here, and are no drops. And
//! `ip4-punt`, `ip6-punt`: packets that are the host's to deal with.

use quiver_core::node::{Node, NodeSpec};
use quiver_core::{Context, Frame};

struct Done;

impl Node for Done {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        for packet in frame.drain() {
            cx.buffers.free(packet);
        }
    }
}

quiver_core::reasons! {
    /// What `ip4-punt` and `ip6-punt` count.
    pub enum Punt {
        /// For the host.
        Punted = info "punted", "packets for the host: nothing is connected that takes them";
    }
}

struct Punting;

impl Node for Punting {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        cx.count(Punt::Punted, frame.len() as u64);
        for packet in frame.drain() {
            cx.interface_counters(packet.rx).punts.add(1);
            cx.buffers.free(packet);
        }
    }
}

pub(crate) fn done() -> NodeSpec {
    NodeSpec::new("ip-done", "Frees packets that the router itself has dealt with", |_| Box::new(Done))
}

pub(crate) fn punt(name: &str) -> NodeSpec {
    NodeSpec::new(name, "Counts packets that are for the host", |_| Box::new(Punting)).reasons::<Punt>()
}
