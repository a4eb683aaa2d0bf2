//! What is still to be done for the packets of a block.

use crate::block::Mask;
use crate::ids::{InterfaceId, NodeId};

/// Groups of packets that wait for their kernels at most.
const STEPS_MAX: usize = 6;

/// Packets that have come to a node.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub node: NodeId,
    pub live: Mask,
    /// The interface by which all of them came in; `None` when that must be looked at.
    pub rx: Option<InterfaceId>,
}

/// First in, first out; packets that come to a node which others wait for join them.
pub(super) struct WorkList {
    steps: [Step; STEPS_MAX],
    begin: usize,
    count: usize,
}

impl WorkList {
    pub fn new() -> WorkList {
        let nothing = Step { node: NodeId(0), live: 0, rx: None };
        WorkList { steps: [nothing; STEPS_MAX], begin: 0, count: 0 }
    }

    #[inline(always)]
    pub fn len(&self) -> usize {
        self.count
    }

    /// The next step.
    #[inline(always)]
    pub fn take(&mut self) -> Option<Step> {
        self.count = self.count.checked_sub(1)?;
        let step = self.steps[self.begin % STEPS_MAX];
        self.begin += 1;
        Some(step)
    }

    /// Add a step; false when there is no room.
    pub fn add(&mut self, step: Step) -> bool {
        for at in self.begin..self.begin + self.count {
            let waiting = &mut self.steps[at % STEPS_MAX];
            if waiting.node == step.node {
                waiting.live |= step.live;
                waiting.rx = waiting.rx.filter(|_| waiting.rx == step.rx);
                return true;
            }
        }
        if self.count == STEPS_MAX {
            return false;
        }
        self.steps[(self.begin + self.count) % STEPS_MAX] = step;
        self.count += 1;
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn step(node: u16, live: Mask, rx: u32) -> Step {
        Step { node: NodeId(node), live, rx: Some(InterfaceId(rx)) }
    }

    #[test]
    fn packets_for_one_node_are_put_together_and_nodes_come_in_order() {
        let mut work = WorkList::new();
        assert!(work.add(step(9, 7, 1)));
        assert_eq!(work.take().map(|step| step.live), Some(7));
        let all = [step(1, 1, 1), step(2, 2, 1), step(1, 4, 1), step(2, 8, 2)];
        assert!(all.into_iter().all(|step| work.add(step)));
        let taken: Vec<_> = std::iter::from_fn(|| work.take()).collect();
        let taken: Vec<_> = taken.iter().map(|step| (step.node.0, step.live, step.rx)).collect();
        assert_eq!(taken, [(1, 5, Some(InterfaceId(1))), (2, 10, None)]);
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let mut work = WorkList::new();
        let added = (1..20).filter(|node| work.add(step(*node, 1 << node, 1))).count();
        assert_eq!(added, STEPS_MAX);
    }
}
