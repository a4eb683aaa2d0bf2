//! What differs between processors in a batch of look-ups: arithmetic on many lanes at a time. Loads
//! stay scalar in every form, because a gather costs more than the loads that it replaces.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use super::memory::{
    ENTRIES_MAX, KIND_SHIFT, NODE_WORDS, NODES_MAX, Skip, WORD_BITS, base_of, bitmap_of, place_in,
};
use crate::prefix::Address;

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
/// The methods may only be called on a processor that has what the kernel is compiled for. `count` is
/// a multiple of [`GROUP`], [`LANES`] at most, and so many lanes were set in what is read.
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

    /// Where the entries of `slots` stand in the dense blocks that the lanes stand at.
    unsafe fn dense_places(entries: &Lane<u32>, slots: &Lane<u32>, count: usize, places: &mut Lane<u32>);

    /// Where the words of `slots` stand, counted in words, in the nodes that the lanes stand at.
    unsafe fn node_places(entries: &Lane<u32>, slots: &Lane<u32>, count: usize, places: &mut Lane<u32>);

    /// Take what was `loaded` for the lanes of `mask` over into `entries`.
    unsafe fn merge(entries: &mut Lane<u32>, loaded: &Lane<u32>, mask: u64, count: usize);

    /// The kind bits of `entries`.
    unsafe fn planes(entries: &Lane<u32>, count: usize) -> Planes;

    /// Is the entry of every lane in `mask` this `entry`?
    unsafe fn are_all(entries: &Lane<u32>, entry: u32, mask: u64, count: usize) -> bool;

    /// Let every lane in `mask` go past `skip`.
    unsafe fn skip_all<A: Address>(addresses: &[A], skip: &Skip<A>, mask: u64, entries: &mut Lane<u32>);

    /// Write `value` for every lane in `mask`.
    unsafe fn set_bytes(bytes: &mut [u8; LANES], value: u8, mask: u64);

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

/// What of an entry is the number of a dense block's first entry, and of a node.
const BASE_MASK: u32 = ENTRIES_MAX as u32 - 1;
const NODE_MASK: u32 = NODES_MAX as u32 - 1;
/// log2 of a node's words.
const NODE_SHIFT: u32 = NODE_WORDS.trailing_zeros();

/// Where the entry of `slot` stands, in the dense block that `entry` names.
#[inline(always)]
pub(super) fn dense_place(entry: u32, slot: u32) -> u32 {
    (entry & BASE_MASK) + slot
}

/// Where the word of `slot` stands, counted in words, in the node that `entry` names.
#[inline(always)]
pub(super) fn node_place(entry: u32, slot: u32) -> u32 {
    ((entry & NODE_MASK) << NODE_SHIFT) + (slot >> WORD_BITS)
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
    unsafe fn dense_places(entries: &Lane<u32>, slots: &Lane<u32>, count: usize, places: &mut Lane<u32>) {
        for lane in 0..count {
            // SAFETY: as the caller promises.
            unsafe { places.set(lane, dense_place(entries.get(lane), slots.get(lane))) };
        }
    }

    #[inline(always)]
    unsafe fn node_places(entries: &Lane<u32>, slots: &Lane<u32>, count: usize, places: &mut Lane<u32>) {
        for lane in 0..count {
            // SAFETY: as the caller promises.
            unsafe { places.set(lane, node_place(entries.get(lane), slots.get(lane))) };
        }
    }

    #[inline(always)]
    unsafe fn merge(entries: &mut Lane<u32>, loaded: &Lane<u32>, mask: u64, count: usize) {
        for lane in 0..count {
            // SAFETY: as the caller promises.
            unsafe {
                let entry = if mask >> lane & 1 != 0 { loaded.get(lane) } else { entries.get(lane) };
                entries.set(lane, entry);
            }
        }
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
        (0..count).fold(0, |all, lane| all | differs(lane) & 0u32.wrapping_sub((mask >> lane & 1) as u32))
            == 0
    }

    #[inline(always)]
    unsafe fn skip_all<A: Address>(addresses: &[A], skip: &Skip<A>, mask: u64, entries: &mut Lane<u32>) {
        let bits = A::MAX << skip.shift;
        let key = skip.key & bits;
        for (lane, address) in addresses.iter().enumerate() {
            let way = if *address & bits == key { skip.hit } else { skip.miss };
            // SAFETY: as the caller promises.
            unsafe {
                let entry = if mask >> lane & 1 != 0 { way } else { entries.get(lane) };
                entries.set(lane, entry);
            }
        }
    }

    #[inline(always)]
    unsafe fn set_bytes(bytes: &mut [u8; LANES], value: u8, mask: u64) {
        for (lane, byte) in bytes.iter_mut().enumerate() {
            *byte = if mask >> lane & 1 != 0 { value } else { *byte };
        }
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

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{BASE_MASK, GROUP, Kernel, LANES, Lane, NODE_MASK, NODE_SHIFT, Plain, Planes};
    use crate::lpm::memory::{KIND_SHIFT, Skip, WORD_BITS};
    use crate::prefix::Address;

    /// AVX2 and POPCNT: kind bits by sign masks, eight lanes at a time; words one at a time.
    pub(in crate::lpm) struct Avx2;

    impl Kernel for Avx2 {
        #[inline]
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn locate(
            words: &Lane<u64>,
            slots: &Lane<u32>,
            count: usize,
            places: &mut Lane<u32>,
            bases: &mut Lane<u32>,
        ) -> u64 {
            // SAFETY: plain code, compiled with POPCNT.
            unsafe { Plain::locate(words, slots, count, places, bases) }
        }

        #[inline]
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn bytes_at<A: Address>(addresses: &[A], depth: usize, slots: &mut Lane<u32>) {
            // SAFETY: plain code.
            unsafe { Plain::bytes_at(addresses, depth, slots) }
        }

        #[inline]
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn dense_places(entries: &Lane<u32>, slots: &Lane<u32>, count: usize, places: &mut Lane<u32>) {
            // SAFETY: plain code.
            unsafe { Plain::dense_places(entries, slots, count, places) }
        }

        #[inline]
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn node_places(entries: &Lane<u32>, slots: &Lane<u32>, count: usize, places: &mut Lane<u32>) {
            // SAFETY: plain code.
            unsafe { Plain::node_places(entries, slots, count, places) }
        }

        #[inline]
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn merge(entries: &mut Lane<u32>, loaded: &Lane<u32>, mask: u64, count: usize) {
            let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            for first in (0..count).step_by(8) {
                let chosen = _mm256_and_si256(_mm256_set1_epi32((mask >> first) as i32), bits);
                // SAFETY: eight lanes from a multiple of eight below LANES, in arrays of LANES.
                unsafe {
                    let to = entries.place_mut(first).cast::<__m256i>();
                    let from = _mm256_load_si256(loaded.place(first).cast());
                    let chosen = _mm256_cmpeq_epi32(chosen, bits);
                    _mm256_store_si256(to, _mm256_blendv_epi8(_mm256_load_si256(to), from, chosen));
                }
            }
        }

        #[inline]
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn planes(entries: &Lane<u32>, count: usize) -> Planes {
            let mut planes = [0; 2];
            for first in (0..count).step_by(8) {
                // SAFETY: as above.
                let eight = unsafe { _mm256_load_si256(entries.place(first).cast()) };
                let sign = |v| u64::from(_mm256_movemask_ps(_mm256_castsi256_ps(v)) as u32) << first;
                planes[1] |= sign(eight);
                planes[0] |= sign(_mm256_slli_epi32::<1>(eight));
            }
            planes
        }

        #[inline]
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn are_all(entries: &Lane<u32>, entry: u32, mask: u64, count: usize) -> bool {
            let (bits, entry) =
                (_mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128), _mm256_set1_epi32(entry as i32));
            let mut differ = _mm256_setzero_si256();
            for first in (0..count).step_by(8) {
                let counted = _mm256_and_si256(_mm256_set1_epi32((mask >> first) as i32), bits);
                // SAFETY: as above.
                let eight = unsafe { _mm256_load_si256(entries.place(first).cast()) };
                let other = _mm256_xor_si256(eight, entry);
                let counted = _mm256_cmpeq_epi32(counted, bits);
                differ = _mm256_or_si256(differ, _mm256_and_si256(other, counted));
            }
            _mm256_testz_si256(differ, differ) != 0
        }

        #[inline]
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn skip_all<A: Address>(addresses: &[A], skip: &Skip<A>, mask: u64, entries: &mut Lane<u32>) {
            // SAFETY: plain code.
            unsafe { Plain::skip_all(addresses, skip, mask, entries) }
        }

        #[inline]
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn set_bytes(bytes: &mut [u8; LANES], value: u8, mask: u64) {
            // SAFETY: plain code.
            unsafe { Plain::set_bytes(bytes, value, mask) }
        }

        #[inline]
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn alike<A: Address>(addresses: &[A], address: A) -> u64 {
            // SAFETY: plain code.
            unsafe { Plain::alike(addresses, address) }
        }

        #[inline]
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn answer(entries: &Lane<u32>, miss: u32, groups: &mut [u32], count: usize) {
            // SAFETY: plain code.
            unsafe { Plain::answer(entries, miss, groups, count) }
        }
    }

    /// AVX-512 with VPOPCNTDQ: sixteen words at a time.
    pub(in crate::lpm) struct Avx512;

    impl Kernel for Avx512 {
        #[inline]
        #[target_feature(
            enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt"
        )]
        unsafe fn locate(
            words: &Lane<u64>,
            slots: &Lane<u32>,
            count: usize,
            places: &mut Lane<u32>,
            bases: &mut Lane<u32>,
        ) -> u64 {
            let low = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            let high = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
            let (two, ones) = (_mm512_set1_epi32(2), _mm512_set1_epi32(-1));
            let mut mask = 0;
            for first in (0..count).step_by(GROUP) {
                // SAFETY: sixteen lanes from a multiple of sixteen below LANES, in arrays of LANES.
                let (left, right, slot) = unsafe {
                    let words = words.place(first);
                    (
                        _mm512_load_si512(words.cast()),
                        _mm512_load_si512(words.add(8).cast()),
                        _mm512_load_si512(slots.place(first).cast()),
                    )
                };
                let bitmap = _mm512_permutex2var_epi32(left, low, right);
                let base = _mm512_permutex2var_epi32(left, high, right);
                let slot = _mm512_and_si512(slot, _mm512_set1_epi32(31));
                let upto = _mm512_add_epi32(_mm512_sllv_epi32(two, slot), ones);
                let before = _mm512_popcnt_epi32(_mm512_and_si512(bitmap, upto));
                let place = _mm512_add_epi32(base, _mm512_add_epi32(before, ones));
                let far = _mm512_test_epi32_mask(bitmap, bitmap);
                // SAFETY: as above.
                unsafe {
                    _mm512_store_si512(places.place_mut(first).cast(), _mm512_maskz_mov_epi32(far, place));
                    _mm512_store_si512(bases.place_mut(first).cast(), base);
                }
                mask |= u64::from(far) << first;
            }
            mask
        }

        #[inline]
        #[target_feature(
            enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt"
        )]
        unsafe fn bytes_at<A: Address>(addresses: &[A], depth: usize, slots: &mut Lane<u32>) {
            let depth = depth as u32;
            // Of four addresses in a register, the byte goes to the first number of each, to the second, and so on:
            // all other places become 0.
            let from = |to: u32| {
                let [first, second, third, fourth] =
                    [0, 1, 2, 3].map(|at| (0x8080_8000 | if at == to { depth } else { 0x80 }) as i32);
                _mm512_broadcast_i32x4(_mm_setr_epi32(first, second, third, fourth))
            };
            let (from, shift) = ([from(0), from(1), from(2), from(3)], _mm_cvtsi32_si128(depth as i32 * 8));
            let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            for (first, sixteen) in addresses.chunks_exact(GROUP).enumerate() {
                let place = sixteen.as_ptr().cast::<__m512i>();
                let bytes = if A::BITS == 32 {
                    // SAFETY: sixteen addresses of 4 bytes.
                    let lanes = _mm512_srl_epi32(unsafe { _mm512_loadu_si512(place) }, shift);
                    _mm512_and_si512(lanes, _mm512_set1_epi32(255))
                } else {
                    // SAFETY: sixteen addresses of 16 bytes, low half first: four to a register.
                    let four = |at: usize| unsafe {
                        _mm512_shuffle_epi8(_mm512_loadu_si512(place.add(at)), from[at])
                    };
                    let all =
                        _mm512_or_si512(_mm512_or_si512(four(0), four(1)), _mm512_or_si512(four(2), four(3)));
                    _mm512_permutexvar_epi32(order, all)
                };
                // SAFETY: sixteen lanes from a multiple of sixteen below LANES, in an array of LANES.
                unsafe { _mm512_store_si512(slots.place_mut(first * GROUP).cast(), bytes) };
            }
        }

        #[inline]
        #[target_feature(
            enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt"
        )]
        unsafe fn dense_places(entries: &Lane<u32>, slots: &Lane<u32>, count: usize, places: &mut Lane<u32>) {
            let mask = _mm512_set1_epi32(BASE_MASK as i32);
            for first in (0..count).step_by(GROUP) {
                // SAFETY: as above.
                unsafe {
                    let base = _mm512_and_si512(_mm512_load_si512(entries.place(first).cast()), mask);
                    let slot = _mm512_load_si512(slots.place(first).cast());
                    _mm512_store_si512(places.place_mut(first).cast(), _mm512_add_epi32(base, slot));
                }
            }
        }

        #[inline]
        #[target_feature(
            enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt"
        )]
        unsafe fn node_places(entries: &Lane<u32>, slots: &Lane<u32>, count: usize, places: &mut Lane<u32>) {
            let mask = _mm512_set1_epi32(NODE_MASK as i32);
            for first in (0..count).step_by(GROUP) {
                // SAFETY: as above.
                unsafe {
                    let node = _mm512_and_si512(_mm512_load_si512(entries.place(first).cast()), mask);
                    let word = _mm512_srli_epi32::<WORD_BITS>(_mm512_load_si512(slots.place(first).cast()));
                    let place = _mm512_add_epi32(_mm512_slli_epi32::<NODE_SHIFT>(node), word);
                    _mm512_store_si512(places.place_mut(first).cast(), place);
                }
            }
        }

        #[inline]
        #[target_feature(
            enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt"
        )]
        unsafe fn merge(entries: &mut Lane<u32>, loaded: &Lane<u32>, mask: u64, count: usize) {
            for first in (0..count).step_by(GROUP) {
                // SAFETY: as above.
                unsafe {
                    let from = _mm512_load_si512(loaded.place(first).cast());
                    let to = entries.place_mut(first);
                    _mm512_mask_store_epi32(to.cast(), (mask >> first) as u16, from);
                }
            }
        }

        #[inline]
        #[target_feature(
            enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt"
        )]
        unsafe fn planes(entries: &Lane<u32>, count: usize) -> Planes {
            let mut planes = [0; 2];
            for first in (0..count).step_by(GROUP) {
                // SAFETY: as above.
                let lanes = unsafe { _mm512_load_si512(entries.place(first).cast()) };
                for (bit, plane) in planes.iter_mut().enumerate() {
                    let bit = _mm512_set1_epi32((1u32 << (KIND_SHIFT + bit as u32)) as i32);
                    *plane |= u64::from(_mm512_test_epi32_mask(lanes, bit)) << first;
                }
            }
            planes
        }

        #[inline]
        #[target_feature(
            enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt"
        )]
        unsafe fn are_all(entries: &Lane<u32>, entry: u32, mask: u64, count: usize) -> bool {
            let (entry, mut others) = (_mm512_set1_epi32(entry as i32), 0);
            for first in (0..count).step_by(GROUP) {
                // SAFETY: as above.
                let lanes = unsafe { _mm512_load_si512(entries.place(first).cast()) };
                others |= _mm512_mask_cmpneq_epi32_mask((mask >> first) as u16, lanes, entry);
            }
            others == 0
        }

        #[inline]
        #[target_feature(
            enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt"
        )]
        unsafe fn skip_all<A: Address>(addresses: &[A], skip: &Skip<A>, mask: u64, entries: &mut Lane<u32>) {
            let bits = A::MAX << skip.shift;
            let (bits_high, bits_low) = bits.halves();
            let (key_high, key_low) = (skip.key & bits).halves();
            let (hit, miss) = (_mm512_set1_epi32(skip.hit as i32), _mm512_set1_epi32(skip.miss as i32));
            let pair = |high: u64, low: u64| _mm512_broadcast_i32x4(_mm_set_epi64x(high as i64, low as i64));
            let (wide_bits, wide_key) = (pair(bits_high, bits_low), pair(key_high, key_low));
            let (narrow_bits, narrow_key) =
                (_mm512_set1_epi32(bits_low as i32), _mm512_set1_epi32(key_low as i32));
            for (first, sixteen) in addresses.chunks_exact(GROUP).enumerate() {
                let (first, place) = (first * GROUP, sixteen.as_ptr().cast::<__m512i>());
                let mut off = 0u32;
                if A::BITS == 32 {
                    // SAFETY: sixteen addresses of 4 bytes.
                    let lanes = unsafe { _mm512_loadu_si512(place) };
                    let lanes = _mm512_and_si512(lanes, narrow_bits);
                    off = u32::from(_mm512_cmpneq_epi32_mask(lanes, narrow_key));
                } else {
                    for quarter in 0..4 {
                        // SAFETY: sixteen addresses of 16 bytes, low half first: four to a register.
                        let lanes = unsafe { _mm512_loadu_si512(place.add(quarter)) };
                        let lanes = _mm512_and_si512(lanes, wide_bits);
                        let halves = u32::from(_mm512_cmpneq_epi64_mask(lanes, wide_key));
                        let either = (halves | halves >> 1) & 0x55;
                        off |= _pext_u32(either, 0x55) << (4 * quarter);
                    }
                }
                let ways = _mm512_mask_mov_epi32(hit, off as u16, miss);
                // SAFETY: as above.
                unsafe {
                    _mm512_mask_store_epi32(entries.place_mut(first).cast(), (mask >> first) as u16, ways)
                };
            }
        }

        #[inline]
        #[target_feature(
            enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt"
        )]
        unsafe fn set_bytes(bytes: &mut [u8; LANES], value: u8, mask: u64) {
            // SAFETY: sixty-four bytes.
            unsafe {
                _mm512_mask_storeu_epi8(bytes.as_mut_ptr().cast(), mask, _mm512_set1_epi8(value as i8));
            }
        }

        #[inline]
        #[target_feature(
            enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt"
        )]
        unsafe fn alike<A: Address>(addresses: &[A], address: A) -> u64 {
            let (sixteens, rest) = addresses.as_chunks::<GROUP>();
            let (high, low) = address.halves();
            let wide = _mm512_broadcast_i32x4(_mm_set_epi64x(high as i64, low as i64));
            let narrow = _mm512_set1_epi32(low as i32);
            let mut mask = 0;
            for (first, sixteen) in sixteens.iter().enumerate() {
                let place = sixteen.as_ptr().cast::<__m512i>();
                let mut off = 0u32;
                if A::BITS == 32 {
                    // SAFETY: sixteen addresses of 4 bytes.
                    off = u32::from(_mm512_cmpneq_epi32_mask(unsafe { _mm512_loadu_si512(place) }, narrow));
                } else {
                    for quarter in 0..4 {
                        // SAFETY: sixteen addresses of 16 bytes, low half first: four to a register.
                        let lanes = unsafe { _mm512_loadu_si512(place.add(quarter)) };
                        let halves = u32::from(_mm512_cmpneq_epi64_mask(lanes, wide));
                        off |= _pext_u32(halves | halves >> 1, 0x55) << (4 * quarter);
                    }
                }
                mask |= u64::from(!off & 0xffff) << (first * GROUP);
            }
            // SAFETY: plain code.
            let rest = unsafe { Plain::alike(rest, address) };
            mask | rest.checked_shl((sixteens.len() * GROUP) as u32).unwrap_or(0)
        }

        #[inline]
        #[target_feature(
            enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt"
        )]
        unsafe fn answer(entries: &Lane<u32>, miss: u32, groups: &mut [u32], count: usize) {
            let miss = _mm512_set1_epi32(miss as i32);
            for (first, groups) in (0..count).step_by(GROUP).zip(groups.chunks_exact_mut(GROUP)) {
                // SAFETY: as above; the chunk of groups is sixteen long.
                unsafe {
                    let lanes = _mm512_load_si512(entries.place(first).cast());
                    let none = _mm512_testn_epi32_mask(lanes, lanes);
                    let answers = _mm512_mask_mov_epi32(lanes, none, miss);
                    _mm512_storeu_si512(groups.as_mut_ptr().cast(), answers);
                }
            }
        }
    }
}
