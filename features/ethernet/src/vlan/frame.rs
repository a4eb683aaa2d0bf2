//! The tags of a frame (IEEE 802.1Q §9), read as sub-interfaces are told apart by them.

use quiver_wire::vlan::{VlanId, VlanTag};
use quiver_wire::{EtherType, Header};

/// Where the first tag, or the type, stands.
const TYPE_AT: usize = 12;

/// What kind of tag comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TagType {
    /// 802.1Q customer tag, 0x8100.
    Dot1q,
    /// 802.1ad service tag, 0x88a8.
    Dot1ad,
}

impl TagType {
    /// Of a type field that announces a tag.
    #[inline(always)]
    pub fn of(ether_type: EtherType) -> Option<TagType> {
        match ether_type {
            EtherType::VLAN => Some(TagType::Dot1q),
            EtherType::SERVICE_VLAN => Some(TagType::Dot1ad),
            _ => None,
        }
    }

    /// As it stands in a frame.
    pub fn ether_type(self) -> EtherType {
        match self {
            TagType::Dot1q => EtherType::VLAN,
            TagType::Dot1ad => EtherType::SERVICE_VLAN,
        }
    }
}

/// A frame's tags. A tag with VID 0 carries a priority and no VLAN: it counts as none (IEEE 802.1Q
/// §6.9.1), and what stands behind it is not looked at as a tag. The second tag counts when it is a
/// customer tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTags {
    /// The first tag.
    pub outer: Option<(TagType, VlanId)>,
    /// The second tag.
    pub inner: Option<VlanId>,
    /// Is there a further tag behind those two?
    pub deeper: bool,
    /// What follows behind all that was read, priority tags included.
    pub ether_type: EtherType,
    /// Bytes of all that was read, from the first address on.
    pub header_bytes: usize,
}

/// The tag that ends at `end`, with what follows it.
#[inline(always)]
fn tag_at(frame: &[u8], at: usize) -> Option<&VlanTag> {
    VlanTag::overlay(frame.get(at + 2..)?)
}

impl FrameTags {
    /// Read them; `None` when the frame ends before its type field, or announces a tag that it has
    /// not.
    #[inline]
    pub fn read(frame: &[u8]) -> Option<FrameTags> {
        let first = frame.get(TYPE_AT..)?.first_chunk()?;
        let mut tags = FrameTags {
            outer: None,
            inner: None,
            deeper: false,
            ether_type: EtherType(u16::from_be_bytes(*first)),
            header_bytes: TYPE_AT + 2,
        };
        let Some(kind) = TagType::of(tags.ether_type) else { return Some(tags) };
        let outer = tag_at(frame, TYPE_AT)?;
        tags.step_over(outer);
        if outer.vlan() == VlanId::PRIORITY {
            return Some(tags);
        }
        tags.outer = Some((kind, outer.vlan()));
        if tags.ether_type != EtherType::VLAN {
            return Some(tags);
        }
        let inner = tag_at(frame, TYPE_AT + VlanTag::LEN)?;
        tags.step_over(inner);
        if inner.vlan() == VlanId::PRIORITY {
            return Some(tags);
        }
        tags.inner = Some(inner.vlan());
        tags.deeper = tags.ether_type.is_vlan();
        Some(tags)
    }

    #[inline(always)]
    fn step_over(&mut self, tag: &VlanTag) {
        self.ether_type = tag.ether_type();
        self.header_bytes += VlanTag::LEN;
    }
}

/// What frames have in common that [`FrameTags::read`] reads alike, but for priorities: eight bytes
/// from the first type on under a mask, and the last type.
#[derive(Clone, Copy, Debug)]
pub struct TagShape {
    /// Types and tags, and the last type where that lies in the eight bytes.
    tags: u64,
    mask: u64,
    ether_type: [u8; 2],
    header_bytes: u16,
}

/// Headers of so many bytes lie, behind the addresses, within the eight that are compared at once.
const WITHIN_BYTES: u16 = 18;
/// Of a type field and a VID: all, but for priority and drop eligibility.
const TAG_MASK: u64 = 0xffff_0fff;

impl TagShape {
    /// That of no frame.
    pub const OF_NONE: TagShape =
        TagShape { tags: 1, mask: 0, ether_type: [0; 2], header_bytes: 14 };

    /// That of `frame`, whose tags are `tags`.
    pub fn of(frame: &[u8], tags: &FrameTags) -> TagShape {
        let mask = match tags.header_bytes {
            14 => 0xffff << 48,
            18 => TAG_MASK << 32 | 0xffff << 16,
            _ => TAG_MASK << 32 | TAG_MASK,
        };
        let Some(first) = first_tags(frame) else { return TagShape::OF_NONE };
        let ether_type = tags.ether_type.0.to_be_bytes();
        let header_bytes = tags.header_bytes as u16;
        TagShape { tags: first & mask, mask, ether_type, header_bytes }
    }

    /// Has a frame these tags, and the same type behind them?
    #[inline(always)]
    pub fn fits(&self, frame: &[u8]) -> bool {
        first_tags(frame).is_some_and(|first| first & self.mask == self.tags)
            && (self.header_bytes <= WITHIN_BYTES || self.ends(frame))
    }

    /// Has a frame the same type behind its two tags?
    #[inline(always)]
    fn ends(&self, frame: &[u8]) -> bool {
        let end = self.header_bytes();
        frame.get(end - 2..end).is_some_and(|found| found == self.ether_type)
    }

    /// Bytes of addresses, tags and type.
    #[inline(always)]
    pub fn header_bytes(&self) -> usize {
        usize::from(self.header_bytes)
    }
}

/// The eight bytes behind the addresses: two tags, or as much as there is of them and what follows.
#[inline(always)]
fn first_tags(frame: &[u8]) -> Option<u64> {
    frame.get(TYPE_AT..)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count(tags: &FrameTags) -> usize {
        usize::from(tags.outer.is_some())
            + usize::from(tags.inner.is_some())
            + usize::from(tags.deeper)
    }

    fn frame(behind_addresses: &[u8]) -> Vec<u8> {
        [&[0; 12][..], behind_addresses].concat()
    }

    #[test]
    fn a_priority_tag_is_no_vlan_outside_and_inside() {
        let tags = FrameTags::read(&frame(&[0x81, 0, 0xe0, 0, 8, 0])).unwrap();
        assert_eq!((tags.outer, tags.ether_type, tags.header_bytes), (None, EtherType::IPV4, 18));
        let tags = FrameTags::read(&frame(&[0x88, 0xa8, 0, 7, 0x81, 0, 0xe0, 0, 8, 0])).unwrap();
        assert_eq!((count(&tags), tags.ether_type, tags.header_bytes), (1, EtherType::IPV4, 22));
    }

    /// Bytes as tags are made of, so that all cases come.
    fn telling_bytes() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            Just(0x81u8),
            Just(0x88),
            Just(0xa8),
            Just(0),
            Just(8),
            Just(0x60),
            any::<u8>()
        ];
        prop::collection::vec(byte, 0..16)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn frames_of_one_shape_are_read_alike(first in telling_bytes(), second in telling_bytes()) {
            let (first, second) = (frame(&first), frame(&second));
            let Some(tags) = FrameTags::read(&first) else { return Ok(()) };
            let shape = TagShape::of(&first, &tags);
            prop_assert_eq!(shape.fits(&first), first.len() >= 20);
            if shape.fits(&second) {
                prop_assert_eq!(FrameTags::read(&second), Some(tags));
            }
            prop_assert!(!TagShape::OF_NONE.fits(&second));
        }
    }

    #[test]
    fn a_third_tag_is_seen_and_not_read() {
        let three = frame(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 0x81, 0, 0, 9, 8, 0]);
        let tags = FrameTags::read(&three).unwrap();
        assert_eq!((count(&tags), tags.ether_type, tags.header_bytes), (3, EtherType::VLAN, 22));
    }

    #[test]
    fn a_tag_that_is_cut_short_is_refused_and_never_a_panic() {
        let two = frame(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 8, 0]);
        assert!(FrameTags::read(&two).is_some());
        for length in 0..two.len() {
            assert_eq!(FrameTags::read(&two[..length]), None, "{length}");
        }
    }
}
