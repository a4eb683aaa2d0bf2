//! The receive ring (PACKET_RX_RING, TPACKET_V2): memory that the kernel writes frames into, one
//! to a slot, and shows each as soon as it is there.
//!
//! ```text
//!  | tpacket2_hdr | sockaddr_ll | virtio_net_hdr | Ethernet … |   one slot
//!  0              32            tp_mac - 10      tp_mac
//! ```
//! What does not fit in a slot (super-frames, jumbo frames after the MTU has grown) is queued at
//! the socket as well (PACKET_COPY_THRESH), in the same order, and read from there.
#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use quiver_linux::VirtioNetHeader;
use quiver_linux::virtio_net::VIRTIO_NET_HEADER_BYTES;

use crate::socket::{PacketSocket, RECEIVE_BUFFER_BYTES};

/// Memory of one ring, bytes.
pub const RING_BYTES: usize = 8 << 20;
/// Bytes that the kernel allocates in one piece.
const BLOCK_BYTES: usize = 64 << 10;
/// Smallest and largest slot, bytes.
const SLOT_BYTES_MIN: usize = 2048;
const SLOT_BYTES_MAX: usize = 16 << 10;
/// What stands in a slot in front of the IP packet, and room for a VLAN tag, bytes.
const SLOT_OVERHEAD_BYTES: usize = 128;
/// Bytes of a VLAN tag.
pub const TAG_BYTES: usize = 4;
/// Bytes of two layer 2 addresses.
pub const MACS_BYTES: usize = 12;

/// ETH_P_ALL.
const ALL_PROTOCOLS: u16 = 3;
/// PACKET_IGNORE_OUTGOING.
const IGNORE_OUTGOING: libc::c_int = 23;

/// The ring of one receive queue.
pub struct RxRing {
    socket: PacketSocket,
    memory: NonNull<u8>,
    slot_bytes: usize,
    slots: usize,
    at: usize,
}

// SAFETY: the ring owns its mapping and its socket.
unsafe impl Send for RxRing {}

/// A slot that holds a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Where the frame begins in the slot.
    pub start: usize,
    /// Bytes of it in the slot.
    pub bytes: usize,
    /// Bytes of the whole frame, as the kernel says.
    pub frame_bytes: usize,
    /// All of it must be read from the socket.
    pub is_long: bool,
    /// It does not fit, and is not at the socket either.
    pub is_cut: bool,
    /// The kernel has lost frames since it was last asked.
    pub is_losing: bool,
    /// The tag that the kernel took out: the identifier of the protocol, and the rest.
    pub tag: Option<[u16; 2]>,
}

impl RxRing {
    /// A ring for the link of this index; frames come from now on.
    pub fn new(index: i32, mtu_bytes: u32) -> io::Result<RxRing> {
        let socket = PacketSocket::new()?;
        socket.set_packet(libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as i32))?;
        socket.set_packet(libc::PACKET_VNET_HDR, &1i32)?;
        socket.set_packet(libc::PACKET_COPY_THRESH, &1i32)?;
        socket.set_packet(IGNORE_OUTGOING, &1i32)?;
        socket.set_buffer(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, RECEIVE_BUFFER_BYTES);
        let slot_bytes = slot_bytes_for(mtu_bytes);
        let slots = RING_BYTES / slot_bytes;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: (RING_BYTES / BLOCK_BYTES) as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: slots as u32,
        };
        socket.set_packet(libc::PACKET_RX_RING, &request)?;
        // SAFETY: a fresh mapping of our own socket; the result is checked.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                RING_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                socket.fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast())
            .ok_or_else(|| io::Error::other("mapped at address zero"))?;
        let ring = RxRing { socket, memory, slot_bytes, slots, at: 0 };
        ring.socket.set_promiscuous(index)?;
        ring.socket.bind(index, ALL_PROTOCOLS)?;
        Ok(ring)
    }

    /// The socket.
    pub fn socket(&self) -> &PacketSocket {
        &self.socket
    }

    fn slot(&self) -> NonNull<u8> {
        // SAFETY: `at` is below `slots`, which fill the mapping.
        unsafe { self.memory.add(self.at * self.slot_bytes) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: the first field of the slot's header, aligned; the kernel writes it as one word.
        unsafe { self.slot().cast::<AtomicU32>().as_ref() }
    }

    /// Does a frame wait?
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// The frame that waits first.
    #[inline]
    pub fn peek(&self) -> Option<Slot> {
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot is ours now, and begins with this header.
        let header: libc::tpacket2_hdr = unsafe { self.slot().cast().read() };
        let start = usize::from(header.tp_mac);
        let bytes = header.tp_snaplen as usize;
        let inside = start >= SLOT_HEADER_BYTES + VIRTIO_NET_HEADER_BYTES
            && start + bytes <= self.slot_bytes;
        let is_long = status & libc::TP_STATUS_COPY != 0;
        let tpid = if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 {
            header.tp_vlan_tpid
        } else {
            0x8100
        };
        Some(Slot {
            start,
            bytes: if inside { bytes } else { 0 },
            frame_bytes: header.tp_len as usize,
            is_long,
            is_cut: !is_long && (header.tp_snaplen < header.tp_len || !inside),
            is_losing: status & libc::TP_STATUS_LOSING != 0,
            tag: (status & libc::TP_STATUS_VLAN_VALID != 0).then_some([tpid, header.tp_vlan_tci]),
        })
    }

    /// The memory of the slot that waits first.
    #[inline]
    pub fn memory(&mut self) -> &mut [u8] {
        debug_assert!(self.is_ready());
        // SAFETY: the slot is ours until it is released, which needs `&mut self` as well.
        unsafe { std::slice::from_raw_parts_mut(self.slot().as_ptr(), self.slot_bytes) }
    }

    /// Give the slot back to the kernel and look at the next.
    #[inline]
    pub fn release(&mut self) {
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.at = if self.at + 1 == self.slots { 0 } else { self.at + 1 };
    }
}

impl Drop for RxRing {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this size, and nothing refers to it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), RING_BYTES) };
    }
}

/// Bytes of the header at the start of a slot.
const SLOT_HEADER_BYTES: usize = size_of::<libc::tpacket2_hdr>();

fn slot_bytes_for(mtu_bytes: u32) -> usize {
    (mtu_bytes as usize + SLOT_OVERHEAD_BYTES)
        .next_power_of_two()
        .clamp(SLOT_BYTES_MIN, SLOT_BYTES_MAX)
}

/// The header in front of the frame that begins at `start`.
pub fn offload_header(memory: &[u8], start: usize) -> Option<VirtioNetHeader> {
    let bytes = memory.get(start.checked_sub(VIRTIO_NET_HEADER_BYTES)?..start)?;
    Some(VirtioNetHeader::parse(bytes.try_into().ok()?))
}

/// Put a VLAN tag back into the frame that begins at `start`, towards the front, over the header;
/// where it begins then.
pub fn put_tag(memory: &mut [u8], start: usize, tag: [u16; 2]) -> Option<usize> {
    let begin = start.checked_sub(TAG_BYTES)?;
    memory.get(start..start + MACS_BYTES)?;
    memory.copy_within(start..start + MACS_BYTES, begin);
    let place = memory.get_mut(begin + MACS_BYTES..begin + MACS_BYTES + TAG_BYTES)?;
    place.copy_from_slice(&tag_bytes(tag));
    Some(begin)
}

/// A VLAN tag as it stands in a frame.
pub fn tag_bytes([tpid, tci]: [u16; 2]) -> [u8; TAG_BYTES] {
    let ([a, b], [c, d]) = (tpid.to_be_bytes(), tci.to_be_bytes());
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_hold_a_frame_of_the_mtu_with_a_tag() {
        assert_eq!(
            [576, 1500, 1920, 1921, 9000, 65_535].map(slot_bytes_for),
            [2048, 2048, 2048, 4096, 16384, 16384]
        );
        assert!([1500, 9000].iter().all(|mtu| BLOCK_BYTES.is_multiple_of(slot_bytes_for(*mtu))));
    }

    #[test]
    fn a_tag_goes_between_the_addresses_and_the_type() {
        let mut memory: Vec<u8> = (0..40).collect();
        assert_eq!(put_tag(&mut memory, 10, [0x8100, 0x2005]), Some(6));
        let expected: Vec<u8> = (10..22).chain([0x81, 0, 0x20, 5]).chain(22..40).collect();
        assert_eq!(memory[6..], expected);
        assert_eq!(put_tag(&mut memory, 3, [0, 0]), None);
        assert_eq!(put_tag(&mut memory, 30, [0, 0]), None);
    }

    #[test]
    fn a_header_outside_the_slot_is_none() {
        assert!(offload_header(&[0; 64], 9).is_none());
        assert!(offload_header(&[0; 64], 65).is_none());
        assert!(offload_header(&[0; 64], 64).is_some_and(|h| h.is_plain()));
    }
}
