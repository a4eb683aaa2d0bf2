//! Sets that rules ask for: they change while the compiled list stays as it is.

use std::sync::Arc;

use quiver_core::cpu::Variant;

use crate::linear::LANES;
use crate::{BuildError, Classified, Key, Rule};

/// Packets that are searched for in step.
pub(crate) const BATCH: usize = 64;
/// Sets that the rules of a list ask for at most.
pub const SETS_MAX: usize = 256;
/// Sets of a word of marks.
const WORD_SETS: usize = 32;
/// Words of marks at most.
pub(crate) const WORDS_MAX: usize = SETS_MAX / WORD_SETS;

/// A set of packets that changes while workers ask it: those whose source is in some network, for
/// instance. Each answer is one from before or after a change.
pub trait Members<A>: Send + Sync {
    /// Or `bit` into the marks of the packets that are in the set. There are at most 64 keys, and a
    /// mark for each of them.
    fn mark(&self, variant: Variant, keys: &[Key<A>], bit: u32, marks: &mut [u32]);
}

/// In which sets the packets of a batch are: a word of 32 sets for each packet, as many words as
/// the rules need.
#[derive(Clone, Copy)]
pub(crate) struct Marks<'m>(&'m [[u32; BATCH]]);

impl<'m> Marks<'m> {
    /// Of rules that ask for no set.
    pub const fn none() -> Marks<'static> {
        Marks(&[])
    }

    /// Ask all sets about the packets of a batch.
    #[inline(always)]
    pub fn ask<A: Classified>(
        sets: &[Arc<dyn Members<A>>],
        variant: Variant,
        keys: &[Key<A>],
        words: &'m mut [[u32; BATCH]; WORDS_MAX],
    ) -> Marks<'m> {
        let count = keys.len().min(BATCH);
        for (sets, marks) in sets.chunks(WORD_SETS).zip(words.iter_mut()) {
            for (set, number) in sets.iter().zip(0..) {
                set.mark(variant, &keys[..count], 1 << number, &mut marks[..count]);
            }
        }
        let used = sets.len().div_ceil(WORD_SETS).min(WORDS_MAX);
        Marks(&words[..used])
    }
}

/// The sets that blocks of sixteen rules ask for: as many words a block as there are marks.
#[derive(Clone, Default)]
pub(crate) struct Needs {
    words: usize,
    lanes: Vec<[u32; LANES]>,
}

impl Needs {
    /// Of rules that ask for so many sets together.
    pub fn of_sets(sets: usize) -> Needs {
        Needs { words: sets.div_ceil(WORD_SETS), lanes: Vec::new() }
    }

    /// One more block.
    pub fn push<'r>(&mut self, rules: impl Iterator<Item = &'r [u16]>) {
        let first = self.lanes.len();
        self.lanes.resize(first + self.words, [0; LANES]);
        for (lane, sets) in rules.take(LANES).enumerate() {
            for set in sets.iter().map(|set| usize::from(*set)) {
                if let Some(word) = self.lanes.get_mut(first + set / WORD_SETS) {
                    word[lane] |= 1 << (set % WORD_SETS);
                }
            }
        }
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&*self.lanes)
    }

    /// Or the sets that a block's rules ask for and packet `at` of the batch is not in into
    /// `differs`.
    #[inline(always)]
    pub fn differ(&self, block: usize, at: usize, marks: Marks<'_>, differs: &mut [u32; LANES]) {
        let lanes = self.lanes.get(block * self.words..).unwrap_or(&[]);
        for (needs, marks) in lanes.iter().zip(marks.0) {
            let missing = !marks[at % BATCH];
            for (needs, differs) in needs.iter().zip(differs.iter_mut()) {
                *differs |= needs & missing;
            }
        }
    }
}

/// Are there so many sets, and do rules ask for no others?
pub(crate) fn check<A: Classified>(rules: &[Rule<A>], sets: usize) -> Result<(), BuildError> {
    if sets > SETS_MAX {
        return Err(BuildError::TooManySets(sets));
    }
    match rules.iter().flat_map(Rule::requested_sets).find(|set| usize::from(*set) >= sets) {
        Some(set) => Err(BuildError::NoSet(set)),
        None => Ok(()),
    }
}
