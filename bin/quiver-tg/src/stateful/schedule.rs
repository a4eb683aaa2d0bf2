//! When transactions come due: at a rate that may ramp up, as many as asked for.

/// When transactions begin.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// When the first is due, nanoseconds of the engine's clock.
    pub start_ns: u64,
    /// When no more come due.
    pub end_ns: u64,
    /// Transactions a second; infinite: as fast as they fit into the table.
    pub rate_cps: f64,
    /// How long the rate takes to grow from 0 to its value.
    pub ramp_up_ns: u64,
    /// No more than so many.
    pub limit: u64,
}

impl Schedule {
    /// Transactions that have come due by `now_ns`.
    #[inline]
    pub fn due(&self, now_ns: u64) -> u64 {
        if now_ns < self.start_ns {
            return 0;
        }
        if self.rate_cps.is_infinite() {
            return if now_ns < self.end_ns { self.limit } else { 0 };
        }
        match self.intended() {
            Some(intended) if now_ns < self.end_ns => {
                let before = self.by((now_ns - self.start_ns) as f64 / 1e9) as u64;
                (before + 1).min(intended)
            }
            intended => intended.unwrap_or(0),
        }
    }

    /// Transactions in the first seconds: half of the rate's while it grows.
    fn by(&self, at_s: f64) -> f64 {
        let ramp_up_s = self.ramp_up_ns as f64 / 1e9;
        if at_s < ramp_up_s {
            self.rate_cps * at_s * at_s / (2.0 * ramp_up_s)
        } else {
            self.rate_cps * (at_s - ramp_up_s / 2.0)
        }
    }

    /// How many there are in all; `None` when the table and the time decide.
    pub fn intended(&self) -> Option<u64> {
        if self.rate_cps.is_infinite() {
            return (self.limit < u64::MAX).then_some(self.limit);
        }
        Some(((self.by((self.end_ns - self.start_ns) as f64 / 1e9)).round() as u64).min(self.limit))
    }

    /// Seconds after which `limit` transactions have come due at this rate.
    pub fn duration_of(limit: u64, rate_cps: f64, ramp_up_s: f64) -> f64 {
        let in_ramp_up = rate_cps * ramp_up_s / 2.0;
        if (limit as f64) < in_ramp_up {
            (2.0 * ramp_up_s * limit as f64 / rate_cps).sqrt()
        } else {
            limit as f64 / rate_cps + ramp_up_s / 2.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn schedule(rate_cps: f64, ramp_up_ns: u64, limit: u64) -> Schedule {
        Schedule { start_ns: 1_000, end_ns: 1_000 + 10_000_000_000, rate_cps, ramp_up_ns, limit }
    }

    #[test]
    fn the_rate_is_kept_and_the_limit_is_not_passed() {
        let steady = schedule(1000.0, 0, 5000);
        assert_eq!((steady.due(999), steady.due(1_000), steady.due(1_000_999)), (0, 1, 1));
        assert_eq!(steady.due(2_001_000), 3);
        assert_eq!((steady.due(u64::MAX), steady.intended()), (5000, Some(5000)));
    }

    #[test]
    fn a_ramp_takes_half_of_its_time_away() {
        let slow = schedule(1000.0, 4_000_000_000, u64::MAX);
        assert_eq!(slow.intended(), Some(8000));
        assert!((499..=501).contains(&slow.due(2_000_001_000)), "{}", slow.due(2_000_001_000));
        assert!((Schedule::duration_of(8000, 1000.0, 4.0) - 10.0).abs() < 1e-9);
        assert!((Schedule::duration_of(500, 1000.0, 4.0) - 2.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn due_transactions_never_become_fewer(
            rate in 1f64..1e6, ramp in 0u64..10_000_000_000, a in 0u64..12_000_000_000, b in 0u64..12_000_000_000,
        ) {
            let schedule = schedule(rate, ramp, u64::MAX);
            prop_assert!(schedule.due(a.min(b)) <= schedule.due(a.max(b)));
        }
    }
}
