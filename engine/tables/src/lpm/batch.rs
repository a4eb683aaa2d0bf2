//! Look-ups in step: up to [`LANES`] addresses go down the trie together, a level at a time. Each level
//! is a few short loops over independent loads, so that the processor waits for all of a level's memory
//! at once, and no branch depends on a single address.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::kernel::{GROUP, Kernel, LANES, Lane, Planes};
use super::memory::{
    ENTRIES_MAX, NODE_BITS, NODE_WORDS, NODES_MAX, SKIPS_MAX, Skip, TrieMemory, WORD_BITS, is_leaf,
    skip_words,
};
use crate::memory::prefetch;
use crate::next_hop_group::GroupId;
use crate::prefix::Address;

/// More levels than any address has: 16 of 8 bits, and as many skips.
const LEVELS_MAX: u32 = 32;

/// A table as one batch sees it.
pub(super) struct Table<'t> {
    pub memory: &'t TrieMemory,
    /// The root's first word.
    pub words: *const AtomicU64,
    /// Address bits of a root's slot.
    pub slot_bits: u32,
    /// The answer where nothing else matches.
    pub miss: u32,
    /// Is it worth while to ask for the root's words of the next lanes?
    pub asks: bool,
    /// And for entries of dense blocks before any is read?
    pub asks_dense: bool,
    /// And for skips?
    pub asks_skips: bool,
}

/// A set of lanes, to be walked.
#[derive(Clone, Copy)]
struct Lanes(u64);

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

/// What look-ups under way have found.
struct Stage {
    words: Lane<u64>,
    slots: Lane<u32>,
    places: Lane<u32>,
    entries: Lane<u32>,
    loaded: Lane<u32>,
}

impl Stage {
    #[inline(always)]
    fn new() -> Stage {
        Stage {
            words: Lane::new(),
            slots: Lane::new(),
            places: Lane::new(),
            entries: Lane::new(),
            loaded: Lane::new(),
        }
    }
}

/// Lanes that an address must have for it to be worth while to look for its like.
const ALIKE_MIN: u32 = 8;

/// The different addresses of a batch, and the lanes that ask for each.
struct Questions<A> {
    addresses: [A; GROUP],
    lanes: [u64; GROUP],
    count: usize,
}

impl<A: Address> Questions<A> {
    fn new() -> Questions<A> {
        Questions { addresses: [A::ZERO; GROUP], lanes: [0; GROUP], count: 0 }
    }

    /// One more; there are [`GROUP`] at most.
    #[inline(always)]
    fn add(&mut self, address: A, lanes: u64) {
        let place = self.count % GROUP;
        (self.addresses[place], self.lanes[place]) = (address, lanes);
        self.count += 1;
    }

    /// Take in what the lanes of `rest` ask; false where too many differ.
    ///
    /// # Safety
    /// The processor has what `K` needs; there are as many addresses as lanes, [`LANES`] at most.
    #[inline(always)]
    unsafe fn collect<K: Kernel>(&mut self, addresses: &[A], mut rest: u64) -> bool {
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize % addresses.len();
            let address = addresses[lane];
            if rest.count_ones() as usize + self.count <= GROUP {
                self.add(address, 1 << lane);
                rest &= rest - 1;
                continue;
            }
            // SAFETY: as the caller promises.
            let alike = rest & unsafe { K::alike(addresses, address) };
            if alike.count_ones() < ALIKE_MIN {
                return false;
            }
            self.add(address, alike);
            rest &= !alike;
        }
        true
    }
}

impl Table<'_> {
    /// Look all up.
    ///
    /// # Safety
    /// The processor has what `K` needs, and the table's root covers all addresses.
    #[inline(always)]
    pub(super) unsafe fn lookup<A: Address, K: Kernel>(&self, addresses: &[A], groups: &mut [GroupId]) {
        let mut stage = Stage::new();
        let mut chunks = addresses.chunks(LANES).zip(groups.chunks_mut(LANES)).peekable();
        while let Some((chunk, out)) = chunks.next() {
            if self.asks
                && let Some((next, _)) = chunks.peek()
            {
                next.iter().for_each(|address| prefetch(self.word(*address)));
            }
            let count = chunk.len().min(out.len());
            // SAFETY: a GroupId is a u32; as the caller promises.
            unsafe {
                let out = std::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<u32>(), count);
                if count.is_multiple_of(GROUP) {
                    self.lookup_lanes::<A, K>(&chunk[..count], out, &mut stage);
                } else {
                    self.lookup_some::<A, K>(&chunk[..count], out, &mut stage);
                }
            }
        }
    }

    /// Look 1 to [`LANES`] addresses up of which many are likely to be alike: what many ask is asked once. Where few
    /// are like the first, or too many differ, the lanes go down each for itself.
    ///
    /// # Safety
    /// As for [`lookup`](Self::lookup).
    #[inline(always)]
    pub(super) unsafe fn lookup_alike<A: Address, K: Kernel>(
        &self,
        addresses: &[A],
        groups: &mut [GroupId],
        one: impl Fn(A) -> GroupId,
    ) {
        let all = u64::MAX >> (LANES - addresses.len());
        // SAFETY: as the caller promises.
        let alike = unsafe { K::alike(addresses, addresses[0]) };
        if alike == all {
            return groups.fill(one(addresses[0]));
        }
        let worth = alike.count_ones() >= ALIKE_MIN;
        // SAFETY: as the caller promises.
        unsafe {
            if !(worth && self.lookup_several::<A, K>(addresses, groups, all)) {
                self.lookup::<A, K>(addresses, groups);
            }
        }
    }

    /// As [`lookup_alike`](Self::lookup_alike), of addresses that are not all alike; false, and nothing was looked up,
    /// where too many differ.
    ///
    /// # Safety
    /// As for [`lookup`](Self::lookup); `lanes` are the first ones, as many as there are addresses.
    #[inline(always)]
    unsafe fn lookup_several<A: Address, K: Kernel>(
        &self,
        addresses: &[A],
        groups: &mut [GroupId],
        lanes: u64,
    ) -> bool {
        let (mut questions, mut found) = (Questions::new(), [GroupId(0); GROUP]);
        // SAFETY: as the caller promises.
        if !unsafe { questions.collect::<K>(addresses, lanes) } {
            return false;
        }
        let Questions { addresses, lanes, count } = &questions;
        // SAFETY: as the caller promises.
        unsafe { self.lookup::<A, K>(&addresses[..*count], &mut found[..*count]) };
        for (lanes, group) in lanes.iter().zip(found).take(*count) {
            for lane in Lanes(*lanes) {
                groups[lane] = group;
            }
        }
        true
    }

    /// Look up a number of addresses that does not fill the lanes.
    ///
    /// # Safety
    /// As for [`lookup`](Self::lookup); there are 1 to LANES addresses and as many `groups`.
    #[inline(always)]
    unsafe fn lookup_some<A: Address, K: Kernel>(
        &self,
        addresses: &[A],
        groups: &mut [u32],
        stage: &mut Stage,
    ) {
        let (count, whole) = (addresses.len(), addresses.len().next_multiple_of(GROUP));
        let (mut filled, mut found) = ([addresses[0]; LANES], [0; LANES]);
        filled[..count].copy_from_slice(addresses);
        // SAFETY: as the caller promises.
        unsafe { self.lookup_lanes::<A, K>(&filled[..whole], &mut found[..whole], stage) };
        groups.copy_from_slice(&found[..count]);
    }

    /// The root's word for `address`.
    #[inline(always)]
    fn word<A: Address>(&self, address: A) -> *const AtomicU64 {
        let slot = address.top() >> (self.slot_bits - (A::BITS - 32));
        self.words.wrapping_add((slot >> WORD_BITS) as usize)
    }

    /// The entry at `place`.
    ///
    /// # Safety
    /// The place comes from a word (a base that was ever published leaves room for 32 entries, and is
    /// never written apart from its bitmap) or lies in a dense block.
    #[inline(always)]
    unsafe fn entry(&self, place: u32) -> u32 {
        let place: *const AtomicU32 = self.memory.entries.base().wrapping_add(place as usize);
        // SAFETY: as the caller promises, inside the entries' mapping.
        unsafe { (*place).load(Ordering::Acquire) }
    }

    /// # Safety
    /// As for [`lookup`](Self::lookup); the number of addresses is a multiple of GROUP, LANES at most,
    /// and there are as many `groups`.
    #[inline(always)]
    unsafe fn lookup_lanes<A: Address, K: Kernel>(
        &self,
        addresses: &[A],
        groups: &mut [u32],
        stage: &mut Stage,
    ) {
        let count = addresses.len();
        // SAFETY: lanes below count are set before they are read; words of the root lie in it, as the
        // caller promises; places come from words.
        unsafe {
            for (lane, address) in addresses.iter().enumerate() {
                let slot = address.top() >> (self.slot_bits - (A::BITS - 32));
                stage
                    .words
                    .set(lane, (*self.words.add((slot >> WORD_BITS) as usize)).load(Ordering::Acquire));
                stage.slots.set(lane, slot);
            }
            let far = K::locate(&stage.words, &stage.slots, count, &mut stage.places, &mut stage.entries);
            if far != 0 {
                for lane in 0..count {
                    stage.loaded.set(lane, self.entry(stage.places.get(lane)));
                }
                K::merge(&mut stage.entries, &stage.loaded, far, count);
            }
            let planes = K::planes(&stage.entries, count);
            if planes != [0; 2] {
                self.descend::<A, K>(addresses, planes, stage);
            }
            K::answer(&stage.entries, self.miss, groups, count);
        }
    }

    /// Take the lanes that do not stand at a leaf down to theirs, a level at a time, by what they stand
    /// at.
    ///
    /// # Safety
    /// As for [`lookup_lanes`](Self::lookup_lanes); all lanes' entries are set.
    #[inline(always)]
    unsafe fn descend<A: Address, K: Kernel>(&self, addresses: &[A], mut planes: Planes, stage: &mut Stage) {
        let count = addresses.len();
        // Bytes of the address below what the lane stands at.
        let mut depths = [(self.slot_bits / NODE_BITS) as u8; LANES];
        for _ in 0..LEVELS_MAX {
            let [low, high] = planes;
            // SAFETY: as the caller promises; no lane is at or above count.
            unsafe {
                self.pass_skips::<A, K>(Lanes(low & !high), addresses, &mut depths, stage);
                self.pass_dense(Lanes(low & high), addresses, &mut depths, stage);
                self.pass_nodes::<A, K>(Lanes(high & !low), addresses, &mut depths, stage);
                planes = K::planes(&stage.entries, count);
            }
            if planes == [0; 2] {
                return;
            }
        }
        // Only a late reader, who meets what is no longer a trie, gets here.
        for lane in 0..count {
            // SAFETY: below count.
            unsafe {
                if !is_leaf(stage.entries.get(lane)) {
                    stage.entries.set(lane, 0);
                }
            }
        }
    }

    /// The skip that `entry` names.
    #[inline(always)]
    fn skip<A: Address>(&self, entry: u32) -> Skip<A> {
        let words = skip_words::<A>();
        let first = (entry & (SKIPS_MAX as u32 - 1)) as usize * words;
        // SAFETY: a masked index lies inside the skips' mapping.
        Skip::load(unsafe { std::slice::from_raw_parts(self.memory.skips.base().add(first), words) })
    }

    /// # Safety
    /// As for [`descend`](Self::descend).
    #[inline(always)]
    unsafe fn pass_skips<A: Address, K: Kernel>(
        &self,
        lanes: Lanes,
        addresses: &[A],
        depths: &mut [u8; LANES],
        stage: &mut Stage,
    ) {
        if lanes.0 == 0 {
            return;
        }
        // SAFETY: lanes lie below count.
        unsafe {
            let first = stage.entries.get(lanes.0.trailing_zeros() as usize);
            if K::are_all(&stage.entries, first, lanes.0, addresses.len()) {
                // As in a table of one route, or where all routes lie in one prefix.
                let skip = self.skip::<A>(first);
                K::skip_all(addresses, &skip, lanes.0, &mut stage.entries);
                K::set_bytes(depths, (skip.shift / NODE_BITS) as u8, lanes.0);
                return;
            }
            if self.asks_skips {
                for lane in lanes {
                    let index = (stage.entries.get(lane) & (SKIPS_MAX as u32 - 1)) as usize;
                    prefetch(self.memory.skips.base().wrapping_add(index * skip_words::<A>()));
                }
            }
            for lane in lanes {
                let skip = self.skip::<A>(stage.entries.get(lane));
                let hit = (*addresses.get_unchecked(lane) ^ skip.key) >> skip.shift == A::ZERO;
                stage.entries.set(lane, if hit { skip.hit } else { skip.miss });
                *depths.get_unchecked_mut(lane) = (skip.shift / NODE_BITS) as u8;
            }
        }
    }

    /// # Safety
    /// As for [`descend`](Self::descend).
    #[inline(always)]
    unsafe fn pass_dense<A: Address>(
        &self,
        lanes: Lanes,
        addresses: &[A],
        depths: &mut [u8; LANES],
        stage: &mut Stage,
    ) {
        // SAFETY: lanes lie below count; a masked index and a slot lie inside the entries' mapping,
        // which is as much longer.
        unsafe {
            if !self.asks_dense {
                for lane in lanes {
                    let slot = next_slot(addresses, lane, depths);
                    let base = stage.entries.get(lane) & (ENTRIES_MAX as u32 - 1);
                    stage.entries.set(lane, self.entry(base + u32::from(slot)));
                }
                return;
            }
            for lane in lanes {
                let slot = next_slot(addresses, lane, depths);
                let place = (stage.entries.get(lane) & (ENTRIES_MAX as u32 - 1)) + u32::from(slot);
                prefetch(self.memory.entries.base().wrapping_add(place as usize));
                stage.entries.set(lane, place);
            }
            for lane in lanes {
                stage.entries.set(lane, self.entry(stage.entries.get(lane)));
            }
        }
    }

    /// # Safety
    /// As for [`descend`](Self::descend).
    #[inline(always)]
    unsafe fn pass_nodes<A: Address, K: Kernel>(
        &self,
        lanes: Lanes,
        addresses: &[A],
        depths: &mut [u8; LANES],
        stage: &mut Stage,
    ) {
        if lanes.0 == 0 {
            return;
        }
        // SAFETY: lanes lie below count; a masked index lies inside the nodes' mapping. The first
        // lanes of words and slots are used for the nodes' lanes, without gaps: all below count are set.
        unsafe {
            let nodes = self.memory.nodes.base().cast::<AtomicU64>();
            let mut filled = 0;
            for lane in lanes {
                let slot = next_slot(addresses, lane, depths);
                let index = stage.entries.get(lane) & (NODES_MAX as u32 - 1);
                let word = index as usize * NODE_WORDS + usize::from(slot >> WORD_BITS);
                stage.words.set(filled, (*nodes.add(word)).load(Ordering::Acquire));
                stage.slots.set(filled, u32::from(slot));
                filled += 1;
            }
            let whole = filled.next_multiple_of(GROUP);
            let far = K::locate(&stage.words, &stage.slots, whole, &mut stage.places, &mut stage.loaded);
            for (at, lane) in lanes.enumerate() {
                let entry = self.entry(stage.places.get(at));
                let entry = if far >> at & 1 != 0 { entry } else { stage.loaded.get(at) };
                stage.entries.set(lane, entry);
            }
        }
    }
}

/// The next byte of a lane's address; the lane goes one byte down.
///
/// # Safety
/// `lane` is below LANES and has an address.
#[inline(always)]
unsafe fn next_slot<A: Address>(addresses: &[A], lane: usize, depths: &mut [u8; LANES]) -> u8 {
    // SAFETY: as the caller promises; the byte's number is below those of an address.
    unsafe {
        let depth = depths.get_unchecked_mut(lane);
        // Only a late reader wraps around.
        *depth = depth.wrapping_sub(1) & (A::BITS / 8 - 1) as u8;
        if cfg!(target_endian = "little") {
            *addresses.as_ptr().cast::<u8>().add(lane * (A::BITS / 8) as usize + usize::from(*depth))
        } else {
            (*addresses.get_unchecked(lane) >> (u32::from(*depth) * 8)).low() as u8
        }
    }
}
