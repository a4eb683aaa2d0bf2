//! Which frames are timed.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::request::Rate;
use crate::transmission::{SAMPLE_ALL_PPS_MAX, SAMPLE_FAST};

/// Which frames of a stream say when they left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Timing {
    /// All.
    Every,
    /// All of a slow stream, every 16th of a fast one.
    #[default]
    Sampled,
    /// None. Latency streams are timed all the same.
    Off,
}

impl Timing {
    /// Every so manieth frame at this rate, a power of two; 0 = none.
    pub fn every(self, rate: Rate) -> u64 {
        match (self, rate) {
            (Timing::Off, _) => 0,
            (Timing::Every, _) => 1,
            (Timing::Sampled, Rate::Pps(rate)) if rate <= SAMPLE_ALL_PPS_MAX => 1,
            (Timing::Sampled, _) => SAMPLE_FAST,
        }
    }
}
