//! When transactions come due: at a rate that may ramp up, change and rest, as many as asked for.

/// How much longer than its time a schedule may take for transactions that a delay held up: a part
/// of its time, at least and at most so long.
const OVERTIME_PART: u64 = 20;
const OVERTIME_NS: std::ops::RangeInclusive<u64> = 20_000_000..=500_000_000;
/// The same for limited traffic, whose sessions are all to be begun: as long again, at least.
const OVERTIME_LIMITED_NS_MIN: u64 = 20_000_000_000;

/// When transactions begin.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// When the first is due, nanoseconds of the engine's clock.
    pub start_ns: u64,
    /// When no more come due.
    pub end_ns: u64,
    /// Transactions a second; infinite: as fast as they fit into the table; 0: none.
    pub rate_cps: f64,
    /// How long the rate takes to grow from 0 to its value.
    pub ramp_up_ns: u64,
    /// No more than so many.
    pub limit: u64,
    /// When the rate was changed last, and what had come due by then.
    since_ns: u64,
    before: f64,
}

impl Schedule {
    /// From `start_ns` to `end_ns`.
    pub fn new(start_ns: u64, end_ns: u64, rate_cps: f64, ramp_up_ns: u64, limit: u64) -> Schedule {
        Schedule { start_ns, end_ns, rate_cps, ramp_up_ns, limit, since_ns: start_ns, before: 0.0 }
    }

    /// The same with another rate from now on, which ends a ramp; `begun` have begun. What is
    /// limited ends when its last one has come due, everything else when it would have.
    pub fn with_rate(&self, now_ns: u64, rate_cps: f64, begun: u64) -> Schedule {
        let since_ns = now_ns.clamp(self.start_ns, self.end_ns.max(self.start_ns));
        let before = if self.rate_cps.is_finite() { self.total(since_ns) } else { begun as f64 };
        let mut end_ns = self.end_ns;
        if self.limit < u64::MAX && rate_cps.is_finite() {
            let left_s = (self.limit as f64 - before).max(0.0) / rate_cps;
            end_ns = since_ns.saturating_add((left_s * 1e9).ceil() as u64);
        }
        Schedule { end_ns, rate_cps, ramp_up_ns: 0, since_ns, before, ..*self }
    }

    /// The same, over now.
    pub fn ended(&self, now_ns: u64, begun: u64) -> Schedule {
        let end_ns = now_ns.clamp(self.start_ns, self.end_ns.max(self.start_ns));
        let limit = if self.rate_cps.is_finite() { self.limit } else { self.limit.min(begun) };
        Schedule { end_ns, limit, ..*self }
    }

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
            Some(intended) if now_ns < self.end_ns => (self.total(now_ns) as u64 + 1).min(intended),
            intended => intended.unwrap_or(0),
        }
    }

    /// How long after its end transactions may still begin that came due before and that a delay
    /// held up. As fast as they fit, none waits to begin: nothing is due after the end.
    pub fn overtime_ns(&self) -> u64 {
        let duration_ns = self.end_ns.saturating_sub(self.start_ns);
        if self.rate_cps.is_infinite() {
            0
        } else if self.limit < u64::MAX {
            duration_ns.max(OVERTIME_LIMITED_NS_MIN)
        } else {
            (duration_ns / OVERTIME_PART).clamp(*OVERTIME_NS.start(), *OVERTIME_NS.end())
        }
    }

    /// Transactions that came due by a time between beginning and end: half of the rate's while it
    /// grows.
    fn total(&self, at_ns: u64) -> f64 {
        let at_s = at_ns.saturating_sub(self.since_ns) as f64 / 1e9;
        let ramp_up_s = self.ramp_up_ns as f64 / 1e9;
        let since = if at_s < ramp_up_s {
            self.rate_cps * at_s * at_s / (2.0 * ramp_up_s)
        } else if self.rate_cps > 0.0 {
            self.rate_cps * (at_s - ramp_up_s / 2.0)
        } else {
            0.0
        };
        self.before + since
    }

    /// How many there are in all; `None` when the table and the time decide.
    pub fn intended(&self) -> Option<u64> {
        if self.rate_cps.is_infinite() {
            return (self.limit < u64::MAX).then_some(self.limit);
        }
        Some((self.total(self.end_ns).round() as u64).min(self.limit))
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
        Schedule::new(1_000, 1_000 + 10_000_000_000, rate_cps, ramp_up_ns, limit)
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

    #[test]
    fn a_change_leaves_nothing_out_and_a_rest_lets_nothing_come_due() {
        let second = 1_000_000_000;
        let first = schedule(1000.0, 0, u64::MAX);
        let faster = first.with_rate(1_000 + 2 * second, 4000.0, 2000);
        assert_eq!((faster.due(1_001 + 2 * second), faster.due(1_001 + 3 * second)), (2001, 6001));
        let resting = faster.with_rate(1_000 + 3 * second, 0.0, 6001);
        assert_eq!((resting.due(1_000 + 9 * second), resting.intended()), (6000, Some(6000)));
        let again = resting.with_rate(1_000 + 9 * second, 1000.0, 6001);
        assert_eq!((again.end_ns, again.intended()), (first.end_ns, Some(7000)));
        assert_eq!(again.ended(1_000 + 9 * second + second / 2, 6500).intended(), Some(6500));
    }

    #[test]
    fn what_is_limited_ends_with_its_last_whatever_the_rate() {
        let second = 1_000_000_000;
        let first = schedule(1000.0, 0, 10_000);
        let slower = first.with_rate(1_000 + 5 * second, 500.0, 5000);
        assert_eq!((slower.end_ns, slower.intended()), (1_000 + 15 * second, Some(10_000)));
        let resting = slower.with_rate(1_000 + 6 * second, 0.0, 5500);
        assert_eq!((resting.end_ns, resting.due(u64::MAX - 1)), (u64::MAX, 5500));
        assert_eq!(resting.with_rate(1_000 + 8 * second, 4500.0, 5500).end_ns, 1_000 + 9 * second);
        let flat_out = first.with_rate(1_000 + second, f64::INFINITY, 1000);
        assert_eq!((flat_out.due(1_000 + second), flat_out.intended()), (10_000, Some(10_000)));
        assert_eq!(flat_out.ended(1_000 + 2 * second, 4000).intended(), Some(4000));
    }

    #[test]
    fn nothing_is_waited_for_that_comes_due_no_more() {
        let flat_out = schedule(f64::INFINITY, 0, 5000);
        assert_eq!((flat_out.due(flat_out.end_ns - 1), flat_out.due(flat_out.end_ns)), (5000, 0));
        assert_eq!(flat_out.overtime_ns(), 0);
        // What came due before the end is due behind it, too.
        let limited = schedule(1000.0, 0, 5000);
        assert_eq!((limited.due(limited.end_ns), limited.overtime_ns()), (5000, 20_000_000_000));
        assert_eq!(schedule(1000.0, 0, u64::MAX).overtime_ns(), 500_000_000);
    }

    proptest! {
        #[test]
        fn due_transactions_never_become_fewer(
            rate in 1f64..1e6, ramp in 0u64..10_000_000_000, a in 0u64..12_000_000_000,
            b in 0u64..12_000_000_000,
        ) {
            let schedule = schedule(rate, ramp, u64::MAX);
            prop_assert!(schedule.due(a.min(b)) <= schedule.due(a.max(b)));
        }
    }
}
