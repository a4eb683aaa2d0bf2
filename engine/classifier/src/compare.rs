//! Comparisons of a whole cache line at once, in a form for any processor and one for AVX-512.
#![allow(unsafe_code)]

use quiver_core::cpu::Variant;
use quiver_tables::memory::ZeroValid;

use crate::changes::Gone;
use crate::entries::{Bucket, FEW_MAX, Few, Met, Wanted};
use crate::{Classified, Key};

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
    /// What is in both sets, and the words that are not 0.
    fn intersect(self, one: &SetLine, other: &SetLine) -> (SetLine, u8);
    /// The entry of a bucket that a packet asks for.
    fn ask<A: Classified>(self, bucket: &Bucket<A>, wanted: &Wanted<A>) -> Met;
    /// The number of the first of a few rules that takes a packet.
    fn first<A>(self, gone: impl Gone, rules: &Few, key: &Key<A>) -> u32;
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

    #[inline(always)]
    fn intersect(self, one: &SetLine, other: &SetLine) -> (SetLine, u8) {
        let both = std::array::from_fn(|word| one.0[word] & other.0[word]);
        (SetLine(both), self.meet(one, other))
    }

    #[inline(always)]
    fn ask<A: Classified>(self, bucket: &Bucket<A>, wanted: &Wanted<A>) -> Met {
        bucket.ask(wanted)
    }

    #[inline(always)]
    fn first<A>(self, gone: impl Gone, rules: &Few, key: &Key<A>) -> u32 {
        let mut differs = [0; FEW_MAX];
        rules.0.differ(key, &mut differs);
        rules.0.first_except(gone, &mut differs)
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
    use crate::changes::Gone;
    use crate::entries::{Bucket, FEW_MAX, Few, Met, Wanted};
    use crate::upper::UpperLanes;
    use crate::{Classified, Key, NONE};

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

        #[inline(always)]
        fn intersect(self, one: &SetLine, other: &SetLine) -> (SetLine, u8) {
            let mut both = SetLine([0; 8]);
            // SAFETY: as above.
            unsafe {
                let one = _mm512_load_si512(one.0.as_ptr().cast());
                let other = _mm512_load_si512(other.0.as_ptr().cast());
                _mm512_store_si512(both.0.as_mut_ptr().cast(), _mm512_and_si512(one, other));
                (both, _mm512_test_epi64_mask(one, other))
            }
        }

        #[inline(always)]
        fn ask<A: Classified>(self, bucket: &Bucket<A>, wanted: &Wanted<A>) -> Met {
            const {
                let lines = if A::WORDS == 1 { 1 } else { 2 };
                assert!(size_of::<Bucket<A>>() == lines * 64);
                assert!(size_of::<Wanted<A>>() * 2 == size_of::<Bucket<A>>());
            }
            let ports_count = wanted.upper.ports;
            let lines = (&raw const *bucket).cast();
            let wanted: *const __m256i = (&raw const *wanted).cast();
            // SAFETY: there is AVX-512. A bucket is an aligned line with two entries of IPv4, or
            // two lines with one of IPv6; what is wanted has the size of an entry.
            let (entry, words, ports) = unsafe {
                if A::WORDS == 1 {
                    let wanted = _mm512_broadcast_i64x4(_mm256_loadu_si256(wanted));
                    let (words, ports) = differences(TWO_ENTRIES, lines, wanted);
                    let second = u32::from(words & 0xff & !VALUE != 0);
                    (second, words >> (8 * second) & 0xff, ports >> (16 * second))
                } else {
                    let wanted = _mm512_loadu_si512(wanted.cast());
                    let (one, one_ports) = differences(ONE_ENTRY, lines, wanted);
                    let (two, two_ports) = differences(ONE_ENTRY, lines.add(1), wanted);
                    match one & !VALUE == 0 {
                        true => (0, one, one_ports),
                        false => (1, two, two_ports),
                    }
                }
            };
            Met {
                entry: entry as usize,
                is_pair: u32::from(words & !VALUE == 0),
                takes: u32::from(words | ports & PORTS & ports_count == 0),
            }
        }

        #[inline(always)]
        fn first<A>(self, gone: impl Gone, rules: &Few, key: &Key<A>) -> u32 {
            // SAFETY: there is AVX-512.
            let mut left = unsafe { taking(&rules.0, key) };
            while left != 0 {
                let number = rules.0.number[left.trailing_zeros() as usize % FEW_MAX];
                if !gone.has(number) {
                    return number;
                }
                left &= left - 1;
            }
            NONE
        }
    }

    /// The rules whose ports and fields a packet has, a bit each.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn taking<A>(rules: &UpperLanes<FEW_MAX>, key: &Key<A>) -> u32 {
        // SAFETY: there are four words.
        let of = |lanes: &[u32; FEW_MAX]| unsafe { _mm_loadu_si128(lanes.as_ptr().cast()) };
        let all = |word: u32| _mm_set1_epi32(word.cast_signed());
        let above_source = _mm_sub_epi32(all(key.source_port.into()), of(&rules.source_from));
        let above_destination =
            _mm_sub_epi32(all(key.destination_port.into()), of(&rules.destination_from));
        let outside = _mm_cmpgt_epu32_mask(above_source, of(&rules.source_span))
            | _mm_cmpgt_epu32_mask(above_destination, of(&rules.destination_span));
        let compared = _mm_and_si128(of(&rules.mask), all(key.compared()));
        let differs =
            _mm_test_epi32_mask(_mm_xor_si128(of(&rules.value), all(key.fields)), compared);
        !(u32::from(outside) & !key.any_upper() | u32::from(differs)) % (1 << FEW_MAX)
    }

    /// Where a cache line has the entries of a bucket, by words. An entry has ports in its words 0
    /// and 1, the value of fields in word 2 and their mask in word 3, the tuple in the lower half
    /// of word 5, and addresses in its last words.
    #[derive(Clone, Copy)]
    struct Layout {
        values: u16,
        tuples: u16,
        addresses: u16,
    }

    /// Of IPv4.
    const TWO_ENTRIES: Layout = Layout { values: 0x0404, tuples: 0x2020, addresses: 0xc0c0 };
    /// Of IPv6.
    const ONE_ENTRY: Layout = Layout { values: 0x0004, tuples: 0x0020, addresses: 0xff00 };
    /// Of the first entry.
    const VALUE: u32 = 0x0004;
    /// The halfwords of the first entry's ports.
    const PORTS: u32 = 0b101;

    /// Of a cache line: the words that differ from what is wanted, and the halfwords of ports that
    /// are outside; others may be set, too.
    ///
    /// # Safety
    /// The processor has AVX-512; the line can be read and is aligned.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn differences(at: Layout, line: *const __m512i, wanted: __m512i) -> (u32, u32) {
        // SAFETY: by the caller.
        let line = unsafe { _mm512_load_si512(line) };
        // The mask moves to the value.
        let compared = _mm512_shuffle_epi32::<0b11_11_01_00>(_mm512_and_si512(line, wanted));
        let bits = _mm512_mask_mov_epi32(_mm512_set1_epi32(-1), at.values, compared);
        let bits = _mm512_mask_mov_epi32(bits, at.tuples, _mm512_set1_epi32(0xffff));
        let words = at.values | at.tuples | at.addresses;
        let words = _mm512_mask_test_epi32_mask(words, _mm512_xor_si512(line, wanted), bits);
        let above = _mm512_sub_epi16(wanted, line);
        let outside = _mm512_cmpgt_epu16_mask(above, _mm512_srli_epi32::<16>(line));
        (words.into(), outside)
    }

    #[target_feature(
        enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub(super) fn run(body: impl Comparing) {
        body.run(Wide(()));
    }
}
