//! Which datagrams of an incarnation have come: each is taken once (as RFC 4303 §3.4.3 does it).

/// Datagrams behind the newest one that are still taken.
const WINDOW: u64 = 1024;
const WORDS: usize = (WINDOW / 64) as usize;

/// The window.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    newest: u64,
    seen: [u64; WORDS],
}

impl Replay {
    /// Is the datagram with this number, from 1 on, new? It is not from now on.
    pub fn take(&mut self, number: u64) -> bool {
        if number == 0 || number.saturating_add(WINDOW) <= self.newest {
            return false;
        }
        if number > self.newest {
            let ahead = number - self.newest;
            if ahead >= WINDOW {
                self.seen = [0; WORDS];
            } else {
                (self.newest + 1..=number).for_each(|between| *self.word(between) &= !bit(between));
            }
            self.newest = number;
        }
        let word = self.word(number);
        let is_new = *word & bit(number) == 0;
        *word |= bit(number);
        is_new
    }

    fn word(&mut self, number: u64) -> &mut u64 {
        &mut self.seen[(number % WINDOW / 64) as usize]
    }
}

fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_number_is_taken_once(numbers in prop::collection::vec(0u64..3000, 0..400)) {
            let (mut replay, mut taken) = (Replay::default(), BTreeSet::new());
            for number in numbers {
                let newest = taken.last().copied().unwrap_or(0);
                let expected =
                    number > 0 && number + WINDOW > newest && !taken.contains(&number);
                prop_assert_eq!(replay.take(number), expected);
                if expected {
                    taken.insert(number);
                }
            }
        }
    }

    #[test]
    fn the_last_number_of_all_is_taken_once() {
        let mut replay = Replay::default();
        assert!(replay.take(u64::MAX) && !replay.take(u64::MAX) && !replay.take(1));
    }
}
