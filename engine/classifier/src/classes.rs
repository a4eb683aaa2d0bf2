//! In which sets of tuples or rules the addresses of packets are: a prefix match for each side, and
//! the sets by the numbers that it answers.

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_tables::GroupId;
use quiver_tables::lpm::LpmSpace;
use quiver_tables::memory::{MemoryError, Reserved};

use crate::compare::{Compare, SetLine};
use crate::intervals::Intervals;
use crate::sets::BATCH;
use crate::{Classified, Key};

/// The table of source prefixes; table 0 would have a big root at once.
pub(crate) const SOURCES: u32 = 1;
/// The table of destination prefixes.
pub(crate) const DESTINATIONS: u32 = 2;

/// Sets of tuples or rules, by the numbers that the prefix match answers: lines of eight words, as
/// many for each set.
pub(crate) struct ClassBits {
    lines_of_set: usize,
    lines: Reserved<SetLine>,
}

impl ClassBits {
    /// Lines of a set.
    #[inline(always)]
    pub fn lines_of_set(&self) -> usize {
        self.lines_of_set
    }

    /// A line of a set; another one where there is none.
    #[inline(always)]
    pub fn line(&self, number: u32, line: usize) -> &SetLine {
        self.lines.get(number as usize * self.lines_of_set + line)
    }

    pub fn bytes(&self) -> usize {
        size_of_val(self.lines.as_slice())
    }
}

/// The same while they are made.
pub(crate) struct ClassBitsInMaking {
    lines_of_set: usize,
    lines: Vec<SetLine>,
}

impl ClassBitsInMaking {
    /// One set, the empty one, of sets with so many words.
    pub fn new(words: usize) -> ClassBitsInMaking {
        let lines_of_set = words.div_ceil(LINE_WORDS).max(1);
        ClassBitsInMaking { lines_of_set, lines: vec![SetLine([0; LINE_WORDS]); lines_of_set] }
    }

    pub fn push(&mut self, set: &[u64]) -> u32 {
        let number = (self.lines.len() / self.lines_of_set) as u32;
        for words in set.chunks(LINE_WORDS) {
            let mut line = SetLine([0; LINE_WORDS]);
            line.0[..words.len()].copy_from_slice(words);
            self.lines.push(line);
        }
        number
    }

    /// The lines of a set.
    fn set(&self, number: usize) -> &[SetLine] {
        self.lines.get(number * self.lines_of_set..).unwrap_or_default()
    }

    /// The words of a set.
    pub fn get(&self, number: u32) -> impl Iterator<Item = u64> {
        self.set(number as usize).iter().take(self.lines_of_set).flat_map(|line| line.0)
    }

    /// Members of the largest set.
    pub fn most(&self) -> usize {
        self.lines.chunks(self.lines_of_set).map(members).max().unwrap_or(0)
    }

    /// Members that a set of these and one of `others` have in common at most. The search ends when
    /// there are more than `limit`.
    pub fn most_in_common(&self, others: &ClassBitsInMaking, limit: usize) -> usize {
        let sized = |bits: &ClassBitsInMaking| -> Vec<(usize, usize)> {
            let sets = bits.lines.chunks(bits.lines_of_set).enumerate();
            let mut sized: Vec<_> = sets.map(|(at, set)| (members(set), at)).collect();
            sized.sort_unstable_by(|one, next| next.cmp(one));
            sized
        };
        let (ours, theirs, mut most) = (sized(self), sized(others), 0);
        for (size, one) in &ours {
            if *size <= most || most > limit {
                break;
            }
            for (size, other) in &theirs {
                if *size <= most {
                    break;
                }
                let lines = self.set(*one).iter().zip(others.set(*other)).take(self.lines_of_set);
                let words = lines.flat_map(|(one, other)| one.0.into_iter().zip(other.0));
                most = most.max(words.map(|(a, b)| (a & b).count_ones() as usize).sum());
            }
        }
        most
    }

    /// As workers read them.
    pub fn finish(&self) -> Result<ClassBits, MemoryError> {
        let lines = Reserved::copy_of("sets of rules", &self.lines)?;
        Ok(ClassBits { lines_of_set: self.lines_of_set, lines })
    }
}

/// Members of a set.
fn members(set: &[SetLine]) -> usize {
    set.iter().flat_map(|line| line.0).map(|word| word.count_ones() as usize).sum()
}

/// Words of a line.
pub(crate) const LINE_WORDS: usize = 8;

/// The sets of both sides' addresses.
pub(crate) enum Matching<A: Classified> {
    /// Of IPv4, source and destination.
    Intervals([Intervals; 2]),
    /// Tables [`SOURCES`] and [`DESTINATIONS`].
    Prefixes(Arc<LpmSpace<A>>),
}

impl<A: Classified> Matching<A> {
    /// The numbers of the sets of a batch, of each side.
    #[inline(always)]
    pub fn find(
        &self,
        variant: Variant,
        compare: impl Compare,
        keys: &[Key<A>],
        classes: &mut [[u32; BATCH]; 2],
    ) {
        let count = keys.len().min(BATCH);
        let [sources, destinations] = classes;
        match self {
            Matching::Intervals([source, destination]) => {
                source.find(compare, &batch(keys, |key| key.source.top()), sources, count);
                let addresses = batch(keys, |key| key.destination.top());
                destination.find(compare, &addresses, destinations, count);
            }
            Matching::Prefixes(lpm) => {
                let find = |table, classes: &mut [u32; BATCH], addresses: [A; BATCH]| {
                    let mut groups = [GroupId(0); BATCH];
                    let (addresses, groups) = (&addresses[..count], &mut groups[..count]);
                    lpm.table(table).lookup_slice(variant, addresses, groups);
                    classes.iter_mut().zip(groups).for_each(|(class, group)| *class = group.0);
                };
                find(SOURCES, sources, batch(keys, |key| key.source));
                find(DESTINATIONS, destinations, batch(keys, |key| key.destination));
            }
        }
    }
}

/// Something of each key of a batch.
#[inline(always)]
fn batch<A: Classified, T: Copy + Default>(
    keys: &[Key<A>],
    of: impl Fn(&Key<A>) -> T,
) -> [T; BATCH] {
    let mut batch = [T::default(); BATCH];
    batch.iter_mut().zip(keys).for_each(|(one, key)| *one = of(key));
    batch
}
