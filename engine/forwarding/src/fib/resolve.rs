//! From paths to hops: which adjacency or node each path comes down to now.

use std::net::IpAddr;

use quiver_core::InterfaceId;
use quiver_tables::GroupId;

use super::adjacencies::{AdjacencyBook, AdjacencyKey, Surroundings};
use super::explain::Unusable;
use super::families::Families;
use super::nodes::{LOCAL_ROUTE_INDEX, PROHIBIT_INDEX, UNREACHABLE_INDEX};
use super::path::{Family, Only, Path, Source, Target};
use super::path_list::{Dependencies, ListKey, PathLists, Tracked};
use super::stacks::Stack;
use crate::next_hop_group::{Hop, PATHS_MAX};

/// Next hops behind next hops, at most: deeper than networks nest them, shallow enough to walk.
pub const RECURSION_MAX: usize = 8;
/// Weights are kept in fractions of this while next hops unfold.
const WEIGHT_ONE: u64 = 1 << 20;

/// Gives hops for adjacencies: the book makes them, a look alone does not.
pub(super) trait Hops {
    /// The hop for `key`; none if the interface cannot send, or there is no room.
    fn hop(&mut self, key: AdjacencyKey, around: &Surroundings<'_>) -> Option<Hop>;
}

impl Hops for AdjacencyBook {
    fn hop(&mut self, key: AdjacencyKey, around: &Surroundings<'_>) -> Option<Hop> {
        AdjacencyBook::hop(self, key, around)
    }
}

pub(super) struct Resolver<'a, H> {
    pub around: Surroundings<'a>,
    pub families: &'a Families,
    pub lists: &'a PathLists,
    pub adjacencies: &'a mut H,
    pub dependencies: Dependencies,
    /// Lists that are being walked, to notice a loop.
    walk: Vec<GroupId>,
    /// Routes that are being walked through: next hops behind each other.
    depth: usize,
}

/// Whose paths are resolved, and for whom.
#[derive(Clone, Copy)]
pub(super) struct Scope {
    payload: Family,
    /// The table whose paths these are, and its family.
    family: Family,
    table: u32,
    /// The next hop that is sought, when a covering route's paths are walked.
    sought: Option<IpAddr>,
}

impl Scope {
    /// For the paths of a list themselves.
    pub fn of(key: &ListKey) -> Scope {
        Scope { payload: key.payload, family: key.payload, table: key.table, sought: None }
    }
}

/// Must a neighbour be alive to be used?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Liveness {
    /// Yes: what is sent by it goes on behind it.
    Needed,
    /// No: what is sent is for the neighbour itself, or for all on the link.
    Any,
}

/// Weighted hops, or why there are none.
type Found = Result<Vec<(Hop, u64)>, Unusable>;

impl<'a, H: Hops> Resolver<'a, H> {
    pub fn new(
        around: Surroundings<'a>,
        families: &'a Families,
        lists: &'a PathLists,
        adjacencies: &'a mut H,
    ) -> Self {
        Resolver {
            around,
            families,
            lists,
            adjacencies,
            dependencies: Dependencies::default(),
            walk: Vec::new(),
            depth: 0,
        }
    }

    /// `own` is being walked from now on: a path that comes back to it is a loop.
    pub fn enter(&mut self, own: Option<GroupId>) {
        self.walk.extend(own);
    }

    /// The weighted hops of `key`, at least one: a drop if nothing can be used.
    pub fn hops(&mut self, key: &ListKey, own: Option<GroupId>) -> Vec<(Hop, u32)> {
        self.enter(own);
        let mut hops = merge(self.usable(&key.paths, Scope::of(key)).unwrap_or_default());
        if hops.is_empty() {
            hops.push((Hop { next: self.around.nodes.of(key.payload).drop, index: 0 }, 1));
        }
        hops
    }

    /// The hops of the most preferred paths that have any.
    fn usable(&mut self, paths: &[Path], scope: Scope) -> Found {
        let mut why = Unusable::NoPath;
        for level in paths.chunk_by(|a, b| a.preference == b.preference) {
            let mut hops = Vec::new();
            for path in level {
                let found = match self.path(path.target, scope) {
                    Ok(found) => found,
                    Err(unusable) => {
                        why = unusable;
                        continue;
                    }
                };
                let total: u64 = found.iter().map(|(_, weight)| weight).sum();
                let share = |weight: u64| {
                    (u128::from(weight) * u128::from(path.weight) * u128::from(WEIGHT_ONE)
                        / u128::from(total.max(1))) as u64
                };
                hops.extend(found.into_iter().map(|(hop, weight)| (hop, share(weight).max(1))));
            }
            if !hops.is_empty() {
                hops.truncate(PATHS_MAX);
                return Ok(shrink(hops));
            }
        }
        Err(why)
    }

    /// What one path comes down to.
    pub fn path(&mut self, target: Target, scope: Scope) -> Found {
        let nodes = self.around.nodes.of(scope.payload);
        let own = |next, index| Ok(vec![(Hop { next, index }, 1)]);
        match target {
            Target::Via { next_hop, interface: Some(interface) } => {
                self.adjacency(interface, Some(next_hop), scope.payload, Liveness::Needed)
            }
            Target::Neighbour { address, interface } => {
                let needed = if scope.sought.is_some() { Liveness::Needed } else { Liveness::Any };
                self.adjacency(interface, Some(address), scope.payload, needed)
            }
            Target::Via { next_hop, interface: None } => self.recurse(next_hop, None, None, scope),
            Target::Through { next_hop, table, only } => self.recurse(next_hop, table, only, scope),
            Target::Attached(interface) => {
                self.adjacency(interface, scope.sought, scope.payload, Liveness::Needed)
            }
            // A next hop that the router itself has, or that is dropped, forwards nothing.
            Target::Local | Target::InterfaceAddress if scope.sought.is_some() => {
                Err(Unusable::NextHopIsOurs)
            }
            Target::Drop
            | Target::Unreachable
            | Target::Prohibit
            | Target::Punt
            | Target::LookupIn { .. }
            | Target::SourceLookupIn { .. }
            | Target::InterfaceRx(_)
            | Target::Broadcast { .. }
                if scope.sought.is_some() =>
            {
                Err(Unusable::NextHopDies)
            }
            Target::Broadcast { interface, forward } => {
                self.dependencies.interfaces.insert(interface);
                let known = self.around.interfaces.get(&interface);
                if known.is_none_or(|on| on.info.mac.is_none()) {
                    // nothing can be sent to all on a line with one other end
                    return own(nodes.drop, 0);
                }
                let to = forward.then(|| IpAddr::from([u8::MAX; 4]));
                let mut hops = self.adjacency(interface, to, scope.payload, Liveness::Any)?;
                hops.iter_mut().for_each(|(hop, _)| hop.next = self.around.nodes.ip4_broadcast);
                Ok(hops)
            }
            Target::Local => own(nodes.local, LOCAL_ROUTE_INDEX),
            Target::InterfaceAddress => own(nodes.local, 0),
            Target::Drop => own(nodes.drop, 0),
            Target::Unreachable => own(nodes.drop, UNREACHABLE_INDEX),
            Target::Prohibit => own(nodes.drop, PROHIBIT_INDEX),
            Target::Punt => own(nodes.punt, 0),
            Target::LookupIn { family, table } => own(self.around.nodes.of(family).lookup, table),
            Target::SourceLookupIn { family, table } => {
                own(self.around.nodes.of(family).source_lookup, table)
            }
            Target::InterfaceRx(interface) => {
                self.dependencies.interfaces.insert(interface);
                match self.around.interfaces.get(&interface).is_some_and(|on| on.info.up) {
                    true => own(nodes.interface_rx, interface.0),
                    false => Err(Unusable::InterfaceDown(interface)),
                }
            }
            Target::NextHopObject(id) => {
                self.dependencies.objects.insert(id);
                let objects = self.around.objects;
                self.usable(objects.paths(id), scope)
            }
            Target::Feature(hop) => Ok(vec![(hop, 1)]),
        }
    }

    fn adjacency(
        &mut self,
        interface: InterfaceId,
        next_hop: Option<IpAddr>,
        payload: Family,
        liveness: Liveness,
    ) -> Found {
        self.dependencies.interfaces.insert(interface);
        let on = self.around.interfaces.get(&interface);
        let stacks = self.around.stacks;
        if stacks.lead_back(interface, next_hop, &self.walk, self.lists) {
            return Err(Unusable::TunnelLoop(interface));
        }
        let has_neighbours = on.is_some_and(|on| on.info.mac.is_some())
            || stacks.on(interface).is_some_and(Stack::is_multipoint);
        let key =
            AdjacencyKey { interface, payload, next_hop: next_hop.filter(|_| has_neighbours) };
        let Some(hop) = self.adjacencies.hop(key, &self.around) else {
            let is_up = on.is_some_and(|on| on.info.up);
            return Err(if is_up {
                Unusable::NoAdjacency
            } else {
                Unusable::InterfaceDown(interface)
            });
        };
        self.dependencies.adjacencies.insert(key);
        match next_hop {
            Some(address)
                if liveness == Liveness::Needed
                    && self.around.dead.contains(&(Some(interface), address)) =>
            {
                Err(Unusable::NeighbourDown(interface, address))
            }
            _ => Ok(vec![(hop, 1)]),
        }
    }

    /// What the route that covers `next_hop` does with it.
    fn recurse(
        &mut self,
        next_hop: IpAddr,
        asked: Option<u32>,
        only: Option<Only>,
        scope: Scope,
    ) -> Found {
        // Tables of the two families have nothing to do with each other but for the first ones.
        let family = Family::of(next_hop);
        let table = asked.unwrap_or(if family == scope.family { scope.table } else { 0 });
        let tracked = Tracked { family, table, address: next_hop };
        self.dependencies.tracked.insert(tracked);
        let carries_liveness = asked == Some(0) && only.is_none();
        if table == 0 && !carries_liveness && self.around.dead.contains(&(None, next_hop)) {
            return Err(Unusable::NextHopDown(next_hop));
        }
        let cover =
            self.families.cover(tracked.table, next_hop).ok_or(Unusable::NoRoute(next_hop))?;
        if self.walk.contains(&cover.group) {
            return Err(Unusable::Loop(next_hop));
        }
        if self.depth >= RECURSION_MAX {
            return Err(Unusable::TooDeep);
        }
        let lists = self.lists;
        let list = lists.get(cover.group).ok_or(Unusable::NoRoute(next_hop))?;
        let attached = |path: &Path| matches!(path.target, Target::Attached(_));
        match only {
            Some(Only::Host) if !cover.is_host => return Err(Unusable::NotHost(next_hop)),
            Some(Only::Attached)
                if cover.source != Source::Neighbour && !list.key.paths.iter().all(attached) =>
            {
                return Err(Unusable::NotAttached(next_hop));
            }
            _ => {}
        }
        self.walk.push(cover.group);
        self.depth += 1;
        let scope =
            Scope { payload: scope.payload, family, table: list.key.table, sought: Some(next_hop) };
        let hops = self.usable(&list.key.paths, scope);
        self.walk.pop();
        self.depth -= 1;
        hops
    }
}

/// Divide by the greatest common divisor, so that weights stay exact and small.
fn shrink(mut hops: Vec<(Hop, u64)>) -> Vec<(Hop, u64)> {
    let divisor = hops.iter().fold(0, |divisor, (_, weight)| gcd(divisor, *weight)).max(1);
    hops.iter_mut().for_each(|(_, weight)| *weight /= divisor);
    hops
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Each hop once, with the sum of its weights, brought into 32 bits.
fn merge(hops: Vec<(Hop, u64)>) -> Vec<(Hop, u32)> {
    let mut merged: Vec<(Hop, u64)> = Vec::with_capacity(hops.len());
    for (hop, weight) in hops {
        match merged.iter_mut().find(|(known, _)| *known == hop) {
            Some((_, sum)) => *sum += weight,
            None => merged.push((hop, weight)),
        }
    }
    let merged = shrink(merged);
    let largest = merged.iter().map(|(_, weight)| *weight).max().unwrap_or(1);
    let shift = (64 - largest.leading_zeros()).saturating_sub(31);
    merged.into_iter().map(|(hop, weight)| (hop, (weight >> shift).max(1) as u32)).collect()
}
