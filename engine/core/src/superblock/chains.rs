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

/// Interfaces whose likely superblocks are told apart; of more, some share one.
const WAYS: usize = 64;

/// The superblocks that begin at a node.
pub(crate) struct Chains {
    fused: Vec<Fused>,
    /// Those that take the same step as this one from the stage at a place.
    alike: Vec<[Set; STAGES_MAX]>,
    /// The one that most packets of an interface took last: what comes from one side differs from what comes from the
    /// other.
    likely: [u8; WAYS],
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
        Chains { fused, alike, likely: [0; WAYS] }
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.fused.is_empty()
    }

    /// Run the vector through the superblock that takes it, if one does: the one that took the last of its interface
    /// first. What one of them finds in the way is not asked again.
    pub fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<(Taken, Passed)> {
        let mut left = Set::MAX.checked_shr((CHAINS_MAX - self.fused.len()) as u32).unwrap_or(0);
        let way = frame.packets().first()?.rx.index() % WAYS;
        let mut chain = usize::from(self.likely[way]);
        while left != 0 {
            let Fused { block, shares, .. } = &mut self.fused[chain];
            match block.run(cx, frame, shares) {
                Ok(passed) => return Some((Taken { chain, way }, passed)),
                Err(Declined::OtherWay(place)) => left &= !(self.alike[chain][place] | 1 << chain),
                Err(Declined::NodeByNode) => return None,
            }
            chain = left.trailing_zeros() as usize;
        }
        None
    }

    /// The vector that was taken so took so many clocks: count for each node what it would have counted alone. The
    /// packets' own way is tried first next time, if there is a superblock for it.
    pub fn account(&mut self, taken: Taken, passed: &Passed, counters: &WorkerCounters, clocks: u64) {
        let Taken { chain, way } = taken;
        self.fused[chain].account(counters, passed, clocks);
        let this = &self.fused[chain];
        let own = |exit| self.fused.iter().position(|other| other.takes_up(this, exit));
        self.likely[way] = passed.mostly_left.and_then(own).unwrap_or(chain) as u8;
    }
}

/// Which superblock took a vector, and by which side it came.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    chain: usize,
    way: usize,
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

    /// Its stages up to the one at this place, and the one behind.
    fn steps(&self, place: usize) -> Option<&[NodeId]> {
        self.ids[..self.stages].get(..=place + 1)
    }

    /// Does it take the same step as `other` from the stage at this place?
    fn steps_like(&self, other: &Fused, place: usize) -> bool {
        self.steps(place).is_some() && self.steps(place) == other.steps(place)
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
