//! Look-ups in step: up to [`LANES`] addresses go down the trie together, a level at a time. Each
//! level is a few short loops over independent loads, so that the processor waits for all of a
//! level's memory at once, and no branch depends on a single address.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::depths::{Depths, Lanes};
use super::kernel::{GROUP, Kernel, LANES, Lane};
use super::memory::{NODE_BITS, TrieMemory, WORD_BITS, base_of, bitmap_of, is_skip, place_in};
use crate::GroupId;
use crate::memory::prefetch;
use crate::prefix::Address;

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

/// What look-ups under way have found.
pub(super) struct Stage {
    pub words: Lane<u64>,
    pub slots: Lane<u32>,
    pub places: Lane<u32>,
    pub entries: Lane<u32>,
    pub loaded: Lane<u32>,
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
    pub(super) unsafe fn lookup<A: Address, K: Kernel>(
        &self,
        addresses: &[A],
        groups: &mut [GroupId],
    ) {
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

    /// Look 1 to [`LANES`] addresses up of which many are likely to be alike: what many ask is
    /// asked once. Where none of the next few is like the first, few of all are, or too many
    /// differ, the lanes go down each for itself.
    ///
    /// # Safety
    /// As for [`lookup`](Self::lookup).
    #[inline(always)]
    pub(super) unsafe fn lookup_uniform<A: Address, K: Kernel>(
        &self,
        addresses: &[A],
        groups: &mut [GroupId],
        one: impl Fn(A) -> GroupId,
    ) {
        let all = u64::MAX >> (LANES - addresses.len());
        let (some, rest) = addresses.split_at(addresses.len().min(GROUP));
        // SAFETY: as the caller promises.
        let mut alike = unsafe { K::alike(some, addresses[0]) };
        if !rest.is_empty() {
            if alike == 1 {
                // SAFETY: as the caller promises.
                return unsafe { self.lookup::<A, K>(addresses, groups) };
            }
            // SAFETY: as the caller promises.
            alike |= unsafe { K::alike(rest, addresses[0]) } << GROUP;
        }
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

    /// As [`lookup_alike`](Self::lookup_alike), of addresses that are not all alike; false, and
    /// nothing was looked up, where too many differ.
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
    /// The place comes from a word (a base that was ever published leaves room for 32 entries, and
    /// is never written apart from its bitmap) or lies in a dense block.
    #[inline(always)]
    pub(super) unsafe fn entry(&self, place: u32) -> u32 {
        let place: *const AtomicU32 = self.memory.entries.base().wrapping_add(place as usize);
        // SAFETY: as the caller promises, inside the entries' mapping.
        unsafe { (*place).load(Ordering::Acquire) }
    }

    /// # Safety
    /// As for [`lookup`](Self::lookup); the number of addresses is a multiple of GROUP, LANES at
    /// most, and there are as many `groups`.
    #[inline(always)]
    unsafe fn lookup_lanes<A: Address, K: Kernel>(
        &self,
        addresses: &[A],
        groups: &mut [u32],
        stage: &mut Stage,
    ) {
        let count = addresses.len();
        // SAFETY: lanes below count are set before they are read; words of the root lie in it, as
        // the caller promises; places come from words.
        unsafe {
            let mut depths = Depths::at((self.slot_bits / NODE_BITS) as u8);
            if K::agree_above(addresses, self.slot_bits) {
                // As where all traffic is for one's own network, or for the SIDs of one locator.
                let (entry, all) = (self.at_root(addresses[0]), Lanes(u64::MAX >> (LANES - count)));
                match is_skip(entry) {
                    true => {
                        self.pass_one_skip::<A, K>(entry, (all, 0), addresses, &mut depths, stage)
                    }
                    false => (0..count).for_each(|lane| stage.entries.set(lane, entry)),
                }
                return self.finish::<A, K>(addresses, groups, &mut depths, stage);
            }
            for (lane, address) in addresses.iter().enumerate() {
                let slot = address.top() >> (self.slot_bits - (A::BITS - 32));
                stage.words.set(
                    lane,
                    (*self.words.add((slot >> WORD_BITS) as usize)).load(Ordering::Acquire),
                );
                stage.slots.set(lane, slot);
            }
            let far =
                K::locate(&stage.words, &stage.slots, count, &mut stage.places, &mut stage.entries);
            if far != 0 {
                for lane in 0..count {
                    stage.loaded.set(lane, self.entry(stage.places.get(lane)));
                }
                K::merge(&mut stage.entries, &stage.loaded, far, count);
            }
            self.finish::<A, K>(addresses, groups, &mut depths, stage);
        }
    }

    /// What the root says of `address`.
    ///
    /// # Safety
    /// As for [`lookup`](Self::lookup).
    #[inline(always)]
    unsafe fn at_root<A: Address>(&self, address: A) -> u32 {
        let slot = address.top() >> (self.slot_bits - (A::BITS - 32));
        // SAFETY: words of the root lie in it, as the caller promises; the place comes from a word.
        unsafe { self.entry_of_word((*self.word(address)).load(Ordering::Acquire), slot) }
    }

    /// What a word, which comes from a root or a node, says of a slot (its low five bits count).
    ///
    /// # Safety
    /// The word was published.
    #[inline(always)]
    pub(super) unsafe fn entry_of_word(&self, word: u64, slot: u32) -> u32 {
        // SAFETY: the place comes from a word.
        unsafe {
            if bitmap_of(word) == 0 { base_of(word) } else { self.entry(place_in(word, slot)) }
        }
    }

    /// From what the root says to the answers.
    ///
    /// # Safety
    /// As for [`lookup_lanes`](Self::lookup_lanes); all lanes' entries are set.
    #[inline(always)]
    unsafe fn finish<A: Address, K: Kernel>(
        &self,
        addresses: &[A],
        groups: &mut [u32],
        depths: &mut Depths,
        stage: &mut Stage,
    ) {
        let count = addresses.len();
        // SAFETY: as the caller promises.
        unsafe {
            let planes = K::planes(&stage.entries, count);
            if planes != [0; 2] {
                self.descend::<A, K>(addresses, planes, depths, stage);
            }
            K::answer(&stage.entries, self.miss, groups, count);
        }
    }
}
