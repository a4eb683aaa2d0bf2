//! Rates of a measurement under way: the counts of its streams between two samples.

use quiver_tg_measuring::generator::Snapshot;
use quiver_tg_measuring::spread::{self, Summary};

/// Interval of the samples at least, nanoseconds.
const INTERVAL_NS: u64 = 500_000_000;

/// Current rates of a stream, frames a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Made.
    pub sent_pps: f64,
    /// Came back.
    pub received_pps: f64,
    /// How long those took.
    pub latency: Option<Summary>,
}

/// Keeps the last snapshot, and the rates up to it.
#[derive(Default)]
pub struct Sampler {
    last: Option<Snapshot>,
    spreads: Vec<Vec<u64>>,
    rates: Vec<Rates>,
}

impl Sampler {
    /// Record the counts of a snapshot; `spreads` gives those of times.
    pub fn record(&mut self, snapshot: &Snapshot, spreads: impl FnOnce() -> Vec<Vec<u64>>) {
        let Some(last) = &self.last else {
            self.last = Some(snapshot.clone());
            return;
        };
        let passed_ns = snapshot.now_ns.saturating_sub(last.now_ns);
        if passed_ns < INTERVAL_NS {
            return;
        }
        let rate =
            |now: u64, before: u64| now.saturating_sub(before) as f64 * 1e9 / passed_ns as f64;
        let times = std::mem::replace(&mut self.spreads, spreads());
        let both = snapshot.streams.iter().zip(&last.streams);
        self.rates = both
            .enumerate()
            .map(|(stream, (now, before))| Rates {
                sent_pps: rate(now.0, before.0),
                received_pps: rate(now.1, before.1),
                latency: spread::between(
                    times.get(stream).map_or(&[], Vec::as_slice),
                    &self.spreads[stream],
                ),
            })
            .collect();
        self.last = Some(snapshot.clone());
    }

    /// The state of a stream.
    pub fn rates(&self, stream: usize) -> Rates {
        self.rates.get(stream).copied().unwrap_or_default()
    }
}
