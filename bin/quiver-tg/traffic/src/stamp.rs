//! The stamp: the last 16 bytes of every frame say which frame it is and when it left.
//!
//! ```text
//! bit   0        16            24       32                        64
//! low   | magic   | measurement | stream | time stamp, low 32 bits |
//! high  | sequence number, 40 bits       | time, high 8 | check 16 |
//! ```
//! At the end of the frame it stays where it is when the forwarder puts headers in front or takes
//! them off. The check makes the one's complement sum of the stamp zero, so that a checksum over
//! the frame does not depend on it and damage is found.

use quiver_core::Packet;

/// Bytes of a stamp.
pub const STAMP_BYTES: usize = 16;
/// Streams that a stamp can tell apart.
pub const STREAMS_MAX: usize = 256;
/// Bits of a sequence number: 18 hours at 16 Mpps.
pub const SEQUENCE_BITS: u32 = 40;

const MAGIC: u64 = 0x7451; // "Qt"
const TIME_MASK: u64 = (1 << 40) - 1;
const SEQUENCE_MASK: u64 = (1 << SEQUENCE_BITS) - 1;

/// The stamp of a frame: measurement, stream, sequence number, time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Which measurement it belongs to; counts up and wraps.
    pub measurement: u8,
    /// Which stream.
    pub stream: u8,
    /// Its number in the stream, below 2^40.
    pub sequence: u64,
    /// When it left, nanoseconds modulo 2^40 (18 minutes); 0 = not said.
    pub sent_ns: u64,
}

/// Why the end of a frame is not a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoStamp {
    /// Nothing of ours.
    Foreign,
    /// Ours, but damaged.
    Corrupted,
}

/// The one's complement sum of the two words, in 16 bits (RFC 1071 §2).
#[inline(always)]
fn fold(low: u64, high: u64) -> u16 {
    let (sum, carry) = low.overflowing_add(high);
    let sum = sum.wrapping_add(u64::from(carry));
    // Both halves added crosswise: the upper one has the carry of the lower one in it.
    let sum = (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32;
    (sum.wrapping_add(sum.rotate_left(16)) >> 16) as u16
}

/// A time as it goes into a stamp: never 0, which means none.
#[inline(always)]
pub fn time_for_stamp(now_ns: u64) -> u64 {
    (now_ns & TIME_MASK).max(1)
}

/// Nanoseconds from a stamp's time to `now_ns`.
#[inline(always)]
pub fn age_ns(now_ns: u64, sent_ns: u64) -> u64 {
    now_ns.wrapping_sub(sent_ns) & TIME_MASK
}

impl Stamp {
    /// As bytes. What does not fit its field is cut off.
    #[inline(always)]
    pub fn encode(self) -> [u8; STAMP_BYTES] {
        let low = MAGIC
            | u64::from(self.measurement) << 16
            | u64::from(self.stream) << 24
            | (self.sent_ns & 0xffff_ffff) << 32;
        let high = (self.sequence & SEQUENCE_MASK) | ((self.sent_ns >> 32) & 0xff) << 40;
        let high = high | u64::from(!fold(low, high)) << 48;
        (u128::from(low) | u128::from(high) << 64).to_le_bytes()
    }

    /// The first bytes of its encoding.
    pub fn head(&self) -> u32 {
        MAGIC as u32 | u32::from(self.measurement) << 16 | u32::from(self.stream) << 24
    }

    /// Is this a whole stamp that begins with `head` and has this number?
    #[inline(always)]
    pub fn continues(bytes: &[u8; STAMP_BYTES], head: u32, sequence: u64) -> bool {
        let both = u128::from_le_bytes(*bytes);
        let (low, high) = (both as u64, (both >> 64) as u64);
        low as u32 == head && high & SEQUENCE_MASK == sequence && fold(low, high) == 0xffff
    }

    /// The time in a stamp, if it says one.
    #[inline(always)]
    pub fn time_of(bytes: &[u8; STAMP_BYTES]) -> Option<u64> {
        let both = u128::from_le_bytes(*bytes);
        let sent_ns = (both >> 32) as u64 & 0xffff_ffff | ((both >> 104) as u64 & 0xff) << 32;
        (sent_ns != 0).then_some(sent_ns)
    }

    /// The measurement and the stream that a stamp names, whole or damaged.
    pub fn claims(bytes: &[u8; STAMP_BYTES]) -> (u8, u8) {
        (bytes[2], bytes[3])
    }

    /// Decode a stamp.
    ///
    /// # Errors
    /// When the bytes are no stamp, or a damaged one.
    #[inline(always)]
    pub fn decode(bytes: &[u8; STAMP_BYTES]) -> Result<Stamp, NoStamp> {
        let both = u128::from_le_bytes(*bytes);
        let (low, high) = (both as u64, (both >> 64) as u64);
        if low & 0xffff != MAGIC {
            return Err(NoStamp::Foreign);
        }
        if fold(low, high) != 0xffff {
            return Err(NoStamp::Corrupted);
        }
        Ok(Stamp {
            measurement: (low >> 16) as u8,
            stream: (low >> 24) as u8,
            sequence: high & SEQUENCE_MASK,
            sent_ns: low >> 32 | ((high >> 40) & 0xff) << 32,
        })
    }
}

/// The last bytes of a frame.
#[inline]
pub fn end_of(packet: &Packet) -> Option<[u8; STAMP_BYTES]> {
    if packet.is_chained() { end_of_chain(packet) } else { packet.bytes().last_chunk().copied() }
}

/// The last bytes of a frame in several buffers.
#[cold]
pub fn end_of_chain(packet: &Packet) -> Option<[u8; STAMP_BYTES]> {
    let mut end = [0; STAMP_BYTES];
    for segment in packet.segments() {
        let count = segment.len().min(STAMP_BYTES);
        end.copy_within(count.., 0);
        end[STAMP_BYTES - count..].copy_from_slice(&segment[segment.len() - count..]);
    }
    (packet.length() >= STAMP_BYTES).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use quiver_wire::checksum::Sum;

    proptest! {
        #[test]
        fn a_stamp_comes_back_and_sums_to_zero(
            measurement: u8, stream: u8, sequence in 0u64..1 << 40, sent_ns in 0u64..1 << 40,
        ) {
            let stamp = Stamp { measurement, stream, sequence, sent_ns };
            let bytes = stamp.encode();
            prop_assert_eq!(Stamp::decode(&bytes), Ok(stamp));
            prop_assert!(Stamp::continues(&bytes, stamp.head(), sequence));
            prop_assert!(!Stamp::continues(&bytes, stamp.head(), sequence ^ 1));
            prop_assert!(!Stamp::continues(&bytes, stamp.head() ^ 1 << 16, sequence));
            prop_assert_eq!(Stamp::time_of(&bytes), Some(sent_ns).filter(|at| *at != 0));
            prop_assert_eq!(Sum::new().bytes(&bytes).checksum(), 0);
        }

        #[test]
        fn a_flipped_bit_is_found(sequence in 0u64..1 << 40, place in 0usize..16, bit in 0u32..8) {
            let mut bytes = Stamp { measurement: 1, stream: 2, sequence, sent_ns: 3 }.encode();
            bytes[place] ^= 1 << bit;
            let expected = if place < 2 { NoStamp::Foreign } else { NoStamp::Corrupted };
            prop_assert_eq!(Stamp::decode(&bytes), Err(expected));
            let head = Stamp { measurement: 1, stream: 2, sequence, sent_ns: 3 }.head();
            prop_assert!(!Stamp::continues(&bytes, head, sequence));
        }
    }

    #[test]
    fn a_time_that_wraps_between_sending_and_receiving_gives_the_right_age() {
        let sent = time_for_stamp((1 << 40) - 5);
        assert_eq!(age_ns((1 << 40) + 7, sent), 12);
        assert_eq!(time_for_stamp(1 << 40), 1);
    }
}
