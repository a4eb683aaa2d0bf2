//! The state of a measurement under way.

use std::sync::Arc;

use crate::counters::Counters;
use crate::schedule::Schedule;
use crate::stage::Live;
use quiver_tg_measuring::request::Measure;

/// How often it is looked at, nanoseconds.
pub(super) const LOOK_NS: u64 = 20_000_000;

/// The counters of what is played, and what others may read of it.
pub(super) struct Seen {
    pub(super) clients: Option<Arc<Counters>>,
    pub(super) servers: Option<Arc<Counters>>,
    pub(super) live: Arc<Live>,
}

impl Seen {
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
    pub(super) seen: Seen,
    /// When transactions begin, once that is decided.
    pub(super) schedule: Option<Schedule>,
    /// How fast they are meant to begin, also while nothing begins.
    pub(super) rate_cps: f64,
    pub(super) is_paused: bool,
    pub(super) is_stopped: bool,
    pub(super) refused_before: u64,
    pub(super) phase: Phase,
}

/// What it is at, until when at the latest.
#[derive(Clone, Copy)]
pub(super) enum Phase {
    /// Next hops are asked for.
    Asking { until_ns: u64 },
    /// Hosts' pings go through the forwarder.
    Probing { until_ns: u64, looks: u64 },
    /// Transactions begin.
    Beginning,
    /// No more begin; those that are open come to their ends.
    Ending { until_ns: u64 },
    /// All have ended; late packets are counted.
    Draining { until_ns: u64 },
}
