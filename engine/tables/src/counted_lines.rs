//! What workers read of many alike objects (local SIDs, policies, tunnels), and count of each: one
//! cache line for an object and worker, so that who handles a packet waits for one line only.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_core::WorkerId;
use quiver_core::cpu::prefetch;

use crate::memory::{MemoryError, Pages, Reserved};

/// Words that say what an object is.
pub const LINE_WORDS: usize = 4;
/// What is counted of one.
pub const LINE_COUNTS: usize = 4;
/// All of a line.
const LINE: usize = LINE_WORDS + LINE_COUNTS;

/// One object as a worker finds it.
#[derive(Clone, Copy)]
pub struct CountedLine<'a>(&'a [AtomicU64; LINE]);

impl CountedLine<'_> {
    /// What the control thread says of the object. The meaning is its owner's.
    #[inline(always)]
    pub fn word(self, place: usize) -> u64 {
        self.0[place % LINE_WORDS].load(Ordering::Relaxed)
    }

    /// Count; only the worker whose line it is may.
    #[inline(always)]
    pub fn add(self, count: usize, n: u64) {
        let count = &self.0[LINE_WORDS + count % LINE_COUNTS];
        count.store(count.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }
}

/// The lines of one kind of objects: every worker has its own of each. What a line says does not
/// change while a worker can find the object: the control thread writes it before it lets workers
/// see its index, and writes another object to it only when none of them can know the index any
/// more ([`Slots`](crate::memory::Slots)).
pub struct CountedLines(Box<[WorkerLines]>);

/// One worker's lines.
#[derive(Clone)]
pub struct WorkerLines(Arc<Reserved<[AtomicU64; LINE]>>);

impl WorkerLines {
    /// The line of the object at `index`; past the end it is that of the first object.
    #[inline(always)]
    pub fn line(&self, index: u32) -> CountedLine<'_> {
        CountedLine(self.0.get(index as usize))
    }

    /// Ask for a line ahead of its use.
    #[inline(always)]
    pub fn prefetch(&self, index: u32) {
        prefetch(self.0.get(index as usize));
    }
}

impl CountedLines {
    /// Room for `capacity` objects, committed as used. `what` they are is said when there is no
    /// address space.
    ///
    /// # Errors
    /// The system refuses the address space.
    pub fn new(
        what: &'static str,
        capacity: usize,
        workers: usize,
    ) -> Result<CountedLines, MemoryError> {
        let lines = |_| Ok(WorkerLines(Arc::new(Reserved::new(what, capacity, Pages::Huge)?)));
        Ok(CountedLines((0..workers.max(1)).map(lines).collect::<Result<_, _>>()?))
    }

    /// A worker's lines.
    pub fn of(&self, worker: WorkerId) -> WorkerLines {
        self.0[worker.index() % self.0.len()].clone()
    }

    /// Write what an object is, for all workers, and let its counts begin at zero (control thread).
    /// No worker may know its index yet.
    pub fn write(&self, index: u32, words: [u64; LINE_WORDS]) {
        for lines in &self.0 {
            let all = words.into_iter().chain([0; LINE_COUNTS]);
            lines
                .line(index)
                .0
                .iter()
                .zip(all)
                .for_each(|(place, word)| place.store(word, Ordering::Release));
        }
    }

    /// What all workers have counted of an object.
    pub fn sums(&self, index: u32) -> [u64; LINE_COUNTS] {
        let sum = |count: usize| {
            let of = |lines: &WorkerLines| {
                lines.line(index).0[LINE_WORDS + count].load(Ordering::Relaxed)
            };
            self.0.iter().map(of).fold(0u64, u64::wrapping_add)
        };
        std::array::from_fn(sum)
    }

    /// Bytes in memory.
    pub fn resident_bytes(&self) -> usize {
        self.0.iter().map(|lines| lines.0.resident_bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_worker_reads_what_was_written_and_counts_for_itself() {
        let lines = CountedLines::new("test", 100, 2).expect("address space");
        lines.write(7, [1, 2, 3, 4]);
        for worker in 0..2 {
            let own = lines.of(WorkerId(worker));
            let line = own.line(7);
            assert_eq!([0, 1, 2, 3].map(|place| line.word(place)), [1, 2, 3, 4]);
            line.add(0, 1);
            line.add(3, 10);
        }
        assert_eq!(lines.sums(7), [2, 0, 0, 20]);
        lines.write(7, [0; 4]);
        assert_eq!((lines.sums(7), lines.of(WorkerId(1)).line(7).word(3)), ([0; 4], 0));
    }

    #[test]
    fn lines_are_cache_lines_of_their_own() {
        let lines = CountedLines::new("test", 2, 1).expect("address space");
        let own = lines.of(WorkerId(0));
        let at = |index| std::ptr::from_ref(own.line(index).0) as usize;
        assert_eq!((at(0) % 64, at(1) - at(0)), (0, 64));
    }
}
