//! Prefixes whose routes changed, kept for the code that publishes them elsewhere.

use std::collections::HashSet;

use quiver_tables::prefix::IpPrefix;

use super::Fib;
use super::families::Side;
use super::path::{Family, Source};
use super::series::{Outcome, Series};

/// Changed prefixes that wait at most. Beyond it, all routes count as changed.
pub const ROUTE_CHANGES_MAX: usize = 1 << 16;

/// A prefix of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RoutePlace {
    /// The table, by its small number.
    pub table: u32,
    /// The prefix.
    pub prefix: IpPrefix,
}

impl RoutePlace {
    /// The family of the table.
    pub fn family(self) -> Family {
        if self.prefix.is_ip6() { Family::Ip6 } else { Family::Ip4 }
    }
}

/// Who hears of changes of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteWatcher {
    /// Hears of routes of which [`Source::Static`], or a source that goes before it, says something
    /// else than before. At first any of them may have changed.
    Configured,
    /// Hears of routes of all sources but neighbours, from when it begins on.
    All,
}

impl RouteWatcher {
    /// All of them, in the order of their numbers.
    const EACH: [RouteWatcher; 2] = [RouteWatcher::Configured, RouteWatcher::All];

    fn hears_of(self, source: Source) -> bool {
        match self {
            RouteWatcher::Configured => source <= Source::Static,
            RouteWatcher::All => source != Source::Neighbour,
        }
    }
}

/// What [`Fib::take_route_changes`] returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenChanges {
    /// The routes of these prefixes may have changed; others have not.
    These(Vec<RoutePlace>),
    /// More changed than is kept, or a table was deleted: any route may have changed.
    Any,
}

/// Changes since somebody last took them, while somebody wants them.
#[derive(Debug, Default)]
struct Kept {
    watched: bool,
    is_lost: bool,
    places: HashSet<RoutePlace>,
}

impl Kept {
    fn add(&mut self, place: RoutePlace) {
        if self.is_lost {
            return;
        }
        self.places.insert(place);
        if self.places.len() > ROUTE_CHANGES_MAX {
            self.lose();
        }
    }

    fn lose(&mut self) {
        (self.is_lost, self.places) = (self.watched, HashSet::new());
    }
}

/// What each watcher has not taken yet.
#[derive(Debug, Default)]
pub(super) struct RouteChanges([Kept; RouteWatcher::EACH.len()]);

impl RouteChanges {
    /// Any route may have changed.
    pub fn lose(&mut self) {
        self.0.iter_mut().for_each(Kept::lose);
    }
}

impl Fib {
    /// Keep the prefixes whose routes change, for this watcher.
    pub fn watch_route_changes(&mut self, watcher: RouteWatcher, watched: bool) {
        let kept = &mut self.route_changes.0[watcher as usize];
        if kept.watched != watched {
            let is_lost = watched && watcher == RouteWatcher::Configured;
            *kept = Kept { watched, is_lost, ..Default::default() };
        }
    }

    /// Changes since the last call, at most so many; no particular order.
    pub fn take_route_changes(&mut self, watcher: RouteWatcher, most: usize) -> TakenChanges {
        let kept = &mut self.route_changes.0[watcher as usize];
        if std::mem::take(&mut kept.is_lost) {
            return TakenChanges::Any;
        }
        if kept.places.len() <= most {
            return TakenChanges::These(kept.places.drain().collect());
        }
        let taken: Vec<RoutePlace> = kept.places.iter().take(most).copied().collect();
        taken.iter().for_each(|place| {
            kept.places.remove(place);
        });
        TakenChanges::These(taken)
    }

    pub(super) fn note_changes<A: Side>(&mut self, series: Series<'_>, outcomes: &[Outcome<A>]) {
        for watcher in RouteWatcher::EACH {
            let kept = &mut self.route_changes.0[watcher as usize];
            if !kept.watched || !watcher.hears_of(series.source) {
                continue;
            }
            for outcome in outcomes.iter().filter(|outcome| outcome.before != outcome.after) {
                let prefix = A::ip_prefix(outcome.prefix);
                kept.add(RoutePlace { table: series.table, prefix });
            }
        }
    }
}
