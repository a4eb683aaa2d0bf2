//! Bytes of packets that may lie in several segments.

use quiver_core::memory::buffer::BufferCache;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Packet};

/// Append `length` bytes of `from`, from `offset` on, to `to`; false when the pool is empty, or
/// `from` is shorter.
#[must_use]
pub fn append_range(
    from: &Packet,
    mut offset: usize,
    mut length: usize,
    to: &mut Packet,
    cache: &mut BufferCache,
) -> bool {
    for segment in from.segments() {
        let skipped = offset.min(segment.len());
        offset -= skipped;
        let taken = length.min(segment.len() - skipped);
        if taken > 0 && !to.append(&segment[skipped..skipped + taken], cache) {
            return false;
        }
        length -= taken;
    }
    length == 0
}

/// A fragment of `packet` that goes where it goes: `header` in front of `length` of its bytes, from
/// `offset` on. `None` without buffers.
pub fn fragment(
    cx: &mut Context<'_>,
    packet: &Packet,
    header: &[u8],
    offset: usize,
    length: usize,
) -> Option<Packet> {
    let mut fragment = cx.buffers.packet()?;
    let is_whole = fragment.append(header, cx.buffers)
        && append_range(packet, offset, length, &mut fragment, cx.buffers);
    if !is_whole {
        cx.buffers.free(fragment);
        return None;
    }
    fragment.rx = packet.rx;
    fragment.hand_over_as(packet);
    fragment.hash = packet.hash;
    if packet.has(PacketFlags::LOCALLY_ORIGINATED) {
        fragment.set(PacketFlags::LOCALLY_ORIGINATED);
    }
    fragment.descend_from(packet);
    cx.follow(&fragment, packet);
    Some(fragment)
}
