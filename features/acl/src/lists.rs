//! Lists and where they are, as they are configured (control thread).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quiver_access_lists::ListUsers;
use quiver_control::Refusal;
use quiver_core::{Engine, InterfaceId};

use crate::acl::Acl;
use crate::compiled::Compiled;
use crate::config::{AT_ONCE_RULES_MAX, no_list};
use crate::named_set::NamedSet;
use crate::placing::Wants;
use crate::rebuild::Rebuild;
use crate::session_config::SessionSpace;
use crate::set_config::Sets;
use crate::tables::{Attached, Direction};

/// Lists at most.
const LISTS_MAX: usize = 65_536;
/// Lists of an interface and direction at most.
const ATTACHED_MAX: usize = 64;

/// An interface and a direction.
pub(crate) type On = (InterfaceId, Direction);

/// All lists.
pub(crate) struct Lists {
    pub acls: BTreeMap<u32, Arc<Acl>>,
    /// By sequence number: what is first there is asked first.
    pub attached: BTreeMap<On, BTreeSet<(u32, u32)>>,
    /// What workers read, by the lists it is made of.
    pub compiled: BTreeMap<Vec<u32>, Arc<Compiled>>,
    /// Lists that policies or policers use.
    pub held: BTreeSet<u32>,
    pub published: Arc<Attached>,
    pub workers: usize,
    pub reassembles: bool,
    /// Interfaces whose fragments are reassembled virtually for lists.
    pub reassembled: BTreeSet<InterfaceId>,
    pub room: SessionSpace,
    pub sets: Sets,
    pub rebuild: Rebuild,
}

/// The lists of some interfaces, as numbers and as compiled.
pub(crate) type Found = Vec<(On, Vec<u32>, Option<Arc<Compiled>>)>;

/// A change of which lists there are, or where.
pub(crate) enum Change {
    /// A list is there, or another in its place: of the version that it was made of, if it was made
    /// of one.
    Put { acl: Arc<Acl>, of: Option<Arc<Acl>> },
    /// A list of an interface, with its sequence number.
    Attach(On, u32, u32),
    /// No more.
    Detach(On, u32),
    /// A policy or a policer asks a list.
    Hold(u32),
}

impl Lists {
    pub fn new(published: Arc<Attached>, workers: usize) -> Lists {
        Lists {
            acls: BTreeMap::new(),
            attached: BTreeMap::new(),
            compiled: BTreeMap::new(),
            held: BTreeSet::new(),
            published,
            workers,
            reassembles: false,
            reassembled: BTreeSet::new(),
            room: SessionSpace::default(),
            sets: Sets::default(),
            rebuild: Rebuild::default(),
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
    pub fn wants_after(&self, found: &Found) -> BTreeMap<InterfaceId, Wants> {
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
    pub fn user_of(&self, index: u32) -> Option<On> {
        let has = |attached: &BTreeSet<(u32, u32)>| attached.iter().any(|(_, list)| *list == index);
        self.attached.iter().find(|(_, attached)| has(attached)).map(|(on, _)| *on)
    }

    /// The numbers of the lists of each interface that a change touches, when it is done.
    pub fn touched(&self, change: &Change) -> Vec<(On, Vec<u32>)> {
        let numbers = |attached: &BTreeSet<(u32, u32)>| attached.iter().map(|(_, l)| *l).collect();
        match change {
            Change::Put { acl, .. } => {
                let uses = |(_, of): &(&On, &BTreeSet<(u32, u32)>)| {
                    of.iter().any(|(_, list)| *list == acl.index)
                };
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
            Change::Hold(_) => Vec::new(),
        }
    }

    /// The list that a change touches and that policies or policers ask.
    pub fn used_list(&self, change: &Change) -> Option<u32> {
        match change {
            Change::Hold(index) => Some(*index),
            Change::Put { acl, .. } => Some(acl.index).filter(|index| self.held.contains(index)),
            Change::Attach(..) | Change::Detach(..) => None,
        }
    }

    /// A set of lists as it is compiled after a change: as it was, or one of `ready`.
    pub fn compiled_of(
        &self,
        change: &Change,
        set: &[u32],
        ready: &[Arc<Compiled>],
    ) -> Option<Arc<Compiled>> {
        let wanted: Vec<_> = set.iter().filter_map(|index| self.list(change, *index)).collect();
        let known = self.compiled.get(set).filter(|compiled| compiled.is_of(&wanted));
        known.or_else(|| ready.iter().find(|one| one.is_of(&wanted))).cloned()
    }

    pub fn list(&self, change: &Change, index: u32) -> Option<Arc<Acl>> {
        match change {
            Change::Put { acl, .. } if acl.index == index => Some(acl.clone()),
            _ => self.acls.get(&index).cloned(),
        }
    }

    /// What must be compiled before a change is done: sets of lists that are neither compiled nor
    /// `ready`. Those that differ little from what is compiled become ready.
    pub fn needed(&self, change: &Change, ready: &mut Vec<Arc<Compiled>>) -> Vec<Vec<Arc<Acl>>> {
        let touched = self.touched(change).into_iter().map(|(_, set)| set);
        let used = self.used_list(change).map(|index| vec![index]);
        let sets: BTreeSet<Vec<u32>> = touched.chain(used).collect();
        let sets = sets.into_iter().filter(|set| !set.is_empty());
        let wanted = sets.map(|set| {
            let lists: Vec<_> = set.iter().filter_map(|index| self.list(change, *index)).collect();
            (set, lists)
        });
        let mut needed = Vec::new();
        for (set, lists) in wanted {
            // What was compiled for the change may be of other lists that have changed meanwhile.
            let known = || self.compiled.get(&set).into_iter().chain(&*ready);
            if known().any(|compiled| compiled.is_of(&lists)) {
                continue;
            }
            let mut long = known().filter(|compiled| compiled.rules() > AT_ONCE_RULES_MAX);
            match long.find_map(|compiled| compiled.changed(&lists)) {
                Some(changed) => ready.push(Arc::new(changed)),
                None => needed.push(lists),
            }
        }
        needed
    }

    /// Let workers ask another form of the same lists.
    pub fn exchange(&mut self, engine: &mut Engine, set: &[u32], compiled: &Arc<Compiled>) {
        let users: Vec<On> = self.users(set).collect();
        for on in users {
            self.published.publish(on.0, on.1, Some(compiled.clone()));
        }
        if let [one] = set
            && self.held.contains(one)
            && let Some(users) = engine.get_mut::<ListUsers>()
        {
            // It has a slot already.
            let _ = users.publish(*one, compiled.clone());
        }
        self.compiled.insert(set.to_vec(), compiled.clone());
    }

    /// Why a change cannot be.
    pub fn check(&self, engine: &Engine, change: &Change) -> Result<(), Refusal> {
        match change {
            Change::Put { acl, of } => {
                let (index, now) = (acl.index, self.acls.get(&acl.index));
                let is_now = |of: &Arc<Acl>| now.is_some_and(|now| Arc::ptr_eq(now, of));
                if of.as_ref().is_some_and(|of| !is_now(of)) {
                    let what = format!("access list {index} was changed meanwhile");
                    return Err(Refusal::new(what)
                        .remedy(format!("look at it again: show acl-plugin acl index {index}")));
                }
                let is_known = |set: &Arc<NamedSet>| {
                    self.sets.get(&set.name).is_some_and(|known| Arc::ptr_eq(known, set))
                };
                if let Some(set) = acl.sets().find(|set| !is_known(set)) {
                    let what = format!("set {} was deleted meanwhile", set.name);
                    return Err(Refusal::new(what).remedy("make it again"));
                }
                if now.is_none() && self.acls.len() >= LISTS_MAX {
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
            Change::Hold(index) => {
                self.acls.get(index).ok_or_else(|| no_list(*index))?;
                engine.get::<ListUsers>().map_or(Ok(()), |users| users.check_room(*index))
            }
        }
    }
}
