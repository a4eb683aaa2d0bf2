//! The flow of an IPv6 packet: addresses, ports, protocol and table; as a key, five words.
//!
//! ```text
//! words 0 and 1   source address
//! words 2 and 3   destination address
//! word 4          source port 16 | destination port 16 | protocol 8 | side 1 | table 23
//! ```
//!
//! An ICMPv6 echo has its identifier in the place of both ports (RFC 5508 §3.1). Protocols other
//! than TCP, UDP and ICMPv6 have 0 there.

use std::net::{Ipv6Addr, SocketAddrV6};

use quiver_core::Packet;
use quiver_forwarding::ip::noted;
use quiver_wire::icmp6::kind;
use quiver_wire::{Header, Ip6Header, IpProtocol};

use crate::versions::ends::Ports;
use crate::versions::read::{Kind, Read6};

/// A key as the session table holds it.
pub type Key = [u64; 5];

/// The key of no packet.
pub const NO_KEY: Key = [0; 5];

/// Bits of a table's small number in a key.
const TABLE_MASK: u64 = (1 << 23) - 1;
const SIDE_SHIFT: u32 = 23;
const PROTOCOL_SHIFT: u32 = 24;

/// The side that a packet comes from: the same flow may be one of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From a host inside.
    Inside = 0,
    /// From outside.
    Outside = 1,
}

/// One end of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct End {
    /// Its address; where a translator has ends of both versions, that of IPv4 in the low 32 bits.
    pub address: u128,
    /// Port, or identifier of an ICMP query; 0 of a protocol that has neither.
    pub port: u16,
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        SocketAddrV6::new(Ipv6Addr::from_bits(self.address), self.port, 0, 0).fmt(f)
    }
}

/// What a key says, but for the side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Who sends.
    pub source: End,
    /// Who receives.
    pub destination: End,
    /// The protocol behind the extension headers.
    pub protocol: IpProtocol,
    /// Small number of the table that the packet is routed in.
    pub table: u32,
}

/// Does a translator see ports or an identifier in packets of this protocol?
#[inline(always)]
pub fn has_ports(protocol: IpProtocol) -> bool {
    matches!(protocol, IpProtocol::TCP | IpProtocol::UDP | IpProtocol::ICMP6)
}

fn words(address: u128) -> [u64; 2] {
    [(address >> 64) as u64, address as u64]
}

impl Flow {
    /// As the key of packets that come from this side.
    #[inline(always)]
    pub fn key(&self, side: Side) -> Key {
        let Flow { source, destination, protocol, table } = *self;
        let [a, b] = words(source.address);
        let [c, d] = words(destination.address);
        let ports = u64::from(source.port) << 48 | u64::from(destination.port) << 32;
        [a, b, c, d, ports | rest(protocol, side, table)]
    }

    /// What a key says.
    #[inline(always)]
    pub fn of(key: Key) -> Flow {
        let address = |at: usize| u128::from(key[at]) << 64 | u128::from(key[at + 1]);
        Flow {
            source: End { address: address(0), port: (key[4] >> 48) as u16 },
            destination: End { address: address(2), port: (key[4] >> 32) as u16 },
            protocol: protocol_of(key),
            table: (key[4] & TABLE_MASK) as u32,
        }
    }

    /// Of the packets that come back.
    #[must_use]
    pub fn reversed(self) -> Flow {
        Flow { source: self.destination, destination: self.source, ..self }
    }
}

/// The protocol that a key says.
#[inline(always)]
pub fn protocol_of(key: Key) -> IpProtocol {
    IpProtocol((key[4] >> PROTOCOL_SHIFT) as u8)
}

#[inline(always)]
fn rest(protocol: IpProtocol, side: Side, table: u32) -> u64 {
    u64::from(protocol.0) << PROTOCOL_SHIFT
        | (side as u64) << SIDE_SHIFT
        | u64::from(table) & TABLE_MASK
}

/// The ends of a packet of TCP or UDP without extension headers, as its first bytes have them.
#[derive(Clone, Copy, Debug)]
pub struct TransportEnds {
    /// Who sends.
    pub source: u128,
    /// Who receives.
    pub destination: u128,
    /// Ports of both.
    pub ports: Ports,
    /// TCP or UDP.
    pub protocol: IpProtocol,
}

impl TransportEnds {
    /// Of a packet that begins with its header; `None` for other packets.
    #[inline(always)]
    pub fn of(packet: &Packet) -> Option<TransportEnds> {
        let (header, behind) = packet.bytes().split_first_chunk::<{ Ip6Header::LEN }>()?;
        let [first, a, b, c, d] = header.as_chunks::<8>().0.first_chunk()?;
        let address = |high: &[u8; 8], low: &[u8; 8]| {
            u128::from(u64::from_be_bytes(*high)) << 64 | u128::from(u64::from_be_bytes(*low))
        };
        let ports = u32::from_be_bytes(*behind.first_chunk()?);
        let protocol = IpProtocol(first[6]);
        let ends = TransportEnds {
            source: address(a, b),
            destination: address(c, d),
            ports: Ports { source: (ports >> 16) as u16, destination: ports as u16 },
            protocol,
        };
        matches!(protocol, IpProtocol::TCP | IpProtocol::UDP).then_some(ends)
    }
}

/// The key of a packet of TCP or UDP without extension headers; [`NO_KEY`] of others.
#[inline(always)]
pub fn key_of(packet: &Packet, side: Side, table: u32) -> Key {
    let Some(TransportEnds { source, destination, ports, protocol }) = TransportEnds::of(packet)
    else {
        return NO_KEY;
    };
    let end = |address, port| End { address, port };
    let (source, destination) = (end(source, ports.source), end(destination, ports.destination));
    Flow { source, destination, protocol, table }.key(side)
}

/// What a packet is, and its flow. Virtual reassembly has noted what the first fragment of a later
/// one says. An echo in fragments is a query: its checksum changes by what its identifier does.
pub fn of(packet: &Packet, read: &Read6, table: u32) -> (Kind, Flow) {
    let (mut kind, mut ports, mut protocol) = (read.kind, read.ports, read.protocol);
    if read.is_later_fragment()
        && let Some(upper) = noted(packet)
    {
        protocol = upper.protocol;
        kind = match upper.icmp {
            Some((kind::ECHO_REQUEST, _)) => Kind::Query,
            Some((kind::ECHO_REPLY, _)) => Kind::Answer,
            _ => kind,
        };
        ports = Ports { source: upper.source_port, destination: upper.destination_port };
    }
    (kind, flow(read, ports, protocol, table))
}

/// The flow of a packet that an error quotes.
pub fn of_quoted(read: &Read6, table: u32) -> Flow {
    flow(read, read.ports, read.protocol, table)
}

fn flow(read: &Read6, ports: Ports, protocol: IpProtocol, table: u32) -> Flow {
    let ports = if has_ports(protocol) { ports } else { Ports::default() };
    Flow {
        source: End { address: read.source, port: ports.source },
        destination: End { address: read.destination, port: ports.destination },
        protocol,
        table,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_key_says_its_flow(
            addresses: (u128, u128), ports: (u16, u16), protocol: u8, table in 0u32..1 << 23,
        ) {
            let flow = Flow {
                source: End { address: addresses.0, port: ports.0 },
                destination: End { address: addresses.1, port: ports.1 },
                protocol: IpProtocol(protocol),
                table,
            };
            prop_assert_eq!(Flow::of(flow.key(Side::Inside)), flow);
            prop_assert_eq!(Flow::of(flow.key(Side::Outside)), flow);
            prop_assert_ne!(flow.key(Side::Inside), flow.key(Side::Outside));
        }
    }
}
