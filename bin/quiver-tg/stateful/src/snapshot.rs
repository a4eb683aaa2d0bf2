//! Counts of a measurement of transactions under way, for display.

use std::sync::Arc;

use quiver_tg_measuring::request::Rate;

use crate::counters::Counters;

/// Counts of a measurement under way.
pub struct Snapshot {
    /// Time of the engine's clock, nanoseconds.
    pub now_ns: u64,
    /// Since the first transaction was due, seconds.
    pub at_s: f64,
    /// While transactions begin, seconds.
    pub of_s: f64,
    /// In words.
    pub state: &'static str,
    /// Transactions a second that are meant to begin.
    pub rate: Rate,
    /// None begin until they are told to.
    pub is_paused: bool,
    /// Counters of the clients, if the generator plays them.
    pub clients: Option<Arc<Counters>>,
    /// Counters of the servers, if the generator plays them.
    pub servers: Option<Arc<Counters>>,
}
