//! Out-of-order data: stretches of bytes, as distances from the next expected byte.

/// Stretches that are remembered. What comes beyond is dropped, and sent again.
const STRETCHES: usize = 3;

/// Sorted, apart from each other; an empty stretch is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps([(u16, u16); STRETCHES]);

impl Gaps {
    /// Bytes from `start` up to `end` have come; `start` is not 0. False when they cannot be
    /// remembered.
    pub fn add(&mut self, start: u16, end: u16) -> bool {
        let (mut start, mut end) = (start, end);
        let mut all = [(0, 0); STRETCHES + 1];
        let mut count = 0;
        for (from, to) in self.0.into_iter().filter(|(from, to)| from < to) {
            if to < start || end < from {
                all[count] = (from, to);
                count += 1;
            } else {
                start = start.min(from);
                end = end.max(to);
            }
        }
        if count == STRETCHES {
            return false;
        }
        all[count] = (start, end);
        all[..=count].sort_unstable();
        self.0 = [(0, 0); STRETCHES];
        self.0[..=count].copy_from_slice(&all[..=count]);
        true
    }

    /// `count` bytes came in order: how many are there now, with what joins them.
    pub fn advance(&mut self, count: u16) -> u16 {
        let mut reached = count;
        let mut rest = Gaps::default();
        let mut kept = 0;
        for (from, to) in self.0.into_iter().filter(|(from, to)| from < to) {
            if from <= reached {
                reached = reached.max(to);
            } else {
                rest.0[kept] = (from, to);
                kept += 1;
            }
        }
        for stretch in &mut rest.0[..kept] {
            *stretch = (stretch.0 - reached, stretch.1 - reached);
        }
        *self = rest;
        reached
    }

    /// Nothing came behind a hole.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0 == [(0, 0); STRETCHES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_are_neither_lost_nor_made_up(
            steps in prop::collection::vec((0u16..60, 1u16..12), 1..60)
        ) {
            let mut gaps = Gaps::default();
            // Which bytes have come; the first that has not is the next expected.
            let mut model = vec![false; 5000];
            let mut next = 0usize;
            for (ahead, length) in steps {
                let (start, end) = (next + ahead as usize, next + (ahead + length) as usize);
                if ahead == 0 {
                    let reached = gaps.advance(length);
                    model[start..end].fill(true);
                    let expected = model[next..].iter().position(|has| !has).expect("a hole");
                    prop_assert_eq!(reached as usize, expected);
                    next += reached as usize;
                } else if gaps.add(ahead, ahead + length) {
                    model[start..end].fill(true);
                }
                let has_more = model[next..].iter().any(|has| *has);
                prop_assert_eq!(gaps.is_empty(), !has_more);
            }
        }
    }
}
