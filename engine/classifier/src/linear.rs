//! Few rules: all are compared, sixteen at a time.

#[cfg(target_arch = "x86_64")]
mod x86;

use quiver_core::cpu::{Body, Variant};
use quiver_tables::prefix::Prefix;

use crate::changes::Gone;
#[cfg(target_arch = "x86_64")]
use crate::sets::BATCH;
use crate::sets::{Marks, Needs};
use crate::upper::{Upper, UpperLanes};
use crate::{Classified, Key, NONE, Rule};

/// Rules that are compared at once.
pub(crate) const LANES: usize = 16;

/// Words of 32 bits that an address has at most.
pub(crate) const ADDRESS_WORDS_MAX: usize = 4;

/// Sixteen prefixes that are compared at once.
pub trait Lanes<A>: Clone + Default + Send + Sync {
    /// Let a lane stand for a prefix.
    fn set(&mut self, lane: usize, address: A, mask: A);
    /// Or what differs into `differs`: 0 stays where the prefix contains the address.
    fn differ(&self, address: A, differs: &mut [u32; LANES]);
}

/// Sixteen IPv4 prefixes.
#[derive(Clone, Default)]
pub struct Prefixes4 {
    value: [u32; LANES],
    mask: [u32; LANES],
}

impl Lanes<u32> for Prefixes4 {
    fn set(&mut self, lane: usize, address: u32, mask: u32) {
        (self.value[lane], self.mask[lane]) = (address & mask, mask);
    }

    #[inline(always)]
    fn differ(&self, address: u32, differs: &mut [u32; LANES]) {
        for (lane, differs) in differs.iter_mut().enumerate() {
            *differs |= (self.value[lane] ^ address) & self.mask[lane];
        }
    }
}

/// Sixteen IPv6 prefixes, 32 bits at a time.
#[derive(Clone, Default)]
pub struct Prefixes6([Prefixes4; 4]);

impl Prefixes6 {
    /// By words of the address, the highest first.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[Prefixes4] {
        &self.0
    }
}

/// The four words of an IPv6 address, the highest first.
#[inline(always)]
pub(crate) fn words(address: u128) -> [u32; ADDRESS_WORDS_MAX] {
    [96, 64, 32, 0].map(|shift| (address >> shift) as u32)
}

impl Lanes<u128> for Prefixes6 {
    fn set(&mut self, lane: usize, address: u128, mask: u128) {
        let words = words(address).into_iter().zip(words(mask));
        self.0.iter_mut().zip(words).for_each(|(part, (word, mask))| part.set(lane, word, mask));
    }

    #[inline(always)]
    fn differ(&self, address: u128, differs: &mut [u32; LANES]) {
        for (part, word) in self.0.iter().zip(words(address)) {
            part.differ(word, differs);
        }
    }
}

/// The mask of a prefix.
pub(crate) fn mask_of<A: Classified>(prefix: Prefix<A>) -> A {
    !(prefix.first() ^ prefix.last())
}

/// Sixteen rules.
#[derive(Clone)]
struct Block<A: Classified> {
    source: A::Prefixes,
    destination: A::Prefixes,
    upper: UpperLanes<LANES>,
}

/// All rules, in order.
pub(crate) struct Linear<A: Classified> {
    blocks: Box<[Block<A>]>,
    needs: Needs,
    /// The numbers of the first 64 rules; behind them, and behind the last rule, [`NONE`].
    numbers: [u32; NUMBERS],
}

/// One for each bit of a word, and one for none.
const NUMBERS: usize = 65;

impl<A: Classified> Linear<A> {
    /// Of rules that ask for so many sets together.
    pub fn new(rules: &[Rule<A>], sets: usize) -> Linear<A> {
        let mut needs = Needs::of_sets(sets);
        for rules in rules.chunks(LANES) {
            needs.push(rules.iter().map(|rule| &rule.sets[..]));
        }
        let block = |rules: &[Rule<A>]| {
            let mut block: Block<A> = Block {
                source: A::Prefixes::default(),
                destination: A::Prefixes::default(),
                upper: UpperLanes::empty(),
            };
            for (lane, rule) in rules.iter().enumerate() {
                let (source, destination) = (rule.source, rule.destination);
                block.source.set(lane, source.first(), mask_of(source));
                block.destination.set(lane, destination.first(), mask_of(destination));
                block.upper.set(lane, &Upper::of(rule));
            }
            block
        };
        let mut numbers = [NONE; NUMBERS];
        let of_rules = numbers.iter_mut().take(NUMBERS - 1).zip(rules);
        of_rules.for_each(|(number, rule)| *number = rule.number);
        Linear { blocks: rules.chunks(LANES).map(block).collect(), needs, numbers }
    }

    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&*self.blocks) + size_of_val(&self.numbers) + self.needs.bytes()
    }

    /// The first rule that packet `at` of the batch matches.
    #[inline(always)]
    fn first(&self, gone: impl Gone, key: &Key<A>, at: usize, marks: Marks<'_>) -> u32 {
        for (number, block) in self.blocks.iter().enumerate() {
            let mut differs = [0; LANES];
            block.source.differ(key.source, &mut differs);
            block.destination.differ(key.destination, &mut differs);
            block.upper.differ(key, &mut differs);
            self.needs.differ(number, at, marks, &mut differs);
            let first = block.upper.first_except(gone, &mut differs);
            if first != NONE {
                return first;
            }
        }
        NONE
    }
}

impl<A: Classified> Linear<A> {
    /// The first rules that packets match, which ask for no sets; false where this form of the loop
    /// cannot run.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub fn find_avx512(&self, variant: Variant, keys: &[Key<A>], found: &mut [u32]) -> bool {
        if variant != Variant::Avx512 || !variant.is_available() || self.blocks.len() > x86::BLOCKS
        {
            return false;
        }
        for (keys, found) in keys.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            let mut hits = [[0; x86::BLOCKS]; BATCH];
            x86::hits(&self.blocks, keys, &mut hits);
            for (found, hits) in found.iter_mut().zip(hits) {
                let first = hits.map(u64::from);
                let first = first[0] | first[1] << 16 | first[2] << 32 | first[3] << 48;
                *found = self.numbers[first.trailing_zeros() as usize];
            }
        }
        true
    }

    /// Other processors have other forms.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn find_avx512(&self, _: Variant, _: &[Key<A>], _: &mut [u32]) -> bool {
        false
    }
}

/// The loop over the keys of a vector.
pub(crate) struct Find<'f, A: Classified, G> {
    pub rules: &'f Linear<A>,
    pub gone: G,
    pub keys: &'f [Key<A>],
    pub marks: Marks<'f>,
    pub found: &'f mut [u32],
}

impl<A: Classified, G: Gone> Body for Find<'_, A, G> {
    type Answer = ();

    #[inline(always)]
    fn run(self) {
        for (at, (key, found)) in self.keys.iter().zip(self.found).enumerate() {
            *found = self.rules.first(self.gone, key, at, self.marks);
        }
    }
}
