//! Policies on the control thread: their segment lists, the entries that workers read, and the
//! routes that lead to them.
//!
//! A policy's binding SID is a route of its table. Beside it stands a route for the same address in
//! a table of our own for each kind of packet that is steered ([`Kind`]); steering is a route that
//! is resolved by that one. So a policy that changes is one store for each, whatever is steered
//! into it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::ops::Bound;
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_core::graph::builder::GraphBuilder;
use quiver_core::memory::epoch::PublishedSlots;
use quiver_encap::EncapEntries;
use quiver_encap::path_mtu::{PathMtu, PathMtus};
use quiver_forwarding::fib::{Family, Fib, FibError, Path, Source, Target};
use quiver_forwarding::next_hop_group::Hop;
use quiver_tables::memory::MemoryError;
use quiver_tables::prefix::{IpPrefix, Prefix};

use super::keys::Keys;
use super::path_mtus::ListsByLast;
use super::policy::{Behavior, List, Made, New, Policy, Wanted, no_list, no_policy, refusal};
use super::route_lists::RouteLists;
use super::spray::Sprayed;
use super::stack::{self, HopLimit, Outer, Prepared};
use super::steering::Steerings;
use super::{Entries, Kind};

/// Policies at most.
pub const POLICIES_MAX: usize = 1 << 16;
/// Segment lists of one policy at most: the paths of a route.
pub const LISTS_MAX: usize = quiver_forwarding::next_hop_group::PATHS_MAX;
/// Hop limit of outer headers unless another is set (RFC 8986 leaves it open; 64 is IANA's
/// default).
pub const HOP_LIMIT: u8 = 64;
/// Who holds a policy's table, in the refusal to delete it.
const HOLDER: &str = "an SR policy (`show sr policies`)";

/// All policies, and what is steered into them.
pub(super) struct Policies {
    policies: BTreeMap<Ipv6Addr, Policy>,
    /// Binding SIDs of policies that stand elsewhere.
    pub lent: BTreeSet<Ipv6Addr>,
    /// Policies that others than steering send frames by, and how many do.
    pub held: BTreeMap<Ipv6Addr, usize>,
    /// Policies of segment lists of routes.
    pub route_lists: RouteLists,
    /// Binding SIDs that features have made, not the operator.
    pub of_features: BTreeSet<Ipv6Addr>,
    entries: EncapEntries,
    sprayed: Sprayed,
    free_slots: Vec<u32>,
    /// Our own tables for packets that are steered, by kind; made when the first policy is.
    tables: Option<[u32; 3]>,
    pub source: Ipv6Addr,
    pub hop_limit: HopLimit,
    pub keys: Keys,
    pub steerings: Steerings,
    /// What is known of the paths of lists.
    pub path_mtus: PathMtus,
    /// Lists by their last segment; made anew when it is asked for and policies have changed.
    pub lists_by_last: Option<ListsByLast>,
}

/// The sum of both.
fn plus(a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
    [a[0].wrapping_add(b[0]), a[1].wrapping_add(b[1])]
}

/// The prefix of a binding SID.
pub(super) fn host(address: Ipv6Addr) -> IpPrefix {
    IpPrefix::V6(Prefix::new(address.to_bits(), 128))
}

pub(super) fn fib(engine: &mut Engine) -> Result<&mut Fib, Refusal> {
    crate::local_sids::fib(engine)
}

impl Policies {
    /// None yet.
    pub fn new(graph: &GraphBuilder, steerings: Steerings) -> Result<Policies, MemoryError> {
        Ok(Policies {
            policies: BTreeMap::new(),
            lent: BTreeSet::new(),
            held: BTreeMap::new(),
            route_lists: RouteLists::default(),
            of_features: BTreeSet::new(),
            entries: EncapEntries::new("segment lists", graph.workers(), graph.epochs())?,
            sprayed: Arc::new(PublishedSlots::new(graph.epochs(), POLICIES_MAX * Kind::ALL.len())),
            free_slots: (0..POLICIES_MAX as u32).rev().collect(),
            tables: None,
            source: Ipv6Addr::UNSPECIFIED,
            hop_limit: HopLimit::Fixed(HOP_LIMIT),
            keys: Keys::new(graph.epochs()),
            steerings,
            path_mtus: PathMtus::default(),
            lists_by_last: None,
        })
    }

    /// What workers read of segment lists.
    pub fn worker_entries(&self) -> Entries {
        self.entries.workers().into()
    }

    /// The lists of spray policies.
    pub fn sprayed(&self) -> &Sprayed {
        &self.sprayed
    }

    /// All policies, by binding SID.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv6Addr, &Policy)> {
        self.policies.iter().map(|(bsid, policy)| (*bsid, policy))
    }

    /// Those behind one, or from the first: a long list can pause.
    pub fn after(&self, last: Option<Ipv6Addr>) -> impl Iterator<Item = (Ipv6Addr, &Policy)> {
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        self.policies.range((from, Bound::Unbounded)).map(|(bsid, policy)| (*bsid, policy))
    }

    /// The policy with this binding SID.
    pub fn get(&self, bsid: Ipv6Addr) -> Option<&Policy> {
        self.policies.get(&bsid)
    }

    /// Packets and bytes that went by a list.
    pub fn counted(&self, list: &List) -> [u64; 2] {
        let bound = list.made.bound.map_or([0; 2], |entry| self.entries.sums(entry));
        plus(plus(self.entries.sums(list.made.entry), bound), list.past)
    }

    /// What is known of the path of a list.
    pub fn path_mtu(&self, list: &List) -> Option<PathMtu> {
        self.path_mtus.get(list.made.entry)
    }

    /// A router reports the MTU of a list's path.
    pub fn learn_path_mtu(&mut self, entry: u32, mtu_bytes: u16, now_ns: u64) {
        self.path_mtus.learn(&self.entries, entry, mtu_bytes, now_ns);
    }

    /// Forget reports of paths that are over by then.
    pub fn forget_path_mtus(&mut self, until_ns: u64) {
        self.path_mtus.expire(&self.entries, until_ns);
    }

    /// Packets and bytes that went by a policy, lists that are gone included.
    pub fn counted_all(&self, policy: &Policy) -> [u64; 2] {
        policy.lists.values().fold(policy.past, |sum, list| plus(sum, self.counted(list)))
    }

    /// Bytes of the entries.
    pub fn resident_bytes(&self) -> usize {
        self.entries.resident_bytes()
    }

    /// The table of our own whose routes stand for policies, for a kind of packets that is steered.
    pub fn own_table(&self, kind: Kind) -> Option<u32> {
        self.tables?.get(kind as usize).copied()
    }

    pub fn tables(&mut self, fib: &mut Fib) -> Result<[u32; 3], FibError> {
        if let Some(tables) = self.tables {
            return Ok(tables);
        }
        let mut tables = [0; 3];
        for table in &mut tables {
            *table = fib.add_own_table(Family::Ip6)?;
        }
        self.tables = Some(tables);
        Ok(tables)
    }

    /// The source of a policy's outer headers.
    pub fn source_of(&self, policy: &Policy) -> Ipv6Addr {
        policy.source.unwrap_or(self.source)
    }

    /// The header of a list.
    fn prepare(
        &self,
        policy: &Policy,
        path: &[Ipv6Addr],
        bound: bool,
    ) -> Result<Prepared, Refusal> {
        let source = self.source_of(policy);
        let outer = Outer { source, hop_limit: self.hop_limit };
        let prepared = match policy.behavior {
            Behavior::Encaps(form) => stack::around(&outer, path, form, policy.hmac),
            Behavior::Insert(form) => stack::into(path, form, !bound, policy.hmac),
        };
        let mut prepared = prepared.map_err(|no| {
            let what = format!("{} segments are too many: {no}", path.len());
            Refusal::new(what).remedy("a list of fewer segments, or a binding SID on the way")
        })?;
        match (policy.hmac, policy.behavior) {
            (Some(id), Behavior::Encaps(_)) => self.keys.sign(id, source, &mut prepared.header)?,
            (Some(id), Behavior::Insert(_)) => self.keys.check(id)?,
            (None, _) => {}
        }
        Ok(prepared)
    }

    /// What workers need for a list. Nothing is left of what is refused.
    fn make(
        &mut self,
        engine: &mut Engine,
        bsid: Ipv6Addr,
        policy: &Policy,
        path: &[Ipv6Addr],
    ) -> Result<Made, Refusal> {
        let prepared = self.prepare(policy, path, false)?;
        let is_insert = matches!(policy.behavior, Behavior::Insert(_));
        let bound = is_insert.then(|| self.prepare(policy, path, true)).transpose()?;
        let first = path.first().copied().unwrap_or(Ipv6Addr::UNSPECIFIED);
        let way = Path::resolved(first, Some(policy.table), None);
        let group = fib(engine)?
            .hold_paths(Family::Ip6, policy.table, &[way])
            .map_err(|no| refusal(engine, bsid, no))?;
        let mut add = |prepared: &Prepared| {
            self.entries.add(&prepared.header, prepared.words(group, policy.table)).ok_or_else(
                || {
                    let max = quiver_encap::entries::ENCAP_ENTRIES_MAX;
                    Refusal::new(format!("there are {max} segment lists already"))
                        .remedy("delete some")
                },
            )
        };
        let entry = add(&prepared);
        let bound = bound.as_ref().map(add).transpose();
        match (entry, bound) {
            (Ok(entry), Ok(bound)) => Ok(Made { entry, bound, group }),
            (entry, bound) => {
                if let Ok(fib) = fib(engine) {
                    fib.release_paths(group);
                }
                let made = [entry.as_ref().ok().copied(), bound.as_ref().ok().copied().flatten()];
                made.into_iter().flatten().for_each(|entry| self.entries.retire(entry));
                Err(entry.err().or(bound.err()).unwrap_or_else(|| no_policy(bsid)))
            }
        }
    }

    /// Workers find these entries no more.
    fn unmake(&mut self, engine: &mut Engine, made: Made) -> [u64; 2] {
        let mut past = [0; 2];
        for entry in [Some(made.entry), made.bound].into_iter().flatten() {
            past = plus(past, self.entries.sums(entry));
            self.path_mtus.entry_gone(entry);
            self.entries.retire(entry);
        }
        if let Some(fib) = engine.get_mut::<Fib>() {
            fib.release_paths(made.group);
        }
        past
    }

    /// Let workers find the lists of a policy as they are now.
    fn publish(
        &mut self,
        engine: &mut Engine,
        bsid: Ipv6Addr,
        policy: &Policy,
    ) -> Result<(), Refusal> {
        self.lists_by_last = None;
        let slots = policy.slot * Kind::ALL.len() as u32;
        let is_of_route = self.route_lists.has(bsid);
        let is_led_to = |kind: &&Kind| **kind != Kind::Binding || !is_of_route;
        for kind in policy.behavior.kinds().iter().filter(is_led_to) {
            let paths: Vec<Path> = if policy.spray {
                let slot = slots + *kind as u32;
                let entries = policy.lists.values().map(|list| list.made.entry(*kind)).collect();
                self.sprayed.publish(slot as usize, Some(entries));
                let (name, index) =
                    (kind.spray_node(matches!(policy.behavior, Behavior::Encaps(_))), slot);
                vec![Path::new(Target::Feature(Hop { next: node(engine, name)?, index }))]
            } else {
                let next = node(engine, policy.behavior.node(*kind))?;
                let hop = |list: &List| Hop { next, index: list.made.entry(*kind) };
                let path = |list: &List| Path::new(Target::Feature(hop(list))).weight(list.weight);
                policy.lists.values().map(path).collect()
            };
            let tables = self.tables(fib(engine)?).map_err(|no| refusal(engine, bsid, no))?;
            let table = tables.get(*kind as usize).copied().unwrap_or(policy.table);
            fib(engine)?
                .replace_route(table, host(bsid), Source::Feature, &paths)
                .map_err(|no| refusal(engine, bsid, no))?;
        }
        Ok(())
    }

    /// Workers find a policy no more.
    fn unpublish(&mut self, engine: &mut Engine, bsid: Ipv6Addr, policy: &Policy) {
        let Some(fib) = engine.get_mut::<Fib>() else { return };
        let is_of_route = self.route_lists.has(bsid);
        let is_led_to = |kind: &&Kind| **kind != Kind::Binding || !is_of_route;
        for kind in policy.behavior.kinds().iter().filter(is_led_to) {
            let own = self.own_table(*kind);
            // It is there, unless the policy was refused half-way.
            let _ = fib.remove_route(own.unwrap_or(policy.table), host(bsid), Source::Feature);
            let slot = policy.slot as usize * Kind::ALL.len() + *kind as usize;
            self.sprayed.publish(slot, None);
        }
    }

    /// May a binding SID stand there?
    pub fn check(&self, fib: &Fib, bsid: Ipv6Addr, table: u32) -> Result<(), Refusal> {
        if self.policies.contains_key(&bsid) || self.lent.contains(&bsid) {
            return Err(Refusal::new(format!("SR policy {bsid} exists already"))
                .remedy(format!("sr policy mod bsid {bsid} …, or sr policy del bsid {bsid}")));
        }
        if self.policies.len() >= POLICIES_MAX {
            let what = format!("there are {POLICIES_MAX} SR policies already");
            return Err(Refusal::new(what).remedy("delete some"));
        }
        let views = fib.route(table, host(bsid));
        // An address of the router itself goes before it, whichever came first.
        if views.iter().any(|view| view.source == Source::Feature) {
            let what = format!("{bsid} leads to another feature already");
            return Err(Refusal::new(what).remedy("choose another binding SID"));
        }
        Ok(())
    }

    /// Add a policy with its first list.
    pub fn add(
        &mut self,
        engine: &mut Engine,
        bsid: Ipv6Addr,
        New { behavior, spray, table, hmac, source, list }: New,
    ) -> Result<(), Refusal> {
        self.check(fib(engine)?, bsid, table)?;
        if matches!(behavior, Behavior::Encaps(_)) && source.unwrap_or(self.source).is_unspecified()
        {
            let what = "outer headers have no source address yet";
            return Err(Refusal::new(what).remedy("set sr encaps source addr ADDRESS"));
        }
        let Some(slot) = self.free_slots.pop() else { return Err(no_policy(bsid)) };
        let (lists, past) = (BTreeMap::new(), [0; 2]);
        let mut policy = Policy { behavior, spray, table, hmac, source, lists, slot, past };
        let done = self.make(engine, bsid, &policy, &list.path).and_then(|made| {
            let Wanted { path, weight } = list;
            policy.lists.insert(0, List { path, weight, made, past });
            self.publish(engine, bsid, &policy).inspect_err(|_| {
                self.unpublish(engine, bsid, &policy);
                self.unmake(engine, made);
            })
        });
        if let Err(refused) = done {
            self.free_slots.push(slot);
            return Err(refused);
        }
        if let Some(fib) = engine.get_mut::<Fib>() {
            fib.hold_table(Family::Ip6, table, HOLDER);
        }
        self.policies.insert(bsid, policy);
        Ok(())
    }

    /// Is nothing steered into it?
    pub fn check_unused(&self, engine: &Engine, bsid: Ipv6Addr) -> Result<(), Refusal> {
        if self.route_lists.has(bsid) {
            let what = format!("routes of Linux go by SR policy {bsid}");
            return Err(Refusal::new(what).remedy("delete them in Linux"));
        }
        if self.held.contains_key(&bsid) {
            let what = format!("a layer 2 tunnel sends by SR policy {bsid}");
            return Err(Refusal::new(what).remedy("`show sr l2-tunnels`, `set sr l2-tunnel`"));
        }
        match self.steerings.first_into(engine, bsid) {
            Some(what) => Err(Refusal::new(format!("{what} is steered into SR policy {bsid}"))
                .remedy(format!("sr steer del {what} via bsid {bsid}"))),
            None => Ok(()),
        }
    }

    /// Delete a policy that nothing is steered into.
    pub fn delete(&mut self, engine: &mut Engine, bsid: Ipv6Addr) -> Result<(), Refusal> {
        if !self.policies.contains_key(&bsid) {
            return Err(no_policy(bsid));
        }
        self.check_unused(engine, bsid)?;
        self.drop_policy(engine, bsid);
        Ok(())
    }

    /// Delete a policy, also one in use.
    pub fn drop_policy(&mut self, engine: &mut Engine, bsid: Ipv6Addr) {
        let Some(policy) = self.policies.remove(&bsid) else { return };
        self.lists_by_last = None;
        self.unpublish(engine, bsid, &policy);
        policy.lists.values().for_each(|list| {
            self.unmake(engine, list.made);
        });
        if let Some(fib) = engine.get_mut::<Fib>() {
            fib.release_table(Family::Ip6, policy.table, HOLDER);
        }
        self.free_slots.push(policy.slot);
    }

    /// Did the operator configure it?
    pub fn is_configured(&self, bsid: Ipv6Addr) -> bool {
        !self.route_lists.has(bsid) && !self.of_features.contains(&bsid)
    }

    /// Change the lists of a policy: workers go by the old ones or by the new ones. What is refused
    /// has changed nothing.
    fn change(
        &mut self,
        engine: &mut Engine,
        bsid: Ipv6Addr,
        change: impl FnOnce(&mut Self, &mut Engine, &mut Policy) -> Result<Undo, Refusal>,
    ) -> Result<(), Refusal> {
        let mut policy = self.policies.remove(&bsid).ok_or_else(|| no_policy(bsid))?;
        let done = change(self, engine, &mut policy).and_then(|undo| {
            let published = self.publish(engine, bsid, &policy);
            if published.is_ok() {
                if let Undo::Insert(_, gone) = undo {
                    policy.past =
                        plus(policy.past, plus(gone.past, self.unmake(engine, gone.made)));
                }
                return published;
            }
            match undo {
                Undo::Remove(number) => {
                    if let Some(list) = policy.lists.remove(&number) {
                        // The lists that were there before had room.
                        let _ = self.publish(engine, bsid, &policy);
                        self.unmake(engine, list.made);
                    }
                }
                Undo::Insert(number, list) => {
                    policy.lists.insert(number, list);
                    let _ = self.publish(engine, bsid, &policy);
                }
                Undo::Weight(number, weight) => {
                    if let Some(list) = policy.lists.get_mut(&number) {
                        list.weight = weight;
                    }
                    let _ = self.publish(engine, bsid, &policy);
                }
            }
            published
        });
        self.policies.insert(bsid, policy);
        done
    }

    /// Add a list to a policy.
    pub fn add_list(
        &mut self,
        engine: &mut Engine,
        bsid: Ipv6Addr,
        list: Wanted,
    ) -> Result<(), Refusal> {
        self.change(engine, bsid, |policies, engine, policy| {
            if policy.lists.len() >= LISTS_MAX {
                let what = format!("SR policy {bsid} has {LISTS_MAX} segment lists already");
                return Err(Refusal::new(what).remedy("delete one"));
            }
            let made = policies.make(engine, bsid, policy, &list.path)?;
            let number =
                (0..).find(|number| !policy.lists.contains_key(number)).unwrap_or_default();
            let Wanted { path, weight } = list;
            policy.lists.insert(number, List { path, weight, made, past: [0; 2] });
            Ok(Undo::Remove(number))
        })
    }

    /// Take a list from a policy; one must be left.
    pub fn delete_list(
        &mut self,
        engine: &mut Engine,
        bsid: Ipv6Addr,
        number: u32,
    ) -> Result<(), Refusal> {
        self.change(engine, bsid, |_, _, policy| {
            if policy.lists.len() == 1 && policy.lists.contains_key(&number) {
                let what = format!("segment list {number} is the last one of SR policy {bsid}");
                return Err(Refusal::new(what).remedy(format!("sr policy del bsid {bsid}")));
            }
            let list = policy.lists.remove(&number).ok_or_else(|| no_list(bsid, number))?;
            Ok(Undo::Insert(number, list))
        })
    }

    /// Give a list another weight.
    pub fn set_weight(
        &mut self,
        engine: &mut Engine,
        bsid: Ipv6Addr,
        number: u32,
        weight: u32,
    ) -> Result<(), Refusal> {
        self.change(engine, bsid, |_, _, policy| {
            let list = policy.lists.get_mut(&number).ok_or_else(|| no_list(bsid, number))?;
            Ok(Undo::Weight(number, std::mem::replace(&mut list.weight, weight)))
        })
    }

    /// Make all entries anew, by what outer headers are to have from now on. What is refused has
    /// changed nothing.
    pub fn make_all_anew(
        &mut self,
        engine: &mut Engine,
        which: impl Fn(&Policy) -> bool,
    ) -> Result<(), Refusal> {
        let mut made = Vec::new();
        let all: Vec<Ipv6Addr> = self
            .policies
            .iter()
            .filter(|(_, policy)| which(policy))
            .map(|(bsid, _)| *bsid)
            .collect();
        for bsid in &all {
            let Some(policy) = self.policies.remove(bsid) else { continue };
            let mut refused = None;
            for (number, list) in &policy.lists {
                match self.make(engine, *bsid, &policy, &list.path) {
                    Ok(new) => made.push((*bsid, *number, new)),
                    Err(no) => refused = Some(no),
                }
            }
            self.policies.insert(*bsid, policy);
            if let Some(refused) = refused {
                made.into_iter().for_each(|(.., new)| {
                    self.unmake(engine, new);
                });
                return Err(refused);
            }
        }
        let mut old = Vec::new();
        for (bsid, number, new) in made {
            let list =
                self.policies.get_mut(&bsid).and_then(|policy| policy.lists.get_mut(&number));
            old.extend(list.map(|list| (bsid, number, std::mem::replace(&mut list.made, new))));
        }
        for bsid in &all {
            let Some(policy) = self.policies.remove(bsid) else { continue };
            // As many paths as before, so there is room for them.
            let _ = self.publish(engine, *bsid, &policy);
            self.policies.insert(*bsid, policy);
        }
        for (bsid, number, made) in old {
            let past = self.unmake(engine, made);
            let list =
                self.policies.get_mut(&bsid).and_then(|policy| policy.lists.get_mut(&number));
            if let Some(list) = list {
                list.past = plus(list.past, past);
            }
        }
        Ok(())
    }
}

/// How a change of lists is taken back.
enum Undo {
    Remove(u32),
    Insert(u32, List),
    Weight(u32, u32),
}

fn node(engine: &Engine, name: &str) -> Result<quiver_core::NodeId, Refusal> {
    engine.node_id(name).ok_or_else(|| Refusal::new(format!("no node {name}")))
}
