//! Counters of the faults of a port.

use quiver_core::graph::counters::Count;
use schemars::JsonSchema;
use serde::Serialize;

/// Faults of the counted frames of a measurement. The worker writes the counts.
#[derive(Default)]
pub struct FaultCounts {
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
    /// Frames that should have had a fault and had none: the limit of held-back frames was reached,
    /// or no buffer was free.
    pub missed: Count,
    /// Lost besides: more frames came than the fault line has room for.
    pub overflowed: Count,
}

/// The counts of [`FaultCounts`] in a report.
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

impl FaultCounts {
    /// Count the frames of this measurement from now on.
    pub fn begin(&self, measurement: u8) {
        for count in self.counts() {
            count.set(0);
        }
        self.measurement.set(u64::from(measurement));
    }

    fn counts(&self) -> [&Count; 7] {
        let FaultCounts {
            measurement: _,
            lost,
            duplicated,
            reordered,
            corrupted,
            delayed,
            missed,
            overflowed,
        } = self;
        [lost, duplicated, reordered, corrupted, delayed, missed, overflowed]
    }

    /// The counts so far.
    pub fn report(&self) -> FaultsReport {
        let [lost, duplicated, reordered, corrupted, delayed, missed, overflowed] =
            self.counts().map(Count::get);
        FaultsReport { lost, duplicated, reordered, corrupted, delayed, missed, overflowed }
    }
}
