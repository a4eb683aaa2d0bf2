//! Look-ups in step: up to [`LANES`] addresses go down the trie together, a level at a time. Each level
//! is a few short loops over independent loads, so that the processor waits for all of a level's memory
//! at once, and no branch depends on a single address.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::kernel::{GROUP, Kernel, LANES, Lane, Planes, byte_at, dense_place, node_place};
use super::memory::{
    KIND_SHIFT, NODE_BITS, SKIPS_MAX, Skip, TrieMemory, WORD_BITS, base_of, bitmap_of, is_leaf, place_in,
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

impl Lanes {
    /// Are these the first `count` lanes, 1 or more?
    #[inline(always)]
    fn are_first(self, count: usize) -> bool {
        self.0 == u64::MAX >> (LANES - count)
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

/// So many lanes that go down a level are better worked on together.
const MANY: u32 = 12;

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
    /// As for [`lookup_lanes`](Self::lookup_lanes); all lanes' words, slots and entries are set.
    #[inline(always)]
    unsafe fn descend<A: Address, K: Kernel>(&self, addresses: &[A], mut planes: Planes, stage: &mut Stage) {
        let count = addresses.len();
        let mut depths = Depths::at((self.slot_bits / NODE_BITS) as u8);
        for _ in 0..LEVELS_MAX {
            let [low, high] = planes;
            // SAFETY: as the caller promises; no lane is at or above count.
            unsafe {
                self.pass_skips::<A, K>(Lanes(low & !high), high, addresses, &mut depths, stage);
                if high.count_ones() >= MANY {
                    depths.all_slots::<A, K>(Lanes(high), addresses, &mut stage.slots);
                    self.pass_dense::<K>(Lanes(low & high), count, stage);
                    self.pass_nodes::<K>(Lanes(high & !low), count, stage);
                } else if high != 0 {
                    depths.slots(Lanes(high), addresses, &mut stage.slots);
                    self.pass_few(Lanes(high), stage);
                }
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

    /// Let `lanes` go past their skips, while `others` go down a level.
    ///
    /// # Safety
    /// As for [`descend`](Self::descend).
    #[inline(always)]
    unsafe fn pass_skips<A: Address, K: Kernel>(
        &self,
        lanes: Lanes,
        others: u64,
        addresses: &[A],
        depths: &mut Depths,
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
                return depths.skip_all::<K>((skip.shift / NODE_BITS) as u8, lanes, others);
            }
            if self.asks_skips {
                for lane in lanes {
                    let index = (stage.entries.get(lane) & (SKIPS_MAX as u32 - 1)) as usize;
                    prefetch(self.memory.skips.base().wrapping_add(index * skip_words::<A>()));
                }
            }
            depths.part::<K>();
            for lane in lanes {
                let skip = self.skip::<A>(stage.entries.get(lane));
                let hit = (*addresses.get_unchecked(lane) ^ skip.key) >> skip.shift == A::ZERO;
                stage.entries.set(lane, if hit { skip.hit } else { skip.miss });
                *depths.each.get_unchecked_mut(lane) = (skip.shift / NODE_BITS) as u8;
            }
        }
    }

    /// Let `lanes`, so few that each is better taken by itself, go down a level.
    ///
    /// # Safety
    /// As for [`descend`](Self::descend); the slots are those of this level.
    #[inline(always)]
    unsafe fn pass_few(&self, lanes: Lanes, stage: &mut Stage) {
        let nodes = self.memory.nodes.base().cast::<AtomicU64>();
        for lane in lanes {
            // SAFETY: lanes lie below count; masked indices, with a slot, lie inside their mappings.
            unsafe {
                let (at, slot) = (stage.entries.get(lane), stage.slots.get(lane));
                let entry = if at >> KIND_SHIFT & 1 != 0 {
                    self.entry(dense_place(at, slot))
                } else {
                    let word = (*nodes.add(node_place(at, slot) as usize)).load(Ordering::Acquire);
                    if bitmap_of(word) == 0 { base_of(word) } else { self.entry(place_in(word, slot)) }
                };
                stage.entries.set(lane, entry);
            }
        }
    }

    /// # Safety
    /// As for [`descend`](Self::descend); the slots are those of this level.
    #[inline(always)]
    unsafe fn pass_dense<K: Kernel>(&self, lanes: Lanes, count: usize, stage: &mut Stage) {
        if lanes.0 == 0 {
            return;
        }
        let Stage { slots, places, entries, .. } = stage;
        // SAFETY: lanes lie below count; a masked index and a slot lie inside the entries' mapping,
        // which is as much longer.
        unsafe {
            K::dense_places(entries, slots, count, places);
            if self.asks_dense {
                for lane in lanes {
                    prefetch(self.memory.entries.base().wrapping_add(places.get(lane) as usize));
                }
            }
            if lanes.are_first(count) {
                for lane in 0..count {
                    entries.set(lane, self.entry(places.get(lane)));
                }
            } else {
                for lane in lanes {
                    entries.set(lane, self.entry(places.get(lane)));
                }
            }
        }
    }

    /// # Safety
    /// As for [`descend`](Self::descend); the slots are those of this level.
    #[inline(always)]
    unsafe fn pass_nodes<K: Kernel>(&self, lanes: Lanes, count: usize, stage: &mut Stage) {
        if lanes.0 == 0 {
            return;
        }
        let Stage { words, slots, places, entries, loaded } = stage;
        let nodes = self.memory.nodes.base().cast::<AtomicU64>();
        // SAFETY: lanes lie below count; a masked index lies inside the nodes' mapping.
        unsafe {
            K::node_places(entries, slots, count, places);
            let word = |place: u32| (*nodes.add(place as usize)).load(Ordering::Acquire);
            if lanes.are_first(count) {
                for lane in 0..count {
                    words.set(lane, word(places.get(lane)));
                }
            } else {
                for lane in lanes {
                    words.set(lane, word(places.get(lane)));
                }
            }
            let far = K::locate(words, slots, count, places, loaded) & lanes.0;
            for lane in Lanes(far) {
                loaded.set(lane, self.entry(places.get(lane)));
            }
            K::merge(entries, loaded, lanes.0, count);
        }
    }
}

/// How many bytes of their addresses the lanes have below what they stand at: all the same, as long as none has gone
/// past a skip of its own.
struct Depths {
    /// What holds for all lanes.
    all: Option<u8>,
    /// What holds for each, when they differ.
    each: [u8; LANES],
}

impl Depths {
    #[inline(always)]
    fn at(depth: u8) -> Depths {
        Depths { all: Some(depth), each: [depth; LANES] }
    }

    /// From here on each lane has its own.
    ///
    /// # Safety
    /// The processor has what `K` needs.
    #[inline(always)]
    unsafe fn part<K: Kernel>(&mut self) {
        if let Some(depth) = self.all.take() {
            // SAFETY: as the caller promises.
            unsafe { K::set_bytes(&mut self.each, depth, u64::MAX) };
        }
    }

    /// `lanes` have gone past one skip, and `others` have not.
    ///
    /// # Safety
    /// As for [`part`](Self::part).
    #[inline(always)]
    unsafe fn skip_all<K: Kernel>(&mut self, depth: u8, lanes: Lanes, others: u64) {
        if others == 0 && self.all.is_some() {
            self.all = Some(depth);
            return;
        }
        // SAFETY: as the caller promises.
        unsafe {
            self.part::<K>();
            K::set_bytes(&mut self.each, depth, lanes.0);
        }
    }

    /// The next byte of each lane's address; the lanes go one byte down. Of other lanes any may be written.
    ///
    /// # Safety
    /// As for [`part`](Self::part); lanes lie below the number of addresses.
    #[inline(always)]
    unsafe fn all_slots<A: Address, K: Kernel>(
        &mut self,
        lanes: Lanes,
        addresses: &[A],
        slots: &mut Lane<u32>,
    ) {
        // SAFETY: as the caller promises; the byte's number is below those of an address.
        unsafe {
            match &mut self.all {
                Some(depth) => {
                    *depth = below::<A>(*depth);
                    K::bytes_at(addresses, (*depth).into(), slots);
                }
                None => self.slots(lanes, addresses, slots),
            }
        }
    }

    /// The same, one by one.
    ///
    /// # Safety
    /// Lanes lie below the number of addresses.
    #[inline(always)]
    unsafe fn slots<A: Address>(&mut self, lanes: Lanes, addresses: &[A], slots: &mut Lane<u32>) {
        if let Some(depth) = &mut self.all {
            *depth = below::<A>(*depth);
            for lane in lanes {
                // SAFETY: as the caller promises; the byte's number is below those of an address.
                unsafe { slots.set(lane, byte_at(addresses, lane, (*depth).into())) };
            }
            return;
        }
        for lane in lanes {
            // SAFETY: as above.
            unsafe {
                let depth = self.each.get_unchecked_mut(lane);
                *depth = below::<A>(*depth);
                slots.set(lane, byte_at(addresses, lane, (*depth).into()));
            }
        }
    }
}

/// One byte down; only a late reader wraps around.
#[inline(always)]
fn below<A: Address>(depth: u8) -> u8 {
    depth.wrapping_sub(1) & (A::BITS / 8 - 1) as u8
}
