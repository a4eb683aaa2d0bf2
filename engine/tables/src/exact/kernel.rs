//! Comparing a bucket's line at once: the forms of the inner step for each `Variant`.
//!
//! The lines are loaded by `asm!`, because another thread may be storing into them: to the compiler
//! that is a relaxed atomic load of each word, which a plain vector load would not be. Each word
//! arrives whole; what is read of the line afterwards is ordered after it, as everywhere on x86-64.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

use super::cells::{LongBucket, ShortBucket};
use crate::memory::ZeroValid;
use quiver_core::cpu::Variant;

// SAFETY: buckets are integers in atomics, and zeroes are an empty bucket.
unsafe impl ZeroValid for ShortBucket {}
// SAFETY: as above.
unsafe impl ZeroValid for LongBucket {}

/// How buckets are compared. A value proves that the processor can do it.
pub(super) trait Compare: Copy {
    /// Slots whose word is `expected`, as a mask.
    fn short(self, bucket: &ShortBucket, expected: u64) -> u32;
    /// Slots with this tag, as a mask.
    fn long(self, bucket: &LongBucket, tag: u16) -> u32;

    /// Are the words of an object's key these?
    #[inline(always)]
    fn is_key<const N: usize>(self, stored: &[AtomicU64; N], key: &[u64; N]) -> bool {
        let mut differs = 0;
        for word in 0..N {
            differs |= stored[word].load(Ordering::Relaxed) ^ key[word];
        }
        differs == 0
    }
}

/// A word at a time, on any processor.
#[derive(Clone, Copy)]
pub(super) struct Scalar;

impl Compare for Scalar {
    #[inline(always)]
    fn short(self, bucket: &ShortBucket, expected: u64) -> u32 {
        bucket.find(expected)
    }

    #[inline(always)]
    fn long(self, bucket: &LongBucket, tag: u16) -> u32 {
        bucket.find(tag)
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{AtomicU64, Compare, LongBucket, Scalar, ShortBucket, Variant};
    use crate::exact::cells::{LONG_MASK, SHORT_COMPARED};
    use std::arch::asm;
    use std::arch::x86_64::*;

    /// Half a line at a time; the processor has AVX2.
    #[derive(Clone, Copy)]
    pub(in crate::exact) struct Avx2(());

    /// The same with masks; the processor has AVX-512 with BW and VL.
    #[derive(Clone, Copy)]
    pub(in crate::exact) struct Avx512(());

    impl Avx2 {
        #[inline(always)]
        pub(in crate::exact) fn new() -> Option<Avx2> {
            Variant::Avx2.is_available().then_some(Avx2(()))
        }
    }

    impl Avx512 {
        #[inline(always)]
        pub(in crate::exact) fn new() -> Option<Avx512> {
            Variant::Avx512.is_available().then_some(Avx512(()))
        }
    }

    impl Compare for Avx2 {
        #[inline(always)]
        fn short(self, bucket: &ShortBucket, expected: u64) -> u32 {
            // SAFETY: `self` is only made where the processor has AVX2.
            unsafe { short_avx2(bucket, expected) }
        }

        #[inline(always)]
        fn long(self, bucket: &LongBucket, tag: u16) -> u32 {
            // SAFETY: as above; BMI2 comes with the variant.
            unsafe { long_avx2(bucket, tag) }
        }
    }

    impl Compare for Avx512 {
        #[inline(always)]
        fn short(self, bucket: &ShortBucket, expected: u64) -> u32 {
            // SAFETY: `self` is only made where the processor has AVX-512.
            unsafe { short_avx512(bucket, expected) }
        }

        #[inline(always)]
        fn long(self, bucket: &LongBucket, tag: u16) -> u32 {
            // SAFETY: as above.
            unsafe { long_avx512(bucket, tag) }
        }

        #[inline(always)]
        fn is_key<const N: usize>(self, stored: &[AtomicU64; N], key: &[u64; N]) -> bool {
            if !(WORDS_MIN..=VECTOR_WORDS).contains(&N) {
                return Scalar.is_key(stored, key);
            }
            // SAFETY: as above; the words fit in a vector.
            unsafe { is_key_avx512(stored, key) }
        }
    }

    /// Words of a vector of AVX-512.
    const VECTOR_WORDS: usize = 8;

    /// Keys of fewer words are compared word by word: a vector gains nothing.
    const WORDS_MIN: usize = 4;

    /// As [`Compare::is_key`], of at most [`VECTOR_WORDS`] words at once.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn is_key_avx512<const N: usize>(stored: &[AtomicU64; N], key: &[u64; N]) -> bool {
        debug_assert!(N <= VECTOR_WORDS);
        let words: __mmask8 = ((1u32 << N) - 1) as __mmask8;
        let stored_words: __m512i;
        // SAFETY: reads the N words that `stored` refers to, all in atomics; of what is masked out
        // nothing is read.
        unsafe {
            asm!(
                "vmovdqu64 {stored_words}{{{words}}}{{z}}, zmmword ptr [{stored}]",
                stored_words = out(zmm_reg) stored_words,
                words = in(kreg) words,
                stored = in(reg) stored.as_ptr(),
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        // SAFETY: as above, of `key`.
        let key_words = unsafe { _mm512_maskz_loadu_epi64(words, key.as_ptr().cast()) };
        _mm512_cmpneq_epi64_mask(stored_words, key_words) == 0
    }

    /// The first half of a bucket.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn first_half<B>(bucket: &B) -> __m256i {
        const { assert!(size_of::<B>() == 64 && align_of::<B>() == 64) };
        let half: __m256i;
        // SAFETY: reads 32 aligned bytes of the 64 that `bucket` refers to, all in atomics.
        unsafe {
            asm!(
                "vmovdqa {half}, ymmword ptr [{bucket}]",
                half = out(ymm_reg) half,
                bucket = in(reg) std::ptr::from_ref(bucket),
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        half
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn short_avx2(bucket: &ShortBucket, expected: u64) -> u32 {
        let compared = _mm256_set_epi64x(-1, -1, -1, SHORT_COMPARED as i64);
        let words = _mm256_and_si256(first_half(bucket), compared);
        let equal = _mm256_cmpeq_epi64(words, _mm256_set1_epi64x(expected as i64));
        _mm256_movemask_pd(_mm256_castsi256_pd(equal)) as u32
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx2")]
    fn short_avx512(bucket: &ShortBucket, expected: u64) -> u32 {
        let compared = _mm256_set_epi64x(-1, -1, -1, SHORT_COMPARED as i64);
        let differs = _mm256_xor_si256(first_half(bucket), _mm256_set1_epi64x(expected as i64));
        u32::from(_mm256_testn_epi64_mask(differs, compared))
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi2")]
    fn long_avx2(bucket: &LongBucket, tag: u16) -> u32 {
        let equal = _mm256_cmpeq_epi16(first_half(bucket), _mm256_set1_epi16(tag as i16));
        // Two bits a tag: keep one of them.
        _pext_u32(_mm256_movemask_epi8(equal) as u32, 0x5555_5555) & LONG_MASK
    }

    #[inline]
    #[target_feature(enable = "avx512bw,avx512vl,avx2")]
    fn long_avx512(bucket: &LongBucket, tag: u16) -> u32 {
        u32::from(_mm256_cmpeq_epi16_mask(first_half(bucket), _mm256_set1_epi16(tag as i16)))
            & LONG_MASK
    }
}

/// A loop over buckets, to be compiled for each variant. `run` must be `#[inline(always)]`: what is
/// called and not inlined is not compiled for it.
pub(super) trait Batch {
    /// The loop.
    fn run(self, compare: impl Compare);
}

/// Run `batch` in the form of `variant`, or in the best one below it that the processor has.
#[inline(always)]
pub(super) fn run(variant: Variant, batch: impl Batch) {
    #[cfg(target_arch = "x86_64")]
    match variant {
        Variant::Avx512 if let Some(compare) = Avx512::new() => {
            // SAFETY: the processor has what the variant stands for.
            return unsafe { run_avx512(batch, compare) };
        }
        Variant::Avx512 | Variant::Avx2 if let Some(compare) = Avx2::new() => {
            // SAFETY: as above.
            return unsafe { run_avx2(batch, compare) };
        }
        _ => {}
    }
    let _ = variant;
    run_scalar(batch);
}

fn run_scalar(batch: impl Batch) {
    batch.run(Scalar);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx2(batch: impl Batch, compare: Avx2) {
    batch.run(compare);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(
    enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt"
)]
fn run_avx512(batch: impl Batch, compare: Avx512) {
    batch.run(compare);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each word of a key counts, and nothing behind it.
    fn each_word_counts<const N: usize>(compare: impl Compare) {
        let key: [u64; N] = std::array::from_fn(|at| (at as u64 + 1) << (at * 5));
        let stored = key.map(AtomicU64::new);
        assert!(compare.is_key(&stored, &key), "{N} words");
        for bit in 0..64 * N {
            let mut other = key;
            other[bit / 64] ^= 1 << (bit % 64);
            assert!(!compare.is_key(&stored, &other), "bit {bit} of {N} words");
        }
    }

    fn keys_of_any_length(compare: impl Compare) {
        each_word_counts::<1>(compare);
        each_word_counts::<2>(compare);
        each_word_counts::<3>(compare);
        each_word_counts::<4>(compare);
        each_word_counts::<5>(compare);
        each_word_counts::<7>(compare);
        each_word_counts::<8>(compare);
        each_word_counts::<9>(compare);
        each_word_counts::<11>(compare);
    }

    #[test]
    fn a_key_is_equal_if_all_of_its_words_are() {
        keys_of_any_length(Scalar);
        #[cfg(target_arch = "x86_64")]
        {
            Avx2::new().into_iter().for_each(keys_of_any_length);
            Avx512::new().into_iter().for_each(keys_of_any_length);
        }
    }
}
