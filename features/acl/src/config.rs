//! What is configured, on the control thread.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quiver_classifier::RULES_MAX;
use quiver_control::{Output, Refusal, Work, in_background};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId};

use crate::named_set::NamedSet;
use crate::placing::{self, Wants};
use crate::rules::Rule;
use crate::session_config::{self, SessionSpace};
use crate::set_config::{self, Sets};
use crate::tables::{Acl, Attached, Compiled, Direction, NotCompiled};

/// Lists at most.
const LISTS_MAX: usize = 65_536;
/// Lists of an interface and direction at most.
const ATTACHED_MAX: usize = 64;
/// Lists with so many rules together are compiled at once; longer ones on a thread of their own,
/// while other commands go on.
const AT_ONCE_RULES_MAX: usize = 512;
/// Between the sequence numbers of lists that are attached without one.
const SEQUENCE_STEP: u32 = 10;

/// An interface and a direction.
pub(crate) type On = (InterfaceId, Direction);

/// All lists.
pub(crate) struct Lists {
    acls: BTreeMap<u32, Arc<Acl>>,
    /// By sequence number: what is first there is asked first.
    attached: BTreeMap<On, BTreeSet<(u32, u32)>>,
    /// What workers read, by the lists it is made of.
    compiled: BTreeMap<Vec<u32>, Arc<Compiled>>,
    published: Arc<Attached>,
    workers: usize,
    reassembles: bool,
    /// Interfaces whose fragments are reassembled virtually for lists.
    pub reassembled: BTreeSet<InterfaceId>,
    pub room: SessionSpace,
    pub sets: Sets,
}

/// The lists of some interfaces, as numbers and as compiled.
type Found = Vec<(On, Vec<u32>, Option<Arc<Compiled>>)>;

/// A change of which lists there are, or where.
pub(crate) enum Change {
    /// A list is there, or another in its place.
    Put(u32, Arc<Acl>),
    /// A list of an interface, with its sequence number.
    Attach(On, u32, u32),
    /// No more.
    Detach(On, u32),
}

impl Lists {
    pub fn new(published: Arc<Attached>, workers: usize) -> Lists {
        Lists {
            acls: BTreeMap::new(),
            attached: BTreeMap::new(),
            compiled: BTreeMap::new(),
            published,
            workers,
            reassembles: false,
            reassembled: BTreeSet::new(),
            room: SessionSpace::default(),
            sets: Sets::default(),
        }
    }

    /// All lists behind a number.
    pub fn after(&self, after: Option<u32>) -> impl Iterator<Item = (u32, &Arc<Acl>)> {
        let from = after.map_or(0, |after| after.saturating_add(1));
        let none = after == Some(u32::MAX);
        self.acls.range(from..).filter(move |_| !none).map(|(index, acl)| (*index, acl))
    }

    pub fn get(&self, index: u32) -> Option<&Arc<Acl>> {
        self.acls.get(&index)
    }

    /// The smallest number that no list has.
    pub fn free(&self) -> u32 {
        (0..).find(|index| !self.acls.contains_key(index)).unwrap_or(u32::MAX)
    }

    /// The lists of an interface, in order, with their sequence numbers.
    pub fn of(&self, on: On) -> impl Iterator<Item = (u32, u32)> {
        self.attached.get(&on).into_iter().flatten().copied()
    }

    /// Where lists are attached.
    pub fn places(&self) -> impl Iterator<Item = On> {
        self.attached.keys().copied()
    }

    /// What workers read, and of which lists it is made.
    pub fn compiled(&self) -> impl Iterator<Item = (&Vec<u32>, &Arc<Compiled>)> {
        self.compiled.iter()
    }

    /// Who has these lists.
    pub fn users(&self, lists: &[u32]) -> impl Iterator<Item = On> {
        self.attached.iter().filter_map(move |(on, attached)| {
            attached.iter().map(|(_, list)| list).eq(lists).then_some(*on)
        })
    }

    /// The sets of lists of which this one is, as they are compiled.
    pub fn sets_with(&self, index: u32) -> Vec<Vec<(u32, Arc<Acl>)>> {
        let sets = self.compiled.keys().filter(|set| set.contains(&index));
        let with_lists = |set: &Vec<u32>| {
            let lists =
                set.iter().filter_map(|index| Some((*index, self.acls.get(index)?.clone())));
            lists.collect()
        };
        sets.map(with_lists).collect()
    }

    pub fn published(&self) -> &Attached {
        &self.published
    }

    pub fn reassembles(&self) -> bool {
        self.reassembles
    }

    /// What workers read of a place's lists.
    fn compiled_at(&self, on: On) -> Option<&Arc<Compiled>> {
        let set: Vec<u32> = self.attached.get(&on)?.iter().map(|(_, list)| *list).collect();
        self.compiled.get(&set)
    }

    /// Has an interface sessions that stay whatever its lists say?
    fn keeps_sessions(&self, id: InterfaceId) -> bool {
        let sessions = &self.published.sessions;
        sessions.keeps() && sessions.epoch(id.index() as u32) != 0
    }

    /// What an interface needs as it is.
    pub fn wants(&self, id: InterfaceId) -> Wants {
        let lists = |direction| self.compiled_at((id, direction)).map(|lists| &**lists);
        Wants::of(Direction::ALL.map(lists), self.keeps_sessions(id))
    }

    /// What interfaces need when these lists filter there.
    fn wants_after(&self, found: &Found) -> BTreeMap<InterfaceId, Wants> {
        let after = |on: On| match found.iter().find(|(of, ..)| *of == on) {
            Some((_, _, compiled)) => compiled.as_ref(),
            None => self.compiled_at(on),
        };
        let lists = |on| after(on).map(|lists| &**lists);
        let wants = |id| {
            let lists = Direction::ALL.map(|direction| lists((id, direction)));
            Wants::of(lists, self.keeps_sessions(id))
        };
        found.iter().map(|((id, _), ..)| (*id, wants(*id))).collect()
    }

    /// Interfaces whose lists make sessions.
    pub fn stateful(&self) -> impl Iterator<Item = InterfaceId> {
        let ids: BTreeSet<InterfaceId> = self.places().map(|(id, _)| id).collect();
        ids.into_iter().filter(|id| self.wants(*id).is_stateful)
    }

    /// Does an interface have the list?
    fn user_of(&self, index: u32) -> Option<On> {
        let has = |attached: &BTreeSet<(u32, u32)>| attached.iter().any(|(_, list)| *list == index);
        self.attached.iter().find(|(_, attached)| has(attached)).map(|(on, _)| *on)
    }

    /// The numbers of the lists of each interface that a change touches, when it is done.
    fn touched(&self, change: &Change) -> Vec<(On, Vec<u32>)> {
        let numbers = |attached: &BTreeSet<(u32, u32)>| attached.iter().map(|(_, l)| *l).collect();
        match change {
            Change::Put(index, _) => {
                let uses =
                    |(_, of): &(&On, &BTreeSet<(u32, u32)>)| of.iter().any(|(_, l)| l == index);
                self.attached.iter().filter(uses).map(|(on, of)| (*on, numbers(of))).collect()
            }
            Change::Attach(on, sequence, index) => {
                let mut of = self.attached.get(on).cloned().unwrap_or_default();
                of.insert((*sequence, *index));
                vec![(*on, numbers(&of))]
            }
            Change::Detach(on, index) => {
                let mut of = self.attached.get(on).cloned().unwrap_or_default();
                of.retain(|(_, list)| list != index);
                vec![(*on, numbers(&of))]
            }
        }
    }

    fn list(&self, change: &Change, index: u32) -> Option<Arc<Acl>> {
        match change {
            Change::Put(put, acl) if *put == index => Some(acl.clone()),
            _ => self.acls.get(&index).cloned(),
        }
    }

    /// What must be compiled before a change is done: sets of lists that are not compiled.
    fn needed(&self, change: &Change) -> Vec<Vec<Arc<Acl>>> {
        let sets: BTreeSet<Vec<u32>> =
            self.touched(change).into_iter().map(|(_, set)| set).collect();
        let sets = sets.into_iter().filter(|set| !set.is_empty());
        let wanted = sets.map(|set| {
            let lists: Vec<_> = set.iter().filter_map(|index| self.list(change, *index)).collect();
            (set, lists)
        });
        let is_new = |(set, lists): &(Vec<u32>, Vec<Arc<Acl>>)| {
            self.compiled.get(set).is_none_or(|compiled| !compiled.is_of(lists))
        };
        wanted.filter(is_new).map(|(_, lists)| lists).collect()
    }

    /// Why a change cannot be.
    fn check(&self, engine: &Engine, change: &Change) -> Result<(), Refusal> {
        match change {
            Change::Put(index, acl) => {
                let is_known = |set: &Arc<NamedSet>| {
                    self.sets.get(&set.name).is_some_and(|known| Arc::ptr_eq(known, set))
                };
                if let Some(set) = acl.sets.iter().find(|set| !is_known(set)) {
                    let what = format!("set {} was deleted meanwhile", set.name);
                    return Err(Refusal::new(what).remedy("make it again"));
                }
                if !self.acls.contains_key(index) && self.acls.len() >= LISTS_MAX {
                    return Err(Refusal::new(format!(
                        "there are {LISTS_MAX} access lists already"
                    ))
                    .remedy("delete one"));
                }
                Ok(())
            }
            Change::Attach(on, _, index) => {
                let name = engine.interface_name(on.0);
                self.acls.get(index).ok_or_else(|| no_list(*index))?;
                let mut of = self.of(*on);
                if of.any(|(_, list)| list == *index) {
                    let what =
                        format!("access list {index} filters {} of {name} already", on.1.word());
                    return Err(Refusal::new(what).remedy("`show acl-plugin interface`"));
                }
                if self.of(*on).count() >= ATTACHED_MAX {
                    let what = format!("{name} has {ATTACHED_MAX} access lists already");
                    return Err(Refusal::new(what).remedy("put their rules into one list"));
                }
                Ok(())
            }
            Change::Detach(on, index) => {
                if !self.of(*on).any(|(_, list)| list == *index) {
                    let name = engine.interface_name(on.0);
                    let what = format!("access list {index} is not for {} of {name}", on.1.word());
                    return Err(Refusal::new(what).remedy("`show acl-plugin interface`"));
                }
                Ok(())
            }
        }
    }
}

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

/// Do a change. What must be compiled is compiled first, on a thread of its own when it is long:
/// until then packets meet the lists as they were.
pub(crate) fn change(
    engine: &mut Engine,
    change: Change,
    answer: Output,
) -> Result<Work<Engine>, Refusal> {
    let lists = engine.get::<Lists>().ok_or_else(|| Refusal::new("access lists are busy"))?;
    lists.check(engine, &change)?;
    let needed = lists.needed(&change);
    let rules: usize = needed.iter().flatten().map(|acl| acl.rules.len()).sum();
    let compile = move || needed.into_iter().map(Compiled::new).collect::<Result<Vec<_>, _>>();
    if rules <= AT_ONCE_RULES_MAX {
        let ready = compile().map_err(not_compiled)?;
        apply(engine, change, ready)?;
        return Ok(Work::Done(answer));
    }
    let work = move || compile().map_err(not_compiled);
    in_background(work, move |engine: &mut Engine, ready| {
        apply(engine, change, ready)?;
        Ok(answer)
    })
}

/// Compile sets of lists with another list of this number; on any thread.
pub(crate) fn compile_with(
    sets: Vec<Vec<(u32, Arc<Acl>)>>,
    index: u32,
    acl: &Arc<Acl>,
) -> Result<Vec<Compiled>, Refusal> {
    let with = |(of, list): (u32, Arc<Acl>)| if of == index { acl.clone() } else { list };
    let compile = |set: Vec<(u32, Arc<Acl>)>| Compiled::new(set.into_iter().map(with).collect());
    sets.into_iter().map(compile).collect::<Result<_, _>>().map_err(not_compiled)
}

/// Do a change with what was compiled for it.
pub(crate) fn apply(
    engine: &mut Engine,
    change: Change,
    ready: Vec<Compiled>,
) -> Result<(), Refusal> {
    engine.with(|engine, lists: &mut Lists| {
        lists.check(engine, &change)?;
        let mut ready: Vec<Arc<Compiled>> = ready.into_iter().map(Arc::new).collect();
        // Other commands may have changed lists while these were compiled.
        let missing: Vec<_> = lists
            .needed(&change)
            .into_iter()
            .filter(|set| !ready.iter().any(|compiled| compiled.is_of(set)))
            .collect();
        if missing.iter().flatten().map(|acl| acl.rules.len()).sum::<usize>() > AT_ONCE_RULES_MAX {
            let what = "other access lists of the same interfaces were changed meanwhile";
            return Err(Refusal::new(what).remedy("try again"));
        }
        for set in missing {
            ready.push(Arc::new(Compiled::new(set).map_err(not_compiled)?));
        }
        if let Change::Put(_, acl) = &change
            && lists.published.is_counting()
        {
            acl.begin_counting(lists.workers);
        }
        let touched = lists.touched(&change);
        let mut found: Found = Vec::with_capacity(touched.len());
        for (on, set) in touched {
            let wanted: Vec<_> =
                set.iter().filter_map(|index| lists.list(&change, *index)).collect();
            let known = lists.compiled.get(&set).filter(|compiled| compiled.is_of(&wanted));
            let compiled = known.or_else(|| ready.iter().find(|one| one.is_of(&wanted))).cloned();
            found.push((on, set, compiled));
        }
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
            Change::Put(index, acl) => {
                lists.acls.insert(index, acl);
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
        }
        // Sessions begin before the lists that make them, and are matched again behind these.
        for (id, wants) in &wants {
            session_config::begin_epoch(lists, *id, *wants);
        }
        for (on, set, compiled) in found {
            if let Some(compiled) = &compiled {
                lists.compiled.insert(set, compiled.clone());
            }
            lists.published.publish(on.0, on.1, compiled);
        }
        for (id, wants) in &wants {
            session_config::end_epoch(lists, *id, *wants);
        }
        forget_unused(lists);
        Ok(())
    })?;
    set_config::delete_unused(engine);
    Ok(())
}

/// Sets of lists that no interface has any more.
fn forget_unused(lists: &mut Lists) {
    let sets = lists.attached.values();
    let used: BTreeSet<Vec<u32>> =
        sets.map(|of| of.iter().map(|(_, list)| *list).collect()).collect();
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

/// The list that is left when only its first rules stay, with others behind them.
pub(crate) fn continued(
    engine: &Engine,
    index: u32,
    from: usize,
    more: Vec<Rule>,
) -> Result<Acl, Refusal> {
    let lists = engine.get::<Lists>().ok_or_else(|| Refusal::new("access lists are busy"))?;
    let acl = lists.get(index).ok_or_else(|| no_list(index))?;
    let kept = acl.rules.get(..from).ok_or_else(|| {
        let count = acl.rules.len();
        Refusal::new(format!("access list {index} has {count} rules, fewer than {from}"))
            .remedy("`from` is the number of rules that stay")
    })?;
    let rules: Vec<Rule> = kept.iter().cloned().chain(more).collect();
    if rules.is_empty() {
        return Err(Refusal::new(format!("access list {index} would have no rule left"))
            .remedy(format!("delete acl-plugin acl index {index}")));
    }
    self::acl(engine, index, acl.tag.clone(), rules)
}

/// The sequence number of a list that is attached without one: behind all others.
pub(crate) fn next_sequence(engine: &Engine, on: On) -> u32 {
    let last = engine.get::<Lists>().and_then(|lists| lists.of(on).last());
    last.map_or(SEQUENCE_STEP, |(sequence, _)| sequence.saturating_add(SEQUENCE_STEP))
}

/// Say whether rules that look at ports match fragments after the first.
pub(crate) fn match_later_fragments(engine: &mut Engine, matches: bool) {
    engine.with(|_, lists: &mut Lists| lists.published.match_later_fragments(matches));
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
