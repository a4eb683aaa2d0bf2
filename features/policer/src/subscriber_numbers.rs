//! Numbers of subscribers: those of a prefix follow each other, and their count is a power of two.

use std::collections::BTreeSet;

/// The free numbers below a power of two, in aligned blocks.
pub(crate) struct Numbers {
    /// The first numbers of free blocks, by width; no two that are one block's halves.
    free: Vec<BTreeSet<u32>>,
}

impl Numbers {
    /// All numbers of so many bits are free.
    pub fn new(bits: u8) -> Numbers {
        let mut free = vec![BTreeSet::new(); usize::from(bits) + 1];
        if let Some(widest) = free.last_mut() {
            widest.insert(0);
        }
        Numbers { free }
    }

    /// Take `1 << width` numbers: the first of them.
    pub fn take(&mut self, width: u8) -> Option<u32> {
        let width = usize::from(width);
        let from = (width..self.free.len()).find(|width| !self.free[*width].is_empty())?;
        let first = self.free[from].pop_first()?;
        // What is not needed of the block is its upper half, and that of the lower one, and so on.
        (width..from).for_each(|width| {
            self.free[width].insert(first + (1 << width));
        });
        Some(first)
    }

    /// Give `1 << width` numbers back.
    pub fn give(&mut self, first: u32, width: u8) {
        let (mut first, mut width) = (first, usize::from(width));
        while width + 1 < self.free.len() && self.free[width].remove(&(first ^ 1 << width)) {
            first &= !(1 << width);
            width += 1;
        }
        self.free[width].insert(first);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BITS: u8 = 6;

    proptest! {
        /// Beside a plain list of who has which number.
        #[test]
        fn blocks_never_overlap_and_come_together_again(
            steps in prop::collection::vec((0..=BITS, any::<prop::sample::Index>()), 1..80),
        ) {
            let (mut numbers, mut taken) = (Numbers::new(BITS), Vec::<(u32, u8)>::new());
            for (width, which) in steps {
                if width % 3 == 0 && !taken.is_empty() {
                    let (first, width) = taken.swap_remove(which.index(taken.len()));
                    numbers.give(first, width);
                    continue;
                }
                let used: u32 = taken.iter().map(|(_, width)| 1 << width).sum();
                match numbers.take(width) {
                    Some(first) => {
                        prop_assert_eq!(first % (1 << width), 0);
                        prop_assert!(first + (1 << width) <= 1 << BITS);
                        let overlaps = |(other, wide): &(u32, u8)| {
                            first < other + (1 << wide) && *other < first + (1 << width)
                        };
                        prop_assert!(!taken.iter().any(overlaps));
                        taken.push((first, width));
                    }
                    None => prop_assert!(width > 0 || used == 1 << BITS),
                }
            }
            taken.iter().for_each(|(first, width)| numbers.give(*first, *width));
            prop_assert_eq!(numbers.take(BITS), Some(0));
        }
    }
}
