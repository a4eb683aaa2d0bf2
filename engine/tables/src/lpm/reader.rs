//! What workers do: look up. No allocation, no lock, no loop that depends on how many prefixes
//! there are.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use quiver_core::cpu::Variant;

use super::memory::{
    BIG_ROOT_BITS, BIG_ROOT_WORDS, Entry, INDEX_MASK, NODE_BITS, SMALL_ROOT_BITS, Skip, TrieMemory,
    WORD_BITS, base_of, bitmap_of, entry_of, is_leaf,
};
use crate::memory::{Reserved, prefetch};
use crate::next_hop_group::GroupId;
use crate::prefix::Address;

/// Look-ups that go in step: enough to hide memory, few enough to stay in registers and L1. IPv6
/// goes deeper, and gains from more where there are more.
const STAGE: usize = 16;
const STAGE_WIDE: usize = 32;

/// The bit of the root pointer that says it is a big one.
const BIG: usize = 1;

/// A longest prefix match as workers read it. Look up inside a pass, and use the answer in it.
pub struct Lpm<A: Address> {
    pub(super) memory: Arc<TrieMemory>,
    /// The root's first word; bit 0 says that it is big.
    root: AtomicPtr<AtomicU64>,
    /// The answer where nothing else matches: the default route's, or the table's drop.
    pub(super) miss: AtomicU32,
    pub(super) big: OnceLock<Reserved<AtomicU64>>,
    popcnt: bool,
    family: std::marker::PhantomData<A>,
}

/// A root, unpacked.
#[derive(Clone, Copy)]
struct Root {
    words: *const AtomicU64,
    slot_bits: u32,
}

/// Look-ups in flight.
struct Stage<const N: usize> {
    entries: [u32; N],
    words: [u64; N],
    places: [*const AtomicU32; N],
}

impl<const N: usize> Stage<N> {
    #[inline(always)]
    fn new() -> Self {
        Stage { entries: [0; N], words: [0; N], places: [std::ptr::null(); N] }
    }
}

/// More levels than any address has: 16 of 8 bits, and as many skips.
const LEVELS_MAX: u32 = 32;

/// The lanes that are still under way, by the two bits that say what they stand at.
#[derive(Clone, Copy, Default)]
struct Pending {
    low: u32,
    high: u32,
}

impl Pending {
    #[inline(always)]
    fn note(&mut self, lane: usize, entry: u32) {
        self.low |= (entry >> 30 & 1) << lane;
        self.high |= (entry >> 31) << lane;
    }

    #[inline(always)]
    fn any(self) -> bool {
        self.low | self.high != 0
    }

    #[inline(always)]
    fn skips(self) -> Lanes {
        Lanes(self.low & !self.high)
    }

    #[inline(always)]
    fn nodes(self) -> Lanes {
        Lanes(self.high & !self.low)
    }

    #[inline(always)]
    fn dense(self) -> Lanes {
        Lanes(self.low & self.high)
    }
}

/// A set of lanes, to be walked.
struct Lanes(u32);

impl Iterator for Lanes {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let lane = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(lane)
    }
}

impl<A: Address> Lpm<A> {
    pub(super) fn new(memory: &Arc<TrieMemory>, miss: GroupId) -> Self {
        let popcnt = Variant::best() >= Variant::Avx2;
        Lpm {
            memory: memory.clone(),
            root: AtomicPtr::new(memory.roots.base().cast_mut()),
            miss: AtomicU32::new(miss.0),
            big: OnceLock::new(),
            popcnt,
            family: std::marker::PhantomData,
        }
    }

    /// Publish a small root by its index, or the big one.
    pub(super) fn publish_root(&self, small: Option<u32>) {
        let pointer = match small {
            Some(index) => self.memory.root(index).as_ptr(),
            None => self.big.get().expect("a big root was made").base().map_addr(|address| address | BIG),
        };
        self.root.store(pointer.cast_mut(), Ordering::Release);
    }

    /// Is the root a big one?
    pub fn has_big_root(&self) -> bool {
        self.root.load(Ordering::Relaxed).addr() & BIG != 0
    }

    /// Bytes in memory of this table's own root.
    pub fn big_root_bytes(&self) -> usize {
        self.big.get().map_or(0, |root| root.resident_bytes())
    }

    #[inline(always)]
    fn root(&self) -> Root {
        let pointer = self.root.load(Ordering::Acquire);
        let bits = if pointer.addr() & BIG != 0 { BIG_ROOT_BITS } else { SMALL_ROOT_BITS };
        Root { words: pointer.map_addr(|address| address & !BIG), slot_bits: A::BITS - bits }
    }

    /// The next-hop group for `address` (host order).
    #[inline(always)]
    pub fn lookup(&self, address: A) -> GroupId {
        #[cfg(all(target_arch = "x86_64", not(target_feature = "popcnt")))]
        if self.popcnt {
            // SAFETY: the processor has these features.
            return unsafe { self.lookup_popcnt(address) };
        }
        self.lookup_inline(address)
    }

    #[cfg(all(target_arch = "x86_64", not(target_feature = "popcnt")))]
    #[target_feature(enable = "popcnt,bmi1,bmi2")]
    fn lookup_popcnt(&self, address: A) -> GroupId {
        self.lookup_inline(address)
    }

    /// Ask for the first line that a look-up of `address` reads.
    #[inline(always)]
    pub fn prefetch(&self, address: A) {
        let root = self.root();
        prefetch(root.words.wrapping_add((address >> (root.slot_bits + WORD_BITS)).low()));
    }

    /// The groups for `addresses`, all stages overlapped.
    #[inline(always)]
    pub fn lookup_batch<const N: usize>(&self, addresses: &[A; N]) -> [GroupId; N] {
        let mut groups = [GroupId(0); N];
        self.lookup_slice(Variant::best(), addresses, &mut groups);
        groups
    }

    /// The groups for `addresses`, into as many of `groups`, by the kernel of `variant`.
    #[inline(always)]
    pub fn lookup_slice(&self, variant: Variant, addresses: &[A], groups: &mut [GroupId]) {
        #[cfg(all(target_arch = "x86_64", not(target_feature = "popcnt")))]
        if self.popcnt && variant >= Variant::Avx2 {
            // SAFETY: the processor has these features.
            return unsafe { self.lookup_slice_popcnt(addresses, groups) };
        }
        let _ = variant;
        self.lookup_slice_inline(addresses, groups);
    }

    #[cfg(all(target_arch = "x86_64", not(target_feature = "popcnt")))]
    #[target_feature(enable = "popcnt,bmi1,bmi2")]
    fn lookup_slice_popcnt(&self, addresses: &[A], groups: &mut [GroupId]) {
        self.lookup_slice_inline(addresses, groups);
    }

    #[inline(always)]
    fn lookup_slice_inline<'s>(&self, mut addresses: &'s [A], mut groups: &'s mut [GroupId]) {
        let root = self.root();
        let miss = self.miss.load(Ordering::Relaxed);
        if A::SKIPS {
            (addresses, groups) = self.lookup_chunks::<STAGE_WIDE>(root, miss, addresses, groups);
        }
        let (rest, group_rest) = self.lookup_chunks::<STAGE>(root, miss, addresses, groups);
        if let Some(filler) = rest.first() {
            let mut chunk = [*filler; STAGE];
            chunk[..rest.len()].copy_from_slice(rest);
            let mut out = [GroupId(0); STAGE];
            self.lookup_chunks::<STAGE>(root, miss, &chunk, &mut out);
            let count = rest.len().min(group_rest.len());
            group_rest[..count].copy_from_slice(&out[..count]);
        }
    }

    /// Look up all whole chunks of `N`; what is left over comes back.
    #[inline(always)]
    fn lookup_chunks<'s, const N: usize>(
        &self,
        root: Root,
        miss: u32,
        addresses: &'s [A],
        groups: &'s mut [GroupId],
    ) -> (&'s [A], &'s mut [GroupId]) {
        let (chunks, rest) = addresses.as_chunks::<N>();
        let (group_chunks, group_rest) = groups.as_chunks_mut::<N>();
        // The root's words for the next chunk are asked for while this one is worked on.
        let ask = |chunk: &[A]| {
            for address in chunk {
                prefetch(root.words.wrapping_add((*address >> (root.slot_bits + WORD_BITS)).low()));
            }
        };
        if let Some(chunk) = chunks.first() {
            ask(chunk);
        }
        for (index, (chunk, out)) in chunks.iter().zip(group_chunks).enumerate() {
            if let Some(chunk) = chunks.get(index + 1) {
                ask(chunk);
            }
            self.lookup_staged(root, miss, chunk, out);
        }
        (rest, group_rest)
    }

    #[inline(always)]
    fn lookup_inline(&self, address: A) -> GroupId {
        let root = self.root();
        let miss = self.miss.load(Ordering::Relaxed);
        self.finish(self.lookup_root(root, address), root.slot_bits, address, miss)
    }

    /// Which entry a word holds for the slot with this number (its low five bits count), and the
    /// entry itself if it stands in the word.
    #[inline(always)]
    fn entry_place(&self, word: u64, slot: u32) -> *const AtomicU32 {
        let bitmap = bitmap_of(word);
        let before = (bitmap & (2u32 << (slot & 31)).wrapping_sub(1)).count_ones();
        // An inline word's slots all look at entry 0, which is always in cache.
        let index = if bitmap == 0 { 0 } else { base_of(word).wrapping_add(before).wrapping_sub(1) };
        // In bounds: a base that was ever published leaves room for 32 entries, and is never
        // written apart from its bitmap.
        self.memory.entries.base().wrapping_add(index as usize)
    }

    /// # Safety
    /// `place` comes from [`entry_place`](Self::entry_place) or lies in a dense block.
    #[inline(always)]
    unsafe fn entry_at(place: *const AtomicU32) -> u32 {
        // SAFETY: as the caller promises, inside the entries' mapping.
        unsafe { (*place).load(Ordering::Acquire) }
    }

    #[inline(always)]
    fn entry(&self, word: u64, slot: u32) -> u32 {
        // SAFETY: the place comes from entry_place.
        let entry = unsafe { Self::entry_at(self.entry_place(word, slot)) };
        if bitmap_of(word) == 0 { base_of(word) } else { entry }
    }

    #[inline(always)]
    fn root_word(root: Root, address: A) -> u64 {
        // SAFETY: the root covers all addresses, and roots are never unmapped while the table lives.
        unsafe { (*root.words.add((address >> (root.slot_bits + WORD_BITS)).low())).load(Ordering::Acquire) }
    }

    #[inline(always)]
    fn lookup_root(&self, root: Root, address: A) -> u32 {
        self.entry(Self::root_word(root, address), (address >> root.slot_bits).low() as u32)
    }

    /// Follow `entry`, found for a slot of `bits` address bits, down to a leaf.
    #[inline(always)]
    fn finish(&self, entry: u32, bits: u32, address: A, miss: u32) -> GroupId {
        let entry = if is_leaf(entry) { entry } else { self.descend(entry, bits, address) };
        GroupId(if entry == 0 { miss } else { entry })
    }

    #[inline(never)]
    fn descend(&self, mut entry: u32, mut bits: u32, address: A) -> u32 {
        while !is_leaf(entry) {
            (entry, bits) = self.step(entry, bits, address);
        }
        entry
    }

    /// One level down: the entry there, and how many address bits its slot has. A late reader may
    /// meet more levels than there are; it ends at a miss.
    #[inline(always)]
    fn step(&self, entry: u32, bits: u32, address: A) -> (u32, u32) {
        if A::SKIPS
            && let Entry::Skip(index) = entry_of(entry)
        {
            let skip = Skip::<A>::load(self.memory.skips.get(index as usize));
            if skip.shift >= bits {
                return (0, 0); // only a late reader meets this
            }
            let hit = (address ^ skip.key) >> skip.shift == A::ZERO;
            return (if hit { skip.hit } else { skip.miss }, skip.shift);
        }
        let Some(bits) = bits.checked_sub(NODE_BITS) else { return (0, 0) };
        let slot = (address >> bits).low() as u32 & 255;
        let next = match entry_of(entry) {
            Entry::Node(index) => {
                let node = self.memory.nodes.get(index as usize);
                self.entry(node[slot as usize >> WORD_BITS].load(Ordering::Acquire), slot)
            }
            Entry::Dense(base) => {
                self.memory.entries.get(base as usize + slot as usize).load(Ordering::Acquire)
            }
            _ => 0,
        };
        (next, bits)
    }

    /// Look-ups in step: words, entries, then level by level those that go deeper.
    #[inline(always)]
    fn lookup_staged<const N: usize>(
        &self,
        root: Root,
        miss: u32,
        addresses: &[A; N],
        groups: &mut [GroupId; N],
    ) {
        let mut stage = Stage::<N>::new();
        for (lane, address) in addresses.iter().enumerate() {
            let word = Self::root_word(root, *address);
            self.ask_entry(&mut stage, lane, word, (*address >> root.slot_bits).low() as u32);
        }
        let mut pending = Pending::default();
        for lane in 0..N {
            pending.note(lane, Self::take_entry(&mut stage, lane));
        }
        if pending.any() {
            self.lookup_deep(root.slot_bits, addresses, &mut stage, pending);
        }
        for (entry, group) in stage.entries.iter().zip(groups) {
            *group = GroupId(if *entry == 0 { miss } else { *entry });
        }
    }

    /// Note where the entry for `slot` is, and ask for its line.
    #[inline(always)]
    fn ask_entry<const N: usize>(&self, stage: &mut Stage<N>, lane: usize, word: u64, slot: u32) {
        stage.places[lane] = self.entry_place(word, slot);
        prefetch(stage.places[lane]);
        stage.words[lane] = word;
    }

    /// Read the entry that was asked for.
    #[inline(always)]
    fn take_entry<const N: usize>(stage: &mut Stage<N>, lane: usize) -> u32 {
        // SAFETY: the place comes from entry_place.
        let entry = unsafe { Self::entry_at(stage.places[lane]) };
        let word = stage.words[lane];
        let entry = if bitmap_of(word) == 0 { base_of(word) } else { entry };
        stage.entries[lane] = entry;
        entry
    }

    /// Take the pending lanes down to their leaves, a level at a time. They are taken by what they
    /// stand at, so that no branch depends on a single lane; each kind's lines are asked for
    /// before any is read.
    #[inline(always)]
    fn lookup_deep<const N: usize>(
        &self,
        bits: u32,
        addresses: &[A; N],
        stage: &mut Stage<N>,
        mut pending: Pending,
    ) {
        let mut lane_bits = [bits; N];
        for _ in 0..LEVELS_MAX {
            for lane in pending.nodes() {
                lane_bits[lane] = lane_bits[lane].saturating_sub(NODE_BITS);
                prefetch(self.memory.nodes.get((stage.entries[lane] & INDEX_MASK) as usize));
            }
            if A::SKIPS {
                for lane in pending.skips() {
                    prefetch(self.memory.skips.get((stage.entries[lane] & INDEX_MASK) as usize));
                }
            }
            for lane in pending.dense() {
                lane_bits[lane] = lane_bits[lane].saturating_sub(NODE_BITS);
                let slot = (addresses[lane] >> lane_bits[lane]).low() & 255;
                stage.places[lane] =
                    self.memory.entries.get((stage.entries[lane] & INDEX_MASK) as usize + slot);
                prefetch(stage.places[lane]);
            }
            for lane in pending.nodes() {
                let node = self.memory.nodes.get((stage.entries[lane] & INDEX_MASK) as usize);
                let slot = (addresses[lane] >> lane_bits[lane]).low() as u32 & 255;
                let word = node[slot as usize >> WORD_BITS].load(Ordering::Acquire);
                self.ask_entry(stage, lane, word, slot);
            }
            let mut deeper = Pending::default();
            if A::SKIPS {
                for lane in pending.skips() {
                    (stage.entries[lane], lane_bits[lane]) =
                        self.step(stage.entries[lane], lane_bits[lane], addresses[lane]);
                    deeper.note(lane, stage.entries[lane]);
                }
            }
            for lane in pending.dense() {
                // SAFETY: the place lies in a dense block.
                stage.entries[lane] = unsafe { Self::entry_at(stage.places[lane]) };
                deeper.note(lane, stage.entries[lane]);
            }
            for lane in pending.nodes() {
                deeper.note(lane, Self::take_entry(stage, lane));
            }
            if !deeper.any() {
                return;
            }
            pending = deeper;
        }
        // Only a late reader, who meets what is no longer a trie, gets here.
        stage.entries.iter_mut().filter(|entry| !is_leaf(**entry)).for_each(|entry| *entry = 0);
    }

    /// Words of the big root that the control side fills before it is published.
    pub(super) fn big_words(&self) -> Option<&[AtomicU64]> {
        self.big.get().map(|root| root.slice(0, BIG_ROOT_WORDS))
    }
}
// SAFETY: the pointer leads into memory that the table owns and never unmaps while it lives; all
// that is read there is atomic.
unsafe impl<A: Address> Send for Lpm<A> {}
// SAFETY: as above.
unsafe impl<A: Address> Sync for Lpm<A> {}
