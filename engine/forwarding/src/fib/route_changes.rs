//! Prefixes whose configured routes changed, kept for the code that publishes them elsewhere.

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
pub(super) struct RouteChanges {
    watched: bool,
    is_lost: bool,
    places: HashSet<RoutePlace>,
}

impl RouteChanges {
    fn add(&mut self, place: RoutePlace) {
        if self.is_lost {
            return;
        }
        self.places.insert(place);
        if self.places.len() > ROUTE_CHANGES_MAX {
            self.lose();
        }
    }

    /// Any route may have changed.
    pub fn lose(&mut self) {
        (self.is_lost, self.places) = (self.watched, HashSet::new());
    }
}

impl Fib {
    /// Keep the prefixes of which [`Source::Static`], or a source that goes before it, says
    /// something else than before, or no more. At first any route may have changed.
    pub fn watch_route_changes(&mut self, watched: bool) {
        if self.route_changes.watched != watched {
            self.route_changes = RouteChanges { watched, is_lost: watched, ..Default::default() };
        }
    }

    /// The changes since the last call; no particular order.
    pub fn take_route_changes(&mut self) -> TakenChanges {
        if std::mem::take(&mut self.route_changes.is_lost) {
            return TakenChanges::Any;
        }
        TakenChanges::These(self.route_changes.places.drain().collect())
    }

    pub(super) fn note_changes<A: Side>(&mut self, series: Series<'_>, outcomes: &[Outcome<A>]) {
        if !self.route_changes.watched || series.source > Source::Static {
            return;
        }
        for outcome in outcomes.iter().filter(|outcome| outcome.before != outcome.after) {
            let prefix = A::ip_prefix(outcome.prefix);
            self.route_changes.add(RoutePlace { table: series.table, prefix });
        }
    }
}
