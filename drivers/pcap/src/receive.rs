//! Receiving: packets that lie in memory, as fast as the graph takes them.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quiver_core::worker::device::RxQueue;
use quiver_core::worker::poll::Bell;
use quiver_core::{Context, Frame, InterfaceId, NodeId};

use crate::file::Packets;

/// What the control thread and the queue tell each other.
pub(crate) struct RxState {
    /// Packets that have come in.
    pub(crate) received: AtomicU64,
    /// The operator has set the interface up.
    pub(crate) up: AtomicBool,
    /// Rings when that changes.
    pub(crate) bell: Bell,
}

/// A receive queue.
pub(crate) struct PcapRx {
    pub(crate) interface: InterfaceId,
    pub(crate) packets: Arc<Packets>,
    pub(crate) state: Arc<RxState>,
    pub(crate) repeat: bool,
    /// The next packet.
    pub(crate) at: usize,
}

impl PcapRx {
    fn is_done(&self) -> bool {
        self.at == self.packets.len()
    }
}

impl RxQueue for PcapRx {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        // Nothing is lost for having been made before the interface was set up.
        if self.is_done() || !cx.interface(self.interface).is_some_and(|row| row.up) {
            return None;
        }
        let ready = cx.buffers.reserve(frame.room());
        let mut received = 0;
        for _ in 0..ready {
            let Some(mut packet) = cx.buffers.packet() else { break };
            let whole = packet.append(self.packets.get(self.at), cx.buffers);
            if !whole {
                cx.buffers.free(packet); // it waits until there are buffers
                break;
            }
            if let Err(packet) = frame.push(packet) {
                cx.buffers.free(packet);
                break;
            }
            received += 1;
            self.at += 1;
            if self.is_done() {
                if !self.repeat {
                    break;
                }
                self.at = 0;
            }
        }
        let total = self.state.received.load(Ordering::Relaxed) + received;
        self.state.received.store(total, Ordering::Relaxed);
        None
    }

    fn wake_fd(&self) -> Option<RawFd> {
        Some(self.state.bell.fd())
    }

    fn arm(&mut self, interrupts: bool) -> bool {
        if interrupts {
            return !self.is_done() && self.state.up.load(Ordering::Acquire);
        }
        self.state.bell.clear();
        false
    }
}
