//! Path lists: routes with the same paths share one, and with it one next-hop group.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use quiver_core::InterfaceId;
use quiver_tables::GroupId;
use quiver_tables::prefix::{Address, Prefix};

use super::adjacencies::AdjacencyKey;
use super::labels::LabelPlace;
use super::link::Link;
use super::next_hop_objects::NextHopObjectId;
use super::path::{Family, Path, Target};
use crate::next_hop_group::Hop;

/// What makes two path lists the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ListKey {
    /// The packets.
    pub payload: Link,
    /// The table that the list belongs to, where that matters: next hops without an interface are
    /// looked up in it, and it says what makes a flow when there are several paths; 0 elsewhere.
    pub table: u32,
    /// Is it a default route's? Then no other route shares it, so that who finds its group knows
    /// that nothing but the default route matched.
    pub of_default: bool,
    /// Sorted, each once.
    pub paths: Vec<Path>,
}

/// A next hop that is looked up in the FIB itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Tracked {
    pub family: Family,
    pub table: u32,
    pub address: IpAddr,
}

/// What a list's hops follow from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dependencies {
    pub adjacencies: BTreeSet<AdjacencyKey>,
    pub interfaces: BTreeSet<InterfaceId>,
    pub tracked: BTreeSet<Tracked>,
    pub objects: BTreeSet<NextHopObjectId>,
    pub labels: BTreeSet<LabelPlace>,
}

pub(super) struct PathList {
    pub key: Arc<ListKey>,
    /// Routes that hold it.
    pub routes: usize,
    pub hops: Vec<(Hop, u32)>,
    pub dependencies: Dependencies,
}

/// The interfaces that the paths of a list name.
fn named(key: &ListKey) -> impl Iterator<Item = InterfaceId> {
    key.paths.iter().filter_map(Path::named)
}

#[derive(Default)]
pub(super) struct PathLists {
    by_key: HashMap<Arc<ListKey>, GroupId>,
    /// Those that have a place in the table of groups, by it.
    lists: Vec<Option<PathList>>,
    /// Those whose group is their only hop.
    resolved: BTreeMap<GroupId, PathList>,
    tracked: BTreeMap<Tracked, BTreeSet<GroupId>>,
    by_interface: HashMap<InterfaceId, BTreeSet<GroupId>>,
    by_object: BTreeSet<(NextHopObjectId, GroupId)>,
    by_label: BTreeSet<(LabelPlace, GroupId)>,
    /// Lists by the interfaces that their paths name.
    naming: BTreeSet<(InterfaceId, GroupId)>,
    /// Lists that lost their last route; swept when a change is complete.
    orphans: Vec<GroupId>,
}

impl PathLists {
    pub fn find(&self, key: &ListKey) -> Option<GroupId> {
        self.by_key.get(key).copied()
    }

    pub fn get(&self, group: GroupId) -> Option<&PathList> {
        match group.is_resolved() {
            true => self.resolved.get(&group),
            false => self.lists.get(group.0 as usize)?.as_ref(),
        }
    }

    pub fn get_mut(&mut self, group: GroupId) -> Option<&mut PathList> {
        match group.is_resolved() {
            true => self.resolved.get_mut(&group),
            false => self.lists.get_mut(group.0 as usize)?.as_mut(),
        }
    }

    pub fn add(&mut self, group: GroupId, key: Arc<ListKey>, hops: Vec<(Hop, u32)>) {
        self.by_key.insert(key.clone(), group);
        self.naming.extend(named(&key).map(|interface| (interface, group)));
        let list = PathList { key, routes: 0, hops, dependencies: Dependencies::default() };
        if group.is_resolved() {
            self.resolved.insert(group, list);
        } else {
            let place = group.0 as usize;
            if self.lists.len() <= place {
                self.lists.resize_with(place + 1, || None);
            }
            self.lists[place] = Some(list);
        }
        self.orphans.push(group); // until a route takes it
    }

    fn take(&mut self, group: GroupId) -> Option<PathList> {
        match group.is_resolved() {
            true => self.resolved.remove(&group),
            false => self.lists.get_mut(group.0 as usize)?.take(),
        }
    }

    /// The group of a list, if that need not be a place in the table: its one path leads to a
    /// feature's node, which never becomes another one. A default route's is always one of its own,
    /// and so is that of a second list with the same hop.
    pub fn resolved(&self, key: &ListKey) -> Option<GroupId> {
        match key.paths[..] {
            [Path { target: Target::Feature(hop), .. }] if !key.of_default => {
                hop.resolved().filter(|group| self.get(*group).is_none())
            }
            _ => None,
        }
    }

    /// `count` routes more hold the list.
    pub fn hold(&mut self, group: GroupId, count: usize) {
        if let Some(list) = self.get_mut(group) {
            list.routes += count;
        }
    }

    /// A route holds the list no more.
    pub fn release(&mut self, group: GroupId) {
        if let Some(list) = self.get_mut(group) {
            list.routes -= 1;
            if list.routes == 0 {
                self.orphans.push(group);
            }
        }
    }

    /// Take out a list that no route holds, if there is one.
    pub fn take_orphan(&mut self) -> Option<(GroupId, PathList)> {
        while let Some(group) = self.orphans.pop() {
            if self.get(group).is_some_and(|list| list.routes == 0)
                && let Some(list) = self.take(group)
            {
                self.by_key.remove(&list.key);
                named(&list.key).for_each(|interface| {
                    self.naming.remove(&(interface, group));
                });
                return Some((group, list));
            }
        }
        None
    }

    /// Enter that `group` follows from `now` and no more from `before`.
    pub fn depend(&mut self, group: GroupId, before: &Dependencies, now: &Dependencies) {
        for tracked in now.tracked.difference(&before.tracked) {
            self.tracked.entry(*tracked).or_default().insert(group);
        }
        for interface in now.interfaces.difference(&before.interfaces) {
            self.by_interface.entry(*interface).or_default().insert(group);
        }
        for object in now.objects.difference(&before.objects) {
            self.by_object.insert((*object, group));
        }
        for object in before.objects.difference(&now.objects) {
            self.by_object.remove(&(*object, group));
        }
        for label in now.labels.difference(&before.labels) {
            self.by_label.insert((*label, group));
        }
        for label in before.labels.difference(&now.labels) {
            self.by_label.remove(&(*label, group));
        }
        for tracked in before.tracked.difference(&now.tracked) {
            if let Some(users) = self.tracked.get_mut(tracked)
                && users.remove(&group)
                && users.is_empty()
            {
                self.tracked.remove(tracked);
            }
        }
        for interface in before.interfaces.difference(&now.interfaces) {
            if let Some(users) = self.by_interface.get_mut(interface)
                && users.remove(&group)
                && users.is_empty()
            {
                self.by_interface.remove(interface);
            }
        }
    }

    /// Lists with this tracked next hop.
    pub fn tracking(&self, tracked: &Tracked) -> Vec<GroupId> {
        self.tracked.get(tracked).into_iter().flatten().copied().collect()
    }

    /// Lists with a tracked next hop inside one of these prefixes of a table, which come in
    /// ascending order and are `count` at most.
    pub fn tracked_under<A: Address>(
        &self,
        family: Family,
        table: u32,
        prefixes: impl Iterator<Item = Prefix<A>>,
        count: usize,
    ) -> Vec<GroupId> {
        let at = |address: A| Tracked { family, table, address: address.ip() };
        let mut users: Vec<GroupId> = Vec::new();
        if self.tracked.is_empty() {
            return users;
        }
        if self.tracked.len() > count {
            for prefix in prefixes {
                let inside = self.tracked.range(at(prefix.first())..=at(prefix.last()));
                users.extend(inside.flat_map(|(_, users)| users));
            }
        } else {
            // Fewer next hops than prefixes: go through both once.
            let here = self.tracked.range(at(A::ZERO)..=at(A::MAX));
            let here: Vec<_> = here
                .filter_map(|(tracked, users)| Some((A::from_ip(tracked.address)?, users)))
                .collect();
            let mut next = 0;
            for prefix in prefixes {
                while here.get(next).is_some_and(|(address, _)| *address < prefix.first()) {
                    next += 1;
                }
                let inside =
                    here[next..].iter().take_while(|(address, _)| *address <= prefix.last());
                users.extend(inside.flat_map(|(_, users)| *users));
            }
        }
        users.sort_unstable();
        users.dedup();
        users
    }

    /// Lists whose hops follow from this interface.
    pub fn on(&self, interface: InterfaceId) -> Vec<GroupId> {
        self.by_interface
            .get(&interface)
            .map_or_else(Vec::new, |users| users.iter().copied().collect())
    }

    /// Lists whose hops follow from this next-hop object.
    pub fn of_object(&self, id: NextHopObjectId) -> Vec<GroupId> {
        let all = (id, GroupId(0))..=(id, GroupId(u32::MAX));
        self.by_object.range(all).map(|(_, group)| *group).collect()
    }

    /// Lists whose hops follow from the route of this label.
    pub fn of_label(&self, place: LabelPlace) -> Vec<GroupId> {
        let all = (place, GroupId(0))..=(place, GroupId(u32::MAX));
        self.by_label.range(all).map(|(_, group)| *group).collect()
    }

    /// Lists with a path that names this interface.
    pub fn naming(&self, interface: InterfaceId) -> impl Iterator<Item = GroupId> {
        let all = (interface, GroupId(0))..=(interface, GroupId(u32::MAX));
        self.naming.range(all).map(|(_, group)| *group)
    }

    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// All lists, by group.
    pub fn iter(&self) -> impl Iterator<Item = (GroupId, &PathList)> {
        self.from(GroupId(0))
    }

    /// Those whose group is `first` or higher. Groups without a place are the highest.
    pub fn from(&self, first: GroupId) -> impl Iterator<Item = (GroupId, &PathList)> {
        let lists = self.lists.iter().enumerate().skip(first.0 as usize);
        let placed =
            lists.filter_map(|(index, list)| Some((GroupId(index as u32), list.as_ref()?)));
        placed.chain(self.resolved.range(first..).map(|(group, list)| (*group, list)))
    }
}
