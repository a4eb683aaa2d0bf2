//! Headers that stand ready to be put in front of packets (tunnels, SRv6 policies): one row for an object and
//! worker, with what the worker counts of it, so that who handles a packet waits for one place in memory only.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use quiver_core::WorkerId;
use quiver_core::epoch::Epochs;

use crate::memory::{MemoryError, Pages, Reserved, Slots, ZeroValid, prefetch};

/// Bytes of a block: a header is copied in pieces of so many.
pub const BLOCK_BYTES: usize = 32;
/// Blocks of a row.
const BLOCKS: usize = 7;
/// Blocks of the shortest header: with what is before them, two cache lines, and moved in two pieces.
pub const BLOCKS_MIN: usize = 3;
/// The longest header, in bytes.
pub const HEADER_BYTES_MAX: usize = BLOCKS * BLOCK_BYTES;
/// Words of a row that are its owner's.
pub const ROW_WORDS: usize = 3;
/// How many rows there can be (32 MB of address space for each worker, committed as used).
pub const HEADER_ROWS_MAX: usize = 1 << 17;

/// A header, what its owner keeps beside it, and what was counted. The header never changes while a worker can
/// find the row: a change takes another row. Words may, each by one store.
#[repr(C, align(64))]
pub struct HeaderRow {
    packets: AtomicU64,
    bytes: AtomicU64,
    words: [AtomicU32; ROW_WORDS],
    length: u16,
    blocks: u16,
    /// The header, right-aligned in the first blocks.
    header: [[u8; BLOCK_BYTES]; BLOCKS],
}

const _: () = assert!(size_of::<HeaderRow>() == 256);
// SAFETY: zeroes are a row without a header; every field is a plain number or an atomic one.
unsafe impl ZeroValid for HeaderRow {}

impl HeaderRow {
    fn new(header: &[u8], words: [u32; ROW_WORDS]) -> HeaderRow {
        assert!(header.len() <= HEADER_BYTES_MAX, "a header of {} bytes", header.len());
        let blocks = match header.len() {
            0 => 0,
            length => length.div_ceil(BLOCK_BYTES).max(BLOCKS_MIN),
        };
        let mut row = HeaderRow {
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            words: words.map(AtomicU32::new),
            length: header.len() as u16,
            blocks: blocks as u16,
            header: [[0; BLOCK_BYTES]; BLOCKS],
        };
        row.header.as_flattened_mut()[blocks * BLOCK_BYTES - header.len()..][..header.len()]
            .copy_from_slice(header);
        row
    }

    /// One of the owner's words.
    #[inline(always)]
    pub fn word(&self, place: usize) -> u32 {
        self.words[place % ROW_WORDS].load(Ordering::Relaxed)
    }

    /// Bytes of the header.
    #[inline(always)]
    pub fn header_len(&self) -> usize {
        usize::from(self.length)
    }

    /// The header, right-aligned in these blocks: what
    /// [`Packet::push_blocks`](quiver_core::Packet::push_blocks) takes.
    #[inline(always)]
    pub fn blocks(&self) -> &[[u8; BLOCK_BYTES]] {
        &self.header[..usize::from(self.blocks).min(BLOCKS)]
    }

    /// The same, when they are as few as any header has.
    #[inline(always)]
    pub fn few_blocks(&self) -> Option<&[[u8; BLOCK_BYTES]; BLOCKS_MIN]> {
        if usize::from(self.blocks) == BLOCKS_MIN { self.header.first_chunk() } else { None }
    }

    /// The header without what stands before it.
    pub fn header(&self) -> &[u8] {
        let blocks = self.blocks().as_flattened();
        &blocks[blocks.len() - self.header_len().min(blocks.len())..]
    }

    /// Count a packet of so many bytes; only the worker whose row it is may.
    #[inline(always)]
    pub fn count(&self, bytes: usize) {
        let add = |to: &AtomicU64, n: u64| {
            to.store(to.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        };
        add(&self.packets, 1);
        add(&self.bytes, bytes as u64);
    }
}

/// The rows of one worker.
pub struct WorkerHeaderRows(Reserved<HeaderRow>);

impl WorkerHeaderRows {
    /// The row at `index`; past the end it is row 0, which has no header.
    #[inline(always)]
    pub fn get(&self, index: u32) -> &HeaderRow {
        self.0.get(index as usize)
    }

    /// Ask for the lines of a row ahead of its use: what is counted, and a header of two segments.
    #[inline(always)]
    pub fn prefetch(&self, index: u32) {
        let row = std::ptr::from_ref(self.0.get(index as usize));
        prefetch(row);
        prefetch(row.cast::<u8>().wrapping_add(64));
    }
}

/// The rows of all workers, for the control thread. There is one such table for each kind of object.
pub struct HeaderRows {
    workers: Box<[Arc<WorkerHeaderRows>]>,
    slots: Slots,
    epochs: Arc<Epochs>,
}

impl HeaderRows {
    /// An empty table. `what` the objects are is said when there is no address space.
    pub fn new(what: &'static str, workers: usize, epochs: &Arc<Epochs>) -> Result<HeaderRows, MemoryError> {
        let rows = || Reserved::new(what, HEADER_ROWS_MAX, Pages::Huge).map(WorkerHeaderRows).map(Arc::new);
        let workers = (0..workers.max(1)).map(|_| rows()).collect::<Result<_, _>>()?;
        let mut slots = Slots::new(&[1], HEADER_ROWS_MAX, 64, 64);
        assert_eq!(slots.take(1), Some(0), "row 0 has no header");
        Ok(HeaderRows { workers, slots, epochs: epochs.clone() })
    }

    /// A worker's rows.
    pub fn of(&self, worker: WorkerId) -> Arc<WorkerHeaderRows> {
        self.workers[worker.index() % self.workers.len()].clone()
    }

    /// All workers' rows.
    pub fn workers(&self) -> Box<[Arc<WorkerHeaderRows>]> {
        self.workers.clone()
    }

    /// Write a row of `header` (at most [`HEADER_BYTES_MAX`]), its counts zero. Workers see it when its number is
    /// published. `None` when the table is full.
    pub fn add(&mut self, header: &[u8], words: [u32; ROW_WORDS]) -> Option<u32> {
        self.slots.reclaim(&self.epochs, |_| ());
        let index = self.slots.take(1)?;
        for rows in &self.workers {
            // SAFETY: the row is not published (fresh, or past its grace period), so nobody reads it.
            unsafe { rows.0.slot(index as usize).write(HeaderRow::new(header, words)) };
        }
        Some(index)
    }

    /// Write one of the words of a row, which workers may be reading.
    pub fn set_word(&self, index: u32, place: usize, value: u32) {
        for rows in &self.workers {
            rows.get(index).words[place % ROW_WORDS].store(value, Ordering::Relaxed);
        }
    }

    /// Take a row out of use; its number must be published no more.
    pub fn retire(&mut self, index: u32) {
        debug_assert_ne!(index, 0, "row 0 stays");
        self.slots.retire(index, 1);
        self.slots.reclaim(&self.epochs, |_| ());
    }

    /// Packets and bytes that all workers have counted of a row.
    pub fn sums(&self, index: u32) -> [u64; 2] {
        let sum = |of: fn(&HeaderRow) -> &AtomicU64| {
            let each = self.workers.iter().map(|rows| of(rows.get(index)).load(Ordering::Relaxed));
            each.fold(0u64, u64::wrapping_add)
        };
        [sum(|row| &row.packets), sum(|row| &row.bytes)]
    }

    /// Rows in use.
    pub fn len(&self) -> usize {
        self.slots.used() - 1
    }

    /// Is no row in use?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes in memory.
    pub fn resident_bytes(&self) -> usize {
        self.workers.iter().map(|rows| rows.0.resident_bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_ends_where_its_last_block_ends() {
        for length in [0, 1, 31, 32, 40, 80, HEADER_BYTES_MAX] {
            let header: Vec<u8> = (1..=length as u8).collect();
            let row = HeaderRow::new(&header, [1, 2, 3]);
            assert_eq!(row.header(), header);
            let blocks = length.div_ceil(BLOCK_BYTES);
            assert_eq!(row.blocks().len(), if length == 0 { 0 } else { blocks.max(BLOCKS_MIN) });
            assert_eq!(row.few_blocks().is_some(), (1..=96).contains(&length));
            assert_eq!(row.blocks().as_flattened().last().copied(), header.last().copied());
            assert_eq!([0, 1, 2].map(|place| row.word(place)), [1, 2, 3]);
        }
    }

    #[test]
    fn every_worker_counts_for_itself_and_a_row_is_not_used_again_while_a_worker_may_read_it() {
        let epochs = Epochs::new(1);
        let mut reader = epochs.reader(0);
        reader.wake();
        let mut rows = HeaderRows::new("test", 2, &epochs).expect("address space");
        let first = rows.add(&[1; 40], [0; 3]).expect("room");
        rows.of(WorkerId(0)).get(first).count(100);
        rows.of(WorkerId(1)).get(first).count(50);
        assert_eq!(rows.sums(first), [2, 150]);
        rows.set_word(first, 1, 9);
        assert_eq!([0, 1].map(|worker| rows.of(WorkerId(worker)).get(first).word(1)), [9, 9]);
        rows.retire(first);
        let second = rows.add(&[2; 48], [0; 3]).expect("room");
        assert_ne!(first, second);
        assert_eq!(rows.of(WorkerId(0)).get(first).header(), [1; 40]);
        assert_eq!((rows.sums(second), rows.len()), ([0, 0], 1));
        assert_eq!(rows.of(WorkerId(0)).get(0).header_len(), 0);
    }
}
