//! A receive queue: frames from the ring (long ones from the socket) into the graph.

use std::os::fd::RawFd;

use quiver_core::worker::device::RxQueue;
use quiver_core::{Context, Frame, InterfaceId, NodeId};
use quiver_linux::virtio_net::VIRTIO_NET_HEADER_BYTES;
use quiver_linux::{Arrival, Progress, RxDrop, VirtioNetHeader};

use crate::ring::{RxRing, Slot, TAG_BYTES, offload_header, put_tag};

/// Longest frame, bytes: 64 KiB of IP and what stands in front of it.
const LONG_BYTES_MAX: usize = 65_536 + 64;

/// Packets on a wire that one vector stands for.
const VECTOR_PACKETS_MAX: u64 = 2048;

/// A receive queue.
pub struct PacketRx {
    ring: RxRing,
    arrival: Arrival,
    /// A frame that was read from the socket, behind room for a tag.
    long: Box<[u8]>,
    /// The frame under way.
    current: Option<Current>,
}

#[derive(Clone, Copy)]
struct Current {
    header: VirtioNetHeader,
    start: usize,
    end: usize,
    is_long: bool,
}

impl PacketRx {
    /// A queue of `interface`.
    pub fn new(ring: RxRing, interface: InterfaceId) -> PacketRx {
        PacketRx {
            ring,
            arrival: Arrival::new(interface),
            long: vec![0; TAG_BYTES + VIRTIO_NET_HEADER_BYTES + LONG_BYTES_MAX].into(),
            current: None,
        }
    }

    /// Look at the frame that waits first.
    #[inline]
    fn begin(&mut self, slot: Slot) -> Result<Current, RxDrop> {
        if slot.is_cut {
            return Err(RxDrop::Truncated);
        }
        let (memory, start, end) = if slot.is_long {
            let into = &mut self.long[TAG_BYTES..];
            let got = self.ring.socket().receive(into).map_err(|_| RxDrop::ReadFailed)?;
            if got > into.len() {
                return Err(RxDrop::Truncated);
            }
            (&mut self.long[..], TAG_BYTES + VIRTIO_NET_HEADER_BYTES, TAG_BYTES + got)
        } else {
            (self.ring.memory(), slot.start, slot.start + slot.bytes)
        };
        let mut header = offload_header(memory, start).ok_or(RxDrop::BadOffload)?;
        let mut begin = start;
        if let Some(tag) = slot.tag {
            begin = put_tag(memory, start, tag).ok_or(RxDrop::TooShort)?;
            header.checksum_start = header.checksum_start.saturating_add(TAG_BYTES as u16);
        }
        Ok(Current { header, start: begin, end: end.max(begin), is_long: slot.is_long })
    }
}

impl RxQueue for PacketRx {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        let mut packets = 0;
        while frame.room() > 0 && packets < VECTOR_PACKETS_MAX {
            if self.current.is_none() {
                let Some(slot) = self.ring.peek() else { break };
                if slot.is_losing {
                    let lost = self.ring.socket().take_drops();
                    self.arrival.lose(RxDrop::KernelDropped, lost, cx);
                }
                match self.begin(slot) {
                    Ok(current) => self.current = Some(current),
                    Err(reason) => {
                        self.arrival.lose(reason, 1, cx);
                        self.ring.release();
                        continue;
                    }
                }
            }
            let Some(current) = self.current else { break };
            let memory = if current.is_long { &self.long[..] } else { self.ring.memory() };
            let bytes = memory.get(current.start..current.end).unwrap_or(&[]);
            if self.arrival.admit(&current.header, bytes, cx, frame) == Progress::More {
                break;
            }
            self.current = None;
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
        self.current.is_some() || self.ring.is_ready()
    }
}
