//! How far behind their schedule frames left.

use hdrhistogram::Histogram;

use super::pacer::Pacer;
use crate::latency;

/// Actual minus intended departure of the frames of one stream, nanoseconds.
#[derive(Clone, Debug)]
pub struct Departures {
    /// One value a frame: those of a burst stand for half of it each, its first and its last.
    pub error_ns: Histogram<u64>,
}

impl Departures {
    /// None so far. It never grows, so a worker may record into it.
    pub fn new() -> Departures {
        Departures { error_ns: latency::histogram() }
    }

    /// `frames` frames that `pacer` said are due leave at `now_ns`.
    #[inline]
    pub fn note(&mut self, pacer: &Pacer, frames: u64, now_ns: u64) {
        let (first, last) = pacer.lateness_ns(frames, now_ns);
        self.error_ns.saturating_record_n(first, frames - frames / 2);
        if frames > 1 {
            self.error_ns.saturating_record_n(last, frames / 2);
        }
    }
}

impl Default for Departures {
    fn default() -> Departures {
        Departures::new()
    }
}
