//! Many rules: pruned tuple space search.
//!
//! Two prefix matches say in which pairs of prefix lengths ("tuples") a packet's addresses have
//! prefixes of rules. The sets are intersected. In each tuple that is left, in the order of their
//! best rules, the pair of masked addresses is looked for in a hash table, until no tuple can have
//! a better rule.

use quiver_core::cpu::Variant;

use crate::changes::Gone;
use crate::classes::{ClassBits, LINE_WORDS, Matching};
use crate::compare::{self, Compare, Comparing, SetLine};
use crate::entries::{Entry, Pair, Pairs, Wanted, kind};
use crate::linear::LANES;
use crate::sets::{BATCH, Marks};
use crate::upper::PacketUpper;
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
        compare::run(variant, Batch { tuples: self, variant, gone, keys, marks, found });
    }

    /// The first rule of an entry that takes packet `at` of the batch.
    #[inline(always)]
    fn first(
        &self,
        compare: impl Compare,
        gone: impl Gone,
        entry: &Entry<A>,
        key: &Key<A>,
        (at, marks): (usize, Marks<'_>),
    ) -> u32 {
        let upper = entry.upper();
        if entry.kind() & kind::ONE != 0 {
            let takes = upper.takes(&PacketUpper::of(key)) && !gone.has(upper.number);
            return if takes { upper.number } else { NONE };
        }
        if entry.kind() & kind::FEW != 0 {
            return compare.first(gone, self.pairs.few(upper), key);
        }
        let begin = upper.number as usize;
        let many = self.pairs.many.get(begin..).unwrap_or(&[]);
        for (block, lanes) in (begin..).zip(many.iter().take(upper.value as usize)) {
            let mut differs = [0; LANES];
            lanes.differ(key, &mut differs);
            self.pairs.needs.differ(block, at, marks, &mut differs);
            let first = lanes.first_except(gone, &mut differs);
            if first != NONE {
                return first;
            }
        }
        NONE
    }
}

/// The loop over the keys of a batch.
struct Batch<'f, A: Classified, G> {
    tuples: &'f Tuples<A>,
    variant: Variant,
    gone: G,
    keys: &'f [Key<A>],
    marks: Marks<'f>,
    found: &'f mut [u32],
}

impl<A: Classified, G: Gone> Comparing for Batch<'_, A, G> {
    #[inline(always)]
    fn run(self, compare: impl Compare) {
        let Batch { tuples, variant, gone, keys, marks, found } = self;
        let count = keys.len().min(found.len()).min(BATCH);
        let mut classes = [[0; BATCH]; 2];
        tuples.matching.find(variant, compare, keys, &mut classes);
        let nowhere = Pair { tuple: 0, source: A::ZERO, destination: A::ZERO };
        let nothing = Probe { wanted: Wanted::new(&Key::default(), nowhere), bucket: 0, key: 0 };
        let mut search = Search {
            tuples,
            keys,
            best: [NONE; BATCH],
            left: [SetLine([0; LINE_WORDS]); BATCH],
            words: [0; BATCH],
            going: Places::new(),
            probes: [nothing; BATCH],
        };
        for line in 0..tuples.source.lines_of_set() {
            search.begin(compare, &classes, count, line);
            let mut at_once = 1;
            while !search.going.is_empty() {
                let probes = match at_once {
                    1 => search.ask_ahead::<1>(line),
                    _ => search.ask_ahead::<AT_ONCE>(line),
                };
                search.compare(compare, gone, marks, probes);
                search.prune(line);
                at_once = if search.going.len() * AT_ONCE <= BATCH { AT_ONCE } else { 1 };
            }
        }
        found[..count].copy_from_slice(&search.best[..count]);
    }
}

/// Tuples of a packet that are searched at once, where few packets are left.
const AT_ONCE: usize = 4;

/// Places in a batch, in order.
#[derive(Clone, Copy)]
struct Places {
    places: [u8; BATCH],
    count: usize,
}

impl Places {
    fn new() -> Places {
        Places { places: [0; BATCH], count: 0 }
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.count.min(BATCH)
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline(always)]
    fn get(&self, at: usize) -> usize {
        usize::from(self.places[at % BATCH]) % BATCH
    }

    /// Add a place, if it is one of those, without a branch.
    #[inline(always)]
    fn push_if(&mut self, place: usize, is_one: u32) {
        self.places[self.count % BATCH] = place as u8;
        self.count += is_one as usize & 1;
    }
}

/// A search for a packet in a tuple.
#[derive(Clone, Copy)]
struct Probe<A: Classified> {
    wanted: Wanted<A>,
    /// The place of the first bucket.
    bucket: u32,
    /// The packet's place in the batch.
    key: u8,
}

/// A batch whose search is under way, in a line of the sets of tuples.
struct Search<'f, A: Classified> {
    tuples: &'f Tuples<A>,
    keys: &'f [Key<A>],
    /// The best rules found so far.
    best: [u32; BATCH],
    /// The tuples of the line that are left.
    left: [SetLine; BATCH],
    /// The words of them that are not 0.
    words: [u8; BATCH],
    /// The packets with a tuple left that may have a better rule.
    going: Places,
    probes: [Probe<A>; BATCH],
}

impl<A: Classified> Search<'_, A> {
    /// Begin with a line of the sets.
    #[inline(always)]
    fn begin(
        &mut self,
        compare: impl Compare,
        [sources, destinations]: &[[u32; BATCH]; 2],
        count: usize,
        line: usize,
    ) {
        let Tuples { source, destination, .. } = self.tuples;
        self.going.count = 0;
        for key in 0..count {
            let (source, destination) =
                (source.line(sources[key], line), destination.line(destinations[key], line));
            (self.left[key], self.words[key]) = compare.intersect(source, destination);
            self.going.push_if(key, u32::from(self.words[key] != 0));
        }
        if line > 0 {
            self.prune(line);
        }
    }

    /// The first tuple of a packet that is left: its word in the line, and its number; a wrong one
    /// where there is none.
    #[inline(always)]
    fn next(&self, key: usize, line: usize) -> (usize, usize) {
        let word = self.words[key].trailing_zeros() as usize % LINE_WORDS;
        let bit = self.left[key].0[word].trailing_zeros() as usize % 64;
        (word, (line * LINE_WORDS + word) * 64 + bit)
    }

    /// Go on with the packets whose next tuple may have a better rule.
    #[inline(always)]
    fn prune(&mut self, line: usize) {
        let mut going = Places::new();
        for at in 0..self.going.len() {
            let key = self.going.get(at);
            let (_, number) = self.next(key, line);
            let Some(tuple) = self.tuples.tuples.get(number) else { continue };
            going.push_if(key, u32::from((self.words[key] != 0) & (tuple.best < self.best[key])));
        }
        self.going = going;
    }

    /// Ask for the buckets of the next tuples of the packets; how many.
    #[inline(always)]
    fn ask_ahead<const TUPLES: usize>(&mut self, line: usize) -> usize {
        let mut count = 0;
        for at in 0..self.going.len() {
            let key = self.going.get(at);
            let packet = &self.keys[key];
            for _ in 0..TUPLES {
                let (word, number) = self.next(key, line);
                let is_left = self.words[key] != 0;
                let left = &mut self.left[key].0[word];
                *left &= left.wrapping_sub(1);
                self.words[key] &= !(u8::from(*left == 0) << word);
                let Some(tuple) = self.tuples.tuples.get(number) else { continue };
                let pair = Pair {
                    tuple: number as u16,
                    source: packet.source & tuple.masks[0],
                    destination: packet.destination & tuple.masks[1],
                };
                let bucket = self.tuples.pairs.place(&pair);
                self.tuples.pairs.bucket(bucket).prefetch();
                self.probes[count % BATCH] =
                    Probe { wanted: Wanted::new(packet, pair), bucket, key: key as u8 };
                count += usize::from(is_left & (tuple.best < self.best[key]));
            }
        }
        count.min(BATCH)
    }

    /// Compare the packets with the rules of the pairs that were asked for.
    #[inline(always)]
    fn compare(&mut self, compare: impl Compare, gone: impl Gone, marks: Marks<'_>, count: usize) {
        const FEW: u32 = kind::FEW as u32;
        const MANY: u32 = kind::MANY as u32;
        let pairs = &self.tuples.pairs;
        // Those whose pair has a few rules, and others that are not done with one entry.
        let (mut few, mut others) = (Places::new(), Places::new());
        let mut entries = [0u8; BATCH];
        for (at, Probe { wanted, bucket, key }) in self.probes[..count].iter().enumerate() {
            let key = usize::from(*key) % BATCH;
            let bucket = pairs.bucket(*bucket);
            let met = compare.ask(bucket, wanted);
            let entry = bucket.entry(met.entry);
            let (number, rules) = (entry.upper().number, u32::from(entry.kind()));
            // The number if the entry's only rule takes the packet, else all ones.
            let takes = met.takes & rules & u32::from(!gone.has(number));
            self.best[key] = self.best[key].min(number | takes.wrapping_sub(1));
            let is_few = met.is_pair & (rules / FEW);
            pairs.prefetch_few(entry.upper(), is_few);
            few.push_if(at, is_few);
            let is_passed = !met.is_pair & bucket.is_passed();
            others.push_if(at, met.is_pair & (rules / MANY) | is_passed);
            entries[at] = met.entry as u8;
        }
        for at in 0..few.len() {
            let at = few.get(at);
            let Probe { bucket, key, .. } = &self.probes[at];
            let key = usize::from(*key) % BATCH;
            let entry = pairs.bucket(*bucket).entry(entries[at].into());
            let first = compare.first(gone, pairs.few(entry.upper()), &self.keys[key]);
            self.best[key] = self.best[key].min(first);
        }
        for at in 0..others.len() {
            let Probe { wanted, bucket, key } = &self.probes[others.get(at)];
            let key = usize::from(*key) % BATCH;
            let Some(entry) = pairs.find(*bucket, wanted) else { continue };
            let first = self.tuples.first(compare, gone, entry, &self.keys[key], (key, marks));
            self.best[key] = self.best[key].min(first);
        }
    }
}
