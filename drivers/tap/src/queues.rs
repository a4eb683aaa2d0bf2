//! The queues of a tap: frames from Linux into the graph, and from the graph to Linux.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use quiver_core::graph::builtin::TxDrop;
use quiver_core::worker::device::{RxQueue, TxQueue};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_linux::virtio_net::VIRTIO_NET_HEADER_BYTES;
use quiver_linux::{
    Arrival, FRAME_BYTES_MAX, RxDrop, Scatter, VECTOR_PACKETS_MAX, VirtioNetHeader,
};

use crate::tun::TunQueue;

/// Bytes that one vector takes: super-frames hold many buffers.
const VECTOR_BYTES_MAX: u64 = 1 << 20;
/// Reads without a frame after which the next one is not expected to be long any more: an idle
/// queue takes no buffers for it.
const EMPTY_READS_MAX: u32 = 64;

/// A receive queue.
pub struct TapRx {
    queue: Arc<TunQueue>,
    arrival: Arrival,
    scatter: Scatter,
    /// The last frame was longer than a buffer: the next one probably is, too.
    expects_long: bool,
    /// Reads without a frame since the last one.
    empty_reads: u32,
}

impl TapRx {
    /// A queue whose frames become packets in this way.
    pub fn new(queue: Arc<TunQueue>, arrival: Arrival, data_bytes: usize) -> TapRx {
        TapRx {
            queue,
            arrival,
            scatter: Scatter::new(data_bytes),
            expects_long: false,
            empty_reads: 0,
        }
    }

    /// Read one frame, its header and its length; `None` when there is none, or no buffer: then
    /// frames wait where they are.
    #[inline]
    fn read(&mut self, cx: &mut Context<'_>) -> Option<(VirtioNetHeader, Packet, usize)> {
        let expected = if self.expects_long { FRAME_BYTES_MAX } else { 0 };
        let mut packet = self.scatter.prepare(expected, cx.buffers)?;
        let mut header = [0; VIRTIO_NET_HEADER_BYTES];
        match self.queue.read(&mut header, packet.bytes_mut(), &mut self.scatter) {
            Ok(bytes) => {
                self.empty_reads = 0;
                let bytes = bytes.saturating_sub(VIRTIO_NET_HEADER_BYTES);
                Some((VirtioNetHeader::parse(&header), packet, bytes))
            }
            Err(error) => {
                self.scatter.release(packet, cx.buffers);
                self.empty_reads += 1;
                self.expects_long &= self.empty_reads < EMPTY_READS_MAX;
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
        let Some((header, packet, bytes)) = self.read(cx) else { return false };
        self.expects_long = bytes > cx.buffers.pool().data_bytes();
        match self.scatter.gather(packet, bytes, cx.buffers) {
            Ok(packet) => self.arrival.admit_packet(&header, packet, cx, frame),
            Err(reason) => self.arrival.lose(reason, 1, cx),
        }
        true
    }
}

impl RxQueue for TapRx {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        let (mut packets, mut bytes) = (0, 0);
        while frame.room() > 0
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
