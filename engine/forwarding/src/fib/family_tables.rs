//! The tables of one family: their names, their prefixes, and for each prefix what every source
//! says of it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use quiver_core::memory::epoch::Epochs;
use quiver_tables::GroupId;
use quiver_tables::lpm::{Bulk, LpmError, LpmWriter, Route, TABLES_MAX};
use quiver_tables::memory::MemoryError;
use quiver_tables::prefix::{Address, Prefix};

use super::error::FibError;
use super::path::{Family, Source};

/// In a route's note: other sources have the prefix, too.
const OTHERS: u32 = 1 << 31;

fn note(source: Source, others: bool) -> u32 {
    source as u32 | if others { OTHERS } else { 0 }
}

pub(super) fn source_of(route: Route) -> Source {
    Source::from_number(route.note & !OTHERS)
}

type Others<A> = HashMap<(u32, Prefix<A>), Vec<(Source, GroupId)>>;

pub(super) struct FamilyTables<A: Address> {
    pub lpm: LpmWriter<A>,
    /// What sources of less authority say, where several have a prefix.
    others: Others<A>,
    by_id: BTreeMap<u32, u32>,
    /// The operator's number of each table in use; `Some(None)` is a table of the router's own.
    ids: Vec<Option<Option<u32>>>,
}

impl<A: Address> FamilyTables<A> {
    pub fn new(epochs: &Arc<Epochs>, miss: GroupId) -> Result<Self, MemoryError> {
        Ok(FamilyTables {
            lpm: LpmWriter::new(epochs, miss)?,
            others: HashMap::new(),
            by_id: BTreeMap::from([(0, 0)]),
            ids: vec![Some(Some(0))],
        })
    }

    fn family() -> Family {
        if A::BITS == 32 { Family::Ip4 } else { Family::Ip6 }
    }

    pub fn index_of(&self, id: u32) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    pub fn id_of(&self, index: u32) -> Option<u32> {
        self.ids.get(index as usize).copied().flatten().flatten()
    }

    pub fn exists(&self, index: u32) -> bool {
        matches!(self.ids.get(index as usize), Some(Some(_)))
    }

    pub fn ids(&self) -> impl Iterator<Item = (u32, u32)> {
        self.by_id.iter().map(|(id, index)| (*id, *index))
    }

    /// A new table; without an operator's number it is the router's own.
    pub fn add(&mut self, id: Option<u32>) -> Result<u32, FibError> {
        if let Some(id) = id
            && self.by_id.contains_key(&id)
        {
            return Err(FibError::TableExists { family: Self::family(), id });
        }
        let index = self.ids.iter().position(Option::is_none).unwrap_or(self.ids.len());
        if index >= TABLES_MAX {
            return Err(FibError::TablesFull(Self::family()));
        }
        self.ids.resize(self.ids.len().max(index + 1), None);
        self.ids[index] = Some(id);
        self.by_id.extend(id.map(|id| (id, index as u32)));
        Ok(index as u32)
    }

    /// Take a table away; returns the groups its routes held.
    pub fn delete(&mut self, index: u32) -> Vec<GroupId> {
        let main: Vec<_> =
            self.lpm.prefixes(index).iter().map(|(prefix, route)| (prefix, route.group)).collect();
        let mut held = Vec::with_capacity(main.len());
        for (prefix, group) in main {
            let others = self.others.remove(&(index, prefix)).into_iter().flatten();
            held.extend(others.map(|(_, group)| group).chain([group]));
        }
        self.lpm.clear(index);
        if let Some(Some(id)) = self.ids[index as usize].take() {
            self.by_id.remove(&id);
        }
        held
    }

    /// The group of the longest prefix that contains `address`.
    pub fn cover(&self, table: u32, address: A) -> Option<(Prefix<A>, Route)> {
        let found = self.lpm.prefixes_if_any(table)?.cover(address, A::BITS as u8)?;
        Some((found.0, *found.1))
    }

    /// The group of the longest prefix that contains `address` and others.
    pub fn cover_above(&self, table: u32, address: A) -> Option<GroupId> {
        let found = self.lpm.prefixes_if_any(table)?.cover(address, A::BITS as u8 - 1)?;
        Some(found.1.group)
    }

    /// All that sources say of `prefix`, the winner first.
    pub fn sources(&self, table: u32, prefix: Prefix<A>) -> Vec<(Source, GroupId)> {
        let route = self.lpm.prefixes_if_any(table).and_then(|prefixes| prefixes.get(prefix));
        let Some(route) = route else { return Vec::new() };
        let mut all = vec![(source_of(*route), route.group)];
        if route.note & OTHERS != 0
            && let Some(others) = self.others.get(&(table, prefix))
        {
            all.extend(others);
        }
        all
    }

    /// Does any source have `prefix`?
    pub fn has(&self, table: u32, prefix: Prefix<A>) -> bool {
        self.lpm.prefixes_if_any(table).is_some_and(|prefixes| prefixes.get(prefix).is_some())
    }

    /// Do several sources have `prefix`?
    pub fn has_others(&self, table: u32, prefix: Prefix<A>) -> bool {
        !self.others.is_empty() && self.others.contains_key(&(table, prefix))
    }

    /// What `source` says of `prefix`.
    pub fn says(&self, table: u32, prefix: Prefix<A>, source: Source) -> Option<GroupId> {
        let route = self.lpm.prefixes_if_any(table)?.get(prefix)?;
        if source_of(*route) == source {
            return Some(route.group);
        }
        if route.note & OTHERS == 0 {
            return None;
        }
        let others = self.others.get(&(table, prefix))?;
        others.iter().find(|(who, _)| *who == source).map(|(_, group)| *group)
    }

    /// Bytes of the prefix matches.
    pub fn match_bytes(&self) -> usize {
        let space = self.lpm.space();
        let roots = (0..self.ids.len() as u32).map(|table| space.table(table).big_root_bytes());
        self.lpm.usage().resident_bytes + roots.sum::<usize>()
    }

    /// Bytes of the routes as they were given.
    pub fn route_bytes(&self) -> usize {
        let tables = (0..self.ids.len() as u32).filter_map(|table| self.lpm.prefixes_if_any(table));
        let others =
            self.others.values().map(|others| others.capacity() * size_of::<(Source, GroupId)>());
        let entries =
            self.others.capacity() * size_of::<((u32, Prefix<A>), Vec<(Source, GroupId)>)>();
        tables.map(|prefixes| prefixes.allocated_bytes()).sum::<usize>()
            + others.sum::<usize>()
            + entries
    }

    /// Open a series of changes of `table`.
    pub fn edit(&mut self, table: u32) -> Edit<'_, A> {
        Edit { bulk: self.lpm.bulk(table), others: &mut self.others, table }
    }

    /// Every prefix of every table that holds `group`, and for which source.
    pub fn holders(&self, holds: impl Fn(GroupId) -> bool) -> Vec<(u32, Prefix<A>, Source)> {
        let mut found = Vec::new();
        for table in 0..self.ids.len() as u32 {
            let Some(prefixes) = self.lpm.prefixes_if_any(table) else { continue };
            let held = prefixes.iter().filter(|(_, route)| holds(route.group));
            found.extend(held.map(|(prefix, route)| (table, prefix, source_of(*route))));
        }
        for ((table, prefix), others) in &self.others {
            let held = others.iter().filter(|(_, group)| holds(*group));
            found.extend(held.map(|(source, _)| (*table, *prefix, *source)));
        }
        found
    }
}

/// A series of changes of one table.
pub(super) struct Edit<'t, A: Address> {
    bulk: Bulk<'t, A>,
    others: &'t mut Others<A>,
    table: u32,
}

impl<A: Address> Edit<'_, A> {
    /// Let `source` say `group` of `prefix`; returns what it said before.
    pub fn set(
        &mut self,
        prefix: Prefix<A>,
        source: Source,
        group: GroupId,
    ) -> Result<Option<GroupId>, LpmError> {
        let route = Route { group, note: note(source, false) };
        let Some(old) = self.bulk.insert_if_absent(prefix, route)? else { return Ok(None) };
        let old_source = source_of(old);
        if old_source == source {
            self.bulk.insert(prefix, Route { group, note: old.note })?;
            return Ok(Some(old.group));
        }
        let winner = (source < old_source).then_some(route);
        let now = Route { note: winner.unwrap_or(old).note | OTHERS, ..winner.unwrap_or(old) };
        self.bulk.insert(prefix, now)?;
        let others = self.others.entry((self.table, prefix)).or_default();
        let (who, what) = if winner.is_some() { (old_source, old.group) } else { (source, group) };
        let before = others.iter().position(|(other, _)| *other == source);
        let before = before.map(|index| others.remove(index).1);
        others.push((who, what));
        others.sort_unstable();
        Ok(before)
    }

    /// Let `source` say nothing of `prefix`; returns what it said.
    pub fn unset(
        &mut self,
        prefix: Prefix<A>,
        source: Source,
    ) -> Result<Option<GroupId>, LpmError> {
        let Some(route) = self.bulk.get(prefix) else { return Ok(None) };
        let place = (self.table, prefix);
        let others = if route.note & OTHERS != 0 { self.others.get_mut(&place) } else { None };
        if source_of(route) != source {
            let Some(others) = others else { return Ok(None) };
            let Some(index) = others.iter().position(|(who, _)| *who == source) else {
                return Ok(None);
            };
            let (_, group) = others.remove(index);
            if others.is_empty() {
                self.others.remove(&place);
                self.bulk.insert(prefix, Route { note: route.note & !OTHERS, ..route })?;
            }
            return Ok(Some(group));
        }
        match others {
            None => {
                self.bulk.remove(prefix)?;
            }
            Some(others) => {
                let (source, group) = others[0];
                self.bulk.insert(prefix, Route { group, note: note(source, others.len() > 1) })?;
                others.remove(0);
                if others.is_empty() {
                    self.others.remove(&place);
                }
            }
        }
        Ok(Some(route.group))
    }

    /// Patch now what was changed.
    pub fn finish(mut self) {
        self.bulk.finish();
    }
}
