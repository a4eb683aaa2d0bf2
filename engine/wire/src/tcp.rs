//! TCP (RFC 9293 §3.1).
//!
//! ```text
//! 0       2       4         8         12 13 14      16      18      20
//! +-------+-------+---------+---------+--+--+-------+-------+-------+--------
//! | source| dest. | sequence| ack     |do|fl| window| check | urgent| options
//! +-------+-------+---------+---------+--+--+-------+-------+-------+--------
//! ```

use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::header::room;
use crate::{Header, WireError};

/// Bytes of options that the data offset can announce at most.
pub const OPTIONS_LEN_MAX: usize = 40;

/// The eight control bits of a TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number counts.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer counts.
    pub const URG: Self = Self(0x20);

    /// All bits of `other` are set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits of both.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The fixed part of a TCP header on packet bytes, 20 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct TcpHeader {
    source_port: U16,
    destination_port: U16,
    sequence: U32,
    acknowledgement: U32,
    data_offset: u8,
    flags: u8,
    window: U16,
    checksum: U16,
    urgent: U16,
}

impl Header for TcpHeader {
    const NAME: &'static str = "TCP";
}

impl TcpHeader {
    /// Where it comes from.
    #[inline(always)]
    pub fn source_port(&self) -> u16 {
        self.source_port.get()
    }

    /// Where it goes.
    #[inline(always)]
    pub fn destination_port(&self) -> u16 {
        self.destination_port.get()
    }

    /// Sequence number of the first byte.
    #[inline(always)]
    pub fn sequence(&self) -> u32 {
        self.sequence.get()
    }

    /// The next sequence number that the sender expects.
    #[inline(always)]
    pub fn acknowledgement(&self) -> u32 {
        self.acknowledgement.get()
    }

    /// Bytes of header with options, as announced: 0 to 60.
    #[inline(always)]
    pub fn header_len(&self) -> usize {
        usize::from(self.data_offset >> 4) * 4
    }

    /// The control bits.
    #[inline(always)]
    pub fn flags(&self) -> Flags {
        Flags(self.flags)
    }

    /// The checksum field.
    #[inline(always)]
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Sets the checksum field.
    #[inline(always)]
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum.set(checksum);
    }
}

/// A TCP header in plain values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr<'a> {
    /// Where it comes from.
    pub source_port: u16,
    /// Where it goes.
    pub destination_port: u16,
    /// Sequence number of the first byte.
    pub sequence: u32,
    /// The next sequence number that the sender expects.
    pub acknowledgement: u32,
    /// The control bits.
    pub flags: Flags,
    /// Bytes that the sender will take, not scaled.
    pub window: u16,
    /// The checksum; it needs addresses ([`crate::checksum::Sum::pseudo4`], `pseudo6`).
    pub checksum: u16,
    /// The urgent pointer.
    pub urgent: u16,
    /// Options as bytes, padded to a multiple of 4, at most 40 ([`Options`] walks them).
    pub options: &'a [u8],
}

impl<'a> Repr<'a> {
    /// Reads a header whose data offset is right; also returns the payload.
    ///
    /// # Errors
    /// The header is truncated, or its data offset is below 5.
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), WireError> {
        let (header, rest) = TcpHeader::require(bytes)?;
        let reason = "data offset is below 20 bytes";
        let options_len = header
            .header_len()
            .checked_sub(TcpHeader::LEN)
            .ok_or(WireError::Invalid { header: TcpHeader::NAME, reason })?;
        let (options, payload) =
            rest.split_at_checked(options_len).ok_or(WireError::Truncated {
                header: TcpHeader::NAME,
                need: header.header_len(),
                have: bytes.len(),
            })?;
        let repr = Self {
            source_port: header.source_port(),
            destination_port: header.destination_port(),
            sequence: header.sequence(),
            acknowledgement: header.acknowledgement(),
            flags: header.flags(),
            window: header.window.get(),
            checksum: header.checksum(),
            urgent: header.urgent.get(),
            options,
        };
        Ok((repr, payload))
    }

    /// Writes the header and returns its length.
    ///
    /// # Errors
    /// The options do not fit the data offset, or `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, WireError> {
        if !self.options.len().is_multiple_of(4) || self.options.len() > OPTIONS_LEN_MAX {
            let reason = "options must be a multiple of 4 bytes, at most 40";
            return Err(WireError::Invalid { header: TcpHeader::NAME, reason });
        }
        let header_len = TcpHeader::LEN + self.options.len();
        let out = room(out, header_len)?;
        let header = TcpHeader {
            source_port: U16::new(self.source_port),
            destination_port: U16::new(self.destination_port),
            sequence: U32::new(self.sequence),
            acknowledgement: U32::new(self.acknowledgement),
            data_offset: ((header_len / 4) as u8) << 4,
            flags: self.flags.0,
            window: U16::new(self.window),
            checksum: U16::new(self.checksum),
            urgent: U16::new(self.urgent),
        };
        header.write(out)?;
        if let Some(options) = out.get_mut(TcpHeader::LEN..) {
            options.copy_from_slice(self.options);
        }
        Ok(header_len)
    }
}

/// One option: its kind and what stands behind kind and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOption<'a> {
    /// Kind; 2 is the maximum segment size.
    pub kind: u8,
    /// Its data.
    pub data: &'a [u8],
}

/// Walks options to their end or to the first whose length lies. "No operation" is skipped.
#[derive(Clone, Debug)]
pub struct Options<'a>(&'a [u8]);

impl<'a> Options<'a> {
    /// Walks the bytes behind the fixed header.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = TcpOption<'a>;

    fn next(&mut self) -> Option<TcpOption<'a>> {
        loop {
            match *self.0 {
                [1, ref rest @ ..] => self.0 = rest,
                [] | [0, ..] => return None,
                [kind, ref rest @ ..] => {
                    let len = usize::from(*rest.first()?);
                    let data = self.0.get(2..len)?;
                    self.0 = self.0.get(len..)?;
                    return Some(TcpOption { kind, data });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn the_maximum_segment_size_is_found() {
        let found: Vec<_> = Options::new(&[1, 2, 4, 5, 0xb4, 0, 9]).collect();
        assert_eq!(found, [TcpOption { kind: 2, data: &[5, 0xb4] }]);
        for lie in [&[2, 0][..], &[2, 1], &[2, 5, 0], &[2]] {
            assert_eq!(Options::new(lie).next(), None);
        }
    }

    proptest! {
        #[test]
        fn parse_and_emit_are_inverse(mut bytes: [u8; 60], words in 5usize..=15) {
            bytes[12] = (words as u8) << 4;
            let (repr, payload) = Repr::parse(&bytes).unwrap();
            prop_assert_eq!(payload.len(), 60 - words * 4);
            let mut out = [0; 60];
            prop_assert_eq!(repr.emit(&mut out), Ok(words * 4));
            prop_assert_eq!(&out[..words * 4], &bytes[..words * 4]);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Repr::parse(&bytes);
            prop_assert!(Options::new(&bytes).count() <= bytes.len());
        }
    }
}
