//! Packets and bytes by adjacency, while that is switched on: a node of its own counts, so that
//! nothing is paid for it otherwise.

use std::sync::atomic::{AtomicBool, Ordering};

use quiver_core::{Packet, WorkerId};
use quiver_tables::counted_lines::{CountedLines, WorkerLines};
use quiver_tables::memory::MemoryError;

use crate::adjacency::ADJACENCIES_MAX;
use crate::handover::AdjacencyIndex;

/// Counters of all adjacencies: each worker has its own.
pub struct AdjacencyCounts {
    lines: CountedLines,
    counts: AtomicBool,
}

impl AdjacencyCounts {
    /// Address space for as many adjacencies as there can be; memory is committed as used.
    ///
    /// # Errors
    /// The system refuses the address space.
    pub fn new(workers: usize) -> Result<AdjacencyCounts, MemoryError> {
        let lines = CountedLines::new("adjacency counters", ADJACENCIES_MAX, workers)?;
        Ok(AdjacencyCounts { lines, counts: AtomicBool::new(false) })
    }

    /// A worker's counters.
    pub fn of(&self, worker: WorkerId) -> WorkerCounts {
        WorkerCounts(self.lines.of(worker))
    }

    /// Are packets counted?
    pub fn is_on(&self) -> bool {
        self.counts.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, on: bool) {
        self.counts.store(on, Ordering::Relaxed);
    }

    /// Count from zero; no worker knows the adjacency.
    pub(crate) fn reset(&self, index: u32) {
        self.lines.write(index, Default::default());
    }

    /// Packets and bytes of all workers.
    pub fn sums(&self, index: u32) -> [u64; 2] {
        let [packets, bytes, ..] = self.lines.sums(index);
        [packets, bytes]
    }
}

/// One worker's counters.
pub struct WorkerCounts(WorkerLines);

impl WorkerCounts {
    /// Count a packet that gets a layer 2 header of so many bytes, or the packets that it stands
    /// for.
    #[inline]
    pub fn add(&self, AdjacencyIndex(index): AdjacencyIndex, packet: &Packet, header_bytes: usize) {
        let (line, (packets, bytes)) = (self.0.line(index), packet.on_wire());
        line.add(0, packets);
        line.add(1, bytes + packets * header_bytes as u64);
    }
}
