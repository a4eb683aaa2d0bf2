//! Gaps: numbers of a stream that never came, in runs.
//!
//! A gap is a loss period as RFC 3357 has it: consecutive numbers that are all lost, seen in the
//! order of sending. `runs` is its Type-P-One-Way-Loss-Period-Total (§6), `longest_frames` the
//! largest of its Type-P-One-Way-Loss-Period-Lengths.

use schemars::JsonSchema;
use serde::Serialize;

/// Runs of lost sequence numbers. Numbers are counted in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Gaps {
    /// Runs.
    pub runs: u64,
    /// Frames in the longest.
    pub longest_frames: u64,
    /// Frames in all of them: the lost frames, counted independently of `received`.
    #[serde(skip)]
    pub frames: u64,
    /// Frames in the run that has not ended.
    #[serde(skip)]
    open: u64,
}

impl Gaps {
    /// The next 64 numbers; a set bit is one that came, the lowest bit is the first number.
    #[inline(always)]
    pub fn word(&mut self, bits: u64) {
        if bits == u64::MAX && self.open == 0 {
            return;
        }
        self.bits(bits, 64);
    }

    /// The next `count` numbers (at most 64).
    pub fn bits(&mut self, mut bits: u64, mut count: u32) {
        while count > 0 {
            let came = bits.trailing_ones().min(count);
            if came > 0 {
                self.close();
                bits = bits.checked_shr(came).unwrap_or(0);
                count -= came;
            }
            let lost = bits.trailing_zeros().min(count);
            self.lost(u64::from(lost));
            bits = bits.checked_shr(lost).unwrap_or(0);
            count -= lost;
        }
    }

    /// The next `count` numbers never came.
    pub fn lost(&mut self, count: u64) {
        self.open += count;
        self.frames += count;
    }

    /// A number came, or there are no more.
    pub fn close(&mut self) {
        if self.open > 0 {
            self.runs += 1;
            self.longest_frames = self.longest_frames.max(self.open);
            self.open = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gaps_are_the_runs_of_what_did_not_come(
            words in prop::collection::vec(prop_oneof![
                Just(0u64), Just(u64::MAX), any::<u64>(), Just(u64::MAX << 7), Just(u64::MAX >> 9),
            ], 0..20),
            rest in 0u32..64,
        ) {
            let mut gaps = Gaps::default();
            words.iter().for_each(|word| gaps.word(*word));
            gaps.bits(0x5a5a_0ff0_1234_cdef, rest);
            gaps.close();
            let bits = |word: u64, count: u32| (0..count).map(move |bit| word >> bit & 1 == 1);
            let came: Vec<bool> = words
                .iter()
                .flat_map(|w| bits(*w, 64))
                .chain(bits(0x5a5a_0ff0_1234_cdef, rest))
                .collect();
            let runs: Vec<u64> = came
                .split(|came| *came)
                .map(|lost| lost.len() as u64)
                .filter(|length| *length > 0)
                .collect();
            prop_assert_eq!(gaps.runs, runs.len() as u64);
            prop_assert_eq!(gaps.longest_frames, runs.iter().copied().max().unwrap_or(0));
            prop_assert_eq!(gaps.frames, runs.iter().sum::<u64>());
        }
    }
}
