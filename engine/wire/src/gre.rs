//! Generic routing encapsulation (RFC 2784 §2; key and sequence number: RFC 2890 §2).
//!
//! ```text
//! 0              2          4            6          8         12        16
//! +--------------+----------+------------+----------+---------+---------+---------
//! |C 0 K S 0 |ver| protocol | (checksum) | (unused) |  (key)  | (seq.)  | payload
//! +--------------+----------+------------+----------+---------+---------+---------
//! ```
//!
//! Fields in brackets are there when their flag is set, in this order. The checksum is over the
//! header and all that follows.

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::header::room;
use crate::{EtherType, Header, WireError};

/// Ethernet frames inside (transparent Ethernet bridging, IANA EtherTypes).
pub const TRANSPARENT_ETHERNET: EtherType = EtherType(0x6558);
/// The longest header, in bytes.
pub const HEADER_BYTES_MAX: usize = 16;

/// A checksum is there.
const CHECKSUM: u16 = 0x8000;
/// A key is there (RFC 2890 §2.1).
const KEY: u16 = 0x2000;
/// A sequence number is there (RFC 2890 §2.2).
const SEQUENCE: u16 = 0x1000;
/// Bits that a receiver ignores (RFC 2784 §2.3). All others must be zero: bits 1, 4 and 5 are those
/// of RFC 1701's source routing, and the last three the version.
const IGNORED: u16 = 0x03f8;

/// The part that is always there, 4 bytes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct GreHeader {
    flags: U16,
    protocol: U16,
}

impl Header for GreHeader {
    const NAME: &'static str = "GRE";
}

impl GreHeader {
    /// A header without optional fields.
    pub fn new(protocol: EtherType) -> GreHeader {
        GreHeader { flags: U16::ZERO, protocol: U16::new(protocol.0) }
    }

    /// The version; 0 is this one.
    #[inline(always)]
    pub fn version(&self) -> u8 {
        self.flags.get() as u8 & 7
    }

    /// Does no flag say anything but that optional fields are there?
    #[inline(always)]
    pub fn is_well_formed(&self) -> bool {
        self.flags.get() & !(CHECKSUM | KEY | SEQUENCE | IGNORED) == 0
    }

    /// Are there no flags at all?
    #[inline(always)]
    pub fn is_bare(&self) -> bool {
        self.flags.get() == 0
    }

    /// Is there a key, and nothing else?
    #[inline(always)]
    pub fn has_key_alone(&self) -> bool {
        self.flags.get() == KEY
    }

    /// What follows.
    #[inline(always)]
    pub fn protocol(&self) -> EtherType {
        EtherType(self.protocol.get())
    }

    /// Bytes of the header with its optional fields.
    #[inline(always)]
    pub fn header_len(&self) -> usize {
        Self::LEN + 4 * (self.flags.get() & (CHECKSUM | KEY | SEQUENCE)).count_ones() as usize
    }
}

/// The header in plain form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// What follows.
    pub protocol: EtherType,
    /// Is there a checksum? Its value is that of the bytes.
    pub has_checksum: bool,
    /// The tunnel, among those between the same ends.
    pub key: Option<u32>,
    /// The place in the order of packets.
    pub sequence: Option<u32>,
}

impl Repr {
    /// Reads a header; returns it and what follows. A checksum is not compared.
    ///
    /// # Errors
    /// The header is truncated, its version is not 0, or a reserved flag is set.
    pub fn parse(bytes: &[u8]) -> Result<(Repr, &[u8]), WireError> {
        let truncated =
            |need| WireError::Truncated { header: GreHeader::NAME, need, have: bytes.len() };
        let header = GreHeader::overlay(bytes).ok_or(truncated(GreHeader::LEN))?;
        if header.version() != 0 {
            return Err(WireError::Invalid {
                header: GreHeader::NAME,
                reason: "the version is not 0",
            });
        }
        if !header.is_well_formed() {
            return Err(WireError::Invalid {
                header: GreHeader::NAME,
                reason: "a reserved flag is set",
            });
        }
        let flags = header.flags.get();
        let mut rest = bytes.get(GreHeader::LEN..).unwrap_or_default();
        let mut field = |flag: u16| -> Result<Option<u32>, WireError> {
            if flags & flag == 0 {
                return Ok(None);
            }
            let (value, behind) =
                rest.split_first_chunk::<4>().ok_or(truncated(header.header_len()))?;
            rest = behind;
            Ok(Some(u32::from_be_bytes(*value)))
        };
        let has_checksum = field(CHECKSUM)?.is_some();
        let (key, sequence) = (field(KEY)?, field(SEQUENCE)?);
        Ok((Repr { protocol: header.protocol(), has_checksum, key, sequence }, rest))
    }

    /// Bytes of the header.
    pub fn header_len(&self) -> usize {
        let optional = [self.has_checksum, self.key.is_some(), self.sequence.is_some()];
        GreHeader::LEN + 4 * optional.into_iter().filter(|there| *there).count()
    }

    /// Writes the header, the checksum as zero; returns its length.
    ///
    /// # Errors
    /// `bytes` is too short.
    pub fn emit(&self, bytes: &mut [u8]) -> Result<usize, WireError> {
        let length = self.header_len();
        let out = room(bytes, length)?;
        let flag = |there: bool, flag: u16| if there { flag } else { 0 };
        let flags = flag(self.has_checksum, CHECKSUM)
            | flag(self.key.is_some(), KEY)
            | flag(self.sequence.is_some(), SEQUENCE);
        let fixed = u32::from(flags) << 16 | u32::from(self.protocol.0);
        let fields = [Some(fixed), self.has_checksum.then_some(0), self.key, self.sequence];
        for (place, field) in out.chunks_exact_mut(4).zip(fields.into_iter().flatten()) {
            place.copy_from_slice(&field.to_be_bytes());
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn the_figure_is_read_as_it_stands() {
        let bytes = [0xb0, 0, 0x65, 0x58, 0x12, 0x34, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0xaa];
        let (repr, behind) = Repr::parse(&bytes).unwrap();
        assert_eq!((repr.protocol, repr.has_checksum), (EtherType(0x6558), true));
        assert_eq!((repr.key, repr.sequence, behind), (Some(7), Some(9), &[0xaa][..]));
        assert_eq!(GreHeader::overlay(&bytes).unwrap().header_len(), 16);
    }

    #[test]
    fn another_version_source_routing_and_missing_fields_are_refused() {
        for bytes in [
            &[0, 1, 8, 0][..],
            &[0x40, 0, 8, 0],
            &[0x08, 0, 8, 0],
            &[0x20, 0, 8, 0, 0, 0, 0],
            &[0, 0, 8],
        ] {
            assert!(Repr::parse(bytes).is_err(), "{bytes:?}");
        }
        // Bits 6 to 12 may be anything.
        assert!(Repr::parse(&[0x03, 0xf8, 8, 0]).is_ok());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            protocol in any::<u16>(),
            has_checksum in any::<bool>(),
            key in any::<Option<u32>>(),
            sequence in any::<Option<u32>>(),
            behind in prop::collection::vec(any::<u8>(), 0..9),
        ) {
            let repr = Repr { protocol: EtherType(protocol), has_checksum, key, sequence };
            let mut bytes: Vec<u8> = std::vec![0; HEADER_BYTES_MAX];
            let length = repr.emit(&mut bytes).unwrap();
            bytes.truncate(length);
            bytes.extend(&behind);
            prop_assert_eq!(Repr::parse(&bytes), Ok((repr, &behind[..])));
            prop_assert_eq!(GreHeader::overlay(&bytes).unwrap().header_len(), length);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            if let Ok((repr, behind)) = Repr::parse(&bytes) {
                prop_assert_eq!(repr.header_len() + behind.len(), bytes.len());
            }
        }
    }
}
