//! The header in front of each frame that says what is left to do (VIRTIO 1.2 §5.1.6), as packet
//! sockets and tap devices use it: ten bytes, in the machine's byte order.

use quiver_core::Packet;
use quiver_core::memory::buffer::Offload;
use quiver_core::memory::packet::PacketFlags;
use quiver_offload::segment::{SEGMENT_NONE, Segmenter};

/// Bytes of the header without a count of buffers.
pub const VIRTIO_NET_HEADER_BYTES: usize = 10;

/// VIRTIO_NET_HDR_F_NEEDS_CSUM.
const NEEDS_CHECKSUM: u8 = 1;
/// VIRTIO_NET_HDR_F_DATA_VALID.
const DATA_VALID: u8 = 2;

/// Segments of one frame at most: those of 64 KiB when each carries the 48 bytes that Linux has at
/// least (TCP_MIN_SND_MSS). More would let one frame take all buffers.
const SEGMENTS_MAX: usize = 65_536 / 48;

/// What is left to do for a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtioNetHeader {
    /// The checksum field holds the sum of the pseudo header only.
    pub needs_checksum: bool,
    /// The layer 4 checksum was found right.
    pub data_valid: bool,
    /// `SEGMENT_…`.
    pub segment_kind: u8,
    /// Bytes of all headers, a hint.
    pub headers_bytes: u16,
    /// Payload bytes of each segment.
    pub segment_bytes: u16,
    /// Where the sum begins, bytes from the start of the frame.
    pub checksum_start: u16,
    /// Where the sum goes, bytes from `checksum_start`.
    pub checksum_offset: u16,
}

impl VirtioNetHeader {
    /// Read it.
    pub fn parse(bytes: &[u8; VIRTIO_NET_HEADER_BYTES]) -> VirtioNetHeader {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        VirtioNetHeader {
            needs_checksum: bytes[0] & NEEDS_CHECKSUM != 0,
            data_valid: bytes[0] & DATA_VALID != 0,
            segment_kind: bytes[1],
            headers_bytes: word(2),
            segment_bytes: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }

    /// Write it.
    pub fn emit(&self) -> [u8; VIRTIO_NET_HEADER_BYTES] {
        let mut bytes = [0; VIRTIO_NET_HEADER_BYTES];
        bytes[0] = (u8::from(self.needs_checksum) * NEEDS_CHECKSUM)
            | (u8::from(self.data_valid) * DATA_VALID);
        bytes[1] = self.segment_kind;
        let words =
            [self.headers_bytes, self.segment_bytes, self.checksum_start, self.checksum_offset];
        for (place, word) in bytes[2..].chunks_exact_mut(2).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// What is left to do for a packet that is sent.
    #[inline]
    pub fn of_packet(packet: &Packet) -> VirtioNetHeader {
        if !packet.has(PacketFlags::OFFLOAD) {
            return VirtioNetHeader::default();
        }
        let length = packet.length();
        let offload = *packet.offload();
        let Offload { checksum_bytes, checksum_offset, segment_bytes, .. } = offload;
        let Offload { payload_bytes, segment_kind, .. } = offload;
        let from_start = |from_end: u16| length.saturating_sub(from_end.into()) as u16;
        let is_whole = segment_bytes == 0;
        VirtioNetHeader {
            needs_checksum: true,
            data_valid: false,
            segment_kind: if is_whole { SEGMENT_NONE } else { segment_kind },
            headers_bytes: if is_whole { 0 } else { from_start(payload_bytes) },
            segment_bytes,
            checksum_start: from_start(checksum_bytes),
            checksum_offset,
        }
    }

    /// What the header says of a packet that it came with; `None` when it does not fit.
    pub fn offload_of(&self, packet: &Packet) -> Option<Offload> {
        let (first, length) = (packet.bytes(), packet.length());
        let start = usize::from(self.checksum_start);
        let field_end = start + usize::from(self.checksum_offset) + 2;
        if !self.needs_checksum || field_end > first.len() {
            return None;
        }
        if self.segment_kind == SEGMENT_NONE {
            return Some(Offload {
                checksum_bytes: u16::try_from(length - start).ok()?,
                checksum_offset: self.checksum_offset,
                ..Default::default()
            });
        }
        let segmenter = Segmenter::new(first, length, self.segment_kind, self.segment_bytes)?;
        let is_in_place = segmenter.checksum_at() == (start, field_end - 2);
        let fits = is_in_place && segmenter.count() <= SEGMENTS_MAX;
        fits.then(|| segmenter.offload(self.segment_kind)).flatten()
    }

    /// Nothing is left to do?
    #[inline]
    pub fn is_plain(&self) -> bool {
        !self.needs_checksum && self.segment_kind == SEGMENT_NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use quiver_core::memory::buffer::{BufferPool, DATA_BYTES_DEFAULT};
    use quiver_core::memory::mapping::PageSize;
    use quiver_offload::segment::SEGMENT_UDP;

    #[test]
    fn a_super_frame_that_would_become_too_many_packets_is_refused() {
        let pool = BufferPool::new(128, DATA_BYTES_DEFAULT, PageSize::Small).expect("pool");
        let mut cache = pool.cache();
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0, 0xff, 0xff, 0, 0, 0, 0, 64, 17, 0, 0]);
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2, 0, 0, 0, 0]);
        frame.resize(60_000, 7);
        let mut packet = cache.packet().expect("buffer");
        assert!(packet.append(&frame, &mut cache));
        let header = |segment_bytes| VirtioNetHeader {
            needs_checksum: true,
            segment_kind: SEGMENT_UDP,
            segment_bytes,
            checksum_start: 34,
            checksum_offset: 6,
            ..Default::default()
        };
        let payload_bytes = 60_000 - 42;
        let offload = header(48).offload_of(&packet).expect("fits");
        assert_eq!((offload.payload_bytes, offload.checksum_bytes), (payload_bytes, 60_000 - 34));
        assert_eq!(header(40).offload_of(&packet), None);
        assert_eq!(VirtioNetHeader { checksum_start: 33, ..header(48) }.offload_of(&packet), None);
        cache.free(packet);
    }

    proptest! {
        #[test]
        fn parse_and_emit_are_inverse(mut bytes: [u8; VIRTIO_NET_HEADER_BYTES]) {
            bytes[0] &= 3;
            prop_assert_eq!(VirtioNetHeader::parse(&bytes).emit(), bytes);
        }
    }
}
