//! The queues of a tap: frames from Linux into the graph, and from the graph to Linux.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use quiver_core::graph::builtin::TxDrop;
use quiver_core::memory::buffer::Buffer;
use quiver_core::worker::device::{RxQueue, TxQueue};
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};
use quiver_linux::virtio_net::VIRTIO_NET_HEADER_BYTES;
use quiver_linux::{Arrival, Progress, RxDrop, VirtioNetHeader};

use crate::tun::TunQueue;

/// Longest frame, bytes: 64 KiB of IP and what stands in front of it.
const FRAME_BYTES_MAX: usize = 65_536 + 64;

/// Bytes that one vector takes: super-frames hold many buffers.
const VECTOR_BYTES_MAX: u64 = 1 << 20;
/// Packets on a wire that one vector stands for.
const VECTOR_PACKETS_MAX: u64 = 2048;

/// Buffers that the longest frame needs behind its first one, with buffers of the usual size.
const MORE_BUFFERS_MAX: usize = 33;

/// A receive queue.
pub struct TapRx {
    queue: Arc<TunQueue>,
    arrival: Arrival,
    /// What does not fit in the buffers of a read, and frames that are cut here.
    store: Box<[u8]>,
    /// A frame in the store that is not yet all in the graph: its header and length.
    under_way: Option<(VirtioNetHeader, usize)>,
    /// The last frame was longer than a buffer: the next one probably is, too.
    expects_long: bool,
    /// Buffers for the rest of a long frame, while it is read.
    more: Vec<Buffer>,
}

/// Where a frame has been read to: its first buffer, those of [`TapRx::more`], the store.
struct Taken {
    header: VirtioNetHeader,
    packet: Packet,
    /// Bytes of the frame.
    bytes: usize,
}

impl TapRx {
    /// A queue of `interface`.
    pub fn new(queue: Arc<TunQueue>, interface: InterfaceId, data_bytes: usize) -> TapRx {
        TapRx {
            queue,
            arrival: Arrival::new(interface),
            store: vec![0; FRAME_BYTES_MAX + data_bytes].into(),
            under_way: None,
            expects_long: false,
            more: Vec::with_capacity(MORE_BUFFERS_MAX),
        }
    }

    /// Read one frame; `None` when there is none, or no buffer: then frames wait where they are.
    #[inline]
    fn read(&mut self, cx: &mut Context<'_>) -> Option<Taken> {
        let data_bytes = cx.buffers.pool().data_bytes();
        let mut packet = cx.buffers.packet()?;
        let _ = packet.set_length(data_bytes, data_bytes);
        let wanted = if self.expects_long { FRAME_BYTES_MAX.div_ceil(data_bytes) } else { 0 };
        while self.more.len() < wanted.min(MORE_BUFFERS_MAX)
            && let Some(buffer) = cx.buffers.take()
        {
            self.more.push(buffer);
        }
        let mut header = [0; VIRTIO_NET_HEADER_BYTES];
        let got = self.queue.read(&mut header, packet.bytes_mut(), &self.more, &mut self.store);
        match got {
            Ok(bytes) => {
                let header = VirtioNetHeader::parse(&header);
                let bytes = bytes.saturating_sub(VIRTIO_NET_HEADER_BYTES);
                Some(Taken { header, packet, bytes })
            }
            Err(error) => {
                cx.buffers.free(packet);
                cx.buffers.give_all(self.more.drain(..));
                let expected = [libc::EAGAIN, libc::EINTR, libc::EBADFD].map(Some);
                if !expected.contains(&error.raw_os_error()) {
                    self.arrival.lose(RxDrop::ReadFailed, 1, cx);
                }
                None
            }
        }
    }

    /// Read one frame into the vector; false when there is none.
    #[inline]
    fn take(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> bool {
        let data_bytes = cx.buffers.pool().data_bytes();
        let Some(Taken { header, mut packet, bytes }) = self.read(cx) else { return false };
        let _ = packet.set_length(bytes.min(data_bytes), data_bytes);
        self.expects_long = bytes > data_bytes;
        if self.expects_long || !self.more.is_empty() {
            return self.take_long(Taken { header, packet, bytes }, cx, frame);
        }
        if header.is_nested(packet.bytes(), bytes) {
            self.store[..bytes].copy_from_slice(packet.bytes());
            cx.buffers.free(packet);
            self.admit(header, bytes, cx, frame);
        } else {
            self.arrival.admit_packet(&header, packet, cx, frame);
        }
        true
    }

    /// The same, of a frame that may lie in several buffers and in the store.
    #[inline(never)]
    fn take_long(&mut self, taken: Taken, cx: &mut Context<'_>, frame: &mut Frame) -> bool {
        let Taken { header, mut packet, bytes } = taken;
        let data_bytes = cx.buffers.pool().data_bytes();
        let rest = bytes.saturating_sub(data_bytes);
        let in_more = rest.min(self.more.len() * data_bytes);
        let used = in_more.div_ceil(data_bytes);
        cx.buffers.give_all(self.more.drain(used..));
        if in_more > 0 {
            packet.chain_all(self.more.drain(..), in_more, data_bytes);
        }
        if bytes > FRAME_BYTES_MAX {
            cx.buffers.free(packet);
            self.arrival.lose(RxDrop::Truncated, 1, cx);
        } else if !packet.append(&self.store[..rest - in_more], cx.buffers) {
            cx.buffers.free(packet);
            self.arrival.lose(RxDrop::NoBuffer, 1, cx);
        } else if header.is_nested(packet.bytes(), bytes) {
            let mut at = 0;
            for segment in packet.segments() {
                self.store[at..at + segment.len()].copy_from_slice(segment);
                at += segment.len();
            }
            cx.buffers.free(packet);
            self.admit(header, bytes, cx, frame);
        } else {
            self.arrival.admit_packet(&header, packet, cx, frame);
        }
        true
    }

    /// Put what the frame in the store stands for into the vector, as far as there is room.
    fn admit(
        &mut self,
        header: VirtioNetHeader,
        bytes: usize,
        cx: &mut Context<'_>,
        frame: &mut Frame,
    ) {
        let progress = self.arrival.admit(&header, &self.store[..bytes], cx, frame);
        self.under_way = (progress == Progress::More).then_some((header, bytes));
    }
}

impl RxQueue for TapRx {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        if let Some((header, bytes)) = self.under_way {
            self.admit(header, bytes, cx, frame);
        }
        let (mut packets, mut bytes) = (0, 0);
        while frame.room() > 0
            && self.under_way.is_none()
            && packets < VECTOR_PACKETS_MAX
            && bytes < VECTOR_BYTES_MAX
            && self.take(cx, frame)
        {
            let (more, more_bytes) = frame.packets().last().map_or((0, 0), Packet::on_wire);
            (packets, bytes) = (packets + more, bytes + more_bytes);
        }
        None
    }

    fn wake_fd(&self) -> Option<RawFd> {
        Some(self.queue.fd())
    }

    fn arm(&mut self, _interrupts: bool) -> bool {
        self.under_way.is_some()
    }
}

/// A transmit queue.
pub struct TapTx(pub Arc<TunQueue>);

impl TxQueue for TapTx {
    fn takes_offloads(&self) -> bool {
        true
    }

    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        for packet in frame.drain() {
            if let Err(error) = self.0.write(&packet) {
                refused(cx, &error);
            }
            cx.buffers.free(packet);
        }
    }
}

#[cold]
fn refused(cx: &mut Context<'_>, error: &io::Error) {
    let reason = match error.raw_os_error() {
        Some(libc::EAGAIN | libc::ENOMEM | libc::ENOBUFS) => TxDrop::RingFull,
        Some(libc::EMSGSIZE) => TxDrop::TooLong,
        _ => TxDrop::Refused,
    };
    cx.count(reason, 1);
    cx.interface_counters(cx.tx).tx_errors.add(1);
}
