//! Comparisons of a whole cache line at once, in a form for any processor and one for AVX-512.
#![allow(unsafe_code)]

use quiver_core::cpu::Variant;
use quiver_tables::memory::ZeroValid;

/// A cache line of halfwords.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Halfwords(pub [u16; 32]);
// SAFETY: integers are valid as zeroes.
unsafe impl ZeroValid for Halfwords {}

/// A cache line of a set: 512 members, a bit each.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct SetLine(pub [u64; 8]);
// SAFETY: as above.
unsafe impl ZeroValid for SetLine {}

/// How lines are compared. Answers have a bit for each place, the first one lowest.
pub(crate) trait Compare: Copy {
    /// The halfwords that are not above `limit`.
    fn not_above(self, line: &Halfwords, limit: u16) -> u32;
    /// The words that have ones in common.
    fn meet(self, one: &SetLine, other: &SetLine) -> u8;
}

/// What [`run`] compiles in each form. Give `run` the attribute `#[inline(always)]`.
pub(crate) trait Comparing {
    /// The loop.
    fn run(self, compare: impl Compare);
}

/// On any processor.
#[derive(Clone, Copy)]
struct Plain;

impl Compare for Plain {
    #[inline(always)]
    fn not_above(self, line: &Halfwords, limit: u16) -> u32 {
        line.0.iter().zip(0..).fold(0, |mask, (word, at)| mask | u32::from(*word <= limit) << at)
    }

    #[inline(always)]
    fn meet(self, one: &SetLine, other: &SetLine) -> u8 {
        let both = one.0.iter().zip(other.0).zip(0..);
        both.fold(0, |mask, ((one, other), at)| mask | u8::from(one & other != 0) << at)
    }
}

/// Run a loop in the form for a variant.
#[inline]
pub(crate) fn run(variant: Variant, body: impl Comparing) {
    #[cfg(target_arch = "x86_64")]
    if variant.min(Variant::best()) == Variant::Avx512 {
        // SAFETY: the processor has what the variant needs.
        return unsafe { wide::run(body) };
    }
    variant.run(PlainBody(body));
}

struct PlainBody<C>(C);

impl<C: Comparing> quiver_core::cpu::Body for PlainBody<C> {
    type Answer = ();

    #[inline(always)]
    fn run(self) {
        self.0.run(Plain);
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::*;

    use super::{Compare, Comparing, Halfwords, SetLine};

    /// By AVX-512; made only where the processor has it.
    #[derive(Clone, Copy)]
    struct Wide(());

    impl Compare for Wide {
        #[inline(always)]
        fn not_above(self, line: &Halfwords, limit: u16) -> u32 {
            // SAFETY: there is AVX-512; a line is 64 bytes and aligned.
            unsafe {
                let words = _mm512_load_si512(line.0.as_ptr().cast());
                _mm512_cmple_epu16_mask(words, _mm512_set1_epi16(limit.cast_signed()))
            }
        }

        #[inline(always)]
        fn meet(self, one: &SetLine, other: &SetLine) -> u8 {
            // SAFETY: as above.
            unsafe {
                let one = _mm512_load_si512(one.0.as_ptr().cast());
                _mm512_test_epi64_mask(one, _mm512_load_si512(other.0.as_ptr().cast()))
            }
        }
    }

    #[target_feature(
        enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub(super) fn run(body: impl Comparing) {
        body.run(Wide(()));
    }
}
