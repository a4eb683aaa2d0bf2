//! One end of an IPv6 packet becomes another: address, port or identifier, and the checksum of the
//! upper layer by what it changes (RFC 1624).

use quiver_wire::IpProtocol;

use super::flow::{End, has_ports};
use crate::checksum::{adjust, checksum_at};
use crate::versions::ends::Delta;

/// Which end of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Who sends.
    Source,
    /// Who receives.
    Destination,
}

impl Which {
    /// Where its address begins, in bytes from the IPv6 header on.
    const fn address_at(self) -> usize {
        match self {
            Which::Source => 8,
            Which::Destination => 24,
        }
    }

    /// Where its port begins, in bytes from the upper layer on; ICMPv6 has one identifier.
    const fn port_at(self, protocol: IpProtocol) -> usize {
        match self {
            _ if protocol.0 == IpProtocol::ICMP6.0 => 4,
            Which::Source => 0,
            Which::Destination => 2,
        }
    }
}

/// What the checksum of an upper layer gets when one end becomes another. The addresses of IPv6 are
/// in that of ICMPv6, too (RFC 4443 §2.3).
pub fn delta(from: End, to: End) -> u16 {
    let delta = Delta::new().sub128(from.address).add128(to.address);
    delta.sub(from.port).add(to.port).fold()
}

const fn checksum_of(protocol: IpProtocol) -> Option<usize> {
    match protocol {
        IpProtocol::ICMP6 => Some(2),
        // ICMP of IPv4 has no pseudo header.
        IpProtocol::ICMP => None,
        IpProtocol(other) => checksum_at(other),
    }
}

/// Give the IPv6 packet that `bytes` begin with another end. `upper` is where its upper layer
/// begins, and the protocol of that; a later fragment has none. `delta` is what [`delta`] says.
/// What the packet does not have is left alone.
#[inline(always)]
pub fn set_end(
    bytes: &mut [u8],
    upper: Option<(usize, IpProtocol)>,
    which: Which,
    end: End,
    delta: u16,
) {
    let place = bytes.get_mut(which.address_at()..).and_then(|rest| rest.first_chunk_mut());
    let Some(place) = place else { return };
    *place = end.address.to_be_bytes();
    let Some((begin, protocol)) = upper else { return };
    let Some(behind) = bytes.get_mut(begin..) else { return };
    if has_ports(protocol)
        && let Some(port) = behind.get_mut(which.port_at(protocol)..)
        && let Some(port) = port.first_chunk_mut()
    {
        *port = end.port.to_be_bytes();
    }
    if let Some(at) = checksum_of(protocol) {
        adjust(behind, at, delta, protocol.0 == IpProtocol::UDP.0);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use proptest::prelude::*;
    use quiver_wire::checksum::Sum;

    use super::*;

    /// The checksum of an upper layer, summed up whole; 0 is right.
    fn is_good(bytes: &[u8], protocol: IpProtocol) -> bool {
        let address = |at: usize| {
            let bytes: [u8; 16] = bytes[at..at + 16].try_into().unwrap();
            Ipv6Addr::from(bytes)
        };
        let length = bytes.len() as u32 - 40;
        Sum::pseudo6(address(8), address(24), protocol, length).bytes(&bytes[40..]).is_good()
    }

    proptest! {
        /// RFC 1624 §3: what a checksum gets makes it that of the new packet.
        #[test]
        fn a_packet_with_another_end_has_a_good_checksum(
            mut bytes in prop::collection::vec(any::<u8>(), 64..120),
            kind in 0usize..3, is_source: bool, address: u128, port: u16,
        ) {
            let protocol = [IpProtocol::TCP, IpProtocol::UDP, IpProtocol::ICMP6][kind];
            let at = 40 + [16, 6, 2][kind];
            bytes[at..at + 2].fill(0);
            let ends = |bytes: &[u8], at: usize| {
                u128::from_be_bytes(bytes[at..at + 16].try_into().unwrap())
            };
            let (source, destination) = (ends(&bytes, 8), ends(&bytes, 24));
            let sum = Sum::pseudo6(
                Ipv6Addr::from_bits(source),
                Ipv6Addr::from_bits(destination),
                protocol,
                bytes.len() as u32 - 40,
            );
            let sum = sum.bytes(&bytes[40..]).checksum();
            let sum = if sum == 0 { 0xffff } else { sum };
            bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
            prop_assert!(is_good(&bytes, protocol));
            let which = if is_source { Which::Source } else { Which::Destination };
            let port_at = 40 + which.port_at(protocol);
            let old = End {
                address: if is_source { source } else { destination },
                port: u16::from_be_bytes([bytes[port_at], bytes[port_at + 1]]),
            };
            let new = End { address, port };
            set_end(&mut bytes, Some((40, protocol)), which, new, delta(old, new));
            prop_assert!(is_good(&bytes, protocol));
            let now = if is_source { ends(&bytes, 8) } else { ends(&bytes, 24) };
            prop_assert_eq!(now, address);
        }

        #[test]
        fn bytes_that_are_no_packet_are_left_in_peace(
            mut bytes in prop::collection::vec(any::<u8>(), 0..80),
            begin in 0usize..100, protocol: u8,
        ) {
            let before = bytes.len();
            let upper = Some((begin, IpProtocol(protocol)));
            set_end(&mut bytes, upper, Which::Source, End::default(), 7);
            prop_assert_eq!(bytes.len(), before);
        }
    }
}
