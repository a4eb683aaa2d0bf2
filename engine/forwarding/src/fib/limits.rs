//! How much the FIB takes, and what it weighs.

use quiver_tables::prefix::Address;

use super::families::Side;
use super::{Fib, FibError};
use crate::adjacency::ADJACENCIES_MAX;
use crate::fib::path::Family;
use crate::fib::series::Outcome;
use crate::next_hop_group::GROUPS_MAX;

/// How much there may be of everything that commands make. What is there when a limit is lowered
/// stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibLimits {
    /// IPv4 routes, over all tables and sources.
    pub ip4_routes: usize,
    /// IPv6 routes, over all tables and sources.
    pub ip6_routes: usize,
    /// Different lists of paths, each with a next-hop group.
    pub path_lists: usize,
    /// Adjacencies.
    pub adjacencies: usize,
}

impl Default for FibLimits {
    fn default() -> Self {
        // A hundred million routes are the most that a command can count; the group of a wrong
        // index and of no route in each family are not the user's.
        FibLimits {
            ip4_routes: 100_000_000,
            ip6_routes: 100_000_000,
            path_lists: GROUPS_MAX - 3,
            adjacencies: ADJACENCIES_MAX - 1,
        }
    }
}

impl FibLimits {
    /// Routes of a family.
    pub fn routes(&self, family: Family) -> usize {
        match family {
            Family::Ip4 => self.ip4_routes,
            Family::Ip6 => self.ip6_routes,
        }
    }
}

/// How often the FIB has changed what workers read, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FibStores {
    /// Prefixes that were given a group, or none.
    pub prefixes: u64,
    /// Groups that were given other hops: each moves all routes that share it.
    pub groups: u64,
}

/// What the FIB weighs, in bytes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FibWeight {
    /// The prefix matches of both families, as workers read them.
    pub prefix_match: usize,
    /// The routes as they were given.
    pub routes: usize,
    /// Next-hop groups and their buckets.
    pub groups: usize,
    /// Adjacencies.
    pub adjacencies: usize,
}

impl Fib {
    /// Limits from now on.
    pub fn set_limits(&mut self, limits: FibLimits) {
        self.limits = limits;
        self.adjacencies.slots().set_limit(limits.adjacencies);
    }

    /// How much there may be.
    pub fn limits(&self) -> FibLimits {
        self.limits
    }

    /// How often what workers read was changed.
    pub fn stores(&self) -> FibStores {
        FibStores { prefixes: self.prefix_stores, groups: self.groups.stores() }
    }

    /// How many adjacencies there are.
    pub fn adjacency_count(&self) -> usize {
        self.adjacencies.iter().count()
    }

    /// Routes of a family, over all tables and sources.
    pub fn route_count(&self, family: Family) -> usize {
        self.route_counts[family as usize]
    }

    /// What it weighs. Asks the system about each page: for shows, not for loops.
    pub fn weight(&self) -> FibWeight {
        FibWeight {
            prefix_match: self.families.ip4.match_bytes() + self.families.ip6.match_bytes(),
            routes: self.families.ip4.route_bytes() + self.families.ip6.route_bytes(),
            groups: self.groups.table().resident_bytes(),
            adjacencies: self.adjacencies.table().resident_bytes(),
        }
    }

    /// Is there room for the routes that `outcomes` add?
    pub(super) fn check_routes<A: Side>(&self, outcomes: &[Outcome<A>]) -> Result<(), FibError> {
        let (added, gone) = added_and_gone(outcomes);
        let (count, max) = (self.route_count(A::FAMILY), self.limits.routes(A::FAMILY));
        if added > gone && count + added - gone > max {
            return Err(FibError::RoutesFull { family: A::FAMILY, max });
        }
        Ok(())
    }

    pub(super) fn count_routes<A: Side>(&mut self, outcomes: &[Outcome<A>]) {
        let (added, gone) = added_and_gone(outcomes);
        let count = &mut self.route_counts[A::FAMILY as usize];
        *count = *count + added - gone;
    }
}

fn added_and_gone<A: Address>(outcomes: &[Outcome<A>]) -> (usize, usize) {
    let added =
        outcomes.iter().filter(|outcome| outcome.before.is_none() && outcome.after.is_some());
    let gone =
        outcomes.iter().filter(|outcome| outcome.before.is_some() && outcome.after.is_none());
    (added.count(), gone.count())
}
