//! IPv4 (RFC 791 §3.1).
//!
//! ```text
//! 0    1    2         4         6         8    9    10        12        16        20
//! +----+----+---------+---------+---------+----+----+---------+---------+---------+--------
//! |4ihl|tos | length  | ident   |flag/offs|ttl |prot| checksum| source  | dest.   | options
//! +----+----+---------+---------+---------+----+----+---------+---------+---------+--------
//! ```

pub mod address;
pub mod options;
mod validate;

use core::net::Ipv4Addr;

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::header::room;
use crate::{Header, IpProtocol, WireError, checksum};

pub use validate::{Ip4Bad, explain, has_good_addresses, is_plain, is_well_formed, validate};

/// Bytes of options that the header length can announce at most.
pub const OPTIONS_LEN_MAX: usize = 40;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;

/// The fixed part of an IPv4 header on packet bytes, 20 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ip4Header {
    version_ihl: u8,
    /// Differentiated services (RFC 2474) and congestion notification (RFC 3168).
    pub traffic_class: u8,
    total_length: U16,
    identification: U16,
    flags_offset: U16,
    ttl: u8,
    protocol: u8,
    checksum: [u8; 2],
    source: [u8; 4],
    destination: [u8; 4],
}

impl Header for Ip4Header {
    const NAME: &'static str = "IPv4";
}

impl Ip4Header {
    /// A header without options for `payload_len` bytes, checksum included. `None` if the packet
    /// would be longer than 65,535 bytes.
    pub fn new(
        source: Ipv4Addr,
        destination: Ipv4Addr,
        protocol: IpProtocol,
        ttl: u8,
        payload_len: usize,
    ) -> Option<Self> {
        let total_length = u16::try_from(payload_len.checked_add(Self::LEN)?).ok()?;
        let mut header = Self {
            version_ihl: 0x45,
            traffic_class: 0,
            total_length: U16::new(total_length),
            identification: U16::ZERO,
            flags_offset: U16::ZERO,
            ttl,
            protocol: protocol.0,
            checksum: [0; 2],
            source: source.octets(),
            destination: destination.octets(),
        };
        header.set_checksum(checksum::header_checksum(&header));
        Some(header)
    }

    /// The version field; 4 if this is IPv4.
    #[inline(always)]
    pub fn version(&self) -> u8 {
        self.version_ihl >> 4
    }

    /// Bytes of header with options, as announced: 0 to 60.
    #[inline(always)]
    pub fn header_len(&self) -> usize {
        usize::from(self.version_ihl & 0x0f) * 4
    }

    /// Version 4 and a header of 20 bytes, in one comparison.
    #[inline(always)]
    pub fn is_version_4_without_options(&self) -> bool {
        self.version_ihl == 0x45
    }

    /// Bytes of header and payload, as announced.
    #[inline(always)]
    pub fn total_length(&self) -> u16 {
        self.total_length.get()
    }

    /// Sets the length of header and payload in bytes; the checksum is not touched.
    #[inline(always)]
    pub fn set_total_length(&mut self, len: u16) {
        self.total_length.set(len);
    }

    /// What the fragments of one packet have in common.
    #[inline(always)]
    pub fn identification(&self) -> u16 {
        self.identification.get()
    }

    /// Sets what the fragments of one packet have in common; the checksum is not touched.
    #[inline(always)]
    pub fn set_identification(&mut self, identification: u16) {
        self.identification.set(identification);
    }

    /// The packet must not be fragmented.
    #[inline(always)]
    pub fn dont_fragment(&self) -> bool {
        self.flags_offset.get() & DONT_FRAGMENT != 0
    }

    /// This is not the last fragment.
    #[inline(always)]
    pub fn more_fragments(&self) -> bool {
        self.flags_offset.get() & MORE_FRAGMENTS != 0
    }

    /// Where the fragment belongs, in units of 8 bytes.
    #[inline(always)]
    pub fn fragment_offset(&self) -> u16 {
        self.flags_offset.get() & OFFSET
    }

    /// The packet is a fragment, be it the first.
    #[inline(always)]
    pub fn is_fragment(&self) -> bool {
        self.flags_offset.get() & (MORE_FRAGMENTS | OFFSET) != 0
    }

    /// Says that the packet is whole and may be fragmented; the checksum is not touched.
    #[inline(always)]
    pub fn set_whole(&mut self) {
        self.flags_offset.set(0);
    }

    /// Hops that it may still take.
    #[inline(always)]
    pub fn ttl(&self) -> u8 {
        self.ttl
    }

    /// Sets the TTL; the checksum is not touched ([`checksum::decrement_ttl`] does both).
    #[inline(always)]
    pub fn set_ttl(&mut self, ttl: u8) {
        self.ttl = ttl;
    }

    /// What follows.
    #[inline(always)]
    pub fn protocol(&self) -> IpProtocol {
        IpProtocol(self.protocol)
    }

    /// The checksum field.
    #[inline(always)]
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes(self.checksum)
    }

    /// Sets the checksum field.
    #[inline(always)]
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum = checksum.to_be_bytes();
    }

    /// The checksum field as it lies in memory.
    #[inline(always)]
    pub(crate) fn checksum_ne(&self) -> u16 {
        u16::from_ne_bytes(self.checksum)
    }

    /// Sets the checksum field as it lies in memory.
    #[inline(always)]
    pub(crate) fn set_checksum_ne(&mut self, checksum: u16) {
        self.checksum = checksum.to_ne_bytes();
    }

    /// A copy with this checksum field.
    #[inline(always)]
    #[must_use]
    pub fn with_checksum(&self, checksum: u16) -> Self {
        Self { checksum: checksum.to_be_bytes(), ..*self }
    }

    /// Who sent it.
    #[inline(always)]
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::from_octets(self.source)
    }

    /// Who sent it, as a number whose highest octet is the first.
    #[inline(always)]
    pub fn source_bits(&self) -> u32 {
        u32::from_be_bytes(self.source)
    }

    /// Sets who sent it; the checksum is not touched ([`checksum::update32`]).
    #[inline(always)]
    pub fn set_source(&mut self, address: Ipv4Addr) {
        self.source = address.octets();
    }

    /// Where it goes.
    #[inline(always)]
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::from_octets(self.destination)
    }

    /// Where it goes, as a number whose highest octet is the first: what a look-up wants.
    #[inline(always)]
    pub fn destination_bits(&self) -> u32 {
        u32::from_be_bytes(self.destination)
    }

    /// Sets where it goes; the checksum is not touched ([`checksum::update32`]).
    #[inline(always)]
    pub fn set_destination(&mut self, address: Ipv4Addr) {
        self.destination = address.octets();
    }
}

/// An IPv4 header in plain values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr<'a> {
    /// Differentiated services and congestion notification.
    pub traffic_class: u8,
    /// What the fragments of one packet have in common.
    pub identification: u16,
    /// The packet must not be fragmented.
    pub dont_fragment: bool,
    /// This is not the last fragment.
    pub more_fragments: bool,
    /// Where the fragment belongs, in units of 8 bytes, below 8192.
    pub fragment_offset: u16,
    /// Hops that it may still take.
    pub ttl: u8,
    /// What follows.
    pub protocol: IpProtocol,
    /// Who sent it.
    pub source: Ipv4Addr,
    /// Where it goes.
    pub destination: Ipv4Addr,
    /// Options as bytes, padded to a multiple of 4, at most 40 ([`options::Options`] walks them).
    pub options: &'a [u8],
    /// Bytes behind the header.
    pub payload_len: usize,
}

impl<'a> Repr<'a> {
    /// A packet that is no fragment and has no options.
    pub fn new(
        source: Ipv4Addr,
        destination: Ipv4Addr,
        protocol: IpProtocol,
        payload_len: usize,
    ) -> Self {
        Self {
            traffic_class: 0,
            identification: 0,
            dont_fragment: false,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 64,
            protocol,
            source,
            destination,
            options: &[],
            payload_len,
        }
    }

    /// Reads a header whose version, lengths and checksum are right; also returns the payload,
    /// without the padding of the frame. Addresses are not checked.
    ///
    /// # Errors
    /// The packet is truncated, or its version, lengths or checksum are wrong.
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), WireError> {
        let invalid = |reason| WireError::Invalid { header: Ip4Header::NAME, reason };
        let truncated =
            |need| WireError::Truncated { header: Ip4Header::NAME, need, have: bytes.len() };
        let (header, _) = Ip4Header::require(bytes)?;
        if header.version() != 4 {
            return Err(invalid("version is not 4"));
        }
        let header_len = header.header_len();
        let total_len = usize::from(header.total_length());
        if header_len < Ip4Header::LEN {
            return Err(invalid("header length is below 20 bytes"));
        }
        if total_len < header_len {
            return Err(invalid("total length is below the header's"));
        }
        let packet = bytes.get(..total_len).ok_or(truncated(total_len))?;
        let (with_options, payload) =
            packet.split_at_checked(header_len).ok_or(truncated(header_len))?;
        if !checksum::Sum::new().bytes(with_options).is_good() {
            return Err(invalid("header checksum is wrong"));
        }
        let repr = Self {
            traffic_class: header.traffic_class,
            identification: header.identification(),
            dont_fragment: header.dont_fragment(),
            more_fragments: header.more_fragments(),
            fragment_offset: header.fragment_offset(),
            ttl: header.ttl(),
            protocol: header.protocol(),
            source: header.source(),
            destination: header.destination(),
            options: with_options.get(Ip4Header::LEN..).unwrap_or_default(),
            payload_len: payload.len(),
        };
        Ok((repr, payload))
    }

    /// Bytes of the header with its options.
    pub fn header_len(&self) -> usize {
        Ip4Header::LEN + self.options.len()
    }

    /// Writes the header, checksum included, and returns its length.
    ///
    /// # Errors
    /// The options, the fragment offset or the payload do not fit their fields, or `out` is too
    /// short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let invalid = |reason| WireError::Invalid { header: Ip4Header::NAME, reason };
        if !self.options.len().is_multiple_of(4) || self.options.len() > OPTIONS_LEN_MAX {
            return Err(invalid("options must be a multiple of 4 bytes, at most 40"));
        }
        if self.fragment_offset > OFFSET {
            return Err(invalid("fragment offset must be below 8192 units of 8 bytes"));
        }
        let header_len = self.header_len();
        let total_length = header_len
            .checked_add(self.payload_len)
            .and_then(|len| u16::try_from(len).ok())
            .ok_or(invalid("longer than 65,535 bytes"))?;
        let flags = if self.dont_fragment { DONT_FRAGMENT } else { 0 }
            | if self.more_fragments { MORE_FRAGMENTS } else { 0 };
        let out = room(out, header_len)?;
        let header = Ip4Header {
            version_ihl: 0x40 | (header_len / 4) as u8,
            traffic_class: self.traffic_class,
            total_length: U16::new(total_length),
            identification: U16::new(self.identification),
            flags_offset: U16::new(flags | self.fragment_offset),
            ttl: self.ttl,
            protocol: self.protocol.0,
            checksum: [0; 2],
            source: self.source.octets(),
            destination: self.destination.octets(),
        };
        let sum = checksum::Sum::new().bytes(header.as_bytes()).bytes(self.options).checksum();
        header.with_checksum(sum).write(out)?;
        if let Some(options) = out.get_mut(Ip4Header::LEN..) {
            options.copy_from_slice(self.options);
        }
        Ok(header_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// A header from a capture whose checksum 0xb861 is known.
    const KNOWN: [u8; 20] = [
        0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00,
        0x01, 0xc0, 0xa8, 0x00, 0xc7,
    ];

    #[test]
    fn a_known_header_is_read_and_written() {
        let mut packet = [0u8; 0x73];
        packet[..20].copy_from_slice(&KNOWN);
        let (repr, payload) = Repr::parse(&packet).unwrap();
        assert_eq!((repr.protocol, repr.ttl, repr.dont_fragment), (IpProtocol::UDP, 64, true));
        assert_eq!(payload.len(), 0x73 - 20);
        let mut out = [0; 20];
        repr.emit(&mut out).unwrap();
        assert_eq!(out, KNOWN);
        assert!(checksum::header_is_good(Ip4Header::overlay(&KNOWN).unwrap()));
    }

    #[test]
    fn padding_behind_the_packet_is_not_payload() {
        let mut frame = [0xaau8; 46];
        Repr::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, IpProtocol::UDP, 3)
            .emit(&mut frame)
            .unwrap();
        assert_eq!(Repr::parse(&frame).unwrap().1.len(), 3);
    }

    #[test]
    fn what_cannot_be_said_in_a_header_is_refused() {
        let good = Repr::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, IpProtocol::UDP, 0);
        let mut out = [0; 80];
        assert!(Repr { options: &[0; 3], ..good }.emit(&mut out).is_err());
        assert!(Repr { options: &[0; 44], ..good }.emit(&mut out).is_err());
        assert!(Repr { payload_len: 65516, ..good }.emit(&mut out).is_err());
        assert!(Repr { fragment_offset: 8192, ..good }.emit(&mut out).is_err());
        assert!(good.emit(&mut out[..19]).is_err());
    }

    proptest! {
        #[test]
        fn parse_and_emit_are_inverse(
            fixed: [u8; 20], options in prop::collection::vec(any::<u8>(), 0..=10),
            payload_len in 0usize..64,
        ) {
            let seed = Ip4Header::overlay(&fixed).unwrap();
            let options: Vec<u8> = options.iter().flat_map(|byte| [*byte; 4]).collect();
            let repr = Repr {
                traffic_class: seed.traffic_class,
                identification: seed.identification(),
                dont_fragment: seed.dont_fragment(),
                more_fragments: seed.more_fragments(),
                fragment_offset: seed.fragment_offset(),
                ttl: seed.ttl(),
                protocol: seed.protocol(),
                source: seed.source(),
                destination: seed.destination(),
                options: &options,
                payload_len,
            };
            let mut out = [0; 128];
            let len = repr.emit(&mut out).unwrap();
            prop_assert_eq!(len, 20 + options.len());
            let (parsed, payload) = Repr::parse(&out).unwrap();
            prop_assert_eq!(parsed, repr);
            prop_assert_eq!(payload.len(), payload_len);
        }

        #[test]
        fn no_bytes_panic(
            mut bytes in prop::collection::vec(any::<u8>(), 0..100), version_4: bool
        ) {
            if let (true, Some(first)) = (version_4, bytes.first_mut()) {
                *first = 0x40 | (*first & 0x0f);
            }
            let _ = Repr::parse(&bytes);
        }
    }
}
