//! What workers do: look up. No allocation, no lock, no loop that depends on how many prefixes
//! there are.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use quiver_core::cpu::Variant;

use super::batch::Table;
#[cfg(target_arch = "x86_64")]
use super::kernel::{Avx2, Avx512};
use super::kernel::{Kernel, LANES, Plain};
use super::memory::{
    BIG_ROOT_BITS, BIG_ROOT_WORDS, Entry, NODE_BITS, SMALL_ROOT_BITS, Skip, TrieMemory, WORD_BITS,
    base_of, bitmap_of, entry_of, is_leaf, is_wide_skip, place_in,
};
use crate::GroupId;
use crate::memory::{Reserved, prefetch};
use crate::prefix::Address;

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
    /// Are there so many prefixes that words of the root are worth asking for ahead of their use?
    pub(super) large: AtomicBool,
    /// Are there so many that dense blocks stay in no cache?
    pub(super) huge: AtomicBool,
    /// Are there so many skips that they stay in no cache?
    pub(super) scattered: AtomicBool,
    /// The best kernel for this processor.
    kernel: Variant,
    family: std::marker::PhantomData<A>,
}

/// A root, unpacked.
#[derive(Clone, Copy)]
struct Root {
    words: *const AtomicU64,
    slot_bits: u32,
}

/// The AVX-512 form counts bits by an instruction that came later than what the variant asks for.
fn best_kernel() -> Variant {
    #[cfg(target_arch = "x86_64")]
    if Variant::best() == Variant::Avx512 && !is_x86_feature_detected!("avx512vpopcntdq") {
        return Variant::Avx2;
    }
    Variant::best()
}

impl<A: Address> Lpm<A> {
    pub(super) fn new(memory: &Arc<TrieMemory>, miss: GroupId) -> Self {
        Lpm {
            memory: memory.clone(),
            root: AtomicPtr::new(memory.roots.base().cast_mut()),
            miss: AtomicU32::new(miss.0),
            big: OnceLock::new(),
            large: AtomicBool::new(false),
            huge: AtomicBool::new(false),
            scattered: AtomicBool::new(false),
            kernel: best_kernel(),
            family: std::marker::PhantomData,
        }
    }

    /// Publish a small root by its index, or the big one.
    pub(super) fn publish_root(&self, small: Option<u32>) {
        let pointer = match small {
            Some(index) => self.memory.root(index).as_ptr(),
            None => self
                .big
                .get()
                .expect("a big root was made")
                .base()
                .map_addr(|address| address | BIG),
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

    /// The group that answers where nothing but the default route matches, if there is one.
    #[inline(always)]
    pub fn miss_group(&self) -> GroupId {
        GroupId(self.miss.load(Ordering::Relaxed))
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
        if self.kernel >= Variant::Avx2 {
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

    /// Ask for the first line that a look-up of `address` reads, where that is worth while.
    #[inline(always)]
    pub fn prefetch(&self, address: A) {
        if !self.large.load(Ordering::Relaxed) {
            return;
        }
        let root = self.root();
        prefetch(root.words.wrapping_add((address >> (root.slot_bits + WORD_BITS)).low()));
    }

    /// The groups for `addresses`, into as many of `groups`, by the kernel of `variant`. Best for
    /// 32 to 64 addresses at a time, or a multiple of 64.
    #[inline(always)]
    pub fn lookup_slice(&self, variant: Variant, addresses: &[A], groups: &mut [GroupId]) {
        match variant.min(self.kernel) {
            // SAFETY: the processor has what the kernel needs, `new` has seen to it; the root is
            // ours.
            #[cfg(target_arch = "x86_64")]
            Variant::Avx512 => unsafe { self.lookup_avx512(addresses, groups) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Variant::Avx2 => unsafe { self.lookup_avx2(addresses, groups) },
            _ => self.lookup_scalar(addresses, groups),
        }
    }

    /// As [`lookup_slice`](Self::lookup_slice), for addresses of which many are likely to be alike,
    /// as segments are: what many ask is asked once.
    #[inline(always)]
    pub fn lookup_uniform(&self, variant: Variant, addresses: &[A], groups: &mut [GroupId]) {
        match variant.min(self.kernel) {
            // SAFETY: as in `lookup_slice`.
            #[cfg(target_arch = "x86_64")]
            Variant::Avx512 => unsafe { self.lookup_uniform_avx512(addresses, groups) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Variant::Avx2 => unsafe { self.lookup_uniform_avx2(addresses, groups) },
            _ => self.lookup_uniform_scalar(addresses, groups),
        }
    }

    /// # Safety
    /// The processor has what `K` needs.
    #[inline(always)]
    unsafe fn lookup_chunks<K: Kernel>(&self, addresses: &[A], groups: &mut [GroupId]) {
        let table = self.view();
        for (addresses, groups) in addresses.chunks(LANES).zip(groups.chunks_mut(LANES)) {
            // SAFETY: as the caller promises; the root covers all addresses.
            unsafe {
                table.lookup_uniform::<A, K>(addresses, groups, |address| {
                    self.lookup_inline(address)
                })
            };
        }
    }

    #[inline(never)]
    fn lookup_uniform_scalar(&self, addresses: &[A], groups: &mut [GroupId]) {
        // SAFETY: any processor will do; the root covers all addresses.
        unsafe { self.lookup_chunks::<Plain>(addresses, groups) };
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(never)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn lookup_uniform_avx2(&self, addresses: &[A], groups: &mut [GroupId]) {
        // SAFETY: what the kernel needs is what this is compiled for; the root covers all
        // addresses.
        unsafe { self.lookup_chunks::<Avx2>(addresses, groups) };
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(never)]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,\
                  popcnt"
    )]
    fn lookup_uniform_avx512(&self, addresses: &[A], groups: &mut [GroupId]) {
        // SAFETY: as above.
        unsafe { self.lookup_chunks::<Avx512>(addresses, groups) };
    }

    #[inline(never)]
    fn lookup_scalar(&self, addresses: &[A], groups: &mut [GroupId]) {
        // SAFETY: any processor will do; the root covers all addresses.
        unsafe { self.view().lookup::<A, Plain>(addresses, groups) };
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(never)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn lookup_avx2(&self, addresses: &[A], groups: &mut [GroupId]) {
        // SAFETY: what the kernel needs is what this is compiled for; the root covers all
        // addresses.
        unsafe { self.view().lookup::<A, Avx2>(addresses, groups) };
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(never)]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,\
                  popcnt"
    )]
    fn lookup_avx512(&self, addresses: &[A], groups: &mut [GroupId]) {
        // SAFETY: as above.
        unsafe { self.view().lookup::<A, Avx512>(addresses, groups) };
    }

    #[inline(always)]
    fn view(&self) -> Table<'_> {
        let root = self.root();
        Table {
            memory: &self.memory,
            words: root.words,
            slot_bits: root.slot_bits,
            miss: self.miss.load(Ordering::Relaxed),
            asks: self.large.load(Ordering::Relaxed),
            asks_skips: self.scattered.load(Ordering::Relaxed),
            asks_dense: self.huge.load(Ordering::Relaxed),
        }
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
        // An inline word's slots all look at entry 0, which is always in cache.
        let index = if bitmap_of(word) == 0 { 0 } else { place_in(word, slot) };
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
        // SAFETY: the root covers all addresses, and roots are never unmapped while the table
        // lives.
        unsafe {
            (*root.words.add((address >> (root.slot_bits + WORD_BITS)).low()))
                .load(Ordering::Acquire)
        }
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
        if let Entry::Skip(index) | Entry::Wide(index) = entry_of(entry) {
            let skip = Skip::<A>::load(self.memory.skip::<A>(index));
            if skip.shift >= bits + WORD_BITS {
                return (0, 0); // only a late reader meets this
            }
            let hit = (address ^ skip.key) >> skip.shift == A::ZERO;
            if is_wide_skip(entry) && hit {
                let place = self.memory.wide.get(skip.wide_place(address));
                return (place.load(Ordering::Acquire), skip.bottom());
            }
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
