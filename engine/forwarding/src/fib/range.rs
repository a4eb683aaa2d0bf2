//! Consecutive prefixes changed by one command, in slices, so that the control thread stays at
//! hand while millions of them are loaded; and undone as a whole if one of them is refused.

use quiver_tables::GroupId;
use quiver_tables::prefix::{IpPrefix, Prefix};

use super::families::Side;
use super::path::{Path, Source};
use super::routes::check_count;
use super::series::{Change, Outcome, Series, Step};
use super::{Fib, FibError};

/// Prefixes that are changed at once where nobody asks for less.
const SLICE_PREFIXES: u64 = 1 << 16;

/// What is done to each prefix of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeAction {
    /// Add these paths.
    Add(Vec<Path>),
    /// Make these the only paths.
    Replace(Vec<Path>),
    /// Take these paths away; each prefix must have them.
    RemovePaths(Vec<Path>),
    /// Take the routes away, where there are any.
    Remove,
}

/// So many prefixes in a row led to this before.
struct Before {
    at: u64,
    count: u64,
    group: Option<GroupId>,
}

/// A change of consecutive prefixes under way; see [`Fib::begin_range`].
pub struct RangeChange {
    table: u32,
    first: IpPrefix,
    count: u64,
    source: Source,
    step: Step,
    path_sets: Vec<Vec<Path>>,
    done: u64,
    found: u64,
    before: Vec<Before>,
    /// Prefixes whose stale routes were given anew, by their place.
    refreshed: Vec<(u64, u64)>,
}

impl RangeChange {
    /// How many prefixes are dealt with.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// How many there are in all.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Does it take whole routes away?
    pub fn removes(&self) -> bool {
        matches!(self.step, Step::RemoveIfThere)
    }

    /// How many of those dealt with had a route of this source before.
    pub fn found(&self) -> u64 {
        self.found
    }
}

impl Fib {
    /// Check a change of `count` consecutive prefixes, without making any of it. It is made by
    /// [`step_range`](Self::step_range) and ended by [`end_range`](Self::end_range), or taken back
    /// by [`undo_range`](Self::undo_range).
    ///
    /// # Errors
    /// The table does not exist, the range leaves the address space, or a path is invalid.
    pub fn begin_range(
        &self,
        table: u32,
        first: IpPrefix,
        count: u64,
        source: Source,
        action: RangeAction,
    ) -> Result<RangeChange, FibError> {
        self.check_table(table, first)?;
        check_count(first, count)?;
        let (step, path_sets) = match action {
            RangeAction::Add(paths) => {
                self.check(table, first, &paths)?;
                (Step::Make(Change::Add(0)), vec![paths])
            }
            RangeAction::Replace(paths) => {
                self.check(table, first, &paths)?;
                (Step::Make(Change::Replace(0)), vec![paths])
            }
            RangeAction::RemovePaths(paths) => (Step::Make(Change::RemovePaths(0)), vec![paths]),
            RangeAction::Remove => (Step::RemoveIfThere, Vec::new()),
        };
        Ok(RangeChange {
            table,
            first,
            count,
            source,
            step,
            path_sets,
            done: 0,
            found: 0,
            before: Vec::new(),
            refreshed: Vec::new(),
        })
    }

    /// Change at most `most` prefixes more. Returns whether any are left. After an error, which
    /// changes nothing, call [`undo_range`](Self::undo_range).
    ///
    /// # Errors
    /// A table is full; the prefixes changed so far stay changed.
    pub fn step_range(&mut self, range: &mut RangeChange, most: u64) -> Result<bool, FibError> {
        let count = most.clamp(1, SLICE_PREFIXES).min(range.count - range.done);
        match range.first {
            IpPrefix::V4(first) => self.step_slice(range, first, count)?,
            IpPrefix::V6(first) => self.step_slice(range, first, count)?,
        }
        Ok(range.done < range.count)
    }

    fn step_slice<A: Side>(
        &mut self,
        range: &mut RangeChange,
        first: Prefix<A>,
        count: u64,
    ) -> Result<(), FibError> {
        let series =
            Series { table: range.table, source: range.source, path_sets: &range.path_sets };
        let steps: Vec<_> =
            consecutive(first, range.done, count).map(|prefix| (prefix, range.step)).collect();
        let planned = self.plan(series, &steps);
        let made = planned.and_then(|outcomes| self.make(series, &outcomes).map(|()| outcomes));
        if let Ok(outcomes) = &made {
            self.remember(range, outcomes);
        }
        self.sweep();
        made?;
        range.done += count;
        Ok(())
    }

    /// Note what was there, and keep its groups until the range is ended.
    fn remember<A: Side>(&mut self, range: &mut RangeChange, outcomes: &[Outcome<A>]) {
        for (at, outcome) in (range.done..).zip(outcomes) {
            range.found += u64::from(outcome.before.is_some());
            if outcome.stale && outcome.given {
                match range.refreshed.last_mut() {
                    Some((first, count)) if *first + *count == at => *count += 1,
                    _ => range.refreshed.push((at, 1)),
                }
            }
            if outcome.before == outcome.after {
                continue;
            }
            if let Some(group) = outcome.before {
                self.lists.hold(group, 1);
            }
            match range.before.last_mut() {
                Some(run) if run.group == outcome.before && run.at + run.count == at => {
                    run.count += 1
                }
                _ => range.before.push(Before { at, count: 1, group: outcome.before }),
            }
        }
    }

    /// Put back at most `most` prefixes. Returns whether any are left to be put back.
    pub fn undo_range(&mut self, range: &mut RangeChange, most: u64) -> bool {
        let Some(mut run) = range.before.pop() else {
            for (at, count) in std::mem::take(&mut range.refreshed) {
                match range.first {
                    IpPrefix::V4(first) => self.forget_given(range.table, first, at, count),
                    IpPrefix::V6(first) => self.forget_given(range.table, first, at, count),
                }
            }
            return false;
        };
        let count = most.clamp(1, SLICE_PREFIXES).min(run.count);
        run.count -= count;
        match range.first {
            IpPrefix::V4(first) => self.undo_slice(range, first, &run, count),
            IpPrefix::V6(first) => self.undo_slice(range, first, &run, count),
        }
        self.let_go(run.group, count);
        if run.count > 0 {
            range.before.push(run);
        }
        self.sweep();
        !range.before.is_empty() || !range.refreshed.is_empty()
    }

    fn forget_given<A: Side>(&mut self, table: u32, first: Prefix<A>, at: u64, count: u64) {
        consecutive(first, at, count).for_each(|prefix| self.stale_again(table, prefix));
    }

    fn undo_slice<A: Side>(
        &mut self,
        range: &RangeChange,
        first: Prefix<A>,
        run: &Before,
        count: u64,
    ) {
        let series = Series { table: range.table, source: range.source, path_sets: &[] };
        let steps: Vec<_> = consecutive(first, run.at + run.count, count)
            .map(|prefix| (prefix, Step::PutBack(run.group)))
            .collect();
        // What was there before fits again, unless the table itself is gone: then there is nothing
        // to put back.
        let _ = self.plan(series, &steps).and_then(|outcomes| self.make_within(series, &outcomes));
    }

    /// All of it is made, and stays.
    pub fn end_range(&mut self, range: RangeChange) {
        for run in range.before {
            self.let_go(run.group, run.count);
        }
        self.sweep();
    }

    fn let_go(&mut self, group: Option<GroupId>, count: u64) {
        if let Some(group) = group {
            (0..count).for_each(|_| self.lists.release(group));
        }
    }

    /// A range from its beginning to its end, all or none. Returns how many of its prefixes had a
    /// route of this source before.
    pub(super) fn change_range(
        &mut self,
        table: u32,
        first: IpPrefix,
        count: u64,
        source: Source,
        action: RangeAction,
    ) -> Result<u64, FibError> {
        let mut range = self.begin_range(table, first, count, source, action)?;
        loop {
            match self.step_range(&mut range, SLICE_PREFIXES) {
                Ok(true) => {}
                Ok(false) => {
                    let found = range.found;
                    self.end_range(range);
                    return Ok(found);
                }
                Err(error) => {
                    while self.undo_range(&mut range, SLICE_PREFIXES) {}
                    return Err(error);
                }
            }
        }
    }
}

/// `count` prefixes of the length of `first`, beginning `skip` behind it. They are known to fit.
fn consecutive<A: Side>(
    first: Prefix<A>,
    skip: u64,
    count: u64,
) -> impl Iterator<Item = Prefix<A>> {
    let start = match first.len() {
        0 => first.first(),
        len => first.first() + (A::from_halves(0, skip) << (A::BITS - u32::from(len))),
    };
    let start = Prefix::new(start, first.len());
    std::iter::successors(Some(start), |prefix| prefix.next()).take(count as usize)
}
