//! A transmit queue: packets to a packet socket, many in one system call.

use std::sync::Arc;

use quiver_core::graph::builtin::TxDrop;
use quiver_core::worker::device::TxQueue;
use quiver_core::{Context, Frame};

use crate::batch::SendBatch;
use crate::socket::PacketSocket;

/// Frames of one vector that the link may refuse for lack of room before the rest is dropped.
const REFUSALS_MAX: usize = 16;

/// A transmit queue.
pub struct PacketTx {
    socket: Arc<PacketSocket>,
    batch: SendBatch,
}

impl PacketTx {
    /// Send by `socket`; several queues may share it.
    pub fn new(socket: Arc<PacketSocket>) -> PacketTx {
        PacketTx { socket, batch: SendBatch::new() }
    }
}

/// Let the first `count` packets die here.
#[cold]
fn drop_front(cx: &mut Context<'_>, frame: &mut Frame, count: usize, reason: TxDrop) {
    frame.take_front(count, |packet| cx.buffers.free(packet));
    cx.count(reason, count as u64);
    cx.interface_counters(cx.tx).tx_errors.add(count as u64);
}

impl TxQueue for PacketTx {
    fn takes_offloads(&self) -> bool {
        true
    }

    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let mut refusals = 0;
        while !frame.is_empty() {
            let error = match self.batch.send(self.socket.fd(), frame.packets()) {
                Ok(sent) => {
                    frame.take_front(sent, |packet| cx.buffers.free(packet));
                    continue;
                }
                Err(error) => error.raw_os_error().unwrap_or(0),
            };
            match error {
                libc::EINTR => {}
                libc::EMSGSIZE => drop_front(cx, frame, 1, TxDrop::TooLong),
                libc::ENOBUFS | libc::EAGAIN | libc::ENOMEM if refusals < REFUSALS_MAX => {
                    refusals += 1;
                    drop_front(cx, frame, 1, TxDrop::RingFull);
                }
                libc::ENOBUFS | libc::EAGAIN | libc::ENOMEM => return, // the engine counts the rest
                libc::EINVAL => drop_front(cx, frame, 1, TxDrop::Refused),
                _ => drop_front(cx, frame, frame.len(), TxDrop::Refused),
            }
        }
    }
}
