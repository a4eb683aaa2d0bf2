//! VLAN tags (IEEE 802.1Q §9.6). The tag protocol identifier is the EtherType field before the tag.
//!
//! ```text
//! 0               2          4
//! +---+-+---------+----------+---------
//! |PCP|D|   VID   | type     | payload
//! +---+-+---------+----------+---------
//! ```

use core::fmt;

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{EtherType, Header, WireError};

/// A VLAN identifier, 0 to 4095. 0 means "priority only", 4095 is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VlanId(u16);

impl VlanId {
    /// The tag carries a priority, no VLAN.
    pub const PRIORITY: Self = Self(0);

    /// A VLAN that can be configured: 1 to 4094.
    pub const fn new(id: u16) -> Option<Self> {
        if id >= 1 && id <= 4094 { Some(Self(id)) } else { None }
    }

    /// The low twelve bits of a tag.
    #[inline(always)]
    pub const fn from_tci(tci: u16) -> Self {
        Self(tci & 0x0fff)
    }

    /// As a number, 0 to 4095.
    #[inline(always)]
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for VlanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A tag on packet bytes with the EtherType behind it, 4 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct VlanTag {
    tci: U16,
    ether_type: U16,
}

impl Header for VlanTag {
    const NAME: &'static str = "VLAN tag";
}

impl VlanTag {
    /// A tag from its fields; `priority` is taken modulo 8.
    pub fn new(priority: u8, drop_eligible: bool, vlan: VlanId, ether_type: EtherType) -> Self {
        let tci = u16::from(priority & 7) << 13 | u16::from(drop_eligible) << 12 | vlan.0;
        Self { tci: U16::new(tci), ether_type: U16::new(ether_type.0) }
    }

    /// The whole tag control information.
    #[inline(always)]
    pub fn tci(&self) -> u16 {
        self.tci.get()
    }

    /// Which VLAN.
    #[inline(always)]
    pub fn vlan(&self) -> VlanId {
        VlanId::from_tci(self.tci())
    }

    /// Priority code point, 0 to 7.
    #[inline(always)]
    pub fn priority(&self) -> u8 {
        (self.tci() >> 13) as u8
    }

    /// Drop eligible indicator.
    #[inline(always)]
    pub fn drop_eligible(&self) -> bool {
        self.tci() & 0x1000 != 0
    }

    /// What follows.
    #[inline(always)]
    pub fn ether_type(&self) -> EtherType {
        EtherType(self.ether_type.get())
    }

    /// Puts the frame into another VLAN; priority stays.
    #[inline(always)]
    pub fn set_vlan(&mut self, vlan: VlanId) {
        self.tci.set(self.tci() & 0xf000 | vlan.0);
    }
}

/// A tag in plain values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Priority code point, 0 to 7.
    pub priority: u8,
    /// Drop eligible indicator.
    pub drop_eligible: bool,
    /// Which VLAN.
    pub vlan: VlanId,
    /// What follows.
    pub ether_type: EtherType,
}

impl Repr {
    /// Reads a tag; also returns what follows it.
    ///
    /// # Errors
    /// The tag is truncated.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let (tag, payload) = VlanTag::require(bytes)?;
        let repr = Self {
            priority: tag.priority(),
            drop_eligible: tag.drop_eligible(),
            vlan: tag.vlan(),
            ether_type: tag.ether_type(),
        };
        Ok((repr, payload))
    }

    /// Writes the tag and returns its length.
    ///
    /// # Errors
    /// `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, WireError> {
        VlanTag::new(self.priority, self.drop_eligible, self.vlan, self.ether_type).write(out)
    }
}

/// The tags at the front of a frame: none, one or two. A third one is payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tags {
    /// The first tag with its own protocol identifier.
    pub outer: Option<(EtherType, VlanId)>,
    /// The second tag with its own protocol identifier.
    pub inner: Option<(EtherType, VlanId)>,
    /// What follows the tags.
    pub ether_type: EtherType,
    /// Bytes that the tags take: 0, 4 or 8.
    pub len: usize,
}

impl Tags {
    /// Walks the tags that follow an Ethernet header whose type field is `ether_type`. `None` if a
    /// tag is announced and its bytes are missing.
    #[inline]
    pub fn walk(ether_type: EtherType, bytes: &[u8]) -> Option<Self> {
        let mut tags = Self { outer: None, inner: None, ether_type, len: 0 };
        if !ether_type.is_vlan() {
            return Some(tags);
        }
        let (outer, rest) = VlanTag::split(bytes)?;
        tags = Self {
            outer: Some((ether_type, outer.vlan())),
            ether_type: outer.ether_type(),
            len: VlanTag::LEN,
            ..tags
        };
        if tags.ether_type.is_vlan() {
            let inner = VlanTag::overlay(rest)?;
            tags.inner = Some((tags.ether_type, inner.vlan()));
            tags.ether_type = inner.ether_type();
            tags.len += VlanTag::LEN;
        }
        Some(tags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_tags_are_walked_and_a_third_is_payload() {
        let bytes = [0x60, 0x64, 0x81, 0x00, 0x00, 0xc8, 0x81, 0x00, 0x00, 0x01, 0x08, 0x00];
        let tags = Tags::walk(EtherType::SERVICE_VLAN, &bytes).unwrap();
        assert_eq!(tags.outer, Some((EtherType::SERVICE_VLAN, VlanId(100))));
        assert_eq!(tags.inner, Some((EtherType::VLAN, VlanId(200))));
        assert_eq!((tags.ether_type, tags.len), (EtherType::VLAN, 8));
    }

    #[test]
    fn a_tag_without_its_bytes_is_refused() {
        assert_eq!(Tags::walk(EtherType::VLAN, &[0, 1, 8]), None);
        assert_eq!(Tags::walk(EtherType::VLAN, &[0, 1, 0x81, 0, 0, 1, 8]), None);
        assert_eq!(Tags::walk(EtherType::IPV4, &[]).unwrap().len, 0);
    }

    #[test]
    fn moving_a_frame_to_another_vlan_keeps_its_priority() {
        let mut tag = VlanTag::new(5, true, VlanId(7), EtherType::IPV6);
        tag.set_vlan(VlanId(4094));
        assert_eq!((tag.priority(), tag.drop_eligible(), tag.vlan().get()), (5, true, 4094));
        assert_eq!((VlanId::new(0), VlanId::new(4095)), (None, None));
    }

    proptest! {
        #[test]
        fn parse_and_emit_are_inverse(bytes: [u8; 4]) {
            let (repr, _) = Repr::parse(&bytes).unwrap();
            let mut out = [0; 4];
            prop_assert_eq!(repr.emit(&mut out), Ok(4));
            prop_assert_eq!(out, bytes);
        }

        #[test]
        fn no_bytes_panic(ether_type: u16, bytes in prop::collection::vec(any::<u8>(), 0..16)) {
            let _ = Tags::walk(EtherType(ether_type), &bytes);
            let _ = Tags::walk(EtherType::VLAN, &bytes);
        }
    }
}
