//! Packets from one worker to another: one ring per pair, nobody waits, what does not fit is
//! dropped and counted where it came from.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::ids::{NodeId, WorkerId};
use crate::packet::Packet;
use crate::ring::{Consumer, Producer, ring};
use crate::worker::Shared;

/// Packets that can wait between two workers.
pub const HANDOFF_PACKETS_MAX: usize = 1024;

type Parcel = (Packet, NodeId);

/// One worker's ends of the rings.
#[derive(Default)]
pub(crate) struct Handoff {
    to: Vec<Option<(Producer<Parcel>, Arc<Shared>)>>,
    from: Vec<Consumer<Parcel>>,
    idle: bool,
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
                ends[from].to.push(Some((put, workers[to].clone())));
                ends[to].from.push(take);
            }
        }
        ends
    }

    pub(crate) fn workers(&self) -> usize {
        self.from.len()
    }

    pub(crate) fn take(&mut self, from: usize) -> Option<Parcel> {
        self.from[from].take()
    }

    pub(crate) fn is_idle(&mut self) -> bool {
        self.idle = self.from.iter_mut().all(Consumer::is_empty);
        self.idle
    }

    /// Hand a packet over; it comes back when the ring is full or there is no such other worker.
    pub(crate) fn put(&mut self, to: WorkerId, packet: Packet, next: NodeId) -> Result<(), Packet> {
        let Some(Some((ring, shared))) = self.to.get_mut(to.index()) else { return Err(packet) };
        ring.put((packet, next)).map_err(|(packet, _)| packet)?;
        if shared.asleep.load(Ordering::SeqCst) {
            shared.wake.ring();
        }
        Ok(())
    }
}
