//! Generic network virtualization encapsulation (Geneve, RFC 8926 §3.4).
//!
//! ```text
//! 0        1      2          4         7    8
//! +--------+------+----------+---------+----+---------+---------
//! |ver, len| O, C | protocol | VNI     |    | options | payload
//! +--------+------+----------+---------+----+---------+---------
//! ```
//!
//! The length of the options is in units of 4 bytes. An option (§3.5) is a class, a type whose
//! first bit says that it is critical, a length in units of 4 bytes, and its data.

use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{EtherType, Header, WireError};

/// The UDP port (§3.3).
pub const PORT: u16 = 6081;
/// Ethernet frames inside (§3.4).
pub const TRANSPARENT_ETHERNET: EtherType = EtherType(0x6558);
/// The greatest VNI: 24 bits.
pub const VNI_MAX: u32 = 0xff_ffff;
/// Bytes of options at most: 6 bits of units.
pub const OPTION_BYTES_MAX: usize = 63 * 4;

const VERSION_SHIFT: u8 = 6;
const CONTROL: u8 = 0x80;
const CRITICAL: u8 = 0x40;
/// In the type of an option: a receiver that does not know it drops the packet (§3.5.1).
const OPTION_CRITICAL: u8 = 0x80;

/// The part that is always there, 8 bytes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct GeneveHeader {
    version_and_length: u8,
    flags: u8,
    protocol: U16,
    vni: U32,
}

impl Header for GeneveHeader {
    const NAME: &'static str = "Geneve";
}

impl GeneveHeader {
    /// A header without options.
    pub fn new(protocol: EtherType, vni: u32) -> GeneveHeader {
        GeneveHeader {
            version_and_length: 0,
            flags: 0,
            protocol: U16::new(protocol.0),
            vni: U32::new(vni << 8),
        }
    }

    /// The version; only 0 is known.
    #[inline(always)]
    pub fn version(&self) -> u8 {
        self.version_and_length >> VERSION_SHIFT
    }

    /// Bytes of options behind these 8.
    #[inline(always)]
    pub fn options_len(&self) -> usize {
        usize::from(self.version_and_length & 0x3f) * 4
    }

    /// Is it a control packet (O)?
    #[inline(always)]
    pub fn is_control(&self) -> bool {
        self.flags & CONTROL != 0
    }

    /// Is at least one option critical (C)?
    #[inline(always)]
    pub fn has_critical(&self) -> bool {
        self.flags & CRITICAL != 0
    }

    /// What follows the options.
    #[inline(always)]
    pub fn protocol(&self) -> EtherType {
        EtherType(self.protocol.get())
    }

    /// The virtual network.
    #[inline(always)]
    pub fn vni(&self) -> u32 {
        self.vni.get() >> 8
    }

    /// Is it version 0 with neither options nor flags?
    #[inline(always)]
    pub fn is_bare(&self) -> bool {
        self.version_and_length | self.flags == 0
    }
}

/// The fixed part of an option, 4 bytes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct OptionHeader {
    class: U16,
    kind: u8,
    length: u8,
}

impl Header for OptionHeader {
    const NAME: &'static str = "Geneve option";
}

impl OptionHeader {
    /// Who defines the type (IANA option classes).
    pub fn class(&self) -> u16 {
        self.class.get()
    }

    /// The type, with the critical bit.
    pub fn kind(&self) -> u8 {
        self.kind
    }

    /// Must a receiver know it?
    pub fn is_critical(&self) -> bool {
        self.kind & OPTION_CRITICAL != 0
    }

    /// Bytes of data behind these 4.
    pub fn data_len(&self) -> usize {
        usize::from(self.length & 0x1f) * 4
    }
}

/// The options of a header, checked: they fill the announced length exactly (§3.5).
///
/// # Errors
/// The header is truncated or of another version, or an option ends beyond the announced length.
pub fn options(bytes: &[u8]) -> Result<Options<'_>, WireError> {
    let (header, behind) = GeneveHeader::require(bytes)?;
    let length = header.options_len();
    let all = behind.get(..length).ok_or(WireError::Truncated {
        header: GeneveHeader::NAME,
        need: GeneveHeader::LEN + length,
        have: bytes.len(),
    })?;
    let mut rest = all;
    while !rest.is_empty() {
        let (option, behind) = OptionHeader::require(rest)?;
        rest = behind.get(option.data_len()..).ok_or(WireError::Truncated {
            header: OptionHeader::NAME,
            need: OptionHeader::LEN + option.data_len(),
            have: rest.len(),
        })?;
    }
    Ok(Options(all))
}

/// Options that [`options`] has checked, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a>(&'a [u8]);

impl<'a> Iterator for Options<'a> {
    type Item = (&'a OptionHeader, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (option, behind) = OptionHeader::split(self.0)?;
        let (data, rest) = behind.split_at_checked(option.data_len())?;
        self.0 = rest;
        Some((option, data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn the_figure_is_read_as_it_stands() {
        let bytes = [3, 0x40, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 0x83, 1, 9, 9, 9, 9, 0, 3, 4, 0, 0xaa];
        let header = GeneveHeader::overlay(&bytes).unwrap();
        assert_eq!((header.version(), header.options_len(), header.vni()), (0, 12, 7));
        assert!(header.has_critical() && !header.is_control() && !header.is_bare());
        assert_eq!(header.protocol(), TRANSPARENT_ETHERNET);
        let all: Vec<_> = options(&bytes).unwrap().collect();
        assert_eq!(all.len(), 2);
        assert!(all[0].0.is_critical() && !all[1].0.is_critical());
        assert_eq!((all[0].0.class(), all[0].1), (0x102, &[9, 9, 9, 9][..]));
        assert_eq!(GeneveHeader::new(EtherType::IPV4, 7).as_bytes(), [0, 0, 8, 0, 0, 0, 7, 0]);
    }

    #[test]
    fn options_that_do_not_fill_their_length_are_refused() {
        let header = [2, 0, 8, 0, 0, 0, 7, 0];
        for options_bytes in [&[0, 1, 2, 2, 0, 0, 0, 0][..], &[0, 1, 2, 1, 0, 0, 0], &[]] {
            let bytes: Vec<u8> = header.iter().chain(options_bytes).copied().collect();
            assert!(options(&bytes).is_err(), "{options_bytes:?}");
        }
        assert!(options(&header[..7]).is_err());
    }

    proptest! {
        #[test]
        fn options_cover_their_length(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(all) = options(&bytes) {
                let length: usize = all.map(|(_, data)| OptionHeader::LEN + data.len()).sum();
                prop_assert_eq!(length, GeneveHeader::overlay(&bytes).unwrap().options_len());
            }
        }
    }
}
