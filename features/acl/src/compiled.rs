//! Lists as workers ask them: those of an interface and direction, in order, as one.

use std::sync::Arc;

use quiver_access_lists::{CUT, CompiledList};
use quiver_classifier::{
    BuildError, CHANGES_MAX, Classifier, Key, Members, NO_SET, RULES_MAX, Rule as Classified,
    SETS_MAX, SETS_OF_RULE_MAX,
};
use quiver_core::WorkerId;
use quiver_core::cpu::Variant;
use quiver_forwarding::ip::{Ip4, Ip6};

use crate::acl::{Acl, Entry};
use crate::changes;
use crate::fields::Filtered;
use crate::long;
use crate::named_set::{InSets, NamedSet, Role, SetQuery};
use crate::rules::{Action, Rule};
use crate::tables::{BAD, DENY, LOG, NUMBERS_END, PLACE_SHIFT, REFLECT};

/// Why lists are not compiled.
#[derive(Debug)]
pub(crate) enum NotCompiled {
    TooMany(usize),
    Build(BuildError),
}

/// The sets that a rule asks, as numbers, by role.
type SetNumbers = [u16; SETS_OF_RULE_MAX];

/// Lists as they were compiled whole.
struct Whole {
    lists: Vec<Arc<Acl>>,
    /// The place of each list's first rule.
    starts: Vec<usize>,
    /// All rules, by place.
    entries: Vec<Arc<Entry>>,
    /// How many sets they ask, each with what is looked for in it.
    queries: usize,
    ip4: Arc<Classifier<u32>>,
    ip6: Arc<Classifier<u128>>,
}

impl Drop for Whole {
    fn drop(&mut self) {
        if self.entries.len() > long::RULES_MIN {
            let lists = std::mem::take(&mut self.lists);
            let entries = std::mem::take(&mut self.entries);
            long::drop_elsewhere((lists, entries, self.ip4.clone(), self.ip6.clone()));
        }
    }
}

/// A rule that was added to those that were compiled whole.
struct Added {
    entry: Arc<Entry>,
    /// The list that it is of, by place.
    list: usize,
    /// It stands before the rule at this place.
    before: usize,
}

/// The lists of an interface and direction, in order, as one.
pub(crate) struct Compiled {
    pub ip4: Arc<Classifier<u32>>,
    pub ip6: Arc<Classifier<u128>>,
    pub lists: Vec<Arc<Acl>>,
    pub looks_at_upper: bool,
    /// Does a rule make sessions?
    pub reflects: bool,
    whole: Arc<Whole>,
    /// The places of rules that are gone since.
    gone: Vec<usize>,
    /// The rules that were added since; what is found of them is behind all that was compiled
    /// whole.
    added: Vec<Added>,
}

impl Compiled {
    /// Compile lists, the first one first. It may run on any thread.
    pub fn new(lists: Vec<Arc<Acl>>) -> Result<Compiled, NotCompiled> {
        let count = lists.iter().map(|list| list.len()).sum();
        if count > RULES_MAX {
            return Err(NotCompiled::TooMany(count));
        }
        let (mut starts, mut entries) = (Vec::with_capacity(lists.len()), Vec::new());
        entries.reserve_exact(count);
        let (mut queries, mut sets) = (Vec::new(), Vec::new());
        let asks = lists.iter().any(|list| list.sets().next().is_some());
        for list in &lists {
            starts.push(entries.len());
            for piece in &list.pieces {
                entries.extend(piece.entries.iter().cloned());
                if asks {
                    let set = |name: &str| piece.set(name);
                    let of = |entry: &Arc<Entry>| numbers(&mut queries, &entry.rule, set);
                    sets.extend(piece.entries.iter().map(of));
                }
            }
        }
        let (ip4, ip6) = (whole(&entries, &sets, &queries)?, whole(&entries, &sets, &queries)?);
        let of_whole = lists.clone();
        let (of_ip4, of_ip6, queries) = (ip4.clone(), ip6.clone(), queries.len());
        let whole = Whole { lists: of_whole, starts, entries, queries, ip4: of_ip4, ip6: of_ip6 };
        Ok(Compiled::with(ip4, ip6, lists, (Arc::new(whole), Vec::new(), Vec::new())))
    }

    fn with(
        ip4: Arc<Classifier<u32>>,
        ip6: Arc<Classifier<u128>>,
        lists: Vec<Arc<Acl>>,
        (whole, gone, added): (Arc<Whole>, Vec<usize>, Vec<Added>),
    ) -> Compiled {
        let reflects = lists.iter().any(|list| list.reflects());
        let looks_at_upper = reflects || lists.iter().any(|list| list.looks_at_upper());
        Compiled { ip4, ip6, looks_at_upper, reflects, lists, whole, gone, added }
    }

    /// Later versions of the same lists: what was compiled whole, with few changes beside it. None
    /// where there are too many. What it takes grows with the changes and the pieces.
    pub fn changed(&self, lists: &[Arc<Acl>]) -> Option<Compiled> {
        let whole = &self.whole;
        let rules: usize = lists.iter().map(|list| list.len()).sum();
        if lists.len() != whole.lists.len() || rules > RULES_MAX {
            return None;
        }
        let (mut gone, mut added) = (Vec::new(), Vec::new());
        for (list, (before, now)) in whole.lists.iter().zip(lists).enumerate() {
            let changes = changes::between(before, now)?;
            let start = whole.starts[list];
            gone.extend(changes.gone.iter().map(|place| start + place));
            let of = |(before, entry)| Added { entry, list, before: start + before };
            added.extend(changes.added.into_iter().map(of));
        }
        if gone.len() > CHANGES_MAX || added.len() > CHANGES_MAX {
            return None;
        }
        let mut queries = Vec::new();
        let of_added = |added: &Added| {
            numbers(&mut queries, &added.entry.rule, |name| lists.get(added.list)?.set(name))
        };
        let sets: Vec<SetNumbers> = added.iter().map(of_added).collect();
        // What is compiled whole later asks no more sets than it may.
        if whole.queries + queries.len() > SETS_MAX {
            return None;
        }
        let ip4 = whole.changed(&whole.ip4, &gone, (&added, &sets), &queries)?;
        let ip6 = whole.changed(&whole.ip6, &gone, (&added, &sets), &queries)?;
        Some(Compiled::with(ip4, ip6, lists.to_vec(), (whole.clone(), gone, added)))
    }

    /// How many rules are gone or new beside what was compiled whole.
    pub fn changes(&self) -> usize {
        self.gone.len() + self.added.len()
    }

    /// How many rules were compiled whole.
    pub fn rules(&self) -> usize {
        self.whole.entries.len()
    }

    /// Is it made of these lists?
    pub fn is_of(&self, lists: &[Arc<Acl>]) -> bool {
        self.lists.len() == lists.len()
            && self.lists.iter().zip(lists).all(|(one, other)| Arc::ptr_eq(one, other))
    }

    /// The rule that was found.
    #[inline(always)]
    pub fn entry(&self, found: u32) -> Option<&Entry> {
        let place = (found >> PLACE_SHIFT) as usize;
        match self.whole.entries.get(place) {
            Some(entry) => Some(entry),
            None => self.added.get(place - self.whole.entries.len()).map(|added| &*added.entry),
        }
    }

    /// The number of the list of what was found, and the rule's place in it.
    pub fn place(&self, found: u32) -> Option<(u32, u32)> {
        let place = (found >> PLACE_SHIFT) as usize;
        let whole = &self.whole;
        let (list, place, before) = match place.checked_sub(whole.entries.len()) {
            None => {
                let list = whole.starts.iter().rposition(|start| *start <= place)?;
                let of_list = self.added.iter().filter(|added| added.list == list);
                (list, place, of_list.filter(|added| added.before <= place).count())
            }
            Some(at) => {
                let added = self.added.get(at)?;
                let others = self.added[..at].iter().filter(|other| other.list == added.list);
                (added.list, added.before, others.count())
            }
        };
        let start = *whole.starts.get(list)?;
        let gone = self.gone.iter().filter(|gone| (start..place).contains(gone)).count();
        Some((self.lists.get(list)?.index, (place - start + before - gone) as u32))
    }

    /// What the rules say of packets.
    #[inline(always)]
    pub fn ask<F: Part>(
        &self,
        variant: Variant,
        is_uniform: bool,
        keys: &[Key<F::Address>],
        found: &mut [u32],
    ) {
        let classifier = F::classifier(self);
        match is_uniform {
            true => classifier.find_uniform(variant, keys, found),
            false => classifier.find(variant, keys, found),
        }
        if self.looks_at_upper {
            for (key, found) in keys.iter().zip(found.iter_mut()) {
                *found = if key.fields & CUT != 0 { BAD } else { *found };
            }
        }
    }

    #[inline(never)]
    pub fn count<A>(&self, worker: WorkerId, keys: &[Key<A>], found: &[u32]) {
        let is_rule = |found: u32| found < NUMBERS_END;
        let all =
            keys.iter().zip(found).filter(|(key, found)| is_rule(**found) & (key.length != 0));
        for (key, found) in all {
            if let Some(entry) = self.entry(*found) {
                entry.count(worker, 1, key.length.into());
            }
        }
    }
}

/// As policies and policers ask it: without sessions, log and counts.
impl CompiledList for Compiled {
    fn find_ip4(&self, variant: Variant, is_uniform: bool, keys: &[Key<u32>], found: &mut [u32]) {
        self.ask::<Ip4>(variant, is_uniform, keys, found);
    }

    fn find_ip6(&self, variant: Variant, is_uniform: bool, keys: &[Key<u128>], found: &mut [u32]) {
        self.ask::<Ip6>(variant, is_uniform, keys, found);
    }
}

/// A family's part of a [`Compiled`].
pub(crate) trait Part: Filtered {
    fn classifier(compiled: &Compiled) -> &Classifier<Self::Address>;
}

impl Part for Ip4 {
    #[inline(always)]
    fn classifier(compiled: &Compiled) -> &Classifier<u32> {
        &compiled.ip4
    }
}

impl Part for Ip6 {
    #[inline(always)]
    fn classifier(compiled: &Compiled) -> &Classifier<u128> {
        &compiled.ip6
    }
}

impl Whole {
    /// What was compiled of a family, with changes; as it is where they are none of the family.
    fn changed<A: InSets>(
        &self,
        compiled: &Arc<Classifier<A>>,
        gone: &[usize],
        (added, sets): (&[Added], &[SetNumbers]),
        queries: &[Arc<SetQuery>],
    ) -> Option<Arc<Classifier<A>>> {
        let is_of_family =
            |place: &usize| self.entries[*place].rule.compiled::<A>(0, NO_SETS).is_some();
        let places = gone.iter().copied().filter(is_of_family);
        let gone: Vec<u32> = places.map(|place| number(place, &self.entries[place].rule)).collect();
        let numbered = added.iter().zip(sets).zip(self.entries.len()..);
        let added: Vec<(u32, Classified<A>)> = numbered
            .filter_map(|((added, sets), place)| {
                let rule = &added.entry.rule;
                let before = (added.before as u32) << PLACE_SHIFT;
                Some((before, rule.compiled(number(place, rule), *sets)?))
            })
            .collect();
        if gone.is_empty() && added.is_empty() {
            return Some(compiled.clone());
        }
        Classifier::changed(compiled, &gone, &added, members(queries)).ok().map(Arc::new)
    }
}

const NO_SETS: SetNumbers = [NO_SET; SETS_OF_RULE_MAX];

/// What is found when the rule at a place matches.
fn number(place: usize, rule: &Rule) -> u32 {
    let action = match rule.action {
        Action::Permit => 0,
        Action::Deny => DENY,
        Action::Reflect => REFLECT,
    };
    (place as u32) << PLACE_SHIFT | action | if rule.logs { LOG } else { 0 }
}

/// Compile the rules of a family; `sets` are the numbers of the sets that each asks, of which there
/// are none where no rule asks any.
fn whole<A: InSets>(
    entries: &[Arc<Entry>],
    sets: &[SetNumbers],
    queries: &[Arc<SetQuery>],
) -> Result<Arc<Classifier<A>>, NotCompiled> {
    let rules = entries.iter().enumerate().filter_map(|(place, entry)| {
        let sets = sets.get(place).copied().unwrap_or(NO_SETS);
        entry.rule.compiled(number(place, &entry.rule), sets)
    });
    Classifier::with_sets(&rules.collect::<Vec<_>>(), members(queries))
        .map(Arc::new)
        .map_err(NotCompiled::Build)
}

fn members<A: InSets>(queries: &[Arc<SetQuery>]) -> Vec<Arc<dyn Members<A>>> {
    queries.iter().map(|query| query.clone() as Arc<dyn Members<A>>).collect()
}

/// The numbers of the sets that a rule asks; those that are new join `queries`.
fn numbers<'s>(
    queries: &mut Vec<Arc<SetQuery>>,
    rule: &Rule,
    set: impl Fn(&str) -> Option<&'s Arc<NamedSet>>,
) -> SetNumbers {
    let mut numbers = NO_SETS;
    let mut number_of = |role: Role, set: &Arc<NamedSet>| {
        let is_it = |query: &Arc<SetQuery>| query.role == role && Arc::ptr_eq(&query.set, set);
        let known = queries.iter().position(is_it);
        let number = known.unwrap_or_else(|| {
            queries.push(Arc::new(SetQuery { role, set: set.clone() }));
            queries.len() - 1
        });
        u16::try_from(number).unwrap_or(NO_SET - 1)
    };
    for (role, name) in rule.sets() {
        if let Some(set) = set(name) {
            numbers[role as usize] = number_of(role, set);
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rules::Given;

    fn list(index: u32, count: usize) -> Arc<Acl> {
        Arc::new(Acl::new(index, String::new(), rules(count), |_| None).expect("no sets"))
    }

    fn rules(count: usize) -> Vec<Rule> {
        let rule = |_| Rule::new(Action::Permit, Given::default()).expect("makes sense");
        (0..count).map(rule).collect()
    }

    proptest! {
        #[test]
        fn what_is_found_in_changed_lists_has_its_place_of_now(
            counts in prop::collection::vec(1usize..700, 1..4),
            edits in prop::collection::vec(
                (any::<u8>(), any::<u32>(), 0usize..2, 0usize..3),
                0..20,
            ),
        ) {
            let mut lists: Vec<_> = (10..).zip(counts).map(|(i, count)| list(i, count)).collect();
            let before = Compiled::new(lists.clone()).expect("compiles");
            for (which, at, gone, new) in edits {
                let which = usize::from(which) % lists.len();
                let acl = &lists[which];
                let from = at as usize % (acl.len() + 1);
                let to = (from + gone).min(acl.len());
                lists[which] = Arc::new(acl.with(from..to, rules(new), |_| None).expect("no sets"));
            }
            let now = before.changed(&lists).expect("few changes");
            let mut places = std::collections::BTreeMap::new();
            for found in 0..now.rules() + now.added.len() {
                let found = (found as u32) << PLACE_SHIFT;
                if !now.gone.contains(&((found >> PLACE_SHIFT) as usize)) {
                    let entry = now.entry(found).expect("a rule");
                    places.insert(now.place(found).expect("a place"), std::ptr::from_ref(entry));
                }
            }
            let entries = lists.iter().flat_map(|acl| {
                let placed = acl.entries_from(0).zip(0..);
                placed.map(|(entry, at)| ((acl.index, at), Arc::as_ptr(entry)))
            });
            prop_assert_eq!(places, entries.collect());
        }
    }
}
