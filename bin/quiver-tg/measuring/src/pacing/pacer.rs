//! The pacer of one stream: how many of its frames are due now.

use super::poisson::Gaps;
use super::recorded::Recorded;

/// Frames due within this time are sent at once after a delay; ordinary passes are shorter.
const LAG_NS_MAX: u64 = 50_000;
/// Frames sent at once after a delay: a quarter of an ordinary ring.
const LAG_FRAMES: u64 = 256;
/// Older missed frames are made up at rate / 8 above the rate.
const CATCH_UP_SHIFT: u32 = 3;

/// When frame k is due.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// k intervals behind the origin.
    Constant,
    /// So many at once, as many intervals behind those before.
    Bursts(u64),
    /// One exponentially distributed gap behind the one before.
    Poisson(Box<Gaps>),
    /// As it was recorded.
    Recorded(Box<Recorded>),
}

/// Says how many frames are due.
#[derive(Clone, Debug)]
pub struct Pacer {
    schedule: Schedule,
    /// When frame 0 was due, moved on while frames are owed.
    origin_ns: u64,
    /// Frames per nanosecond, in units of 2^-64.
    rate: u64,
    interval_ns: f64,
    /// Frames that may be due at once.
    lag_frames_max: u64,
    /// Frames sent since the origin; below 0 when frames were due before it.
    sent: i64,
    /// Frames that were due before the origin.
    due_before: u64,
    /// The part of an interval that had passed when it was paused, in units of 2^-64.
    paused_at: u64,
    is_paused: bool,
    /// Time that has been taken off the schedule and not yet given back.
    owed_ns: u64,
    /// Missed frames are sent later; otherwise never.
    makes_up: bool,
    /// All time that was ever taken off.
    held_up_ns: u64,
    last_ns: u64,
}

impl Pacer {
    /// `rate_pps` frames a second (above 0, below 10^9), the first at `origin_ns`.
    pub fn new(rate_pps: f64, origin_ns: u64) -> Pacer {
        let mut pacer = Pacer {
            schedule: Schedule::Constant,
            origin_ns,
            rate: 0,
            interval_ns: 0.0,
            lag_frames_max: 0,
            sent: 0,
            due_before: 0,
            paused_at: 0,
            is_paused: false,
            owed_ns: 0,
            makes_up: true,
            held_up_ns: 0,
            last_ns: origin_ns,
        };
        pacer.keep_rate(rate_pps);
        pacer
    }

    /// By another schedule than a constant rate.
    pub fn with_schedule(self, schedule: Schedule) -> Pacer {
        let at_once = match schedule {
            Schedule::Bursts(frames) => 2 * frames,
            _ => 0,
        };
        let mut pacer =
            Pacer { schedule, lag_frames_max: self.lag_frames_max.max(at_once), ..self };
        if let Schedule::Poisson(gaps) = &mut pacer.schedule {
            gaps.set_interval(pacer.interval_ns);
        }
        pacer
    }

    /// Never be faster than the rate: what a delay missed is not sent.
    pub fn without_making_up(self) -> Pacer {
        Pacer { makes_up: false, ..self }
    }

    fn keep_rate(&mut self, rate_pps: f64) {
        let per_ns = (rate_pps / 1e9).clamp(1e-15, 0.999);
        self.rate = (per_ns * 2f64.powi(64)) as u64;
        self.interval_ns = 1.0 / per_ns;
        let at_once = match self.schedule {
            Schedule::Bursts(frames) => 2 * frames,
            _ => LAG_FRAMES,
        };
        self.lag_frames_max =
            ((LAG_NS_MAX as f64 * per_ns) as u64 + 1).max(LAG_FRAMES).max(at_once);
        if let Schedule::Poisson(gaps) = &mut self.schedule {
            gaps.set_interval(self.interval_ns);
        }
    }

    /// Frames a second.
    pub fn rate_pps(&self) -> f64 {
        1e9 / self.interval_ns
    }

    /// Begin anew at `origin_ns`: frame 0 is due then. What came before counts as sent.
    pub fn restart(&mut self, origin_ns: u64) {
        self.due_before += self.sent.max(0) as u64;
        self.origin_ns = origin_ns;
        self.last_ns = origin_ns;
        self.sent = 0;
        self.owed_ns = 0;
        match &mut self.schedule {
            Schedule::Poisson(gaps) => gaps.restart(),
            Schedule::Recorded(recorded) => recorded.restart(),
            Schedule::Constant | Schedule::Bursts(_) => {}
        }
    }

    /// Begin anew at `origin_ns`; `frames` were sent before by other means.
    pub fn restart_after(&mut self, frames: u64, origin_ns: u64) {
        self.restart(origin_ns);
        self.due_before = frames;
    }

    /// Another rate from now on. What is due stays due, and the next frame is due when what is left
    /// of its interval, scaled to the new rate, is over. A recording is played so much faster or
    /// slower.
    pub fn set_rate(&mut self, rate_pps: f64, now_ns: u64) {
        if now_ns < self.origin_ns || matches!(self.schedule, Schedule::Poisson(_)) {
            return self.keep_rate(rate_pps);
        }
        if let Schedule::Recorded(recorded) = &mut self.schedule {
            let elapsed_ns =
                recorded.scale(self.interval_ns * rate_pps / 1e9, now_ns - self.origin_ns);
            (self.origin_ns, self.last_ns) = (now_ns.saturating_sub(elapsed_ns), now_ns);
            return self.keep_rate(rate_pps);
        }
        let pending = self.due(now_ns);
        let phase = self.phase(now_ns);
        self.due_before = self.due_before.wrapping_add_signed(self.sent + pending as i64 - 1);
        self.keep_rate(rate_pps);
        self.begin_at_phase(phase, now_ns);
        self.sent -= pending as i64;
    }

    /// Nothing is due until it is resumed, and what is due now is not sent.
    pub fn pause(&mut self, now_ns: u64) {
        self.paused_at = match &self.schedule {
            Schedule::Constant | Schedule::Bursts(_) => self.phase(now_ns),
            // How long the next frame had to wait does not matter where gaps have no memory.
            Schedule::Poisson(_) | Schedule::Recorded(_) => now_ns.saturating_sub(self.origin_ns),
        };
        self.is_paused = true;
    }

    /// Go on where it was paused: the next frame is due when the rest of its interval is over.
    pub fn resume(&mut self, now_ns: u64) {
        self.is_paused = false;
        match &mut self.schedule {
            Schedule::Constant | Schedule::Bursts(_) => {
                self.due_before = self.due_before.wrapping_add_signed(self.sent - 1);
                self.begin_at_phase(self.paused_at, now_ns);
            }
            Schedule::Poisson(_) | Schedule::Recorded(_) => {
                self.origin_ns = now_ns.saturating_sub(self.paused_at);
                self.last_ns = now_ns;
            }
        }
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
        let elapsed_ns = now_ns - self.origin_ns;
        let by_now = match &mut self.schedule {
            Schedule::Constant => self.frames_by(elapsed_ns),
            Schedule::Bursts(frames) => {
                let frames = *frames;
                (self.frames_by(elapsed_ns) - 1) / frames * frames + frames
            }
            // One more than may be sent shows that it is late.
            Schedule::Poisson(gaps) => {
                gaps.due_by(elapsed_ns, self.sent.max(0) as u64 + self.lag_frames_max + 1)
            }
            Schedule::Recorded(recorded) => {
                recorded.due_by(elapsed_ns, self.sent.max(0) as u64 + self.lag_frames_max + 1)
            }
        };
        let due = (by_now as i64 - self.sent).max(0) as u64;
        if due > self.lag_frames_max { self.postpone(due, elapsed_ns) } else { due }
    }

    /// Frame 0 and those that follow in so many nanoseconds.
    #[inline]
    fn frames_by(&self, elapsed_ns: u64) -> u64 {
        ((u128::from(elapsed_ns) * u128::from(self.rate)) >> 64) as u64 + 1
    }

    #[cold]
    fn postpone(&mut self, due: u64, elapsed_ns: u64) -> u64 {
        let late_ns = match &self.schedule {
            Schedule::Constant | Schedule::Bursts(_) => {
                ((due - self.lag_frames_max) as f64 * self.interval_ns) as u64
            }
            Schedule::Poisson(gaps) => elapsed_ns.saturating_sub(gaps.last_due_ns()),
            Schedule::Recorded(recorded) => elapsed_ns.saturating_sub(recorded.last_due_ns()),
        };
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

    /// How long behind the original schedule the first and the last of `frames` frames are when
    /// they leave at `now_ns`, before [`advance`](Self::advance).
    #[inline]
    pub fn lateness_ns(&self, frames: u64, now_ns: u64) -> (u64, u64) {
        let since = |due_ns: u64| (now_ns + self.owed_ns).saturating_sub(self.origin_ns + due_ns);
        match &self.schedule {
            Schedule::Constant => {
                let due = |frame: i64| (frame.max(0) as f64 * self.interval_ns) as u64;
                (since(due(self.sent)), since(due(self.sent + frames as i64 - 1)))
            }
            Schedule::Bursts(burst) => {
                let burst = *burst as i64;
                let due =
                    |frame: i64| ((frame.max(0) / burst * burst) as f64 * self.interval_ns) as u64;
                (since(due(self.sent)), since(due(self.sent + frames as i64 - 1)))
            }
            Schedule::Poisson(gaps) => (since(gaps.first_due_ns()), since(gaps.last_due_ns())),
            Schedule::Recorded(recorded) => {
                (since(recorded.due_ns(self.sent.max(0) as u64)), since(recorded.last_due_ns()))
            }
        }
    }

    /// When the frame sent last was due.
    pub fn last_sent_due_ns(&self) -> u64 {
        let place = (self.sent - 1).max(0) as u64;
        self.origin_ns
            + match &self.schedule {
                Schedule::Constant => (place as f64 * self.interval_ns) as u64,
                Schedule::Bursts(burst) => {
                    ((place / burst * burst) as f64 * self.interval_ns) as u64
                }
                Schedule::Poisson(gaps) => gaps.last_due_ns(),
                Schedule::Recorded(recorded) => recorded.due_ns(place),
            }
    }

    /// Frames that were due by the original schedule until `now_ns`, sent or not, pauses left out.
    pub fn intended(&mut self, now_ns: u64) -> u64 {
        let original_ns = self.origin_ns.saturating_sub(self.owed_ns);
        if now_ns < original_ns || self.is_paused {
            return self.due_before.wrapping_add_signed(self.sent);
        }
        let elapsed_ns = now_ns - original_ns;
        let by_now = match &mut self.schedule {
            Schedule::Constant => self.frames_by(elapsed_ns),
            Schedule::Bursts(frames) => {
                let frames = *frames;
                (self.frames_by(elapsed_ns) - 1) / frames * frames + frames
            }
            Schedule::Poisson(_) => {
                self.sent.max(0) as u64 + (self.owed_ns as f64 / self.interval_ns) as u64
            }
            Schedule::Recorded(recorded) => recorded.due_by(elapsed_ns, u64::MAX),
        };
        self.due_before.wrapping_add(by_now.max(self.sent.max(0) as u64))
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
