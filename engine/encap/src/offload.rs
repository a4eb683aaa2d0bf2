//! Work that is left to the transmitting device, when headers are put in front of a packet.

use quiver_core::Packet;
use quiver_core::memory::packet::PacketFlags;

/// A large packet that a device is to segment: behind other headers it would not be recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsegmented;

/// Headers will be put in front.
///
/// # Errors
/// The packet is a large one that a device is to segment.
#[cold]
pub fn check_whole(packet: &Packet) -> Result<(), Unsegmented> {
    let is_whole = !packet.has(PacketFlags::OFFLOAD) || packet.offload().segment_bytes == 0;
    if is_whole { Ok(()) } else { Err(Unsegmented) }
}
