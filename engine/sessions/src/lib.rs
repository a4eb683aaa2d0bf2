#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs, clippy::missing_errors_doc)]

use std::collections::VecDeque;

use quiver_core::{Context, NodeId, Packet, WorkerId};

/// Packets that a worker keeps for the owner while the ring to it is full. A worker reads no
/// receive queue meanwhile, so that they are those of one pass.
const WAITING_MAX: usize = 8_192;
/// Nanoseconds between two turns of the clock hand.
pub const TURN_NS: u64 = 10_000_000;
/// Turns of a whole round: it takes 10 seconds.
const TURNS_OF_ROUND: usize = 1_000;
/// Sessions that a turn looks at, at least.
const TURN_PLACES_MIN: usize = 64;

/// Sessions that the clock hand looks at in a turn, of a table with so many places.
pub fn places_of_turn(places: usize) -> usize {
    (places / TURNS_OF_ROUND).max(TURN_PLACES_MIN)
}

/// The packets of a worker that go to the owner of the sessions, in their order.
pub struct OwnerQueue {
    owner: WorkerId,
    node: NodeId,
    waiting: VecDeque<Packet>,
}

impl OwnerQueue {
    /// Of the slow-path node `node`; `owner` is the worker that makes sessions.
    pub fn new(owner: WorkerId, node: NodeId) -> OwnerQueue {
        OwnerQueue { owner, node, waiting: VecDeque::with_capacity(WAITING_MAX) }
    }

    /// Hand a packet to the owner, behind those that wait.
    ///
    /// # Errors
    /// No more packets can wait; the packet comes back.
    pub fn put(&mut self, cx: &mut Context<'_>, mut packet: Packet) -> Result<(), Packet> {
        if self.waiting.is_empty() {
            cx.trace(&packet, self.node);
            match cx.hand_off(packet, self.owner, self.node) {
                Ok(()) => return Ok(()),
                Err(back) => packet = back,
            }
        }
        if self.waiting.len() >= WAITING_MAX {
            return Err(packet);
        }
        cx.keep_age(&mut packet);
        self.waiting.push_back(packet);
        Ok(())
    }

    /// Hand over what waits, as far as the ring has room.
    pub fn retry(&mut self, cx: &mut Context<'_>) {
        while let Some(packet) = self.waiting.pop_front() {
            if let Err(packet) = cx.hand_off(packet, self.owner, self.node) {
                self.waiting.push_front(packet);
                return;
            }
        }
    }

    /// While packets wait, the worker reads no receive queue, and the node's tick is called in the
    /// next pass. Does it hold?
    pub fn hold(&self, cx: &mut Context<'_>) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        cx.hold_receive();
        cx.tick_at(cx.now_ns);
        true
    }
}
