//! Packets from one worker to another: one ring per pair, nobody waits. A node drops and counts
//! what does not fit, or keeps it and lets the worker leave its receive queues alone
//! ([`Handoff::hold_receive`]) until the ring has room again.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::graph::visits::Age;
use crate::ids::{NodeId, WorkerId};
use crate::memory::packet::Packet;
use crate::memory::ring::{Consumer, Producer, ring};
use crate::worker::Shared;

/// Packets that can wait between two workers.
pub const HANDOFF_PACKETS_MAX: usize = 1024;

/// A packet, the node it goes to, and its age: it counts its visits on whatever worker.
type Parcel = (Packet, NodeId, Age);

/// One worker's ends of the rings.
#[derive(Default)]
pub(crate) struct Handoff {
    to: Vec<Option<Way>>,
    from: Vec<Consumer<Parcel>>,
    /// Packets were put that their takers do not see yet.
    unseen: bool,
    /// The next pass reads no receive queue.
    holds_receive: bool,
    /// What other workers hand over is not taken the next time.
    holds_handed_over: bool,
}

/// The way to one other worker.
struct Way {
    ring: Producer<Parcel>,
    worker: Arc<Shared>,
    unseen: bool,
}

impl Handoff {
    /// The rings between all of `workers`.
    pub(crate) fn between(workers: &[Arc<Shared>]) -> Vec<Handoff> {
        let count = workers.len();
        let mut ends: Vec<Handoff> = (0..count).map(|_| Handoff::default()).collect();
        for from in 0..count {
            for to in 0..count {
                if from == to {
                    ends[from].to.push(None);
                    continue;
                }
                let (put, take) = ring(HANDOFF_PACKETS_MAX);
                ends[from].to.push(Some(Way {
                    ring: put,
                    worker: workers[to].clone(),
                    unseen: false,
                }));
                ends[to].from.push(take);
            }
        }
        ends
    }

    pub(crate) fn workers(&self) -> usize {
        self.from.len()
    }

    /// Take up to `max` of the packets that worker `from` has handed over; how many.
    pub(crate) fn take_up_to(
        &mut self,
        from: usize,
        max: usize,
        each: impl FnMut(Parcel),
    ) -> usize {
        self.from[from].take_up_to(max, each)
    }

    pub(crate) fn is_idle(&mut self) -> bool {
        self.from.iter_mut().all(Consumer::is_empty)
    }

    /// Hand a packet over, to be seen after [`show`](Self::show); it comes back when the ring is
    /// full or there is no such other worker.
    pub(crate) fn put(
        &mut self,
        to: WorkerId,
        packet: Packet,
        next: NodeId,
        age: Age,
    ) -> Result<(), Packet> {
        let Some(Some(way)) = self.to.get_mut(to.index()) else { return Err(packet) };
        way.ring.put_unseen((packet, next, age)).map_err(|(packet, ..)| packet)?;
        way.unseen = true;
        self.unseen = true;
        Ok(())
    }

    /// Let the next pass read no receive queue.
    pub(crate) fn hold_receive(&mut self) {
        self.holds_receive = true;
    }

    /// Does this pass read no receive queue? Holds for one pass.
    #[inline]
    pub(crate) fn take_hold(&mut self) -> bool {
        std::mem::take(&mut self.holds_receive)
    }

    /// Let what other workers hand over wait once.
    pub(crate) fn hold_handed_over(&mut self) {
        self.holds_handed_over = true;
    }

    /// Does what other workers hand over wait? Holds once.
    #[inline]
    pub(crate) fn take_hold_handed_over(&mut self) -> bool {
        std::mem::take(&mut self.holds_handed_over)
    }

    /// Let the other workers see what was put, and wake those that sleep. Once for all that a
    /// worker's vectors have put, not per packet: the line with the index goes to the other core
    /// each time.
    #[inline]
    pub(crate) fn show(&mut self) {
        if std::mem::take(&mut self.unseen) {
            self.show_unseen();
        }
    }

    #[cold]
    fn show_unseen(&mut self) {
        for way in self.to.iter_mut().flatten().filter(|way| way.unseen) {
            way.unseen = false;
            way.ring.show();
            // Who falls asleep says so first and looks at its rings then; we show first and look
            // whether it sleeps then. The fence keeps the two in order.
            fence(Ordering::SeqCst);
            if way.worker.asleep.load(Ordering::SeqCst) {
                way.worker.wake.ring();
            }
        }
    }
}
