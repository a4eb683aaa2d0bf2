//! The state of a measurement under way.

use std::sync::Arc;

use crate::counters::Counters;
use crate::schedule::Schedule;
use crate::stateful_node::Live;
use quiver_tg_measuring::request::Measure;

/// Interval at which the control thread polls, nanoseconds.
pub(super) const POLL_NS: u64 = 20_000_000;

/// Counters that the worker shares with the control thread.
pub(super) struct SharedCounters {
    pub(super) clients: Option<Arc<Counters>>,
    pub(super) servers: Option<Arc<Counters>>,
    pub(super) live: Arc<Live>,
}

impl SharedCounters {
    /// Transactions that are neither successful nor failed, on both sides.
    pub(super) fn open(&self) -> u64 {
        let open = |counters: &Option<Arc<Counters>>| {
            counters.as_ref().map_or(0, |c| c.transactions.open())
        };
        open(&self.clients) + open(&self.servers)
    }
}

/// A measurement under way.
pub(super) struct Running {
    pub(super) request: Measure,
    pub(super) shared: SharedCounters,
    /// When transactions begin, once that is decided.
    pub(super) schedule: Option<Schedule>,
    /// How fast they are meant to begin, also while nothing begins.
    pub(super) rate_cps: f64,
    pub(super) is_paused: bool,
    pub(super) is_stopped: bool,
    pub(super) refused_before: u64,
    pub(super) phase: Phase,
}

/// The phase, with its deadline.
#[derive(Clone, Copy)]
pub(super) enum Phase {
    /// Next hops are resolved.
    Resolving { until_ns: u64 },
    /// Hosts' pings go through the forwarder.
    Probing { until_ns: u64, polls: u64 },
    /// Transactions begin.
    Beginning,
    /// No more begin; those that are open come to their ends.
    Ending { until_ns: u64 },
    /// All have ended; late packets are counted.
    Draining { until_ns: u64 },
}
