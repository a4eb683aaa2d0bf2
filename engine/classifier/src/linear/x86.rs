//! The loop over the rules of a short list by AVX-512: sixteen rules stay in registers while all
//! packets of a batch meet them.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use quiver_core::cpu::Variant;

use super::{ADDRESS_WORDS_MAX, Block, LANES, Prefixes4};
use crate::sets::BATCH;
use crate::{Classified, Key};

/// Blocks of sixteen rules whose answers fit one word.
pub(super) const BLOCKS: usize = 4;

/// Sixteen rules in registers. Words of addresses that a family does not have are never used.
struct Registers {
    source: [(__m512i, __m512i); ADDRESS_WORDS_MAX],
    destination: [(__m512i, __m512i); ADDRESS_WORDS_MAX],
    /// Source port in the low half of a lane, destination port in the high half.
    from: __m512i,
    span: __m512i,
    value: __m512i,
    mask: __m512i,
}

/// All lanes of a block's field.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load(lanes: &[u32; LANES]) -> __m512i {
    // SAFETY: sixteen words are 64 bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn both(low: &[u32; LANES], high: &[u32; LANES]) -> __m512i {
    _mm512_or_si512(load(low), _mm512_slli_epi32::<16>(load(high)))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn pairs(words: &[Prefixes4]) -> [(__m512i, __m512i); ADDRESS_WORDS_MAX] {
    let mut pairs = [(_mm512_setzero_si512(), _mm512_setzero_si512()); ADDRESS_WORDS_MAX];
    for (pair, word) in pairs.iter_mut().zip(words) {
        *pair = (load(&word.value), load(&word.mask));
    }
    pairs
}

impl Registers {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn of<A: Classified>(block: &Block<A>) -> Registers {
        let upper = &block.upper;
        Registers {
            source: pairs(A::prefix_words(&block.source)),
            destination: pairs(A::prefix_words(&block.destination)),
            from: both(&upper.source_from, &upper.destination_from),
            span: both(&upper.source_span, &upper.destination_span),
            value: load(&upper.value),
            mask: load(&upper.mask),
        }
    }

    /// The lanes whose rules a packet matches.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn matching<A: Classified>(&self, key: &Key<A>) -> u16 {
        // (value ^ field) & mask, of three operands by one instruction.
        const DIFFERS: i32 = 0x28;
        const OR: i32 = 0xfe;
        let all = |word: u32| _mm512_set1_epi32(word.cast_signed());
        let differs =
            |field: __m512i, value, mask| _mm512_ternarylogic_epi32::<DIFFERS>(field, value, mask);
        let fields = differs(all(key.fields), self.value, self.mask);
        let mut found = match key.any_upper() {
            0 => {
                let ports =
                    u32::from(key.source_port) | u32::from(key.destination_port) << u16::BITS;
                let past = _mm512_sub_epi16(all(ports), self.from);
                _mm512_or_si512(_mm512_subs_epu16(past, self.span), fields)
            }
            _ => _mm512_and_si512(fields, all(key.compared())),
        };
        let (source, destination) = (key.source.words(), key.destination.words());
        for word in 0..A::WORDS {
            let (value, mask) = self.source[word];
            let one = differs(all(source[word]), value, mask);
            let (value, mask) = self.destination[word];
            let other = differs(all(destination[word]), value, mask);
            found = _mm512_ternarylogic_epi32::<OR>(found, one, other);
        }
        _mm512_testn_epi32_mask(found, found)
    }
}

/// Set a bit for each of up to 64 rules that a packet of a batch matches, beginning with the first
/// rule. Blocks behind a rule that all packets match are not looked at.
pub(super) fn hits<A: Classified>(
    blocks: &[Block<A>],
    keys: &[Key<A>],
    hits: &mut [[u16; BLOCKS]; BATCH],
) {
    assert!(Variant::Avx512.is_available(), "chosen only where the processor has it");
    // SAFETY: it has.
    unsafe { hits_of_blocks(blocks, keys, hits) };
}

#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
fn hits_of_blocks<A: Classified>(
    blocks: &[Block<A>],
    keys: &[Key<A>],
    hits: &mut [[u16; BLOCKS]; BATCH],
) {
    for (place, block) in blocks.iter().take(BLOCKS).enumerate() {
        let registers = Registers::of(block);
        let mut is_open = false;
        for (key, hits) in keys.iter().zip(hits.iter_mut()) {
            let lanes = registers.matching(key);
            hits[place] = lanes;
            is_open |= lanes == 0;
        }
        if !is_open {
            break;
        }
    }
}
