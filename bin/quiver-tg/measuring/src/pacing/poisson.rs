//! Gaps between the frames of a Poisson stream.

use std::sync::Arc;

use quiver_tg_traffic::frames::random::Random;

/// Gaps drawn ahead, a power of two: all quantiles of the exponential distribution in the middle of
/// so many equal parts. Each round has every one of them once, in another order, so that the mean
/// of a round is exact.
const GAPS: usize = 1 << 14;
/// Bits behind the point of a gap, in mean gaps.
const GAP_BITS: u32 = 24;
/// Bits behind the point of a time, in nanoseconds: 52 days fit.
const TIME_BITS: u32 = 12;

/// Draws gaps, and says how many frames they make due.
#[derive(Clone, Debug)]
pub struct Gaps {
    table: Arc<[u32]>,
    random: Random,
    /// Of the round: gap i of it is at `offset` + i × `stride`, an odd number.
    stride: usize,
    offset: usize,
    place: usize,
    /// The mean gap, in units of 2^-12 ns.
    interval: u64,
    /// When the frame behind those that are due is due, in units of 2^-12 ns behind the origin.
    next: u64,
    /// Frames that were due so far.
    due: u64,
    /// When the first and the last one of those that became due together were due, nanoseconds.
    first_ns: u64,
    last_ns: u64,
}

impl Gaps {
    /// With a seed. The mean is set by the [pacer](super::pacer::Pacer).
    pub fn new(seed: u64) -> Gaps {
        let mut random = Random::new(seed);
        let quantile = |k: usize| -(-(k as f64 + 0.5) / GAPS as f64).ln_1p();
        let mean = (0..GAPS).map(quantile).sum::<f64>() / GAPS as f64;
        let mut table: Vec<u32> = (0..GAPS)
            .map(|k| (quantile(k) / mean * f64::from(1 << GAP_BITS)).round() as u32)
            .collect();
        for k in (1..GAPS).rev() {
            table.swap(k, random.below(k as u64 + 1) as usize);
        }
        let mut gaps = Gaps {
            table: table.into(),
            random,
            stride: 1,
            offset: 0,
            place: 0,
            interval: 1,
            next: 0,
            due: 0,
            first_ns: 0,
            last_ns: 0,
        };
        gaps.shuffle();
        gaps
    }

    fn shuffle(&mut self) {
        let bits = self.random.bits() as usize;
        self.stride = bits | 1;
        self.offset = bits >> 32;
        self.place = 0;
    }

    /// Another mean gap. What is left of the gap under way is scaled.
    pub fn set_interval(&mut self, interval_ns: f64) {
        let interval = ((interval_ns * f64::from(1 << TIME_BITS)) as u64).max(1);
        let left = self.next.saturating_sub(self.last_ns << TIME_BITS);
        self.next -= left;
        self.next += (u128::from(left) * u128::from(interval) / u128::from(self.interval)) as u64;
        self.interval = interval;
    }

    /// The first frame is due at the origin again.
    pub fn restart(&mut self) {
        (self.next, self.due, self.first_ns, self.last_ns) = (0, 0, 0, 0);
    }

    #[inline(always)]
    fn gap(&mut self) -> u64 {
        if self.place == GAPS {
            self.shuffle();
        }
        let at = self.offset.wrapping_add(self.place.wrapping_mul(self.stride)) % GAPS;
        self.place += 1;
        let gap = self.table.get(at).copied().unwrap_or(1 << GAP_BITS);
        ((u128::from(gap) * u128::from(self.interval)) >> GAP_BITS) as u64
    }

    /// Frames that were due in the first `elapsed_ns`, counted up to `most`.
    #[inline]
    pub fn due_by(&mut self, elapsed_ns: u64, most: u64) -> u64 {
        let until = elapsed_ns << TIME_BITS;
        if self.next <= until && self.due < most {
            self.first_ns = self.next >> TIME_BITS;
        }
        while self.next <= until && self.due < most {
            self.due += 1;
            self.last_ns = self.next >> TIME_BITS;
            self.next += self.gap();
        }
        self.due
    }

    /// When the first of the frames that became due last was due, nanoseconds behind the origin.
    pub fn first_due_ns(&self) -> u64 {
        self.first_ns
    }

    /// When the last frame was due, nanoseconds behind the origin.
    pub fn last_due_ns(&self) -> u64 {
        self.last_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_exponentially_distributed_and_their_mean_is_exact() {
        let mut gaps = Gaps::new(7);
        gaps.set_interval(1000.0);
        let rounds = 8;
        let mut all: Vec<f64> = (0..rounds * GAPS).map(|_| gaps.gap() as f64 / 4096.0).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!((mean - 1000.0).abs() < 0.01, "{mean}");
        let squares = all.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / all.len() as f64;
        assert!((squares.sqrt() / mean - 1.0).abs() < 0.01, "{}", squares.sqrt());
        // Neighbours have nothing to do with one another.
        let product =
            all.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>() / all.len() as f64;
        assert!((product / squares).abs() < 0.02, "{}", product / squares);
        all.sort_by(f64::total_cmp);
        for part in [0.1, 0.5, 0.9, 0.99] {
            let found = all[(part * all.len() as f64) as usize];
            let expected = -(1.0f64 - part).ln() * 1000.0;
            assert!((found / expected - 1.0).abs() < 0.01, "{part}: {found} instead of {expected}");
        }
    }

    #[test]
    fn counts_in_equal_times_vary_as_poisson_says() {
        let mut gaps = Gaps::new(1);
        gaps.set_interval(100.0);
        let mut before = 0;
        let counts: Vec<f64> = (1..=4000)
            .map(|window| {
                let due = gaps.due_by(window * 2_000, u64::MAX);
                let count = due - before;
                before = due;
                count as f64
            })
            .collect();
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / counts.len() as f64;
        assert!((mean - 20.0).abs() < 0.2, "{mean}");
        assert!((variance / mean - 1.0).abs() < 0.15, "{}", variance / mean);
    }
}
