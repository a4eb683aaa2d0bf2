//! Labels and link header of an adjacency in front of a packet.

use quiver_core::memory::packet::PacketFlags;
use quiver_core::{NodeId, Packet};
use quiver_forwarding::adjacency::{Adjacencies, Adjacency, LONG_STACK_BYTES, REWRITE_BYTES_MAX};
use quiver_wire::mpls::{BOTTOM, ENTRY_BYTES};

use crate::reasons::MplsDrop;
use crate::stack::{NOT_LABEL, write_at};

/// What new labels say of what is behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Behind {
    /// Is there no label behind them?
    pub is_last: bool,
    /// Traffic class, 0 to 7.
    pub class: u8,
    /// TTL.
    pub ttl: u8,
    /// Does the last of the new labels stand in place of another one, so that it has that one's
    /// class and TTL in any mode?
    pub is_swap: bool,
}

impl Behind {
    #[inline(always)]
    fn class_and_ttl(self) -> u32 {
        u32::from(self.class) << 9 | u32::from(self.ttl)
    }

    #[inline(always)]
    fn bottom(self) -> u32 {
        if self.is_last { BOTTOM } else { 0 }
    }
}

/// Is the adjacency one label, which stands in a rewrite that is ready?
#[inline(always)]
pub(crate) fn is_one_label(adjacency: &Adjacency) -> bool {
    (adjacency.label_count() == 1) & !adjacency.has_long_stack()
}

/// The one label of an adjacency, and its class and TTL.
#[inline(always)]
pub(crate) fn label_of(adjacency: &Adjacency) -> u32 {
    adjacency.rewrite_field().last_chunk().map_or(0, |entry| u32::from_be_bytes(*entry))
}

/// Put the one label of an adjacency in front of a packet, as this entry, and the link header.
///
/// # Errors
/// The buffer has no headroom.
#[inline(always)]
pub(crate) fn push_one(
    adjacency: &Adjacency,
    entry: u32,
    packet: &mut Packet,
) -> Result<NodeId, MplsDrop> {
    let length = adjacency.rewrite_len();
    let is_there = packet.push_block32(adjacency.rewrite_field(), length)
        && write_at(packet, length.wrapping_sub(ENTRY_BYTES), entry);
    if !is_there {
        return Err(MplsDrop::NoHeadroom);
    }
    packet.tx = adjacency.tx;
    Ok(adjacency.output)
}

/// Put the labels of an adjacency in front of a packet, and the link header; where the neighbour is
/// not known, the labels alone. Returns the node that follows.
///
/// # Errors
/// The buffer has no headroom.
pub(crate) fn push(
    adjacencies: &Adjacencies,
    adjacency: &Adjacency,
    behind: Behind,
    packet: &mut Packet,
) -> Result<NodeId, MplsDrop> {
    let count = adjacency.label_count();
    let (length, link) = (adjacency.rewrite_len(), adjacency.rewrite_field());
    let done = if adjacency.has_long_stack() {
        let stack = adjacencies.long_stack(adjacency).as_chunks::<REWRITE_BYTES_MAX>().0;
        debug_assert_eq!(size_of_val(stack), LONG_STACK_BYTES);
        let labels = count * ENTRY_BYTES;
        packet.push_blocks(stack, labels)
            && fill(adjacency, 0, behind, packet)
            && packet.push_block32(link, length)
    } else {
        packet.push_block32(link, length)
            && fill(adjacency, length.saturating_sub(count * ENTRY_BYTES), behind, packet)
    };
    if !done {
        return Err(MplsDrop::NoHeadroom);
    }
    packet.tx = adjacency.tx;
    Ok(adjacency.output)
}

/// Write class, TTL and bottom bit of the labels that begin at `at`.
fn fill(adjacency: &Adjacency, at: usize, behind: Behind, packet: &mut Packet) -> bool {
    let count = adjacency.label_count();
    (0..count).all(|place| {
        let at = at + place * ENTRY_BYTES;
        let entry = packet.bytes().get(at..).and_then(|rest| rest.first_chunk());
        let Some(entry) = entry.map(|entry| u32::from_be_bytes(*entry)) else { return false };
        let is_last = place + 1 == count;
        let follows = adjacency.is_uniform() | (is_last & behind.is_swap);
        let entry = if follows { entry & !NOT_LABEL | behind.class_and_ttl() } else { entry };
        let bottom = if is_last { behind.bottom() } else { 0 };
        write_at(packet, at, entry & !BOTTOM | bottom)
    })
}

/// Does the packet leave the fast path whatever its adjacency is: several buffers, or one that the
/// router has made?
#[inline(always)]
pub(crate) fn is_usual(packet: &Packet) -> bool {
    packet.has_none(PacketFlags::LOCALLY_ORIGINATED.union(PacketFlags::CHAINED))
}
