//! Attached routes, and the neighbours that are imported into them.
//!
//! A route is attached where one of its paths leads to the hosts of an interface. A neighbour of
//! that interface gets a host route in every table where the longest prefix around it is attached
//! there (VPP: attached export). Source: [`Source::Neighbour`].

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use quiver_core::InterfaceId;
use quiver_tables::GroupId;
use quiver_tables::prefix::{IpPrefix, Prefix};

use super::families::Side;
use super::path::{Family, Path, Source, Target};
use super::series::{Change, Outcome, Series};
use super::{Fib, FibError};

/// How many attached routes an interface has in a table, over all prefixes and sources.
#[derive(Default)]
pub(super) struct AttachedRoutes {
    counts: BTreeMap<(InterfaceId, Family, u32), usize>,
}

impl AttachedRoutes {
    /// Tables of a family with attached routes of this interface.
    fn tables(&self, id: InterfaceId, family: Family) -> Vec<u32> {
        let all = (id, family, 0)..=(id, family, u32::MAX);
        self.counts.range(all).map(|((_, _, table), _)| *table).collect()
    }

    fn contains(&self, id: InterfaceId, family: Family, table: u32) -> bool {
        self.counts.contains_key(&(id, family, table))
    }

    fn add(&mut self, id: InterfaceId, family: Family, table: u32, count: usize) {
        *self.counts.entry((id, family, table)).or_default() += count;
    }

    fn remove(&mut self, id: InterfaceId, family: Family, table: u32, count: usize) {
        if let Some(left) = self.counts.get_mut(&(id, family, table)) {
            *left = left.saturating_sub(count);
            if *left == 0 {
                self.counts.remove(&(id, family, table));
            }
        }
    }

    /// The table is gone with all its routes.
    pub fn forget_table(&mut self, family: Family, table: u32) {
        self.counts.retain(|(_, of, index), _| (*of, *index) != (family, table));
    }
}

impl Fib {
    /// Count the attached routes that a series adds and takes away. Returns the interfaces that
    /// lost any.
    pub(super) fn count_attached<A: Side>(
        &mut self,
        table: u32,
        outcomes: &[Outcome<A>],
    ) -> BTreeSet<InterfaceId> {
        let mut lost = BTreeSet::new();
        // Neighbouring prefixes mostly change alike: count runs, and look at each list once.
        for run in outcomes.chunk_by(|a, b| (a.before, a.after) == (b.before, b.after)) {
            let Outcome { before, after, .. } = run[0];
            if before == after {
                continue;
            }
            for id in self.attached_to(before) {
                self.attached.remove(id, A::FAMILY, table, run.len());
                lost.insert(id);
            }
            for id in self.attached_to(after) {
                self.attached.add(id, A::FAMILY, table, run.len());
            }
        }
        lost
    }

    /// The interfaces whose hosts the paths of a group lead to, each once.
    fn attached_to(&self, group: Option<GroupId>) -> BTreeSet<InterfaceId> {
        let list = group.and_then(|group| self.lists.get(group));
        list.into_iter().flat_map(|list| list.key.paths.iter().filter_map(Path::attached)).collect()
    }

    fn is_attached(&self, group: Option<GroupId>) -> bool {
        let list = group.and_then(|group| self.lists.get(group));
        list.is_some_and(|list| list.key.paths.iter().any(|path| path.attached().is_some()))
    }

    /// May the change of this route decide whether neighbours under it are imported?
    fn decides_imports<A: Side>(&self, table: u32, outcome: &Outcome<A>) -> bool {
        let Outcome { prefix, before, after, .. } = *outcome;
        if before == after || u32::from(prefix.len()) == A::BITS {
            return false;
        }
        self.is_attached(before)
            || self.is_attached(after)
            // It hides a shorter prefix, or shows it.
            || before.is_some() != after.is_some() && prefix.len() > 0
            // It hides what another source says of the prefix, or shows the only other one.
            || A::tables(&self.families).has_others(table, prefix)
            || after.is_none() && A::tables(&self.families).has(table, prefix)
    }

    /// Import neighbours into the routes that a series has changed, or withdraw them. `lost`:
    /// interfaces that were attached before. A neighbour that finds no memory for its route is
    /// reached by the glean adjacency, which waits for it.
    pub(super) fn refresh_imports<A: Side>(
        &mut self,
        series: Series<'_>,
        outcomes: &[Outcome<A>],
        lost: &BTreeSet<InterfaceId>,
    ) {
        if series.source == Source::Neighbour
            || self.neighbours.is_empty() && !self.stacks.has_next_hops()
        {
            return;
        }
        let table = series.table;
        let concerned = outcomes.iter().filter(|outcome| self.decides_imports(table, outcome));
        let prefixes: Vec<Prefix<A>> = concerned.map(|outcome| outcome.prefix).collect();
        let prefixes_are_empty = prefixes.is_empty();
        let mut near: Vec<(IpAddr, InterfaceId)> = Vec::new();
        // Nobody is known between these two addresses.
        let mut gap: Option<(A, Option<A>)> = None;
        for prefix in prefixes {
            let is_empty = gap.is_some_and(|(from, next)| {
                prefix.first() >= from && next.is_none_or(|next| next > prefix.last())
            });
            if is_empty {
                continue;
            }
            let mut found = self.neighbours.from(prefix.first().ip()).peekable();
            let next = found.peek().and_then(|(address, _)| A::from_ip(*address));
            gap = Some((prefix.first(), next));
            let last = prefix.last();
            near.extend(
                found.take_while(|(address, _)| A::from_ip(*address).is_some_and(|at| at <= last)),
            );
        }
        if !prefixes_are_empty {
            near.extend(
                self.stacks.next_hops().filter(|(address, _)| A::from_ip(*address).is_some()),
            );
        }
        near.sort_unstable();
        near.dedup();
        for (address, id) in near {
            if lost.contains(&id) || self.attached.contains(id, A::FAMILY, table) {
                let _ = self.refresh_import(table, id, address);
            }
        }
    }

    /// Import a neighbour into every table where it belongs, or withdraw it.
    pub(super) fn refresh_imports_of(
        &mut self,
        id: InterfaceId,
        address: IpAddr,
    ) -> Result<(), FibError> {
        let tables = self.attached.tables(id, Family::of(address));
        tables.into_iter().try_for_each(|table| self.refresh_import(table, id, address))
    }

    /// The host route that a neighbour should have in a table: it is on an interface with
    /// neighbours, and the longest prefix around it is attached there. Its preference and weight
    /// are the attached path's.
    fn wanted_import(&self, table: u32, id: InterfaceId, address: IpAddr) -> Option<Path> {
        if !self.stacks.reaches(id, address) {
            self.neighbours.get(id, address)?;
            self.interfaces.get(&id)?.info.mac?;
        }
        let group = match address {
            IpAddr::V4(address) => self.families.ip4.cover_above(table, address.to_bits()),
            IpAddr::V6(address) => self.families.ip6.cover_above(table, address.to_bits()),
        };
        let list = self.lists.get(group?)?;
        let attached = list.key.paths.iter().find(|path| path.attached() == Some(id))?;
        Some(Path { target: Target::Neighbour { address, interface: id }, ..*attached })
    }

    /// See that a neighbour's host route in a table is there when it should be. A neighbour that is
    /// known on several attached interfaces has a path by each.
    fn refresh_import(
        &mut self,
        table: u32,
        id: InterfaceId,
        address: IpAddr,
    ) -> Result<(), FibError> {
        let prefix = IpPrefix::host(address);
        let wanted = self.wanted_import(table, id, address);
        let list =
            self.said(table, prefix, Source::Neighbour).and_then(|group| self.lists.get(group));
        let mut paths = list.map_or_else(Vec::new, |list| list.key.paths.to_vec());
        let own = paths.iter().position(|path| path.names(id));
        if own.map(|at| paths[at]) == wanted {
            return Ok(());
        }
        own.map(|at| paths.remove(at));
        paths.extend(wanted);
        paths.sort_unstable();
        let change = if paths.is_empty() { Change::Remove } else { Change::Replace(0) };
        // No sweep here: the caller that began the change still names groups.
        let path_sets = [paths];
        let series = Series { table, source: Source::Neighbour, path_sets: &path_sets };
        match prefix {
            IpPrefix::V4(prefix) => self.plan_and_make(series, prefix, change),
            IpPrefix::V6(prefix) => self.plan_and_make(series, prefix, change),
        }
    }
}
