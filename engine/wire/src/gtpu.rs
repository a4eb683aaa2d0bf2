//! GTP-U, the user plane of mobile networks (3GPP TS 29.281 §5), with the PDU session container (TS
//! 38.415 §5.5).
//!
//! ```text
//! 0     1    2        4          8      10    11   12
//! +-----+----+--------+----------+------+-----+----+------------+---------
//! |flags|type| length |   TEID   | seq. |N-PDU|next| extensions | payload
//! +-----+----+--------+----------+------+-----+----+------------+---------
//! ```
//!
//! The length counts what follows the first 8 bytes. Bytes 8 to 11 are there when one of the flags
//! E, S and PN is set. An extension is a length in units of 4 bytes, its content, and the type of
//! the next one.

mod parse;

use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::header::room;
use crate::{Header, WireError};

pub use parse::GtpuBad;

/// The UDP port that GTP-U is sent to (TS 29.281 §4.4.2).
pub const PORT: u16 = 2152;
/// Extension headers in one packet at most.
pub const EXTENSIONS_MAX: usize = 8;
/// The largest QoS flow identifier: 6 bits.
pub const QFI_MAX: u8 = 0x3f;
/// The longest header that [`Repr`] writes, in bytes.
pub const REPR_BYTES_MAX: usize = 16;

/// Version 1, protocol type GTP.
const VERSION: u8 = 0x30;
const VERSION_MASK: u8 = 0xf0;
/// Extension headers follow.
const FLAG_EXTENSION: u8 = 4;
/// The sequence number means something.
const FLAG_SEQUENCE: u8 = 2;
/// Any of E, S and PN.
const FLAGS_OPTIONAL: u8 = 7;

/// Message types (TS 29.281 §6.1).
pub mod message {
    /// Are you there?
    pub const ECHO_REQUEST: u8 = 1;
    /// Yes.
    pub const ECHO_RESPONSE: u8 = 2;
    /// A G-PDU came for a tunnel that is not known.
    pub const ERROR_INDICATION: u8 = 26;
    /// Which extension headers the sender understands.
    pub const SUPPORTED_EXTENSIONS: u8 = 31;
    /// Nothing more comes by this tunnel.
    pub const END_MARKER: u8 = 254;
    /// A packet of a user.
    pub const G_PDU: u8 = 255;
}

/// Types of extension headers (TS 29.281 §5.2.1).
pub mod extension {
    /// None follows.
    pub const NONE: u8 = 0;
    /// PDU session container: QoS flow and direction.
    pub const PDU_SESSION_CONTAINER: u8 = 0x85;
    /// In this bit of a type: who ends the tunnel must understand the header.
    pub const MUST_UNDERSTAND: u8 = 0x80;
}

/// Types of information elements (TS 29.281 §8.1).
pub mod element {
    /// Recovery, of 2 bytes: type and restart counter, which is 0 and ignored (§8.2).
    pub const RECOVERY: u8 = 14;
}

/// The part that is always there, 8 bytes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct GtpuHeader {
    flags: u8,
    message_type: u8,
    length: U16,
    teid: U32,
}

impl Header for GtpuHeader {
    const NAME: &'static str = "GTP-U";
}

/// The part that flags announce, 4 bytes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
struct OptionalPart {
    sequence: U16,
    n_pdu: u8,
    next_extension: u8,
}

impl Header for OptionalPart {
    const NAME: &'static str = "GTP-U";
}

impl GtpuHeader {
    /// The message type ([`message`]).
    #[inline(always)]
    pub fn message_type(&self) -> u8 {
        self.message_type
    }

    /// Bytes behind these 8, as announced.
    #[inline(always)]
    pub fn length(&self) -> u16 {
        self.length.get()
    }

    /// The tunnel at its receiver.
    #[inline(always)]
    pub fn teid(&self) -> u32 {
        self.teid.get()
    }

    /// Version 1 of GTP, not GTP'.
    #[inline(always)]
    pub fn is_version_1(&self) -> bool {
        self.flags & VERSION_MASK == VERSION
    }

    /// Do bytes 8 to 11 follow?
    #[inline(always)]
    fn has_optional_part(&self) -> bool {
        self.flags & FLAGS_OPTIONAL != 0
    }
}

/// Which way a packet goes (TS 38.415 §5.5.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the user, PDU type 0.
    Downlink,
    /// From the user, PDU type 1.
    Uplink,
}

/// What a PDU session container says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PduSession {
    /// Which way.
    pub direction: Direction,
    /// QoS flow identifier, 6 bits.
    pub qfi: u8,
    /// Reflective QoS; only downlink packets can say so.
    pub reflective: bool,
}

/// A GTP-U header in plain values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The message type ([`message`]).
    pub message_type: u8,
    /// The tunnel at its receiver.
    pub teid: u32,
    /// Its number, where there is one.
    pub sequence: Option<u16>,
    /// What the PDU session container says, if there is one.
    pub session: Option<PduSession>,
    /// Bytes behind the header and its extensions.
    pub payload_len: usize,
}

impl Repr {
    /// Bytes of the header: 8, 12 or 16.
    #[inline(always)]
    pub const fn len(&self) -> usize {
        match (self.sequence, self.session) {
            (_, Some(_)) => 16,
            (Some(_), None) => 12,
            (None, None) => 8,
        }
    }

    /// Never.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Writes the header and returns its length.
    ///
    /// # Errors
    /// The message is longer than its length field can say, or `out` is too short.
    #[inline]
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let len = self.len();
        let behind = (len - GtpuHeader::LEN).checked_add(self.payload_len);
        let Some(length) = behind.and_then(|bytes| u16::try_from(bytes).ok()) else {
            return Err(WireError::Invalid {
                header: GtpuHeader::NAME,
                reason: "payload too long",
            });
        };
        let out = room(out, len)?;
        let mut flags = VERSION;
        if self.session.is_some() {
            flags |= FLAG_EXTENSION;
        }
        if self.sequence.is_some() {
            flags |= FLAG_SEQUENCE;
        }
        let (length, teid) = (U16::new(length), U32::new(self.teid));
        let at = GtpuHeader { flags, message_type: self.message_type, length, teid }.write(out)?;
        if let Some(rest) = out.get_mut(at..).filter(|rest| !rest.is_empty()) {
            let sequence = U16::new(self.sequence.unwrap_or(0));
            let next_extension = match self.session {
                Some(_) => extension::PDU_SESSION_CONTAINER,
                None => extension::NONE,
            };
            let at = OptionalPart { sequence, n_pdu: 0, next_extension }.write(rest)?;
            if let Some((container, session)) = rest.get_mut(at..).zip(self.session) {
                container.copy_from_slice(&session.bytes());
            }
        }
        Ok(len)
    }
}

impl PduSession {
    /// The container as an extension header, the last one.
    #[inline(always)]
    fn bytes(self) -> [u8; 4] {
        let (kind, reflective) = match self.direction {
            Direction::Downlink => (0, u8::from(self.reflective) << 6),
            Direction::Uplink => (0x10, 0),
        };
        [1, kind, reflective | self.qfi & QFI_MAX, extension::NONE]
    }

    /// From the content of the extension header. Types of PDUs that TS 38.415 does not have are
    /// none.
    #[inline(always)]
    fn read(content: &[u8]) -> Option<PduSession> {
        let &[kind, flow, ..] = content else { return None };
        let direction = match kind >> 4 {
            0 => Direction::Downlink,
            1 => Direction::Uplink,
            _ => return None,
        };
        let reflective = direction == Direction::Downlink && flow & 0x40 != 0;
        Some(PduSession { direction, qfi: flow & QFI_MAX, reflective })
    }
}

#[cfg(test)]
mod tests;
