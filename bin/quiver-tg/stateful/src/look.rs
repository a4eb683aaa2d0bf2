//! What a measurement of transactions has come to so far, for those who show it.

use std::sync::Arc;

use quiver_tg_measuring::request::Rate;

use crate::counters::Counters;

/// What a measurement has come to so far.
pub struct Look {
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
    /// What clients count, if they are played.
    pub clients: Option<Arc<Counters>>,
    /// What servers count, if they are played.
    pub servers: Option<Arc<Counters>>,
}
