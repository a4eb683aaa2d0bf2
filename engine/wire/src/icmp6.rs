//! ICMPv6 (RFC 4443). Neighbour discovery has its own file, [`nd`].
//!
//! ```text
//! 0    1    2         4                   8
//! +----+----+---------+-------------------+--------
//! |type|code| check   | depends on type   | data
//! +----+----+---------+-------------------+--------
//! ```

pub mod nd;

use core::net::Ipv6Addr;

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::Sum;
use crate::header::room;
use crate::ip6::extension::upper_layer;
use crate::{Header, Ip6Header, IpProtocol, WireError};

/// Types of ICMPv6 messages.
pub mod kind {
    /// Destination unreachable.
    pub const DESTINATION_UNREACHABLE: u8 = 1;
    /// Packet too big.
    pub const PACKET_TOO_BIG: u8 = 2;
    /// Time exceeded.
    pub const TIME_EXCEEDED: u8 = 3;
    /// Parameter problem.
    pub const PARAMETER_PROBLEM: u8 = 4;
    /// Echo request.
    pub const ECHO_REQUEST: u8 = 128;
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 129;
    /// Router solicitation (RFC 4861 §4.1).
    pub const ROUTER_SOLICITATION: u8 = 133;
    /// Router advertisement (RFC 4861 §4.2).
    pub const ROUTER_ADVERTISEMENT: u8 = 134;
    /// Neighbour solicitation (RFC 4861 §4.3).
    pub const NEIGHBOR_SOLICITATION: u8 = 135;
    /// Neighbour advertisement (RFC 4861 §4.4).
    pub const NEIGHBOR_ADVERTISEMENT: u8 = 136;
    /// Redirect (RFC 4861 §4.5).
    pub const REDIRECT: u8 = 137;
}

/// Codes of "destination unreachable" (RFC 4443 §3.1).
pub mod unreachable {
    /// No route.
    pub const NO_ROUTE: u8 = 0;
    /// Forbidden by the administrator.
    pub const PROHIBITED: u8 = 1;
    /// Beyond the scope of the source address.
    pub const BEYOND_SCOPE: u8 = 2;
    /// The neighbour does not answer.
    pub const ADDRESS: u8 = 3;
    /// Nobody here listens on the port.
    pub const PORT: u8 = 4;
    /// A route that rejects (RFC 4443 §3.1).
    pub const REJECT: u8 = 6;
}

/// The first 8 bytes of an ICMPv6 message on packet bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Icmp6Header {
    /// One of [`kind`].
    pub kind: u8,
    /// Depends on the type.
    pub code: u8,
    checksum: U16,
    /// Depends on the type: identifier and sequence number of an echo, for one.
    pub rest: [u8; 4],
}

impl Header for Icmp6Header {
    const NAME: &'static str = "ICMPv6";
}

impl Icmp6Header {
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

    /// An error message: never answered by another one (RFC 4443 §2.4 e.1; redirect: e.2).
    #[inline]
    pub fn is_error(&self) -> bool {
        self.kind < 128 || self.kind == kind::REDIRECT
    }
}

/// Whether the checksum of a message (header and data, contiguous) is right.
pub fn is_good(source: Ipv6Addr, destination: Ipv6Addr, message: &[u8]) -> bool {
    pseudo(source, destination, message.len()).is_some_and(|sum| sum.bytes(message).is_good())
}

fn pseudo(source: Ipv6Addr, destination: Ipv6Addr, len: usize) -> Option<Sum> {
    let len = u32::try_from(len).ok()?;
    Some(Sum::pseudo6(source, destination, IpProtocol::ICMP6, len))
}

/// The IPv6 header of a packet and its ICMPv6 message, when all of it stands in `packet` behind
/// headers that can be walked. `None` for other protocols and for fragments. The checksum is not
/// looked at.
pub fn within(packet: &[u8]) -> Option<(&Ip6Header, &[u8])> {
    let (header, behind) = Ip6Header::split(packet)?;
    let behind = behind.get(..usize::from(header.payload_length()))?;
    let upper = upper_layer(header.next_header(), behind).ok()?;
    let is_whole = upper.fragment.is_none_or(|fragment| fragment.is_atomic());
    (is_whole && upper.protocol == IpProtocol::ICMP6)
        .then_some((header, behind.get(upper.offset..)?))
}

/// What an ICMPv6 message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Are you there?
    EchoRequest {
        /// Which ping.
        identifier: u16,
        /// Which of its packets.
        sequence: u16,
        /// To come back unchanged.
        data: &'a [u8],
    },
    /// I am.
    EchoReply {
        /// As in the request.
        identifier: u16,
        /// As in the request.
        sequence: u16,
        /// As in the request.
        data: &'a [u8],
    },
    /// The packet could not be delivered.
    DestinationUnreachable {
        /// One of [`mod@unreachable`].
        code: u8,
        /// The start of the packet.
        packet: &'a [u8],
    },
    /// The packet does not fit the next link.
    PacketTooBig {
        /// MTU of the next link in bytes.
        mtu: u32,
        /// The start of the packet.
        packet: &'a [u8],
    },
    /// The packet took too long.
    TimeExceeded {
        /// 0: hops, 1: reassembly.
        code: u8,
        /// The start of the packet.
        packet: &'a [u8],
    },
    /// The packet has a bad header.
    ParameterProblem {
        /// 0: a field, 1: next header not known, 2: option not known.
        code: u8,
        /// The octet that is wrong.
        pointer: u32,
        /// The start of the packet.
        packet: &'a [u8],
    },
    /// Neighbour discovery.
    Nd(nd::Message<'a>),
    /// Anything else, as it stands.
    Other {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
        /// The four bytes behind the checksum.
        rest: [u8; 4],
        /// What follows.
        data: &'a [u8],
    },
}

impl<'a> Message<'a> {
    /// Reads a message (all of `bytes`) whose checksum is right. Unused bytes are ignored, as their
    /// standards ask; neighbour discovery with a bad option is refused (RFC 4861 §6.1, §7.1).
    ///
    /// # Errors
    /// The message is truncated, its checksum is wrong, or a message of neighbour discovery is
    /// malformed.
    pub fn parse(
        source: Ipv6Addr,
        destination: Ipv6Addr,
        bytes: &'a [u8],
    ) -> Result<Self, WireError> {
        let (header, data) = Icmp6Header::require(bytes)?;
        if !is_good(source, destination, bytes) {
            return Err(WireError::Invalid {
                header: Icmp6Header::NAME,
                reason: "checksum is wrong",
            });
        }
        let Icmp6Header { kind, code, rest, .. } = *header;
        let [a, b, c, d] = rest;
        let (identifier, sequence) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let word = u32::from_be_bytes(rest);
        Ok(match (kind, code) {
            (kind::ECHO_REQUEST, 0) => Message::EchoRequest { identifier, sequence, data },
            (kind::ECHO_REPLY, 0) => Message::EchoReply { identifier, sequence, data },
            (kind::DESTINATION_UNREACHABLE, _) => {
                Message::DestinationUnreachable { code, packet: data }
            }
            // RFC 4443 §3.2: the code is ignored.
            (kind::PACKET_TOO_BIG, _) => Message::PacketTooBig { mtu: word, packet: data },
            (kind::TIME_EXCEEDED, _) => Message::TimeExceeded { code, packet: data },
            (kind::PARAMETER_PROBLEM, _) => {
                Message::ParameterProblem { code, pointer: word, packet: data }
            }
            (kind::ROUTER_SOLICITATION..=kind::NEIGHBOR_ADVERTISEMENT, 0) => {
                Message::Nd(nd::Message::parse(kind, rest, data)?)
            }
            _ => Message::Other { kind, code, rest, data },
        })
    }

    /// Type, code, the four bytes behind the checksum, the fixed part of neighbour discovery (its
    /// length at its end), and what follows.
    fn parts(&self) -> (u8, u8, [u8; 4], nd::Fixed, &'a [u8]) {
        let pair =
            |first: u16, second: u16| (u32::from(first) << 16 | u32::from(second)).to_be_bytes();
        let none = nd::Fixed::NONE;
        match *self {
            Message::EchoRequest { identifier, sequence, data } => {
                (kind::ECHO_REQUEST, 0, pair(identifier, sequence), none, data)
            }
            Message::EchoReply { identifier, sequence, data } => {
                (kind::ECHO_REPLY, 0, pair(identifier, sequence), none, data)
            }
            Message::DestinationUnreachable { code, packet } => {
                (kind::DESTINATION_UNREACHABLE, code, [0; 4], none, packet)
            }
            Message::PacketTooBig { mtu, packet } => {
                (kind::PACKET_TOO_BIG, 0, mtu.to_be_bytes(), none, packet)
            }
            Message::TimeExceeded { code, packet } => {
                (kind::TIME_EXCEEDED, code, [0; 4], none, packet)
            }
            Message::ParameterProblem { code, pointer, packet } => {
                (kind::PARAMETER_PROBLEM, code, pointer.to_be_bytes(), none, packet)
            }
            Message::Nd(message) => {
                let (kind, rest, fixed, options) = message.parts();
                (kind, 0, rest, fixed, options)
            }
            Message::Other { kind, code, rest, data } => (kind, code, rest, none, data),
        }
    }

    /// Writes the message, checksum included, and returns its length.
    ///
    /// # Errors
    /// The message is longer than 65,535 bytes, or `out` is too short.
    pub fn emit(
        &self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        out: &mut [u8],
    ) -> Result<usize, WireError> {
        let (kind, code, rest, fixed, data) = self.parts();
        let fixed = fixed.bytes();
        let len = Icmp6Header::LEN + fixed.len() + data.len();
        let header = Icmp6Header { kind, code, checksum: U16::ZERO, rest };
        let reason = "longer than 2^32 bytes";
        let sum = pseudo(source, destination, len)
            .ok_or(WireError::Invalid { header: Icmp6Header::NAME, reason })?
            .bytes(header.as_bytes())
            .bytes(fixed)
            .bytes(data);
        let checksum = U16::new(sum.checksum());
        let out = room(out, len)?;
        Icmp6Header { checksum, ..header }.write(out)?;
        let body = out.get_mut(Icmp6Header::LEN..).unwrap_or_default();
        for (to, from) in body.iter_mut().zip(fixed.iter().chain(data)) {
            *to = *from;
        }
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HERE: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    const THERE: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

    #[test]
    fn a_packet_too_big_tells_the_mtu() {
        let message = Message::PacketTooBig { mtu: 1400, packet: &[6] };
        let mut out = [0; 9];
        assert_eq!(message.emit(HERE, THERE, &mut out), Ok(9));
        assert_eq!((out[..2].as_ref(), out[4..].as_ref()), (&[2, 0][..], &[0, 0, 5, 0x78, 6][..]));
        assert!(Icmp6Header::overlay(&out).unwrap().is_error());
        assert_eq!(Message::parse(HERE, THERE, &out), Ok(message));
        assert!(Message::parse(HERE, HERE, &out).is_err(), "the pseudo header counts");
    }

    #[test]
    fn a_message_is_found_behind_a_hop_by_hop_header() {
        let mut packet = [0; 40 + 8 + 8];
        let header = Ip6Header::new(HERE, THERE, IpProtocol::HOP_BY_HOP, 1, 16);
        header.write(&mut packet).unwrap();
        packet[40..48].copy_from_slice(&[58, 0, 5, 2, 0, 0, 1, 0]);
        packet[48] = kind::ROUTER_SOLICITATION;
        let (header, message) = within(&packet).unwrap();
        assert_eq!(
            (header.source(), message.len(), message[0]),
            (HERE, 8, kind::ROUTER_SOLICITATION)
        );
        assert!(within(&packet[..55]).is_none(), "the packet is cut");
        packet[40] = IpProtocol::UDP.0;
        assert!(within(&packet).is_none());
    }

    proptest! {
        #[test]
        fn parse_and_emit_are_inverse(
            pick in 0usize..12, kind: u8, code in 0u8..2, rest: [u8; 4],
            data in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let kind = *[1, 2, 3, 4, 128, 129, 133, 134, 135, 136].get(pick).unwrap_or(&kind);
            let mut bytes = [0; 80];
            let len = Message::Other { kind, code, rest, data: &data }
                .emit(HERE, THERE, &mut bytes)
                .unwrap();
            if let Ok(parsed) = Message::parse(HERE, THERE, &bytes[..len]) {
                let mut out = [0; 80];
                prop_assert_eq!(parsed.emit(HERE, THERE, &mut out), Ok(len));
                prop_assert_eq!(Message::parse(HERE, THERE, &out[..len]), Ok(parsed));
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let _ = Message::parse(HERE, THERE, &bytes);
        }
    }
}
