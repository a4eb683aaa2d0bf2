//! Which frames are timed.

use schemars::JsonSchema;
use serde::Deserialize;

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
