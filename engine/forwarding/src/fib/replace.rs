//! Replacing all static routes of a table: mark and sweep.
//!
//! A client begins, gives every route that is to be there, and ends: the routes that it did not
//! give go. A route that was there before and is given again has the paths that are given now.
//! Packets are forwarded all the while; a route that stays with its paths is not touched.

use quiver_tables::prefix::{IpPrefix, Prefix};

use super::families::Side;
use super::path::{Family, Source};
use super::series::{Outcome, Series, Step};
use super::{Fib, FibError};

/// What a sweep has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Routes that were looked at.
    pub seen: usize,
    /// Of these, removed.
    pub removed: usize,
    /// Where to go on; none when the sweep is over.
    pub next: Option<IpPrefix>,
}

impl Fib {
    /// From now on static routes of a table (its small number) that are not given again are stale.
    ///
    /// # Errors
    /// The table does not exist, or a replacement is under way.
    pub fn begin_replace(&mut self, family: Family, table: u32) -> Result<(), FibError> {
        if !self.families.exists(family, table) {
            return Err(FibError::NoTableIndex { family, index: table });
        }
        if self.replacing.contains_key(&(family, table)) {
            return Err(FibError::ReplaceBegun(family));
        }
        self.replacing.insert((family, table), Default::default());
        Ok(())
    }

    /// Are the static routes of a table being replaced?
    pub fn is_replacing(&self, family: Family, table: u32) -> bool {
        self.replacing.contains_key(&(family, table))
    }

    /// Nothing is stale any more.
    ///
    /// # Errors
    /// No replacement is under way.
    pub fn cancel_replace(&mut self, family: Family, table: u32) -> Result<(), FibError> {
        self.replacing.remove(&(family, table)).map(|_| ()).ok_or(FibError::ReplaceNotBegun(family))
    }

    /// Remove stale routes: look at `most` routes behind `after`. When none are left
    /// ([`Swept::next`]), call [`cancel_replace`](Self::cancel_replace).
    ///
    /// # Errors
    /// No replacement is under way, or a table is out of memory.
    pub fn sweep_stale(
        &mut self,
        family: Family,
        table: u32,
        after: Option<IpPrefix>,
        most: usize,
    ) -> Result<Swept, FibError> {
        if !self.is_replacing(family, table) {
            return Err(FibError::ReplaceNotBegun(family));
        }
        let seen: Vec<IpPrefix> =
            self.routes(family, table, after).take(most).map(|route| route.prefix).collect();
        let next = seen.last().copied().filter(|_| seen.len() == most);
        let stale = |prefix: &&IpPrefix| {
            self.said(table, **prefix, Source::Static).is_some() && !self.is_fresh(table, **prefix)
        };
        let gone: Vec<IpPrefix> = seen.iter().filter(stale).copied().collect();
        let steps4 = |prefix: &IpPrefix| {
            if let IpPrefix::V4(prefix) = prefix { Some(*prefix) } else { None }
        };
        let steps6 = |prefix: &IpPrefix| {
            if let IpPrefix::V6(prefix) = prefix { Some(*prefix) } else { None }
        };
        match family {
            Family::Ip4 => self.remove_stale(table, gone.iter().filter_map(steps4).collect()),
            Family::Ip6 => self.remove_stale(table, gone.iter().filter_map(steps6).collect()),
        }?;
        Ok(Swept { seen: seen.len(), removed: gone.len(), next })
    }

    fn remove_stale<A: Side>(&mut self, table: u32, gone: Vec<Prefix<A>>) -> Result<(), FibError> {
        let steps: Vec<_> = gone.into_iter().map(|prefix| (prefix, Step::RemoveIfThere)).collect();
        let series = Series { table, source: Source::Static, path_sets: &[] };
        let done = self.plan(series, &steps).and_then(|outcomes| self.make(series, &outcomes));
        self.sweep();
        done
    }

    /// Was the route given since the replacement of its table began, or is there none?
    fn is_fresh(&self, table: u32, prefix: IpPrefix) -> bool {
        let family = if prefix.is_ip6() { Family::Ip6 } else { Family::Ip4 };
        self.replacing.get(&(family, table)).is_none_or(|fresh| fresh.contains(&prefix))
    }

    /// Would `source` give a stale route of `prefix` anew?
    pub(super) fn is_stale<A: Side>(&self, series: Series<'_>, prefix: Prefix<A>) -> bool {
        series.source == Source::Static
            && !self.replacing.is_empty()
            && !self.is_fresh(series.table, A::ip_prefix(prefix))
    }

    /// Routes that a series gave are not stale.
    pub(super) fn refresh_given<A: Side>(&mut self, series: Series<'_>, outcomes: &[Outcome<A>]) {
        if series.source != Source::Static || self.replacing.is_empty() {
            return;
        }
        if let Some(fresh) = self.replacing.get_mut(&(A::FAMILY, series.table)) {
            let given = outcomes.iter().filter(|outcome| outcome.given && outcome.after.is_some());
            fresh.extend(given.map(|outcome| A::ip_prefix(outcome.prefix)));
        }
    }

    /// A route that was given is taken back: it is stale again.
    pub(super) fn stale_again<A: Side>(&mut self, table: u32, prefix: Prefix<A>) {
        if let Some(fresh) = self.replacing.get_mut(&(A::FAMILY, table)) {
            fresh.remove(&A::ip_prefix(prefix));
        }
    }
}
