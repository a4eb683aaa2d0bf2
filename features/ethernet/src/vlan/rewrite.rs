//! What a tag rewrite does to a frame: so many tags off the front, so many put there.

use std::fmt;

use quiver_core::Packet;
use quiver_wire::EtherType;
use quiver_wire::vlan::VlanId;

use super::frame::TagType;

/// Tags that one rewrite takes off, or puts in front, at most.
pub const TAGS_MAX: usize = 2;
/// Bytes of the two addresses in front of the tags.
const ADDRESSES_BYTES: usize = 12;
/// Bytes of a tag, its type included.
const TAG_BYTES: usize = 4;
/// Bytes of a header without tags: the addresses and a type.
const HEADER_BYTES: usize = ADDRESSES_BYTES + 2;

/// A tag that is put in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// What kind.
    pub kind: TagType,
    /// Which VLAN.
    pub vlan: VlanId,
}

/// One direction of a rewrite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// Tags that are taken off, 0 to [`TAGS_MAX`].
    pub pop: usize,
    /// Tags that are put in front then, the outermost first; [`TAGS_MAX`] at most.
    pub push: Vec<Tag>,
}

/// Why a frame cannot be rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// Shorter than its header and tags.
    Truncated,
    /// Fewer tags than are to be taken off.
    TooFewTags,
    /// No room in front.
    NoHeadroom,
}

/// A rewrite in a word, so that one store changes it: the numbers of tags in bits 0 to 3, the tags
/// that are put in front in 13 bits each from 4 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RewriteWord(pub u32);

impl Rewrite {
    /// As a word.
    pub fn word(&self) -> RewriteWord {
        let mut word = (self.pop.min(TAGS_MAX) | self.push.len().min(TAGS_MAX) << 2) as u32;
        for (place, tag) in self.push.iter().take(TAGS_MAX).enumerate() {
            let service = u32::from(tag.kind == TagType::Dot1ad);
            word |= (service << 12 | u32::from(tag.vlan.get())) << (4 + 13 * place);
        }
        RewriteWord(word)
    }
}

impl RewriteWord {
    #[inline(always)]
    fn pop(self) -> usize {
        (self.0 & 3) as usize
    }

    #[inline(always)]
    fn push(self) -> usize {
        (self.0 >> 2 & 3) as usize
    }

    /// The tag at `place` that is put in front, with these priority bits (IEEE 802.1Q §9.6).
    #[inline(always)]
    fn tag(self, place: usize, priority: u16) -> [u8; TAG_BYTES] {
        let tag = self.0 >> (4 + 13 * place);
        let kind = if tag & 1 << 12 == 0 { EtherType::VLAN } else { EtherType::SERVICE_VLAN };
        let ([a, b], [c, d]) =
            (kind.0.to_be_bytes(), (priority & 0xf000 | tag as u16 & 0x0fff).to_be_bytes());
        [a, b, c, d]
    }

    /// Rewrite a frame. A new tag has the priority and drop eligibility of the tag in whose place
    /// it comes, or without one those of the frame's first tag, or none.
    #[inline]
    pub fn apply(self, packet: &mut Packet) -> Result<(), Unfit> {
        let (pop, push) = (self.pop(), self.push());
        let frame = packet.bytes();
        let Some(addresses) = frame.first_chunk::<ADDRESSES_BYTES>() else {
            return Err(Unfit::Truncated);
        };
        if frame.len() < HEADER_BYTES {
            return Err(Unfit::Truncated);
        }
        let addresses = *addresses;
        let mut priorities = [0; TAGS_MAX];
        for place in 0..pop.max(1) {
            match tci_at(frame, place)? {
                Some(tci) => priorities[place % TAGS_MAX..].fill(tci),
                None if place < pop => return Err(Unfit::TooFewTags),
                None => {}
            }
        }
        let (off, on) = (ADDRESSES_BYTES + TAG_BYTES * pop, ADDRESSES_BYTES + TAG_BYTES * push);
        if packet.headroom() + off < on {
            return Err(Unfit::NoHeadroom);
        }
        if !packet.pull(off) || !packet.push(on) {
            return Err(Unfit::Truncated); // both were looked at
        }
        let frame = packet.bytes_mut();
        frame[..ADDRESSES_BYTES].copy_from_slice(&addresses);
        for (place, at) in (ADDRESSES_BYTES..on).step_by(TAG_BYTES).enumerate() {
            frame[at..at + TAG_BYTES]
                .copy_from_slice(&self.tag(place, priorities[place % TAGS_MAX]));
        }
        Ok(())
    }
}

/// The control information of the tag at `place`, when there is one; a tag needs the type behind
/// it, too.
#[inline(always)]
fn tci_at(frame: &[u8], place: usize) -> Result<Option<u16>, Unfit> {
    let at = ADDRESSES_BYTES + TAG_BYTES * place;
    let kind =
        frame.get(at..at + 2).and_then(|bytes| bytes.first_chunk()).ok_or(Unfit::Truncated)?;
    if !EtherType(u16::from_be_bytes(*kind)).is_vlan() {
        return Ok(None);
    }
    let rest: &[u8; TAG_BYTES] =
        frame.get(at + 2..).and_then(|b| b.first_chunk()).ok_or(Unfit::Truncated)?;
    Ok(Some(u16::from_be_bytes([rest[0], rest[1]])))
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.vlan)
    }
}

/// As the command has it.
impl fmt::Display for Rewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.pop, self.push.as_slice()) {
            (0, []) => return f.write_str("disable"),
            (pop, []) => return write!(f, "pop {pop}"),
            (0, _) => f.write_str("push")?,
            (pop, push) => write!(f, "translate {pop}-{}", push.len())?,
        }
        if let [first, rest @ ..] = self.push.as_slice() {
            write!(f, " {first}")?;
            rest.iter().try_for_each(|tag| write!(f, " {}", tag.vlan))?;
        }
        Ok(())
    }
}
