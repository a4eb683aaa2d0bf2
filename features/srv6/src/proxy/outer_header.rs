//! A header that stands ready to be put in front of what comes back from a function.

use quiver_core::Packet;
use quiver_encap::entries::{BLOCK_BYTES, HEADER_BYTES_MAX};
use quiver_encap::flow::flow_label;
use quiver_wire::{Header, Ip6Header};

/// Blocks of the longest header.
const BLOCKS: usize = HEADER_BYTES_MAX / BLOCK_BYTES;

/// The header, right-aligned in its blocks, as [`Packet::push_blocks`] takes it. Its payload length
/// and flow label are set for each packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OuterHeader {
    blocks: [[u8; BLOCK_BYTES]; BLOCKS],
    length: usize,
}

impl OuterHeader {
    /// Room for a header of so many bytes, which the caller fills.
    pub fn lay_out(&mut self, length: usize) -> Option<&mut [u8]> {
        let end = length.div_ceil(BLOCK_BYTES) * BLOCK_BYTES;
        let place = self.blocks.as_flattened_mut().get_mut(..end)?;
        self.length = length;
        place.get_mut(end - length..)
    }

    /// Its length in bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.length
    }

    /// The header.
    pub fn header(&self) -> &[u8] {
        let blocks = self.blocks().as_flattened();
        blocks.get(blocks.len() - self.length..).unwrap_or_default()
    }

    /// The header, to be changed.
    pub fn header_mut(&mut self) -> &mut [u8] {
        let end = self.length.div_ceil(BLOCK_BYTES) * BLOCK_BYTES;
        let blocks = self.blocks.as_flattened_mut().get_mut(..end).unwrap_or_default();
        let at = blocks.len() - self.length;
        blocks.get_mut(at..).unwrap_or_default()
    }

    /// The next segment.
    pub fn destination(&self) -> Option<u128> {
        Ip6Header::overlay(self.header()).map(Ip6Header::destination_bits)
    }

    /// Its own traffic class, for frames, which have none.
    pub fn class(&self) -> u8 {
        Ip6Header::overlay(self.header()).map_or(0, Ip6Header::traffic_class)
    }

    #[inline(always)]
    fn blocks(&self) -> &[[u8; BLOCK_BYTES]] {
        self.blocks.get(..self.length.div_ceil(BLOCK_BYTES)).unwrap_or_default()
    }

    /// Put it in front of a packet of `length` bytes; false (and nothing changes) without headroom.
    #[inline(always)]
    #[must_use]
    pub fn put(&self, packet: &mut Packet, length: usize, class: u8, hash: u32) -> bool {
        if !packet.push_blocks(self.blocks(), self.length) {
            return false;
        }
        if let Some(header) = Ip6Header::overlay_mut(packet.bytes_mut()) {
            header.set_class_and_flow(class, flow_label(hash));
            header.set_payload_length((length + self.length - Ip6Header::LEN) as u16);
        }
        packet.l2_bytes = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_ends_where_its_blocks_end() {
        let mut front = OuterHeader::default();
        for length in [40, 64, 80, HEADER_BYTES_MAX] {
            let header: Vec<u8> = (0..length as u8).collect();
            front.lay_out(length).unwrap().copy_from_slice(&header);
            assert_eq!((front.header(), front.len()), (&header[..], length));
        }
        assert!(front.lay_out(HEADER_BYTES_MAX + 1).is_none());
    }
}
