//! The data of transactions: a byte depends on its position and on nothing else, so that data is
//! made again for a retransmission, and looked at in whatever order it comes.
//!
//! Byte p is `q + 31 × (q / 256)` modulo 256, with `q = p mod 65,521`.

/// Bytes until the pattern begins again: a prime, so that no segment's size divides it.
pub const PATTERN_PERIOD: usize = 65_521;
/// Bytes that can be looked at at once.
pub const PATTERN_PIECE_MAX: usize = 1 << 14;

const fn byte_at(position: usize) -> u8 {
    let q = position % PATTERN_PERIOD;
    (q + 31 * (q / 256)) as u8
}

const fn table() -> [u8; PATTERN_PERIOD + PATTERN_PIECE_MAX] {
    let mut bytes = [0; PATTERN_PERIOD + PATTERN_PIECE_MAX];
    let mut position = 0;
    while position < bytes.len() {
        bytes[position] = byte_at(position);
        position += 1;
    }
    bytes
}

static PATTERN: [u8; PATTERN_PERIOD + PATTERN_PIECE_MAX] = table();

/// The bytes from `position` on, at most [`PATTERN_PIECE_MAX`] of them.
#[inline]
pub fn piece(position: u32, count: usize) -> &'static [u8] {
    let start = position as usize % PATTERN_PERIOD;
    &PATTERN[start..start + count.min(PATTERN_PIECE_MAX)]
}

/// Are these the bytes from `position` on?
#[inline]
pub fn is_right(position: u32, bytes: &[u8]) -> bool {
    let mut at = position;
    bytes.chunks(PATTERN_PIECE_MAX).all(|part| {
        let is_same = part == piece(at, part.len());
        at = at.wrapping_add(part.len() as u32);
        is_same
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_are_made_of_the_bytes_of_the_formula(position: u32, count in 0usize..3000) {
            let expected: Vec<u8> = (0..count).map(|k| byte_at(position as usize + k)).collect();
            prop_assert_eq!(piece(position, count), &expected[..]);
            prop_assert!(is_right(position, &expected));
        }

        #[test]
        fn bytes_of_another_place_are_wrong(position in 0u32..1_000_000, moved in 1u32..65_521) {
            let bytes = piece(position + moved, 1460);
            prop_assert!(!is_right(position, bytes));
        }
    }
}
