//! The hash table of pairs of prefixes: which rules have this source prefix and this destination
//! prefix. It is built once and only read.
#![allow(unsafe_code)]

use quiver_core::cpu::prefetch;
use quiver_tables::memory::{MemoryError, Reserved, ZeroValid};

use crate::linear::LANES;
use crate::sets::Needs;
use crate::upper::{PacketUpper, Upper, UpperLanes};
use crate::{Classified, Key, NO_SET, SETS_OF_RULE_MAX};

/// The sets that a rule asks for, as [`Rule::sets`](crate::Rule::sets).
pub(crate) type RuleSets = [u16; SETS_OF_RULE_MAX];

/// Buckets that are searched for a pair at most.
pub(crate) const BUCKETS_SEARCHED_MAX: usize = 8;

/// What an entry has, a bit each: workers test them without branches.
pub(crate) mod kind {
    /// One rule, which stands in the entry.
    pub const ONE: u16 = 1;
    /// A few rules ([`Few`](super::Few)), whose place is the number of [`Upper`](super::Upper).
    pub const FEW: u16 = 1 << 1;
    /// Many rules, or such that ask for sets: blocks in [`Pairs::many`](super::Pairs::many), from
    /// the number of [`Upper`](super::Upper) on, as many as its value.
    pub const MANY: u16 = 1 << 2;
    /// Of the first entry of a bucket: pairs that belong here stand in the next one.
    pub const PASSED: u16 = 1 << 8;
}

/// Rules that are compared four at a time; more are compared sixteen at a time.
pub(crate) const FEW_MAX: usize = 4;

/// A few rules with the same pair of prefixes, in order: two cache lines.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Few(pub UpperLanes<FEW_MAX>);

/// No rules.
static NO_RULES: Few = Few(UpperLanes::empty());

impl Few {
    fn of(rules: &[Upper]) -> Few {
        let mut few = NO_RULES.clone();
        rules.iter().take(FEW_MAX).enumerate().for_each(|(lane, rule)| few.0.set(lane, rule));
        few
    }
}

/// A pair of prefixes: half a cache line in IPv4, a whole one in IPv6. All words are 0 when it is
/// empty.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Entry<A: Classified> {
    upper: Upper,
    /// One more than the number of the tuple.
    tuple: u16,
    /// Bits of [`kind`].
    kind: u16,
    fill: A::Fill,
    source: A,
    destination: A,
}

impl<A: Classified> Entry<A> {
    /// The same pair?
    #[inline(always)]
    fn is(&self, wanted: &Wanted<A>) -> bool {
        (self.source == wanted.source)
            & (self.destination == wanted.destination)
            & (u32::from(self.tuple) == wanted.tuple)
    }

    /// Bits of [`kind`].
    #[inline(always)]
    pub fn kind(&self) -> u16 {
        self.kind
    }

    #[inline(always)]
    pub fn upper(&self) -> &Upper {
        &self.upper
    }
}

/// Two entries.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Bucket<A: Classified>([Entry<A>; 2]);
// SAFETY: addresses and integers are valid as zeroes; two entries of them are empty.
unsafe impl<A: Classified> ZeroValid for Bucket<A> {}

/// What a packet asks a bucket for, each word where an entry has what it is compared with.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Wanted<A: Classified> {
    pub upper: PacketUpper,
    /// One more than the number of the tuple.
    tuple: u32,
    fill: A::Fill,
    /// The packet's addresses, masked by the tuple.
    source: A,
    destination: A,
}

impl<A: Classified> Wanted<A> {
    /// The rules of a pair that take a packet.
    #[inline(always)]
    pub fn new(packet: &Key<A>, pair: Pair<A>) -> Wanted<A> {
        let Pair { tuple, source, destination } = pair;
        let (upper, fill) = (PacketUpper::of(packet), A::Fill::default());
        Wanted { upper, tuple: u32::from(tuple) + 1, fill, source, destination }
    }
}

/// What a bucket has of that which a packet asks it for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Met {
    /// The entry of the pair, where `is_pair` says that there is one.
    pub entry: usize,
    /// Is there an entry of the pair? 1 or 0.
    pub is_pair: u32,
    /// Does the packet also match the ports and fields of its rule, if it has one? 1 or 0.
    pub takes: u32,
}

impl<A: Classified> Bucket<A> {
    /// Ask for it, to be read soon.
    #[inline(always)]
    pub fn prefetch(&self) {
        prefetch(&raw const self.0[0]);
        if A::WORDS > 1 {
            prefetch(&raw const self.0[1]);
        }
    }

    /// Do pairs that belong here stand in the next bucket? 1 or 0.
    #[inline(always)]
    pub fn is_passed(&self) -> u32 {
        (self.0[0].kind / kind::PASSED % 2).into()
    }

    #[inline(always)]
    pub fn entry(&self, entry: usize) -> &Entry<A> {
        &self.0[entry % 2]
    }

    /// The entry that a packet asks for.
    #[inline(always)]
    pub fn ask(&self, wanted: &Wanted<A>) -> Met {
        let [first, second] = &self.0;
        let (first, second) = (first.is(wanted), second.is(wanted));
        let entry = usize::from(!first);
        let is_pair = u32::from(first | second);
        Met { entry, is_pair, takes: is_pair & u32::from(self.0[entry].upper.takes(&wanted.upper)) }
    }
}

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
    few: Vec<Few>,
    pub many: Vec<UpperLanes<LANES>>,
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
            // The place that is asked for ahead where there are no few rules.
            few: vec![NO_RULES.clone()],
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
        self.buckets.get(place as usize)
    }

    /// The entry of a pair, whose first bucket is at `place`.
    pub fn find(&self, place: u32, wanted: &Wanted<A>) -> Option<&Entry<A>> {
        for step in 0..BUCKETS_SEARCHED_MAX as u32 {
            let bucket = self.bucket((place + step) % self.buckets.capacity() as u32);
            if let Some(entry) = bucket.0.iter().find(|entry| entry.is(wanted)) {
                return Some(entry);
            }
            if bucket.is_passed() == 0 {
                break;
            }
        }
        None
    }

    /// Ask for the rules of an entry that has a few, to be read soon; `is_few` is 1 for such an
    /// entry and 0 for another one.
    #[inline(always)]
    pub fn prefetch_few(&self, upper: &Upper, is_few: u32) {
        // Numbers of others lead anywhere, and to ask for what is not mapped takes long.
        let place = upper.number & is_few.wrapping_neg();
        let few = self.few.as_ptr().wrapping_add(place as usize);
        prefetch(few);
        prefetch(few.cast::<u8>().wrapping_add(64));
    }

    /// The rules of an entry that has a few.
    #[inline(always)]
    pub fn few(&self, upper: &Upper) -> &Few {
        self.few.get(upper.number as usize).unwrap_or(&NO_RULES)
    }

    /// Add a pair with its rules, in order, and the sets that each of them asks for; false when its
    /// buckets are full.
    pub fn insert(&mut self, pair: Pair<A>, rules: &[Upper], sets: &[RuleSets]) -> bool {
        let home = self.place(&pair) as usize;
        let modulus = self.buckets.capacity();
        let at = |step: usize| (home + step) % modulus;
        let free = (0..BUCKETS_SEARCHED_MAX.min(modulus)).find_map(|step| {
            let bucket = self.buckets.get(at(step));
            let entry = bucket.0.iter().position(|entry| entry.tuple == 0);
            Some((step, entry?))
        });
        let Some((step, slot)) = free else { return false };
        for passed in 0..step {
            self.buckets.get_mut(at(passed)).0[0].kind |= kind::PASSED;
        }
        self.searched = self.searched.max(step + 1);
        let asks = sets.iter().any(|sets| *sets != [NO_SET; SETS_OF_RULE_MAX]);
        let (rules, upper) = match rules {
            [one] if !asks => (kind::ONE, *one),
            few if !asks && few.len() <= FEW_MAX => {
                let number = self.few.len() as u32;
                self.few.push(Few::of(few));
                (kind::FEW, Upper { number, ..Upper::default() })
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
                (kind::MANY, Upper { number: first as u32, value: blocks, ..Upper::default() })
            }
        };
        let Pair { tuple, source, destination } = pair;
        let entry = &mut self.buckets.get_mut(at(step)).0[slot];
        let kind = entry.kind | rules;
        let fill = A::Fill::default();
        *entry = Entry { upper, tuple: tuple + 1, kind, fill, source, destination };
        true
    }
}
