//! MPLS label stack entries (RFC 3032 §2.1).
//!
//! ```text
//! 0                   20  23 24       32
//! +-------------------+---+-+--------+---------
//! | label             | TC|S| TTL    | payload
//! +-------------------+---+-+--------+---------
//! ```

use zerocopy::network_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{Header, WireError};

/// The greatest label (20 bits).
pub const LABEL_MAX: u32 = 0xf_ffff;
/// Bytes of a label stack entry.
pub const ENTRY_BYTES: usize = 4;
/// The bottom bit of an entry as a number.
pub const BOTTOM: u32 = 1 << 8;

/// Labels with a meaning of their own (RFC 3032 §2.1, RFC 7274 §3).
pub mod special {
    /// IPv4 explicit null.
    pub const IP4_EXPLICIT_NULL: u32 = 0;
    /// Router alert.
    pub const ROUTER_ALERT: u32 = 1;
    /// IPv6 explicit null.
    pub const IP6_EXPLICIT_NULL: u32 = 2;
    /// Implicit null, which is never in a stack.
    pub const IMPLICIT_NULL: u32 = 3;
    /// Entropy label indicator (RFC 6790 §3): the next entry is an entropy label.
    pub const ENTROPY_INDICATOR: u32 = 7;
    /// The greatest special-purpose label.
    pub const LAST: u32 = 15;
}

/// A label stack entry on packet bytes, 4 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct MplsEntry(U32);

impl Header for MplsEntry {
    const NAME: &'static str = "MPLS label stack entry";
}

impl MplsEntry {
    /// An entry from its fields; `label` is taken modulo 2^20, `traffic_class` modulo 8.
    pub fn new(label: u32, traffic_class: u8, is_bottom: bool, ttl: u8) -> Self {
        let class = u32::from(traffic_class & 7) << 9;
        Self(U32::new(
            (label & LABEL_MAX) << 12 | class | u32::from(is_bottom) << 8 | u32::from(ttl),
        ))
    }

    /// An entry as a number.
    #[inline(always)]
    pub fn from_bits(bits: u32) -> Self {
        Self(U32::new(bits))
    }

    /// The entry as a number.
    #[inline(always)]
    pub fn bits(&self) -> u32 {
        self.0.get()
    }

    /// Which label.
    #[inline(always)]
    pub fn label(&self) -> u32 {
        self.0.get() >> 12
    }

    /// Traffic class (RFC 5462), 0 to 7.
    #[inline(always)]
    pub fn traffic_class(&self) -> u8 {
        (self.0.get() >> 9) as u8 & 7
    }

    /// Is it the last one of the stack?
    #[inline(always)]
    pub fn is_bottom(&self) -> bool {
        self.0.get() & 0x100 != 0
    }

    /// Time to live.
    #[inline(always)]
    pub fn ttl(&self) -> u8 {
        self.0.get() as u8
    }
}

/// An entry in plain values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Which label.
    pub label: u32,
    /// Traffic class, 0 to 7.
    pub traffic_class: u8,
    /// The last one of the stack.
    pub is_bottom: bool,
    /// Time to live.
    pub ttl: u8,
}

impl Repr {
    /// Reads an entry; also returns what follows it.
    ///
    /// # Errors
    /// The entry is truncated.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let (entry, payload) = MplsEntry::require(bytes)?;
        let (label, traffic_class) = (entry.label(), entry.traffic_class());
        Ok((Self { label, traffic_class, is_bottom: entry.is_bottom(), ttl: entry.ttl() }, payload))
    }

    /// Writes the entry and returns its length.
    ///
    /// # Errors
    /// `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, WireError> {
        MplsEntry::new(self.label, self.traffic_class, self.is_bottom, self.ttl).write(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_lie_where_rfc_3032_draws_them() {
        let (entry, rest) = Repr::parse(&[0x00, 0x01, 0x0b, 0x40, 0x45]).unwrap();
        assert_eq!(entry, Repr { label: 16, traffic_class: 5, is_bottom: true, ttl: 64 });
        assert_eq!(rest, [0x45]);
        assert!(Repr::parse(&[0; 3]).is_err());
    }

    proptest! {
        #[test]
        fn parse_and_emit_are_inverse(bytes: [u8; 4]) {
            let (repr, _) = Repr::parse(&bytes).unwrap();
            let mut out = [0; 4];
            prop_assert_eq!(repr.emit(&mut out), Ok(4));
            prop_assert_eq!(out, bytes);
        }
    }
}
