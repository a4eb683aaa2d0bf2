//! The fault line of a port: decides about each frame, holds back what comes later, and hands the
//! rest to the receiver. It is an input of its own, so that what is held back goes on when nothing
//! else comes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use quiver_core::memory::ring::Consumer;
use quiver_core::worker::device::RxQueue;
use quiver_core::{Context, Frame, NodeId, Packet};

use super::counts::FaultCounts;
use super::subject::Subject;
use quiver_tg_traffic::frames::Random;
use quiver_tg_traffic::profile::faults::Faults;
use quiver_tg_traffic::stamp::{STAMP_BYTES, Stamp};

/// Frames that are held back at once.
pub const HELD_FRAMES_MAX: usize = 1024;
/// A frame that should be overtaken goes on after this time all the same, nanoseconds.
pub const REORDER_HOLD_NS_MAX: u64 = 10_000_000;
/// Bytes of a stamp's magic: without it nobody would know whose the frame was.
const MAGIC_BYTES: usize = 2;

/// Faults, and the shares of all before and including it, of 2^64.
struct Thresholds {
    loss: u64,
    duplicate: u64,
    reorder: u64,
    corrupt: u64,
    delay: u64,
}

impl Thresholds {
    fn new(faults: &Faults) -> Thresholds {
        let mut share = 0.0;
        let mut next = |of: f64| {
            share += of;
            // Saturates: 1.0 is all but one of 2^64 numbers.
            (share * 2f64.powi(64)) as u64
        };
        Thresholds {
            loss: next(faults.loss),
            duplicate: next(faults.duplicate),
            reorder: next(faults.reorder),
            corrupt: next(faults.corrupt),
            delay: next(faults.delay),
        }
    }
}

/// A frame that goes on later; the earliest is the greatest.
struct Delayed {
    at: Reverse<(u64, u64)>,
    packet: Packet,
}

impl PartialEq for Delayed {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Delayed {}

impl PartialOrd for Delayed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Delayed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

/// A frame that waits to be overtaken.
struct Overtaken {
    packet: Packet,
    stamp: Stamp,
    /// Frames that have still to pass.
    left: u32,
    until_ns: u64,
}

/// The line.
pub struct FaultLine {
    faults: Faults,
    subject: Subject,
    /// Frames of the subject that have come.
    seen: u64,
    thresholds: Thresholds,
    random: Random,
    input: Consumer<Packet>,
    receiver: NodeId,
    done: Arc<FaultCounts>,
    delayed: BinaryHeap<Delayed>,
    overtaken: Vec<Overtaken>,
    /// Frames that have been delayed; keeps those of one moment in order.
    number: u64,
    /// Frames that are still to be lost together.
    loss_left: u32,
}

impl FaultLine {
    /// Frames come by `input` and go to the node `receiver`; faults befall those of `subject`.
    pub fn new(
        faults: &Faults,
        subject: Subject,
        input: Consumer<Packet>,
        receiver: NodeId,
        done: Arc<FaultCounts>,
    ) -> FaultLine {
        FaultLine {
            thresholds: Thresholds::new(faults),
            random: Random::new(faults.seed),
            faults: faults.clone(),
            subject,
            seen: 0,
            input,
            receiver,
            done,
            delayed: BinaryHeap::with_capacity(HELD_FRAMES_MAX),
            overtaken: Vec::with_capacity(HELD_FRAMES_MAX),
            number: 0,
            loss_left: 0,
        }
    }

    fn count(&self, stamp: &Stamp, of: fn(&FaultCounts) -> &quiver_core::graph::counters::Count) {
        if u64::from(stamp.measurement) == self.done.measurement.get() {
            of(&self.done).add(1);
        }
    }

    /// Put a frame back until `at_ns`; it goes on at once when too many are held back.
    fn put_back(&mut self, packet: Packet, at_ns: u64) -> Result<(), Packet> {
        if self.delayed.len() == HELD_FRAMES_MAX {
            return Err(packet);
        }
        self.number += 1;
        self.delayed.push(Delayed { at: Reverse((at_ns, self.number)), packet });
        Ok(())
    }

    /// Send on the frames whose hold time is over.
    fn release(&mut self, now_ns: u64, frame: &mut Frame, cx: &mut Context<'_>) {
        while frame.room() > 0 && self.delayed.peek().is_some_and(|d| d.at.0.0 <= now_ns) {
            if let Some(due) = self.delayed.pop() {
                give(frame, due.packet, cx);
            }
        }
        let mut place = 0;
        while frame.room() > 0 && place < self.overtaken.len() {
            let held = &self.overtaken[place];
            if held.left == 0 || held.until_ns <= now_ns {
                let held = self.overtaken.remove(place);
                self.let_go(held, frame, cx);
            } else {
                place += 1;
            }
        }
    }

    /// A frame that waited to be overtaken goes on.
    fn let_go(&mut self, held: Overtaken, frame: &mut Frame, cx: &mut Context<'_>) {
        let was_overtaken = held.left < self.faults.reorder_by;
        self.count(&held.stamp, if was_overtaken { |d| &d.reordered } else { |d| &d.missed });
        give(frame, held.packet, cx);
    }

    /// A whole frame goes on; those of its stream that it overtakes may follow.
    fn pass(&mut self, packet: Packet, stamp: &Stamp, frame: &mut Frame, cx: &mut Context<'_>) {
        give(frame, packet, cx);
        let mut place = 0;
        while place < self.overtaken.len() {
            let held = &mut self.overtaken[place];
            let is_same =
                (held.stamp.stream, held.stamp.measurement) == (stamp.stream, stamp.measurement);
            if is_same && held.stamp.sequence < stamp.sequence {
                held.left = held.left.saturating_sub(1);
            }
            if held.left == 0 && frame.room() > 0 {
                let held = self.overtaken.remove(place);
                self.let_go(held, frame, cx);
            } else {
                place += 1;
            }
        }
    }

    /// Decide on a frame: at most one fault.
    fn decide(&mut self, packet: Packet, now_ns: u64, frame: &mut Frame, cx: &mut Context<'_>) {
        let measurement = self.done.measurement.get() as u8;
        let Some(stamp) = self.subject.stamp_of(&packet, measurement, self.seen) else {
            return give(frame, packet, cx); // not the generator's
        };
        self.seen += 1;
        if self.loss_left > 0 {
            self.loss_left -= 1;
            return self.lose(packet, &stamp, cx);
        }
        let drawn = self.random.bits();
        if drawn < self.thresholds.loss {
            self.loss_left = self.faults.loss_run - 1;
            self.lose(packet, &stamp, cx);
        } else if drawn < self.thresholds.duplicate {
            self.duplicate(packet, &stamp, now_ns, frame, cx);
        } else if drawn < self.thresholds.reorder {
            self.hold(packet, stamp, now_ns, frame, cx);
        } else if drawn < self.thresholds.corrupt {
            self.corrupt(packet, &stamp, frame, cx);
        } else if drawn < self.thresholds.delay {
            match self.put_back(packet, now_ns + self.faults.delay_us * 1000) {
                Ok(()) => self.count(&stamp, |d| &d.delayed),
                Err(packet) => self.miss(packet, &stamp, frame, cx),
            }
        } else {
            self.pass(packet, &stamp, frame, cx);
        }
    }

    fn miss(&mut self, packet: Packet, stamp: &Stamp, frame: &mut Frame, cx: &mut Context<'_>) {
        self.count(stamp, |d| &d.missed);
        self.pass(packet, stamp, frame, cx);
    }

    fn lose(&self, packet: Packet, stamp: &Stamp, cx: &mut Context<'_>) {
        self.count(stamp, |d| &d.lost);
        cx.buffers.free(packet);
    }

    fn duplicate(
        &mut self,
        packet: Packet,
        stamp: &Stamp,
        now_ns: u64,
        frame: &mut Frame,
        cx: &mut Context<'_>,
    ) {
        let copied = packet.duplicate(cx.buffers).map(|copy| self.put_back(copy, now_ns));
        match copied {
            Some(Ok(())) => self.count(stamp, |d| &d.duplicated),
            Some(Err(copy)) => {
                self.count(stamp, |d| &d.missed);
                cx.buffers.free(copy);
            }
            None => self.count(stamp, |d| &d.missed),
        }
        self.pass(packet, stamp, frame, cx);
    }

    fn hold(
        &mut self,
        packet: Packet,
        stamp: Stamp,
        now_ns: u64,
        frame: &mut Frame,
        cx: &mut Context<'_>,
    ) {
        if self.overtaken.len() == HELD_FRAMES_MAX {
            return self.miss(packet, &stamp, frame, cx);
        }
        let until_ns = now_ns + REORDER_HOLD_NS_MAX;
        self.overtaken.push(Overtaken { packet, stamp, left: self.faults.reorder_by, until_ns });
    }

    fn corrupt(
        &mut self,
        mut packet: Packet,
        stamp: &Stamp,
        frame: &mut Frame,
        cx: &mut Context<'_>,
    ) {
        if self.subject.flip(&mut packet, &mut self.random) {
            self.count(stamp, |d| &d.corrupted);
            return give(frame, packet, cx);
        }
        let mut end = stamp.encode();
        let bit = self.random.below(8 * (STAMP_BYTES - MAGIC_BYTES) as u64) as usize;
        end[MAGIC_BYTES + bit / 8] ^= 1 << (bit % 8);
        packet.truncate(packet.length() - STAMP_BYTES, cx.buffers);
        if packet.append(&end, cx.buffers) {
            self.count(stamp, |d| &d.corrupted);
            give(frame, packet, cx);
        } else {
            // No buffer for what was in one a moment ago.
            self.lose(packet, stamp, cx);
        }
    }
}

/// Hand a frame on. Room has been looked for before a frame is taken from anywhere.
fn give(frame: &mut Frame, packet: Packet, cx: &mut Context<'_>) {
    if let Err(unfit) = frame.push(packet) {
        cx.buffers.free(unfit);
    }
}

impl RxQueue for FaultLine {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        let now_ns = cx.now_ns;
        self.release(now_ns, frame, cx);
        while frame.room() > 0 {
            let Some(packet) = self.input.take() else { break };
            self.decide(packet, now_ns, frame, cx);
        }
        Some(self.receiver)
    }

    fn sets_rx(&self) -> bool {
        true
    }
}
