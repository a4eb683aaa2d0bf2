//! Intended frames when rates change, or streams pause, during a measurement.

use crate::request::Rate;

/// One stream's part.
#[derive(Clone, Copy, Debug)]
struct Plan {
    rate: Rate,
    is_paused: bool,
    /// Up to here its frames are in `frames`.
    counted_to_ns: u64,
    frames: f64,
}

/// By stream.
#[derive(Clone, Debug)]
pub struct Schedule {
    plans: Vec<Plan>,
    is_changed: bool,
    was_flat_out: bool,
}

impl Schedule {
    /// Streams with these rates, from `counted_from_ns` on.
    pub fn new(rates: impl Iterator<Item = Rate>, counted_from_ns: u64) -> Schedule {
        let plan =
            |rate| Plan { rate, is_paused: false, counted_to_ns: counted_from_ns, frames: 0.0 };
        let plans: Vec<Plan> = rates.map(plan).collect();
        let was_flat_out = plans.iter().any(|plan| plan.rate == Rate::Max);
        Schedule { plans, is_changed: false, was_flat_out }
    }

    /// Another rate from now on.
    pub fn set_rate(&mut self, stream: usize, rate: Rate, now_ns: u64) {
        self.was_flat_out |= rate == Rate::Max;
        self.change(stream, now_ns).rate = rate;
    }

    /// Nothing from now on, or again what it was.
    pub fn set_paused(&mut self, stream: usize, is_paused: bool, now_ns: u64) {
        self.change(stream, now_ns).is_paused = is_paused;
    }

    fn change(&mut self, stream: usize, now_ns: u64) -> &mut Plan {
        self.is_changed = true;
        let plan = &mut self.plans[stream];
        plan.frames += plan.frames_until(now_ns);
        plan.counted_to_ns = plan.counted_to_ns.max(now_ns);
        plan
    }

    /// Does a stream pause?
    pub fn is_paused(&self, stream: usize) -> bool {
        self.plans[stream].is_paused
    }

    /// How fast a stream is meant to be now.
    pub fn rate(&self, stream: usize) -> Rate {
        self.plans[stream].rate
    }

    /// Has anything changed since the beginning?
    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// The constant rate that makes as many frames in `duration_s` as were meant to be sent until
    /// now; `Max` when something was sent as fast as it could be.
    pub fn mean_rate(&self, now_ns: u64, duration_s: f64) -> Rate {
        if self.was_flat_out {
            return Rate::Max;
        }
        let frames: f64 =
            self.plans.iter().map(|plan| plan.frames + plan.frames_until(now_ns)).sum();
        Rate::Pps(frames / duration_s)
    }
}

impl Plan {
    fn frames_until(&self, now_ns: u64) -> f64 {
        match self.rate {
            Rate::Pps(rate) if !self.is_paused => {
                now_ns.saturating_sub(self.counted_to_ns) as f64 / 1e9 * rate
            }
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_to_be_sent_follows_rates_and_pauses() {
        let second = 1_000_000_000;
        let mut schedule = Schedule::new([Rate::Pps(100.0), Rate::Pps(50.0)].into_iter(), second);
        assert_eq!(schedule.mean_rate(2 * second, 1.0), Rate::Pps(150.0));
        schedule.set_rate(0, Rate::Pps(1000.0), 2 * second);
        schedule.set_paused(1, true, 2 * second);
        schedule.set_paused(1, false, 3 * second);
        // 100 + 50 in the first second, 1000 in the second, 1000 + 50 in the third.
        assert_eq!(schedule.mean_rate(4 * second, 1.0), Rate::Pps(2200.0));
        schedule.set_rate(0, Rate::Max, 4 * second);
        assert_eq!(schedule.mean_rate(4 * second, 1.0), Rate::Max);
    }
}
