//! The times of a recording, played again and again.

use std::sync::Arc;

/// When the frames of a recording are due.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// By frame, nanoseconds behind the first; never going back.
    times_ns: Arc<[u64]>,
    /// One turn of the recording: the last frame's time and one mean gap.
    turn_ns: u64,
    /// Time of the recording in a nanosecond.
    speed: f64,
    due: u64,
}

impl Recorded {
    /// From times that never go back (at least one), the first being 0.
    pub fn new(times_ns: Arc<[u64]>) -> Recorded {
        let last = times_ns.last().copied().unwrap_or(0);
        let gaps = (times_ns.len() as u64).saturating_sub(1).max(1);
        Recorded { turn_ns: (last + last / gaps).max(1), times_ns, speed: 1.0, due: 0 }
    }

    /// The first frame is due at the origin again.
    pub fn restart(&mut self) {
        self.due = 0;
    }

    /// Play so much faster from `elapsed_ns` behind the origin on; what that is at the new speed.
    pub fn scale(&mut self, factor: f64, elapsed_ns: u64) -> u64 {
        self.speed *= factor;
        (elapsed_ns as f64 / factor) as u64
    }

    /// When a frame is due, nanoseconds behind the origin.
    pub fn due_ns(&self, frame: u64) -> u64 {
        let count = self.times_ns.len().max(1) as u64;
        let inside = self.times_ns.get((frame % count) as usize).copied().unwrap_or(0);
        let at_ns = (frame / count).saturating_mul(self.turn_ns).saturating_add(inside);
        if self.speed == 1.0 { at_ns } else { (at_ns as f64 / self.speed) as u64 }
    }

    /// Frames that were due in the first `elapsed_ns`, counted up to `most`.
    #[inline]
    pub fn due_by(&mut self, elapsed_ns: u64, most: u64) -> u64 {
        while self.due < most && self.due_ns(self.due) <= elapsed_ns {
            self.due += 1;
        }
        self.due
    }

    /// When the last frame that was due was due, nanoseconds behind the origin.
    pub fn last_due_ns(&self) -> u64 {
        self.due_ns(self.due.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_comes_round_one_mean_gap_behind_its_last_frame() {
        let mut recorded = Recorded::new(vec![0, 10, 40].into());
        let due: Vec<u64> =
            [0, 9, 10, 39, 40, 59, 60, 70].map(|at| recorded.due_by(at, 100)).into();
        assert_eq!(due, [1, 1, 2, 2, 3, 3, 4, 5]);
        assert_eq!(recorded.last_due_ns(), 70);
    }
}
