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
    let _ = count;
    Ok(())
}

/// `count` bytes of headers were taken off.
#[inline(always)]
pub fn headers_removed(packet: &mut Packet, count: usize) {
    let _ = count;
    packet.l2_bytes = 0;
}
