//! Sequence numbers of a stream that have arrived: a bitmap that slides with the highest number.
//! Gaps are counted when they slide out of the bitmap.

use crate::gaps::Gaps;

/// Classification of a frame by its sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Higher than all before.
    InOrder,
    /// The first of its number, behind a higher one.
    Reordered,
    /// Its number has been here.
    Duplicate,
    /// So far behind the highest that nobody remembers whether its number has been here.
    TooLate,
}

/// Sequence numbers remembered by default: 60 ms at 16 Mpps, 128 KiB.
pub const WINDOW_FRAMES: usize = 1 << 20;

/// The sliding bitmap.
pub struct Window {
    words: Box<[u64]>,
    /// One above the highest number seen.
    next: u64,
    /// Gaps among the numbers that have left the bitmap.
    closed: Gaps,
}

impl Window {
    /// Remembers at least `frames` numbers behind the highest.
    pub fn new(frames: usize) -> Window {
        // One word more than requested: the newest word is partly filled.
        let words = (frames.div_ceil(64) + 1).next_power_of_two();
        Window { words: vec![0; words].into_boxed_slice(), next: 0, closed: Gaps::default() }
    }

    /// Numbers behind the highest that are certainly remembered.
    pub fn depth(&self) -> u64 {
        (self.words.len() as u64 - 1) * 64
    }

    /// One above the highest number seen.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// A frame of this number has arrived.
    #[inline(always)]
    pub fn note(&mut self, sequence: u64) -> Arrival {
        let mask = self.words.len() - 1;
        let word = (sequence / 64) as usize & mask;
        let bit = 1 << (sequence % 64);
        if sequence >= self.next {
            if sequence / 64 != self.next.wrapping_sub(1) / 64 {
                self.clear_up_to(sequence);
            }
            self.words[word] |= bit;
            self.next = sequence + 1;
            return Arrival::InOrder;
        }
        if self.next - sequence > self.depth() {
            return Arrival::TooLate;
        }
        if self.words[word] & bit != 0 {
            return Arrival::Duplicate;
        }
        self.words[word] |= bit;
        Arrival::Reordered
    }

    /// The next `count` numbers have arrived, in order.
    #[inline]
    pub fn note_run(&mut self, count: u64) {
        let mask = self.words.len() - 1;
        let end = self.next + count;
        while self.next < end {
            let (word, bit) = ((self.next / 64) as usize & mask, self.next % 64);
            let here = (64 - bit).min(end - self.next);
            let bits = (u64::MAX >> (64 - here)) << bit;
            if bit == 0 {
                // What a word had before the first of its numbers came is long ago.
                self.close_word(self.next / 64);
                self.words[word] = bits;
            } else {
                self.words[word] |= bits;
            }
            self.next += here;
        }
    }

    /// Begin the word of number `word` × 64: count the gaps of the word that stood there before.
    #[inline(always)]
    fn close_word(&mut self, word: u64) {
        let count = self.words.len() as u64;
        if word >= count {
            self.closed.word(self.words[word as usize & (count as usize - 1)]);
        }
    }

    /// Empty the words between the newest and the one that `sequence` falls into, itself included.
    #[inline]
    fn clear_up_to(&mut self, sequence: u64) {
        let count = self.words.len() as u64;
        let first = self.next.div_ceil(64);
        let last = sequence / 64;
        // Further than once around there is nothing left but numbers that never came.
        let once_around = last.min(first + count - 1);
        debug_assert!(first <= last, "words begin one after the other");
        for word in first..=once_around {
            self.close_word(word);
            self.words[word as usize & (count as usize - 1)] = 0;
        }
        self.closed.lost(64 * (last - once_around));
    }

    /// The gaps of the stream's first `sent` numbers, as far as is known now.
    pub fn gaps(&self, sent: u64) -> Gaps {
        let mut gaps = self.closed;
        let count = self.words.len() as u64;
        let newest = self.next.div_ceil(64);
        let oldest = newest.saturating_sub(count);
        for word in oldest..newest.min(sent.div_ceil(64)) {
            let bits = self.words[word as usize & (count as usize - 1)];
            gaps.bits(bits, (sent - word * 64).min(64) as u32);
        }
        gaps.lost(sent.saturating_sub(newest * 64));
        gaps.close();
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// Remembers everything.
    #[derive(Default)]
    struct Model {
        seen: HashSet<u64>,
        next: u64,
    }

    impl Model {
        fn gaps(&self, sent: u64) -> Gaps {
            let mut gaps = Gaps::default();
            (0..sent).for_each(|n| gaps.bits(u64::from(self.seen.contains(&n)), 1));
            gaps.close();
            gaps
        }
    }

    impl Model {
        fn note(&mut self, sequence: u64, depth: u64) -> Arrival {
            if sequence >= self.next {
                self.next = sequence + 1;
                self.seen.insert(sequence);
                return Arrival::InOrder;
            }
            if self.next - sequence > depth {
                return Arrival::TooLate;
            }
            if self.seen.insert(sequence) { Arrival::Reordered } else { Arrival::Duplicate }
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_model_that_forgets_nothing(
            steps in prop::collection::vec(prop_oneof![
                8 => -3i64..6, 2 => -80i64..90, 1 => -500i64..1500,
            ], 1..600),
            frames in 1usize..300,
        ) {
            let (mut window, mut model) = (Window::new(frames), Model::default());
            prop_assert!(window.depth() >= frames as u64);
            let mut at = 0i64;
            for step in steps {
                at = (at + step).max(0);
                let expected = model.note(at as u64, window.depth());
                prop_assert_eq!(window.note(at as u64), expected, "sequence {}", at);
            }
            for sent in [model.next, model.next + 1, model.next + 200] {
                prop_assert_eq!(window.gaps(sent), model.gaps(sent));
            }
        }
    }

    #[test]
    fn a_run_is_as_many_frames_one_after_the_other() {
        for (before, count) in
            [(0, 1), (0, 64), (3, 61), (3, 62), (60, 300), (64, 128), (1000, 256)]
        {
            let (mut one, mut other) = (Window::new(128), Window::new(128));
            // A round of the bitmap before, so that old bits are there to be cleared.
            for sequence in (0..before).filter(|s| s % 3 != 0 || s + 1 == before) {
                assert_eq!(one.note(sequence), other.note(sequence));
            }
            let first = one.next();
            one.note_run(count);
            (first..first + count).for_each(|s| assert_eq!(other.note(s), Arrival::InOrder));
            assert_eq!(one.next(), other.next());
            assert_eq!(one.words, other.words, "{before} and {count}");
            assert_eq!(one.gaps(one.next()), other.gaps(other.next()), "{before} and {count}");
        }
    }

    #[test]
    fn a_gap_longer_than_the_window_leaves_nothing_behind() {
        let mut window = Window::new(128);
        (0..200).for_each(|s| assert_eq!(window.note(s), Arrival::InOrder));
        assert_eq!(window.note(10_000), Arrival::InOrder);
        for sequence in 10_000 - window.depth() + 1..10_000 {
            assert_eq!(window.note(sequence), Arrival::Reordered);
        }
        assert_eq!(window.note(199), Arrival::TooLate);
    }
}
