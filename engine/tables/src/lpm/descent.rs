//! From what the root says down to the leaves: all lanes of a batch a level at a time.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::batch::{Stage, Table};
use super::depths::{Depths, Lanes};
use super::kernel::{Block, Dense, Kernel, Nodes, Planes};
use super::memory::{
    KIND_SHIFT, NODE_BITS, SKIPS_MAX, Skip, WIDE, is_leaf, is_wide_skip, skip_words,
};
use crate::memory::prefetch;
use crate::prefix::Address;

/// More levels than any address has: 16 of 8 bits, and as many skips.
const LEVELS_MAX: u32 = 32;
/// So many lanes that go down a level are better worked on together.
const MANY: u32 = 12;

impl Table<'_> {
    /// Take the lanes that do not stand at a leaf down to theirs, a level at a time, by what they
    /// stand at.
    ///
    /// # Safety
    /// As for [`lookup_lanes`](Self::lookup_lanes); all lanes' words, slots and entries are set.
    #[inline(always)]
    pub(super) unsafe fn descend<A: Address, K: Kernel>(
        &self,
        addresses: &[A],
        mut planes: Planes,
        depths: &mut Depths,
        stage: &mut Stage,
    ) {
        let count = addresses.len();
        for _ in 0..LEVELS_MAX {
            let [low, high] = planes;
            // SAFETY: as the caller promises; no lane is at or above count.
            unsafe {
                self.pass_skips::<A, K>(Lanes(low & !high), high, addresses, depths, stage);
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
        Skip::load(unsafe {
            std::slice::from_raw_parts(self.memory.skips.base().add(first), words)
        })
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
                return self.pass_one_skip::<A, K>(
                    first,
                    (lanes, others),
                    addresses,
                    depths,
                    stage,
                );
            }
            if self.asks_skips {
                for lane in lanes {
                    let index = (stage.entries.get(lane) & (SKIPS_MAX as u32 - 1)) as usize;
                    prefetch(self.memory.skips.base().wrapping_add(index * skip_words::<A>()));
                }
            }
            depths.part::<K>();
            let wide = lanes.0 & K::having(&stage.entries, WIDE, addresses.len());
            if wide != 0 {
                self.pass_few_wide::<A>(Lanes(wide), addresses, depths, stage);
            }
            for lane in Lanes(lanes.0 & !wide) {
                let skip = self.skip::<A>(stage.entries.get(lane));
                let hit = (*addresses.get_unchecked(lane) ^ skip.key) >> skip.shift == A::ZERO;
                stage.entries.set(lane, if hit { skip.hit } else { skip.miss });
                *depths.each.get_unchecked_mut(lane) = (skip.shift / NODE_BITS) as u8;
            }
        }
    }

    /// Let `lanes` go past the skip that `entry` names, while `others` go down a level.
    ///
    /// # Safety
    /// As for [`descend`](Self::descend).
    #[inline(always)]
    pub(super) unsafe fn pass_one_skip<A: Address, K: Kernel>(
        &self,
        entry: u32,
        (lanes, others): (Lanes, u64),
        addresses: &[A],
        depths: &mut Depths,
        stage: &mut Stage,
    ) {
        let skip = self.skip::<A>(entry);
        // SAFETY: as the caller promises.
        unsafe {
            let agree = K::skip_all(addresses, &skip, lanes.0, &mut stage.entries);
            let mut bottom = skip.shift;
            if is_wide_skip(entry) {
                self.pass_wide::<A, K>(&skip, Lanes(lanes.0 & agree), addresses, stage);
                bottom = skip.bottom();
            }
            depths.skip_all::<K>((bottom / NODE_BITS) as u8, lanes, others);
        }
    }

    /// Let `lanes`, which agree with the key of `skip`, go down its wide block.
    ///
    /// # Safety
    /// As for [`descend`](Self::descend).
    #[inline(always)]
    unsafe fn pass_wide<A: Address, K: Kernel>(
        &self,
        skip: &Skip<A>,
        lanes: Lanes,
        addresses: &[A],
        stage: &mut Stage,
    ) {
        let (base, count) = (skip.wide_base(), addresses.len());
        let Stage { slots, entries, .. } = stage;
        // SAFETY: lanes lie below count; a masked base with a masked offset lies inside the wide
        // blocks' mapping, which is as much longer.
        unsafe {
            K::numbers_at(
                addresses,
                (skip.bottom() / NODE_BITS) as usize,
                skip.offset_mask(),
                slots,
            );
            let place = |lane| base + slots.get(lane) as usize;
            if self.asks_dense {
                for lane in lanes {
                    prefetch(self.memory.wide.base().wrapping_add(place(lane)));
                }
            }
            if lanes.are_first(count) {
                for lane in 0..count {
                    entries.set(lane, self.wide_entry(place(lane)));
                }
            } else {
                for lane in lanes {
                    entries.set(lane, self.wide_entry(place(lane)));
                }
            }
        }
    }

    /// Let `lanes` go past their skips and down their wide blocks, each for itself.
    ///
    /// # Safety
    /// As for [`descend`](Self::descend).
    #[inline(never)]
    unsafe fn pass_few_wide<A: Address>(
        &self,
        lanes: Lanes,
        addresses: &[A],
        depths: &mut Depths,
        stage: &mut Stage,
    ) {
        for lane in lanes {
            // SAFETY: lanes lie below count; the place is a masked base with a masked offset.
            unsafe {
                let (address, skip) =
                    (*addresses.get_unchecked(lane), self.skip::<A>(stage.entries.get(lane)));
                let found = self.wide_entry(skip.wide_place(address));
                let hit = (address ^ skip.key) >> skip.shift == A::ZERO;
                stage.entries.set(lane, if hit { found } else { skip.miss });
                *depths.each.get_unchecked_mut(lane) = (skip.bottom() / NODE_BITS) as u8;
            }
        }
    }

    /// The entry at `place` of the wide blocks.
    ///
    /// # Safety
    /// The place is a masked base with a masked offset.
    #[inline(always)]
    unsafe fn wide_entry(&self, place: usize) -> u32 {
        let place: *const AtomicU32 = self.memory.wide.base().wrapping_add(place);
        // SAFETY: as the caller promises, inside the mapping.
        unsafe { (*place).load(Ordering::Acquire) }
    }

    /// Let `lanes`, so few that each is better taken by itself, go down a level.
    ///
    /// # Safety
    /// As for [`descend`](Self::descend); the slots are those of this level.
    #[inline(always)]
    unsafe fn pass_few(&self, lanes: Lanes, stage: &mut Stage) {
        let nodes = self.memory.nodes.base().cast::<AtomicU64>();
        for lane in lanes {
            // SAFETY: lanes lie below count; masked indices, with a slot, lie inside their
            // mappings.
            unsafe {
                let (at, slot) = (stage.entries.get(lane), stage.slots.get(lane));
                let entry = if at >> KIND_SHIFT & 1 != 0 {
                    self.entry(Dense::place(at, slot))
                } else {
                    let word =
                        (*nodes.add(Nodes::place(at, slot) as usize)).load(Ordering::Acquire);
                    self.entry_of_word(word, slot)
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
            K::places::<Dense>(entries, slots, count, places);
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
            K::places::<Nodes>(entries, slots, count, places);
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
