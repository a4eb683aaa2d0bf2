//! Many rules: pruned tuple space search.
//!
//! Two prefix matches say in which pairs of prefix lengths ("tuples") a packet's addresses have
//! prefixes of rules. The sets are intersected. In each tuple that is left, in the order of their
//! best rules, the pair of masked addresses is looked for in a hash table, until no tuple can have
//! a better rule.

use std::sync::Arc;

use quiver_core::cpu::{Variant, prefetch};
use quiver_tables::GroupId;
use quiver_tables::lpm::LpmSpace;

use crate::compare::{self, Compare, Comparing, Words};
use crate::entries::{Entry, Pair, Pairs, Rules};
use crate::intervals::Intervals;
use crate::linear::LANES;
use crate::sets::{BATCH, Marks};
use crate::{Classified, Key, NONE};

/// The table of source prefixes; table 0 would have a big root at once.
pub(crate) const SOURCES: u32 = 1;
/// The table of destination prefixes.
pub(crate) const DESTINATIONS: u32 = 2;

/// A pair of prefix lengths.
pub(crate) struct Tuple<A> {
    pub lengths: (u8, u8),
    pub masks: [A; 2],
    /// The number of its best rule.
    pub best: u32,
}

/// Sets of tuples, by the numbers that the prefix match answers: lines of eight words, the same
/// number of them for each set.
pub(crate) struct ClassBits {
    lines_of_set: usize,
    lines: Vec<Words>,
}

impl ClassBits {
    /// One set, the empty one, of sets with so many words.
    pub fn new(words: usize) -> ClassBits {
        let lines_of_set = words.div_ceil(LINE_WORDS).max(1);
        ClassBits { lines_of_set, lines: vec![Words([0; LINE_WORDS]); lines_of_set] }
    }

    pub fn push(&mut self, set: &[u64]) -> u32 {
        let number = (self.lines.len() / self.lines_of_set) as u32;
        for words in set.chunks(LINE_WORDS) {
            let mut line = Words([0; LINE_WORDS]);
            line.0[..words.len()].copy_from_slice(words);
            self.lines.push(line);
        }
        number
    }

    /// The words of a set.
    pub fn get(&self, number: u32) -> impl Iterator<Item = u64> {
        let first = number as usize * self.lines_of_set;
        let lines = self.lines.iter().skip(first).take(self.lines_of_set);
        lines.flat_map(|line| line.0)
    }

    /// A line of a set.
    #[inline(always)]
    fn line(&self, number: u32, line: usize) -> &Words {
        const EMPTY: Words = Words([0; LINE_WORDS]);
        self.lines.get(number as usize * self.lines_of_set + line).unwrap_or(&EMPTY)
    }

    #[inline(always)]
    fn word(&self, number: u32, word: usize) -> u64 {
        self.line(number, word / LINE_WORDS).0[word % LINE_WORDS]
    }

    /// Tuples in the largest set.
    pub fn most(&self) -> usize {
        let bits = |words: &Words| words.0.iter().map(|word| word.count_ones()).sum::<u32>();
        let sets = self.lines.chunks(self.lines_of_set);
        sets.map(|set| set.iter().map(bits).sum::<u32>() as usize).max().unwrap_or(0)
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&*self.lines)
    }
}

/// Words of a line.
const LINE_WORDS: usize = 8;
/// Words whose emptiness a lane knows at once.
const GROUP_WORDS: usize = 64;

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
    fn find(
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
    pub fn find(&self, variant: Variant, keys: &[Key<A>], marks: Marks<'_>, found: &mut [u32]) {
        let count = keys.len().min(found.len()).min(BATCH);
        let (keys, found) = (&keys[..count], &mut found[..count]);
        let classes = [[0; BATCH]; 2];
        compare::run(variant, Batch { tuples: self, variant, classes, keys, marks, found });
    }

    /// The better of `best` and the first rule of an entry that takes packet `at` of the batch.
    #[inline(always)]
    fn better(
        &self,
        entry: &Entry<A>,
        key: &Key<A>,
        (at, marks): (usize, Marks<'_>),
        best: u32,
    ) -> u32 {
        let upper = entry.upper();
        match entry.rules() {
            Rules::One => best.min(if upper.takes(key) { upper.number } else { NONE }),
            Rules::Few => {
                let few = self.pairs.few.get(upper.number as usize..).unwrap_or(&[]);
                let takes = few.iter().take(upper.value as usize).find(|upper| upper.takes(key));
                best.min(takes.map_or(NONE, |upper| upper.number))
            }
            Rules::Many => {
                let begin = upper.number as usize;
                let many = self.pairs.many.get(begin..).unwrap_or(&[]);
                for (block, lanes) in (begin..).zip(many.iter().take(upper.value as usize)) {
                    let mut differs = [0; LANES];
                    lanes.differ(key, &mut differs);
                    self.pairs.needs.differ(block, at, marks, &mut differs);
                    let first = lanes.first(&differs);
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
struct Batch<'f, A: Classified> {
    tuples: &'f Tuples<A>,
    variant: Variant,
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
    /// Words behind it that are not empty, among those of the group.
    words: u64,
    /// The present word, and the first one of the group.
    word: u16,
    group: u16,
    /// Its place among the keys.
    key: u8,
}

impl<A: Classified> Batch<'_, A> {
    /// Go on to the next word that has tuples; false where there is none.
    #[inline(always)]
    fn refill(&self, compare: impl Compare, lane: &mut Lane) -> bool {
        while lane.words == 0 {
            lane.group += GROUP_WORDS as u16;
            if usize::from(lane.group) >= self.tuples.words {
                return false;
            }
            lane.words = self.occupied(compare, lane.key.into(), lane.group.into());
        }
        self.enter(lane);
        true
    }

    /// Take the first of a lane's words.
    #[inline(always)]
    fn enter(&self, lane: &mut Lane) {
        let first = lane.words.trailing_zeros() as u16 % GROUP_WORDS as u16;
        lane.word = lane.group + first;
        lane.words &= lane.words.wrapping_sub(1);
        lane.left = self.word(lane.key.into(), lane.word.into());
    }

    /// The next tuple of each of the first `count` lanes. Lanes without one that may have a better
    /// rule are dropped; how many stay.
    #[inline(always)]
    fn advance(
        &self,
        compare: impl Compare,
        lanes: &mut [Lane; BATCH],
        numbers: &mut [u16; BATCH],
        count: usize,
    ) -> usize {
        let mut going = 0;
        for at in 0..count.min(BATCH) {
            let mut lane = lanes[at];
            if lane.left == 0 && !self.refill(compare, &mut lane) {
                continue;
            }
            let number = usize::from(lane.word) * 64 + lane.left.trailing_zeros() as usize;
            lane.left &= lane.left.wrapping_sub(1);
            let best = self.tuples.tuples.get(number).map_or(NONE, |tuple| tuple.best);
            (lanes[going], numbers[going]) = (lane, number as u16);
            going += usize::from(best < self.found[usize::from(lane.key)]);
        }
        going
    }

    /// The words of a group that have tuples of a packet, a bit each.
    #[inline(always)]
    fn occupied(&self, compare: impl Compare, key: usize, group: usize) -> u64 {
        let [source, destination] = [0, 1].map(|side| self.classes[side][key % BATCH]);
        let lines = self.tuples.source.lines_of_set;
        let mut occupied = 0;
        for (line, place) in (group / LINE_WORDS..lines).zip(0..GROUP_WORDS / LINE_WORDS) {
            let one = self.tuples.source.line(source, line);
            let meets = compare.meet(one, self.tuples.destination.line(destination, line));
            occupied |= u64::from(meets) << (place * LINE_WORDS);
        }
        occupied
    }

    #[inline(always)]
    fn word(&self, key: usize, word: usize) -> u64 {
        let [source, destination] = &self.classes;
        self.tuples.source.word(source[key % BATCH], word)
            & self.tuples.destination.word(destination[key % BATCH], word)
    }
}

impl<A: Classified> Comparing for Batch<'_, A> {
    #[inline(always)]
    fn run(mut self, compare: impl Compare) {
        self.tuples.matching.find(self.variant, compare, self.keys, &mut self.classes);
        let count = self.keys.len().min(self.found.len()).min(BATCH);
        let [sources, destinations] = &self.classes;
        for (source, destination) in sources.iter().zip(destinations).take(count) {
            prefetch(self.tuples.source.line(*source, 0));
            prefetch(self.tuples.destination.line(*destination, 0));
        }
        let none = Lane { left: 0, words: 0, word: 0, group: 0, key: 0 };
        let (mut lanes, mut going) = ([none; BATCH], 0);
        let is_one_group = self.tuples.words <= GROUP_WORDS;
        for key in 0..count {
            self.found[key] = NONE;
            let words = self.occupied(compare, key, 0);
            let mut lane = Lane { words, key: key as u8, ..none };
            self.enter(&mut lane);
            lanes[going % BATCH] = lane;
            going += usize::from((lane.left != 0) | !is_one_group);
        }
        self.search(compare, &mut lanes, going);
    }
}

impl<A: Classified> Batch<'_, A> {
    /// Search one tuple after the other for each of the first so many lanes. What decides how a
    /// single packet goes on chooses values, not branches: it cannot be predicted.
    #[inline(always)]
    fn search(&mut self, compare: impl Compare, lanes: &mut [Lane; BATCH], mut count: usize) {
        let pairs = &self.tuples.pairs;
        let nowhere = Pair { tuple: 0, source: A::ZERO, destination: A::ZERO };
        let (mut wanted, mut numbers) = ([(nowhere, 0u32); BATCH], [0u16; BATCH]);
        let mut listed = [(pairs.entry(0), 0u8); BATCH];
        loop {
            count = self.advance(compare, lanes, &mut numbers, count);
            if count == 0 {
                return;
            }
            for at in 0..count.min(BATCH) {
                let (key, tuple) = (&self.keys[usize::from(lanes[at].key)], numbers[at]);
                let masks = self.tuples.tuples[usize::from(tuple)].masks;
                let pair = Pair {
                    tuple,
                    source: key.source & masks[0],
                    destination: key.destination & masks[1],
                };
                let place = pairs.place(&pair);
                prefetch(pairs.bucket(place));
                wanted[at] = (pair, place);
            }
            let mut lists = 0;
            for (lane, (pair, place)) in lanes[..count].iter().zip(&wanted) {
                let (entry, is_it) = pairs.find(*place, pair);
                let (at, upper) = (usize::from(lane.key), entry.upper());
                let is_one = entry.rules() == Rules::One;
                let takes = is_it & is_one & upper.takes(&self.keys[at]);
                self.found[at] = self.found[at].min(if takes { upper.number } else { NONE });
                listed[lists % BATCH] = (entry, lane.key);
                lists += usize::from(is_it & !is_one);
            }
            for (entry, key) in &listed[..lists] {
                let at = usize::from(*key);
                let packet = (at, self.marks);
                self.found[at] = self.tuples.better(entry, &self.keys[at], packet, self.found[at]);
            }
        }
    }
}
