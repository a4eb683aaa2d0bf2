//! Label stacks on packet bytes (RFC 3032 §2.1): the top entry, and what is behind the last one.

use quiver_core::Packet;
use quiver_wire::mpls::{BOTTOM, ENTRY_BYTES};

/// Entries of a stack that are looked at, at most: deeper than networks nest tunnels.
pub(crate) const STACK_ENTRIES_MAX: usize = 16;
/// Bits of an entry that are not its label: traffic class, bottom, TTL.
pub(crate) const NOT_LABEL: u32 = 0xfff;
/// The traffic class of an entry.
pub(crate) const CLASS: u32 = 0xe00;

/// The top entry of the stack that a packet begins with.
#[inline(always)]
pub(crate) fn top(packet: &Packet) -> Option<u32> {
    packet.bytes().first_chunk().map(|entry| u32::from_be_bytes(*entry))
}

/// The entry at a place of a stack.
#[inline(always)]
pub(crate) fn entry_at(bytes: &[u8], place: usize) -> Option<u32> {
    let entry = bytes.get(place * ENTRY_BYTES..)?.first_chunk()?;
    Some(u32::from_be_bytes(*entry))
}

/// Write the entry at a byte of a packet; false beyond its end.
#[inline(always)]
pub(crate) fn write_at(packet: &mut Packet, at: usize, entry: u32) -> bool {
    let place = packet.bytes_mut().get_mut(at..).and_then(|rest| rest.first_chunk_mut());
    place.map(|place| *place = entry.to_be_bytes()).is_some()
}

/// Label, bottom bit, traffic class and TTL of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry(pub u32);

impl Entry {
    #[inline(always)]
    pub fn label(self) -> u32 {
        self.0 >> 12
    }

    #[inline(always)]
    pub fn is_bottom(self) -> bool {
        self.0 & BOTTOM != 0
    }

    #[inline(always)]
    pub fn ttl(self) -> u8 {
        self.0 as u8
    }

    /// Traffic class, 0 to 7.
    #[inline(always)]
    pub fn class(self) -> u8 {
        (self.0 >> 9) as u8 & 7
    }
}

/// In uniform mode the label behind one that was taken off has the class and the TTL of that one,
/// but never a longer life (RFC 3443 §3.1).
pub(crate) fn write_into_next(popped: Entry, next: Entry, packet: &mut Packet) {
    let ttl = u32::from(popped.ttl().min(next.ttl()));
    write_at(packet, 0, next.0 & !(CLASS | 0xff) | popped.0 & CLASS | ttl);
}

/// Bytes of the stack that `bytes` begin with; `None` when it does not end within
/// [`STACK_ENTRIES_MAX`] entries.
pub(crate) fn stack_bytes(bytes: &[u8]) -> Option<usize> {
    let mut places = 0..STACK_ENTRIES_MAX;
    let last = places.find_map(|place| match entry_at(bytes, place) {
        None => Some(None),
        Some(entry) => Entry(entry).is_bottom().then_some(Some(place)),
    });
    last.flatten().map(|place| (place + 1) * ENTRY_BYTES)
}

/// The IP version of what is behind the last label; 0 for none.
#[inline(always)]
pub(crate) fn version(bytes: &[u8]) -> u8 {
    bytes.first().map_or(0, |byte| byte >> 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_ends_at_its_bottom_bit_or_is_too_deep() {
        let mut bytes = [0u8, 1, 0, 64].repeat(3);
        assert_eq!(stack_bytes(&bytes), None);
        bytes[10] |= 1;
        assert_eq!(stack_bytes(&bytes), Some(12));
        let mut deep = [0u8, 1, 0, 64].repeat(STACK_ENTRIES_MAX + 1);
        deep[STACK_ENTRIES_MAX * 4 + 2] |= 1;
        assert_eq!(stack_bytes(&deep), None);
        deep[STACK_ENTRIES_MAX * 4 - 2] |= 1;
        assert_eq!(stack_bytes(&deep), Some(STACK_ENTRIES_MAX * 4));
    }
}
