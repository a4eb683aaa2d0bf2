//! The kernels of x86-64.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{Block, GROUP, Kernel, LANES, Lane, Plain, Planes};
use crate::lpm::memory::{KIND_SHIFT, Skip};
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
    unsafe fn numbers_at<A: Address>(
        addresses: &[A],
        depth: usize,
        mask: u32,
        slots: &mut Lane<u32>,
    ) {
        // SAFETY: plain code.
        unsafe { Plain::numbers_at(addresses, depth, mask, slots) }
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn places<B: Block>(
        entries: &Lane<u32>,
        slots: &Lane<u32>,
        count: usize,
        places: &mut Lane<u32>,
    ) {
        // SAFETY: plain code.
        unsafe { Plain::places::<B>(entries, slots, count, places) }
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
    unsafe fn having(entries: &Lane<u32>, bits: u32, count: usize) -> u64 {
        // SAFETY: plain code.
        unsafe { Plain::having(entries, bits, count) }
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
    unsafe fn skip_all<A: Address>(
        addresses: &[A],
        skip: &Skip<A>,
        mask: u64,
        entries: &mut Lane<u32>,
    ) -> u64 {
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
    unsafe fn agree_above<A: Address>(addresses: &[A], bits: u32) -> bool {
        // SAFETY: plain code.
        unsafe { Plain::agree_above(addresses, bits) }
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
        enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,\
                  popcnt"
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
                _mm512_store_si512(
                    places.place_mut(first).cast(),
                    _mm512_maskz_mov_epi32(far, place),
                );
                _mm512_store_si512(bases.place_mut(first).cast(), base);
            }
            mask |= u64::from(far) << first;
        }
        mask
    }

    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,\
                  popcnt"
    )]
    unsafe fn bytes_at<A: Address>(addresses: &[A], depth: usize, slots: &mut Lane<u32>) {
        // SAFETY: compiled for the same.
        unsafe { Self::numbers_at(addresses, depth, 255, slots) }
    }

    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,\
                  popcnt"
    )]
    unsafe fn numbers_at<A: Address>(
        addresses: &[A],
        depth: usize,
        mask: u32,
        slots: &mut Lane<u32>,
    ) {
        let depth = depth as u32;
        // Of four addresses in a register, the bytes go to the first number of each, to the second,
        // and so on: all other places become 0. Past the top they begin again below, which the mask
        // takes away.
        let bytes = 0x0302_0100 + (depth & 15) * 0x0101_0101;
        let from = |to: u32| {
            let [first, second, third, fourth] = [0, 1, 2, 3]
                .map(|at| (if at == to { bytes & 0x0f0f_0f0f } else { 0x8080_8080 }) as i32);
            _mm512_broadcast_i32x4(_mm_setr_epi32(first, second, third, fourth))
        };
        let (from, shift) =
            ([from(0), from(1), from(2), from(3)], _mm_cvtsi32_si128(depth as i32 * 8));
        let (order, mask) = (
            _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
            _mm512_set1_epi32(mask as i32),
        );
        for (first, sixteen) in addresses.chunks_exact(GROUP).enumerate() {
            let place = sixteen.as_ptr().cast::<__m512i>();
            let numbers = if A::BITS == 32 {
                // SAFETY: sixteen addresses of 4 bytes.
                _mm512_srl_epi32(unsafe { _mm512_loadu_si512(place) }, shift)
            } else {
                // SAFETY: sixteen addresses of 16 bytes, low half first: four to a register.
                let four = |at: usize| unsafe {
                    _mm512_shuffle_epi8(_mm512_loadu_si512(place.add(at)), from[at])
                };
                let all = _mm512_or_si512(
                    _mm512_or_si512(four(0), four(1)),
                    _mm512_or_si512(four(2), four(3)),
                );
                _mm512_permutexvar_epi32(order, all)
            };
            let numbers = _mm512_and_si512(numbers, mask);
            // SAFETY: sixteen lanes from a multiple of sixteen below LANES, in an array of LANES.
            unsafe { _mm512_store_si512(slots.place_mut(first * GROUP).cast(), numbers) };
        }
    }

    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,\
                  popcnt"
    )]
    unsafe fn places<B: Block>(
        entries: &Lane<u32>,
        slots: &Lane<u32>,
        count: usize,
        places: &mut Lane<u32>,
    ) {
        let number = _mm512_set1_epi32(B::NUMBER as i32);
        let (up, down) =
            (_mm_cvtsi32_si128(B::SIZE_LOG2 as i32), _mm_cvtsi32_si128(B::SLOTS_LOG2 as i32));
        for first in (0..count).step_by(GROUP) {
            // SAFETY: as above.
            unsafe {
                let block =
                    _mm512_and_si512(_mm512_load_si512(entries.place(first).cast()), number);
                let before = _mm512_sll_epi32(block, up);
                let within = _mm512_srl_epi32(_mm512_load_si512(slots.place(first).cast()), down);
                _mm512_store_si512(
                    places.place_mut(first).cast(),
                    _mm512_add_epi32(before, within),
                );
            }
        }
    }

    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,\
                  popcnt"
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
        enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,\
                  popcnt"
    )]
    unsafe fn having(entries: &Lane<u32>, bits: u32, count: usize) -> u64 {
        let (bits, mut mask) = (_mm512_set1_epi32(bits as i32), 0);
        for first in (0..count).step_by(GROUP) {
            // SAFETY: as above.
            let lanes = unsafe { _mm512_load_si512(entries.place(first).cast()) };
            mask |= u64::from(_mm512_test_epi32_mask(lanes, bits)) << first;
        }
        mask
    }

    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,\
                  popcnt"
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
        enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,\
                  popcnt"
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
        enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,\
                  popcnt"
    )]
    unsafe fn skip_all<A: Address>(
        addresses: &[A],
        skip: &Skip<A>,
        mask: u64,
        entries: &mut Lane<u32>,
    ) -> u64 {
        let bits = A::MAX << skip.shift;
        let (bits_high, bits_low) = bits.halves();
        let (key_high, key_low) = (skip.key & bits).halves();
        let (hit, miss) = (_mm512_set1_epi32(skip.hit as i32), _mm512_set1_epi32(skip.miss as i32));
        let pair =
            |high: u64, low: u64| _mm512_broadcast_i32x4(_mm_set_epi64x(high as i64, low as i64));
        let (wide_bits, wide_key) = (pair(bits_high, bits_low), pair(key_high, key_low));
        let (narrow_bits, narrow_key) =
            (_mm512_set1_epi32(bits_low as i32), _mm512_set1_epi32(key_low as i32));
        let mut agree = 0;
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
                _mm512_mask_store_epi32(
                    entries.place_mut(first).cast(),
                    (mask >> first) as u16,
                    ways,
                )
            };
            agree |= u64::from(!off & 0xffff) << first;
        }
        agree
    }

    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,\
                  popcnt"
    )]
    unsafe fn set_bytes(bytes: &mut [u8; LANES], value: u8, mask: u64) {
        // SAFETY: sixty-four bytes.
        unsafe {
            _mm512_mask_storeu_epi8(bytes.as_mut_ptr().cast(), mask, _mm512_set1_epi8(value as i8));
        }
    }

    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,\
                  popcnt"
    )]
    unsafe fn agree_above<A: Address>(addresses: &[A], bits: u32) -> bool {
        let pair = |address: A| {
            let (high, low) = address.halves();
            if A::BITS == 32 {
                _mm512_set1_epi32(low as i32)
            } else {
                _mm512_broadcast_i32x4(_mm_set_epi64x(high as i64, low as i64))
            }
        };
        let (first, above) = (pair(addresses[0]), pair(A::MAX << bits));
        addresses.chunks_exact(GROUP).all(|sixteen| {
            let mut differs = _mm512_setzero_si512();
            let place = sixteen.as_ptr().cast::<__m512i>();
            for at in 0..size_of_val(sixteen) / 64 {
                // SAFETY: inside the sixteen addresses.
                let lanes = unsafe { _mm512_loadu_si512(place.add(at)) };
                // differs | (lanes ^ first)
                differs = _mm512_ternarylogic_epi64::<0xf6>(differs, lanes, first);
            }
            _mm512_test_epi64_mask(differs, above) == 0
        })
    }

    #[inline]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,\
                  popcnt"
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
                off = u32::from(_mm512_cmpneq_epi32_mask(
                    unsafe { _mm512_loadu_si512(place) },
                    narrow,
                ));
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
        enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,\
                  popcnt"
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
