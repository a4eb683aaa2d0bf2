//! How what is configured changes, on the control thread.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use quiver_access_lists::{ListUsers, Then};
use quiver_classifier::RULES_MAX;
use quiver_control::{Output, Refusal, Work, in_background};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId};

use crate::acl::Acl;
use crate::compiled::{Compiled, NotCompiled};
use crate::lists::Found;
use crate::placing;
use crate::rules::Rule;
use crate::session_config;
use crate::set_config;
use crate::tables::Direction;

pub(crate) use crate::lists::{Change, Lists, On};

/// Lists with so many rules together are compiled at once. Longer ones are compiled on a thread of
/// their own, while other commands go on; a few changes stand beside what was compiled.
pub(crate) const AT_ONCE_RULES_MAX: usize = 512;
/// Between the sequence numbers of lists that are attached without one.
const SEQUENCE_STEP: u32 = 10;

pub(crate) fn no_list(index: u32) -> Refusal {
    Refusal::new(format!("there is no access list {index}")).remedy("`show acl-plugin acl`")
}

pub(crate) fn not_compiled(why: NotCompiled) -> Refusal {
    match why {
        NotCompiled::TooMany(count) => {
            Refusal::new(format!("an interface would have {count} rules, more than {RULES_MAX}"))
                .remedy("attach fewer lists, or shorter ones")
        }
        NotCompiled::Build(error) => Refusal::new(error.to_string()),
    }
}

/// Do a change, and answer.
pub(crate) fn change(
    engine: &mut Engine,
    change: Change,
    answer: Output,
) -> Result<Work<Engine>, Refusal> {
    change_then(engine, change, Box::new(move |_| Ok(answer)))
}

/// A policy or a policer asks a list from now on; then the rest is done.
pub(crate) fn hold(engine: &mut Engine, index: u32, then: Then) -> Result<Work<Engine>, Refusal> {
    change_then(engine, Change::Hold(index), then)
}

/// None asks it any more.
pub(crate) fn release(engine: &mut Engine, index: u32) {
    engine.with(|_, lists: &mut Lists| {
        lists.held.remove(&index);
        forget_unused(lists);
    });
}

/// Do a change. What must be compiled is compiled first, on a thread of its own when it is long:
/// until then packets meet the lists as they were.
fn change_then(engine: &mut Engine, change: Change, then: Then) -> Result<Work<Engine>, Refusal> {
    let lists = engine.get::<Lists>().ok_or_else(|| Refusal::new("access lists are busy"))?;
    lists.check(engine, &change)?;
    let mut ready = Vec::new();
    let needed = lists.needed(&change, &mut ready);
    let rules: usize = needed.iter().flatten().map(|acl| acl.len()).sum();
    let compile = move || {
        let compiled = needed.into_iter().map(|lists| Compiled::new(lists).map(Arc::new));
        compiled.collect::<Result<Vec<_>, _>>()
    };
    if rules <= AT_ONCE_RULES_MAX {
        ready.extend(compile().map_err(not_compiled)?);
        apply(engine, change, ready)?;
        return then(engine).map(Work::Done);
    }
    let work = move || compile().map_err(not_compiled);
    in_background(work, move |engine: &mut Engine, compiled| {
        apply(engine, change, compiled)?;
        then(engine)
    })
}

/// Compile sets of lists with another list of this number; on any thread.
pub(crate) fn compile_with(
    sets: Vec<Vec<(u32, Arc<Acl>)>>,
    index: u32,
    acl: &Arc<Acl>,
) -> Result<Vec<Arc<Compiled>>, Refusal> {
    let with = |(of, list): (u32, Arc<Acl>)| if of == index { acl.clone() } else { list };
    let compile = |set: Vec<(u32, Arc<Acl>)>| {
        Compiled::new(set.into_iter().map(with).collect()).map(Arc::new)
    };
    sets.into_iter().map(compile).collect::<Result<_, _>>().map_err(not_compiled)
}

/// Do a change with what was compiled for it.
pub(crate) fn apply(
    engine: &mut Engine,
    change: Change,
    mut ready: Vec<Arc<Compiled>>,
) -> Result<(), Refusal> {
    engine.with(|engine, lists: &mut Lists| {
        lists.check(engine, &change)?;
        // Other commands may have changed lists while these were compiled.
        let missing = lists.needed(&change, &mut ready);
        if missing.iter().flatten().map(|acl| acl.len()).sum::<usize>() > AT_ONCE_RULES_MAX {
            let what = "other access lists of the same interfaces were changed meanwhile";
            return Err(Refusal::new(what).remedy("try again"));
        }
        for set in missing {
            ready.push(Arc::new(Compiled::new(set).map_err(not_compiled)?));
        }
        if let Change::Put { acl, .. } = &change
            && lists.published.is_counting()
        {
            acl.begin_counting(lists.workers);
        }
        let touched = lists.touched(&change);
        let mut found: Found = Vec::with_capacity(touched.len());
        for (on, set) in touched {
            let compiled = lists.compiled_of(&change, &set, &ready);
            found.push((on, set, compiled));
        }
        let used_list = lists.used_list(&change).and_then(|index| {
            let compiled = lists.compiled_of(&change, &[index], &ready)?;
            Some((index, compiled))
        });
        let wants = lists.wants_after(&found);
        if wants.values().any(|wants| wants.is_stateful) {
            session_config::open(engine, lists)?;
        }
        // Nodes stand on the path before their lists filter: until then they let all pass.
        let mut done = Ok(());
        for (id, wants) in &wants {
            done = done.and_then(|()| placing::place(engine, lists, *id, *wants));
        }
        if done.is_err() {
            // What could be switched is switched back.
            for id in wants.keys() {
                let _ = placing::place(engine, lists, *id, lists.wants(*id));
            }
            return Ok(done?);
        }
        match change {
            Change::Put { acl, .. } => {
                lists.acls.insert(acl.index, acl);
            }
            Change::Attach(on, sequence, index) => {
                lists.attached.entry(on).or_default().insert((sequence, index));
            }
            Change::Detach(on, index) => {
                if let Some(of) = lists.attached.get_mut(&on) {
                    of.retain(|(_, list)| *list != index);
                    if of.is_empty() {
                        lists.attached.remove(&on);
                    }
                }
            }
            Change::Hold(index) => {
                lists.held.insert(index);
            }
        }
        // Sessions begin before the lists that make them, and are matched again behind these.
        for (id, wants) in &wants {
            session_config::begin_epoch(lists, *id, *wants);
        }
        let mut changed = BTreeSet::new();
        for (on, set, compiled) in found {
            if let Some(compiled) = &compiled {
                changed.insert(set.clone());
                lists.compiled.insert(set, compiled.clone());
            }
            lists.published.publish(on.0, on.1, compiled);
        }
        for (id, wants) in &wants {
            session_config::end_epoch(lists, *id, *wants);
        }
        if let Some((index, compiled)) = used_list {
            changed.insert(vec![index]);
            lists.compiled.insert(vec![index], compiled.clone());
            if let Some(users) = engine.get_mut::<ListUsers>() {
                users.publish(index, compiled)?;
            }
        }
        forget_unused(lists);
        let now_ns = engine.now_ns();
        changed.iter().for_each(|set| lists.note_changes(set, now_ns));
        Ok(())
    })?;
    set_config::delete_unused(engine);
    Ok(())
}

/// Sets of lists that no interface has any more.
fn forget_unused(lists: &mut Lists) {
    let sets = lists.attached.values();
    let attached = sets.map(|of| of.iter().map(|(_, list)| *list).collect());
    let used: BTreeSet<Vec<u32>> =
        attached.chain(lists.held.iter().map(|index| vec![*index])).collect();
    lists.compiled.retain(|set, _| used.contains(set));
}

/// Delete a list that no interface has.
pub(crate) fn delete(engine: &mut Engine, index: u32) -> Result<(), Refusal> {
    engine.with(|engine, lists: &mut Lists| {
        lists.acls.get(&index).ok_or_else(|| no_list(index))?;
        if let Some((on, direction)) = lists.user_of(index) {
            let (name, word) = (engine.interface_name(on), direction.word());
            return Err(Refusal::new(format!("access list {index} filters {word} of {name}"))
                .remedy(format!("set acl-plugin interface {name} {word} acl {index} del")));
        }
        if let Some(user) = engine.get::<ListUsers>().and_then(|users| users.user_of(index)) {
            return Err(Refusal::new(format!("access list {index} is used by {user}"))
                .remedy("take it from there first"));
        }
        lists.acls.remove(&index);
        Ok(())
    })?;
    set_config::delete_unused(engine);
    Ok(())
}

/// A list of rules that ask sets which there are.
pub(crate) fn acl(
    engine: &Engine,
    index: u32,
    tag: String,
    rules: Vec<Rule>,
) -> Result<Acl, Refusal> {
    let sets = engine.get::<Lists>().map(|lists| &lists.sets);
    Acl::new(index, tag, rules, |name| sets?.get(name).cloned())
        .map_err(|what| Refusal::new(what).remedy("`show acl-plugin sets`"))
}

/// The change of a list that puts other rules at the places of some, or between two where there are
/// none.
pub(crate) fn edited(
    engine: &Engine,
    index: u32,
    replaced: impl FnOnce(&Acl) -> Result<Range<usize>, Refusal>,
    rules: Vec<Rule>,
) -> Result<Change, Refusal> {
    let lists = engine.get::<Lists>().ok_or_else(|| Refusal::new("access lists are busy"))?;
    let acl = lists.get(index).ok_or_else(|| no_list(index))?;
    let replaced = replaced(acl)?;
    let edited = acl.with(replaced, rules, |name| lists.sets.get(name).cloned());
    let edited = edited.map_err(|what| Refusal::new(what).remedy("`show acl-plugin sets`"))?;
    if edited.len() == 0 {
        return Err(Refusal::new(format!("access list {index} would have no rule left"))
            .remedy(format!("delete acl-plugin acl index {index}")));
    }
    Ok(Change::Put { acl: Arc::new(edited), of: Some(acl.clone()) })
}

/// The sequence number of a list that is attached without one: behind all others.
pub(crate) fn next_sequence(engine: &Engine, on: On) -> u32 {
    let last = engine.get::<Lists>().and_then(|lists| lists.of(on).last());
    last.map_or(SEQUENCE_STEP, |(sequence, _)| sequence.saturating_add(SEQUENCE_STEP))
}

/// Say whether rules that look at ports match fragments after the first.
pub(crate) fn match_later_fragments(engine: &mut Engine, matches: bool) {
    engine.with(|engine, lists: &mut Lists| {
        lists.published.match_later_fragments(matches);
        if let Some(users) = engine.get::<ListUsers>() {
            users.table().match_later_fragments(matches);
        }
    });
}

/// Let rules count, or no more.
pub(crate) fn set_counting(engine: &mut Engine, counts: bool) {
    engine.with(|_, lists: &mut Lists| {
        if counts {
            lists.acls.values().for_each(|acl| acl.begin_counting(lists.workers));
        }
        lists.published.set_counting(counts);
    });
}

/// Learn the ports of fragments by virtual reassembly wherever lists filter what is received.
pub(crate) fn set_reassembly(engine: &mut Engine, needed: bool) -> Result<(), Refusal> {
    engine.with(|engine, lists: &mut Lists| {
        let before = std::mem::replace(&mut lists.reassembles, needed);
        let ids: BTreeSet<InterfaceId> = lists.places().map(|(id, _)| id).collect();
        let mut done = Ok(());
        for id in &ids {
            done = done.and_then(|()| placing::place(engine, lists, *id, lists.wants(*id)));
        }
        if done.is_err() {
            lists.reassembles = before;
            for id in &ids {
                let _ = placing::place(engine, lists, *id, lists.wants(*id));
            }
        }
        Ok(done?)
    })
}

/// An interface that goes takes along which lists it has; one that bridges is filtered elsewhere.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    match change {
        InterfaceChange::Deleted => engine.with(|_, lists: &mut Lists| {
            for direction in Direction::ALL {
                lists.attached.remove(&(id, direction));
                lists.published.publish(id, direction, None);
            }
            lists.published.sessions.set_epoch(id, 0);
            lists.reassembled.remove(&id);
            lists.sets.forget_interface(id);
            forget_unused(lists);
        }),
        InterfaceChange::Input => engine.with(|engine, lists: &mut Lists| {
            let wants = lists.wants(id);
            if wants.input {
                // A worker that does not answer now is asked again with the next change.
                let _ = placing::place(engine, lists, id, wants);
            }
        }),
        _ => {}
    }
}
