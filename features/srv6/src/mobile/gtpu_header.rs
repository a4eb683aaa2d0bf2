//! What End.M.GTP4.E and End.M.GTP6.E put behind their IP header, in front of a user's packet: UDP
//! and GTP-U, as words where the packet is plain, step by step where it is not.

use quiver_core::Packet;
use quiver_core::memory::packet::PacketFlags;

use super::encapsulate::{BYTES_MAX, Outgoing};
use super::g_pdu::GtpuWords;
use crate::endpoint::reasons::LocalSidDrop;

/// UDP, and GTP-U without a container.
pub(super) const BYTES_MIN: usize = 16;

/// UDP and GTP-U headers of a packet on the fast path.
pub(super) struct UdpGtpuHeaders {
    pub udp: u64,
    pub gtpu: GtpuWords,
}

impl UdpGtpuHeaders {
    /// How many bytes they have.
    #[inline(always)]
    pub fn len(&self) -> usize {
        8 + self.gtpu.len()
    }

    /// Write them word by word: a wide load of a header that was put together elsewhere would wait
    /// for its stores. What is in front of a container has its place already.
    #[inline(always)]
    pub fn write(&self, first: &mut [u8; BYTES_MIN], behind: &mut [u8]) {
        first[..8].copy_from_slice(&self.udp.to_be_bytes());
        first[8..].copy_from_slice(&self.gtpu.first.to_be_bytes());
        if let (Some(word), Some(place)) = (self.gtpu.container, behind.first_chunk_mut()) {
            *place = word.to_be_bytes();
        }
    }
}

/// The first `old` bytes of a packet make room for `new` others, which the caller writes. False,
/// and nothing changes, when they cannot.
#[inline(always)]
#[must_use]
pub(super) fn replace(packet: &mut Packet, old: usize, new: usize) -> bool {
    if !packet.pull(old) {
        return false;
    }
    if !packet.push(new) {
        // What was in front lies there still.
        let _ = packet.push(old);
        return false;
    }
    packet.clear(PacketFlags::L4_CHECKSUM_GOOD);
    packet.l2_bytes = 0;
    packet.hash = 0;
    true
}

/// Put what goes out in front of any packet, behind an IP header of `header_bytes`. `write` writes
/// that header to the place that it gets, which UDP and GTP-U stand behind, and completes those.
#[inline(always)]
pub(super) fn put(
    out: &Outgoing,
    header_bytes: usize,
    packet: &mut Packet,
    write: impl FnOnce(&mut [u8], &Packet) -> Result<(), LocalSidDrop>,
) -> Result<(), LocalSidDrop> {
    let mut bytes = [[0; 32]; BYTES_MAX / 32];
    let all = bytes.as_flattened_mut();
    let at =
        out.write(all).and_then(|at| at.checked_sub(header_bytes)).ok_or(LocalSidDrop::TooLong)?;
    let count = all.len() - at;
    write(all.get_mut(at..).unwrap_or_default(), packet)?;
    if packet.push_blocks(&bytes, count) { Ok(()) } else { Err(LocalSidDrop::NoHeadroom) }
}
