//! How the clocks of a superblock are shared out among its nodes.

use crate::counters::WorkerCounters;
use crate::frame::Frame;
use crate::ids::NodeId;
use crate::superblock::{Declined, OUTPUTS_MAX, STAGES_MAX};

/// One vector in so many goes node by node, so that `show runtime` can say what each node costs.
const ALONE_EVERY: u32 = 64;

/// Nodes whose work a superblock does, at most.
const NODES: usize = STAGES_MAX + OUTPUTS_MAX;

/// The outputs whose work a superblock does too: none, an interface's, or a sub-interface's and its parent's.
pub(crate) type Outputs = [Option<NodeId>; OUTPUTS_MAX];

/// How the clocks of a pass are shared out among its nodes: as what they cost alone, measured on the
/// vectors that go node by node.
#[derive(Default)]
pub(crate) struct Shares {
    turn: u32,
    is_due: bool,
    /// Clocks and packets of each node alone, when they were last looked at.
    seen: [(u64, u64); NODES],
    /// Clocks per packet of each node alone, in 256ths, smoothed.
    costs: [u64; NODES],
    /// Parts of 2^32, by the number of outputs.
    parts: [[u32; NODES]; OUTPUTS_MAX + 1],
    outputs: Outputs,
}

impl Shares {
    /// All alike, until there is something to go by.
    pub(crate) fn new() -> Shares {
        Shares { is_due: true, ..Shares::default() }
    }

    /// A vector is about to be taken; it goes node by node instead when it is time to see what they cost.
    pub(crate) fn take_turn(&mut self, frame: &mut Frame) -> Result<(), Declined> {
        self.turn = (self.turn + 1) % ALONE_EVERY;
        self.is_due |= self.turn == 0;
        frame.alone = self.turn == 0;
        if frame.alone { Err(Declined::NodeByNode) } else { Ok(()) }
    }

    pub(crate) fn of(&self, outputs: &Outputs) -> &[u32; NODES] {
        &self.parts[outputs.iter().flatten().count() % self.parts.len()]
    }

    pub(crate) fn refresh(&mut self, counters: &WorkerCounters, nodes: &[NodeId], outputs: &Outputs) {
        if !std::mem::take(&mut self.is_due) {
            return;
        }
        for (place, output) in outputs.iter().enumerate().filter(|(_, output)| output.is_some()) {
            if self.outputs[place] != *output {
                self.outputs[place] = *output;
                self.seen[nodes.len() + place] = (0, 0);
            }
        }
        for (place, node) in nodes.iter().copied().chain(self.outputs.into_iter().flatten()).enumerate() {
            let row = counters.node(node);
            let now = (row.alone_clocks.get(), row.alone_vectors.get());
            let before = std::mem::replace(&mut self.seen[place], now);
            let cost = ((now.0 - before.0) << 8).checked_div(now.1 - before.1);
            let Some(cost) = cost.filter(|_| before.1 > 0 || self.costs[place] == 0) else { continue };
            let old = self.costs[place];
            // A vector during which the core was taken away must not count for much.
            self.costs[place] = if old == 0 { cost } else { (old * 7 + cost.min(old * 4)) / 8 };
        }
        let count = nodes.len();
        self.parts = std::array::from_fn(|outputs| parts(&self.costs, count + outputs));
    }
}

/// The first `count` costs as parts of their sum; alike when there are none.
fn parts(costs: &[u64; NODES], count: usize) -> [u32; NODES] {
    let sum: u64 = costs[..count].iter().sum();
    let mut parts = [0; NODES];
    for (part, cost) in parts.iter_mut().zip(costs).take(count) {
        let share = (cost << 32).checked_div(sum).unwrap_or((1 << 32) / count as u64);
        *part = share.min(u64::from(u32::MAX)) as u32;
    }
    parts
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_shared_out_by_cost_and_none_is_lost() {
        let mut costs = [0; NODES];
        costs[..2].copy_from_slice(&[100, 300]);
        let parts = parts(&costs, 2);
        assert_eq!(parts[0], 1 << 30);
        assert_eq!(parts[1], 3 << 30);
    }
}
