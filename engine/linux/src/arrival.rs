//! Frames that the kernel hands over become packets of the graph. Checksums that are not complete
//! and super-frames stay as they are; they are finished in front of nodes that do not take them
//! ([`NodeSpec::takes_offloads`](quiver_core::graph::node::NodeSpec::takes_offloads)).

use quiver_core::memory::buffer::BufferCache;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Frame, InterfaceId, Packet};

use crate::virtio_net::VirtioNetHeader;

/// Packets on a wire that one vector of frames from the kernel stands for: a super-frame is many.
pub const VECTOR_PACKETS_MAX: u64 = 2048;

/// Bytes of an Ethernet header.
const ETHERNET_BYTES: usize = 14;
/// Bytes of an IPv4 header without options, the shortest header of an IP packet.
const IP_BYTES: usize = 20;

quiver_core::reasons! {
    /// Why a frame from the kernel does not become a packet.
    pub enum RxDrop {
        /// Less than a header.
        TooShort = "too-short", "the frame is shorter than an Ethernet header, or the packet \
            shorter than an IP header";
        /// Cut by the kernel.
        Truncated = "truncated", "the kernel cut the frame: its receive buffer was full, or it is \
            longer than 64 KiB";
        /// Metadata outside the frame.
        BadOffload = "bad-offload", "what the kernel says about checksum or segmentation does not \
            fit the frame";
        /// No buffer.
        NoBuffer = "no-buffer", "no free buffer (`show buffers`)";
        /// The kernel's ring was full.
        KernelDropped = "kernel-dropped", "the kernel found the receive ring full";
        /// A read failed.
        ReadFailed = "read-failed", "the kernel refused to hand over a frame";
        /// Checksums left open.
        Unfinished = info "checksum-unfinished",
            "frames whose checksum is left to the transmitting device";
        /// Frames that stand for several.
        SuperFrame = info "super-frame", "super-frames, each of which stands for several segments";
    }
}

/// Makes packets of the frames of one interface.
pub struct Arrival {
    interface: InterfaceId,
    /// Bytes of the header that each begins with, at least.
    header_bytes: usize,
}

impl Arrival {
    /// For frames that come in on `interface`.
    pub fn new(interface: InterfaceId) -> Arrival {
        Arrival { interface, header_bytes: ETHERNET_BYTES }
    }

    /// For IP packets without a link-layer header that come in on `interface`.
    pub fn of_packets(interface: InterfaceId) -> Arrival {
        Arrival { interface, header_bytes: IP_BYTES }
    }

    /// Count frames that die before they are packets.
    #[cold]
    pub fn lose(&self, reason: RxDrop, frames: u64, cx: &mut Context<'_>) {
        cx.count(reason, frames);
        let counters = cx.interface_counters(self.interface);
        let count =
            if reason == RxDrop::NoBuffer { &counters.rx_no_buffer } else { &counters.rx_errors };
        count.add(frames);
    }

    /// Put the packet that `bytes` is into `frame`, which has room. Deaths are counted in the name
    /// of the running node, the input.
    #[inline]
    pub fn admit(
        &self,
        header: &VirtioNetHeader,
        bytes: &[u8],
        cx: &mut Context<'_>,
        frame: &mut Frame,
    ) {
        if bytes.len() < self.header_bytes {
            return self.lose(RxDrop::TooShort, 1, cx);
        }
        match copy(bytes, cx.buffers) {
            Some(packet) => self.admit_packet(header, packet, cx, frame),
            None => self.lose(RxDrop::NoBuffer, 1, cx),
        }
    }

    /// As [`admit`](Self::admit), for a frame that lies in a packet already.
    #[inline]
    pub fn admit_packet(
        &self,
        header: &VirtioNetHeader,
        mut packet: Packet,
        cx: &mut Context<'_>,
        frame: &mut Frame,
    ) {
        let wrong = if packet.segment_length() < self.header_bytes {
            Some(RxDrop::TooShort)
        } else if header.is_plain() {
            None
        } else if let Some(offload) = header.offload_of(&packet) {
            *packet.offload_mut() = offload;
            packet.set(PacketFlags::OFFLOAD);
            frame.note_offload();
            let is_large = offload.segment_bytes != 0;
            cx.count(if is_large { RxDrop::SuperFrame } else { RxDrop::Unfinished }, 1);
            None
        } else {
            Some(RxDrop::BadOffload)
        };
        match wrong {
            None => push(frame, packet, cx.buffers),
            Some(reason) => {
                cx.buffers.free(packet);
                self.lose(reason, 1, cx);
            }
        }
    }
}

#[inline]
fn push(frame: &mut Frame, packet: Packet, buffers: &mut BufferCache) {
    if let Err(packet) = frame.push(packet) {
        buffers.free(packet); // cannot be: there was room
    }
}

#[inline]
fn copy(bytes: &[u8], buffers: &mut BufferCache) -> Option<Packet> {
    let mut packet = buffers.packet()?;
    if packet.append(bytes, buffers) {
        return Some(packet);
    }
    buffers.free(packet);
    None
}
