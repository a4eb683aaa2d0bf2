//! The memory that all tries of one family share, and how a word and an entry are coded.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::memory::epoch::Epochs;

use crate::memory::{MemoryError, Pages, Reserved, Slots};
use crate::prefix::Address;

/// Entries of all tries of a family (1 GB of address space, committed as used).
pub const ENTRIES_MAX: usize = 1 << 28;
/// Nodes of all tries of a family (1 GB of address space).
pub const NODES_MAX: usize = 1 << 24;
/// Skips of all tries of a family (256 or 512 MB of address space).
pub const SKIPS_MAX: usize = 1 << 24;
/// Entries of all wide blocks of a family (2 GB of address space).
pub const WIDE_ENTRIES_MAX: usize = 1 << 29;
/// Small roots (16 KB), one for each table that is not empty: of IPv6, one for the link-local
/// addresses of each interface, and as many again.
pub(crate) const ROOTS_MAX: usize = 2 * INTERFACES_MAX;

/// Slots that one word speaks of.
pub(crate) const WORD_SLOTS: usize = 32;
/// log2 of that.
pub(crate) const WORD_BITS: u32 = 5;
/// Words of a node.
pub(crate) const NODE_WORDS: usize = 8;
/// Slots of a node or a dense block.
pub(crate) const NODE_SLOTS: usize = 256;
/// Address bits that a node decides.
pub(crate) const NODE_BITS: u32 = 8;
/// Address bits that a small root decides: 16 KB.
pub(crate) const SMALL_ROOT_BITS: u32 = 16;
/// Words of a small root.
pub(crate) const SMALL_ROOT_WORDS: usize = 1 << (SMALL_ROOT_BITS - WORD_BITS);
/// Address bits that a big root decides: 4 MB.
pub(crate) const BIG_ROOT_BITS: u32 = 24;
/// Words of a big root.
pub(crate) const BIG_ROOT_WORDS: usize = 1 << (BIG_ROOT_BITS - WORD_BITS);

/// log2 of the entries of the smallest wide block: they are handed out in units of so many.
pub(crate) const WIDE_UNIT_BITS: u32 = 13;
/// log2 of the entries of the largest: 64 MB.
pub(crate) const WIDE_BITS_MAX: u32 = 24;
/// Units of wide blocks.
const WIDE_LENGTHS: &[u16] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048];

/// Run lengths that are handed out; a run takes the next longer one.
const RUN_LENGTHS: &[u16] = &[2, 3, 4, 6, 8, 12, 16, 24, 32, 256];

/// The first of the two bits that say what an entry is.
pub(crate) const KIND_SHIFT: u32 = 30;
const SKIP: u32 = 1 << KIND_SHIFT;
const NODE: u32 = 2 << KIND_SHIFT;
const DENSE: u32 = 3 << KIND_SHIFT;
/// Of a skip's entry: its hit is a wide block.
pub(crate) const WIDE: u32 = 1 << (KIND_SHIFT - 1);
/// Largest index that an entry can carry.
pub(crate) const INDEX_MASK: u32 = (1 << KIND_SHIFT) - 1;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A next-hop group; 0 is a miss.
    Leaf(u32),
    /// A skip, by its index.
    Skip(u32),
    /// A skip to a wide block, by its index.
    Wide(u32),
    /// A node, by its index.
    Node(u32),
    /// A dense block, by the index of its first entry.
    Dense(u32),
}

#[inline(always)]
pub(crate) fn is_leaf(entry: u32) -> bool {
    entry < SKIP
}

/// Is this a skip, to a wide block or not?
#[inline(always)]
pub(crate) fn is_skip(entry: u32) -> bool {
    entry >> KIND_SHIFT == SKIP >> KIND_SHIFT
}

/// Does a skip's entry say that it leads to a wide block?
#[inline(always)]
pub(crate) fn is_wide_skip(entry: u32) -> bool {
    entry & WIDE != 0
}

/// Is this a dense block, or a wide one?
#[inline(always)]
pub(crate) fn is_dense(entry: u32) -> bool {
    entry >= DENSE || entry.wrapping_sub(SKIP | WIDE) < WIDE
}

#[inline(always)]
pub(crate) fn entry_of(entry: u32) -> Entry {
    let index = entry & INDEX_MASK;
    match entry >> KIND_SHIFT {
        0 => Entry::Leaf(index),
        1 if index & WIDE != 0 => Entry::Wide(index & !WIDE),
        1 => Entry::Skip(index),
        2 => Entry::Node(index),
        _ => Entry::Dense(index),
    }
}

impl Entry {
    pub(crate) fn code(self) -> u32 {
        match self {
            Entry::Leaf(group) => group,
            Entry::Skip(index) => SKIP | index,
            Entry::Wide(index) => SKIP | WIDE | index,
            Entry::Node(index) => NODE | index,
            Entry::Dense(base) => DENSE | base,
        }
    }
}

/// A word for 32 slots that all lead to `entry`.
#[inline(always)]
pub(crate) fn inline_word(entry: u32) -> u64 {
    u64::from(entry) << 32
}

/// The leaf that all 32 slots of a word are, if so.
pub(crate) fn inline_leaf(word: u64) -> Option<u32> {
    (bitmap_of(word) == 0 && is_leaf(base_of(word))).then(|| base_of(word))
}

#[inline(always)]
pub(crate) fn run_word(bitmap: u32, base: u32) -> u64 {
    u64::from(base) << 32 | u64::from(bitmap)
}

#[inline(always)]
pub(crate) fn bitmap_of(word: u64) -> u32 {
    word as u32
}

#[inline(always)]
pub(crate) fn base_of(word: u64) -> u32 {
    (word >> 32) as u32
}

/// The place of the entry for a slot (its low five bits count) of a word whose bitmap is not 0.
#[inline(always)]
pub(crate) fn place_in(word: u64, slot: u32) -> u32 {
    let before = (bitmap_of(word) & (2u32 << (slot & 31)).wrapping_sub(1)).count_ones();
    base_of(word).wrapping_add(before).wrapping_sub(1)
}

/// A skip: addresses that agree with `key` above `shift` go on with `hit`, others end at `miss`, a
/// leaf. With a width, `hit` names the first of 2^`width` entries, one for each value of as many
/// bits below the shift (as the entry of a skip would, so that who takes it for one goes wrong and
/// no further). In memory: both ways in one word, shift and width in the next, then the key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skip<A> {
    pub key: A,
    pub shift: u32,
    /// 0, or [`WIDE_BITS_MAX`] at most.
    pub width: u32,
    pub hit: u32,
    pub miss: u32,
}

/// Where the width stands, above the shift.
const WIDTH_SHIFT: u32 = 8;

/// Words of 64 bits that a skip takes.
pub(crate) const fn skip_words<A: Address>() -> usize {
    if A::BITS == 32 { 2 } else { 4 }
}

impl<A: Address> Skip<A> {
    /// Its fields are atomic, and it is read with care, so that reading one too late is a wrong
    /// answer at worst.
    #[inline(always)]
    pub(crate) fn load(words: &[AtomicU64]) -> Skip<A> {
        let (ways, second) = (words[0].load(Ordering::Relaxed), words[1].load(Ordering::Relaxed));
        let key = if A::BITS == 32 {
            A::from_halves(0, second >> 32)
        } else {
            A::from_halves(words[3].load(Ordering::Relaxed), words[2].load(Ordering::Relaxed))
        };
        Skip {
            key,
            shift: second as u32 & (A::BITS - 1),
            width: (second as u32 >> WIDTH_SHIFT & 31).min(WIDE_BITS_MAX),
            hit: ways as u32,
            miss: (ways >> 32) as u32,
        }
    }

    /// Address bits of what a hit leads to.
    #[inline(always)]
    pub(crate) fn bottom(&self) -> u32 {
        self.shift.saturating_sub(self.width)
    }

    /// What of an address, above the bottom, counts in a wide block.
    #[inline(always)]
    pub(crate) fn offset_mask(&self) -> u32 {
        (1 << self.width) - 1
    }

    /// The hit for a wide block whose first entry stands there.
    pub(crate) fn wide_hit(base: usize) -> u32 {
        Entry::Wide((base >> WIDE_UNIT_BITS) as u32).code()
    }

    /// Where the first entry of a wide block stands.
    #[inline(always)]
    pub(crate) fn wide_base(&self) -> usize {
        (self.hit as usize & ((WIDE_ENTRIES_MAX >> WIDE_UNIT_BITS) - 1)) << WIDE_UNIT_BITS
    }

    /// Where the entry for `address`, which agrees with the key, stands in a wide block.
    #[inline(always)]
    pub(crate) fn wide_place(&self, address: A) -> usize {
        self.wide_base() + ((address >> self.bottom()).low() as u32 & self.offset_mask()) as usize
    }

    pub(crate) fn store(self, words: &[AtomicU64]) {
        let (high, low) = self.key.halves();
        let depth = u64::from(self.shift | self.width << WIDTH_SHIFT);
        words[0].store(u64::from(self.hit) | u64::from(self.miss) << 32, Ordering::Relaxed);
        if A::BITS == 32 {
            words[1].store(depth | low << 32, Ordering::Relaxed);
        } else {
            words[1].store(depth, Ordering::Relaxed);
            words[2].store(low, Ordering::Relaxed);
            words[3].store(high, Ordering::Relaxed);
        }
    }
}

/// What workers read.
pub(crate) struct TrieMemory {
    pub entries: Reserved<AtomicU32>,
    pub nodes: Reserved<[AtomicU64; NODE_WORDS]>,
    /// Skips, one after the other.
    pub skips: Reserved<AtomicU64>,
    /// Wide blocks.
    pub wide: Reserved<AtomicU32>,
    /// Small roots, one after the other. The first stays empty and serves all empty tables.
    pub roots: Reserved<AtomicU64>,
}

/// How much of its memory a family's tries use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrieUse {
    /// Entries in use.
    pub entries: usize,
    /// Nodes in use.
    pub nodes: usize,
    /// Skips in use.
    pub skips: usize,
    /// Entries of wide blocks in use.
    pub wide: usize,
    /// Small roots in use.
    pub roots: usize,
    /// Things that wait for workers to finish a pass.
    pub waiting: usize,
    /// Bytes really in memory, without big roots.
    pub resident_bytes: usize,
}

/// The control side of that memory.
pub(crate) struct TrieSlots {
    pub entries: Slots,
    pub nodes: Slots,
    pub skips: Slots,
    pub wide: WideSlots,
    pub roots: Slots,
}

/// Who hands out wide blocks, by the place of their first entry.
pub(crate) struct WideSlots {
    units: Slots,
    /// How many of a block's parts of 256 entries are rich, by its first unit.
    rich: Vec<u32>,
}

impl WideSlots {
    fn new() -> WideSlots {
        let (unit, largest) = (1 << WIDE_UNIT_BITS, 1 << (WIDE_BITS_MAX - WIDE_UNIT_BITS));
        WideSlots {
            units: Slots::new(WIDE_LENGTHS, WIDE_ENTRIES_MAX / unit, largest, largest),
            rich: Vec::new(),
        }
    }

    fn units(width: u32) -> usize {
        1 << (width - WIDE_UNIT_BITS)
    }

    /// The first of 2^`width` entries, if there is room.
    pub(crate) fn take(&mut self, width: u32) -> Option<usize> {
        Some((self.units.take(Self::units(width))? as usize) << WIDE_UNIT_BITS)
    }

    /// Take the block from `base` on out of use.
    pub(crate) fn retire(&mut self, base: usize, width: u32) {
        self.units.retire((base >> WIDE_UNIT_BITS) as u32, Self::units(width));
    }

    /// How many parts of the block from `base` on are rich.
    pub(crate) fn rich(&mut self, base: usize) -> &mut u32 {
        let unit = base >> WIDE_UNIT_BITS;
        if self.rich.len() <= unit {
            self.rich.resize(unit + 1, 0);
        }
        &mut self.rich[unit]
    }

    /// Entries in use.
    pub(crate) fn used(&self) -> usize {
        self.units.used() << WIDE_UNIT_BITS
    }
}

impl TrieMemory {
    pub(crate) fn new<A: Address>() -> Result<(Arc<TrieMemory>, TrieSlots), MemoryError> {
        let memory = TrieMemory {
            // A little more than can be handed out: a run may be read to its full 32 entries.
            entries: Reserved::new("prefix match entries", ENTRIES_MAX + NODE_SLOTS, Pages::Huge)?,
            nodes: Reserved::new("prefix match nodes", NODES_MAX, Pages::Huge)?,
            skips: Reserved::new("prefix match skips", SKIPS_MAX * skip_words::<A>(), Pages::Huge)?,
            // A late reader may go past the end of a block.
            wide: Reserved::new(
                "prefix match wide blocks",
                WIDE_ENTRIES_MAX + (1 << WIDE_BITS_MAX),
                Pages::Huge,
            )?,
            roots: Reserved::new("prefix match roots", ROOTS_MAX * SMALL_ROOT_WORDS, Pages::Small)?,
        };
        let mut slots = TrieSlots {
            entries: Slots::new(RUN_LENGTHS, ENTRIES_MAX, 3072, 3072 * 512),
            nodes: Slots::new(&[1], NODES_MAX, 256, 1 << 15),
            skips: Slots::new(&[1], SKIPS_MAX, 512, 1 << 17),
            wide: WideSlots::new(),
            roots: Slots::new(
                &[SMALL_ROOT_WORDS as u16],
                ROOTS_MAX * SMALL_ROOT_WORDS,
                SMALL_ROOT_WORDS as u32,
                SMALL_ROOT_WORDS as u32,
            ),
        };
        assert_eq!(slots.roots.take(SMALL_ROOT_WORDS), Some(0), "root 0 is the empty one");
        Ok((Arc::new(memory), slots))
    }

    /// The words of the skip with this number.
    #[inline(always)]
    pub(crate) fn skip<A: Address>(&self, index: u32) -> &[AtomicU64] {
        self.skips.slice((index as usize % SKIPS_MAX) * skip_words::<A>(), skip_words::<A>())
    }

    pub(crate) fn root(&self, index: u32) -> &[AtomicU64] {
        self.roots.slice(index as usize, SMALL_ROOT_WORDS)
    }
}

impl TrieSlots {
    pub(crate) fn reclaim<A: Address>(&mut self, memory: &TrieMemory, epochs: &Epochs) {
        let skip =
            |range: Range<usize>| range.start * skip_words::<A>()..range.end * skip_words::<A>();
        self.entries.reclaim(epochs, |range| memory.entries.release(range));
        self.nodes.reclaim(epochs, |range| memory.nodes.release(range));
        self.skips.reclaim(epochs, |range| memory.skips.release(skip(range)));
        let entries =
            |units: Range<usize>| units.start << WIDE_UNIT_BITS..units.end << WIDE_UNIT_BITS;
        self.wide.units.reclaim(epochs, |range| memory.wide.release(entries(range)));
        self.roots.reclaim(epochs, |range| memory.roots.release(range));
    }

    pub(crate) fn usage(&self, memory: &TrieMemory) -> TrieUse {
        TrieUse {
            entries: self.entries.used(),
            nodes: self.nodes.used(),
            skips: self.skips.used(),
            wide: self.wide.used(),
            roots: self.roots.used() / SMALL_ROOT_WORDS - 1,
            waiting: self.entries.waiting()
                + self.nodes.waiting()
                + self.skips.waiting()
                + self.wide.units.waiting(),
            resident_bytes: memory.entries.resident_bytes()
                + memory.nodes.resident_bytes()
                + memory.skips.resident_bytes()
                + memory.wide.resident_bytes()
                + memory.roots.resident_bytes(),
        }
    }
}
