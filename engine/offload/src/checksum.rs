//! Checksums over packets that may lie in several buffers, and those that a packet leaves to the
//! transmitting device (VIRTIO 1.2 §5.1.6).

use quiver_core::Packet;
use quiver_core::memory::packet::PacketFlags;
use quiver_wire::checksum::Sum;

/// Add `length` bytes of the packet from `offset` on to `sum`; `None` when they are not all there.
pub fn add_to_sum(
    mut sum: Sum,
    packet: &Packet,
    mut offset: usize,
    mut length: usize,
) -> Option<Sum> {
    for segment in packet.segments() {
        let skipped = offset.min(segment.len());
        offset -= skipped;
        let taken = length.min(segment.len() - skipped);
        sum = sum.bytes(&segment[skipped..skipped + taken]);
        length -= taken;
        if length == 0 {
            return Some(sum);
        }
    }
    None
}

/// Add the packet's bytes from `offset` to its end to `sum`, as they will be sent: a checksum that
/// is left to the device counts as completed. `None` when its place is before `offset` or outside
/// the packet, or when the packet must be cut into segments.
pub fn add_rest_as_sent(sum: Sum, packet: &Packet, offset: usize) -> Option<Sum> {
    let length = packet.length();
    if !packet.has(PacketFlags::OFFLOAD) {
        return add_to_sum(sum, packet, offset, length.checked_sub(offset)?);
    }
    let offload = packet.offload();
    let start = length.checked_sub(usize::from(offload.checksum_bytes))?;
    let before = start.checked_sub(offset).filter(|before| before.is_multiple_of(2))?;
    if offload.segment_bytes != 0 {
        return None;
    }
    // Completed, these bytes and the pseudo header, whose sum the field holds, add up to zero.
    let field = packet.bytes().get(start + usize::from(offload.checksum_offset)..)?;
    let pseudo = u16::from_be_bytes(*field.first_chunk()?);
    Some(add_to_sum(sum, packet, offset, before)?.word(!pseudo))
}

/// Complete the checksum that was left to the device, of a packet that begins at its IP header.
/// False when that lies outside the packet, or when the packet must be cut into segments.
pub fn complete_checksum(packet: &mut Packet) -> bool {
    if !packet.has(PacketFlags::OFFLOAD) {
        return true;
    }
    let offload = *packet.offload();
    let length = usize::from(offload.checksum_bytes);
    let Some(start) = packet.length().checked_sub(length).filter(|_| offload.segment_bytes == 0)
    else {
        return false;
    };
    // The field holds the sum of the pseudo header already.
    let sum = add_to_sum(Sum::new(), packet, start, length).map(Sum::udp_checksum);
    let field = start + usize::from(offload.checksum_offset);
    match (sum, packet.bytes_mut().get_mut(field..field + 2)) {
        (Some(sum), Some(place)) => place.copy_from_slice(&sum.to_be_bytes()),
        _ => return false,
    }
    packet.clear(PacketFlags::OFFLOAD);
    true
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use quiver_core::memory::buffer::{BufferPool, DATA_BYTES_DEFAULT};
    use quiver_core::memory::mapping::PageSize;
    use quiver_wire::{IpProtocol, ip4, udp};

    use super::*;

    const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    /// A UDP packet of `payload` bytes, its checksum left to the device as Linux leaves it.
    fn unfinished(payload: usize) -> (Vec<u8>, Vec<u8>) {
        let mut bytes = vec![0x5a; 28 + payload];
        ip4::Repr::new(HERE, THERE, IpProtocol::UDP, 8 + payload).emit(&mut bytes).unwrap();
        let repr =
            udp::Repr { source_port: 1, destination_port: 2, payload_len: payload, checksum: 0 };
        repr.emit(&mut bytes[20..]).unwrap();
        let mut finished = bytes.clone();
        udp::fill_checksum_over_ip4(HERE, THERE, &mut finished[20..]);
        let pseudo = Sum::pseudo4(HERE, THERE, IpProtocol::UDP, 8 + payload as u16);
        bytes[26..28].copy_from_slice(&(!pseudo.checksum()).to_be_bytes());
        (bytes, finished)
    }

    #[test]
    fn a_checksum_left_to_the_device_is_completed_over_all_segments() {
        let pool = BufferPool::new(128, DATA_BYTES_DEFAULT, PageSize::Small).expect("pool");
        let mut cache = pool.cache();
        for payload in [0, 1, 1999, 5001] {
            let (bytes, finished) = unfinished(payload);
            let mut packet = cache.packet().expect("buffer");
            assert!(packet.append(&bytes, &mut cache));
            packet.l2_bytes = 14;
            packet.set(PacketFlags::OFFLOAD);
            let offload = packet.offload_mut();
            (offload.checksum_bytes, offload.checksum_offset, offload.segment_bytes) =
                (8 + payload as u16, 6, 0);
            assert!(complete_checksum(&mut packet));
            assert!(!packet.has(PacketFlags::OFFLOAD));
            let mut seen = Vec::new();
            packet.copy_to(&mut seen);
            assert_eq!(seen, finished, "{payload}");
            cache.free(packet);
        }
    }

    #[test]
    fn a_sum_counts_a_checksum_left_to_the_device_as_completed() {
        let pool = BufferPool::new(128, DATA_BYTES_DEFAULT, PageSize::Small).expect("pool");
        let mut cache = pool.cache();
        for payload in [0, 1, 1999, 5001] {
            let (bytes, finished) = unfinished(payload);
            let mut packet = cache.packet().expect("buffer");
            assert!(packet.append(&bytes, &mut cache));
            packet.set(PacketFlags::OFFLOAD);
            let offload = packet.offload_mut();
            (offload.checksum_bytes, offload.checksum_offset, offload.segment_bytes) =
                (8 + payload as u16, 6, 0);
            for offset in [0, 12, 20] {
                let sum = add_rest_as_sent(Sum::new(), &packet, offset).map(Sum::checksum);
                assert_eq!(
                    sum,
                    Some(Sum::new().bytes(&finished[offset..]).checksum()),
                    "{payload}"
                );
            }
            assert!(add_rest_as_sent(Sum::new(), &packet, 22).is_none());
            packet.clear(PacketFlags::OFFLOAD);
            let sum = add_rest_as_sent(Sum::new(), &packet, 20).map(Sum::checksum);
            assert_eq!(sum, Some(Sum::new().bytes(&bytes[20..]).checksum()));
            cache.free(packet);
        }
    }
}
