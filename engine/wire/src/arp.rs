//! ARP for IPv4 over Ethernet (RFC 826).
//!
//! ```text
//! 0     2     4 5 6     8        14       18       24       28
//! +-----+-----+-+-+-----+--------+--------+--------+--------+
//! | hrd | pro |6|4| op  | sha    | spa    | tha    | tpa    |
//! +-----+-----+-+-+-----+--------+--------+--------+--------+
//! ```

use core::net::Ipv4Addr;

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{EtherType, Header, MacAddress, WireError};

/// Hardware type of Ethernet.
const HARDWARE_ETHERNET: u16 = 1;

/// What an ARP packet wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Who has the target address?
    Request,
    /// The sender has it.
    Reply,
}

/// An ARP packet on packet bytes, 28 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ArpHeader {
    hardware: U16,
    protocol: U16,
    hardware_len: u8,
    protocol_len: u8,
    operation: U16,
    /// MAC address of the sender.
    pub sender_mac: MacAddress,
    sender_ip: [u8; 4],
    /// MAC address of the target; of no meaning in a request.
    pub target_mac: MacAddress,
    target_ip: [u8; 4],
}

impl Header for ArpHeader {
    const NAME: &'static str = "ARP";
}

impl ArpHeader {
    /// Whether it speaks of IPv4 over Ethernet: types and lengths are those of RFC 826.
    #[inline]
    pub fn is_ip4_over_ethernet(&self) -> bool {
        (self.hardware.get() == HARDWARE_ETHERNET)
            & (self.protocol.get() == EtherType::IPV4.0)
            & (self.hardware_len == 6)
            & (self.protocol_len == 4)
    }

    /// Request or reply; `None` for anything else (RARP and newer).
    #[inline]
    pub fn operation(&self) -> Option<Operation> {
        match self.operation.get() {
            1 => Some(Operation::Request),
            2 => Some(Operation::Reply),
            _ => None,
        }
    }

    /// IPv4 address of the sender; 0.0.0.0 in a probe (RFC 5227 §1.1).
    #[inline]
    pub fn sender_ip(&self) -> Ipv4Addr {
        Ipv4Addr::from_octets(self.sender_ip)
    }

    /// IPv4 address asked for or answered.
    #[inline]
    pub fn target_ip(&self) -> Ipv4Addr {
        Ipv4Addr::from_octets(self.target_ip)
    }
}

/// An ARP packet in plain values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Request or reply.
    pub operation: Operation,
    /// MAC address of the sender.
    pub sender_mac: MacAddress,
    /// IPv4 address of the sender.
    pub sender_ip: Ipv4Addr,
    /// MAC address of the target; zero in a request.
    pub target_mac: MacAddress,
    /// IPv4 address asked for or answered.
    pub target_ip: Ipv4Addr,
}

impl Repr {
    /// The question who has `target_ip`.
    pub fn request(sender_mac: MacAddress, sender_ip: Ipv4Addr, target_ip: Ipv4Addr) -> Self {
        let operation = Operation::Request;
        Self { operation, sender_mac, sender_ip, target_mac: MacAddress::ZERO, target_ip }
    }

    /// The answer to this request from the one who has its target address.
    pub fn reply(&self, mac: MacAddress) -> Self {
        Self {
            operation: Operation::Reply,
            sender_mac: mac,
            sender_ip: self.target_ip,
            target_mac: self.sender_mac,
            target_ip: self.sender_ip,
        }
    }

    /// Reads a packet; also returns the padding behind it.
    ///
    /// # Errors
    /// The packet is truncated, or is not IPv4 over Ethernet.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let (arp, rest) = ArpHeader::require(bytes)?;
        let invalid = |reason| WireError::Invalid { header: ArpHeader::NAME, reason };
        if !arp.is_ip4_over_ethernet() {
            return Err(invalid("not IPv4 over Ethernet"));
        }
        let repr = Self {
            operation: arp.operation().ok_or(invalid("neither request nor reply"))?,
            sender_mac: arp.sender_mac,
            sender_ip: arp.sender_ip(),
            target_mac: arp.target_mac,
            target_ip: arp.target_ip(),
        };
        Ok((repr, rest))
    }

    /// Writes the packet and returns its length.
    ///
    /// # Errors
    /// `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let operation = match self.operation {
            Operation::Request => 1,
            Operation::Reply => 2,
        };
        let header = ArpHeader {
            hardware: U16::new(HARDWARE_ETHERNET),
            protocol: U16::new(EtherType::IPV4.0),
            hardware_len: 6,
            protocol_len: 4,
            operation: U16::new(operation),
            sender_mac: self.sender_mac,
            sender_ip: self.sender_ip.octets(),
            target_mac: self.target_mac,
            target_ip: self.target_ip.octets(),
        };
        header.write(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_reply_answers_the_request() {
        let asker = MacAddress([2, 0, 0, 0, 0, 1]);
        let owner = MacAddress([2, 0, 0, 0, 0, 2]);
        let request = Repr::request(asker, Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let reply = request.reply(owner);
        let mut out = [0; 28];
        assert_eq!(reply.emit(&mut out), Ok(28));
        assert_eq!(out[..8], [0, 1, 8, 0, 6, 4, 0, 2]);
        assert_eq!(out[8..], [2, 0, 0, 0, 0, 2, 10, 0, 0, 2, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1]);
    }

    #[test]
    fn other_hardware_protocols_and_operations_are_refused() {
        let mut good = [0; 28];
        let none = Ipv4Addr::UNSPECIFIED;
        Repr::request(MacAddress::ZERO, none, none).emit(&mut good).unwrap();
        for place in 0..8 {
            let mut bad = good;
            bad[place] ^= 0x40;
            assert!(Repr::parse(&bad).is_err(), "octet {place}");
        }
    }

    proptest! {
        #[test]
        fn parse_and_emit_are_inverse(mut bytes: [u8; 28], reply: bool) {
            bytes[..8].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1 + u8::from(reply)]);
            let (repr, _) = Repr::parse(&bytes).unwrap();
            let mut out = [0; 28];
            prop_assert_eq!(repr.emit(&mut out), Ok(28));
            prop_assert_eq!(out, bytes);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = Repr::parse(&bytes);
        }
    }
}
