//! `flowprobe-clock`: turns the clock hand of a worker's flows. No packet comes here.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quiver_core::graph::node::{DROP, Never, Node, NodeSpec};
use quiver_core::{Context, Frame};
use quiver_sessions::TURN_NS;

use crate::probe::{FlowEvent, MILLISECOND_NS};
use crate::shared::Shared;

/// The name of the node.
pub(crate) const CLOCK: &str = "flowprobe-clock";

pub(crate) struct Clock {
    shared: Arc<Shared>,
}

impl Clock {
    /// Begin to turn.
    pub fn start(&mut self, cx: &mut Context<'_>) {
        let due_ns = cx.now_ns + TURN_NS;
        cx.tick_at(due_ns);
    }
}

impl Node for Clock {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|_| Ok::<_, Never>(DROP));
    }

    fn as_any(&mut self) -> Option<&mut dyn std::any::Any> {
        Some(self)
    }

    fn tick(&mut self, cx: &mut Context<'_>) -> Option<u64> {
        let worker = self.shared.worker(cx.worker)?;
        let Ok(mut flows) = worker.flows.try_lock() else {
            return Some(cx.now_ns + TURN_NS);
        };
        let flows = flows.as_mut()?;
        flows.turn(cx.now_ns / MILLISECOND_NS, &self.shared.timers());
        worker.live.store(flows.writer.len() as u64, Ordering::Relaxed);
        Some(cx.now_ns + TURN_NS)
    }
}

pub(crate) fn spec(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    NodeSpec::new(CLOCK, "Exports flow records whose time is over", move |_| {
        Box::new(Clock { shared: shared.clone() })
    })
    .reasons::<FlowEvent>()
}
