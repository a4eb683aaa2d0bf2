//! Many routes changed together: planned in order of prefixes, then made in one pass over the
//! table.
//!
//! Only outcomes are made: a prefix that a series names several times changes once, longer prefixes
//! come before those that cover them and go after them, so that a packet meets the old answer or
//! the last one and nothing between.

use quiver_tables::GroupId;
use quiver_tables::lpm::LpmError;
use quiver_tables::prefix::{Address, IpPrefix, Prefix};

use super::families::Side;
use super::path::{Path, Source};
use super::{Fib, FibError};
use crate::next_hop_group::PATHS_MAX;

/// What is done to the route of a prefix. Paths are given by their place in the list of path sets
/// that comes with the series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Add these paths, as [`Fib::add_route`] does.
    Add(u32),
    /// Make these the only paths, as [`Fib::replace_route`] does.
    Replace(u32),
    /// Take these paths away, as [`Fib::remove_paths`] does.
    RemovePaths(u32),
    /// Take the route away, as [`Fib::remove_route`] does.
    Remove,
    /// Take the route away, if it is there.
    RemoveIfThere,
}

/// A change of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteChange<A: Address> {
    /// The prefix.
    pub prefix: Prefix<A>,
    /// What is done.
    pub change: Change,
}

/// A series was refused at one of its changes; those before it are made.
#[derive(Debug)]
pub struct SeriesRefused {
    /// The refused change, by its place in the series.
    pub at: usize,
    /// Why.
    pub error: FibError,
}

/// What happens to a prefix, with what a range needs beside it.
#[derive(Clone, Copy)]
pub(super) enum Step {
    Make(Change),
    RemoveIfThere,
    /// Put back what was there.
    PutBack(Option<GroupId>),
}

/// What becomes of a prefix: which group its source gave, and which it gives now.
#[derive(Clone, Copy)]
pub(super) struct Outcome<A: Address> {
    pub prefix: Prefix<A>,
    pub before: Option<GroupId>,
    pub after: Option<GroupId>,
    /// Was a route added or replaced, be it by the same?
    pub given: bool,
    /// Was it stale before ([`Fib::begin_replace`])?
    pub stale: bool,
}

/// Where a series applies.
#[derive(Clone, Copy)]
pub(super) struct Series<'p> {
    pub table: u32,
    pub source: Source,
    pub path_sets: &'p [Vec<Path>],
}

/// What a step made of a group, remembered: most routes of a series go the same way.
#[derive(Clone, Copy, Default)]
struct Known {
    /// The group that stands for the path set alone.
    alone: Option<GroupId>,
    added: Option<(GroupId, GroupId)>,
    removed: Option<(GroupId, Option<GroupId>)>,
}

impl Fib {
    /// Make a series of changes of one IPv4 table, as if one after the other. `path_sets` is what
    /// the changes name.
    ///
    /// # Errors
    /// The table does not exist, a change is invalid, or a table is full; changes before it are
    /// made.
    pub fn change_ip4_routes(
        &mut self,
        table: u32,
        source: Source,
        path_sets: &[Vec<Path>],
        changes: &[RouteChange<u32>],
    ) -> Result<(), SeriesRefused> {
        self.change_series(Series { table, source, path_sets }, changes)
    }

    /// [`change_ip4_routes`](Self::change_ip4_routes) for an IPv6 table.
    ///
    /// # Errors
    /// As for [`change_ip4_routes`](Self::change_ip4_routes).
    pub fn change_ip6_routes(
        &mut self,
        table: u32,
        source: Source,
        path_sets: &[Vec<Path>],
        changes: &[RouteChange<u128>],
    ) -> Result<(), SeriesRefused> {
        self.change_series(Series { table, source, path_sets }, changes)
    }

    fn change_series<A: Side>(
        &mut self,
        series: Series<'_>,
        changes: &[RouteChange<A>],
    ) -> Result<(), SeriesRefused> {
        let steps: Vec<_> =
            changes.iter().map(|one| (one.prefix, Step::Make(one.change))).collect();
        let together = self.plan(series, &steps).and_then(|outcomes| self.make(series, &outcomes));
        self.sweep();
        match together {
            Ok(()) => Ok(()),
            // Somewhere there is a fault: find it in the order given, with what was right before
            // it.
            Err(_) => self.change_one_by_one(series, changes),
        }
    }

    fn change_one_by_one<A: Side>(
        &mut self,
        series: Series<'_>,
        changes: &[RouteChange<A>],
    ) -> Result<(), SeriesRefused> {
        let Series { table, source, path_sets } = series;
        let paths = |set: u32| path_sets.get(set as usize).map_or(&[][..], Vec::as_slice);
        for (at, RouteChange { prefix, change }) in changes.iter().enumerate() {
            let prefix = A::ip_prefix(*prefix);
            let done = match *change {
                Change::Add(set) => self.add_route(table, prefix, source, paths(set)),
                Change::Replace(set) => self.replace_route(table, prefix, source, paths(set)),
                Change::RemovePaths(set) => self.remove_paths(table, prefix, source, paths(set)),
                Change::Remove => self.remove_route(table, prefix, source),
                Change::RemoveIfThere if self.said(table, prefix, source).is_none() => Ok(()),
                Change::RemoveIfThere => self.remove_route(table, prefix, source),
            };
            done.map_err(|error| SeriesRefused { at, error })?;
        }
        Ok(())
    }

    /// What each prefix comes to, in order of prefixes, each once. Makes groups, but no route.
    pub(super) fn plan<A: Side>(
        &mut self,
        series: Series<'_>,
        steps: &[(Prefix<A>, Step)],
    ) -> Result<Vec<Outcome<A>>, FibError> {
        if let Some((prefix, _)) = steps.first() {
            self.check_table(series.table, A::ip_prefix(*prefix))?;
        }
        let mut known = vec![Known::default(); series.path_sets.len()];
        let mut outcomes: Vec<Outcome<A>> = Vec::with_capacity(steps.len());
        let mut take = |fib: &mut Fib, (prefix, step): (Prefix<A>, Step)| {
            if outcomes.last().is_none_or(|last| last.prefix != prefix) {
                let before = A::tables(&fib.families).says(series.table, prefix, series.source);
                let stale = before.is_some() && fib.is_stale(series, prefix);
                outcomes.push(Outcome { prefix, before, after: before, given: false, stale });
            }
            let at = outcomes.len() - 1;
            let outcome = &mut outcomes[at];
            let gives = matches!(step, Step::Make(Change::Add(_) | Change::Replace(_)));
            if gives && outcome.stale && !outcome.given {
                outcome.after = None; // the old paths go
            }
            outcome.given |= gives;
            outcome.after = fib.step(series, &mut known, prefix, outcome.after, step)?;
            Ok::<(), FibError>(())
        };
        if steps.is_sorted_by(|a, b| a.0 < b.0) {
            steps.iter().try_for_each(|step| take(self, *step))?;
        } else {
            let mut order: Vec<(Prefix<A>, u32)> =
                steps.iter().enumerate().map(|(at, (prefix, _))| (*prefix, at as u32)).collect();
            order.sort_unstable();
            order.into_iter().try_for_each(|(_, at)| take(self, steps[at as usize]))?;
        }
        Ok(outcomes)
    }

    /// The group that a prefix has after one more step.
    fn step<A: Side>(
        &mut self,
        series: Series<'_>,
        known: &mut [Known],
        prefix: Prefix<A>,
        now: Option<GroupId>,
        step: Step,
    ) -> Result<Option<GroupId>, FibError> {
        let change = match step {
            Step::PutBack(group) => return Ok(group),
            Step::RemoveIfThere => return Ok(None),
            Step::Make(change) => change,
        };
        let gone = || FibError::NoRoute(A::ip_prefix(prefix));
        let set = match change {
            Change::Remove => return now.ok_or_else(gone).map(|_| None),
            Change::RemoveIfThere => return Ok(None),
            Change::Add(set) | Change::Replace(set) | Change::RemovePaths(set) => set as usize,
        };
        let (Some(paths), Some(memory)) = (series.path_sets.get(set), known.get_mut(set)) else {
            return Err(FibError::NoPath(A::ip_prefix(prefix)));
        };
        if prefix.len() == 0 {
            *memory = Known::default(); // the default route shares no list
        }
        let group = match (change, now) {
            (Change::Add(_), None) | (Change::Replace(_), _) => match memory.alone {
                Some(group) => Ok(Some(group)),
                None => {
                    self.check(series.table, A::ip_prefix(prefix), paths)?;
                    memory.alone = Some(self.list_for(series.table, prefix, paths)?);
                    Ok(memory.alone)
                }
            },
            (Change::Add(_), Some(old)) => match memory.added {
                Some((from, to)) if from == old => Ok(Some(to)),
                _ => {
                    self.check(series.table, A::ip_prefix(prefix), paths)?;
                    let to = self.joined(series.table, prefix, old, paths)?;
                    memory.added = Some((old, to));
                    Ok(Some(to))
                }
            },
            (_, None) => Err(gone()),
            (_, Some(old)) => match memory.removed {
                Some((from, to)) if from == old => Ok(to),
                _ => {
                    let left = self.left(A::ip_prefix(prefix), old, paths)?;
                    let to = match left.is_empty() {
                        true => None,
                        false => Some(self.list_for(series.table, prefix, &left)?),
                    };
                    memory.removed = Some((old, to));
                    Ok(to)
                }
            },
        };
        if prefix.len() == 0 {
            *memory = Known::default();
        }
        group
    }

    fn list_for<A: Side>(
        &mut self,
        table: u32,
        prefix: Prefix<A>,
        paths: &[Path],
    ) -> Result<GroupId, FibError> {
        self.list(A::FAMILY, table, paths, prefix.len() == 0)
    }

    fn joined<A: Side>(
        &mut self,
        table: u32,
        prefix: Prefix<A>,
        old: GroupId,
        paths: &[Path],
    ) -> Result<GroupId, FibError> {
        let union = self.union(old, paths);
        if union.len() > PATHS_MAX {
            return Err(FibError::TooManyPaths(A::ip_prefix(prefix), union.len()));
        }
        self.list_for(table, prefix, &union)
    }

    /// The paths of `group` without `gone`, all of which it must have. Weights do not matter.
    pub(super) fn left(
        &self,
        prefix: IpPrefix,
        group: GroupId,
        gone: &[Path],
    ) -> Result<Vec<Path>, FibError> {
        let known = self.lists.get(group).map_or(&[][..], |list| &list.key.paths);
        if !gone.iter().all(|gone| known.iter().any(|path| gone.means(path))) {
            return Err(FibError::NoSuchPath(prefix));
        }
        Ok(known.iter().filter(|path| !gone.iter().any(|gone| gone.means(path))).copied().collect())
    }

    /// Make outcomes true: all, or (when the tables have no room) none.
    pub(super) fn make<A: Side>(
        &mut self,
        series: Series<'_>,
        outcomes: &[Outcome<A>],
    ) -> Result<(), FibError> {
        // Neighbours have a limit of their own.
        if series.source != Source::Neighbour {
            self.check_routes(outcomes)?;
        }
        self.make_within(series, outcomes)
    }

    /// [`make`](Self::make), whatever the limit of routes says: to put back what was there.
    pub(super) fn make_within<A: Side>(
        &mut self,
        series: Series<'_>,
        outcomes: &[Outcome<A>],
    ) -> Result<(), FibError> {
        self.write(series, outcomes)?;
        self.count_routes(outcomes);
        self.refresh_given(series, outcomes);
        self.note_changes(series, outcomes);
        let lost = self.count_attached(series.table, outcomes);
        let changed = || outcomes.iter().filter(|outcome| outcome.before != outcome.after);
        changed().filter_map(|outcome| outcome.after).for_each(|group| self.lists.hold(group, 1));
        changed().filter_map(|outcome| outcome.before).for_each(|group| self.lists.release(group));
        let prefixes = changed().map(|outcome| outcome.prefix);
        let users = self.lists.tracked_under(A::FAMILY, series.table, prefixes, outcomes.len());
        self.resolve_again(users);
        self.refresh_imports(series, outcomes, &lost);
        Ok(())
    }

    fn write<A: Side>(
        &mut self,
        series: Series<'_>,
        outcomes: &[Outcome<A>],
    ) -> Result<(), LpmError> {
        let Series { table, source, .. } = series;
        self.prefix_stores +=
            outcomes.iter().filter(|outcome| outcome.before != outcome.after).count() as u64;
        let mut edit = A::tables_mut(&mut self.families).edit(table);
        let mut add = |outcome: &Outcome<A>| match outcome.after {
            Some(group) if outcome.before != outcome.after => {
                edit.set(outcome.prefix, source, group).map(|_| ())
            }
            _ => Ok(()),
        };
        let mut covering: Vec<&Outcome<A>> = Vec::new();
        let mut done = Ok(());
        for outcome in outcomes {
            while done.is_ok()
                && let Some(last) = covering.pop_if(|last| !last.prefix.covers(outcome.prefix))
            {
                done = add(last);
            }
            covering.push(outcome);
        }
        while done.is_ok()
            && let Some(last) = covering.pop()
        {
            done = add(last);
        }
        let mut gone =
            outcomes.iter().filter(|outcome| outcome.after.is_none() && outcome.before.is_some());
        done = done.and_then(|()| {
            gone.try_for_each(|outcome| edit.unset(outcome.prefix, source).map(|_| ()))
        });
        if done.is_err() {
            // Back to how it was; what was there before fits again.
            for outcome in outcomes {
                let _ = match outcome.before {
                    Some(group) => edit.set(outcome.prefix, source, group),
                    None => edit.unset(outcome.prefix, source),
                };
            }
        }
        edit.finish();
        done
    }
}
