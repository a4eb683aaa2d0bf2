//! Reading a GTP-U header: its lengths, and its extension headers to their end (TS 29.281 §5.2).

use core::fmt;

use super::{
    EXTENSIONS_MAX, FLAG_EXTENSION, FLAG_SEQUENCE, GtpuHeader, OptionalPart, PduSession, Repr,
    extension,
};
use crate::Header;

/// Why bytes are no GTP-U message that can be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GtpuBad {
    /// The header, or the length that it announces, is longer than the datagram.
    Truncated,
    /// Another version than 1, or GTP'.
    Version,
    /// An extension header of no length, one beyond the message, or more than [`EXTENSIONS_MAX`].
    Extensions,
    /// An extension header of this type must be understood, and is not.
    NotUnderstood(u8),
}

impl fmt::Display for GtpuBad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GtpuBad::Truncated => f.write_str("GTP-U message longer than its datagram"),
            GtpuBad::Version => f.write_str("another version of GTP than 1, or GTP'"),
            GtpuBad::Extensions => f.write_str("GTP-U extension headers that do not end"),
            GtpuBad::NotUnderstood(kind) => {
                write!(f, "GTP-U extension header of type {kind:#04x}, which must be understood")
            }
        }
    }
}

impl core::error::Error for GtpuBad {}

impl Repr {
    /// Reads the header of a message of which `available` bytes are there; `bytes` are its first
    /// ones, the header whole among them. Also returns the header's length, extensions included.
    ///
    /// # Errors
    /// The header is truncated, or its version or protocol type is not that of GTP-U version 1;
    /// [`GtpuBad`] names the fault.
    #[inline]
    pub fn parse(bytes: &[u8], available: usize) -> Result<(Repr, usize), GtpuBad> {
        let header = GtpuHeader::overlay(bytes).ok_or(GtpuBad::Truncated)?;
        if !header.is_version_1() {
            return Err(GtpuBad::Version);
        }
        let total = GtpuHeader::LEN + usize::from(header.length());
        if total > available {
            return Err(GtpuBad::Truncated);
        }
        let (message_type, teid) = (header.message_type(), header.teid());
        let mut repr = Repr { message_type, teid, sequence: None, session: None, payload_len: 0 };
        let mut len = GtpuHeader::LEN;
        if header.has_optional_part() {
            let message = bytes.get(..total.min(bytes.len())).unwrap_or_default();
            let behind = message.get(GtpuHeader::LEN..).unwrap_or_default();
            let optional = OptionalPart::overlay(behind).ok_or(GtpuBad::Truncated)?;
            repr.sequence = (header.flags & FLAG_SEQUENCE != 0).then(|| optional.sequence.get());
            len += OptionalPart::LEN;
            if header.flags & FLAG_EXTENSION != 0 {
                len += repr.read_extensions(
                    optional.next_extension,
                    message.get(len..).unwrap_or_default(),
                )?;
            }
        }
        repr.payload_len = total - len;
        Ok((repr, len))
    }

    /// Walk the extension headers that `bytes` begin with; returns how long they are together.
    #[inline]
    fn read_extensions(&mut self, mut kind: u8, bytes: &[u8]) -> Result<usize, GtpuBad> {
        let mut at = 0;
        for _ in 0..EXTENSIONS_MAX {
            if kind == extension::NONE {
                return Ok(at);
            }
            let rest = bytes.get(at..).unwrap_or_default();
            let len = usize::from(*rest.first().ok_or(GtpuBad::Extensions)?) * 4;
            let Some([_, content @ .., next]) = rest.get(..len) else {
                return Err(GtpuBad::Extensions);
            };
            let session = if kind == extension::PDU_SESSION_CONTAINER {
                PduSession::read(content)
            } else {
                None
            };
            if session.is_some() {
                self.session = session;
            } else if kind & extension::MUST_UNDERSTAND != 0 {
                return Err(GtpuBad::NotUnderstood(kind));
            }
            (kind, at) = (*next, at + len);
        }
        if kind == extension::NONE { Ok(at) } else { Err(GtpuBad::Extensions) }
    }
}
