//! The hash table of pairs of prefixes: which rules have this source prefix and this destination
//! prefix. It is built once and only read.
#![allow(unsafe_code)]

use quiver_tables::memory::{MemoryError, Reserved, ZeroValid};

use crate::linear::{LANES, UpperLanes};
use crate::sets::Needs;
use crate::{Classified, NO_SET, Rule, SETS_OF_RULE_MAX};

/// The sets that a rule asks for, as [`Rule::sets`].
pub(crate) type RuleSets = [u16; SETS_OF_RULE_MAX];

/// What a rule asks for behind the addresses: 20 bytes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Upper {
    pub source_from: u16,
    pub source_span: u16,
    pub destination_from: u16,
    pub destination_span: u16,
    pub value: u32,
    pub mask: u32,
    pub number: u32,
}

impl Upper {
    pub fn of<A: Classified>(rule: &Rule<A>) -> Upper {
        let rule = rule.completed();
        Upper {
            source_from: rule.source_ports.from,
            source_span: rule.source_ports.span(),
            destination_from: rule.destination_ports.from,
            destination_span: rule.destination_ports.span(),
            value: rule.value,
            mask: rule.mask,
            number: rule.number,
        }
    }

    /// Does a packet have it?
    #[inline(always)]
    pub fn takes<A>(&self, key: &crate::Key<A>) -> bool {
        let outside = (key.source_port.wrapping_sub(self.source_from) > self.source_span)
            | (key.destination_port.wrapping_sub(self.destination_from) > self.destination_span);
        let differs = (self.value ^ key.fields) & self.mask & key.compared();
        (differs == 0) & (!outside | (key.any_upper() != 0))
    }
}

/// Buckets that are searched for a pair at most.
pub(crate) const BUCKETS_SEARCHED_MAX: usize = 8;

/// How many rules a pair has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    /// One, which stands in the entry.
    One,
    /// A few, in [`Pairs::few`] from [`Upper::number`] on, [`Upper::value`] of them.
    Few,
    /// Many, or such that ask for sets, in [`Pairs::many`], counted in blocks.
    Many,
}

/// Rules that are compared one by one; more are compared sixteen at a time.
pub(crate) const FEW_MAX: usize = 4;

/// A pair of prefixes: half a cache line in IPv4, a whole one in IPv6.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Entry<A> {
    source: A,
    destination: A,
    upper: Upper,
    tuple: u16,
    /// 0 when empty, as is all of the entry, else 1 and [`Rules`] as a number; [`PASSED`] beside it
    /// in the first entry of a bucket that pairs were too many for.
    kind: u16,
}

/// Of a bucket: pairs that belong here stand in the next one.
const PASSED: u16 = 0x100;
const KIND: u16 = 0xff;

impl<A: Classified> Entry<A> {
    /// The same pair?
    #[inline(always)]
    fn is(&self, pair: &Pair<A>) -> bool {
        (self.source == pair.source)
            & (self.destination == pair.destination)
            & (self.tuple == pair.tuple)
            & (self.kind & KIND != 0)
    }

    /// How many rules it has.
    #[inline(always)]
    pub fn rules(&self) -> Rules {
        match self.kind & KIND {
            1 => Rules::One,
            2 => Rules::Few,
            _ => Rules::Many,
        }
    }

    #[inline(always)]
    pub fn upper(&self) -> &Upper {
        &self.upper
    }
}

/// Two entries.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Bucket<A>([Entry<A>; 2]);
// SAFETY: addresses and integers are valid as zeroes; two entries of them are empty.
unsafe impl<A: Classified> ZeroValid for Bucket<A> {}

/// What is looked for: the packet's addresses, masked by a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Pair<A> {
    pub tuple: u16,
    pub source: A,
    pub destination: A,
}

impl<A: Classified> Pair<A> {
    #[inline(always)]
    fn hash(&self, seed: u64) -> u64 {
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        let ((a, b), (c, d)) = (self.source.halves(), self.destination.halves());
        let fold = |x: u64, y: u64| {
            let wide = u128::from(x) * u128::from(y);
            (wide >> 64) as u64 ^ wide as u64
        };
        let one = fold(b ^ seed ^ u64::from(self.tuple), d ^ MIX ^ seed.rotate_left(32));
        if A::BITS == 32 {
            fold(one ^ b << 32 ^ d, MIX)
        } else {
            fold(one ^ b ^ d.rotate_left(32), fold(a ^ seed, c ^ MIX) ^ MIX ^ a ^ c.rotate_left(32))
        }
    }
}

/// The pairs of a classifier, and their rules.
pub(crate) struct Pairs<A: Classified> {
    buckets: Reserved<Bucket<A>>,
    seed: u64,
    shift: u32,
    pub few: Vec<Upper>,
    pub many: Vec<UpperLanes>,
    /// The sets that the rules of `many` ask for.
    pub needs: Needs,
    /// Buckets searched in the worst case.
    pub searched: usize,
}

impl<A: Classified> Pairs<A> {
    /// Room for so many pairs, hashed with `seed`, of rules that ask for so many sets together.
    pub fn new(pairs: usize, seed: u64, sets: usize) -> Result<Pairs<A>, MemoryError> {
        let bits = pairs.max(2).next_power_of_two().trailing_zeros();
        Ok(Pairs {
            buckets: Reserved::by_size("pairs of prefixes", 1 << bits)?,
            seed,
            shift: 64 - bits,
            few: Vec::new(),
            many: Vec::new(),
            needs: Needs::of_sets(sets),
            searched: 1,
        })
    }

    pub fn bytes(&self) -> usize {
        let lists = size_of_val(&*self.few) + size_of_val(&*self.many) + self.needs.bytes();
        size_of_val(self.buckets.as_slice()) + lists
    }

    /// The first bucket of a pair.
    #[inline(always)]
    pub fn place(&self, pair: &Pair<A>) -> u32 {
        (pair.hash(self.seed) >> self.shift) as u32
    }

    /// The bucket at a place, to be asked for ahead.
    #[inline(always)]
    pub fn bucket(&self, place: u32) -> &Bucket<A> {
        // There is a power of two of them.
        self.buckets.get(place as usize & (self.buckets.capacity() - 1))
    }

    /// The entry of a pair whose first bucket is at `place`.
    #[inline(always)]
    pub fn find(&self, place: u32, pair: &Pair<A>) -> Option<&Entry<A>> {
        let bucket = self.bucket(place);
        if bucket.0[0].is(pair) {
            return Some(&bucket.0[0]);
        }
        if bucket.0[1].is(pair) {
            return Some(&bucket.0[1]);
        }
        if bucket.0[0].kind & PASSED == 0 { None } else { self.find_behind(place, pair) }
    }

    #[cold]
    fn find_behind(&self, place: u32, pair: &Pair<A>) -> Option<&Entry<A>> {
        for step in 1..BUCKETS_SEARCHED_MAX as u32 {
            let bucket = self.bucket(place + step);
            if let Some(entry) = bucket.0.iter().find(|entry| entry.is(pair)) {
                return Some(entry);
            }
            if bucket.0[0].kind & PASSED == 0 {
                break;
            }
        }
        None
    }

    /// Add a pair with its rules, in order, and the sets that each of them asks for; false when its
    /// buckets are full.
    pub fn insert(&mut self, pair: Pair<A>, rules: &[Upper], sets: &[RuleSets]) -> bool {
        let home = self.place(&pair) as usize;
        let modulus = self.buckets.capacity();
        let at = |step: usize| (home + step) % modulus;
        let free = (0..BUCKETS_SEARCHED_MAX.min(modulus)).find_map(|step| {
            let bucket = self.buckets.get(at(step));
            let entry = bucket.0.iter().position(|entry| entry.kind & KIND == 0);
            Some((step, entry?))
        });
        let Some((step, slot)) = free else { return false };
        for passed in 0..step {
            self.buckets.get_mut(at(passed)).0[0].kind |= PASSED;
        }
        self.searched = self.searched.max(step + 1);
        let asks = sets.iter().any(|sets| *sets != [NO_SET; SETS_OF_RULE_MAX]);
        let (kind, upper) = match rules {
            [one] if !asks => (1, *one),
            few if !asks && few.len() <= FEW_MAX => {
                let first = self.few.len();
                self.few.extend_from_slice(few);
                (2, Upper { number: first as u32, value: few.len() as u32, ..Upper::default() })
            }
            many => {
                let first = self.many.len();
                for sets in sets.chunks(LANES) {
                    self.needs.push(sets.iter().map(|sets| &sets[..]));
                }
                self.many.extend(many.chunks(LANES).map(|rules| {
                    let mut lanes = UpperLanes::empty();
                    rules.iter().enumerate().for_each(|(lane, rule)| lanes.set(lane, rule));
                    lanes
                }));
                let blocks = (self.many.len() - first) as u32;
                (3, Upper { number: first as u32, value: blocks, ..Upper::default() })
            }
        };
        let Pair { tuple, source, destination } = pair;
        let entry = &mut self.buckets.get_mut(at(step)).0[slot];
        let kind = entry.kind & PASSED | kind;
        *entry = Entry { source, destination, upper, tuple, kind };
        true
    }
}
