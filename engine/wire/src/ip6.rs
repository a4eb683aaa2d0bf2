//! IPv6 (RFC 8200 §3).
//!
//! ```text
//! 0             4         6    7    8          24         40
//! +--+-----+----+---------+----+----+----------+----------+--------
//! |6 |class|flow| length  |next|hops| source   | dest.    | payload
//! +--+-----+----+---------+----+----+----------+----------+--------
//! ```

pub mod address;
pub mod extension;
mod validate;

use core::net::Ipv6Addr;

use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{Header, IpProtocol, WireError};

pub use validate::{Ip6Bad, explain, has_good_addresses, is_plain, is_well_formed, validate};

/// The smallest MTU that a link may have, in bytes (RFC 8200 §5).
pub const MTU_MIN: usize = 1280;

/// The fixed IPv6 header on packet bytes, 40 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ip6Header {
    version_class_flow: U32,
    payload_length: U16,
    next_header: u8,
    hop_limit: u8,
    source: [u8; 16],
    destination: [u8; 16],
}

impl Header for Ip6Header {
    const NAME: &'static str = "IPv6";
}

impl Ip6Header {
    /// A header for `payload_len` bytes, traffic class and flow label zero.
    pub fn new(
        source: Ipv6Addr,
        destination: Ipv6Addr,
        next_header: IpProtocol,
        hop_limit: u8,
        payload_len: u16,
    ) -> Self {
        Self {
            version_class_flow: U32::new(6 << 28),
            payload_length: U16::new(payload_len),
            next_header: next_header.0,
            hop_limit,
            source: source.octets(),
            destination: destination.octets(),
        }
    }

    /// The version field; 6 if this is IPv6.
    #[inline(always)]
    pub fn version(&self) -> u8 {
        (self.version_class_flow.get() >> 28) as u8
    }

    /// Differentiated services (RFC 2474) and congestion notification (RFC 3168).
    #[inline(always)]
    pub fn traffic_class(&self) -> u8 {
        (self.version_class_flow.get() >> 20) as u8
    }

    /// Sets differentiated services and congestion notification.
    #[inline(always)]
    pub fn set_traffic_class(&mut self, class: u8) {
        let others = self.version_class_flow.get() & !(0xff << 20);
        self.version_class_flow.set(others | u32::from(class) << 20);
    }

    /// Flow label, 20 bits.
    #[inline(always)]
    pub fn flow_label(&self) -> u32 {
        self.version_class_flow.get() & 0xf_ffff
    }

    /// Sets the traffic class and the flow label (taken modulo 2^20), and version 6.
    #[inline(always)]
    pub fn set_class_and_flow(&mut self, class: u8, flow_label: u32) {
        self.version_class_flow.set(6 << 28 | u32::from(class) << 20 | flow_label & 0xf_ffff);
    }

    /// Bytes behind this header, extension headers included, as announced.
    #[inline(always)]
    pub fn payload_length(&self) -> u16 {
        self.payload_length.get()
    }

    /// Sets the bytes behind this header.
    #[inline(always)]
    pub fn set_payload_length(&mut self, len: u16) {
        self.payload_length.set(len);
    }

    /// What follows: an extension header or the upper layer.
    #[inline(always)]
    pub fn next_header(&self) -> IpProtocol {
        IpProtocol(self.next_header)
    }

    /// Sets what follows.
    #[inline(always)]
    pub fn set_next_header(&mut self, next_header: IpProtocol) {
        self.next_header = next_header.0;
    }

    /// Hops that it may still take.
    #[inline(always)]
    pub fn hop_limit(&self) -> u8 {
        self.hop_limit
    }

    /// Sets the hop limit.
    #[inline(always)]
    pub fn set_hop_limit(&mut self, hop_limit: u8) {
        self.hop_limit = hop_limit;
    }

    /// Takes one from the hop limit. The caller has seen that it is more than 1.
    #[inline(always)]
    pub fn decrement_hop_limit(&mut self) {
        self.hop_limit = self.hop_limit.wrapping_sub(1);
    }

    /// Who sent it.
    #[inline(always)]
    pub fn source(&self) -> Ipv6Addr {
        Ipv6Addr::from_octets(self.source)
    }

    /// Who sent it, as a number whose highest octet is the first.
    #[inline(always)]
    pub fn source_bits(&self) -> u128 {
        u128::from_be_bytes(self.source)
    }

    /// Sets who sent it.
    #[inline(always)]
    pub fn set_source(&mut self, address: Ipv6Addr) {
        self.source = address.octets();
    }

    /// Where it goes.
    #[inline(always)]
    pub fn destination(&self) -> Ipv6Addr {
        Ipv6Addr::from_octets(self.destination)
    }

    /// Where it goes, as a number whose highest octet is the first: what a look-up wants.
    #[inline(always)]
    pub fn destination_bits(&self) -> u128 {
        u128::from_be_bytes(self.destination)
    }

    /// Sets where it goes.
    #[inline(always)]
    pub fn set_destination(&mut self, address: Ipv6Addr) {
        self.destination = address.octets();
    }
}

/// An IPv6 header in plain values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Differentiated services and congestion notification.
    pub traffic_class: u8,
    /// Flow label, below 2^20.
    pub flow_label: u32,
    /// What follows.
    pub next_header: IpProtocol,
    /// Hops that it may still take.
    pub hop_limit: u8,
    /// Who sent it.
    pub source: Ipv6Addr,
    /// Where it goes.
    pub destination: Ipv6Addr,
    /// Bytes behind the header, extension headers included.
    pub payload_len: usize,
}

impl Repr {
    /// Reads a header whose version and length are right; also returns what follows it, without the
    /// padding of the frame. Addresses are not checked.
    ///
    /// # Errors
    /// The packet is truncated, or its version is not 6.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let (header, rest) = Ip6Header::require(bytes)?;
        if header.version() != 6 {
            return Err(WireError::Invalid { header: Ip6Header::NAME, reason: "version is not 6" });
        }
        let payload_len = usize::from(header.payload_length());
        let payload = rest.get(..payload_len).ok_or(WireError::Truncated {
            header: Ip6Header::NAME,
            need: Ip6Header::LEN + payload_len,
            have: bytes.len(),
        })?;
        let repr = Self {
            traffic_class: header.traffic_class(),
            flow_label: header.flow_label(),
            next_header: header.next_header(),
            hop_limit: header.hop_limit(),
            source: header.source(),
            destination: header.destination(),
            payload_len,
        };
        Ok((repr, payload))
    }

    /// Writes the header and returns its length.
    ///
    /// # Errors
    /// The flow label or the payload does not fit its field, or `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let invalid = |reason| WireError::Invalid { header: Ip6Header::NAME, reason };
        if self.flow_label > 0xf_ffff {
            return Err(invalid("flow label must be below 2^20"));
        }
        let payload_len = u16::try_from(self.payload_len)
            .map_err(|_| invalid("payload longer than 65,535 bytes"))?;
        let mut header = Ip6Header::new(
            self.source,
            self.destination,
            self.next_header,
            self.hop_limit,
            payload_len,
        );
        header
            .version_class_flow
            .set(6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label);
        header.write(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parse_and_emit_are_inverse(mut bytes: [u8; 40]) {
            bytes[0] = 0x60 | (bytes[0] & 0x0f);
            bytes[4..6].copy_from_slice(&[0, 5]);
            let mut packet = [0; 50];
            packet[..40].copy_from_slice(&bytes);
            let (repr, payload) = Repr::parse(&packet).unwrap();
            prop_assert_eq!(payload.len(), 5);
            let mut out = [0; 40];
            prop_assert_eq!(repr.emit(&mut out), Ok(40));
            prop_assert_eq!(out, bytes);
            prop_assert!(Repr::parse(&packet[..44]).is_err());
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Repr::parse(&bytes);
        }
    }
}
