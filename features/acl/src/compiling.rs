//! Rules as a classifier takes them.

use std::sync::Arc;

use quiver_classifier::{Classifier, Members, NO_SET, SETS_OF_RULE_MAX};

use crate::named_set::{InSets, NamedSet, Role, SetQuery};
use crate::rules::{Action, Rule};
use crate::tables::{Acl, DENY, LOG, NotCompiled, PLACE_SHIFT, REFLECT};

/// The numbers of the sets that a rule asks, by role; those that are new join `queries`.
pub(crate) fn numbers(
    queries: &mut Vec<Arc<SetQuery>>,
    list: &Acl,
    rule: &Rule,
) -> [u16; SETS_OF_RULE_MAX] {
    let mut numbers = [NO_SET; SETS_OF_RULE_MAX];
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
        if let Some(set) = list.set(name) {
            numbers[role as usize] = number_of(role, set);
        }
    }
    numbers
}

/// Compile the rules of a family; `sets` are the numbers of the sets that each asks, of which there
/// are none where no rule asks any.
pub(crate) fn classifier<'r, A: InSets>(
    rules: impl Iterator<Item = (&'r Acl, &'r Rule)>,
    sets: &[[u16; SETS_OF_RULE_MAX]],
    queries: &[Arc<SetQuery>],
) -> Result<Classifier<A>, NotCompiled> {
    let number = |place: u32, rule: &Rule| {
        let action = match rule.action {
            Action::Permit => 0,
            Action::Deny => DENY,
            Action::Reflect => REFLECT,
        };
        place << PLACE_SHIFT | action | if rule.logs { LOG } else { 0 }
    };
    let compiled = rules.zip(0..).filter_map(|((_, rule), place)| {
        let sets = sets.get(place as usize).copied();
        rule.compiled(number(place, rule), sets.unwrap_or([NO_SET; SETS_OF_RULE_MAX]))
    });
    let queries = queries.iter().map(|query| query.clone() as Arc<dyn Members<A>>);
    Classifier::with_sets(&compiled.collect::<Vec<_>>(), queries.collect())
        .map_err(NotCompiled::Build)
}
