//! The state of a measurement under way.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::reception::Live;
use crate::request::{Measure, Rate};
use crate::schedule::Schedule;
use crate::stall::Stalls;
use crate::transmission::Transmission;

/// A measurement under way.
pub(super) struct Running {
    pub(super) request: Measure,
    pub(super) live: Vec<Arc<Live>>,
    pub(super) start_ns: u64,
    pub(super) stalls: Arc<Stalls>,
    /// One of each port: nothing is left to send.
    pub(super) finished: Vec<Arc<AtomicBool>>,
    pub(super) schedule: Schedule,
    pub(super) phase: Phase,
}

/// The phase of a measurement.
pub(super) enum Phase {
    /// Frames are sent.
    Sending,
    /// All is sent; frames that are under way are waited for.
    Draining(Drain),
}

/// The wait for late frames.
pub(super) struct Drain {
    pub(super) sent: Vec<Transmission>,
    pub(super) until_ns: u64,
    pub(super) received: u64,
    /// So often it may begin anew.
    pub(super) left: usize,
}

/// Counts of a measurement under way.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Time of the engine's clock, nanoseconds.
    pub now_ns: u64,
    /// Since the first frame, seconds.
    pub at_s: f64,
    /// All of it, seconds.
    pub of_s: f64,
    /// Still sending, not only waiting for late frames.
    pub is_sending: bool,
    /// By stream: counted frames made, and received.
    pub streams: Vec<(u64, u64)>,
    /// By stream: how fast it is meant to be, and whether it pauses.
    pub plans: Vec<(Rate, bool)>,
}
