//! Many rules: pruned tuple space search.
//!
//! Two prefix matches say in which pairs of prefix lengths ("tuples") a packet's addresses have
//! prefixes of rules. The sets are intersected. In each tuple that is left, in the order of their
//! best rules, the pair of masked addresses is looked for in a hash table, until no tuple can have
//! a better rule.

use quiver_core::cpu::{Variant, prefetch};

use crate::changes::Gone;
use crate::classes::{ClassBits, Matching};
use crate::compare::{self, Compare, Comparing};
use crate::entries::{Entry, Pair, Pairs, Rules, Upper};
use crate::linear::LANES;
use crate::sets::{BATCH, Marks};
use crate::{Classified, Key, NONE};

/// A pair of prefix lengths.
pub(crate) struct Tuple<A> {
    pub lengths: (u8, u8),
    pub masks: [A; 2],
    /// The number of its best rule.
    pub best: u32,
}

/// All of a compiled list.
pub(crate) struct Tuples<A: Classified> {
    pub matching: Matching<A>,
    pub source: ClassBits,
    pub destination: ClassBits,
    pub words: usize,
    pub tuples: Box<[Tuple<A>]>,
    pub pairs: Pairs<A>,
}

impl<A: Classified> Tuples<A> {
    /// The first rules that the packets of a batch match, of which there are at most 64.
    #[inline]
    pub fn find(
        &self,
        variant: Variant,
        gone: impl Gone,
        keys: &[Key<A>],
        marks: Marks<'_>,
        found: &mut [u32],
    ) {
        let count = keys.len().min(found.len()).min(BATCH);
        let (keys, found) = (&keys[..count], &mut found[..count]);
        let classes = [[0; BATCH]; 2];
        compare::run(variant, Batch { tuples: self, variant, gone, classes, keys, marks, found });
    }

    /// The better of `best` and the first rule of an entry that takes packet `at` of the batch.
    #[inline(always)]
    fn better(
        &self,
        gone: impl Gone,
        entry: &Entry<A>,
        key: &Key<A>,
        (at, marks): (usize, Marks<'_>),
        best: u32,
    ) -> u32 {
        let upper = entry.upper();
        match entry.rules() {
            Rules::One => {
                let takes = upper.takes(key) && !gone.has(upper.number);
                best.min(if takes { upper.number } else { NONE })
            }
            Rules::Few => {
                let few = self.pairs.few.get(upper.number as usize..).unwrap_or(&[]);
                let takes = |upper: &&Upper| upper.takes(key) && !gone.has(upper.number);
                let takes = few.iter().take(upper.value as usize).find(takes);
                best.min(takes.map_or(NONE, |upper| upper.number))
            }
            Rules::Many => {
                let begin = upper.number as usize;
                let many = self.pairs.many.get(begin..).unwrap_or(&[]);
                for (block, lanes) in (begin..).zip(many.iter().take(upper.value as usize)) {
                    let mut differs = [0; LANES];
                    lanes.differ(key, &mut differs);
                    self.pairs.needs.differ(block, at, marks, &mut differs);
                    let first = lanes.first_except(gone, &mut differs);
                    if first != NONE {
                        return best.min(first);
                    }
                }
                best
            }
        }
    }
}

/// The loop over the keys of a batch.
struct Batch<'f, A: Classified, G> {
    tuples: &'f Tuples<A>,
    variant: Variant,
    gone: G,
    classes: [[u32; BATCH]; 2],
    keys: &'f [Key<A>],
    marks: Marks<'f>,
    found: &'f mut [u32],
}

/// A packet whose search is under way.
#[derive(Clone, Copy)]
struct Lane {
    /// Tuples of the present word that are left.
    left: u64,
    /// Which word.
    word: u32,
    /// Its place among the keys.
    key: u8,
}

impl<A: Classified, G> Batch<'_, A, G> {
    /// The next tuple of a packet that may have a better rule.
    #[inline(always)]
    fn next(&self, lane: &mut Lane) -> Option<u16> {
        let key = usize::from(lane.key);
        while lane.left == 0 {
            lane.word += 1;
            if lane.word as usize >= self.tuples.words {
                return None;
            }
            lane.left = self.word(key, lane.word as usize);
        }
        let number = lane.word * 64 + lane.left.trailing_zeros();
        lane.left &= lane.left - 1;
        let best = self.tuples.tuples.get(number as usize)?.best;
        (best < self.found[key]).then_some(number as u16)
    }

    #[inline(always)]
    fn word(&self, key: usize, word: usize) -> u64 {
        let [source, destination] = &self.classes;
        self.tuples.source.word(source[key % BATCH], word)
            & self.tuples.destination.word(destination[key % BATCH], word)
    }
}

impl<A: Classified, G: Gone> Comparing for Batch<'_, A, G> {
    #[inline(always)]
    fn run(mut self, compare: impl Compare) {
        self.tuples.matching.find(self.variant, compare, self.keys, &mut self.classes);
        let none = Lane { left: 0, word: 0, key: 0 };
        let mut lanes = [none; BATCH];
        let mut count = 0;
        for key in 0..self.found.len().min(self.keys.len()).min(BATCH) {
            self.found[key] = NONE;
            let left = self.word(key, 0);
            lanes[count] = Lane { left, word: 0, key: key as u8 };
            count += usize::from((left != 0) | (self.tuples.words > 1));
        }
        let pairs = &self.tuples.pairs;
        let nowhere = Pair { tuple: 0, source: A::ZERO, destination: A::ZERO };
        let mut wanted = [(nowhere, 0u32); BATCH];
        while count > 0 {
            let mut going = 0;
            for at in 0..count {
                let mut lane = lanes[at];
                let Some(tuple) = self.next(&mut lane) else { continue };
                let key = &self.keys[usize::from(lane.key)];
                let masks = self.tuples.tuples[usize::from(tuple)].masks;
                let pair = Pair {
                    tuple,
                    source: key.source & masks[0],
                    destination: key.destination & masks[1],
                };
                let place = pairs.place(&pair);
                prefetch(pairs.bucket(place));
                (wanted[going], lanes[going]) = ((pair, place), lane);
                going += 1;
            }
            count = going;
            for (lane, (pair, place)) in lanes[..count].iter().zip(&wanted) {
                let Some(entry) = pairs.find(*place, pair) else { continue };
                let key = usize::from(lane.key);
                let packet = (key, self.marks);
                let best = self.found[key];
                self.found[key] =
                    self.tuples.better(self.gone, entry, &self.keys[key], packet, best);
            }
        }
    }
}
