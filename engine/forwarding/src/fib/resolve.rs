//! From paths to hops: which adjacency or node each path comes down to now.

use std::net::IpAddr;

use quiver_core::InterfaceId;
use quiver_tables::GroupId;

use super::adjacencies::{AdjacencyBook, AdjacencyKey, Surroundings};
use super::explain::Unusable;
use super::families::Families;
use super::labels::{LabelKey, LabelPlace};
use super::link::Link;
use super::nodes::{LOCAL_ROUTE_INDEX, POPPED_UNIFORM, PROHIBIT_INDEX, UNREACHABLE_INDEX};
use super::path::{Family, Only, Path, Source, Target};
use super::path_list::{Dependencies, ListKey, PathLists, Tracked};
use super::stacks::Stack;
use crate::next_hop_group::{Hop, PATHS_MAX};
use crate::out_labels::{LabelMode, OutLabels};

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
    payload: Link,
    /// The labels that the packets have got so far.
    labels: OutLabels,
    /// The table whose paths these are, and its family.
    family: Family,
    table: u32,
    /// The next hop that is sought, when a covering route's paths are walked.
    sought: Option<IpAddr>,
}

impl Scope {
    /// For the paths of a list themselves.
    pub fn of(key: &ListKey) -> Scope {
        // The next hops of labels are looked up in the first tables.
        let family = key.payload.family();
        let (family, table) = family.map_or((Family::Ip4, 0), |family| (family, key.table));
        Scope { payload: key.payload, labels: OutLabels::NONE, family, table, sought: None }
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
            let next = self.around.nodes.drop_of(key.payload, self.around.label_nodes);
            hops.push((Hop { next, index: 0 }, 1));
        }
        hops
    }

    /// The hops of the most preferred paths that have any.
    fn usable(&mut self, paths: &[Path], scope: Scope) -> Found {
        let mut why = Unusable::NoPath;
        for level in paths.chunk_by(|a, b| a.preference == b.preference) {
            let mut hops = Vec::new();
            for path in level {
                let found = match self.path(path, scope) {
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
    pub fn path(&mut self, path: &Path, scope: Scope) -> Found {
        let labels = path.labels.in_front_of(scope.labels).ok_or(Unusable::TooManyLabels)?;
        let scope = Scope { labels, ..scope };
        if scope.sought.is_none()
            && scope.payload.family().is_none()
            && let Some(found) = self.end_of_label(path.target, labels.mode(), scope.payload)
        {
            return found;
        }
        self.target(path.target, scope)
    }

    /// What a path comes down to that takes the last label off inside of the router, or drops.
    fn end_of_label(&mut self, target: Target, mode: LabelMode, payload: Link) -> Option<Found> {
        let popped = if mode == LabelMode::Uniform { POPPED_UNIFORM } else { 0 };
        let own = |next, index| Some(Ok(vec![(Hop { next, index }, 1)]));
        let Some(nodes) = self.around.label_nodes else { return Some(Err(Unusable::NoLabels)) };
        match target {
            Target::LookupIn { family, table } => {
                own(nodes.pop_lookup[family as usize], table | popped)
            }
            Target::LabelLookupIn { table } => own(nodes.lookup, table | popped),
            Target::InterfaceRx(interface) | Target::FrameRx(interface) => {
                self.dependencies.interfaces.insert(interface);
                if !self.around.interfaces.get(&interface).is_some_and(|on| on.info.up) {
                    return Some(Err(Unusable::InterfaceDown(interface)));
                }
                let is_frame = matches!(target, Target::FrameRx(_));
                own(if is_frame { nodes.frame_rx } else { nodes.interface_rx }, interface.0)
            }
            Target::Drop => own(self.around.nodes.drop_of(payload, Some(nodes)), 0),
            _ => None,
        }
    }

    fn target(&mut self, target: Target, scope: Scope) -> Found {
        let nodes = self.around.nodes.of(scope.payload.family().unwrap_or(Family::Ip4));
        let own = |next, index| Ok(vec![(Hop { next, index }, 1)]);
        match target {
            Target::Via { next_hop, interface: Some(interface) } => {
                self.adjacency(interface, Some(next_hop), scope, Liveness::Needed)
            }
            Target::Neighbour { address, interface } => {
                let needed = if scope.sought.is_some() { Liveness::Needed } else { Liveness::Any };
                self.adjacency(interface, Some(address), scope, needed)
            }
            Target::ThroughLabel { label, table } => self.through_label(label, table, scope),
            Target::Via { next_hop, interface: None } => self.recurse(next_hop, None, None, scope),
            Target::Through { next_hop, table, only } => self.recurse(next_hop, table, only, scope),
            Target::Attached(interface) => {
                self.adjacency(interface, scope.sought, scope, Liveness::Needed)
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
            | Target::FrameRx(_)
            | Target::LabelLookupIn { .. }
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
                let mut hops = self.adjacency(interface, to, scope, Liveness::Any)?;
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
            // A feature takes packets as they are.
            Target::Feature(_) if !scope.labels.is_empty() => Err(Unusable::NextHopDies),
            Target::Feature(_) if scope.payload.family().is_none() && scope.sought.is_some() => {
                Err(Unusable::NextHopDies)
            }
            Target::Feature(hop) => Ok(vec![(hop, 1)]),
            // No path of other packets has these.
            Target::FrameRx(_) | Target::LabelLookupIn { .. } => Err(Unusable::NextHopDies),
        }
    }

    fn adjacency(
        &mut self,
        interface: InterfaceId,
        next_hop: Option<IpAddr>,
        Scope { payload, labels, .. }: Scope,
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
        let next_hop_there = next_hop.filter(|_| has_neighbours);
        let is_plain = labels.is_empty() && payload.family().is_some();
        let labels = if is_plain { OutLabels::NONE } else { labels };
        let key = AdjacencyKey { interface, payload, next_hop: next_hop_there, labels };
        if key.is_labelled() {
            if self.around.label_nodes.is_none() {
                return Err(Unusable::NoLabels);
            }
            let sends = on.is_some_and(|on| on.info.mac.is_some());
            if !sends || next_hop.is_none() || stacks.on(interface).is_some() {
                return Err(Unusable::NoLabelsOn(interface));
            }
            self.wait_at(key);
        }
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

    /// Packets that wait for the neighbour of a labelled adjacency go on by others, as they are.
    fn wait_at(&mut self, key: AdjacencyKey) {
        let is_popped = key.payload == (Link::Label { is_bottom: true }) && key.labels.is_empty();
        let links: &[Link] = if is_popped { &[Link::Ip4, Link::Ip6] } else { &[Link::Mpls] };
        for payload in links {
            let plain = AdjacencyKey { payload: *payload, labels: OutLabels::NONE, ..key };
            if self.adjacencies.hop(plain, &self.around).is_some() {
                self.dependencies.adjacencies.insert(plain);
            }
        }
    }

    /// What the route of a label does with packets that do not have that label.
    fn through_label(&mut self, label: u32, table: u32, scope: Scope) -> Found {
        let has_labels_behind =
            matches!(scope.payload, Link::Mpls | Link::Label { is_bottom: false });
        let is_bottom = scope.labels.is_empty() && !has_labels_behind;
        let place = LabelPlace { table, key: LabelKey { label, is_bottom } };
        self.dependencies.labels.insert(place);
        let unknown = Unusable::NoLabelRoute(label);
        let group = self.around.label_routes.best(place).ok_or(unknown)?;
        if self.walk.contains(&group) {
            return Err(Unusable::TooDeep);
        }
        let lists = self.lists;
        let list = lists.get(group).ok_or(unknown)?;
        let nobody = IpAddr::from([0; 4]);
        self.walk_through(
            group,
            &list.key.paths,
            Scope { family: Family::Ip4, table: 0, sought: Some(nobody), ..scope },
        )
    }

    /// What the paths of a covering route come down to.
    fn walk_through(&mut self, group: GroupId, paths: &[Path], scope: Scope) -> Found {
        if self.depth >= RECURSION_MAX {
            return Err(Unusable::TooDeep);
        }
        self.walk.push(group);
        self.depth += 1;
        let hops = self.usable(paths, scope);
        self.walk.pop();
        self.depth -= 1;
        hops
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
        let scope = Scope { family, table: list.key.table, sought: Some(next_hop), ..scope };
        self.walk_through(cover.group, &list.key.paths, scope)
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
