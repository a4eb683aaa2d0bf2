//! Faults on purpose: frames that come to a port are lost, repeated, damaged, held back, before they are
//! looked at. Seeded, and counted one by one, so that what was done can be compared with what was found.
//! A port without faults has nothing of this on its way.

mod line;
mod node;
mod subject;

use quiver_core::counters::Count;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use line::{FaultLine, HELD_FRAMES_MAX, REORDER_HOLD_NS_MAX};
pub use node::{FaultNode, RING_FRAMES};
pub use subject::Subject;

/// The most frames that are lost together, or overtake one.
pub const RUN_FRAMES_MAX: u32 = 1_000_000;
/// The longest delay, microseconds.
pub const DELAY_US_MAX: u64 = 10_000_000;

/// What befalls the generator's frames at a port. Each share is of all frames; a frame has at most one fault.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// Share that is lost.
    pub loss: f64,
    /// Frames lost together.
    pub loss_run: u32,
    /// Share that comes twice.
    pub duplicate: f64,
    /// Share that is overtaken.
    pub reorder: f64,
    /// By so many later frames of its stream.
    pub reorder_by: u32,
    /// Share of which a bit of the stamp flips.
    pub corrupt: f64,
    /// Share that comes later.
    pub delay: f64,
    /// By so many microseconds.
    pub delay_us: u64,
    /// The same seed hits the same frames.
    pub seed: u64,
}

impl Default for Faults {
    fn default() -> Faults {
        Faults {
            loss: 0.0,
            loss_run: 1,
            duplicate: 0.0,
            reorder: 0.0,
            reorder_by: 3,
            corrupt: 0.0,
            delay: 0.0,
            delay_us: 100,
            seed: 1,
        }
    }
}

impl Faults {
    /// What is impossible about it, and what would be possible.
    pub fn check(&self) -> Result<(), String> {
        let shares = [
            ("loss", self.loss),
            ("duplicate", self.duplicate),
            ("reorder", self.reorder),
            ("corrupt", self.corrupt),
            ("delay", self.delay),
        ];
        for (name, share) in shares {
            if !(0.0..=1.0).contains(&share) {
                return Err(format!("faults: {name} {share} is outside 0..=1, a share of the frames"));
            }
        }
        let all: f64 = shares.iter().map(|(_, share)| share).sum();
        if all > 1.0 {
            return Err(format!("faults: the shares add up to {all}; a frame has at most one, so at most 1"));
        }
        for (name, run) in [("loss_run", self.loss_run), ("reorder_by", self.reorder_by)] {
            if !(1..=RUN_FRAMES_MAX).contains(&run) {
                return Err(format!("faults: {name} {run} is outside 1..={RUN_FRAMES_MAX}"));
            }
        }
        if !(1..=DELAY_US_MAX).contains(&self.delay_us) {
            return Err(format!("faults: delay_us {} is outside 1..={DELAY_US_MAX}", self.delay_us));
        }
        Ok(())
    }
}

/// What was done to the counted frames of a measurement. The worker writes it.
#[derive(Default)]
pub struct Done {
    /// The measurement whose frames are counted; the control thread writes it. 256 = none.
    pub measurement: Count,
    /// Lost.
    pub lost: Count,
    /// Repeated.
    pub duplicated: Count,
    /// Overtaken by at least one frame of their stream.
    pub reordered: Count,
    /// Damaged.
    pub corrupted: Count,
    /// Delayed.
    pub delayed: Count,
    /// Frames that should have had a fault and had none: as many as may be were held back already, or
    /// no buffer was free.
    pub missed: Count,
    /// Lost besides: more frames came than the fault line has room for.
    pub overflowed: Count,
}

/// As a report tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FaultsReport {
    /// Lost.
    pub lost: u64,
    /// Repeated.
    pub duplicated: u64,
    /// Overtaken by at least one frame of their stream.
    pub reordered: u64,
    /// Damaged.
    pub corrupted: u64,
    /// Delayed.
    pub delayed: u64,
    /// Should have had a fault and had none, for want of room.
    pub missed: u64,
    /// Lost besides, for want of room.
    pub overflowed: u64,
}

impl Done {
    /// Count the frames of this measurement from now on.
    pub fn begin(&self, measurement: u8) {
        for count in self.counts() {
            count.set(0);
        }
        self.measurement.set(u64::from(measurement));
    }

    fn counts(&self) -> [&Count; 7] {
        let Done { measurement: _, lost, duplicated, reordered, corrupted, delayed, missed, overflowed } =
            self;
        [lost, duplicated, reordered, corrupted, delayed, missed, overflowed]
    }

    /// What has been done.
    pub fn report(&self) -> FaultsReport {
        let [lost, duplicated, reordered, corrupted, delayed, missed, overflowed] =
            self.counts().map(Count::get);
        FaultsReport { lost, duplicated, reordered, corrupted, delayed, missed, overflowed }
    }
}

#[cfg(test)]
mod tests;
