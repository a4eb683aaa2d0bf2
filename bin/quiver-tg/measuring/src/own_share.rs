//! Result of the self-test: what the generator can do by itself, and its part of a latency.

use schemars::JsonSchema;
use serde::Serialize;

use crate::latency::Distribution;

/// Limits of the generator itself: rates of its self-test, and its own latency.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OwnShare {
    /// Frames a second made and thrown away.
    pub transmit_pps: f64,
    /// Frames a second made, sent over memif to itself, received and looked at: one core does all
    /// of it.
    pub loop_pps: f64,
    /// How long frames took in that loop, at which rates.
    #[serde(skip)]
    pub latencies: Vec<OwnLatency>,
}

/// The generator's own part of a latency.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OwnLatency {
    /// Measured at this rate, frames a second.
    pub offered_pps: f64,
    /// From stamp to receiver with nothing but a memif between.
    pub latency_ns: Distribution,
}

impl OwnShare {
    /// The own latency at the rate that is next to this one from above; at the highest one beyond.
    pub fn latency_at(&self, rate_pps: f64) -> Option<&OwnLatency> {
        self.latencies
            .iter()
            .find(|own| own.offered_pps >= rate_pps * 0.99)
            .or(self.latencies.last())
    }
}
