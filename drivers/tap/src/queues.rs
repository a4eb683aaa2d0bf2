//! The queues of a tap: frames from Linux into the graph, and from the graph to Linux.

use std::io::{self, IoSliceMut};
use std::os::fd::RawFd;
use std::sync::Arc;

use quiver_core::graph::builtin::TxDrop;
use quiver_core::worker::device::{RxQueue, TxQueue};
use quiver_core::{Context, Frame, InterfaceId, NodeId};
use quiver_linux::virtio_net::VIRTIO_NET_HEADER_BYTES;
use quiver_linux::{Arrival, Progress, RxDrop, VirtioNetHeader};

use crate::tun::TunQueue;

/// Longest frame, bytes: 64 KiB of IP and what stands in front of it.
const FRAME_BYTES_MAX: usize = 65_536 + 64;

/// Bytes that one vector takes: super-frames hold many buffers.
const VECTOR_BYTES_MAX: usize = 1 << 20;

/// A receive queue.
pub struct TapRx {
    queue: Arc<TunQueue>,
    arrival: Arrival,
    /// Frames that do not fit in a buffer or stand for several. Reads put the beginning into a
    /// buffer and the rest here, where it belongs.
    store: Box<[u8]>,
    /// A frame in the store that is not yet all in the graph: its header and length.
    under_way: Option<(VirtioNetHeader, usize)>,
}

impl TapRx {
    /// A queue of `interface`.
    pub fn new(queue: Arc<TunQueue>, interface: InterfaceId, data_bytes: usize) -> TapRx {
        let store = vec![0; FRAME_BYTES_MAX + data_bytes].into();
        TapRx { queue, arrival: Arrival::new(interface), store, under_way: None }
    }

    /// Read one frame; false when there is none.
    #[inline]
    fn take(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> bool {
        let data_bytes = cx.buffers.pool().data_bytes();
        // Without a buffer, frames wait where they are.
        let Some(mut packet) = cx.buffers.packet() else { return false };
        let _ = packet.set_length(data_bytes, data_bytes);
        let mut header = [0; VIRTIO_NET_HEADER_BYTES];
        let got = self.queue.read(&mut [
            IoSliceMut::new(&mut header),
            IoSliceMut::new(packet.bytes_mut()),
            IoSliceMut::new(&mut self.store[data_bytes..]),
        ]);
        let bytes = match got {
            Ok(bytes) => bytes.saturating_sub(VIRTIO_NET_HEADER_BYTES),
            Err(error) => {
                cx.buffers.free(packet);
                let expected = [libc::EAGAIN, libc::EINTR, libc::EBADFD].map(Some);
                if !expected.contains(&error.raw_os_error()) {
                    self.arrival.lose(RxDrop::ReadFailed, 1, cx);
                }
                return false;
            }
        };
        let header = VirtioNetHeader::parse(&header);
        let in_packet = bytes.min(data_bytes);
        let _ = packet.set_length(in_packet, data_bytes);
        if bytes <= FRAME_BYTES_MAX && !header.is_nested(packet.bytes(), bytes) {
            if packet.append(&self.store[data_bytes..data_bytes + bytes - in_packet], cx.buffers) {
                self.arrival.admit_packet(&header, packet, cx, frame);
            } else {
                cx.buffers.free(packet);
                self.arrival.lose(RxDrop::NoBuffer, 1, cx);
            }
            return true;
        }
        self.store[..in_packet].copy_from_slice(packet.bytes());
        cx.buffers.free(packet);
        if bytes > FRAME_BYTES_MAX {
            self.arrival.lose(RxDrop::Truncated, 1, cx);
        } else {
            self.admit(header, bytes, cx, frame);
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
        let mut bytes = 0;
        while frame.room() > 0 && self.under_way.is_none() && bytes < VECTOR_BYTES_MAX {
            if !self.take(cx, frame) {
                break;
            }
            bytes += frame.packets().last().map_or(0, |packet| packet.length());
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
