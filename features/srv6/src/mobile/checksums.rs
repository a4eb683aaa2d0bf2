//! Checksums over packets of the mobile user plane, and those that a device was to complete.

use quiver_core::Packet;
use quiver_core::memory::packet::PacketFlags;
use quiver_wire::checksum::Sum;

/// `sum`, and the `length` bytes of all segments from `from` on; `None` when there are fewer.
pub(super) fn add(mut sum: Sum, packet: &Packet, from: usize, length: usize) -> Option<Sum> {
    let (mut skip, mut left) = (from, length);
    for segment in packet.segments() {
        let bytes = segment.get(skip..).unwrap_or_default();
        skip = skip.saturating_sub(segment.len());
        let bytes = bytes.get(..left).unwrap_or(bytes);
        sum = sum.bytes(bytes);
        left -= bytes.len();
        if left == 0 {
            return Some(sum);
        }
    }
    None
}

/// Where the checksum begins that was left to a device, counted from the packet's first byte;
/// `None` when that is in front of the packet, or the device was to cut the packet, too.
pub(super) fn unfinished(packet: &Packet) -> Option<usize> {
    let offload = packet.offload();
    let start = packet.length().checked_sub(offload.checksum_bytes.into())?;
    (offload.segment_bytes == 0).then_some(start)
}

/// Complete the checksum that was left to a device. False when it lies outside of the packet.
pub(super) fn complete(packet: &mut Packet) -> bool {
    if !packet.has(PacketFlags::OFFLOAD) {
        return true;
    }
    let Some(start) = unfinished(packet) else { return false };
    let Some(length) = packet.length().checked_sub(start) else { return false };
    let field = start + usize::from(packet.offload().checksum_offset);
    // The field holds the sum of the pseudo header already.
    let sum = add(Sum::new(), packet, start, length).map(Sum::udp_checksum);
    let (Some(sum), Some(place)) = (sum, packet.bytes_mut().get_mut(field..field + 2)) else {
        return false;
    };
    place.copy_from_slice(&sum.to_be_bytes());
    packet.clear(PacketFlags::OFFLOAD);
    true
}

/// `removed` bytes in front of a packet become others: a checksum that was left to a device may be
/// gone with them. False when a device was to cut the packet, which nobody can any more.
pub(super) fn exchange(packet: &mut Packet, removed: usize) -> bool {
    if packet.has(PacketFlags::OFFLOAD) {
        let Some(start) = unfinished(packet) else { return false };
        if start < removed {
            packet.clear(PacketFlags::OFFLOAD);
        }
    }
    packet.clear(PacketFlags::L4_CHECKSUM_GOOD);
    packet.l2_bytes = 0;
    packet.hash = 0;
    true
}
