//! The Internet checksum (RFC 1071), its incremental update (RFC 1624) and UDP's special zero.
//!
//! A one's complement sum of 16-bit words is the value of the words modulo 65535. 2^16, 2^32 and
//! 2^64 are all 1 modulo 65535, so words of any width may be added with end-around carry, in either
//! byte order, as long as the result is stored in the same order (RFC 1071 §2).

use core::net::{Ipv4Addr, Ipv6Addr};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute_ref};

use crate::{Ip4Header, IpProtocol};

/// The multiplicative inverse of 65535 modulo 2^64.
const INVERSE_65535: u64 = 0u64.wrapping_sub(0x0001_0001_0001_0001);
/// The largest quotient that a multiple of 65535 below 2^64 can have.
const QUOTIENT_MAX: u64 = u64::MAX / 65535;

/// An IPv4 header without options as the widest words that it has.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct HeaderWords([u8; 8], [u8; 8], [u8; 4]);

/// The sum of an IPv4 header of 20 bytes: three loads, three additions, no loop, not folded.
#[inline(always)]
fn header_sum(header: &Ip4Header) -> u64 {
    let words: &HeaderWords = transmute_ref!(header);
    let HeaderWords(a, b, c) = words;
    let (sum, carry) = u64::from_ne_bytes(*a).carrying_add(u64::from_ne_bytes(*b), false);
    let (sum, carry) = sum.carrying_add(u64::from(u32::from_ne_bytes(*c)), carry);
    // After a carry the sum is below 2^33: this cannot wrap.
    sum.wrapping_add(u64::from(carry))
}

/// Whether the checksum of an IPv4 header without options is right.
///
/// No folding: a number is a multiple of 65535 exactly when its product with the inverse of 65535
/// is at most 2^64 / 65535. (A header of zeros alone would pass; its version is wrong.)
#[inline(always)]
pub fn header_is_good(header: &Ip4Header) -> bool {
    header_sum(header).wrapping_mul(INVERSE_65535) <= QUOTIENT_MAX
}

/// The checksum field that an IPv4 header without options should have; the present one is ignored.
#[inline]
pub fn header_checksum(header: &Ip4Header) -> u16 {
    let sum = header_sum(&header.with_checksum(0));
    !u16::from_be(fold(sum))
}

/// Folds a sum to 16 bits, in the byte order it was built in.
#[inline(always)]
fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// A one's complement sum that grows: pseudo header, then header, then payload, in as many pieces
/// as the packet has. Pieces may have odd lengths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// Hardly more than 2^32, words in the machine's byte order.
    words: u64,
    /// An odd number of bytes has been added: the next byte is the low half of a word.
    odd: bool,
}

impl Sum {
    /// Nothing added yet.
    pub const fn new() -> Self {
        Self { words: 0, odd: false }
    }

    /// The pseudo header of RFC 793 §3.1 and RFC 768; `len` is that of header and payload, in
    /// bytes.
    #[inline]
    pub fn pseudo4(
        source: Ipv4Addr,
        destination: Ipv4Addr,
        protocol: IpProtocol,
        len: u16,
    ) -> Self {
        let addresses = u64::from(source.to_bits()) << 32 | u64::from(destination.to_bits());
        Self::new().quad(addresses).word(u16::from(protocol.0)).word(len)
    }

    /// The pseudo header of RFC 8200 §8.1; `len` is that of header and payload, in bytes.
    #[inline]
    pub fn pseudo6(
        source: Ipv6Addr,
        destination: Ipv6Addr,
        protocol: IpProtocol,
        len: u32,
    ) -> Self {
        let upper = u64::from(len) << 32 | u64::from(protocol.0);
        Self::new().address6(source).address6(destination).quad(upper)
    }

    /// Adds a field of 16 bits.
    #[inline(always)]
    #[must_use]
    pub fn word(self, value: u16) -> Self {
        self.plus(u64::from(value.to_be()))
    }

    /// Adds fields of 64 bits together, the first one highest.
    #[inline(always)]
    #[must_use]
    pub fn quad(self, value: u64) -> Self {
        let value = value.to_be();
        self.plus((value & 0xffff_ffff) + (value >> 32))
    }

    /// Adds an IPv6 address.
    #[inline(always)]
    #[must_use]
    pub fn address6(self, address: Ipv6Addr) -> Self {
        let bits = address.to_bits();
        self.quad((bits >> 64) as u64).quad(bits as u64)
    }

    /// Adds the next bytes of the packet.
    #[inline]
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let sum = self.plus(sum_of(bytes));
        Self { odd: self.odd ^ (bytes.len() % 2 == 1), ..sum }
    }

    /// Adds the sum of the next bytes of the packet.
    #[inline]
    #[must_use]
    pub fn then(self, next: Sum) -> Self {
        let sum = self.plus(next.words);
        Self { odd: self.odd ^ next.odd, ..sum }
    }

    /// Adds a sum of words in the machine's byte order. Behind an odd number of bytes, they count
    /// for the other halves: a rotation by 8 bits is a multiplication by 256.
    #[inline(always)]
    fn plus(self, sum: u64) -> Self {
        let sum = if self.odd { sum.rotate_left(8) } else { sum };
        let words = self.words + (sum & 0xffff_ffff) + (sum >> 32);
        Self { words: (words & 0xffff_ffff) + (words >> 32), ..self }
    }

    /// The checksum to store, its field having been added as zero.
    #[inline]
    pub fn checksum(self) -> u16 {
        !u16::from_be(fold(self.words))
    }

    /// As [`Sum::checksum`], for UDP, where zero means "none" and is sent as 0xffff (RFC 768).
    #[inline]
    pub fn udp_checksum(self) -> u16 {
        match self.checksum() {
            0 => 0xffff,
            checksum => checksum,
        }
    }

    /// Whether the bytes added, checksum included, have a right one.
    #[inline]
    pub fn is_good(self) -> bool {
        fold(self.words) == 0xffff
    }
}

/// The checksum of bytes whose checksum field is zero (ICMP for IPv4, for one).
#[inline]
pub fn of(bytes: &[u8]) -> u16 {
    Sum::new().bytes(bytes).checksum()
}

/// From so many bytes on, the sum is made by vectors: what they cost at their end is little then.
const VECTOR_BYTES_MIN: usize = 256;

/// The sum of words (and of what is left at the end), folded to 33 bits or so. Words of 8 bytes are
/// added with their carries in a word above: 2^64 is 1 modulo 65535.
#[inline]
fn sum_of(bytes: &[u8]) -> u64 {
    let (blocks, rest) = match bytes.len() >= VECTOR_BYTES_MIN {
        true => bytes.as_chunks::<32>(),
        false => (&[][..], bytes),
    };
    let mut sum = u128::from(sum_of_blocks(blocks));
    let (words, last) = rest.as_chunks::<8>();
    for word in words {
        sum += u128::from(u64::from_ne_bytes(*word));
    }
    sum += u128::from(sum_of_last(bytes, last));
    let (low, carries) = (sum as u64, (sum >> 64) as u64);
    (low & 0xffff_ffff) + (low >> 32) + carries
}

/// Eight independent sums of 32-bit words, so that the compiler makes vectors of them.
#[inline]
fn sum_of_blocks(blocks: &[[u8; 32]]) -> u64 {
    let mut lanes = [0u64; 8];
    for block in blocks {
        let (words, _) = block.as_chunks::<4>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane += u64::from(u32::from_ne_bytes(*word));
        }
    }
    lanes.iter().sum::<u64>()
}

/// The last bytes, fewer than 8, with zeros behind them. Where there are more before them, one load
/// has all of them.
#[inline(always)]
fn sum_of_last(bytes: &[u8], last: &[u8]) -> u64 {
    let whole = match bytes.last_chunk::<8>() {
        Some(_) if last.is_empty() => 0,
        Some(whole) => u64::from_le_bytes(*whole) >> (64 - 8 * last.len()),
        None => {
            let mut whole = [0; 8];
            whole.iter_mut().zip(last).for_each(|(to, from)| *to = *from);
            u64::from_le_bytes(whole)
        }
    };
    u64::from_ne_bytes(whole.to_le_bytes())
}

/// The checksum after a field of 16 bits changed: HC' = ~(~HC + ~m + m') (RFC 1624 eqn. 3).
#[inline]
pub const fn update16(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = (!checksum) as u32 + (!old) as u32 + new as u32;
    let sum = (sum & 0xffff) + (sum >> 16);
    !(((sum & 0xffff) + (sum >> 16)) as u16)
}

/// The checksum after a field of 32 bits, such as an IPv4 address, changed.
#[inline]
pub const fn update32(checksum: u16, old: u32, new: u32) -> u16 {
    let checksum = update16(checksum, (old >> 16) as u16, (new >> 16) as u16);
    update16(checksum, old as u16, new as u16)
}

/// As [`update16`] for a UDP header: no checksum (zero) stays none, and a computed zero is 0xffff.
#[inline]
pub const fn update_udp16(checksum: u16, old: u16, new: u16) -> u16 {
    if checksum == 0 {
        return 0;
    }
    match update16(checksum, old, new) {
        0 => 0xffff,
        updated => updated,
    }
}

/// Takes one from the TTL and updates the checksum: equation 3 of RFC 1624 with m' = m - 0x0100.
/// The caller has seen that the TTL is more than 1 (at 0 it would wrap, and the packet should be
/// dead).
#[inline(always)]
pub fn decrement_ttl(header: &mut Ip4Header) {
    header.set_ttl(header.ttl().wrapping_sub(1));
    // In the machine's byte order, which saves two swaps. A sum that reaches 0xffff becomes 0, as
    // equation 3 has it.
    let sum = u32::from(header.checksum_ne()) + u32::from(0x0100u16.to_be());
    header.set_checksum_ne((sum + u32::from(sum >= 0xffff)) as u16);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Header;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// As in RFC 1071 §4.1, word by word.
    fn naive(bytes: &[u8]) -> u16 {
        let mut sum = 0u64;
        for pair in bytes.chunks(2) {
            sum += u64::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn the_inverse_is_one() {
        assert_eq!(INVERSE_65535.wrapping_mul(65535), 1);
    }

    #[test]
    fn the_example_of_rfc_1071_section_3() {
        assert_eq!(of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn the_example_of_rfc_1624_section_4() {
        assert_eq!(update16(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn decrementing_the_ttl_is_equation_3_for_every_checksum_and_ttl() {
        let mut header = [0u8; 20];
        header[0] = 0x45;
        for ttl in [1u8, 2, 64, 255] {
            for checksum in 0..=u16::MAX {
                let header = Ip4Header::overlay_mut(&mut header).unwrap();
                header.set_ttl(ttl);
                header.set_checksum(checksum);
                decrement_ttl(header);
                let word = u16::from(ttl) << 8;
                assert_eq!(header.checksum(), update16(checksum, word, word - 0x100));
                assert_eq!(header.ttl(), ttl - 1);
            }
        }
    }

    #[test]
    fn no_udp_checksum_stays_none() {
        assert_eq!(update_udp16(0, 1, 2), 0);
        assert_eq!(update_udp16(0xdd2f, 0x5555, 0x3285), 0xffff);
        assert_eq!(Sum::new().bytes(&[0xff, 0xff]).udp_checksum(), 0xffff);
    }

    proptest! {
        #[test]
        fn the_fast_sum_equals_the_naive_one(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(of(&bytes), naive(&bytes));
        }

        #[test]
        fn pieces_of_any_length_sum_to_the_whole(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            cuts in prop::collection::vec(0usize..200, 0..5),
        ) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]);
            let sum = pieces.fold(Sum::new(), |sum, piece| sum.bytes(piece));
            prop_assert_eq!(sum.checksum(), naive(&bytes));
        }

        #[test]
        fn the_fast_header_check_equals_the_naive_one(mut bytes: [u8; 20], right: bool) {
            bytes[0] = 0x45;
            let header = Ip4Header::overlay_mut(&mut bytes).unwrap();
            let checksum = header_checksum(header);
            if right {
                header.set_checksum(checksum);
            }
            let good = header_is_good(header);
            prop_assert_eq!(good, naive(&bytes) == 0);
            prop_assert!(good || !right);
            bytes[10..12].fill(0);
            prop_assert_eq!(checksum, naive(&bytes));
        }

        #[test]
        fn a_header_of_extreme_words_is_checked_rightly(
            choice in prop::collection::vec(0usize..4, 20)
        ) {
            let mut bytes = [0u8; 20];
            for (byte, choice) in bytes.iter_mut().zip(choice) {
                *byte = [0, 1, 0xfe, 0xff][choice];
            }
            bytes[0] = 0x45;
            let header = Ip4Header::overlay(&bytes).unwrap();
            prop_assert_eq!(header_is_good(header), naive(&bytes) == 0);
        }

        #[test]
        fn an_incremental_update_equals_the_full_sum(
            mut bytes: [u8; 20], place in 0usize..5, new: u32
        ) {
            bytes[0] = 0x45;
            let place = if place == 2 { 12 } else { place * 4 };
            bytes[10..12].fill(0);
            let before = naive(&bytes);
            let old = u32::from_be_bytes(bytes[place..place + 4].try_into().unwrap());
            let new = if place == 0 { new | 0x4500_0000 } else { new };
            bytes[place..place + 4].copy_from_slice(&new.to_be_bytes());
            prop_assert_eq!(update32(before, old, new), naive(&bytes));
        }
    }
}
