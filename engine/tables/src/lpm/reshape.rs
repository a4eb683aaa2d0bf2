//! Blocks that change their form: nodes that become part of a big root, and come out of it again.
//! What lies below keeps its place, so readers get the same answers on either way.

use std::sync::atomic::{AtomicU64, Ordering};

use super::memory::{Entry, NODE_SLOTS, WORD_SLOTS, entry_of, inline_leaf, inline_word};
use super::paint::Painter;
use crate::prefix::Address;

/// Do the eight words of a part say one leaf?
fn part_leaf(words: &[AtomicU64]) -> Option<u32> {
    let first = words[0].load(Ordering::Relaxed);
    let same = words.iter().all(|word| word.load(Ordering::Relaxed) == first);
    inline_leaf(first).filter(|_| same)
}

impl<A: Address> Painter<'_, A> {
    /// Write what `entry` leads to, a block from `first` on, into eight words whose slots have
    /// `slot_bits` address bits.
    pub fn lift(&mut self, entry: u32, first: A, slot_bits: u32, words: &[AtomicU64]) {
        match entry_of(entry) {
            Entry::Leaf(_) => {
                words.iter().for_each(|word| word.store(inline_word(entry), Ordering::Relaxed))
            }
            Entry::Node(node) => {
                for (to, from) in words.iter().zip(self.memory.nodes.get(node as usize)) {
                    to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
                }
                self.slots.nodes.retire(node, 1);
            }
            Entry::Dense(_) | Entry::Skip(_) | Entry::Wide(_) => {
                let slots = self.unfold(entry, first, slot_bits);
                for (word, part) in words.iter().zip(slots.chunks_exact(WORD_SLOTS)) {
                    word.store(0, Ordering::Relaxed);
                    self.encode(word, part.try_into().expect("32 slots"));
                }
            }
        }
    }

    /// The entry for what eight words say, which are given up.
    pub fn sink(&mut self, first: A, slot_bits: u32, words: &[AtomicU64]) -> u32 {
        if let Some(leaf) = part_leaf(words) {
            return leaf;
        }
        let mut slots = [0; NODE_SLOTS];
        for (word, part) in words.iter().zip(slots.chunks_exact_mut(WORD_SLOTS)) {
            part.copy_from_slice(&self.decode(word.load(Ordering::Relaxed), slot_bits));
            self.retire_run(word.load(Ordering::Relaxed));
        }
        self.build(&slots, first, slot_bits)
    }
}
