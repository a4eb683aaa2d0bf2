//! Encapsulated remote SPAN (ERSPAN, draft-foschiano-erspan-03 §4): a mirrored Ethernet frame
//! behind GRE. Type II (§4.2) has 8 bytes, type III (§4.3) 12, or 20 with a platform subheader.
//!
//! ```text
//! 0                 2               4           8               12             20
//! +----+------------+---+--+-+------+-----------+---------------+--------------+-------
//! |ver.| VLAN       |COS|En|T|sess. | index     |               |              | frame   (II)
//! |ver.| VLAN       |COS|BS|T|sess. | timestamp | SGT, FT, flags| (subheader)  | frame   (III)
//! +----+------------+---+--+-+------+-----------+---------------+--------------+-------
//! ```

use zerocopy::network_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::header::room;
use crate::{EtherType, Header, WireError};

/// Type II behind GRE.
pub const ETHERTYPE_II: EtherType = EtherType(0x88be);
/// Type III behind GRE.
pub const ETHERTYPE_III: EtherType = EtherType(0x22eb);
/// The greatest session: 10 bits.
pub const SESSION_MAX: u16 = 0x3ff;
/// The greatest index of type II: 20 bits.
pub const INDEX_MAX: u32 = 0xf_ffff;
/// The longest header, in bytes.
pub const HEADER_BYTES_MAX: usize = 20;

/// Bytes of a type II header, and of the part of a type III header that is always there.
const II_BYTES: usize = 8;
const III_BYTES: usize = 12;
const SUBHEADER_BYTES: usize = 8;
/// Versions that the header names.
const VERSION_II: u32 = 1;
const VERSION_III: u32 = 2;
/// The frame has its VLAN tag (En, type II).
const TAG_PRESERVED: u8 = 3;
/// The payload is an Ethernet frame (P, type III).
const ETHERNET_FRAME: u32 = 1 << 15;
/// A platform subheader follows (O, type III).
const SUBHEADER: u32 = 1;
const HARDWARE_SHIFT: u32 = 4;
const DIRECTION: u32 = 1 << 3;
const GRANULARITY_SHIFT: u32 = 1;

/// The first word of either type, 4 bytes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct ErspanHeader(U32);

impl Header for ErspanHeader {
    const NAME: &'static str = "ERSPAN";
}

impl ErspanHeader {
    /// 1 for type II, 2 for type III.
    #[inline(always)]
    pub fn version(&self) -> u8 {
        (self.0.get() >> 28) as u8
    }

    /// The mirror session.
    #[inline(always)]
    pub fn session(&self) -> u16 {
        self.0.get() as u16 & SESSION_MAX
    }

    /// Set the VLAN and the class of service of the frame; `encapsulation` says how type II carries
    /// the tag.
    #[inline(always)]
    pub fn set_vlan(&mut self, vlan: u16, class: u8, encapsulation: u8) {
        let kept = self.0.get() & !(0xfff << 16 | 0x1f << 11);
        let vlan = u32::from(vlan & 0xfff) << 16;
        let class = u32::from(class & 7) << 13 | u32::from(encapsulation & 3) << 11;
        self.0.set(kept | vlan | class);
    }
}

/// The tag of the frame behind a type II header is in the frame.
pub const TAG_IN_FRAME: u8 = TAG_PRESERVED;

/// What only one of the types has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Type II.
    II {
        /// How the tag is carried: 0 for a frame without one, 3 where it is in the frame.
        encapsulation: u8,
        /// The port of the source, or what the session numbers by it: 20 bits.
        index: u32,
    },
    /// Type III.
    III {
        /// Is the frame good, bad, short or too long: 0 to 3.
        integrity: u8,
        /// In the unit that `granularity` says.
        timestamp: u32,
        /// Security group tag.
        security_group: u16,
        /// Is the payload an Ethernet frame (P)?
        is_frame: bool,
        /// The kind of frame: 0 is Ethernet, 2 IP.
        frame_type: u8,
        /// Which of the mirroring devices of a system: 6 bits.
        hardware: u8,
        /// Was the frame sent by the mirrored port, not received?
        is_egress: bool,
        /// 0: 100 µs. 1: 100 ns. 2: IEEE 1588. 3: as configured.
        granularity: u8,
        /// The platform subheader: 6 bits of its kind, and what the kind says.
        subheader: Option<[u8; SUBHEADER_BYTES]>,
    },
}

/// The header in plain form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The VLAN of the mirrored frame; 0 without.
    pub vlan: u16,
    /// Its class of service.
    pub class: u8,
    /// Was the frame cut off?
    pub is_truncated: bool,
    /// The mirror session.
    pub session: u16,
    /// The rest.
    pub kind: Kind,
}

impl Repr {
    /// Reads a header; returns it and the frame behind it.
    ///
    /// # Errors
    /// The header is truncated, or of another version.
    pub fn parse(bytes: &[u8]) -> Result<(Repr, &[u8]), WireError> {
        let truncated =
            |need| WireError::Truncated { header: ErspanHeader::NAME, need, have: bytes.len() };
        let word = |place: usize| -> Result<u32, WireError> {
            let field = bytes.get(4 * place..).and_then(|rest| rest.first_chunk::<4>());
            field.map(|field| u32::from_be_bytes(*field)).ok_or(truncated(4 * place + 4))
        };
        let first = word(0)?;
        let two_bits = (first >> 11) as u8 & 3;
        let (kind, length) = match first >> 28 {
            VERSION_II => {
                let index = word(1)? & INDEX_MAX;
                (Kind::II { encapsulation: two_bits, index }, II_BYTES)
            }
            VERSION_III => {
                let (timestamp, last) = (word(1)?, word(2)?);
                let mut length = III_BYTES;
                let subheader = if last & SUBHEADER != 0 {
                    let field = bytes.get(III_BYTES..).and_then(|rest| rest.first_chunk());
                    length += SUBHEADER_BYTES;
                    Some(*field.ok_or(truncated(length))?)
                } else {
                    None
                };
                let kind = Kind::III {
                    integrity: two_bits,
                    timestamp,
                    security_group: (last >> 16) as u16,
                    is_frame: last & ETHERNET_FRAME != 0,
                    frame_type: (last >> 10) as u8 & 0x1f,
                    hardware: (last >> HARDWARE_SHIFT) as u8 & 0x3f,
                    is_egress: last & DIRECTION != 0,
                    granularity: (last >> GRANULARITY_SHIFT) as u8 & 3,
                    subheader,
                };
                (kind, length)
            }
            _ => {
                return Err(WireError::Invalid {
                    header: ErspanHeader::NAME,
                    reason: "the version is neither 1 (type II) nor 2 (type III)",
                });
            }
        };
        let repr = Repr {
            vlan: (first >> 16) as u16 & 0xfff,
            class: (first >> 13) as u8 & 7,
            is_truncated: first & 0x400 != 0,
            session: first as u16 & SESSION_MAX,
            kind,
        };
        Ok((repr, bytes.get(length..).unwrap_or_default()))
    }

    /// Bytes of the header.
    pub fn header_len(&self) -> usize {
        match self.kind {
            Kind::II { .. } => II_BYTES,
            Kind::III { subheader: None, .. } => III_BYTES,
            Kind::III { subheader: Some(_), .. } => III_BYTES + SUBHEADER_BYTES,
        }
    }

    /// Writes the header; returns its length.
    ///
    /// # Errors
    /// `bytes` is too short.
    pub fn emit(&self, bytes: &mut [u8]) -> Result<usize, WireError> {
        let length = self.header_len();
        let out = room(bytes, length)?;
        let (version, two_bits, rest) = match self.kind {
            Kind::II { encapsulation, index } => {
                (VERSION_II, encapsulation, [index & INDEX_MAX, 0])
            }
            Kind::III {
                integrity,
                timestamp,
                security_group,
                is_frame,
                frame_type,
                hardware,
                is_egress,
                granularity,
                subheader,
            } => {
                let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
                let last = u32::from(security_group) << 16
                    | flag(is_frame, ETHERNET_FRAME)
                    | u32::from(frame_type & 0x1f) << 10
                    | u32::from(hardware & 0x3f) << HARDWARE_SHIFT
                    | flag(is_egress, DIRECTION)
                    | u32::from(granularity & 3) << GRANULARITY_SHIFT
                    | flag(subheader.is_some(), SUBHEADER);
                if let (Some(field), Some(place)) = (subheader, out.get_mut(III_BYTES..)) {
                    place.copy_from_slice(&field);
                }
                (VERSION_III, integrity, [timestamp, last])
            }
        };
        let first = version << 28
            | u32::from(self.vlan & 0xfff) << 16
            | u32::from(self.class & 7) << 13
            | u32::from(two_bits & 3) << 11
            | if self.is_truncated { 0x400 } else { 0 }
            | u32::from(self.session & SESSION_MAX);
        let words = [first, rest[0], rest[1]];
        for (place, word) in out.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn the_figures_are_read_as_they_stand() {
        let bytes = [0x10, 0x64, 0xb8, 0x07, 0, 0, 0, 9, 0xaa];
        let (repr, behind) = Repr::parse(&bytes).unwrap();
        assert_eq!((repr.vlan, repr.class, repr.session, behind), (100, 5, 7, &[0xaa][..]));
        assert_eq!(repr.kind, Kind::II { encapsulation: 3, index: 9 });
        let bytes = [0x20, 0, 0x04, 0x03, 0, 0, 1, 0, 0, 5, 0x80, 0x1c, 0xaa];
        let (repr, _) = Repr::parse(&bytes).unwrap();
        assert!(repr.is_truncated);
        let Kind::III { timestamp, security_group, is_frame, hardware, is_egress, .. } = repr.kind
        else {
            panic!("type III");
        };
        assert_eq!((timestamp, security_group, is_frame), (256, 5, true));
        assert_eq!((hardware, is_egress), (1, true));
    }

    #[test]
    fn other_versions_and_missing_bytes_are_refused() {
        assert!(Repr::parse(&[0x00, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(Repr::parse(&[0x30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(Repr::parse(&[0x10, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(Repr::parse(&[0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(Repr::parse(&[0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]).is_err());
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_the_same(
            bytes in prop::collection::vec(any::<u8>(), 0..32),
            version in 1u8..=2,
        ) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = version << 4 | *first & 0xf;
            }
            if let Ok((repr, behind)) = Repr::parse(&bytes) {
                let mut out: Vec<u8> = std::vec![0; HEADER_BYTES_MAX];
                let length = repr.emit(&mut out).unwrap();
                prop_assert_eq!(length + behind.len(), bytes.len());
                prop_assert_eq!(Repr::parse(&out[..length]).map(|(repr, _)| repr), Ok(repr));
                let header = ErspanHeader::overlay(&bytes).unwrap();
                prop_assert_eq!((header.version(), header.session()), (version, repr.session));
            }
        }
    }
}
