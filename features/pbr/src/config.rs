//! Policies and where they are attached, on the control thread.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId};
use quiver_tables::GroupId;
use quiver_tables::fib::{Family, Fib, FibError, Path, Target};
use quiver_tables::ip::{Ip4, Ip6};

use crate::fields::Match;
use crate::tables::{Attached, Published, Rule, Ruled, place};

/// Policies at most.
pub const POLICIES_MAX: usize = 4096;
/// Policies on one interface and family at most: a packet is compared with one after the other.
pub const ATTACHED_MAX: usize = 64;

/// A policy.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub matched: Match,
    pub paths: Vec<Path>,
    /// Do packets die when none of the paths can be used?
    pub drops: bool,
}

impl Policy {
    /// Can a policy whose paths are these be followed by nobody else?
    fn ends(&self) -> bool {
        self.drops || self.paths.iter().any(|path| path.target == Target::Drop)
    }
}

/// Where policies are attached: by family and interface, then in the order of priority and policy.
type Place = (Family, InterfaceId);

/// The state of policy routing.
pub(crate) struct Policies {
    policies: BTreeMap<u32, Policy>,
    attached: BTreeMap<Place, BTreeMap<(u32, u32), ()>>,
    /// The groups of the policies that are attached somewhere, by policy and family.
    groups: BTreeMap<(u32, Family), GroupId>,
    published: Arc<Published>,
}

fn no_policy(id: u32) -> Refusal {
    Refusal::new(format!("there is no policy {id}")).remedy(format!("abf policy add id {id} match … via …"))
}

impl Policies {
    pub fn new(published: Arc<Published>) -> Policies {
        Policies { policies: BTreeMap::new(), attached: BTreeMap::new(), groups: BTreeMap::new(), published }
    }

    /// All policies, by number.
    pub fn policies(&self) -> impl Iterator<Item = (u32, &Policy)> {
        self.policies.iter().map(|(id, policy)| (*id, policy))
    }

    /// Where policies are attached: family, interface, priority, policy.
    pub fn attachments(&self) -> impl Iterator<Item = (Family, InterfaceId, u32, u32)> {
        self.attached.iter().flat_map(|((family, on), policies)| {
            policies.keys().map(|(priority, policy)| (*family, *on, *priority, *policy))
        })
    }

    /// The group of a policy's paths, once it is attached.
    pub fn group(&self, policy: u32, family: Family) -> Option<GroupId> {
        self.groups.get(&(policy, family)).copied()
    }

    fn publish(&self) {
        let mut attached = Attached::default();
        for ((family, interface), policies) in &self.attached {
            match family {
                Family::Ip4 => attached.set::<Ip4>(*interface, self.rules::<Ip4>(policies)),
                Family::Ip6 => attached.set::<Ip6>(*interface, self.rules::<Ip6>(policies)),
            }
        }
        self.published.publish(attached);
    }

    fn rules<F: Ruled>(&self, policies: &BTreeMap<(u32, u32), ()>) -> Vec<Rule<F::Address>> {
        let rule = |(_, id): &(u32, u32)| {
            let policy = self.policies.get(id)?;
            let group = self.group(*id, F::FAMILY);
            Some(Rule { matched: policy.matched.compiled::<F>()?, group, drops: policy.ends() })
        };
        policies.keys().filter_map(rule).collect()
    }

    fn is_attached(&self, policy: u32, family: Family) -> bool {
        self.attachments().any(|(of, _, _, id)| (of, id) == (family, policy))
    }

    /// Hold the groups that attached policies need, and let go of the others.
    fn fit_groups(&mut self, fib: &mut Fib, policy: u32) -> Result<(), FibError> {
        for family in [Family::Ip4, Family::Ip6] {
            let paths = self.policies.get(&policy).map_or(&[][..], |policy| &policy.paths);
            let wanted = self.is_attached(policy, family) && !paths.is_empty();
            match (wanted, self.group(policy, family)) {
                (true, None) => {
                    let group = fib.hold_paths(family, 0, paths)?;
                    self.groups.insert((policy, family), group);
                }
                (false, Some(group)) => {
                    self.groups.remove(&(policy, family));
                    // Workers may still read the old list: it is published before the group goes.
                    self.publish();
                    fib.release_paths(group);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A refusal of the FIB, where a route's prefix means the policy.
fn refusal(engine: &Engine, id: u32, error: FibError) -> Refusal {
    let text = error.to_string();
    let text = ["route 0.0.0.0/0", "route ::/0"]
        .iter()
        .fold(text, |text, from| text.replace(from, &format!("policy {id}")));
    let named = engine.all_interfaces().fold(text, |text, interface| {
        text.replace(
            &format!("interface number {} ", interface.id.0),
            &format!("interface {} ", interface.name),
        )
    });
    Refusal::new(named)
}

/// Add a policy.
pub(crate) fn add(engine: &mut Engine, id: u32, policy: Policy) -> Result<(), Refusal> {
    engine.with(|engine, policies: &mut Policies| {
        if policies.policies.contains_key(&id) {
            let remedy = format!("abf policy del id {id}");
            return Err(Refusal::new(format!("policy {id} exists already")).remedy(remedy));
        }
        if policies.policies.len() >= POLICIES_MAX {
            return Err(
                Refusal::new(format!("there are {POLICIES_MAX} policies already")).remedy("delete one")
            );
        }
        // Held and released: whatever is wrong with the paths is told now.
        if !policy.paths.is_empty() {
            let Some(fib) = engine.get_mut::<Fib>() else {
                return Err(Refusal::new("the forwarding table is being changed"));
            };
            let family = policy.matched.family().unwrap_or(Family::Ip4);
            let held = fib.hold_paths(family, 0, &policy.paths);
            held.map(|group| fib.release_paths(group)).map_err(|error| refusal(engine, id, error))?;
        }
        hold_tables(engine, &policy.paths, true);
        policies.policies.insert(id, policy);
        Ok(())
    })
}

/// Delete a policy that is attached nowhere.
pub(crate) fn delete(engine: &mut Engine, id: u32) -> Result<(), Refusal> {
    engine.with(|engine, policies: &mut Policies| {
        if let Some((_, on, ..)) = policies.attachments().find(|(.., policy)| *policy == id) {
            let name = engine.interface_name(on);
            return Err(Refusal::new(format!("policy {id} is attached to interface {name}"))
                .remedy(format!("abf attach … del policy {id} {name}")));
        }
        let gone = policies.policies.remove(&id).ok_or_else(|| no_policy(id))?;
        hold_tables(engine, &gone.paths, false);
        Ok(())
    })
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
        if on { fib.hold_table(family, table, HOLDER) } else { fib.release_table(family, table, HOLDER) }
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
        let policy = policies.policies.get(&id).ok_or_else(|| no_policy(id))?;
        if policy.matched.family().is_some_and(|of| of != family) {
            let what = format!("policy {id} matches addresses of the other family: it is not for {family}");
            return Err(Refusal::new(what).remedy("attach it to the other one"));
        }
        let before = policies.attached.get(&(family, on)).cloned().unwrap_or_default();
        let name = engine.interface_name(on);
        if before.keys().any(|(_, policy)| *policy == id) {
            let what = format!("policy {id} is attached to interface {name} already");
            return Err(
                Refusal::new(what).remedy("`show abf attach`; delete it there to give it another priority")
            );
        }
        if before.len() >= ATTACHED_MAX {
            let what = format!("interface {name} has {ATTACHED_MAX} {family} policies already");
            return Err(Refusal::new(what).remedy("delete one there"));
        }
        let is_first = before.is_empty();
        policies.attached.entry((family, on)).or_default().insert((priority, id), ());
        let held = match engine.get_mut::<Fib>() {
            Some(fib) => policies.fit_groups(fib, id),
            None => Ok(()),
        };
        policies.publish();
        let (arc, node) = place(family);
        let done = held.map_err(|error| refusal(engine, id, error)).and_then(|()| match is_first {
            true => engine.set_feature(on, arc, node, true).map_err(Refusal::from),
            false => Ok(()),
        });
        if done.is_err() {
            take_out(engine, policies, family, id, on);
        }
        done
    })
}

/// Take a policy from an interface.
pub(crate) fn detach(engine: &mut Engine, family: Family, id: u32, on: InterfaceId) -> Result<(), Refusal> {
    engine.with(|engine, policies: &mut Policies| {
        let known = policies.attachments().any(|(of, at, _, policy)| (of, at, policy) == (family, on, id));
        if !known {
            let name = engine.interface_name(on);
            let what = format!("policy {id} is not attached to interface {name} for {family}");
            return Err(Refusal::new(what).remedy("`show abf attach` lists what is"));
        }
        let is_last = policies.attached.get(&(family, on)).is_none_or(|attached| attached.len() == 1);
        if is_last {
            let (arc, node) = place(family);
            engine.set_feature(on, arc, node, false)?;
        }
        take_out(engine, policies, family, id, on);
        Ok(())
    })
}

fn take_out(engine: &mut Engine, policies: &mut Policies, family: Family, id: u32, on: InterfaceId) {
    if let Some(attached) = policies.attached.get_mut(&(family, on)) {
        attached.retain(|(_, policy), ()| *policy != id);
        if attached.is_empty() {
            policies.attached.remove(&(family, on));
        }
    }
    policies.publish();
    if let Some(fib) = engine.get_mut::<Fib>() {
        // Letting go cannot fail.
        let _ = policies.fit_groups(fib, id);
    }
}

/// An interface that goes takes along what is attached to it, and the paths that name it.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change != InterfaceChange::Deleted {
        return;
    }
    engine.with(|engine, policies: &mut Policies| {
        let here: Vec<_> = policies.attachments().filter(|(_, on, ..)| *on == id).collect();
        for (family, on, _, policy) in here {
            take_out(engine, policies, family, policy, on);
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
    let Some(policy) = policies.policies.get_mut(&id) else { return };
    policy.paths.retain(|path| !gone(path));
    let paths = policy.paths.clone();
    let mut old = Vec::new();
    for family in [Family::Ip4, Family::Ip6] {
        let Some(before) = policies.groups.remove(&(id, family)) else { continue };
        old.push(before);
        let fib = engine.get_mut::<Fib>().filter(|_| !paths.is_empty());
        if let Some(Ok(group)) = fib.map(|fib| fib.hold_paths(family, 0, &paths)) {
            policies.groups.insert((id, family), group);
        }
    }
    policies.publish();
    if let Some(fib) = engine.get_mut::<Fib>() {
        old.into_iter().for_each(|group| fib.release_paths(group));
    }
}
