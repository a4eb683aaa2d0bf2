//! Segment Routing Header, an IPv6 routing header of type 4 (RFC 8754 §2).
//!
//! ```text
//! 0    1    2    3    4    5     6       8          24             8 + 16 × segments
//! +----+----+----+----+----+-----+-------+----------+-- - - - -----+------- ...
//! |next|len |  4 |left|last|flags|  tag  | List[0]  | … List[last] | TLVs
//! +----+----+----+----+----+-----+-------+----------+-- - - - -----+------- ...
//! ```
//!
//! The list stands in reverse: `List[0]` is the last segment of the path, and the active one is
//! `List[left]`. In the reduced form (§4.1.1) the first segment stands in the IPv6 destination
//! alone.

mod build;
mod tlv;

use core::fmt;
use core::net::Ipv6Addr;

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{Header, IpProtocol};

pub use build::{Form, Repr};
pub use tlv::{HMAC_FIELD_BYTES_MAX, HMAC_TLV_LEN, HmacTlv, Tlv, Tlvs, kind};

/// The routing type of a Segment Routing Header (RFC 8754 §8.1).
pub const ROUTING_TYPE: u8 = 4;
/// Bytes of a segment.
pub const SEGMENT_BYTES: usize = 16;
/// Segments that the length field leaves room for.
pub const SEGMENTS_MAX: usize = u8::MAX as usize / 2;

/// What stands in front of the segment list, 8 bytes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct SrhHeader {
    next_header: u8,
    length: u8,
    routing_type: u8,
    segments_left: u8,
    last_entry: u8,
    flags: u8,
    tag: U16,
}

impl Header for SrhHeader {
    const NAME: &'static str = "Segment Routing Header";
}

impl SrhHeader {
    /// What follows.
    #[inline(always)]
    pub fn next_header(&self) -> IpProtocol {
        IpProtocol(self.next_header)
    }

    /// Sets what follows.
    #[inline(always)]
    pub fn set_next_header(&mut self, next_header: IpProtocol) {
        self.next_header = next_header.0;
    }

    /// Its length in bytes, segments and TLVs included, as announced.
    #[inline(always)]
    pub fn len_bytes(&self) -> usize {
        (usize::from(self.length) + 1) * 8
    }

    /// Which kind of routing header it is; [`ROUTING_TYPE`] if this is a Segment Routing Header.
    #[inline(always)]
    pub fn routing_type(&self) -> u8 {
        self.routing_type
    }

    /// Segments that are still to be visited: the index of the active one.
    #[inline(always)]
    pub fn segments_left(&self) -> u8 {
        self.segments_left
    }

    /// Sets the segments that are still to be visited.
    #[inline(always)]
    pub fn set_segments_left(&mut self, left: u8) {
        self.segments_left = left;
    }

    /// Index of the last element of the list.
    #[inline(always)]
    pub fn last_entry(&self) -> u8 {
        self.last_entry
    }

    /// Flags; none is defined (RFC 8754 §2), one is RFC 9259's.
    #[inline(always)]
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// Sets the flags.
    #[inline(always)]
    pub fn set_flags(&mut self, flags: u8) {
        self.flags = flags;
    }

    /// What packets of one class have in common.
    #[inline(always)]
    pub fn tag(&self) -> u16 {
        self.tag.get()
    }

    /// Sets what packets of one class have in common.
    #[inline(always)]
    pub fn set_tag(&mut self, tag: u16) {
        self.tag.set(tag);
    }

    /// Elements of the segment list, by the last entry.
    #[inline(always)]
    pub fn segment_count(&self) -> usize {
        usize::from(self.last_entry) + 1
    }

    /// Is it of this type, and do last entry and segments left fit its length, as an endpoint that
    /// moves to the next segment must see (RFC 8754 §4.3.1.1, S09 and S10)? All in one test.
    #[inline(always)]
    pub fn leads_on(&self) -> bool {
        (self.routing_type == ROUTING_TYPE)
            & (self.last_entry < self.length / 2)
            & (usize::from(self.segments_left) <= self.segment_count())
    }

    /// Where its next segment begins, counted from its first byte, if it [leads
    /// on](Self::leads_on), is no longer than `available` bytes, has segments left and no flag of
    /// RFC 9259. All in one test of one word.
    #[inline(always)]
    pub fn next_segment_if_plain(&self, available: usize) -> Option<usize> {
        const ALONE: u64 = u64::from_le_bytes([0, 0, 0xff, 0, 0, FLAG_OAM, 0, 0]);
        const PLAIN: u64 = u64::from_le_bytes([0, 0, ROUTING_TYPE, 0, 0, 0, 0, 0]);
        let word = u64::from_le_bytes(zerocopy::transmute!(*self));
        let [length, left, last] = [1, 3, 4].map(|place| (word >> (8 * place)) as usize & 0xff);
        let before = left.wrapping_sub(1);
        let plain = (word & ALONE == PLAIN)
            & (before <= last)
            & (2 * (last + 1) <= length)
            & (8 * (length + 1) <= available);
        plain.then(|| segment_offset(before))
    }

    /// Its length in bytes, if it is of this type, no longer than `available` bytes, has no
    /// segments left and no flag of RFC 9259. All in one test of one word.
    #[inline(always)]
    pub fn length_if_ended(&self, available: usize) -> Option<usize> {
        const ALONE: u64 = u64::from_le_bytes([0, 0, 0xff, 0xff, 0, FLAG_OAM, 0, 0]);
        const PLAIN: u64 = u64::from_le_bytes([0, 0, ROUTING_TYPE, 0, 0, 0, 0, 0]);
        let word = u64::from_le_bytes(zerocopy::transmute!(*self));
        let length = ((word >> 8) as usize & 0xff) * 8 + 8;
        ((word & ALONE == PLAIN) & (length <= available)).then_some(length)
    }

    /// What is wrong with it, if [`leads_on`](Self::leads_on) says no.
    ///
    /// # Errors
    /// The type, the lengths or `Segments Left` are wrong; [`SrhBad`] names the fault.
    pub fn check(&self) -> Result<(), SrhBad> {
        if self.routing_type != ROUTING_TYPE {
            return Err(SrhBad::OtherType);
        }
        if self.last_entry >= self.length / 2 {
            return Err(SrhBad::LastEntryBeyondLength);
        }
        if usize::from(self.segments_left) > self.segment_count() {
            return Err(SrhBad::SegmentsLeftBeyondList);
        }
        Ok(())
    }
}

/// The flag of operation and maintenance (RFC 9259 §2.1): a copy is to be processed by the node
/// itself.
pub const FLAG_OAM: u8 = 0x20;

/// Where element `index` of the list stands, counted from the header's start.
#[inline(always)]
pub const fn segment_offset(index: usize) -> usize {
    size_of::<SrhHeader>() + index * SEGMENT_BYTES
}

/// Element `index` of the list of the header that `bytes` begin with. Whether the list is so long
/// is not checked, only whether the bytes are there.
#[inline(always)]
pub fn segment(bytes: &[u8], index: usize) -> Option<Ipv6Addr> {
    let from = segment_offset(index);
    let octets: &[u8; SEGMENT_BYTES] = bytes.get(from..from + SEGMENT_BYTES)?.first_chunk()?;
    Some(Ipv6Addr::from_octets(*octets))
}

/// Why bytes are no Segment Routing Header that may be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SrhBad {
    /// The header, or the length that it announces, is longer than the bytes there.
    Truncated,
    /// A routing header of another type.
    OtherType,
    /// The last entry lies beyond the header's length; any entry of an empty list does.
    LastEntryBeyondLength,
    /// More segments left than the list has, one more in the reduced form.
    SegmentsLeftBeyondList,
    /// A TLV runs beyond the header, at this offset.
    TlvBeyondHeader(u16),
    /// An HMAC TLV that is not as RFC 8754 §2.1.2 has it, at this offset.
    BadHmac(u16),
}

impl SrhBad {
    /// The offset within the header that an ICMPv6 parameter problem about it points at (RFC 8754
    /// §4.3.1.1: segments left, where the list is wrong).
    pub const fn offset(self) -> u16 {
        match self {
            SrhBad::Truncated => 1,
            SrhBad::OtherType => 2,
            SrhBad::LastEntryBeyondLength | SrhBad::SegmentsLeftBeyondList => 3,
            SrhBad::TlvBeyondHeader(at) | SrhBad::BadHmac(at) => at,
        }
    }
}

impl fmt::Display for SrhBad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SrhBad::Truncated => "Segment Routing Header beyond the packet",
            SrhBad::OtherType => "routing header of another type than 4",
            SrhBad::LastEntryBeyondLength => {
                "last entry of the segment list beyond the header's length"
            }
            SrhBad::SegmentsLeftBeyondList => "more segments left than the list has",
            SrhBad::TlvBeyondHeader(_) => "TLV of the Segment Routing Header beyond its length",
            SrhBad::BadHmac(_) => "HMAC TLV of a length that it cannot have",
        })
    }
}

impl core::error::Error for SrhBad {}

/// A Segment Routing Header that was checked whole, over its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Srh<'a> {
    header: &'a SrhHeader,
    bytes: &'a [u8],
}

impl<'a> Srh<'a> {
    /// Checks the header that `bytes` begin with: type, lengths, list and every TLV. Also returns
    /// what follows it.
    ///
    /// # Errors
    /// The header is truncated, or its type, its lengths or a TLV is wrong; [`SrhBad`] names the
    /// fault.
    pub fn parse(bytes: &'a [u8]) -> Result<(Srh<'a>, &'a [u8]), SrhBad> {
        let header = SrhHeader::overlay(bytes).ok_or(SrhBad::Truncated)?;
        if header.routing_type() != ROUTING_TYPE {
            return Err(SrhBad::OtherType);
        }
        let (own, rest) = bytes.split_at_checked(header.len_bytes()).ok_or(SrhBad::Truncated)?;
        header.check()?;
        let srh = Srh { header, bytes: own };
        for tlv in srh.tlvs() {
            if let Tlv { kind: kind::HMAC, .. } = tlv? {
                tlv?.hmac()?;
            }
        }
        Ok((srh, rest))
    }

    /// The fixed part.
    pub fn header(&self) -> &'a SrhHeader {
        self.header
    }

    /// All of its bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The list as it stands in the packet: the path's last segment first.
    pub fn segments(&self) -> impl ExactSizeIterator<Item = Ipv6Addr> + DoubleEndedIterator + 'a {
        let list = self.list().as_chunks::<SEGMENT_BYTES>().0;
        list.iter().map(|octets| Ipv6Addr::from_octets(*octets))
    }

    /// The bytes of the list.
    pub fn list(&self) -> &'a [u8] {
        self.bytes
            .get(segment_offset(0)..segment_offset(self.header.segment_count()))
            .unwrap_or_default()
    }

    /// The active segment; none in the reduced form before the first was visited.
    pub fn active(&self) -> Option<Ipv6Addr> {
        let left = usize::from(self.header.segments_left);
        (left < self.header.segment_count()).then(|| segment(self.bytes, left)).flatten()
    }

    /// Does the list lack its first segment, which the destination alone has, and is it still the
    /// active one?
    pub fn is_before_first(&self) -> bool {
        usize::from(self.header.segments_left) == self.header.segment_count()
    }

    /// The TLVs behind the list, without Pad1.
    pub fn tlvs(&self) -> Tlvs<'a> {
        Tlvs::new(self.bytes, segment_offset(self.header.segment_count()))
    }

    /// The first HMAC TLV, if there is one.
    pub fn hmac(&self) -> Option<HmacTlv<'a>> {
        let mut tlvs = self.tlvs().flatten();
        tlvs.find(|tlv| tlv.kind == kind::HMAC).and_then(|tlv| tlv.hmac().ok())
    }
}

#[cfg(test)]
mod tests;
