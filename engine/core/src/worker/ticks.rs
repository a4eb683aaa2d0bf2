//! Which nodes of a worker have something to do at a time, without a packet: protocols whose timers
//! must not wait for the control thread.

use crate::cpu::clocks;
use crate::graph::context::{Context, WorkerContext};
use crate::ids::{InterfaceId, NodeId};
use crate::worker::{Worker, context};

/// Nodes of one worker that wait for a time at once.
pub const TICKING_NODES_MAX: usize = 16;

/// The nodes that wait, and until when.
#[derive(Debug)]
pub(crate) struct Ticks {
    waiting: [(NodeId, u64); TICKING_NODES_MAX],
    count: usize,
    /// The first of the times; `u64::MAX` when no node waits.
    first_ns: u64,
}

impl Default for Ticks {
    fn default() -> Ticks {
        Ticks { waiting: [(NodeId(0), u64::MAX); TICKING_NODES_MAX], count: 0, first_ns: u64::MAX }
    }
}

impl Ticks {
    /// Is it time for a node?
    #[inline(always)]
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.first_ns
    }

    /// How long until then.
    pub fn wait_ns(&self, now_ns: u64) -> u64 {
        self.first_ns.saturating_sub(now_ns)
    }

    /// Let a node wait until `due_ns`, or less if it does already; false without a place for it.
    pub fn set(&mut self, node: NodeId, due_ns: u64) -> bool {
        let waiting = &mut self.waiting[..self.count];
        if let Some((_, at)) = waiting.iter_mut().find(|(known, _)| *known == node) {
            *at = due_ns.min(*at);
        } else if let Some(place) = self.waiting.get_mut(self.count) {
            *place = (node, due_ns);
            self.count += 1;
        } else {
            return false;
        }
        self.first_ns = self.first_ns.min(due_ns);
        true
    }

    /// Take a node out whose time is come.
    pub fn take_due(&mut self, now_ns: u64) -> Option<NodeId> {
        let place = self.waiting[..self.count].iter().position(|(_, at)| *at <= now_ns)?;
        let (node, _) = self.waiting[place];
        self.count -= 1;
        self.waiting[place] = self.waiting[self.count];
        let left = self.waiting[..self.count].iter();
        self.first_ns = left.map(|(_, at)| *at).min().unwrap_or(u64::MAX);
        Some(node)
    }
}

impl Worker {
    /// Have the nodes whose time is come do what is due.
    #[cold]
    pub(super) fn run_ticks(&mut self, now_ns: u64) {
        for _ in 0..TICKING_NODES_MAX {
            let Some(id) = self.ticks.take_due(now_ns) else { break };
            let Some(mut installed) = self.nodes.get_mut(id.index()).and_then(Option::take) else {
                continue; // removed since
            };
            let start = clocks();
            self.shared.counters.enters(id);
            let next = installed.work.node().and_then(|n| n.tick(&mut context!(self, id, now_ns)));
            self.nodes[id.index()] = Some(installed);
            if let Some(due_ns) = next {
                self.ticks.set(id, due_ns.max(now_ns + 1)); // not in this pass again
            }
            let row = self.shared.counters.node(id);
            row.calls.add(1);
            row.clocks.add(clocks() - start);
            self.run_graph(now_ns);
        }
    }

    /// Have [`Node::tick`] of a node called at `due_ns`, unless it is called earlier anyway. The
    /// worker has [`TICKING_NODES_MAX`] such nodes at most; another is
    /// not called, and this returns false.
    pub fn tick_at(&mut self, id: NodeId, due_ns: u64) -> bool {
        self.ticks.set(id, due_ns)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_due_at_the_earliest_of_their_times_and_once() {
        let mut ticks = Ticks::default();
        assert!(!ticks.is_due(u64::MAX - 1));
        assert!(
            ticks.set(NodeId(7), 300) && ticks.set(NodeId(8), 200) && ticks.set(NodeId(7), 400)
        );
        assert_eq!((ticks.wait_ns(150), ticks.is_due(199), ticks.is_due(200)), (50, false, true));
        assert_eq!((ticks.take_due(200), ticks.take_due(200)), (Some(NodeId(8)), None));
        assert_eq!((ticks.take_due(299), ticks.take_due(300)), (None, Some(NodeId(7))));
        assert!(!ticks.is_due(u64::MAX - 1));
    }

    #[test]
    fn a_node_without_a_place_is_refused_and_those_that_wait_stay() {
        let mut ticks = Ticks::default();
        assert!((0..TICKING_NODES_MAX as u16).all(|node| ticks.set(NodeId(node), 10)));
        assert!(!ticks.set(NodeId(99), 5) && !ticks.is_due(9));
        assert!(ticks.set(NodeId(3), 5) && ticks.is_due(5));
    }
}
