//! Work that is left to the transmitting device, when headers are put in front of a packet or taken
//! off.

use quiver_core::Packet;
use quiver_core::memory::packet::PacketFlags;

/// A large packet that a device is to segment: behind other headers it would not be recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsegmented;

/// `count` bytes of headers will be put in front: a checksum that is left to a device lies so many
/// bytes further behind.
///
/// # Errors
/// The packet is a large one that a device is to segment.
#[cold]
pub fn headers_added(packet: &mut Packet, count: usize) -> Result<(), Unsegmented> {
    if !packet.has(PacketFlags::OFFLOAD) {
        return Ok(());
    }
    if packet.offload().segment_bytes != 0 {
        return Err(Unsegmented);
    }
    // The layer 2 header of the received frame is counted in the offset, and is there no more.
    let behind =
        usize::from(packet.offload().checksum_start).saturating_sub(usize::from(packet.l2_bytes));
    packet.offload_mut().checksum_start = (behind + count) as u16;
    Ok(())
}

/// `count` bytes of headers were taken off.
#[inline(always)]
pub fn headers_removed(packet: &mut Packet, count: usize) {
    packet.l2_bytes = 0;
    if packet.has(PacketFlags::OFFLOAD) {
        let offload = packet.offload_mut();
        offload.checksum_start = offload.checksum_start.saturating_sub(count as u16);
        offload.headers_bytes = offload.headers_bytes.saturating_sub(count as u16);
    }
}
