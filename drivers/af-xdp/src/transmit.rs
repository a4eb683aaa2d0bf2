//! A transmit queue: packets into a socket's memory, and one call for all of them.

use std::sync::{Arc, Mutex, PoisonError};

use quiver_core::graph::builtin::TxDrop;
use quiver_core::worker::device::TxQueue;
use quiver_core::{Context, Frame, Packet};

use crate::socket::{CHUNK_BYTES, TxSide, chunks_of};

/// Longest frame, bytes: Linux takes so many pieces.
const FRAME_BYTES_MAX: usize = 17 * CHUNK_BYTES;

/// A transmit queue. Workers beyond the number of queues share one; the lock is taken once for a
/// vector.
pub struct XdpTx {
    side: Arc<Mutex<TxSide>>,
}

impl XdpTx {
    /// Send by this side of a socket.
    pub fn new(side: Arc<Mutex<TxSide>>) -> XdpTx {
        XdpTx { side }
    }
}

/// Let the first `count` packets die here.
#[cold]
pub fn drop_front(cx: &mut Context<'_>, frame: &mut Frame, count: usize, reason: TxDrop) {
    frame.take_front(count, |packet| cx.buffers.free(packet));
    cx.count(reason, count as u64);
    cx.interface_counters(cx.tx).tx_errors.add(count as u64);
}

/// Why packets stay behind those that were added.
enum Stop {
    End,
    TooLong,
    NoRoom,
}

/// Add packets from the front, as far as there are chunks; how many.
fn add(side: &mut TxSide, packets: &[Packet], free: &mut usize) -> (usize, Stop) {
    for (place, packet) in packets.iter().enumerate() {
        let bytes = packet.length();
        if bytes > FRAME_BYTES_MAX {
            return (place, Stop::TooLong);
        }
        let Some(rest) = free.checked_sub(chunks_of(bytes)) else { return (place, Stop::NoRoom) };
        *free = rest;
        side.add(packet.segments());
    }
    (packets.len(), Stop::End)
}

impl TxQueue for XdpTx {
    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let mut side = self.side.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = side.reclaim();
        let mut is_asked = false;
        while !frame.is_empty() {
            let (added, stop) = add(&mut side, frame.packets(), &mut free);
            frame.take_front(added, |packet| cx.buffers.free(packet));
            match stop {
                Stop::End => {}
                Stop::TooLong => drop_front(cx, frame, 1, TxDrop::TooLong),
                Stop::NoRoom if is_asked => break, // the engine counts the rest
                Stop::NoRoom => {
                    is_asked = true;
                    if side.kick().is_err() {
                        drop_front(cx, frame, frame.len(), TxDrop::Refused);
                        return;
                    }
                    free = side.reclaim();
                }
            }
        }
        // What the kernel does not take now goes with the next vector.
        let _ = side.kick();
    }
}
