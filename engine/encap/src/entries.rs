//! Encapsulation entries: one ready-made header stack for each object that encapsulates (a segment
//! list, a tunnel's peer), with its owner's words and one worker's counters beside it, so that a
//! packet waits for one place in memory only.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use quiver_core::memory::epoch::Epochs;
use quiver_core::{Packet, WorkerId};
use quiver_tables::memory::{MemoryError, Pages, Reserved, Slots, ZeroValid, prefetch};

use crate::handover::EncapEntryIndex;

/// Bytes of a block, the unit in which headers are copied.
pub const BLOCK_BYTES: usize = 32;
/// Blocks of an entry.
const BLOCKS: usize = 7;
/// Blocks of the shortest header: with the counters and words, two cache lines.
pub const BLOCKS_MIN: usize = 3;
/// The longest header, in bytes.
pub const HEADER_BYTES_MAX: usize = BLOCKS * BLOCK_BYTES;
/// Words of an entry whose meaning is its owner's.
pub const ENTRY_WORDS: usize = 3;
/// Entries at most (32 MB of address space for each worker, committed as used).
pub const ENCAP_ENTRIES_MAX: usize = 1 << 17;

/// A header stack, its owner's words, and one worker's counters. The header never changes while a
/// worker can find the entry: a change takes another entry. Words may change, each by one store.
#[repr(C, align(64))]
pub struct EncapEntry {
    packets: AtomicU64,
    bytes: AtomicU64,
    words: [AtomicU32; ENTRY_WORDS],
    length: u16,
    blocks: u16,
    /// The header, right-aligned in the first blocks.
    header: [[u8; BLOCK_BYTES]; BLOCKS],
}

const _: () = assert!(size_of::<EncapEntry>() == 256);
// SAFETY: zeroes are an entry without a header; every field is a plain number or an atomic one.
unsafe impl ZeroValid for EncapEntry {}

impl EncapEntry {
    fn new(header: &[u8], words: [u32; ENTRY_WORDS]) -> EncapEntry {
        assert!(header.len() <= HEADER_BYTES_MAX, "a header of {} bytes", header.len());
        let blocks = match header.len() {
            0 => 0,
            length => length.div_ceil(BLOCK_BYTES).max(BLOCKS_MIN),
        };
        let mut entry = EncapEntry {
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            words: words.map(AtomicU32::new),
            length: header.len() as u16,
            blocks: blocks as u16,
            header: [[0; BLOCK_BYTES]; BLOCKS],
        };
        entry.header.as_flattened_mut()[blocks * BLOCK_BYTES - header.len()..][..header.len()]
            .copy_from_slice(header);
        entry
    }

    /// One of the owner's words.
    #[inline(always)]
    pub fn word(&self, place: usize) -> u32 {
        self.words[place % ENTRY_WORDS].load(Ordering::Relaxed)
    }

    /// Packets that this worker has counted.
    #[inline(always)]
    pub fn packets(&self) -> u64 {
        self.packets.load(Ordering::Relaxed)
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

    /// The last of these blocks, where it holds the whole header.
    #[inline(always)]
    pub fn one_block(&self) -> Option<&[[u8; BLOCK_BYTES]; 1]> {
        let is_short = (1..=BLOCK_BYTES).contains(&self.header_len());
        if is_short { self.blocks().last_chunk() } else { None }
    }

    /// The header without the padding before it.
    #[inline(always)]
    pub fn header(&self) -> &[u8] {
        let blocks = self.blocks().as_flattened();
        &blocks[blocks.len() - self.header_len().min(blocks.len())..]
    }

    /// Count a packet of so many bytes; only the worker that owns the entry may.
    #[inline(always)]
    pub fn count(&self, bytes: usize) {
        self.count_all(1, bytes as u64);
    }

    /// As [`count`](Self::count), for several packets.
    #[inline(always)]
    pub fn count_all(&self, packets: u64, bytes: u64) {
        let add = |to: &AtomicU64, n: u64| {
            to.store(to.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        };
        add(&self.packets, packets);
        add(&self.bytes, bytes);
    }
}

/// One worker's entries.
pub struct WorkerEncapEntries(Reserved<EncapEntry>);

impl WorkerEncapEntries {
    /// The entry at `index`; past the end it is entry 0, which has no header.
    #[inline(always)]
    pub fn get(&self, index: u32) -> &EncapEntry {
        self.0.get(index as usize)
    }

    /// The entry that a packet's route has handed over.
    #[inline(always)]
    #[track_caller]
    pub fn of(&self, packet: &Packet) -> &EncapEntry {
        self.get(packet.handed_over::<EncapEntryIndex>().0)
    }

    /// [`prefetch`](Self::prefetch) the entry that a packet's route has handed over.
    #[inline(always)]
    #[track_caller]
    pub fn prefetch_of(&self, packet: &Packet) {
        self.prefetch(packet.handed_over::<EncapEntryIndex>().0);
    }

    /// Prefetch the first two cache lines of an entry: its counters and words, and up to 96 bytes
    /// of header.
    #[inline(always)]
    pub fn prefetch(&self, index: u32) {
        let entry = std::ptr::from_ref(self.0.get(index as usize));
        prefetch(entry);
        prefetch(entry.cast::<u8>().wrapping_add(64));
    }
}

/// The entries of all workers, for the control thread. Each kind of object has a table of its own.
pub struct EncapEntries {
    workers: Box<[Arc<WorkerEncapEntries>]>,
    slots: Slots,
    epochs: Arc<Epochs>,
}

impl EncapEntries {
    /// An empty table. `what` names the objects in the error for missing address space.
    ///
    /// # Errors
    /// The system refuses the address space.
    pub fn new(
        what: &'static str,
        workers: usize,
        epochs: &Arc<Epochs>,
    ) -> Result<EncapEntries, MemoryError> {
        let entries = || {
            Reserved::new(what, ENCAP_ENTRIES_MAX, Pages::Huge)
                .map(WorkerEncapEntries)
                .map(Arc::new)
        };
        let workers = (0..workers.max(1)).map(|_| entries()).collect::<Result<_, _>>()?;
        let mut slots = Slots::new(&[1], ENCAP_ENTRIES_MAX, 64, 64);
        assert_eq!(slots.take(1), Some(0), "entry 0 has no header");
        Ok(EncapEntries { workers, slots, epochs: epochs.clone() })
    }

    /// One worker's entries.
    pub fn of(&self, worker: WorkerId) -> Arc<WorkerEncapEntries> {
        self.workers[worker.index() % self.workers.len()].clone()
    }

    /// The entries of every worker.
    pub fn workers(&self) -> Box<[Arc<WorkerEncapEntries>]> {
        self.workers.clone()
    }

    /// Write an entry for `header` (at most [`HEADER_BYTES_MAX`] bytes), its counters zero. Workers
    /// see it when its number is published. `None` when the table is full.
    pub fn add(&mut self, header: &[u8], words: [u32; ENTRY_WORDS]) -> Option<u32> {
        self.slots.reclaim(&self.epochs, |_| ());
        let index = self.slots.take(1)?;
        for entries in &self.workers {
            // SAFETY: the entry is not published (fresh, or past its grace period), so nobody reads
            // it.
            unsafe { entries.0.slot(index as usize).write(EncapEntry::new(header, words)) };
        }
        Some(index)
    }

    /// Write one of the words of an entry, which workers may be reading.
    pub fn set_word(&self, index: u32, place: usize, value: u32) {
        for entries in &self.workers {
            entries.get(index).words[place % ENTRY_WORDS].store(value, Ordering::Relaxed);
        }
    }

    /// Take an entry out of use; its number must be published no more.
    pub fn retire(&mut self, index: u32) {
        debug_assert_ne!(index, 0, "entry 0 stays");
        self.slots.retire(index, 1);
        self.slots.reclaim(&self.epochs, |_| ());
    }

    /// Packets and bytes that all workers have counted for an entry.
    pub fn sums(&self, index: u32) -> [u64; 2] {
        let sum = |of: fn(&EncapEntry) -> &AtomicU64| {
            let each =
                self.workers.iter().map(|entries| of(entries.get(index)).load(Ordering::Relaxed));
            each.fold(0u64, u64::wrapping_add)
        };
        [sum(|entry| &entry.packets), sum(|entry| &entry.bytes)]
    }

    /// Entries in use.
    pub fn len(&self) -> usize {
        self.slots.used() - 1
    }

    /// Is no entry in use?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes in memory.
    pub fn resident_bytes(&self) -> usize {
        self.workers.iter().map(|entries| entries.0.resident_bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_ends_where_its_last_block_ends() {
        for length in [0, 1, 31, 32, 40, 80, HEADER_BYTES_MAX] {
            let header: Vec<u8> = (1..=length as u8).collect();
            let entry = EncapEntry::new(&header, [1, 2, 3]);
            assert_eq!(entry.header(), header);
            let blocks = length.div_ceil(BLOCK_BYTES);
            assert_eq!(entry.blocks().len(), if length == 0 { 0 } else { blocks.max(BLOCKS_MIN) });
            assert_eq!(entry.few_blocks().is_some(), (1..=96).contains(&length));
            assert_eq!(entry.one_block().is_some(), (1..=32).contains(&length));
            assert_eq!(entry.blocks().as_flattened().last().copied(), header.last().copied());
            assert_eq!([0, 1, 2].map(|place| entry.word(place)), [1, 2, 3]);
        }
    }

    #[test]
    fn every_worker_counts_for_itself_and_an_entry_is_not_reused_while_a_worker_may_read_it() {
        let epochs = Epochs::new(1);
        let mut reader = epochs.reader(0);
        reader.wake();
        let mut entries = EncapEntries::new("test", 2, &epochs).expect("address space");
        let first = entries.add(&[1; 40], [0; 3]).expect("room");
        entries.of(WorkerId(0)).get(first).count(100);
        entries.of(WorkerId(1)).get(first).count(50);
        assert_eq!(entries.sums(first), [2, 150]);
        entries.set_word(first, 1, 9);
        assert_eq!([0, 1].map(|worker| entries.of(WorkerId(worker)).get(first).word(1)), [9, 9]);
        entries.retire(first);
        let second = entries.add(&[2; 48], [0; 3]).expect("room");
        assert_ne!(first, second);
        assert_eq!(entries.of(WorkerId(0)).get(first).header(), [1; 40]);
        assert_eq!((entries.sums(second), entries.len()), ([0, 0], 1));
        assert_eq!(entries.of(WorkerId(0)).get(0).header_len(), 0);
    }
}
