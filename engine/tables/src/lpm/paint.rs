//! The writer's work on a trie: give address ranges a new leaf, in place, word by word.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use super::memory::{
    Entry, NODE_BITS, NODE_SLOTS, NODE_WORDS, Skip, TrieMemory, TrieSlots, WORD_BITS, WORD_SLOTS,
    base_of, bitmap_of, entry_of, inline_word, is_dense, is_leaf, run_word,
};
use crate::prefix::Address;

/// More runs than this in a node make it a dense block; so does a dense block below it.
const NODE_RUNS_MAX: u32 = 64;
/// No more runs than this in a dense block make it a node again.
const DENSE_RUNS_MIN: u32 = 32;
/// With no more runs than this a node may be a single leaf or a skip.
const SPARSE_RUNS_MAX: u32 = NODE_WORDS as u32 + 2;

/// A range of addresses, both ends included, and the leaf it gets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<A> {
    pub first: A,
    pub last: A,
    pub leaf: u32,
}

/// The writer at work on tries of one family. That there is room was checked before.
pub(crate) struct Painter<'a, A> {
    pub memory: &'a TrieMemory,
    pub slots: &'a mut TrieSlots,
    pub family: PhantomData<A>,
}

const ROOM: &str = "room was checked before painting";

impl<A: Address> Painter<'_, A> {
    /// Paint ascending, disjoint `pieces` on `words`, which cover the block from `first` on; each
    /// slot has `slot_bits` address bits. Every piece touches the block.
    pub fn paint_words(
        &mut self,
        words: &[AtomicU64],
        first: A,
        slot_bits: u32,
        pieces: &[Piece<A>],
    ) {
        let word_bits = slot_bits + WORD_BITS;
        let ones = (A::ONE << word_bits) - A::ONE;
        let block_last = first + (A::MAX >> (A::BITS - word_bits - words.len().trailing_zeros()));
        let (mut next, mut from) = (0, first);
        while next < pieces.len() {
            let piece = pieces[next];
            let start = piece.first.max(from);
            let index = ((start - first) >> word_bits).low();
            let word_first = first + ((start - first) & !ones);
            let word_last = word_first | ones;
            if start == word_first && piece.last >= word_last {
                self.fill_word(&words[index], piece.leaf);
            } else {
                let end = next + pieces[next..].partition_point(|piece| piece.first <= word_last);
                let mut slots = self.decode(words[index].load(Ordering::Relaxed), slot_bits);
                self.paint_slots(&mut slots, word_first, slot_bits, &pieces[next..end]);
                self.encode(&words[index], &slots);
                next = end - 1;
            }
            if pieces[next].last <= word_last {
                next += 1;
            }
            if word_last == block_last {
                break;
            }
            from = word_last + A::ONE;
        }
    }

    /// Paint on decoded slots of a block from `first` on.
    pub fn paint_slots(
        &mut self,
        slots: &mut [u32],
        first: A,
        slot_bits: u32,
        pieces: &[Piece<A>],
    ) {
        let ones = (A::ONE << slot_bits) - A::ONE;
        let block_last = first + (A::MAX >> (A::BITS - slot_bits - slots.len().trailing_zeros()));
        let (mut next, mut from) = (0, first);
        while next < pieces.len() {
            let piece = pieces[next];
            let start = piece.first.max(from);
            let index = ((start - first) >> slot_bits).low();
            let slot_first = first + ((start - first) & !ones);
            let slot_last = slot_first | ones;
            let mut painted_last = slot_last;
            if start == slot_first && piece.last >= slot_last {
                // As many whole slots as it covers.
                let last = piece.last.min(block_last);
                let end = ((last - first) >> slot_bits).low() + usize::from((last & ones) == ones);
                for slot in &mut slots[index..end] {
                    if !is_leaf(*slot) {
                        self.retire_tree(*slot);
                    }
                    *slot = piece.leaf;
                }
                if end == slots.len() {
                    break;
                }
                painted_last = first + (A::from_halves(0, end as u64) << slot_bits) - A::ONE;
            } else {
                let end = next + pieces[next..].partition_point(|piece| piece.first <= slot_last);
                slots[index] =
                    self.paint_below(slots[index], slot_first, slot_bits, &pieces[next..end]);
                next = end - 1;
            }
            if pieces[next].last <= painted_last {
                next += 1;
            }
            if painted_last == block_last {
                break;
            }
            from = painted_last + A::ONE;
        }
    }

    /// Paint on what `entry` leads to, a block of `bits` address bits from `first` on, none of
    /// whose pieces covers it; returns the entry to publish in its place.
    fn paint_below(&mut self, entry: u32, first: A, bits: u32, pieces: &[Piece<A>]) -> u32 {
        let slot_bits = bits - NODE_BITS;
        if let Entry::Node(index) = entry_of(entry) {
            let words = self.memory.nodes.get(index as usize);
            self.paint_words(words, first, slot_bits, pieces);
            return self.finish_node(entry, first, slot_bits);
        }
        if let Entry::Wide(index) = entry_of(entry)
            && let Some(entry) = self.paint_wide(index, bits, pieces)
        {
            return entry;
        }
        let mut slots = self.expand(entry, first, slot_bits);
        self.paint_slots(&mut slots, first, slot_bits, pieces);
        if let Entry::Dense(base) = entry_of(entry) {
            if let Some(wide) = self.build_wide(&slots, first, slot_bits) {
                self.slots.entries.retire(base, NODE_SLOTS);
                return wide;
            }
            if stays_dense(&slots) {
                for (slot, value) in slots.iter().enumerate() {
                    self.memory.entries.get(base as usize + slot).store(*value, Ordering::Release);
                }
                return entry;
            }
            self.slots.entries.retire(base, NODE_SLOTS);
        }
        self.build(&slots, first, slot_bits)
    }

    /// The 256 slots of a block. A skip that is used up is retired.
    fn expand(&mut self, entry: u32, first: A, slot_bits: u32) -> [u32; NODE_SLOTS] {
        match entry_of(entry) {
            Entry::Leaf(_) => [entry; NODE_SLOTS],
            Entry::Dense(base) => std::array::from_fn(|slot| {
                self.memory.entries.get(base as usize + slot).load(Ordering::Relaxed)
            }),
            Entry::Wide(index) => self.expand_wide(index, first, slot_bits),
            Entry::Skip(index) => {
                let skip = self.skip(index);
                let mut slots = [skip.miss; NODE_SLOTS];
                let slot = ((skip.key - first) >> slot_bits).low();
                if skip.shift < slot_bits {
                    slots[slot] = entry;
                } else {
                    slots[slot..slot + (1 << (skip.shift - slot_bits))].fill(skip.hit);
                    self.slots.skips.retire(index, 1);
                }
                slots
            }
            Entry::Node(index) => self.node_slots(index, slot_bits),
        }
    }

    /// As `expand`, for a block that is taken apart: a node or a dense block is retired as well.
    pub fn unfold(&mut self, entry: u32, first: A, slot_bits: u32) -> [u32; NODE_SLOTS] {
        let slots = self.expand(entry, first, slot_bits);
        match entry_of(entry) {
            Entry::Dense(base) => self.slots.entries.retire(base, NODE_SLOTS),
            Entry::Node(index) => self.retire_node(index),
            _ => {}
        }
        slots
    }

    fn node_slots(&self, index: u32, slot_bits: u32) -> [u32; NODE_SLOTS] {
        let mut slots = [0; NODE_SLOTS];
        let words = self.memory.nodes.get(index as usize);
        for (word, part) in words.iter().zip(slots.chunks_exact_mut(WORD_SLOTS)) {
            part.copy_from_slice(&self.decode(word.load(Ordering::Relaxed), slot_bits));
        }
        slots
    }

    /// The best form of a block of 256 decoded slots.
    pub fn build(&mut self, slots: &[u32; NODE_SLOTS], first: A, slot_bits: u32) -> u32 {
        let runs = count_runs(slots);
        if let Some(entry) = self.build_sparse(slots, runs, first, slot_bits) {
            return entry;
        }
        if let Some(entry) = self.build_wide(slots, first, slot_bits) {
            return entry;
        }
        if runs > NODE_RUNS_MAX || lead_to_dense(slots) {
            let base = self.slots.entries.take(NODE_SLOTS).expect(ROOM);
            for (slot, value) in slots.iter().enumerate() {
                self.memory.entries.get(base as usize + slot).store(*value, Ordering::Relaxed);
            }
            return Entry::Dense(base).code();
        }
        let index = self.slots.nodes.take(1).expect(ROOM);
        let words = self.memory.nodes.get(index as usize);
        for (word, part) in words.iter().zip(slots.chunks_exact(WORD_SLOTS)) {
            // what an earlier node left here is not ours to retire
            word.store(0, Ordering::Relaxed);
            self.encode(word, part.try_into().expect("32 slots"));
        }
        Entry::Node(index).code()
    }

    /// A leaf, if all slots are the same; a skip, if one aligned part differs from the rest.
    fn build_sparse(
        &mut self,
        slots: &[u32; NODE_SLOTS],
        runs: u32,
        first: A,
        slot_bits: u32,
    ) -> Option<u32> {
        if runs == 1 && is_leaf(slots[0]) {
            return Some(slots[0]);
        }
        if runs > 3 {
            return None;
        }
        let (start, len) = lone_part(slots, runs)?;
        let miss = if start == 0 { slots[NODE_SLOTS - 1] } else { slots[0] };
        let hit = slots[start];
        let key = first + (A::from_halves(0, start as u64) << slot_bits);
        if let Entry::Skip(index) | Entry::Wide(index) = entry_of(hit) {
            let skip = self.skip(index);
            if skip.miss == miss {
                return Some(hit);
            }
            if skip.width != 0 && skip.shift == slot_bits {
                // A wide block that is the whole slot never misses there: it takes this miss.
                self.slots.skips.retire(index, 1);
                return Some(self.place_skip(Skip { miss, ..skip }));
            }
        }
        Some(self.place_skip(Skip {
            key,
            shift: slot_bits + len.trailing_zeros(),
            width: 0,
            hit,
            miss,
        }))
    }

    /// The skip that is there under this number.
    pub fn skip(&self, index: u32) -> Skip<A> {
        Skip::load(self.memory.skip::<A>(index))
    }

    /// A place for a skip, and the entry that leads to it.
    pub fn place_skip(&mut self, skip: Skip<A>) -> u32 {
        let index = self.slots.skips.take(1).expect(ROOM);
        skip.store(self.memory.skip::<A>(index));
        if skip.width == 0 { Entry::Skip(index).code() } else { Entry::Wide(index).code() }
    }

    /// A node that was painted on may have become simple enough for a leaf or a skip, or full
    /// enough for a dense block.
    fn finish_node(&mut self, entry: u32, first: A, slot_bits: u32) -> u32 {
        let Entry::Node(index) = entry_of(entry) else { return entry };
        let words = self.memory.nodes.get(index as usize);
        let runs: u32 = words
            .iter()
            .map(|word| bitmap_of(word.load(Ordering::Relaxed)).count_ones().max(1))
            .sum();
        let few = runs <= SPARSE_RUNS_MAX;
        if !few && runs <= NODE_RUNS_MAX && !words.iter().any(|word| self.leads_to_dense(word)) {
            return entry;
        }
        let slots = self.node_slots(index, slot_bits);
        let exact = count_runs(&slots);
        let sparse = if few { self.build_sparse(&slots, exact, first, slot_bits) } else { None };
        let better = match sparse {
            None if exact > NODE_RUNS_MAX || lead_to_dense(&slots) => {
                Some(self.build(&slots, first, slot_bits))
            }
            sparse => sparse,
        };
        if better.is_some() {
            self.retire_node(index);
        }
        better.unwrap_or(entry)
    }

    /// Does a slot of this word lead to a dense block?
    fn leads_to_dense(&self, word: &AtomicU64) -> bool {
        let word = word.load(Ordering::Relaxed);
        match bitmap_of(word).count_ones() as usize {
            0 => is_dense(base_of(word)),
            runs => {
                let entries = self.memory.entries.slice(base_of(word) as usize, runs);
                entries.iter().any(|entry| is_dense(entry.load(Ordering::Relaxed)))
            }
        }
    }

    /// Retire a node and its runs, but not what its slots lead to.
    pub fn retire_node(&mut self, index: u32) {
        for word in self.memory.nodes.get(index as usize) {
            self.retire_run(word.load(Ordering::Relaxed));
        }
        self.slots.nodes.retire(index, 1);
    }

    /// Retire a word's run, but not what it leads to.
    pub fn retire_run(&mut self, word: u64) {
        if bitmap_of(word) != 0 {
            self.slots.entries.retire(base_of(word), bitmap_of(word).count_ones() as usize);
        }
    }

    /// Retire all that `entry` leads to.
    pub fn retire_tree(&mut self, entry: u32) {
        match entry_of(entry) {
            Entry::Leaf(_) => {}
            Entry::Skip(index) => {
                self.retire_tree(self.skip(index).hit);
                self.slots.skips.retire(index, 1);
            }
            Entry::Wide(index) => self.retire_wide_tree(index),
            Entry::Node(index) => {
                let words = self.memory.nodes.get(index as usize);
                words.iter().for_each(|word| self.retire_word(word.load(Ordering::Relaxed)));
                self.slots.nodes.retire(index, 1);
            }
            Entry::Dense(base) => {
                for slot in 0..NODE_SLOTS {
                    self.retire_tree(
                        self.memory.entries.get(base as usize + slot).load(Ordering::Relaxed),
                    );
                }
                self.slots.entries.retire(base, NODE_SLOTS);
            }
        }
    }

    /// Retire a word's run and all that it leads to.
    pub fn retire_word(&mut self, word: u64) {
        let bitmap = bitmap_of(word);
        if bitmap == 0 {
            return self.retire_tree(base_of(word));
        }
        for run in 0..bitmap.count_ones() as usize {
            let entry =
                self.memory.entries.get(base_of(word) as usize + run).load(Ordering::Relaxed);
            if !is_leaf(entry) {
                self.retire_tree(entry);
            }
        }
        self.retire_run(word);
    }

    fn fill_word(&mut self, word: &AtomicU64, leaf: u32) {
        let old = word.load(Ordering::Relaxed);
        if old != inline_word(leaf) {
            word.store(inline_word(leaf), Ordering::Release);
            self.retire_word(old);
        }
    }

    /// The 32 slots of a word, each of so many address bits.
    pub fn decode(&self, word: u64, slot_bits: u32) -> [u32; WORD_SLOTS] {
        let bitmap = bitmap_of(word);
        if bitmap == 0 {
            let (Entry::Skip(index) | Entry::Wide(index)) = entry_of(base_of(word)) else {
                return [base_of(word); WORD_SLOTS];
            };
            let skip = self.skip(index);
            let mut slots = [skip.miss; WORD_SLOTS];
            slots[(skip.key >> slot_bits).low() % WORD_SLOTS] = base_of(word);
            return slots;
        }
        let mut slots = [0; WORD_SLOTS];
        let runs = self.memory.entries.slice(base_of(word) as usize, bitmap.count_ones() as usize);
        let mut left = bitmap;
        for run in runs {
            let start = left.trailing_zeros() as usize;
            left &= left - 1;
            let end = if left == 0 { WORD_SLOTS } else { left.trailing_zeros() as usize };
            slots[start..end].fill(run.load(Ordering::Relaxed));
        }
        slots
    }

    /// What can stand in the word itself: a leaf that all slots are, or a skip that speaks of all
    /// of them.
    fn inline_entry(&self, bitmap: u32, slots: &[u32; WORD_SLOTS]) -> Option<u32> {
        if bitmap.count_ones() == 1 {
            return Some(slots[0]);
        }
        if bitmap.count_ones() > 3 {
            return None;
        }
        // A lone slot among equal ones starts the first run or the second.
        let starts = [0, (bitmap & !1).trailing_zeros() as usize];
        let slot = starts.into_iter().find(|slot| !is_leaf(slots[*slot]))?;
        let (Entry::Skip(index) | Entry::Wide(index)) = entry_of(slots[slot]) else { return None };
        let miss = self.skip(index).miss;
        let others = slots.iter().enumerate().all(|(other, entry)| other == slot || *entry == miss);
        others.then_some(slots[slot])
    }

    /// Publish `slots` in `word`, and retire the run that was there.
    pub fn encode(&mut self, word: &AtomicU64, slots: &[u32; WORD_SLOTS]) {
        let old = word.load(Ordering::Relaxed);
        let bitmap = run_bitmap(slots);
        if let Some(entry) = self.inline_entry(bitmap, slots) {
            if old != inline_word(entry) {
                word.store(inline_word(entry), Ordering::Release);
                self.retire_run(old);
            }
            return;
        }
        let in_place = bitmap == bitmap_of(old);
        let count = bitmap.count_ones() as usize;
        let base =
            if in_place { base_of(old) } else { self.slots.entries.take(count).expect(ROOM) };
        let runs = self.memory.entries.slice(base as usize, count);
        let mut left = bitmap;
        for run in runs {
            let value = slots[left.trailing_zeros() as usize];
            left &= left - 1;
            // Release: in place, this store is what publishes a new node.
            run.store(value, Ordering::Release);
        }
        if !in_place {
            word.store(run_word(bitmap, base), Ordering::Release);
            self.retire_run(old);
        }
    }
}

/// Bit i is set where slot i differs from the one before; bit 0 always.
fn run_bitmap(slots: &[u32; WORD_SLOTS]) -> u32 {
    let mut bitmap = 1;
    for slot in 1..WORD_SLOTS {
        bitmap |= u32::from(slots[slot] != slots[slot - 1]) << slot;
    }
    bitmap
}

fn count_runs(slots: &[u32; NODE_SLOTS]) -> u32 {
    1 + slots.windows(2).map(|pair| u32::from(pair[0] != pair[1])).sum::<u32>()
}

/// Does one of the slots lead to a dense block? What goes down there should be fast here too: one
/// load in place of two that wait for each other, for a kilobyte a level.
pub(super) fn lead_to_dense(slots: &[u32; NODE_SLOTS]) -> bool {
    // A sum becomes vectors.
    slots.iter().map(|slot| u32::from(is_dense(*slot))).sum::<u32>() != 0
}

/// Is this worth a dense block, once it is one?
pub(super) fn stays_dense(slots: &[u32; NODE_SLOTS]) -> bool {
    count_runs(slots) > DENSE_RUNS_MIN || lead_to_dense(slots)
}

/// The aligned power of two of equal slots that differs from all others, which are one and the
/// same leaf. There are `runs` of equal slots, three at most.
fn lone_part(slots: &[u32; NODE_SLOTS], runs: u32) -> Option<(usize, usize)> {
    let (first, last) = (slots[0], slots[NODE_SLOTS - 1]);
    let candidates = match runs {
        2 => {
            let border = slots.iter().position(|slot| *slot != first)?;
            [(0, border), (border, NODE_SLOTS)]
        }
        3 if first == last => {
            let start = slots.iter().position(|slot| *slot != first)?;
            let end = NODE_SLOTS - slots.iter().rev().position(|slot| *slot != last)?;
            [(start, end), (start, end)]
        }
        _ => return None,
    };
    candidates.into_iter().find_map(|(from, to)| {
        let len = to - from;
        let rest = if from == 0 { last } else { first };
        let aligned = len.is_power_of_two() && from.is_multiple_of(len);
        // What is no leaf is one slot's own.
        let single = is_leaf(slots[from]) || len == 1;
        (aligned && single && is_leaf(rest)).then_some((from, len))
    })
}
