//! The routes of labels (RFC 3031 §3.10, the incoming label map): tables of labels, and what each
//! source says of a label.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quiver_tables::GroupId;
use quiver_tables::memory::{MemoryError, Pages, Reserved};
use quiver_wire::mpls::{LABEL_MAX, special};

use super::link::Link;
use super::path::{Path, Source};
use super::path_list::{ListKey, PathList};
use super::routes::everything_of;
use super::{Fib, FibError, LabelNodes};
use crate::next_hop_group::Hop;

/// Label tables at most: 256 MB of address space, committed as used.
pub const LABEL_TABLES_MAX: usize = 32;
/// Entries of a table: each label as the last one of a stack, and in front of others.
const ENTRIES: usize = (LABEL_MAX as usize + 1) * 2;

/// A label, and whether it is the last one of the stack: the two have routes of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelKey {
    /// Its value, 20 bits.
    pub label: u32,
    /// Is it the last one?
    pub is_bottom: bool,
}

impl LabelKey {
    /// Packets whose top label it is.
    fn link(self) -> Link {
        Link::Label { is_bottom: self.is_bottom }
    }
}

/// A label of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct LabelPlace {
    /// The table's small number.
    pub table: u32,
    pub key: LabelKey,
}

/// The label tables as workers read them: plain arrays of groups.
pub struct LabelTables {
    entries: Reserved<AtomicU32>,
}

impl LabelTables {
    /// The place of the top label of a stack: 20 bits of label, and the bottom bit.
    #[inline(always)]
    pub const fn place(entry_bits: u32) -> u32 {
        (entry_bits >> 12) << 1 | (entry_bits >> 8) & 1
    }

    /// The group of a [`place`](Self::place) of a table; group 0 when the label has no route there.
    #[inline(always)]
    pub fn get(&self, table: u32, place: u32) -> GroupId {
        let at = table as usize * ENTRIES + place as usize;
        GroupId(self.entries.get(at).load(Ordering::Acquire))
    }

    /// Bytes in memory.
    pub fn resident_bytes(&self) -> usize {
        self.entries.resident_bytes()
    }

    fn at(&self, place: LabelPlace) -> &AtomicU32 {
        let entry = (place.key.label as usize) << 1 | usize::from(place.key.is_bottom);
        self.entries.get(place.table as usize * ENTRIES + entry)
    }
}

/// The routes of one table, the winning source of each label in front.
#[derive(Debug, Default)]
struct Table {
    /// The operator's number.
    id: u32,
    routes: BTreeMap<LabelKey, Vec<(Source, GroupId)>>,
}

/// All routes of labels, on the control thread.
pub(super) struct LabelRoutes {
    space: Arc<LabelTables>,
    tables: Vec<Option<Table>>,
}

impl LabelRoutes {
    pub fn new() -> Result<Self, MemoryError> {
        let entries = LABEL_TABLES_MAX * ENTRIES;
        let entries = Reserved::new("label tables", entries, Pages::Small)?;
        Ok(LabelRoutes { space: Arc::new(LabelTables { entries }), tables: Vec::new() })
    }

    fn table(&self, index: u32) -> Option<&Table> {
        self.tables.get(index as usize)?.as_ref()
    }

    pub fn exists(&self, index: u32) -> bool {
        self.table(index).is_some()
    }

    fn said(&self, place: LabelPlace) -> &[(Source, GroupId)] {
        let routes = self.table(place.table).and_then(|table| table.routes.get(&place.key));
        routes.map_or(&[], Vec::as_slice)
    }

    /// The group of the route that packets take.
    pub fn best(&self, place: LabelPlace) -> Option<GroupId> {
        self.said(place).first().map(|(_, group)| *group)
    }

    /// Let `source` say `group` of a label, or nothing; returns what it said before.
    fn set(
        &mut self,
        place: LabelPlace,
        source: Source,
        group: Option<GroupId>,
    ) -> Option<GroupId> {
        let table = self.tables.get_mut(place.table as usize)?.as_mut()?;
        let said = table.routes.entry(place.key).or_default();
        let known = said.iter().position(|(who, _)| *who == source);
        let before = known.map(|at| said.remove(at).1);
        said.extend(group.map(|group| (source, group)));
        said.sort_unstable();
        let best = said.first().map_or(0, |(_, group)| group.0);
        if said.is_empty() {
            table.routes.remove(&place.key);
        }
        self.space.at(place).store(best, Ordering::Release);
        before
    }
}

/// What one source says of a label.
#[derive(Clone, Copy, Debug)]
pub struct LabelRouteView<'f> {
    /// The label.
    pub key: LabelKey,
    /// The source.
    pub source: Source,
    /// Does the data plane follow it?
    pub best: bool,
    /// The group that stands for its paths.
    pub group: GroupId,
    /// Its paths, as given.
    pub paths: &'f [Path],
    /// What they come down to now, with weights.
    pub hops: &'f [(Hop, u32)],
}

/// How a route of a label is changed.
#[derive(Clone, Copy)]
enum LabelChange<'a> {
    Add(&'a [Path]),
    Replace(&'a [Path]),
    RemovePaths(&'a [Path]),
    Remove,
}

impl Fib {
    /// The label tables, for workers.
    pub fn label_tables(&self) -> &Arc<LabelTables> {
        &self.labels.space
    }

    /// Let these nodes handle labels from now on.
    pub fn set_label_nodes(&mut self, nodes: LabelNodes) {
        self.label_nodes = Some(nodes);
        let all: Vec<GroupId> = self.lists.iter().map(|(group, _)| group).collect();
        self.resolve_again(all);
    }

    /// Add a label table with the operator's number `id`; returns its small number.
    ///
    /// # Errors
    /// The number is taken, or there is no table left.
    pub fn add_label_table(&mut self, id: u32) -> Result<u32, FibError> {
        if self.label_table_index(id).is_some() {
            return Err(FibError::LabelTableExists(id));
        }
        let tables = &mut self.labels.tables;
        let index = tables.iter().position(Option::is_none).unwrap_or(tables.len());
        if index >= LABEL_TABLES_MAX {
            return Err(FibError::LabelTablesFull);
        }
        tables.resize_with(tables.len().max(index + 1), || None);
        tables[index] = Some(Table { id, routes: BTreeMap::new() });
        Ok(index as u32)
    }

    /// Delete a label table with all its routes. No route may look up in it from elsewhere, and no
    /// interface may be in it: its owner sees to that.
    ///
    /// # Errors
    /// There is no such table, or it is in use.
    pub fn delete_label_table(&mut self, id: u32) -> Result<(), FibError> {
        let index = self.label_table_index(id).ok_or(FibError::NoLabelTable(id))?;
        let own: Vec<GroupId> = self.label_groups(index).collect();
        let names = |(group, list): (GroupId, &PathList)| {
            let is_held = list.routes > own.iter().filter(|known| **known == group).count();
            is_held && list.key.paths.iter().any(|path| path.looks_in_labels(index))
        };
        if self.lists.iter().any(names) {
            return Err(FibError::LabelTableInUse {
                id,
                user: "a route that looks up in it".into(),
            });
        }
        let table = self.labels.tables[index as usize].take().unwrap_or_default();
        for (key, said) in table.routes {
            let place = LabelPlace { table: index, key };
            self.labels.space.at(place).store(0, Ordering::Release);
            said.into_iter().for_each(|(_, group)| self.lists.release(group));
        }
        // What is given back reads as no route, as what stands there now does.
        let first = index as usize * ENTRIES;
        self.labels.space.entries.release(first..first + ENTRIES);
        self.sweep();
        Ok(())
    }

    fn label_groups(&self, table: u32) -> impl Iterator<Item = GroupId> {
        let routes = self.labels.table(table).into_iter().flat_map(|table| table.routes.values());
        routes.flatten().map(|(_, group)| *group)
    }

    /// The small number of the operator's label table `id`.
    pub fn label_table_index(&self, id: u32) -> Option<u32> {
        let all = self.labels.tables.iter();
        all.enumerate()
            .find(|(_, table)| table.as_ref().is_some_and(|table| table.id == id))
            .map(|(index, _)| index as u32)
    }

    /// The operator's number of the label table with this small number.
    pub fn label_table_id(&self, index: u32) -> Option<u32> {
        self.labels.table(index).map(|table| table.id)
    }

    /// The operator's label tables in order: their numbers, and their small numbers.
    pub fn label_table_numbers(&self) -> Vec<(u32, u32)> {
        let all = self.labels.tables.iter().enumerate();
        let mut all: Vec<_> =
            all.filter_map(|(at, table)| Some((table.as_ref()?.id, at as u32))).collect();
        all.sort_unstable();
        all
    }

    /// Add paths to the route that `source` gives for a label; the route is made if need be.
    ///
    /// # Errors
    /// The table does not exist, the label has a meaning of its own, a path is invalid, or a table
    /// is full. Nothing changes then.
    pub fn add_label_route(
        &mut self,
        table: u32,
        key: LabelKey,
        source: Source,
        paths: &[Path],
    ) -> Result<(), FibError> {
        self.change_label(LabelPlace { table, key }, source, LabelChange::Add(paths))
    }

    /// Make `paths` the only ones of the route that `source` gives for a label.
    ///
    /// # Errors
    /// As for [`add_label_route`](Self::add_label_route).
    pub fn replace_label_route(
        &mut self,
        table: u32,
        key: LabelKey,
        source: Source,
        paths: &[Path],
    ) -> Result<(), FibError> {
        self.change_label(LabelPlace { table, key }, source, LabelChange::Replace(paths))
    }

    /// Take paths from the route that `source` gives for a label; without any left it goes.
    ///
    /// # Errors
    /// The table, the route or a path does not exist.
    pub fn remove_label_paths(
        &mut self,
        table: u32,
        key: LabelKey,
        source: Source,
        paths: &[Path],
    ) -> Result<(), FibError> {
        self.change_label(LabelPlace { table, key }, source, LabelChange::RemovePaths(paths))
    }

    /// Remove the route that `source` gives for a label.
    ///
    /// # Errors
    /// The table or the route does not exist.
    pub fn remove_label_route(
        &mut self,
        table: u32,
        key: LabelKey,
        source: Source,
    ) -> Result<(), FibError> {
        self.change_label(LabelPlace { table, key }, source, LabelChange::Remove)
    }

    fn change_label(
        &mut self,
        place: LabelPlace,
        source: Source,
        change: LabelChange<'_>,
    ) -> Result<(), FibError> {
        let done = self.try_change_label(place, source, change);
        self.sweep();
        done
    }

    fn try_change_label(
        &mut self,
        place: LabelPlace,
        source: Source,
        change: LabelChange<'_>,
    ) -> Result<(), FibError> {
        let LabelPlace { table, key } = place;
        if !self.labels.exists(table) {
            return Err(FibError::NoLabelTableIndex(table));
        }
        if key.label > LABEL_MAX || key.label <= special::LAST {
            return Err(FibError::BadLabel(key.label));
        }
        let said = self.labels.said(place).iter().find(|(who, _)| *who == source);
        let before = said.map(|(_, group)| *group);
        let any = everything_of(key.link());
        let gone = FibError::NoLabelRoute(key.label);
        let paths = match (change, before) {
            (LabelChange::Add(new), Some(old)) => self.union(old, new),
            (LabelChange::Add(new), None) | (LabelChange::Replace(new), _) => new.to_vec(),
            (LabelChange::RemovePaths(paths), Some(old)) => self.left(any, old, paths)?,
            (LabelChange::Remove, Some(_)) => Vec::new(),
            (LabelChange::RemovePaths(_) | LabelChange::Remove, None) => return Err(gone),
        };
        let is_removed = matches!(change, LabelChange::RemovePaths(_) | LabelChange::Remove);
        let after = match paths.is_empty() && is_removed {
            true => None,
            false => {
                self.check_paths(key.link(), None, any, &paths)?;
                Some(self.list(key.link(), 0, &paths, false)?)
            }
        };
        if after == before {
            return Ok(());
        }
        after.into_iter().for_each(|group| self.lists.hold(group, 1));
        self.labels.set(place, source, after);
        before.into_iter().for_each(|group| self.lists.release(group));
        self.resolve_again(self.lists.of_label(place));
        Ok(())
    }

    /// Let every label's route that holds one of `from` hold what it became, or go.
    pub(super) fn move_label_routes(
        &mut self,
        from: &BTreeMap<GroupId, Arc<ListKey>>,
        to: &BTreeMap<GroupId, GroupId>,
    ) {
        let all = self.labels.tables.iter().enumerate();
        let all = all.filter_map(|(index, table)| Some((index as u32, table.as_ref()?)));
        let held: Vec<_> = all
            .flat_map(|(table, routes)| routes.routes.iter().map(move |route| (table, route)))
            .flat_map(|(table, (key, said))| {
                let place = LabelPlace { table, key: *key };
                said.iter().map(move |(source, group)| (place, *source, *group))
            })
            .filter(|(.., group)| from.contains_key(group))
            .collect();
        for (place, source, before) in held {
            let after = to.get(&before).copied();
            after.into_iter().for_each(|group| self.lists.hold(group, 1));
            self.labels.set(place, source, after);
            self.lists.release(before);
            self.resolve_again(self.lists.of_label(place));
        }
    }

    fn label_view(
        &self,
        key: LabelKey,
        (at, (source, group)): (usize, &(Source, GroupId)),
    ) -> LabelRouteView<'_> {
        let list = self.lists.get(*group);
        LabelRouteView {
            key,
            source: *source,
            best: at == 0,
            group: *group,
            paths: list.map_or(&[][..], |list| &list.key.paths),
            hops: list.map_or(&[][..], |list| &list.hops),
        }
    }

    /// What all sources say of a label, the winner first.
    pub fn label_route(&self, table: u32, key: LabelKey) -> Vec<LabelRouteView<'_>> {
        let said = self.labels.said(LabelPlace { table, key }).iter().enumerate();
        said.map(|one| self.label_view(key, one)).collect()
    }

    /// What all sources say of the labels of a table, in order, behind `after`, if given, so that a
    /// long listing can pause.
    pub fn label_routes(
        &self,
        table: u32,
        after: Option<LabelKey>,
    ) -> impl Iterator<Item = LabelRouteView<'_>> {
        let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
        let routes = self.labels.table(table).into_iter();
        let routes = routes.flat_map(move |table| table.routes.range((begin, Bound::Unbounded)));
        routes.flat_map(|(key, said)| said.iter().enumerate().map(|one| self.label_view(*key, one)))
    }

    /// How many labels of a table have a route.
    pub fn label_route_count(&self, table: u32) -> usize {
        self.labels.table(table).map_or(0, |table| table.routes.len())
    }
}
