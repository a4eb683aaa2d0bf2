//! UDP (RFC 768).
//!
//! ```text
//! 0       2       4       6       8
//! +-------+-------+-------+-------+--------
//! | source| dest. | length| check | payload
//! +-------+-------+-------+-------+--------
//! ```

use core::net::{Ipv4Addr, Ipv6Addr};

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::Sum;
use crate::{Header, IpProtocol, WireError};

/// A UDP header on packet bytes, 8 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct UdpHeader {
    source_port: U16,
    destination_port: U16,
    length: U16,
    checksum: U16,
}

impl Header for UdpHeader {
    const NAME: &'static str = "UDP";
}

impl UdpHeader {
    /// A header for `payload_len` bytes without a checksum. `None` if it is longer than 65,527.
    pub fn new(source_port: u16, destination_port: u16, payload_len: usize) -> Option<Self> {
        let length = u16::try_from(payload_len.checked_add(Self::LEN)?).ok()?;
        Some(Self {
            source_port: U16::new(source_port),
            destination_port: U16::new(destination_port),
            length: U16::new(length),
            checksum: U16::ZERO,
        })
    }

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

    /// Sets where it comes from; the checksum is not touched.
    #[inline(always)]
    pub fn set_source_port(&mut self, port: u16) {
        self.source_port.set(port);
    }

    /// Sets where it goes; the checksum is not touched.
    #[inline(always)]
    pub fn set_destination_port(&mut self, port: u16) {
        self.destination_port.set(port);
    }

    /// Bytes of header and payload, as announced.
    #[inline(always)]
    pub fn length(&self) -> u16 {
        self.length.get()
    }

    /// The checksum field; 0 means that there is none.
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

/// Whether the checksum of a datagram (header and payload) over IPv4 is right. None is right, too.
pub fn is_good_over_ip4(source: Ipv4Addr, destination: Ipv4Addr, datagram: &[u8]) -> bool {
    let (Some(header), Ok(len)) = (UdpHeader::overlay(datagram), u16::try_from(datagram.len()))
    else {
        return false;
    };
    header.checksum() == 0
        || Sum::pseudo4(source, destination, IpProtocol::UDP, len).bytes(datagram).is_good()
}

/// Whether the checksum of a datagram (header and payload) over IPv6 is right. It must have one
/// (RFC 8200 §8.1; the exception of RFC 6935 for tunnels is for the tunnel to make).
pub fn is_good_over_ip6(source: Ipv6Addr, destination: Ipv6Addr, datagram: &[u8]) -> bool {
    let (Some(header), Ok(len)) = (UdpHeader::overlay(datagram), u32::try_from(datagram.len()))
    else {
        return false;
    };
    header.checksum() != 0
        && Sum::pseudo6(source, destination, IpProtocol::UDP, len).bytes(datagram).is_good()
}

/// Writes the checksum into a datagram over IPv4. Nothing happens if it is no datagram.
pub fn fill_checksum_over_ip4(source: Ipv4Addr, destination: Ipv4Addr, datagram: &mut [u8]) {
    if let Ok(len) = u16::try_from(datagram.len()) {
        fill(Sum::pseudo4(source, destination, IpProtocol::UDP, len), datagram);
    }
}

/// Writes the checksum into a datagram over IPv6. Nothing happens if it is no datagram.
pub fn fill_checksum_over_ip6(source: Ipv6Addr, destination: Ipv6Addr, datagram: &mut [u8]) {
    if let Ok(len) = u32::try_from(datagram.len()) {
        fill(Sum::pseudo6(source, destination, IpProtocol::UDP, len), datagram);
    }
}

fn fill(pseudo: Sum, datagram: &mut [u8]) {
    if let Some(header) = UdpHeader::overlay_mut(datagram) {
        header.set_checksum(0);
    }
    let checksum = pseudo.bytes(datagram).udp_checksum();
    if let Some(header) = UdpHeader::overlay_mut(datagram) {
        header.set_checksum(checksum);
    }
}

/// A UDP header in plain values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Where it comes from.
    pub source_port: u16,
    /// Where it goes.
    pub destination_port: u16,
    /// Bytes behind the header.
    pub payload_len: usize,
    /// The checksum; 0 means that there is none.
    pub checksum: u16,
}

impl Repr {
    /// Reads a header whose length is right; also returns the payload. The checksum needs
    /// addresses: [`is_good_over_ip4`], [`is_good_over_ip6`].
    ///
    /// # Errors
    /// The header is truncated, or its length is below 8 or beyond `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let (header, rest) = UdpHeader::require(bytes)?;
        let payload_len =
            usize::from(header.length()).checked_sub(UdpHeader::LEN).ok_or(WireError::Invalid {
                header: UdpHeader::NAME,
                reason: "length is below 8 bytes",
            })?;
        let payload = rest.get(..payload_len).ok_or(WireError::Truncated {
            header: UdpHeader::NAME,
            need: UdpHeader::LEN + payload_len,
            have: bytes.len(),
        })?;
        let repr = Self {
            source_port: header.source_port(),
            destination_port: header.destination_port(),
            payload_len,
            checksum: header.checksum(),
        };
        Ok((repr, payload))
    }

    /// Writes the header and returns its length.
    ///
    /// # Errors
    /// The payload is longer than the length field can say, or `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut header = UdpHeader::new(self.source_port, self.destination_port, self.payload_len)
            .ok_or(WireError::Invalid {
                header: UdpHeader::NAME,
                reason: "payload longer than 65,527 bytes",
            })?;
        header.set_checksum(self.checksum);
        header.write(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    #[test]
    fn no_checksum_is_right_over_ip4_and_wrong_over_ip6() {
        let datagram = [0, 1, 0, 2, 0, 8, 0, 0];
        assert!(is_good_over_ip4(HERE, THERE, &datagram));
        assert!(!is_good_over_ip6(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, &datagram));
    }

    proptest! {
        #[test]
        fn a_filled_checksum_is_right_and_a_flipped_bit_is_found(
            mut datagram in prop::collection::vec(any::<u8>(), 8..100), place: usize,
            bit in 0u32..8,
        ) {
            let place = place % datagram.len();
            fill_checksum_over_ip4(HERE, THERE, &mut datagram);
            prop_assert!(is_good_over_ip4(HERE, THERE, &datagram));
            let here = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
            fill_checksum_over_ip6(here, Ipv6Addr::LOCALHOST, &mut datagram);
            prop_assert!(is_good_over_ip6(here, Ipv6Addr::LOCALHOST, &datagram));
            datagram[place] ^= 1 << bit;
            prop_assert!(!is_good_over_ip6(here, Ipv6Addr::LOCALHOST, &datagram));
        }

        #[test]
        fn parse_and_emit_are_inverse(mut bytes: [u8; 8], payload_len in 0u8..40) {
            bytes[4..6].copy_from_slice(&[0, 8 + payload_len]);
            let mut datagram = [0; 48];
            datagram[..8].copy_from_slice(&bytes);
            let (repr, payload) = Repr::parse(&datagram).unwrap();
            prop_assert_eq!(payload.len(), usize::from(payload_len));
            let mut out = [0; 8];
            prop_assert_eq!(repr.emit(&mut out), Ok(8));
            prop_assert_eq!(out, bytes);
        }

        #[test]
        fn no_bytes_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let _ = Repr::parse(&bytes);
            let _ = is_good_over_ip4(HERE, THERE, &bytes);
            fill_checksum_over_ip4(HERE, THERE, &mut bytes);
        }
    }
}
