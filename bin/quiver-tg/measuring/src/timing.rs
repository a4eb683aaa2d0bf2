//! Which frames of a stream carry a time stamp, at which rate.

use quiver_tg_traffic::profile::timing::Timing;

use crate::request::Rate;

/// Every so manieth frame of a fast stream is timed.
pub const SAMPLE_FAST: u64 = 16;
/// Streams faster than this are sampled; of others every frame is timed.
pub const SAMPLE_ALL_PPS_MAX: f64 = 500_000.0;

/// Interval between timed frames at this rate, a power of two; 0 = none is timed.
pub fn timed_every(timing: Timing, rate: Rate) -> u64 {
    match (timing, rate) {
        (Timing::Off, _) => 0,
        (Timing::Every, _) => 1,
        (Timing::Sampled, Rate::Pps(rate)) if rate <= SAMPLE_ALL_PPS_MAX => 1,
        (Timing::Sampled, _) => SAMPLE_FAST,
    }
}
