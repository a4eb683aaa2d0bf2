//! Up to a thousand rules: the set of the rules that a packet's source is in, and that of its
//! destination, are intersected. The rules that are left differ in ports and fields only; they are
//! compared in order.

use quiver_core::cpu::{Variant, prefetch};

use crate::changes::Gone;
use crate::classes::{ClassBits, LINE_WORDS, Matching};
use crate::compare::{self, Compare, Comparing};
use crate::sets::BATCH;
use crate::upper::{PacketUpper, Upper};
use crate::{Classified, Key, NONE};

/// Rules of a list at most: two cache lines a set, and as many sets as prefixes.
pub(crate) const RULES_MAX: usize = 1024;
/// Rules whose addresses one packet can match at most; with more of them, sixteen at a time are
/// faster.
pub(crate) const CANDIDATES_MAX: usize = 32;

/// All of a compiled list.
pub(crate) struct Bitmaps<A: Classified> {
    pub matching: Matching<A>,
    pub source: ClassBits,
    pub destination: ClassBits,
    /// By the bit of a rule.
    pub uppers: Box<[Upper]>,
}

impl<A: Classified> Bitmaps<A> {
    /// The first rules that the packets of a batch match, of which there are at most 64.
    #[inline]
    pub fn find(&self, variant: Variant, gone: impl Gone, keys: &[Key<A>], found: &mut [u32]) {
        let count = keys.len().min(found.len()).min(BATCH);
        let (keys, found) = (&keys[..count], &mut found[..count]);
        compare::run(variant, Batch { bitmaps: self, variant, gone, keys, found });
    }

    /// The first rule of those in both sets that takes a packet.
    #[inline(always)]
    fn first(&self, compare: impl Compare, gone: impl Gone, sets: (u32, u32), key: &Key<A>) -> u32 {
        let packet = PacketUpper::of(key);
        for line in 0..self.source.lines_of_set() {
            let (one, other) =
                (self.source.line(sets.0, line), self.destination.line(sets.1, line));
            let mut words = compare.meet(one, other);
            while words != 0 {
                let word = words.trailing_zeros() as usize % LINE_WORDS;
                words &= words - 1;
                let mut left = one.0[word] & other.0[word];
                while left != 0 {
                    let bit = (line * LINE_WORDS + word) * 64 + left.trailing_zeros() as usize;
                    left &= left - 1;
                    if let Some(upper) = self.uppers.get(bit)
                        && upper.takes(&packet)
                        && !gone.has(upper.number)
                    {
                        return upper.number;
                    }
                }
            }
        }
        NONE
    }
}

/// The loop over the keys of a batch.
struct Batch<'f, A: Classified, G> {
    bitmaps: &'f Bitmaps<A>,
    variant: Variant,
    gone: G,
    keys: &'f [Key<A>],
    found: &'f mut [u32],
}

impl<A: Classified, G: Gone> Comparing for Batch<'_, A, G> {
    #[inline(always)]
    fn run(self, compare: impl Compare) {
        let Batch { bitmaps, variant, gone, keys, found } = self;
        let mut classes = [[0; BATCH]; 2];
        bitmaps.matching.find(variant, compare, keys, &mut classes);
        let [sources, destinations] = &classes;
        for (source, destination) in sources.iter().zip(destinations).take(keys.len()) {
            for line in 0..bitmaps.source.lines_of_set() {
                prefetch(bitmaps.source.line(*source, line));
                prefetch(bitmaps.destination.line(*destination, line));
            }
        }
        let sets = sources.iter().copied().zip(destinations.iter().copied());
        for ((key, found), sets) in keys.iter().zip(found).zip(sets) {
            *found = bitmaps.first(compare, gone, sets, key);
        }
    }
}
