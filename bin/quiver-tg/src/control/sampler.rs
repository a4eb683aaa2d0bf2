//! Rates of a measurement under way: what its streams counted between two looks.

use crate::measuring::Look;

/// Looks are at least so far apart, nanoseconds.
const INTERVAL_NS: u64 = 500_000_000;

/// What a stream does now, frames a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Made.
    pub sent_pps: f64,
    /// Came back.
    pub received_pps: f64,
}

/// Keeps the last look, and what happened up to it.
#[derive(Default)]
pub struct Sampler {
    last: Option<Look>,
    rates: Vec<Rates>,
}

impl Sampler {
    /// The counts are these now.
    pub fn see(&mut self, look: &Look) {
        let Some(last) = &self.last else {
            self.last = Some(look.clone());
            return;
        };
        let passed_ns = look.now_ns.saturating_sub(last.now_ns);
        if passed_ns < INTERVAL_NS {
            return;
        }
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 * 1e9 / passed_ns as f64;
        let both = look.streams.iter().zip(&last.streams);
        self.rates = both
            .map(|(now, before)| Rates {
                sent_pps: rate(now.0, before.0),
                received_pps: rate(now.1, before.1),
            })
            .collect();
        self.last = Some(look.clone());
    }

    /// What a stream does now.
    pub fn rates(&self, stream: usize) -> Rates {
        self.rates.get(stream).copied().unwrap_or_default()
    }
}
