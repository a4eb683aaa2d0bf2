//! Work that others left to the transmitter: a memif frame has no place to say that its checksum
//! is not complete, so it is completed here.

use quiver_core::Packet;
use quiver_core::memory::packet::PacketFlags;

use crate::reasons::MemifReason;

/// Complete the checksum that the packet's [`Offload`](quiver_core::memory::buffer::Offload) asks
/// for.
pub(crate) fn complete(packet: &mut Packet) -> Result<(), MemifReason> {
    let offload = *packet.offload();
    if offload.segment_bytes != 0 {
        return Err(MemifReason::TxSegments);
    }
    let start = packet.length().saturating_sub(offload.checksum_bytes.into());
    let field = start + offload.checksum_offset as usize;
    if field + 2 > packet.segment_length() {
        return Err(MemifReason::TxChecksum);
    }
    // The field holds the sum of the pseudo header already (VIRTIO 1.2 §5.1.6.2).
    let checksum = match !sum_from(packet, start) {
        0 => 0xffff, // zero would mean "none" in UDP (RFC 768), and is the same sum
        checksum => checksum,
    };
    packet.bytes_mut()[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
    packet.clear(PacketFlags::OFFLOAD);
    Ok(())
}

/// The ones' complement sum of all bytes from `start` (RFC 1071).
fn sum_from(packet: &Packet, mut start: usize) -> u16 {
    let mut sum = 0u64;
    let mut high = true;
    for segment in packet.segments() {
        let skipped = start.min(segment.len());
        start -= skipped;
        for byte in &segment[skipped..] {
            sum += if high { (*byte as u64) << 8 } else { *byte as u64 };
            high = !high;
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use quiver_core::memory::buffer::{BufferPool, DATA_BYTES_DEFAULT};
    use quiver_core::memory::mapping::PageSize;

    #[test]
    fn a_checksum_is_completed_over_all_segments_of_odd_lengths() {
        let pool = BufferPool::new(128, DATA_BYTES_DEFAULT, PageSize::Small).expect("pool");
        let mut cache = pool.cache();
        let bytes: Vec<u8> = (0..5001).map(|i| (i * 7) as u8).collect();
        let mut packet = cache.packet().expect("buffer");
        assert!(packet.append(&bytes, &mut cache));
        packet.offload_mut().checksum_bytes = 5001 - 34;
        packet.offload_mut().checksum_offset = 6;
        packet.set(PacketFlags::OFFLOAD);
        assert_eq!(complete(&mut packet), Ok(()));
        assert!(!packet.has(PacketFlags::OFFLOAD));
        let mut all = Vec::new();
        packet.copy_to(&mut all);
        // With the old field's value still to be counted, the sum over everything is all ones.
        let old = u16::from_be_bytes([bytes[40], bytes[41]]) as u32;
        let mut sum = old;
        for pair in all[34..].chunks(2) {
            sum += (pair[0] as u32) << 8 | *pair.get(1).unwrap_or(&0) as u32;
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        assert_eq!(sum, 0xffff);
        cache.free(packet);
    }

    #[test]
    fn an_offload_that_lies_is_refused() {
        let pool = BufferPool::new(128, DATA_BYTES_DEFAULT, PageSize::Small).expect("pool");
        let mut cache = pool.cache();
        let mut packet = cache.packet().expect("buffer");
        assert!(packet.append(&[0; 60], &mut cache));
        packet.offload_mut().checksum_bytes = 1;
        packet.set(PacketFlags::OFFLOAD);
        assert_eq!(complete(&mut packet), Err(MemifReason::TxChecksum));
        packet.offload_mut().segment_bytes = 1448;
        assert_eq!(complete(&mut packet), Err(MemifReason::TxSegments));
        cache.free(packet);
    }
}
