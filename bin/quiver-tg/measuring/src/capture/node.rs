//! `tg-capture-…`: copies the frames that captures want into records on their way.

use std::sync::Arc;

use quiver_core::clock::Clock;
use quiver_core::graph::counters::Count;
use quiver_core::memory::ring::{Consumer, Producer, ring};
use quiver_core::{Context, Frame, Node, NodeId, Packet};

use quiver_tg_traffic::profile::capture::headers::Headers;
use quiver_tg_traffic::profile::capture::{CaptureSpec, Filter};
use quiver_tg_traffic::stamp::Stamp;
use quiver_tg_traffic::stamp::end_of;

/// Records that wait for the control thread at most. A capture of fewer frames never drops one.
pub(super) const RECORDS_MAX: usize = 16_384;
/// A frame that is on its way to a file. Its memory is used again and again.
#[derive(Default)]
pub struct Record {
    /// When the worker saw it, nanoseconds of the engine's clock.
    pub at_ns: u64,
    /// Bytes that it has.
    pub original: u32,
    /// Bytes that are kept.
    pub bytes: Vec<u8>,
}

/// Counts of a tap; the worker writes them.
#[derive(Default)]
pub struct TapCounts {
    /// Frames that the filter wanted, up to the limit.
    pub wanted: Count,
    /// Of these, frames for which there was no record.
    pub dropped: Count,
}

/// The worker's side of one direction of a capture.
pub struct Tap {
    filter: Filter,
    limit: u64,
    snap_bytes: usize,
    empty: Consumer<Record>,
    full: Producer<Record>,
    counts: Arc<TapCounts>,
}

/// The control thread's side.
pub struct TapHandle {
    pub(super) empty: Producer<Record>,
    pub(super) full: Consumer<Record>,
    pub(super) counts: Arc<TapCounts>,
}

/// Both sides of one direction of a capture.
pub fn tap(spec: &CaptureSpec) -> (Tap, TapHandle) {
    let records = spec.limit.min(RECORDS_MAX as u64) as usize;
    let (mut empty_put, empty) = ring(records);
    let (full, full_take) = ring(records);
    for _ in 0..records {
        let record = Record { bytes: Vec::with_capacity(spec.snap_bytes), ..Record::default() };
        // The ring has a place for each.
        let _ = empty_put.put(record);
    }
    let counts = Arc::new(TapCounts::default());
    let (filter, limit, snap_bytes) = (spec.filter.clone(), spec.limit, spec.snap_bytes);
    let tap = Tap { filter, limit, snap_bytes, empty, full, counts: counts.clone() };
    (tap, TapHandle { empty: empty_put, full: full_take, counts })
}

impl Tap {
    fn see(&mut self, packet: &Packet, headers: &Headers, now_ns: u64) {
        if self.counts.wanted.get() >= self.limit || !self.filter.matches(headers) {
            return;
        }
        self.counts.wanted.add(1);
        let Some(mut record) = self.empty.take() else {
            self.counts.dropped.add(1);
            return;
        };
        record.at_ns = now_ns;
        record.original = packet.length() as u32;
        record.bytes.clear();
        for segment in packet.segments() {
            // Within its capacity: nothing is allocated.
            let room = self.snap_bytes - record.bytes.len();
            record.bytes.extend_from_slice(&segment[..segment.len().min(room)]);
        }
        // As many places as records.
        let _ = self.full.put(record);
    }
}

#[cfg(test)]
impl Tap {
    /// As if a wanted frame of so many bytes had been seen.
    pub(super) fn give(&mut self, bytes: usize) {
        self.counts.wanted.add(1);
        match self.empty.take() {
            Some(mut record) => {
                record.bytes.resize(bytes, 7);
                let _ = self.full.put(record);
            }
            None => self.counts.dropped.add(1),
        }
    }
}

/// The node.
pub struct CaptureNode {
    clock: Clock,
    taps: Box<[Tap]>,
    next: NodeId,
}

impl CaptureNode {
    /// Frames go on to `next`.
    pub fn new(clock: Clock, taps: Vec<Tap>, next: NodeId) -> CaptureNode {
        CaptureNode { clock, taps: taps.into_boxed_slice(), next }
    }
}

impl Node for CaptureNode {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        let now_ns = self.clock.now_ns();
        for packet in frame.packets() {
            let stamp = end_of(packet).and_then(|end| Stamp::decode(&end).ok());
            let headers =
                Headers::of(packet.bytes(), packet.length(), stamp.map(|stamp| stamp.stream));
            for tap in &mut self.taps {
                tap.see(packet, &headers, now_ns);
            }
        }
        frame.set_all_next(self.next);
    }
}
