//! A receive queue: frames from the ring (long ones from the socket) into the graph.

use std::os::fd::RawFd;

use quiver_core::worker::device::RxQueue;
use quiver_core::{Context, Frame, InterfaceId, NodeId};
use quiver_linux::virtio_net::VIRTIO_NET_HEADER_BYTES;
use quiver_linux::{Arrival, RxDrop, Scatter, VECTOR_PACKETS_MAX, VirtioNetHeader};

use crate::ring::{MACS_BYTES, RxRing, Slot, TAG_BYTES, offload_header, put_tag, tag_bytes};

/// A receive queue.
pub struct PacketRx {
    ring: RxRing,
    arrival: Arrival,
    scatter: Scatter,
}

/// The header of a frame that gets a tag put in.
fn behind_tag(mut header: VirtioNetHeader) -> VirtioNetHeader {
    header.checksum_start = header.checksum_start.saturating_add(TAG_BYTES as u16);
    header
}

impl PacketRx {
    /// A queue of `interface`, for buffers of `data_bytes`.
    pub fn new(ring: RxRing, interface: InterfaceId, data_bytes: usize) -> PacketRx {
        let (arrival, scatter) = (Arrival::new(interface), Scatter::new(data_bytes));
        PacketRx { ring, arrival, scatter }
    }

    /// Put the frame in the slot that waits first into the vector.
    #[inline]
    fn take_short(
        &mut self,
        slot: Slot,
        cx: &mut Context<'_>,
        frame: &mut Frame,
    ) -> Result<(), RxDrop> {
        let (memory, mut start) = (self.ring.memory(), slot.start);
        let end = start + slot.bytes;
        let mut header = offload_header(memory, start).ok_or(RxDrop::BadOffload)?;
        if let Some(tag) = slot.tag {
            start = put_tag(memory, start, tag).ok_or(RxDrop::TooShort)?;
            header = behind_tag(header);
        }
        let bytes = memory.get(start..end).unwrap_or_default();
        self.arrival.admit(&header, bytes, cx, frame);
        Ok(())
    }

    /// Read the frame that waits first at the socket into the vector. A slot stands for it.
    fn take_long(
        &mut self,
        slot: Slot,
        cx: &mut Context<'_>,
        frame: &mut Frame,
    ) -> Result<(), RxDrop> {
        let packet = self.scatter.prepare(slot.frame_bytes, cx.buffers);
        let Some(mut packet) = packet else {
            // It must go all the same: the slots behind are not for it.
            let _ = self.ring.socket().receive(&mut [0; VIRTIO_NET_HEADER_BYTES], &mut [], None);
            return Err(RxDrop::NoBuffer);
        };
        let mut header = [0; VIRTIO_NET_HEADER_BYTES];
        let first = packet.bytes_mut();
        let got = self.ring.socket().receive(&mut header, first, Some(&mut self.scatter));
        let Ok(got) = got else {
            self.scatter.release(packet, cx.buffers);
            return Err(RxDrop::ReadFailed);
        };
        let mut header = VirtioNetHeader::parse(&header);
        let bytes = got.saturating_sub(VIRTIO_NET_HEADER_BYTES);
        let mut packet = self.scatter.gather(packet, bytes, cx.buffers)?;
        if let Some(tag) = slot.tag {
            if !packet.insert(MACS_BYTES, &tag_bytes(tag)) {
                cx.buffers.free(packet);
                return Err(RxDrop::TooShort);
            }
            header = behind_tag(header);
        }
        self.arrival.admit_packet(&header, packet, cx, frame);
        Ok(())
    }

    /// Put the frame that waits first into the vector, which has room.
    #[inline]
    fn take(&mut self, slot: Slot, cx: &mut Context<'_>, frame: &mut Frame) -> Result<(), RxDrop> {
        if slot.is_cut {
            return Err(RxDrop::Truncated);
        }
        if slot.is_long {
            self.take_long(slot, cx, frame)
        } else {
            self.take_short(slot, cx, frame)
        }
    }
}

impl RxQueue for PacketRx {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        let mut packets = 0;
        while frame.room() > 0 && packets < VECTOR_PACKETS_MAX {
            let Some(slot) = self.ring.peek() else { break };
            if slot.is_losing {
                let lost = self.ring.socket().take_drops();
                self.arrival.lose(RxDrop::KernelDropped, lost, cx);
            }
            if let Err(reason) = self.take(slot, cx, frame) {
                self.arrival.lose(reason, 1, cx);
            }
            self.ring.release();
            packets += frame.packets().last().map_or(0, |packet| packet.on_wire().0);
        }
        None
    }

    fn wake_fd(&self) -> Option<RawFd> {
        Some(self.ring.socket().fd())
    }

    fn arm(&mut self, interrupts: bool) -> bool {
        if interrupts {
            self.ring.socket().clear_error();
        }
        self.ring.is_ready()
    }
}
