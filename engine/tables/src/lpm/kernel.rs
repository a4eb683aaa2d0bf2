//! What differs between processors in a batch of look-ups: arithmetic on many lanes at a time.
//! Loads stay scalar in every form, because a gather costs more than the loads that it replaces.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod x86;

use std::mem::MaybeUninit;

use super::memory::{
    ENTRIES_MAX, KIND_SHIFT, NODE_WORDS, NODES_MAX, Skip, WORD_BITS, base_of, bitmap_of, place_in,
};
use crate::prefix::Address;

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

/// Look-ups that go in step: enough to hide memory, few enough to stay in L1.
pub(super) const LANES: usize = 64;
/// Lanes are worked on by so many.
pub(super) const GROUP: usize = 16;

/// An array with one element for each lane; nothing is in it until it is set.
#[repr(C, align(64))]
pub(super) struct Lane<T>([MaybeUninit<T>; LANES]);

impl<T: Copy> Lane<T> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Lane([const { MaybeUninit::uninit() }; LANES])
    }

    /// # Safety
    /// `lane` is below [`LANES`].
    #[inline(always)]
    pub(super) unsafe fn set(&mut self, lane: usize, value: T) {
        // SAFETY: as the caller promises.
        unsafe { self.0.get_unchecked_mut(lane) }.write(value);
    }

    /// # Safety
    /// `lane` is below [`LANES`] and was set.
    #[inline(always)]
    pub(super) unsafe fn get(&self, lane: usize) -> T {
        // SAFETY: as the caller promises.
        unsafe { self.0.get_unchecked(lane).assume_init() }
    }

    /// Where the lanes from `first` on stand.
    #[inline(always)]
    fn place(&self, first: usize) -> *const T {
        self.0.as_ptr().wrapping_add(first).cast()
    }

    #[inline(always)]
    fn place_mut(&mut self, first: usize) -> *mut T {
        self.0.as_mut_ptr().wrapping_add(first).cast()
    }
}

/// The two kind bits of all lanes' entries, one mask for each bit, the lower first.
pub(super) type Planes = [u64; 2];

/// The arithmetic of one kernel, on the first `count` lanes.
///
/// # Safety
/// The methods may only be called on a processor that has what the kernel is compiled for. `count`
/// is a multiple of [`GROUP`], [`LANES`] at most, and so many lanes were set in what is read.
pub(super) trait Kernel {
    /// For each lane's word and slot (its low five bits count): the place of its entry in `places`
    /// (0 where the word itself holds it) and the word's upper half in `bases`. The mask says which
    /// lanes have a place.
    unsafe fn locate(
        words: &Lane<u64>,
        slots: &Lane<u32>,
        count: usize,
        places: &mut Lane<u32>,
        bases: &mut Lane<u32>,
    ) -> u64;

    /// The byte of every address that has so many below it.
    unsafe fn bytes_at<A: Address>(addresses: &[A], depth: usize, slots: &mut Lane<u32>);

    /// The number that stands in the four bytes above the lowest `depth` ones of every address, as
    /// far as `mask` goes.
    unsafe fn numbers_at<A: Address>(
        addresses: &[A],
        depth: usize,
        mask: u32,
        slots: &mut Lane<u32>,
    );

    /// Where what `slots` lead to stands in the blocks of kind `B` that the lanes stand at.
    unsafe fn places<B: Block>(
        entries: &Lane<u32>,
        slots: &Lane<u32>,
        count: usize,
        places: &mut Lane<u32>,
    );

    /// Take what was `loaded` for the lanes of `mask` over into `entries`.
    unsafe fn merge(entries: &mut Lane<u32>, loaded: &Lane<u32>, mask: u64, count: usize);

    /// The lanes whose entries have one of these `bits`.
    unsafe fn having(entries: &Lane<u32>, bits: u32, count: usize) -> u64;

    /// The kind bits of `entries`.
    unsafe fn planes(entries: &Lane<u32>, count: usize) -> Planes;

    /// Is the entry of every lane in `mask` this `entry`?
    unsafe fn are_all(entries: &Lane<u32>, entry: u32, mask: u64, count: usize) -> bool;

    /// Let every lane in `mask` go past `skip`; those that agree with its key come back, and others
    /// with them.
    unsafe fn skip_all<A: Address>(
        addresses: &[A],
        skip: &Skip<A>,
        mask: u64,
        entries: &mut Lane<u32>,
    ) -> u64;

    /// Write `value` for every lane in `mask`.
    unsafe fn set_bytes(bytes: &mut [u8; LANES], value: u8, mask: u64);

    /// Do all addresses agree with the first one above their lowest `bits`? Most often the first
    /// few say that they do not.
    unsafe fn agree_above<A: Address>(addresses: &[A], bits: u32) -> bool;

    /// The lanes that have this `address`. There may be any number of addresses up to [`LANES`].
    unsafe fn alike<A: Address>(addresses: &[A], address: A) -> u64;

    /// Write the answers: `miss` where the entry is 0.
    unsafe fn answer(entries: &Lane<u32>, miss: u32, groups: &mut [u32], count: usize);
}

/// The byte of a lane's address that has `depth` below it.
///
/// # Safety
/// `lane` has an address, and this as many bytes.
#[inline(always)]
pub(super) unsafe fn byte_at<A: Address>(addresses: &[A], lane: usize, depth: usize) -> u32 {
    if cfg!(target_endian = "little") {
        let bytes = addresses.as_ptr().cast::<u8>();
        // SAFETY: as the caller promises.
        unsafe { (*bytes.add(lane * (A::BITS / 8) as usize + depth)).into() }
    } else {
        // SAFETY: as the caller promises.
        unsafe { (*addresses.get_unchecked(lane) >> (depth as u32 * 8)).low() as u32 & 255 }
    }
}

/// Blocks of one kind, as look-ups reckon in them.
pub(super) trait Block {
    /// What of an entry is the block's number.
    const NUMBER: u32;
    /// log2 of the elements of one: the elements before a block are its number shifted so far up.
    const SIZE_LOG2: u32;
    /// log2 of the slots of an element.
    const SLOTS_LOG2: u32;

    /// Where the element of `slot` stands, in the block that `entry` names.
    #[inline(always)]
    fn place(entry: u32, slot: u32) -> u32 {
        ((entry & Self::NUMBER) << Self::SIZE_LOG2) + (slot >> Self::SLOTS_LOG2)
    }
}

/// Dense blocks, whose numbers are their first entries'.
pub(super) struct Dense;

impl Block for Dense {
    const NUMBER: u32 = ENTRIES_MAX as u32 - 1;
    const SIZE_LOG2: u32 = 0;
    const SLOTS_LOG2: u32 = 0;
}

/// Nodes, of words.
pub(super) struct Nodes;

impl Block for Nodes {
    const NUMBER: u32 = NODES_MAX as u32 - 1;
    const SIZE_LOG2: u32 = NODE_WORDS.trailing_zeros();
    const SLOTS_LOG2: u32 = WORD_BITS;
}

/// Any processor; also what the AVX2 form is compiled from.
pub(super) struct Plain;

impl Kernel for Plain {
    #[inline(always)]
    unsafe fn locate(
        words: &Lane<u64>,
        slots: &Lane<u32>,
        count: usize,
        places: &mut Lane<u32>,
        bases: &mut Lane<u32>,
    ) -> u64 {
        let mut mask = 0;
        for lane in 0..count {
            // SAFETY: as the caller promises.
            let (word, slot) = unsafe { (words.get(lane), slots.get(lane)) };
            let is_run = bitmap_of(word) != 0;
            // SAFETY: as above.
            unsafe {
                places.set(lane, if is_run { place_in(word, slot) } else { 0 });
                bases.set(lane, base_of(word));
            }
            mask |= u64::from(is_run) << lane;
        }
        mask
    }

    #[inline(always)]
    unsafe fn bytes_at<A: Address>(addresses: &[A], depth: usize, slots: &mut Lane<u32>) {
        for lane in 0..addresses.len() {
            // SAFETY: as the caller promises.
            unsafe { slots.set(lane, byte_at(addresses, lane, depth)) };
        }
    }

    #[inline(always)]
    unsafe fn numbers_at<A: Address>(
        addresses: &[A],
        depth: usize,
        mask: u32,
        slots: &mut Lane<u32>,
    ) {
        for (lane, address) in addresses.iter().enumerate() {
            // SAFETY: as the caller promises.
            unsafe { slots.set(lane, (*address >> (depth as u32 * 8)).low() as u32 & mask) };
        }
    }

    #[inline(always)]
    unsafe fn places<B: Block>(
        entries: &Lane<u32>,
        slots: &Lane<u32>,
        count: usize,
        places: &mut Lane<u32>,
    ) {
        for lane in 0..count {
            // SAFETY: as the caller promises.
            unsafe { places.set(lane, B::place(entries.get(lane), slots.get(lane))) };
        }
    }

    #[inline(always)]
    unsafe fn merge(entries: &mut Lane<u32>, loaded: &Lane<u32>, mask: u64, count: usize) {
        for lane in 0..count {
            // SAFETY: as the caller promises.
            unsafe {
                let entry =
                    if mask >> lane & 1 != 0 { loaded.get(lane) } else { entries.get(lane) };
                entries.set(lane, entry);
            }
        }
    }

    #[inline(always)]
    unsafe fn having(entries: &Lane<u32>, bits: u32, count: usize) -> u64 {
        // SAFETY: as the caller promises.
        (0..count).fold(0, |mask, lane| {
            mask | u64::from(unsafe { entries.get(lane) } & bits != 0) << lane
        })
    }

    #[inline(always)]
    unsafe fn planes(entries: &Lane<u32>, count: usize) -> Planes {
        // SAFETY: as the caller promises.
        let entry = |lane| unsafe { entries.get(lane) };
        let mut planes = [0; 2];
        if (0..count).fold(0, |all, lane| all | entry(lane)) >> KIND_SHIFT == 0 {
            return planes;
        }
        for lane in 0..count {
            for (bit, plane) in planes.iter_mut().enumerate() {
                *plane |= u64::from(entry(lane) >> (KIND_SHIFT + bit as u32) & 1) << lane;
            }
        }
        planes
    }

    #[inline(always)]
    unsafe fn are_all(entries: &Lane<u32>, entry: u32, mask: u64, count: usize) -> bool {
        // SAFETY: as the caller promises.
        let differs = |lane| unsafe { entries.get(lane) ^ entry };
        (0..count)
            .fold(0, |all, lane| all | differs(lane) & 0u32.wrapping_sub((mask >> lane & 1) as u32))
            == 0
    }

    #[inline(always)]
    unsafe fn skip_all<A: Address>(
        addresses: &[A],
        skip: &Skip<A>,
        mask: u64,
        entries: &mut Lane<u32>,
    ) -> u64 {
        let bits = A::MAX << skip.shift;
        let key = skip.key & bits;
        let mut agree = 0;
        for (lane, address) in addresses.iter().enumerate() {
            let agrees = *address & bits == key;
            agree |= u64::from(agrees) << lane;
            let way = if agrees { skip.hit } else { skip.miss };
            // SAFETY: as the caller promises.
            unsafe {
                let entry = if mask >> lane & 1 != 0 { way } else { entries.get(lane) };
                entries.set(lane, entry);
            }
        }
        agree
    }

    #[inline(always)]
    unsafe fn set_bytes(bytes: &mut [u8; LANES], value: u8, mask: u64) {
        for (lane, byte) in bytes.iter_mut().enumerate() {
            *byte = if mask >> lane & 1 != 0 { value } else { *byte };
        }
    }

    #[inline(always)]
    unsafe fn agree_above<A: Address>(addresses: &[A], bits: u32) -> bool {
        let first = addresses[0];
        let agree = |some: &[A]| {
            let differs = some.iter().fold(A::ZERO, |all, address| all | (*address ^ first));
            differs >> bits == A::ZERO
        };
        let (some, rest) = addresses.split_at(addresses.len().min(4));
        agree(some) && agree(rest)
    }

    #[inline(always)]
    unsafe fn alike<A: Address>(addresses: &[A], address: A) -> u64 {
        let mut mask = 0;
        for (lane, other) in addresses.iter().enumerate() {
            mask |= u64::from(*other == address) << lane;
        }
        mask
    }

    #[inline(always)]
    unsafe fn answer(entries: &Lane<u32>, miss: u32, groups: &mut [u32], count: usize) {
        for (lane, group) in (0..count).zip(groups) {
            // SAFETY: as the caller promises.
            let entry = unsafe { entries.get(lane) };
            *group = if entry == 0 { miss } else { entry };
        }
    }
}
