//! The superblocks that begin at a node of one worker's graph, and which of them a vector takes.

use crate::context::Context;
use crate::counters::WorkerCounters;
use crate::frame::Frame;
use crate::ids::NodeId;
use crate::shares::Shares;

use super::{Declined, Exit, Ids, Passed, STAGES_MAX, Superblock};

/// Superblocks that begin at one node, as a set of bits.
type Set = u128;

/// Superblocks that can begin at one node.
const CHAINS_MAX: usize = Set::BITS as usize;

/// The superblocks that begin at a node.
pub(crate) struct Chains {
    fused: Vec<Fused>,
    /// Those that take the same step as this one from the stage at a place.
    alike: Vec<[Set; STAGES_MAX]>,
    /// The one that most packets took last.
    likely: usize,
}

impl Chains {
    /// Of these.
    pub fn new(fused: Vec<Fused>) -> Chains {
        assert!(fused.len() <= CHAINS_MAX, "{} superblocks begin at one node", fused.len());
        let with = |chain: &Fused, place| {
            let like = fused.iter().enumerate().filter(|(_, other)| other.steps_like(chain, place));
            like.fold(0, |set, (at, _)| set | 1 << at)
        };
        let alike = fused.iter().map(|chain| std::array::from_fn(|place| with(chain, place))).collect();
        Chains { fused, alike, likely: 0 }
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.fused.is_empty()
    }

    /// Run the vector through the superblock that takes it, if one does: the one that took the last first. What one of
    /// them finds in the way is not asked again.
    pub fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<(usize, Passed)> {
        let mut left = Set::MAX.checked_shr((CHAINS_MAX - self.fused.len()) as u32).unwrap_or(0);
        let mut chain = self.likely;
        while left != 0 {
            let Fused { block, shares, .. } = &mut self.fused[chain];
            match block.run(cx, frame, shares) {
                Ok(passed) => return Some((chain, passed)),
                Err(Declined::OtherWay(place)) => left &= !(self.alike[chain][place] | 1 << chain),
                Err(Declined::NodeByNode) => return None,
            }
            chain = left.trailing_zeros() as usize;
        }
        None
    }

    /// The vector that went through this chain took so many clocks: count for each node what it would have counted
    /// alone. The packets' own way is tried first next time, if there is a chain for it.
    pub fn account(&mut self, chain: usize, passed: &Passed, counters: &WorkerCounters, clocks: u64) {
        self.fused[chain].account(counters, passed, clocks);
        let this = &self.fused[chain];
        let own = |exit| self.fused.iter().position(|other| other.takes_up(this, exit));
        self.likely = passed.mostly_left.and_then(own).unwrap_or(chain);
    }
}

/// A superblock as it stands in the graph of one worker.
pub(crate) struct Fused {
    block: Box<dyn Superblock>,
    ids: Ids,
    stages: usize,
    shares: Shares,
}

impl Fused {
    pub(super) fn new(block: Box<dyn Superblock>, ids: Ids, stages: usize) -> Fused {
        Fused { block, ids, stages, shares: Shares::new() }
    }

    /// Are its stages those of `other` up to this place, and the one behind?
    fn steps_like(&self, other: &Fused, place: usize) -> bool {
        let steps = |of: &Fused| of.ids[..of.stages].get(..=place + 1).map(<[NodeId]>::to_vec);
        steps(self).is_some_and(|own| steps(other) == Some(own))
    }

    /// Is it a way for packets that left `other` so?
    fn takes_up(&self, other: &Fused, exit: Exit) -> bool {
        let own = &self.ids[..self.stages];
        own.get(..=exit.place) == other.ids.get(..=exit.place) && own.get(exit.place + 1) == Some(&exit.next)
    }

    /// Count for each node what it would have counted alone.
    fn account(&mut self, counters: &WorkerCounters, passed: &Passed, clocks: u64) {
        let outputs = &passed.outputs;
        self.shares.refresh(counters, &self.ids[..self.stages], outputs);
        let last = passed.arrived[self.stages - 1];
        let stages = self.ids[..self.stages].iter().copied().zip(passed.arrived);
        for ((node, arrived), share) in
            stages.chain(outputs.iter().flatten().map(|node| (*node, last))).zip(self.shares.of(outputs))
        {
            if arrived == 0 {
                continue; // it would not have been called
            }
            let row = counters.node(node);
            let taken = ((u128::from(clocks) * u128::from(*share)) >> 32) as u64;
            row.calls.add(1);
            row.fused.add(1);
            row.vectors.add(u64::from(arrived));
            row.clocks.add(taken);
            row.note_longest(taken, u64::from(arrived));
        }
    }
}
