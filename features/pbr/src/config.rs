//! Policies and where they are attached, on the control thread.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use quiver_access_lists::{ListSlot, release};
use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib, FibError, Path, Target};
use quiver_forwarding::ip::{Ip4, Ip6};
use quiver_tables::GroupId;

use crate::fields::{Compiled, Match};
use crate::tables::{Attached, Counts, Rule, Ruled, place};

/// Policies at most.
pub const POLICIES_MAX: usize = 4096;
/// Policies on one interface and family at most: a packet is compared with one after the other.
pub const ATTACHED_MAX: usize = 64;

/// A policy.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub matched: Match,
    /// The access list that says what matches, in the place of `matched`.
    pub list: Option<List>,
    pub paths: Vec<Path>,
    /// Do packets die when none of the paths can be used?
    pub drops: bool,
}

/// An access list that a policy asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub number: u32,
    pub slot: ListSlot,
}

/// In whose name a list is held.
pub(crate) fn list_user(policy: u32) -> String {
    format!("policy {policy} (`show abf policy`)")
}

impl Policy {
    /// Can a policy whose paths are these be followed by nobody else?
    fn ends(&self) -> bool {
        let ends = |path: &Path| {
            matches!(path.target, Target::Drop | Target::Unreachable | Target::Prohibit)
        };
        self.drops || self.paths.iter().any(ends)
    }
}

/// Where policies are attached: by family and interface, then in the order of priority and policy.
type Place = (Family, InterfaceId);

/// A policy, and what goes with it.
struct Known {
    policy: Policy,
    counts: Arc<Counts>,
    /// Its group and the interfaces that it is attached to, for IPv4 and IPv6.
    used: [Used; 2],
}

/// Where a policy is used for a family.
#[derive(Default)]
struct Used {
    /// Its paths in the forwarding table; none when it has none, or is attached nowhere.
    group: Option<GroupId>,
    on: BTreeSet<InterfaceId>,
}

/// The place of a family.
fn number(family: Family) -> usize {
    usize::from(family == Family::Ip6)
}

/// The state of policy routing.
pub(crate) struct Policies {
    policies: BTreeMap<u32, Known>,
    attached: BTreeMap<Place, BTreeSet<(u32, u32)>>,
    published: Arc<Attached>,
    workers: usize,
}

fn no_policy(id: u32) -> Refusal {
    Refusal::new(format!("there is no policy {id}"))
        .remedy(format!("abf policy add id {id} match … via …"))
}

impl Policies {
    pub fn new(published: Arc<Attached>, workers: usize) -> Policies {
        Policies { policies: BTreeMap::new(), attached: BTreeMap::new(), published, workers }
    }

    /// The policy with this number.
    pub fn policy(&self, id: u32) -> Option<&Policy> {
        self.policies.get(&id).map(|known| &known.policy)
    }

    /// All policies, by number.
    pub fn policies(&self) -> impl Iterator<Item = (u32, &Policy)> {
        self.policies.iter().map(|(id, known)| (*id, &known.policy))
    }

    /// Those behind one, or from the first: a long list can pause.
    pub fn policies_after(&self, last: Option<u32>) -> impl Iterator<Item = (u32, &Policy)> {
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        self.policies.range((from, Bound::Unbounded)).map(|(id, known)| (*id, &known.policy))
    }

    /// What is attached to an interface: family, priority, policy.
    pub fn attached_to(&self, on: InterfaceId) -> impl Iterator<Item = (Family, u32, u32)> {
        [Family::Ip4, Family::Ip6].into_iter().flat_map(move |family| {
            let policies = self.attached.get(&(family, on)).into_iter().flatten();
            policies.map(move |(priority, policy)| (family, *priority, *policy))
        })
    }

    /// Packets that a policy has decided about, and their bytes.
    pub fn counted(&self, policy: u32) -> [u64; 2] {
        self.policies.get(&policy).map_or([0; 2], |known| known.counts.sums())
    }

    /// Where policies are attached: family, interface, priority, policy.
    pub fn attachments(&self) -> impl Iterator<Item = (Family, InterfaceId, u32, u32)> {
        self.attached.iter().flat_map(|((family, on), policies)| {
            policies.iter().map(|(priority, policy)| (*family, *on, *priority, *policy))
        })
    }

    /// The group of a policy's paths, once it is attached.
    pub fn group(&self, policy: u32, family: Family) -> Option<GroupId> {
        self.policies.get(&policy)?.used[number(family)].group
    }

    fn publish(&self, (family, on): Place) {
        match family {
            Family::Ip4 => self.published.publish::<Ip4>(on, self.rules::<Ip4>(on)),
            Family::Ip6 => self.published.publish::<Ip6>(on, self.rules::<Ip6>(on)),
        }
    }

    fn rules<F: Ruled>(&self, on: InterfaceId) -> Vec<Rule<F::Address>> {
        let rule = |(_, id): &(u32, u32)| {
            let Known { policy, counts, used } = self.policies.get(id)?;
            let list = policy.list.map(|list| list.slot);
            let matched = match list {
                Some(_) => Compiled::none(),
                None => policy.matched.compiled::<F>()?,
            };
            let group = used[number(F::FAMILY)].group;
            Some(Rule { matched, list, group, drops: policy.ends(), counts: counts.clone() })
        };
        self.attached.get(&(F::FAMILY, on)).into_iter().flatten().filter_map(rule).collect()
    }

    /// The node that an interface needs for its policies, but for `without`.
    fn node(&self, (family, on): Place, without: Option<u32>) -> Option<&'static str> {
        let of = self.attached.get(&(family, on)).into_iter().flatten().map(|(_, id)| *id);
        let mut of = of.filter(|id| Some(*id) != without).peekable();
        of.peek()?;
        let asks = |id| self.policy(id).is_some_and(|policy| policy.list.is_some());
        Some(place(family).1[usize::from(of.any(asks))])
    }

    /// Hold the group that an attached policy needs.
    fn hold_group(&mut self, fib: &mut Fib, policy: u32, family: Family) -> Result<(), FibError> {
        let Some(known) = self.policies.get_mut(&policy) else { return Ok(()) };
        let used = &mut known.used[number(family)];
        if used.group.is_none() && !used.on.is_empty() && !known.policy.paths.is_empty() {
            used.group = Some(fib.hold_paths(family, 0, &known.policy.paths)?);
        }
        Ok(())
    }

    /// Let go of the group of a policy that is attached no more. Workers no longer see it.
    fn release_group(&mut self, fib: &mut Fib, policy: u32, family: Family) {
        let Some(known) = self.policies.get_mut(&policy) else { return };
        let used = &mut known.used[number(family)];
        if used.on.is_empty()
            && let Some(group) = used.group.take()
        {
            fib.release_paths(group);
        }
    }
}

/// A refusal of the FIB, where a route's prefix means the policy.
fn refusal(engine: &Engine, id: u32, error: FibError) -> Refusal {
    Refusal::of_table(engine, error.about(&format!("policy {id}")))
}

/// Add a policy.
pub(crate) fn add(engine: &mut Engine, id: u32, policy: Policy) -> Result<(), Refusal> {
    engine.with(|engine, policies: &mut Policies| {
        if policies.policies.contains_key(&id) {
            let remedy = format!("abf policy del id {id}");
            return Err(Refusal::new(format!("policy {id} exists already")).remedy(remedy));
        }
        if policies.policies.len() >= POLICIES_MAX {
            return Err(Refusal::new(format!("there are {POLICIES_MAX} policies already"))
                .remedy("delete one"));
        }
        check_outputs(engine, &policy.paths)?;
        // Held and released: whatever is wrong with the paths is told now.
        if !policy.paths.is_empty() {
            let Some(fib) = engine.get_mut::<Fib>() else {
                return Err(Refusal::new("the forwarding table is being changed"));
            };
            let family = policy.matched.family().unwrap_or(Family::Ip4);
            let held = fib.hold_paths(family, 0, &policy.paths);
            held.map(|group| fib.release_paths(group))
                .map_err(|error| refusal(engine, id, error))?;
        }
        hold_tables(engine, &policy.paths, true);
        let counts = Arc::new(Counts::new(policies.workers));
        policies.policies.insert(id, Known { policy, counts, used: Default::default() });
        Ok(())
    })
}

/// Add paths to a policy; one that is there gets the new weight.
pub(crate) fn add_paths(engine: &mut Engine, id: u32, paths: &[Path]) -> Result<(), Refusal> {
    change_paths(engine, id, |known| {
        let kept = known.iter().filter(|path| !paths.iter().any(|new| is_same(path, new)));
        Ok(kept.chain(paths).copied().collect())
    })
}

/// Take paths from a policy. Weights do not matter.
pub(crate) fn remove_paths(engine: &mut Engine, id: u32, paths: &[Path]) -> Result<(), Refusal> {
    change_paths(engine, id, |known| {
        if !paths.iter().all(|gone| known.iter().any(|path| is_same(path, gone))) {
            let what = format!("policy {id} has no such path");
            return Err(Refusal::new(what).remedy("`show abf policy` shows its paths"));
        }
        let left: Vec<Path> = known
            .iter()
            .filter(|path| !paths.iter().any(|gone| is_same(path, gone)))
            .copied()
            .collect();
        if left.is_empty() {
            let what = format!("policy {id} would have no path left");
            return Err(Refusal::new(what).remedy(format!("abf policy del id {id}")));
        }
        Ok(left)
    })
}

fn is_same(one: &Path, other: &Path) -> bool {
    (one.preference, one.target) == (other.preference, other.target)
}

/// Give a policy other paths, where it is attached, too: workers see the old ones or the new ones.
fn change_paths(
    engine: &mut Engine,
    id: u32,
    change: impl FnOnce(&[Path]) -> Result<Vec<Path>, Refusal>,
) -> Result<(), Refusal> {
    engine.with(|engine, policies: &mut Policies| {
        let known = policies.policies.get(&id).ok_or_else(|| no_policy(id))?;
        let now = change(&known.policy.paths)?;
        let matched = known.policy.matched.family().unwrap_or(Family::Ip4);
        let attached =
            [Family::Ip4, Family::Ip6].map(|family| !known.used[number(family)].on.is_empty());
        check_outputs(engine, &now)?;
        let Some(fib) = engine.get_mut::<Fib>() else {
            return Err(Refusal::new("the forwarding table is being changed"));
        };
        // Held for one family at least: whatever is wrong with the paths is told now.
        let mut held = Vec::new();
        for family in [Family::Ip4, Family::Ip6] {
            if attached[number(family)] || family == matched {
                match fib.hold_paths(family, 0, &now) {
                    Ok(group) => held.push((family, group)),
                    Err(error) => {
                        held.into_iter().for_each(|(_, group)| fib.release_paths(group));
                        return Err(refusal(engine, id, error));
                    }
                }
            }
        }
        hold_tables(engine, &now, true);
        let mut gone = Vec::new();
        let Some(known) = policies.policies.get_mut(&id) else { return Ok(()) };
        let before = std::mem::replace(&mut known.policy.paths, now);
        for (family, group) in held {
            match attached[number(family)] {
                true => gone.extend(known.used[number(family)].group.replace(group)),
                false => gone.push(group),
            }
        }
        let places = [Family::Ip4, Family::Ip6].into_iter();
        let places: Vec<Place> = places
            .flat_map(|family| known.used[number(family)].on.iter().map(move |on| (family, *on)))
            .collect();
        places.into_iter().for_each(|place| policies.publish(place));
        hold_tables(engine, &before, false);
        if let Some(fib) = engine.get_mut::<Fib>() {
            gone.into_iter().for_each(|group| fib.release_paths(group));
        }
        Ok(())
    })
}

/// Delete a policy that is attached nowhere.
pub(crate) fn delete(engine: &mut Engine, id: u32) -> Result<(), Refusal> {
    engine.with(|engine, policies: &mut Policies| {
        let known = policies.policies.get(&id).ok_or_else(|| no_policy(id))?;
        if let Some(on) = known.used.iter().find_map(|used| used.on.first()) {
            let name = engine.interface_name(*on);
            return Err(Refusal::new(format!("policy {id} is attached to interface {name}"))
                .remedy(format!("abf attach … del policy {id} {name}")));
        }
        if let Some(gone) = policies.policies.remove(&id) {
            hold_tables(engine, &gone.policy.paths, false);
            if let Some(list) = gone.policy.list {
                release(engine, list.number, &list_user(id));
            }
        }
        Ok(())
    })
}

/// A path that names only an interface needs a point-to-point link. On a link with neighbours, the
/// path must name one of them.
fn check_outputs(engine: &Engine, paths: &[Path]) -> Result<(), Refusal> {
    let has_neighbours =
        |id| engine.interface(id).is_some_and(|interface| interface.row().mac != [0; 6]);
    for path in paths {
        if let Target::Attached(out) = path.target
            && has_neighbours(out)
        {
            let name = engine.interface_name(out);
            return Err(Refusal::new(format!(
                "interface {name} has neighbours: a policy must say to which"
            ))
            .remedy(format!("via NEXT-HOP {name}")));
        }
    }
    Ok(())
}

/// Tables that paths look up in must not be deleted.
fn hold_tables(engine: &mut Engine, paths: &[Path], on: bool) {
    const HOLDER: &str = "a policy (`show abf policy`)";
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    for path in paths {
        let (family, table) = match path.target {
            Target::LookupIn { family, table } => (family, table),
            Target::Through { next_hop, table: Some(table), .. } => (Family::of(next_hop), table),
            _ => continue,
        };
        if on {
            fib.hold_table(family, table, HOLDER)
        } else {
            fib.release_table(family, table, HOLDER)
        }
    }
}

/// Attach a policy to an interface.
pub(crate) fn attach(
    engine: &mut Engine,
    family: Family,
    id: u32,
    priority: u32,
    on: InterfaceId,
) -> Result<(), Refusal> {
    engine.with(|engine, policies: &mut Policies| {
        let known = policies.policies.get(&id).ok_or_else(|| no_policy(id))?;
        if known.policy.matched.family().is_some_and(|of| of != family) {
            let what = format!(
                "policy {id} matches addresses of the other family: it is not for {family}"
            );
            return Err(Refusal::new(what).remedy("attach it to the other one"));
        }
        let name = engine.interface_name(on);
        if known.used[number(family)].on.contains(&on) {
            let what = format!("policy {id} is attached to interface {name} already");
            return Err(Refusal::new(what)
                .remedy("`show abf attach`; delete it there to give it another priority"));
        }
        let before = policies.attached.get(&(family, on)).map_or(0, BTreeSet::len);
        if before >= ATTACHED_MAX {
            let what = format!("interface {name} has {ATTACHED_MAX} {family} policies already");
            return Err(Refusal::new(what).remedy("delete one there"));
        }
        let node_before = policies.node((family, on), None);
        policies.attached.entry((family, on)).or_default().insert((priority, id));
        if let Some(known) = policies.policies.get_mut(&id) {
            known.used[number(family)].on.insert(on);
        }
        let held = match engine.get_mut::<Fib>() {
            Some(fib) => policies.hold_group(fib, id, family),
            None => Ok(()),
        };
        // The node that asks lists stands on the path before there is a policy with one.
        let nodes = (node_before, policies.node((family, on), None));
        let done = held.map_err(|error| refusal(engine, id, error));
        let done = done.and_then(|()| switch(engine, (family, on), nodes));
        match done {
            Ok(()) => policies.publish((family, on)),
            Err(_) => take_out(engine, policies, family, id, on),
        }
        done
    })
}

/// Take a policy from an interface.
pub(crate) fn detach(
    engine: &mut Engine,
    family: Family,
    id: u32,
    on: InterfaceId,
) -> Result<(), Refusal> {
    engine.with(|engine, policies: &mut Policies| {
        let known = policies.policies.get(&id);
        if !known.is_some_and(|known| known.used[number(family)].on.contains(&on)) {
            let name = engine.interface_name(on);
            let what = format!("policy {id} is not attached to interface {name} for {family}");
            return Err(Refusal::new(what).remedy("`show abf attach` lists what is"));
        }
        // The node without lists passes over policies with one.
        let nodes = (policies.node((family, on), None), policies.node((family, on), Some(id)));
        switch(engine, (family, on), nodes)?;
        take_out(engine, policies, family, id, on);
        Ok(())
    })
}

/// Let another node stand on an interface's path, or none; never neither of two.
fn switch(
    engine: &mut Engine,
    (family, on): Place,
    (before, after): (Option<&'static str>, Option<&'static str>),
) -> Result<(), Refusal> {
    if before == after {
        return Ok(());
    }
    let (arc, _) = place(family);
    if let Some(node) = after {
        engine.set_feature(on, arc, node, true)?;
    }
    if let Some(node) = before
        && let Err(error) = engine.set_feature(on, arc, node, false)
    {
        if let Some(node) = after {
            let _ = engine.set_feature(on, arc, node, false);
        }
        return Err(error.into());
    }
    Ok(())
}

fn take_out(
    engine: &mut Engine,
    policies: &mut Policies,
    family: Family,
    id: u32,
    on: InterfaceId,
) {
    if let Some(attached) = policies.attached.get_mut(&(family, on)) {
        attached.retain(|(_, policy)| *policy != id);
        if attached.is_empty() {
            policies.attached.remove(&(family, on));
        }
    }
    if let Some(known) = policies.policies.get_mut(&id) {
        known.used[number(family)].on.remove(&on);
    }
    policies.publish((family, on));
    if let Some(fib) = engine.get_mut::<Fib>() {
        policies.release_group(fib, id, family);
    }
}

/// An interface that goes takes along what is attached to it, and the paths that name it.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change != InterfaceChange::Deleted {
        return;
    }
    engine.with(|engine, policies: &mut Policies| {
        for family in [Family::Ip4, Family::Ip6] {
            let here: Vec<u32> = policies
                .attached
                .get(&(family, id))
                .into_iter()
                .flatten()
                .map(|(_, policy)| *policy)
                .collect();
            for policy in here {
                take_out(engine, policies, family, policy, id);
            }
        }
        let names = |path: &Path| match path.target {
            Target::Via { interface, .. } => interface == Some(id),
            Target::Attached(on) => on == id,
            _ => false,
        };
        let touched: Vec<u32> = policies
            .policies()
            .filter(|(_, policy)| policy.paths.iter().any(names))
            .map(|(id, _)| id)
            .collect();
        for policy in touched {
            shorten(engine, policies, policy, &names);
        }
    });
}

/// Let a policy lose paths; without any left it counts as one whose paths cannot be used.
fn shorten(engine: &mut Engine, policies: &mut Policies, id: u32, gone: &impl Fn(&Path) -> bool) {
    let Some(known) = policies.policies.get_mut(&id) else { return };
    known.policy.paths.retain(|path| !gone(path));
    for family in [Family::Ip4, Family::Ip6] {
        let Some(known) = policies.policies.get_mut(&id) else { return };
        let Some(before) = known.used[number(family)].group.take() else { continue };
        let on: Vec<_> = known.used[number(family)].on.iter().copied().collect();
        if let Some(fib) = engine.get_mut::<Fib>() {
            // Should the paths that are left be refused, none can be used.
            let _ = policies.hold_group(fib, id, family);
        }
        on.into_iter().for_each(|on| policies.publish((family, on)));
        if let Some(fib) = engine.get_mut::<Fib>() {
            fib.release_paths(before);
        }
    }
}
