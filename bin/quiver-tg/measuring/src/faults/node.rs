//! `tg-faults-N`: takes the frames of a port with faults to its fault line.

use std::sync::Arc;

use quiver_core::memory::ring::Producer;
use quiver_core::{Context, Frame, Node, Packet};

use super::counts::FaultCounts;
use super::subject::Subject;

/// Frames between the node and its line: some passes of a busy port.
pub const RING_FRAMES: usize = 2048;

/// The node.
pub struct FaultNode {
    line: Producer<Packet>,
    subject: Subject,
    done: Arc<FaultCounts>,
}

impl FaultNode {
    /// Before this line.
    pub fn new(line: Producer<Packet>, subject: Subject, done: Arc<FaultCounts>) -> FaultNode {
        FaultNode { line, subject, done }
    }
}

impl Node for FaultNode {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        for packet in frame.drain() {
            if let Err(unfit) = self.line.put(packet) {
                let measurement = self.done.measurement.get();
                let stamp = self.subject.stamp_of(&unfit, measurement as u8, 0);
                if stamp.is_some_and(|stamp| u64::from(stamp.measurement) == measurement) {
                    self.done.overflowed.add(1);
                }
                cx.buffers.free(unfit);
            }
        }
    }
}
