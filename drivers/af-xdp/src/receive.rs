//! A receive queue: frames from a socket's memory into the graph.

use std::os::fd::RawFd;

use quiver_core::cpu::prefetch;
use quiver_core::worker::device::RxQueue;
use quiver_core::{Context, Frame, InterfaceId, NodeId};
use quiver_linux::{Arrival, RxDrop, VirtioNetHeader};

use crate::socket::{CHUNK_BYTES, RxSide};

/// How many frames ahead of the copy are asked for.
const AHEAD: u32 = 4;
/// Longest frame, bytes: as many pieces as Linux puts into one.
const LONG_BYTES_MAX: usize = 18 * CHUNK_BYTES;

/// A receive queue.
pub struct XdpRx {
    side: RxSide,
    interface: InterfaceId,
    arrival: Arrival,
    /// The beginning of a frame in several pieces.
    long: Vec<u8>,
    /// It is longer than there is room for.
    is_cut: bool,
    /// What the kernel had dropped when it was last asked.
    dropped: u64,
}

impl XdpRx {
    /// A queue of `interface`.
    pub fn new(side: RxSide, interface: InterfaceId) -> XdpRx {
        XdpRx {
            side,
            interface,
            arrival: Arrival::new(interface),
            long: Vec::with_capacity(LONG_BYTES_MAX),
            is_cut: false,
            dropped: 0,
        }
    }

    /// Count what the kernel has dropped since it was last asked.
    #[cold]
    fn count_drops(&mut self, cx: &mut Context<'_>) {
        let dropped = self.side.drops();
        let new = dropped.saturating_sub(self.dropped);
        if new > 0 {
            self.arrival.lose(RxDrop::KernelDropped, new, cx);
        }
        self.dropped = dropped;
    }

    /// Take one piece of a frame in several.
    #[cold]
    fn gather(&mut self, is_last: bool, cx: &mut Context<'_>, frame: &mut Frame) {
        let piece = self.side.bytes(self.side.peek(0));
        if self.long.len() + piece.len() <= LONG_BYTES_MAX {
            self.long.extend_from_slice(piece);
        } else {
            self.is_cut = true;
        }
        if !is_last {
            return;
        }
        if std::mem::take(&mut self.is_cut) {
            self.arrival.lose(RxDrop::Truncated, 1, cx);
        } else {
            // A frame of its own size: `frame` has room, so it is done at once.
            self.arrival.admit(&VirtioNetHeader::default(), &self.long, cx, frame);
        }
        self.long.clear();
    }
}

impl RxQueue for XdpRx {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        let waiting = self.side.waiting();
        if waiting == 0 {
            return None;
        }
        if self.side.is_full(waiting) {
            cx.interface_counters(self.interface).rx_ring_full.add(1);
            self.count_drops(cx);
        }
        let plain = VirtioNetHeader::default();
        for left in (1..=waiting).rev() {
            if frame.room() == 0 {
                break;
            }
            if left > AHEAD {
                prefetch(self.side.bytes(self.side.peek(AHEAD)).as_ptr());
            }
            let piece = self.side.peek(0);
            if piece.is_continued || !self.long.is_empty() || self.is_cut {
                self.gather(!piece.is_continued, cx, frame);
            } else {
                self.arrival.admit(&plain, self.side.bytes(piece), cx, frame);
            }
            self.side.give_back();
        }
        self.side.publish();
        None
    }

    fn wake_fd(&self) -> Option<RawFd> {
        Some(self.side.socket().fd())
    }

    fn arm(&mut self, _interrupts: bool) -> bool {
        self.side.waiting() > 0
    }
}
