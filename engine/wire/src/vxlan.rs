//! VXLAN (RFC 7348 §5), and its generic protocol extension (VXLAN-GPE,
//! draft-ietf-nvo3-vxlan-gpe §3).
//!
//! ```text
//! 0       1          3      4            7          8
//! +-------+----------+------+------------+----------+--------
//! | flags | reserved | next | VNI        | reserved | payload
//! +-------+----------+------+------------+----------+--------
//! ```
//!
//! Flag I says that the VNI is valid. In VXLAN the byte before the VNI is reserved; with flag P of
//! VXLAN-GPE it names the payload.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::header::room;
use crate::{Header, WireError};

/// The UDP port of VXLAN (RFC 7348 §5).
pub const PORT: u16 = 4789;
/// The UDP port of VXLAN-GPE.
pub const GPE_PORT: u16 = 4790;
/// The largest VNI: 24 bits.
pub const VNI_MAX: u32 = (1 << 24) - 1;

/// The VNI is valid.
pub const FLAG_VNI: u8 = 0x08;
/// Of VXLAN-GPE: the next protocol is valid.
pub const FLAG_PROTOCOL: u8 = 0x04;
/// Of VXLAN-GPE: operations and maintenance, nothing of a user.
pub const FLAG_OAM: u8 = 0x01;
/// Of VXLAN-GPE: the version, 0.
pub const VERSION_MASK: u8 = 0x30;

/// Payloads that a VXLAN-GPE header names.
pub mod next {
    /// IPv4.
    pub const IP4: u8 = 1;
    /// IPv6.
    pub const IP6: u8 = 2;
    /// Ethernet.
    pub const ETHERNET: u8 = 3;
    /// Network service header (RFC 8300).
    pub const NSH: u8 = 4;
}

/// A header on packet bytes, 8 bytes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct VxlanHeader {
    flags: u8,
    reserved: [u8; 2],
    next: u8,
    vni: [u8; 3],
    last: u8,
}

impl Header for VxlanHeader {
    const NAME: &'static str = "VXLAN";
}

impl VxlanHeader {
    /// The flags.
    #[inline(always)]
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// Of VXLAN-GPE: what follows.
    #[inline(always)]
    pub fn next(&self) -> u8 {
        self.next
    }

    /// The network identifier, 24 bits.
    #[inline(always)]
    pub fn vni(&self) -> u32 {
        let [a, b, c] = self.vni;
        u32::from_be_bytes([0, a, b, c])
    }
}

/// The header in plain form. Reserved bits are zero, and are ignored when they are read (RFC 7348
/// §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The network identifier, at most [`VNI_MAX`].
    pub vni: u32,
    /// Of VXLAN-GPE: what follows.
    pub next: Option<u8>,
}

impl Repr {
    /// Reads a header; returns it and what follows.
    ///
    /// # Errors
    /// The header is truncated, it has no VNI, or it has another version than 0.
    pub fn parse(bytes: &[u8]) -> Result<(Repr, &[u8]), WireError> {
        let (header, rest) = VxlanHeader::split(bytes).ok_or(WireError::Truncated {
            header: VxlanHeader::NAME,
            need: VxlanHeader::LEN,
            have: bytes.len(),
        })?;
        let invalid = |reason| WireError::Invalid { header: VxlanHeader::NAME, reason };
        if header.flags & FLAG_VNI == 0 {
            return Err(invalid("the VNI is not valid"));
        }
        let has_next = header.flags & FLAG_PROTOCOL != 0;
        if has_next && header.flags & VERSION_MASK != 0 {
            return Err(invalid("the version is not 0"));
        }
        Ok((Repr { vni: header.vni(), next: has_next.then_some(header.next) }, rest))
    }

    /// Bytes of the header.
    pub fn header_len(&self) -> usize {
        VxlanHeader::LEN
    }

    /// Writes the header; returns its length.
    ///
    /// # Errors
    /// `bytes` is too short.
    pub fn emit(&self, bytes: &mut [u8]) -> Result<usize, WireError> {
        let place = room(bytes, VxlanHeader::LEN)?;
        let [_, a, b, c] = self.vni.to_be_bytes();
        let flags = FLAG_VNI | if self.next.is_some() { FLAG_PROTOCOL } else { 0 };
        place.copy_from_slice(&[flags, 0, 0, self.next.unwrap_or(0), a, b, c, 0]);
        Ok(VxlanHeader::LEN)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_header_is_read_as_it_is_written(vni in 0..=VNI_MAX, next in any::<Option<u8>>()) {
            let (repr, mut bytes) = (Repr { vni, next }, [0xff; VxlanHeader::LEN]);
            prop_assert_eq!(repr.emit(&mut bytes), Ok(VxlanHeader::LEN));
            prop_assert_eq!(Repr::parse(&bytes), Ok((repr, &[][..])));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..16)) {
            let _ = Repr::parse(&bytes);
        }
    }

    #[test]
    fn reserved_bits_are_ignored_and_a_header_without_vni_is_refused() {
        let read = Repr::parse(&[0xca, 1, 2, 3, 0, 1, 2, 9]).map(|(repr, _)| repr);
        assert_eq!(read, Ok(Repr { vni: 0x102, next: None }));
        assert!(Repr::parse(&[0xf7, 0, 0, 0, 0, 0, 1, 0]).is_err());
        assert!(Repr::parse(&[0x2c, 0, 0, 3, 0, 0, 1, 0]).is_err());
        assert!(Repr::parse(&[8; 7]).is_err());
    }
}
