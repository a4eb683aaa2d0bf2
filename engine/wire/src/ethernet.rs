//! Ethernet II (IEEE 802.3 §3.1.1).
//!
//! ```text
//! 0        6        12   14
//! +--------+--------+----+---------
//! | dst    | src    |type| payload
//! +--------+--------+----+---------
//! ```

use core::fmt;

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{Header, MacAddress, WireError};

/// What follows an Ethernet header or a VLAN tag. Below 0x600 it is the length of an 802.3 frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: Self = Self(0x0800);
    /// ARP.
    pub const ARP: Self = Self(0x0806);
    /// 802.1Q customer tag.
    pub const VLAN: Self = Self(0x8100);
    /// IPv6.
    pub const IPV6: Self = Self(0x86dd);
    /// MPLS.
    pub const MPLS: Self = Self(0x8847);
    /// 802.1ad service tag.
    pub const SERVICE_VLAN: Self = Self(0x88a8);
    /// LLDP.
    pub const LLDP: Self = Self(0x88cc);
    /// Slow protocols, among them LACP.
    pub const SLOW: Self = Self(0x8809);
    /// MAC control, among it PAUSE (IEEE 802.3 annex 31A).
    pub const MAC_CONTROL: Self = Self(0x8808);
    /// The smallest value that is a type and not a length (IEEE 802.3 §3.2.6).
    pub const SMALLEST: Self = Self(0x0600);

    /// Whether the field is the length of an 802.3 frame.
    #[inline]
    pub const fn is_length(self) -> bool {
        self.0 < Self::SMALLEST.0
    }

    /// Whether a VLAN tag follows.
    #[inline]
    pub const fn is_vlan(self) -> bool {
        matches!(self, Self::VLAN | Self::SERVICE_VLAN)
    }

    /// The field's name for it, if it has one here.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::IPV4 => "ip4",
            Self::ARP => "arp",
            Self::VLAN => "dot1q",
            Self::IPV6 => "ip6",
            Self::MPLS => "mpls",
            Self::SERVICE_VLAN => "dot1ad",
            Self::LLDP => "lldp",
            Self::SLOW => "slow",
            _ => return None,
        })
    }
}

impl fmt::Display for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#06x}", self.0),
        }
    }
}

impl fmt::Debug for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// An Ethernet header on packet bytes, 14 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct EthernetHeader {
    /// Where the frame goes.
    pub destination: MacAddress,
    /// Where it comes from.
    pub source: MacAddress,
    ether_type: U16,
}

impl Header for EthernetHeader {
    const NAME: &'static str = "Ethernet";
}

impl EthernetHeader {
    /// A header from its fields.
    pub fn new(destination: MacAddress, source: MacAddress, ether_type: EtherType) -> Self {
        Self { destination, source, ether_type: U16::new(ether_type.0) }
    }

    /// What follows.
    #[inline(always)]
    pub fn ether_type(&self) -> EtherType {
        EtherType(self.ether_type.get())
    }

    /// Sets what follows.
    #[inline(always)]
    pub fn set_ether_type(&mut self, ether_type: EtherType) {
        self.ether_type.set(ether_type.0);
    }
}

/// An Ethernet header in plain values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Where the frame goes.
    pub destination: MacAddress,
    /// Where it comes from.
    pub source: MacAddress,
    /// What follows.
    pub ether_type: EtherType,
}

impl Repr {
    /// Reads a header; also returns what follows it.
    ///
    /// # Errors
    /// The header is truncated.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let (header, payload) = EthernetHeader::require(bytes)?;
        let EthernetHeader { destination, source, .. } = *header;
        Ok((Self { destination, source, ether_type: header.ether_type() }, payload))
    }

    /// Writes the header and returns its length.
    ///
    /// # Errors
    /// `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, WireError> {
        EthernetHeader::new(self.destination, self.source, self.ether_type).write(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_short_frame_says_what_is_missing() {
        let error = Repr::parse(&[0; 13]).unwrap_err();
        assert_eq!(std::format!("{error}"), "Ethernet: needs 14 bytes, there are 13");
    }

    proptest! {
        #[test]
        fn parse_and_emit_are_inverse(bytes: [u8; 14], rest: [u8; 5]) {
            let mut frame = [0; 19];
            frame[..14].copy_from_slice(&bytes);
            frame[14..].copy_from_slice(&rest);
            let (repr, payload) = Repr::parse(&frame).unwrap();
            prop_assert_eq!(payload, &rest);
            let mut out = [0; 14];
            prop_assert_eq!(repr.emit(&mut out), Ok(14));
            prop_assert_eq!(out, bytes);
            prop_assert!(repr.emit(&mut out[..13]).is_err());
        }
    }
}
