//! Tables of routes: added, deleted, held by features, and their numbers.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::interfaces::Interface;
use super::path::Family;
use super::{Fib, FibError};

impl Fib {
    /// Add a table with the operator's number `id`; returns its small number.
    ///
    /// # Errors
    /// The number is taken, or there is no table left.
    pub fn add_table(&mut self, family: Family, id: u32) -> Result<u32, FibError> {
        self.make_table(family, Some(id))
    }

    /// Add a table that has no number for operators: a feature's own, to hold what routes of other
    /// tables are resolved by ([`Path::resolved`](super::Path::resolved)). Returns its small
    /// number.
    ///
    /// # Errors
    /// There is no table left.
    pub fn add_own_table(&mut self, family: Family) -> Result<u32, FibError> {
        self.make_table(family, None)
    }

    fn make_table(&mut self, family: Family, id: Option<u32>) -> Result<u32, FibError> {
        let index = match family {
            Family::Ip4 => self.families.ip4.add(id)?,
            Family::Ip6 => self.families.ip6.add(id)?,
        };
        if let Err(error) = self.add_special_routes(family, index) {
            self.drop_table(family, index);
            return Err(error);
        }
        Ok(index)
    }

    /// Delete a table with all its routes. Interfaces must have left it, and no route of another
    /// table may look up in it.
    ///
    /// # Errors
    /// There is no such table, or it is in use.
    pub fn delete_table(&mut self, family: Family, id: u32) -> Result<(), FibError> {
        let index = self.table_index(family, id).ok_or(FibError::NoTable { family, id })?;
        let in_use = |user: String| FibError::TableInUse { family, id, user };
        if index == 0 {
            return Err(in_use("the router itself, as the default".into()));
        }
        let bound = |on: &&Interface| index == on.info.table(family);
        if let Some(on) = self.interfaces.values().find(bound) {
            return Err(in_use(format!("interface number {}", on.info.id.0)));
        }
        if self
            .lists
            .iter()
            .any(|(_, list)| list.key.paths.iter().any(|path| path.looks_in(family, index)))
        {
            return Err(in_use("a route that looks up in it".into()));
        }
        if let Some((.., holder)) =
            self.table_holders.iter().find(|held| (held.0, held.1) == (family, index))
        {
            return Err(in_use((*holder).into()));
        }
        self.drop_table(family, index);
        Ok(())
    }

    /// A feature names this table (its small number): until it is released, it is not deleted.
    /// `holder` says who, in the refusal.
    pub fn hold_table(&mut self, family: Family, index: u32, holder: &'static str) {
        self.table_holders.push((family, index, holder));
    }

    /// A feature names this table no more; once for each hold.
    pub fn release_table(&mut self, family: Family, index: u32, holder: &'static str) {
        if let Some(at) =
            self.table_holders.iter().position(|held| *held == (family, index, holder))
        {
            self.table_holders.swap_remove(at);
        }
    }

    pub(super) fn drop_table(&mut self, family: Family, index: u32) {
        let held = match family {
            Family::Ip4 => self.families.ip4.delete(index),
            Family::Ip6 => self.families.ip6.delete(index),
        };
        self.route_counts[family as usize] -= held.len();
        self.flow_fields.remove(&(family, index));
        self.attached.forget_table(family, index);
        self.replacing.remove(&(family, index));
        self.route_changes.lose();
        held.into_iter().for_each(|group| self.lists.release(group));
        self.sweep();
    }

    /// The small number of the operator's table `id`.
    pub fn table_index(&self, family: Family, id: u32) -> Option<u32> {
        match family {
            Family::Ip4 => self.families.ip4.index_of(id),
            Family::Ip6 => self.families.ip6.index_of(id),
        }
    }

    /// The operator's number of the table with this small number.
    pub fn table_id(&self, family: Family, index: u32) -> Option<u32> {
        match family {
            Family::Ip4 => self.families.ip4.id_of(index),
            Family::Ip6 => self.families.ip6.id_of(index),
        }
    }

    /// The small numbers of the operator's tables, in the order of their numbers: the order in
    /// which a configuration is written, however it came about.
    pub fn tables_in_order(&self, family: Family) -> Vec<u32> {
        self.tables(family).into_iter().map(|(_, index)| index).collect()
    }

    /// The operator's tables: their numbers, and their small numbers.
    pub fn tables(&self, family: Family) -> Vec<(u32, u32)> {
        match family {
            Family::Ip4 => self.families.ip4.ids().collect(),
            Family::Ip6 => self.families.ip6.ids().collect(),
        }
    }
}

/// The entries of a map that is kept by table, behind one or from the first, the tables in this
/// order. `ends` are the least key of a table and one behind its last; `table_of` is a key's table.
pub fn by_table<'m, T: Copy + PartialEq + 'm, K: Ord + Copy, V>(
    map: &'m BTreeMap<K, V>,
    tables: Vec<T>,
    ends: impl Fn(T) -> (K, K) + 'm,
    table_of: impl Fn(&K) -> T,
    last: Option<K>,
) -> impl Iterator<Item = (&'m K, &'m V)> {
    let from = last.map_or(0, |last| {
        let place = tables.iter().position(|table| *table == table_of(&last));
        place.unwrap_or(tables.len())
    });
    tables.into_iter().skip(from).enumerate().flat_map(move |(at, table)| {
        let (first, end) = ends(table);
        let begin = match last {
            Some(last) if at == 0 => Bound::Excluded(last),
            _ => Bound::Included(first),
        };
        map.range((begin, Bound::Excluded(end)))
    })
}
