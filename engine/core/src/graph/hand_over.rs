//! Packets for a node of another worker, which owns what they are about. While the ring between the
//! two is full they wait in their order, and the worker takes no more.

use std::collections::VecDeque;

use crate::graph::context::Context;
use crate::graph::frame::Frame;
use crate::graph::node::Reason;
use crate::ids::WorkerId;
use crate::memory::packet::Packet;

/// Packets that wait at most: what one pass of a worker that takes no more may have brought.
const WAITING_MAX: usize = 8_192;

/// What a worker hands to the owner.
pub struct HandOver {
    owner: WorkerId,
    waiting: VecDeque<Packet>,
}

impl HandOver {
    /// From `worker` to `owner`, which may be the same: then nothing is to be handed over.
    pub fn new(worker: WorkerId, owner: WorkerId) -> HandOver {
        let capacity = if worker == owner { 0 } else { WAITING_MAX };
        HandOver { owner, waiting: VecDeque::with_capacity(capacity) }
    }

    /// Hand a vector to the same node of the owner, behind what waits. What has no place any more
    /// dies of `congestion`.
    pub fn take(&mut self, cx: &mut Context<'_>, frame: &mut Frame, congestion: impl Reason) {
        let own = cx.node;
        for mut packet in frame.drain() {
            if self.waiting.is_empty() {
                cx.trace(&packet, own);
                match cx.hand_off(packet, self.owner, own) {
                    Ok(()) => continue,
                    Err(back) => packet = back,
                }
            }
            if self.waiting.len() < WAITING_MAX {
                cx.keep_age(&mut packet);
                self.waiting.push_back(packet);
            } else {
                cx.kill(packet, congestion);
            }
        }
    }

    /// Hand over what waits, as far as the ring has room.
    pub fn retry(&mut self, cx: &mut Context<'_>) {
        while let Some(packet) = self.waiting.pop_front() {
            if let Err(packet) = cx.hand_off(packet, self.owner, cx.node) {
                return self.waiting.push_front(packet);
            }
        }
    }

    /// While packets wait, the worker reads no receive queue, which counts as `back_pressure`; when
    /// to [`retry`](Self::retry) then.
    pub fn hold(&self, cx: &mut Context<'_>, back_pressure: impl Reason) -> Option<u64> {
        if self.waiting.is_empty() {
            return None;
        }
        cx.count(back_pressure, 1);
        cx.hold_receive();
        Some(cx.now_ns)
    }
}
