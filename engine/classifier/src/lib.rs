#![doc = include_str!("../README.md")]
#![warn(clippy::missing_errors_doc)]

mod bitmaps;
mod build;
mod changes;
mod classes;
mod compare;
mod entries;
mod intervals;
mod key;
mod linear;
mod rule;
mod search;
mod sets;
pub mod synthetic;
mod upper;

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::stage::find_once;
use quiver_tables::memory::ZeroValid;
use quiver_tables::prefix::Address;

pub use build::{BuildError, Cost, RULES_MAX, Structure};
pub use changes::CHANGES_MAX;
pub use key::{Key, field};
pub use linear::{Lanes, Prefixes4};
pub use rule::{NO_SET, PortRange, Rule, SETS_OF_RULE_MAX};
pub use sets::{Members, SETS_MAX};

use bitmaps::Bitmaps;
use changes::{Changed, Gone, NoneGone};
use linear::Linear;
use search::Tuples;
use sets::{BATCH, Marks};

/// The number that is found where no rule matches.
pub const NONE: u32 = u32::MAX;

mod sealed {
    /// Keeps [`Classified`](super::Classified) in this crate: lines of its tables are read as
    /// vectors.
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u128 {}
}

/// A family of addresses whose rules can be compared sixteen at a time: IPv4 and IPv6.
pub trait Classified: Address + Default + ZeroValid + sealed::Sealed {
    /// Words of 32 bits of an address.
    const WORDS: usize;
    /// What aligns a pair of addresses behind 24 bytes.
    type Fill: ZeroValid + Copy + Default + std::fmt::Debug + Send + Sync;
    /// Sixteen prefixes.
    type Prefixes: Lanes<Self>;

    /// The words of an address, the highest first; behind [`WORDS`](Self::WORDS) of them, zeroes.
    fn words(self) -> [u32; 4];

    /// Sixteen prefixes by words of the address, the highest first.
    fn prefix_words(prefixes: &Self::Prefixes) -> &[Prefixes4];
}

impl Classified for u32 {
    const WORDS: usize = 1;
    type Fill = [u32; 0];
    type Prefixes = Prefixes4;

    #[inline(always)]
    fn words(self) -> [u32; 4] {
        [self, 0, 0, 0]
    }

    #[inline(always)]
    fn prefix_words(prefixes: &Prefixes4) -> &[Prefixes4] {
        std::slice::from_ref(prefixes)
    }
}

impl Classified for u128 {
    const WORDS: usize = 4;
    type Fill = [u32; 2];
    type Prefixes = linear::Prefixes6;

    #[inline(always)]
    fn words(self) -> [u32; 4] {
        linear::words(self)
    }

    #[inline(always)]
    fn prefix_words(prefixes: &Self::Prefixes) -> &[Prefixes4] {
        prefixes.words()
    }
}

/// A list of rules, compiled. It never changes: another list is another value, and a list with a
/// few changes one that has this one in it ([`Classifier::changed`]).
pub struct Classifier<A: Classified> {
    form: Form<A>,
    /// The sets that rules ask for, by number.
    sets: Box<[Arc<dyn Members<A>>]>,
    cost: Cost,
}

enum Form<A: Classified> {
    Linear(Box<Linear<A>>),
    Bitmaps(Box<Bitmaps<A>>),
    Tuples(Box<Tuples<A>>),
    Changed(Box<Changed<A>>),
}

impl<A: Classified> Classifier<A> {
    /// The numbers of the first rules that match `keys`, into as many of `found`; [`NONE`] where no
    /// rule does.
    #[inline]
    pub fn find(&self, variant: Variant, keys: &[Key<A>], found: &mut [u32]) {
        if let Form::Changed(changed) = &self.form {
            return changed.find(variant, keys, found);
        }
        if let Form::Linear(rules) = &self.form
            && self.sets.is_empty()
            && rules.find_avx512(variant, keys, found)
        {
            return;
        }
        self.find_except(variant, NoneGone, keys, found);
    }

    /// As [`find`](Self::find), of a list that is not changed, without the rules that are gone.
    #[inline]
    fn find_except(&self, variant: Variant, gone: impl Gone, keys: &[Key<A>], found: &mut [u32]) {
        for (keys, found) in keys.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            match self.sets.is_empty() {
                true => self.find_batch(variant, gone, keys, Marks::none(), found),
                false => self.find_marked(variant, gone, keys, found),
            }
        }
    }

    /// The first rules of a batch, which ask for sets: each set is asked once.
    #[inline(never)]
    fn find_marked(&self, variant: Variant, gone: impl Gone, keys: &[Key<A>], found: &mut [u32]) {
        let mut words = [[0; BATCH]; sets::WORDS_MAX];
        let marks = Marks::ask(&self.sets, variant, keys, &mut words);
        self.find_batch(variant, gone, keys, marks, found);
    }

    #[inline]
    fn find_batch(
        &self,
        variant: Variant,
        gone: impl Gone,
        keys: &[Key<A>],
        marks: Marks<'_>,
        found: &mut [u32],
    ) {
        match &self.form {
            Form::Linear(rules) => variant.run(linear::Find { rules, gone, keys, marks, found }),
            Form::Bitmaps(bitmaps) => bitmaps.find(variant, gone, keys, found),
            Form::Tuples(tuples) => tuples.find(variant, gone, keys, marks, found),
            // What is changed is never changed again.
            Form::Changed(_) => found.fill(NONE),
        }
    }

    /// As [`find`](Self::find), where neighbours are likely to be the same: they are searched once.
    #[inline]
    pub fn find_uniform(&self, variant: Variant, keys: &[Key<A>], found: &mut [u32]) {
        find_once(keys, found, |keys, found| self.find(variant, keys, found));
    }

    /// The structure that was chosen, and its worst case, which follows from the rules alone.
    pub fn cost(&self) -> Cost {
        self.cost
    }
}
