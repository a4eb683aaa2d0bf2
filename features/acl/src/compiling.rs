//! Rules as a classifier takes them.

use std::sync::Arc;

use quiver_classifier::{Classifier, Members, NO_SET, SETS_OF_RULE_MAX};

use crate::named_set::{Asked, InSets, NamedSet, Role};
use crate::rules::{Action, Rule};
use crate::tables::{Acl, DENY, LOG, NotCompiled, PLACE_SHIFT, REFLECT};

/// The numbers of the sets that a rule asks, by role; those that are new join `asked`.
pub(crate) fn numbers(
    asked: &mut Vec<Arc<Asked>>,
    list: &Acl,
    rule: &Rule,
) -> [u16; SETS_OF_RULE_MAX] {
    let mut numbers = [NO_SET; SETS_OF_RULE_MAX];
    let mut number_of = |role: Role, set: &Arc<NamedSet>| {
        let is_it = |asked: &Arc<Asked>| asked.role == role && Arc::ptr_eq(&asked.set, set);
        let known = asked.iter().position(is_it);
        let number = known.unwrap_or_else(|| {
            asked.push(Arc::new(Asked { role, set: set.clone() }));
            asked.len() - 1
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
    asked: &[Arc<Asked>],
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
    let asked = asked.iter().map(|asked| asked.clone() as Arc<dyn Members<A>>);
    Classifier::with_sets(&compiled.collect::<Vec<_>>(), asked.collect())
        .map_err(NotCompiled::Build)
}
