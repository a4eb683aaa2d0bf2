//! The flow of a packet: addresses, ports, protocol and table; as a key, two words.
//!
//! ```text
//! word 0   source address 32 | destination address 32
//! word 1   source port 16 | destination port 16 | protocol 8 | table 24
//! ```
//!
//! An ICMP query has its identifier in the place of both ports (RFC 5508 §3.1). Other protocols
//! have 0 there.

use std::net::Ipv4Addr;

use quiver_core::Packet;
use quiver_forwarding::ip::noted;
use quiver_wire::{Header, Ip4Header, IpProtocol};

/// A key as the session table holds it.
pub type Key = [u64; 2];

/// The key of no packet.
pub const NO_KEY: Key = [0, 0];

/// Bits of a table's small number in a key.
const TABLE_BITS: u32 = 24;

/// ICMP types (RFC 792).
pub mod icmp {
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 0;
    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 3;
    /// Echo request.
    pub const ECHO: u8 = 8;
    /// Time exceeded.
    pub const TIME_EXCEEDED: u8 = 11;
    /// Parameter problem.
    pub const PARAMETER_PROBLEM: u8 = 12;
    /// Timestamp request.
    pub const TIMESTAMP: u8 = 13;
    /// Timestamp reply.
    pub const TIMESTAMP_REPLY: u8 = 14;
}

/// One end of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct End {
    /// Its address.
    pub address: u32,
    /// Port, or identifier of an ICMP query.
    pub port: u16,
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", Ipv4Addr::from(self.address), self.port)
    }
}

/// What a key says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Who sends.
    pub source: End,
    /// Who receives.
    pub destination: End,
    /// The protocol behind the IP header.
    pub protocol: IpProtocol,
    /// Small number of the table that the packet is routed in.
    pub table: u32,
}

impl Flow {
    /// As a key.
    pub fn key(self) -> Key {
        let Flow { source, destination, protocol, table } = self;
        [
            u64::from(source.address) << 32 | u64::from(destination.address),
            u64::from(source.port) << 48
                | u64::from(destination.port) << 32
                | u64::from(protocol.0) << TABLE_BITS
                | u64::from(table & ((1 << TABLE_BITS) - 1)),
        ]
    }

    /// What a key says.
    pub fn of(key: Key) -> Flow {
        Flow {
            source: End { address: (key[0] >> 32) as u32, port: (key[1] >> 48) as u16 },
            destination: End { address: key[0] as u32, port: (key[1] >> 32) as u16 },
            protocol: IpProtocol((key[1] >> TABLE_BITS) as u8),
            table: key[1] as u32 & ((1 << TABLE_BITS) - 1),
        }
    }

    /// Of the packets that come back.
    pub fn reversed(self) -> Flow {
        Flow { source: self.destination, destination: self.source, ..self }
    }

    /// Is the flow one of ICMP queries?
    pub fn is_icmp(self) -> bool {
        self.protocol == IpProtocol::ICMP
    }
}

/// What kind of packet it is to a translator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TCP, UDP, or another protocol, with the flags of TCP.
    Data {
        /// 0 for other protocols.
        tcp_flags: u8,
    },
    /// An ICMP query or its answer.
    Query {
        /// The ICMP type.
        kind: u8,
    },
    /// An ICMP error.
    IcmpError,
    /// ICMP that is neither (redirects, router discovery).
    OtherIcmp,
    /// A fragment whose first one is not known.
    LostFragment,
    /// Its headers are not whole.
    Truncated,
}

/// The key of a packet without options, whole, of TCP or UDP; others say more slowly.
#[inline(always)]
pub fn key_of(packet: &Packet, table: u32) -> Key {
    key_with(packet, table, false)
}

/// As [`key_of`]; with `has_calls` packets of GRE are known by their calls ([`classify_with`]).
#[inline(always)]
pub fn key_with(packet: &Packet, table: u32, has_calls: bool) -> Key {
    let (first, second) = match fast_key(packet, table) {
        Some(words) => words,
        None => slow_key(packet, table, has_calls),
    };
    [first, second]
}

/// The words of the key of a packet without options, whole, of TCP or UDP.
#[inline(always)]
fn fast_key(packet: &Packet, table: u32) -> Option<(u64, u64)> {
    let head = packet.bytes().first_chunk::<24>()?;
    let protocol = head[9];
    let parts = u16::from_be_bytes([head[6], head[7]]) & 0x3fff;
    if head[0] != 0x45 || parts != 0 || (protocol != 6 && protocol != 17) {
        return None;
    }
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let rest = u64::from(protocol) << TABLE_BITS | u64::from(table & ((1 << TABLE_BITS) - 1));
    Some((u64::from(word(12)) << 32 | u64::from(word(16)), u64::from(word(20)) << 32 | rest))
}

/// The words of any key. They come in two registers: an array would come in memory, and what the
/// fast path writes would go there, too, from where a vector of both waits for each.
#[cold]
#[inline(never)]
fn slow_key(packet: &Packet, table: u32, has_calls: bool) -> (u64, u64) {
    let [first, second] = match classify_with(packet, table, has_calls) {
        (Kind::Data { .. } | Kind::Query { .. }, flow) => flow.key(),
        _ => NO_KEY,
    };
    (first, second)
}

/// What a packet is, and its flow; that of what has no session is without meaning.
pub fn classify(packet: &Packet, table: u32) -> (Kind, Flow) {
    let mut flow = Flow {
        source: End::default(),
        destination: End::default(),
        protocol: IpProtocol(0),
        table,
    };
    let bytes = packet.bytes();
    let Some(header) = Ip4Header::overlay(bytes) else { return (Kind::Truncated, flow) };
    flow.source.address = header.source_bits();
    flow.destination.address = header.destination_bits();
    flow.protocol = header.protocol();
    if header.is_fragment() {
        return (of_fragment(packet, &mut flow), flow);
    }
    let behind = bytes.get(header.header_len()..).unwrap_or_default();
    (of_upper(behind, &mut flow), flow)
}

/// As [`classify`]; with `has_calls` a whole packet of GRE version 1 has its call in the place of
/// the destination port (RFC 2637 §4.1).
pub fn classify_with(packet: &Packet, table: u32, has_calls: bool) -> (Kind, Flow) {
    let (kind, mut flow) = classify(packet, table);
    if has_calls && flow.protocol == IpProtocol::GRE && matches!(kind, Kind::Data { .. }) {
        let bytes = packet.bytes();
        let header = Ip4Header::overlay(bytes).filter(|header| !header.is_fragment());
        let behind = header.and_then(|header| bytes.get(header.header_len()..));
        flow.destination.port = behind.and_then(call).unwrap_or(0);
    }
    (kind, flow)
}

/// Where the call of a packet of GRE version 1 is.
pub(crate) const CALL: std::ops::Range<usize> = 6..8;

/// The call of GRE version 1 (RFC 2637 §4.1): of who receives the packet.
pub(crate) fn call(gre: &[u8]) -> Option<u16> {
    let head = gre.first_chunk::<8>()?;
    // K is set, and PPP is inside.
    let is_call = head[0] & 0x20 != 0 && head[1] & 7 == 1 && head[2..4] == [0x88, 0x0b];
    is_call.then_some(u16::from_be_bytes([head[CALL.start], head[CALL.start + 1]]))
}

/// Virtual reassembly has noted what the first fragment says.
fn of_fragment(packet: &Packet, flow: &mut Flow) -> Kind {
    let Some(upper) = noted(packet) else { return Kind::LostFragment };
    (flow.source.port, flow.destination.port) = (upper.source_port, upper.destination_port);
    match upper.icmp {
        None => Kind::Data { tcp_flags: upper.tcp_flags },
        Some((kind @ (icmp::ECHO | icmp::ECHO_REPLY), _)) => Kind::Query { kind },
        Some(_) => Kind::OtherIcmp,
    }
}

/// The ports or the identifier of an upper layer, and what it is.
pub fn of_upper(behind: &[u8], flow: &mut Flow) -> Kind {
    match flow.protocol {
        IpProtocol::TCP | IpProtocol::UDP => {
            let Some([a, b, c, d]) = behind.first_chunk() else { return Kind::Truncated };
            flow.source.port = u16::from_be_bytes([*a, *b]);
            flow.destination.port = u16::from_be_bytes([*c, *d]);
            let is_tcp = flow.protocol == IpProtocol::TCP;
            match behind.get(13) {
                Some(flags) if is_tcp => Kind::Data { tcp_flags: *flags },
                None if is_tcp => Kind::Truncated,
                _ => Kind::Data { tcp_flags: 0 },
            }
        }
        IpProtocol::ICMP => {
            let Some([kind, _, _, _, a, b, ..]) = behind.first_chunk::<8>() else {
                return Kind::Truncated;
            };
            match *kind {
                icmp::ECHO | icmp::ECHO_REPLY | icmp::TIMESTAMP | icmp::TIMESTAMP_REPLY => {
                    let identifier = u16::from_be_bytes([*a, *b]);
                    (flow.source.port, flow.destination.port) = (identifier, identifier);
                    Kind::Query { kind: *kind }
                }
                icmp::UNREACHABLE | icmp::TIME_EXCEEDED | icmp::PARAMETER_PROBLEM => {
                    Kind::IcmpError
                }
                _ => Kind::OtherIcmp,
            }
        }
        _ => Kind::Data { tcp_flags: 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_key_says_its_flow(
            addresses: (u32, u32), ports: (u16, u16), protocol: u8, table in 0u32..1 << 24,
        ) {
            let flow = Flow {
                source: End { address: addresses.0, port: ports.0 },
                destination: End { address: addresses.1, port: ports.1 },
                protocol: IpProtocol(protocol),
                table,
            };
            prop_assert_eq!(Flow::of(flow.key()), flow);
            prop_assert_eq!(flow.reversed().reversed(), flow);
        }
    }
}
