//! ICMP for IPv4 (RFC 792; next-hop MTU: RFC 1191 §4).
//!
//! ```text
//! 0    1    2         4                   8
//! +----+----+---------+-------------------+--------
//! |type|code| check   | depends on type   | data
//! +----+----+---------+-------------------+--------
//! ```

use core::net::Ipv4Addr;

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::Sum;
use crate::header::room;
use crate::{Header, WireError};

/// Types of ICMP messages.
pub mod kind {
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 0;
    /// Destination unreachable.
    pub const DESTINATION_UNREACHABLE: u8 = 3;
    /// Redirect.
    pub const REDIRECT: u8 = 5;
    /// Echo request.
    pub const ECHO_REQUEST: u8 = 8;
    /// Time exceeded.
    pub const TIME_EXCEEDED: u8 = 11;
    /// Parameter problem.
    pub const PARAMETER_PROBLEM: u8 = 12;
}

/// Codes of "destination unreachable" (RFC 792; RFC 1812 §5.2.7.1).
pub mod unreachable {
    /// No route.
    pub const NETWORK: u8 = 0;
    /// The neighbour does not answer.
    pub const HOST: u8 = 1;
    /// Nobody here speaks the protocol.
    pub const PROTOCOL: u8 = 2;
    /// Nobody here listens on the port.
    pub const PORT: u8 = 3;
    /// Too big for the next link, and not to be fragmented.
    pub const FRAGMENTATION_NEEDED: u8 = 4;
    /// Forbidden by the administrator.
    pub const PROHIBITED: u8 = 13;
}

/// The first 8 bytes of an ICMP message on packet bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Icmp4Header {
    /// One of [`kind`].
    pub kind: u8,
    /// Depends on the type.
    pub code: u8,
    checksum: U16,
    /// Depends on the type: identifier and sequence number of an echo, for one.
    pub rest: [u8; 4],
}

impl Header for Icmp4Header {
    const NAME: &'static str = "ICMP";
}

impl Icmp4Header {
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

    /// An error message: never answered by another one (RFC 1812 §4.3.2.7).
    #[inline]
    pub fn is_error(&self) -> bool {
        use kind::*;
        // 4 is source quench, deprecated but not to be answered either.
        matches!(
            self.kind,
            DESTINATION_UNREACHABLE | 4 | REDIRECT | TIME_EXCEEDED | PARAMETER_PROBLEM
        )
    }
}

/// What an ICMP message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Are you there?
    EchoRequest {
        /// Which ping.
        identifier: u16,
        /// Which of its packets.
        sequence: u16,
    },
    /// I am.
    EchoReply {
        /// As in the request.
        identifier: u16,
        /// As in the request.
        sequence: u16,
    },
    /// The packet in the data could not be delivered.
    DestinationUnreachable {
        /// One of [`mod@unreachable`].
        code: u8,
        /// MTU of the next link in bytes for code 4, otherwise 0.
        next_hop_mtu: u16,
    },
    /// There is a better gateway for the packet in the data.
    Redirect {
        /// 0 for the network, 1 for the host.
        code: u8,
        /// The better one.
        gateway: Ipv4Addr,
    },
    /// The packet in the data took too long.
    TimeExceeded {
        /// 0: hops, 1: reassembly.
        code: u8,
    },
    /// The packet in the data has a bad header.
    ParameterProblem {
        /// 0 if the pointer tells where.
        code: u8,
        /// The octet that is wrong.
        pointer: u8,
    },
    /// Anything else, as it stands.
    Other {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
        /// The four bytes behind the checksum.
        rest: [u8; 4],
    },
}

/// An ICMP message in plain values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr<'a> {
    /// What it says.
    pub message: Message,
    /// Echo data, or the start of the packet that an error is about.
    pub data: &'a [u8],
}

impl<'a> Repr<'a> {
    /// Reads a message (all of `bytes`) whose checksum is right. A known type whose unused bytes
    /// are not zero is [`Message::Other`].
    ///
    /// # Errors
    /// The message is truncated, or its checksum is wrong.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (header, data) = Icmp4Header::require(bytes)?;
        if !Sum::new().bytes(bytes).is_good() {
            return Err(WireError::Invalid {
                header: Icmp4Header::NAME,
                reason: "checksum is wrong",
            });
        }
        let Icmp4Header { kind, code, rest, .. } = *header;
        let [a, b, c, d] = rest;
        let (first, second) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let message = match (kind, code, first, second) {
            (kind::ECHO_REQUEST, 0, identifier, sequence) => {
                Message::EchoRequest { identifier, sequence }
            }
            (kind::ECHO_REPLY, 0, identifier, sequence) => {
                Message::EchoReply { identifier, sequence }
            }
            (kind::DESTINATION_UNREACHABLE, code, 0, next_hop_mtu) => {
                Message::DestinationUnreachable { code, next_hop_mtu }
            }
            (kind::REDIRECT, code, ..) => {
                Message::Redirect { code, gateway: Ipv4Addr::from_octets(rest) }
            }
            (kind::TIME_EXCEEDED, code, 0, 0) => Message::TimeExceeded { code },
            (kind::PARAMETER_PROBLEM, code, _, 0) if b == 0 => {
                Message::ParameterProblem { code, pointer: a }
            }
            _ => Message::Other { kind, code, rest },
        };
        Ok(Self { message, data })
    }

    /// Bytes of the whole message.
    pub fn len(&self) -> usize {
        Icmp4Header::LEN + self.data.len()
    }

    /// Never: a message has a header.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Writes the message, checksum included, and returns its length.
    ///
    /// # Errors
    /// `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let out = room(out, self.len())?;
        let mut header = self.message.header();
        let sum = Sum::new().bytes(header.as_bytes()).bytes(self.data);
        header.set_checksum(sum.checksum());
        header.write(out)?;
        if let Some(data) = out.get_mut(Icmp4Header::LEN..) {
            data.copy_from_slice(self.data);
        }
        Ok(self.len())
    }
}

impl Message {
    /// The header that says it, its checksum zero.
    pub fn header(&self) -> Icmp4Header {
        let pair = |first: u16, second: u16| {
            let ([a, b], [c, d]) = (first.to_be_bytes(), second.to_be_bytes());
            [a, b, c, d]
        };
        let (kind, code, rest) = match *self {
            Message::EchoRequest { identifier, sequence } => {
                (kind::ECHO_REQUEST, 0, pair(identifier, sequence))
            }
            Message::EchoReply { identifier, sequence } => {
                (kind::ECHO_REPLY, 0, pair(identifier, sequence))
            }
            Message::DestinationUnreachable { code, next_hop_mtu } => {
                (kind::DESTINATION_UNREACHABLE, code, pair(0, next_hop_mtu))
            }
            Message::Redirect { code, gateway } => (kind::REDIRECT, code, gateway.octets()),
            Message::TimeExceeded { code } => (kind::TIME_EXCEEDED, code, [0; 4]),
            Message::ParameterProblem { code, pointer } => {
                (kind::PARAMETER_PROBLEM, code, [pointer, 0, 0, 0])
            }
            Message::Other { kind, code, rest } => (kind, code, rest),
        };
        Icmp4Header { kind, code, checksum: U16::ZERO, rest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_packet_too_big_tells_the_mtu() {
        let message = Message::DestinationUnreachable {
            code: unreachable::FRAGMENTATION_NEEDED,
            next_hop_mtu: 1400,
        };
        let mut out = [0; 9];
        assert_eq!(Repr { message, data: &[7] }.emit(&mut out), Ok(9));
        assert_eq!((out[..2].as_ref(), out[4..].as_ref()), (&[3, 4][..], &[0, 0, 5, 0x78, 7][..]));
        assert_eq!(Repr::parse(&out).unwrap().message, message);
        assert!(Icmp4Header::overlay(&out).unwrap().is_error());
        out[8] = 8;
        assert!(Repr::parse(&out).is_err());
    }

    proptest! {
        #[test]
        fn parse_and_emit_are_inverse(
            pick in 0usize..8, kind: u8, code in 0u8..3, mut rest: [u8; 4], keep: [bool; 4],
            data in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            for (byte, keep) in rest.iter_mut().zip(keep) {
                *byte *= u8::from(keep);
            }
            let kind = *[0, 3, 5, 8, 11, 12].get(pick).unwrap_or(&kind);
            let mut bytes = [0; 48];
            let repr = Repr { message: Message::Other { kind, code, rest }, data: &data };
            let len = repr.emit(&mut bytes).unwrap();
            let parsed = Repr::parse(&bytes[..len]).unwrap();
            let mut out = [0; 48];
            prop_assert_eq!(parsed.emit(&mut out), Ok(len));
            prop_assert_eq!(out, bytes);
            prop_assert_eq!(Repr::parse(&out[..len]), Ok(parsed));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let _ = Repr::parse(&bytes);
        }
    }
}
