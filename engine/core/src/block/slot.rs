//! A kernel as it stands in the graph of one worker, and what the driver has learned about it.

use crate::ids::{InterfaceId, NodeId};
use crate::worker::{Installed, Work};

use super::costs::{Cost, Turns};
use super::kernel::{Ahead, Facts, Kernel};
use super::pair::Pair;

/// Interfaces that are told apart; of more, some share what was learned.
const SIDES: usize = 64;
/// No pair is likely.
const NO_PAIR: u8 = u8::MAX;

/// A kernel, the pairs that begin with it, and its part of the pass that runs.
pub(crate) struct KernelSlot {
    pub(super) kernel: Box<dyn Kernel>,
    pub(super) facts: Facts,
    pairs: Vec<Pair>,
    /// The pair that most packets of an interface took last.
    likely: [u8; SIDES],
    /// Interfaces whose packets came to a kernel that reads their second line.
    behind: u64,
    pub(super) turns: Turns,
    pub(super) cost: Cost,
    /// The place of the node in the list of a pass, and that pass.
    pub(super) place: usize,
    pub(super) pass: u64,
    /// The pass in which packets wait for the node in the graph.
    pub(super) awaited: u64,
}

impl KernelSlot {
    pub fn new(kernel: Box<dyn Kernel>, pairs: Vec<Pair>) -> KernelSlot {
        KernelSlot {
            facts: kernel.facts(),
            kernel,
            pairs,
            likely: [0; SIDES],
            behind: 0,
            turns: Turns::default(),
            cost: Cost::default(),
            place: 0,
            pass: 0,
            awaited: 0,
        }
    }

    /// The pair that is likely for packets of an interface, and its second node.
    #[inline(always)]
    pub(super) fn likely_pair(&mut self, rx: InterfaceId) -> Option<&mut Pair> {
        self.pairs.get_mut(usize::from(self.likely[rx.index() % SIDES]))
    }

    /// Are there pairs?
    #[inline(always)]
    pub(super) fn has_pairs(&self) -> bool {
        !self.pairs.is_empty()
    }

    /// Most packets of an interface go to this node from here.
    #[cold]
    pub(super) fn learn_pair(&mut self, rx: InterfaceId, next: NodeId) {
        let pair = self.pairs.iter().position(|pair| pair.second == next);
        self.likely[rx.index() % SIDES] = pair.map_or(NO_PAIR, |pair| pair as u8);
    }

    /// Which lines of packets of an interface are asked for in front of the kernel.
    #[inline(always)]
    pub(super) fn ahead(&self, rx: InterfaceId) -> Ahead {
        match self.facts.looks_first || self.facts.looks_at_none {
            true if self.looks_behind(rx) => Ahead::Both,
            true => Ahead::First,
            false => Ahead::Nothing,
        }
    }

    /// Did packets of this interface come to a kernel that reads their second line?
    #[inline(always)]
    fn looks_behind(&self, rx: InterfaceId) -> bool {
        self.behind >> (rx.index() % SIDES) & 1 != 0
    }

    /// They did, or did not.
    #[inline(always)]
    pub(super) fn learn_behind(&mut self, rx: InterfaceId, looks_behind: bool) {
        let bit = 1 << (rx.index() % SIDES);
        self.behind = if looks_behind { self.behind | bit } else { self.behind & !bit };
    }
}

/// The nodes of a worker's graph.
pub(super) struct Nodes<'a>(pub &'a mut [Option<Box<Installed>>]);

impl Nodes<'_> {
    /// The node's kernel, and what is known of it.
    #[inline(always)]
    pub fn slot(&mut self, id: NodeId) -> Option<&mut KernelSlot> {
        match &mut self.0.get_mut(id.index())?.as_deref_mut()?.work {
            Work::Kernel(slot) => Some(slot),
            Work::Node(_) => None,
        }
    }
}
