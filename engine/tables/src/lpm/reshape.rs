//! Blocks that change their form: nodes that become part of a wide node or of a root, and come out of
//! it again. What lies below keeps its place, so readers get the same answers on either way.

use std::sync::atomic::{AtomicU64, Ordering};

use super::memory::{
    Entry, NODE_BITS, NODE_SLOTS, NODE_WORDS, TrieMemory, WIDE_NODES, WORD_SLOTS, base_of, bitmap_of,
    entry_of, inline_leaf, inline_word,
};
use super::paint::{Painter, ROOM};
use crate::prefix::Address;

/// A block with so many nodes among its slots becomes a wide node (16 KB), which spares each look-up a
/// level.
const WIDE_CHILDREN_MIN: usize = 16;
/// With fewer parts than this that are no leaf it is taken apart.
const WIDE_PARTS_MIN: usize = 8;

/// Do the eight words of a part say one leaf?
fn part_leaf(words: &[AtomicU64]) -> Option<u32> {
    let first = words[0].load(Ordering::Relaxed);
    let same = words.iter().all(|word| word.load(Ordering::Relaxed) == first);
    inline_leaf(first).filter(|_| same)
}

/// The words of a wide node, 65,536 slots.
pub(crate) fn wide_words(memory: &TrieMemory, index: u32) -> impl Iterator<Item = &[AtomicU64; NODE_WORDS]> {
    memory.nodes.slice(index as usize, WIDE_NODES).iter()
}

impl<A: Address> Painter<'_, A> {
    /// Write what `entry` leads to, a block from `first` on, into eight words whose slots have
    /// `slot_bits` address bits.
    pub fn lift(&mut self, entry: u32, first: A, slot_bits: u32, words: &[AtomicU64]) {
        match entry_of(entry) {
            Entry::Leaf(_) => words.iter().for_each(|word| word.store(inline_word(entry), Ordering::Relaxed)),
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

    /// A block of `bits` address bits, as a wide node if there are enough nodes in it.
    pub fn widen(&mut self, entry: u32, first: A, bits: u32) -> u32 {
        if A::BITS == 32 || bits < 2 * NODE_BITS || self.child_nodes(entry) < WIDE_CHILDREN_MIN {
            return entry;
        }
        let slot_bits = bits - NODE_BITS;
        let slots = match entry_of(entry) {
            Entry::Node(index) => {
                let slots = self.node_slots(index, slot_bits);
                self.retire_node(index);
                slots
            }
            _ => self.unfold(entry, first, slot_bits),
        };
        let memory = self.memory;
        let index = self.slots.nodes.take(WIDE_NODES).expect(ROOM);
        for (slot, words) in wide_words(memory, index).enumerate() {
            let start = first + (A::from_halves(0, slot as u64) << slot_bits);
            self.lift(slots[slot], start, slot_bits - NODE_BITS, words);
        }
        Entry::Wide(index).code()
    }

    /// How many slots of a node or dense block lead to nodes.
    fn child_nodes(&self, entry: u32) -> usize {
        let entries = &self.memory.entries;
        let count = |base: u32, len: usize| {
            let run = entries.slice(base as usize, len).iter();
            run.filter(|entry| {
                matches!(entry_of(entry.load(Ordering::Relaxed)), Entry::Node(_) | Entry::Wide(_))
            })
            .count()
        };
        match entry_of(entry) {
            Entry::Dense(base) => count(base, NODE_SLOTS),
            Entry::Node(index) => {
                let words =
                    self.memory.nodes.get(index as usize).iter().map(|word| word.load(Ordering::Relaxed));
                // What stands in a word itself is no node.
                let runs = words.filter(|word| bitmap_of(*word) != 0);
                runs.map(|word| count(base_of(word), bitmap_of(word).count_ones() as usize)).sum()
            }
            _ => 0,
        }
    }

    /// A wide node of `bits` address bits was painted on, first at `start`: it may have become simple
    /// enough to be taken apart.
    pub fn settle_wide(&mut self, index: u32, first: A, bits: u32, start: A) -> u32 {
        let entry = Entry::Wide(index).code();
        let memory = self.memory;
        let touched = ((start.max(first) - first) >> (bits - NODE_BITS)).low() % NODE_SLOTS;
        let is_plain = part_leaf(memory.nodes.get(index as usize + touched)).is_some();
        if !is_plain {
            return entry;
        }
        let parts = wide_words(memory, index).filter(|words| part_leaf(*words).is_none()).count();
        if parts >= WIDE_PARTS_MIN {
            return entry;
        }
        let slots = self.unfold(entry, first, bits - NODE_BITS);
        self.build(&slots, first, bits - NODE_BITS)
    }

    /// The 256 slots, of `slot_bits` address bits each, of a wide node that is given up.
    pub fn unfold_wide(&mut self, index: u32, first: A, slot_bits: u32) -> [u32; NODE_SLOTS] {
        let memory = self.memory;
        let mut slots = [0; NODE_SLOTS];
        for (slot, words) in wide_words(memory, index).enumerate() {
            let start = first + (A::from_halves(0, slot as u64) << slot_bits);
            slots[slot] = self.sink(start, slot_bits - NODE_BITS, words);
        }
        self.slots.nodes.retire(index, WIDE_NODES);
        slots
    }
}
