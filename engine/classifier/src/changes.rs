//! A compiled list with a few changes beside it: rules of it that are gone, and new ones between
//! those that stay.

use std::sync::Arc;

use quiver_core::cpu::Variant;

use crate::build::BuildError;
use crate::sets::{BATCH, Members};
use crate::{Classified, Classifier, Cost, Form, Key, NONE, Rule};

/// Rules that are gone at most, and new ones at most.
pub const CHANGES_MAX: usize = 64;

/// Which rules are not found.
pub(crate) trait Gone: Copy {
    /// Is the rule of this number gone?
    fn has(self, number: u32) -> bool;
}

/// All rules are found.
#[derive(Clone, Copy)]
pub(crate) struct NoneGone;

impl Gone for NoneGone {
    #[inline(always)]
    fn has(self, _: u32) -> bool {
        false
    }
}

/// The numbers of rules that are gone.
struct GoneNumbers {
    /// A bit for each of them, where its hash says.
    filter: u64,
    /// In order.
    numbers: Box<[u32]>,
}

impl GoneNumbers {
    fn new(numbers: &[u32]) -> GoneNumbers {
        let mut numbers: Box<[u32]> = numbers.into();
        numbers.sort_unstable();
        let filter = numbers.iter().fold(0, |filter, number| filter | 1 << bit(*number));
        GoneNumbers { filter, numbers }
    }
}

impl Gone for &GoneNumbers {
    #[inline(always)]
    fn has(self, number: u32) -> bool {
        self.filter >> bit(number) & 1 != 0 && self.numbers.binary_search(&number).is_ok()
    }
}

/// The bit of a number in a filter.
#[inline(always)]
fn bit(number: u32) -> u32 {
    number.wrapping_mul(0x9e37_79b9) >> 26
}

/// A new rule.
struct New {
    /// What is found when it matches.
    number: u32,
    /// It stands before the rule of the compiled list that has this number, or a greater one.
    before: u32,
}

/// The compiled list, and what changed.
pub(crate) struct Changed<A: Classified> {
    base: Arc<Classifier<A>>,
    gone: GoneNumbers,
    /// The new rules; each is found by its place in `new`.
    rules: Classifier<A>,
    new: Box<[New]>,
}

impl<A: Classified> Classifier<A> {
    /// A compiled list without the rules of the numbers `gone`, and with new ones: each stands
    /// before the rule of the compiled list that has its first number, or a greater one; several
    /// before the same rule stand in their order. They ask for `sets`. What it takes does not
    /// depend on the length of the list. While there are changes, a packet is compared with all new
    /// rules, too.
    ///
    /// # Errors
    /// There are more than [`CHANGES_MAX`] of either, new rules are not in order, `base` is a
    /// changed list itself, and as [`with_sets`](Self::with_sets).
    pub fn changed(
        base: &Arc<Classifier<A>>,
        gone: &[u32],
        new: &[(u32, Rule<A>)],
        sets: Vec<Arc<dyn Members<A>>>,
    ) -> Result<Classifier<A>, BuildError> {
        let changes = gone.len() + new.len();
        let more = gone.len().max(new.len());
        if more > CHANGES_MAX {
            return Err(BuildError::TooManyChanges(more));
        }
        if matches!(base.form, Form::Changed(_)) {
            return Err(BuildError::ChangedTwice);
        }
        if !new.is_sorted_by_key(|(before, _)| *before) {
            return Err(BuildError::Order);
        }
        let placed = new.iter().zip(0..).map(|((_, rule), number)| Rule { number, ..*rule });
        let rules = Classifier::with_sets(&placed.collect::<Vec<_>>(), sets)?;
        let of = |(before, rule): &(u32, Rule<A>)| New { number: rule.number, before: *before };
        let cost = Cost {
            rules: (base.cost.rules + new.len()).saturating_sub(gone.len()),
            changes,
            steps_max: base.cost.steps_max + rules.cost.steps_max,
            bytes: base.cost.bytes + rules.cost.bytes,
            ..base.cost
        };
        let changed = Changed {
            base: base.clone(),
            gone: GoneNumbers::new(gone),
            rules,
            new: new.iter().map(of).collect(),
        };
        Ok(Classifier { form: Form::Changed(Box::new(changed)), sets: Box::default(), cost })
    }
}

impl<A: Classified> Changed<A> {
    /// As [`Classifier::find`].
    #[inline(never)]
    pub fn find(&self, variant: Variant, keys: &[Key<A>], found: &mut [u32]) {
        for (keys, found) in keys.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            match self.gone.numbers.is_empty() {
                true => self.base.find(variant, keys, found),
                false => self.base.find_except(variant, &self.gone, keys, found),
            }
            if self.new.is_empty() {
                continue;
            }
            let mut places = [NONE; BATCH];
            self.rules.find(variant, keys, &mut places[..keys.len().min(BATCH)]);
            for (found, place) in found.iter_mut().zip(places) {
                if let Some(new) = self.new.get(place as usize)
                    && new.before <= *found
                {
                    *found = new.number;
                }
            }
        }
    }
}
