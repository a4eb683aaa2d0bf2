#![doc = include_str!("../README.md")]
#![warn(clippy::missing_errors_doc)]

mod bitmaps;
mod build;
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

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::stage::find_once;
use quiver_tables::prefix::Address;

pub use build::{BuildError, Cost, RULES_MAX, Structure};
pub use key::{Key, field};
pub use linear::{Lanes, Prefixes4};
pub use rule::{NO_SET, PortRange, Rule, SETS_OF_RULE_MAX};
pub use sets::{Members, SETS_MAX};

use bitmaps::Bitmaps;
use linear::Linear;
use search::Tuples;
use sets::{BATCH, Marks};

/// The number that is found where no rule matches.
pub const NONE: u32 = u32::MAX;

/// A family of addresses whose rules can be compared sixteen at a time.
pub trait Classified: Address + Default {
    /// Words of 32 bits of an address.
    const WORDS: usize;
    /// Sixteen prefixes.
    type Prefixes: Lanes<Self>;

    /// The words of an address, the highest first; behind [`WORDS`](Self::WORDS) of them, zeroes.
    fn words(self) -> [u32; 4];

    /// Sixteen prefixes by words of the address, the highest first.
    fn prefix_words(prefixes: &Self::Prefixes) -> &[Prefixes4];
}

impl Classified for u32 {
    const WORDS: usize = 1;
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

/// A list of rules, compiled. It never changes: another list is another value.
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
}

impl<A: Classified> Classifier<A> {
    /// The numbers of the first rules that match `keys`, into as many of `found`; [`NONE`] where no
    /// rule does.
    #[inline]
    pub fn find(&self, variant: Variant, keys: &[Key<A>], found: &mut [u32]) {
        if !self.sets.is_empty() {
            return self.find_marked(variant, keys, found);
        }
        match &self.form {
            Form::Linear(rules) => {
                if rules.find_avx512(variant, keys, found) {
                    return;
                }
                variant.run(linear::Find { rules, keys, marks: Marks::none(), found });
            }
            Form::Bitmaps(bitmaps) => {
                for (keys, found) in keys.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
                    bitmaps.find(variant, keys, found);
                }
            }
            Form::Tuples(tuples) => {
                for (keys, found) in keys.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
                    tuples.find(variant, keys, Marks::none(), found);
                }
            }
        }
    }

    /// As [`find`](Self::find), of rules that ask for sets: each set is asked once for a batch.
    #[inline(never)]
    fn find_marked(&self, variant: Variant, keys: &[Key<A>], found: &mut [u32]) {
        for (keys, found) in keys.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            let mut words = [[0; BATCH]; sets::WORDS_MAX];
            let marks = Marks::ask(&self.sets, variant, keys, &mut words);
            match &self.form {
                Form::Linear(rules) => variant.run(linear::Find { rules, keys, marks, found }),
                Form::Bitmaps(bitmaps) => bitmaps.find(variant, keys, found),
                Form::Tuples(tuples) => tuples.find(variant, keys, marks, found),
            }
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
