//! When frames are due: a constant rate kept by the clock.
//!
//! Frame k of a stream is due at `origin + k / rate`. Each pass of the worker sends what is due, so
//! that a burst is as long as a pass of the worker and no longer. When the worker was held up (the
//! system ran something else on its core), the frames that it missed are sent a little faster than
//! the rate instead of all at once: a forwarder must not lose frames because its tester slept.

/// What may be sent at once after a delay, as time: ordinary passes are shorter.
const LAG_NS_MAX: u64 = 50_000;
/// What may be sent at once after a delay, in frames: a quarter of an ordinary ring.
const LAG_FRAMES: u64 = 256;
/// What was missed longer ago is made up at rate / 8 above the rate.
const CATCH_UP_SHIFT: u32 = 3;

/// A constant rate.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// When frame 0 was due, moved on while frames are owed.
    origin_ns: u64,
    /// Frames per nanosecond, in units of 2^-64.
    rate: u64,
    interval_ns: f64,
    /// Frames that may be due at once.
    lag_frames_max: u64,
    /// Frames sent since the origin; below 0 when frames were due before it.
    sent: i64,
    /// The part of an interval that had passed when it was paused, in units of 2^-64.
    paused_at: u64,
    /// Time that has been taken off the schedule and not yet given back.
    owed_ns: u64,
    /// What was missed is made up; otherwise it is never sent.
    makes_up: bool,
    /// All time that was ever taken off.
    held_up_ns: u64,
    last_ns: u64,
}

impl Pacer {
    /// `rate_pps` frames a second (above 0, below 10^9), the first at `origin_ns`.
    pub fn new(rate_pps: f64, origin_ns: u64) -> Pacer {
        let per_ns = (rate_pps / 1e9).clamp(1e-15, 0.999);
        Pacer {
            origin_ns,
            rate: (per_ns * 2f64.powi(64)) as u64,
            interval_ns: 1.0 / per_ns,
            lag_frames_max: ((LAG_NS_MAX as f64 * per_ns) as u64 + 1).max(LAG_FRAMES),
            sent: 0,
            paused_at: 0,
            owed_ns: 0,
            makes_up: true,
            held_up_ns: 0,
            last_ns: origin_ns,
        }
    }

    /// Never be faster than the rate: what a delay missed is not sent.
    pub fn without_making_up(self) -> Pacer {
        Pacer { makes_up: false, ..self }
    }

    /// Another rate from now on. What is due stays due, and the next frame is due when what is left of
    /// its interval, scaled to the new rate, is over.
    pub fn set_rate(&mut self, rate_pps: f64, now_ns: u64) {
        let pending = self.due(now_ns);
        let phase = self.phase(now_ns);
        let Pacer { makes_up, owed_ns, held_up_ns, origin_ns, .. } = *self;
        *self = Pacer { makes_up, owed_ns, held_up_ns, ..Pacer::new(rate_pps, origin_ns) };
        if now_ns >= origin_ns {
            self.begin_at_phase(phase, now_ns);
            self.sent -= pending as i64;
        }
    }

    /// Nothing is due until it is resumed, and what is due now is not sent.
    pub fn pause(&mut self, now_ns: u64) {
        self.paused_at = self.phase(now_ns);
    }

    /// Go on where it was paused: the next frame is due when the rest of its interval is over.
    pub fn resume(&mut self, now_ns: u64) {
        self.begin_at_phase(self.paused_at, now_ns);
    }

    /// The part of an interval that has passed since the last frame was due, in units of 2^-64.
    fn phase(&self, now_ns: u64) -> u64 {
        (u128::from(now_ns.saturating_sub(self.origin_ns)) * u128::from(self.rate)) as u64
    }

    /// A frame was due, and sent, that part of an interval before `now_ns`.
    fn begin_at_phase(&mut self, phase: u64, now_ns: u64) {
        let since_ns = (phase as f64 / 2f64.powi(64) * self.interval_ns) as u64;
        self.origin_ns = now_ns.saturating_sub(since_ns);
        self.last_ns = now_ns;
        self.sent = 1;
    }

    /// Frames that are due at `now_ns` and have not been sent.
    #[inline]
    pub fn due(&mut self, now_ns: u64) -> u64 {
        if now_ns < self.origin_ns {
            return 0;
        }
        if self.owed_ns > 0 && self.makes_up {
            let back = (now_ns.saturating_sub(self.last_ns) >> CATCH_UP_SHIFT).min(self.owed_ns);
            self.origin_ns -= back;
            self.owed_ns -= back;
        }
        self.last_ns = now_ns;
        let by_now = self.frames_by(now_ns);
        let due = (by_now as i64 - self.sent).max(0) as u64;
        if due > self.lag_frames_max { self.postpone(due) } else { due }
    }

    /// Frame 0 and those that follow up to `now_ns`.
    #[inline]
    fn frames_by(&self, now_ns: u64) -> u64 {
        let elapsed = u128::from(now_ns - self.origin_ns);
        ((elapsed * u128::from(self.rate)) >> 64) as u64 + 1
    }

    #[cold]
    fn postpone(&mut self, due: u64) -> u64 {
        let late_ns = ((due - self.lag_frames_max) as f64 * self.interval_ns) as u64;
        self.origin_ns += late_ns;
        self.owed_ns += late_ns;
        self.held_up_ns += late_ns;
        self.lag_frames_max
    }

    /// So many have been sent.
    #[inline]
    pub fn advance(&mut self, frames: u64) {
        self.sent += frames as i64;
    }

    /// Time by which the schedule runs late now.
    pub fn owed_ns(&self) -> u64 {
        self.owed_ns
    }

    /// Time for which the sender was held up, all delays together.
    pub fn held_up_ns(&self) -> u64 {
        self.held_up_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_frame_is_due_at_the_start_and_each_other_one_interval_later() {
        let mut pacer = Pacer::new(1e6, 5_000);
        let mut at = Vec::new();
        for now in (0..10_000).step_by(10) {
            let due = pacer.due(now);
            pacer.advance(due);
            at.extend((0..due).map(|_| now));
        }
        assert_eq!(at, [5_000, 6_000, 7_000, 8_000, 9_000]);
    }

    #[test]
    fn what_a_pause_held_up_is_made_up_slowly_and_completely() {
        let mut pacer = Pacer::new(1e6, 0);
        let (mut sent, mut now) = (0, 0);
        while now < 20_000_000 {
            let due = pacer.due(now);
            assert!(due <= 256, "{due} at once at {now}");
            pacer.advance(due);
            sent += due;
            now += if now == 1_000_000 { 1_000_000 } else { 1_000 };
        }
        assert_eq!((pacer.owed_ns(), pacer.held_up_ns()), (0, 744_000));
        assert!((19_999..=20_001).contains(&sent), "{sent}");
    }

    #[test]
    fn what_a_pause_held_up_is_not_sent_when_it_is_not_made_up() {
        let mut pacer = Pacer::new(1e6, 0).without_making_up();
        let mut sent = 0;
        for now in (0..1_000_000).chain(2_000_000..3_000_000).step_by(1_000) {
            let due = pacer.due(now);
            pacer.advance(due);
            sent += due;
        }
        assert!((2_255..=2_257).contains(&sent), "{sent}");
        assert!(pacer.held_up_ns() > 0);
    }

    /// Frames due at each of `times`, all sent.
    fn sent_at(pacer: &mut Pacer, times: impl Iterator<Item = u64>) -> Vec<u64> {
        times
            .flat_map(|now| {
                let due = pacer.due(now);
                pacer.advance(due);
                (0..due).map(move |_| now)
            })
            .collect()
    }

    #[test]
    fn another_rate_takes_over_in_the_middle_of_an_interval_without_a_gap_or_a_burst() {
        let mut pacer = Pacer::new(1e6, 50_000);
        assert_eq!(sent_at(&mut pacer, 50_000..52_500), [50_000, 51_000, 52_000]);
        pacer.set_rate(100e3, 52_500);
        // Half of an interval was over: half of the new one is left.
        assert_eq!(sent_at(&mut pacer, (52_500..70_000).step_by(50)), [57_550, 67_550]);
        pacer.set_rate(1e6, 70_000);
        assert_eq!(sent_at(&mut pacer, (70_000..72_000).step_by(50)), [70_800, 71_800]);
    }

    #[test]
    fn a_pause_is_not_made_up() {
        let mut pacer = Pacer::new(1e6, 0);
        assert_eq!(sent_at(&mut pacer, 0..1_400), [0, 1_000]);
        pacer.pause(1_400);
        pacer.resume(9_000);
        assert_eq!(sent_at(&mut pacer, 9_000..11_000), [9_600, 10_600]);
    }

    proptest! {
        #[test]
        fn the_mean_rate_is_exact_whatever_the_passes(
            rate in 1e3f64..2e7, passes in prop::collection::vec(100u64..20_000, 1..2000),
        ) {
            let mut pacer = Pacer::new(rate, 0);
            let (mut now, mut sent) = (0, 0);
            for pass in passes {
                now += pass;
                let due = pacer.due(now);
                pacer.advance(due);
                sent += due;
            }
            let expected = now as f64 * rate / 1e9 + 1.0;
            prop_assert!((sent as f64 - expected).abs() <= 1.001, "{} of {}", sent, expected);
        }
    }
}
