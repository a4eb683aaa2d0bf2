//! How the clocks of a superblock are shared out among its nodes.

use crate::counters::WorkerCounters;
use crate::ids::NodeId;
use crate::superblock::STAGES_MAX;

/// One vector in so many goes node by node, so that `show runtime` can say what each node costs.
const ALONE_EVERY: u32 = 64;

/// How the clocks of a pass are shared out among its nodes: as what they cost alone, measured on the
/// vectors that go node by node.
#[derive(Default)]
pub(crate) struct Shares {
    turn: u32,
    is_due: bool,
    /// Clocks and packets of each node alone, when they were last looked at.
    seen: [(u64, u64); STAGES_MAX + 1],
    /// Clocks per packet of each node alone, in 256ths, smoothed.
    costs: [u64; STAGES_MAX + 1],
    /// Parts of 2^32: without the output, and with it.
    parts: [[u32; STAGES_MAX + 1]; 2],
    output: Option<NodeId>,
}

impl Shares {
    /// All alike, until there is something to go by.
    pub(crate) fn new() -> Shares {
        Shares { is_due: true, ..Shares::default() }
    }

    pub(crate) fn is_time_to_run_alone(&mut self) -> bool {
        self.turn = (self.turn + 1) % ALONE_EVERY;
        self.is_due |= self.turn == 0;
        self.turn == 0
    }

    pub(crate) fn of(&self, with_output: bool) -> [u32; STAGES_MAX + 1] {
        self.parts[usize::from(with_output)]
    }

    pub(crate) fn refresh(&mut self, counters: &WorkerCounters, nodes: &[NodeId], output: Option<NodeId>) {
        if !std::mem::take(&mut self.is_due) {
            return;
        }
        if output.is_some() && output != self.output {
            self.output = output;
            self.seen[nodes.len()] = (0, 0);
        }
        for (place, node) in nodes.iter().copied().chain(self.output).enumerate() {
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
        self.parts = [parts(&self.costs, count), parts(&self.costs, count + 1)];
    }
}

/// The first `count` costs as parts of their sum; alike when there are none.
fn parts(costs: &[u64; STAGES_MAX + 1], count: usize) -> [u32; STAGES_MAX + 1] {
    let sum: u64 = costs[..count].iter().sum();
    let mut parts = [0; STAGES_MAX + 1];
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
        let costs = [100, 300, 0, 0, 0, 0, 0, 0, 0];
        let parts = parts(&costs, 2);
        assert_eq!(parts[0], 1 << 30);
        assert_eq!(parts[1], 3 << 30);
    }
}
