//! Records on their way from workers to the control thread: one bounded ring for each writer. A
//! worker never waits; a record that finds the ring full is lost and counted by its kind.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_core::memory::ring::{Consumer, Producer, ring};

/// A record of fixed size, of one of some kinds.
pub trait Record: Copy + Send + 'static {
    /// The words of the kinds, by number.
    const KINDS: &'static [&'static str];

    /// The number of its kind.
    fn kind(&self) -> usize;
}

/// Records of a kind since the start: those that were made are those that were taken out of the
/// ring, those that still wait there, and those that were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindCounts {
    /// Records made.
    pub made: u64,
    /// Records that found the ring full.
    pub lost: u64,
}

/// Counters of one writer, which alone stores them.
struct Counters {
    made: Box<[AtomicU64]>,
    lost: Box<[AtomicU64]>,
}

impl Counters {
    fn new(kinds: usize) -> Counters {
        let zeros = || (0..kinds).map(|_| AtomicU64::new(0)).collect();
        Counters { made: zeros(), lost: zeros() }
    }

    fn read(&self, kind: usize) -> KindCounts {
        let value = |of: &[AtomicU64]| of.get(kind).map_or(0, |n| n.load(Ordering::Relaxed));
        KindCounts { made: value(&self.made), lost: value(&self.lost) }
    }
}

fn add_one(counters: &[AtomicU64], kind: usize) {
    if let Some(counter) = counters.get(kind) {
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

/// The end that a worker writes to.
pub struct Recorder<R: Record> {
    ring: Producer<R>,
    counters: Arc<Counters>,
}

impl<R: Record> Recorder<R> {
    /// Write a record, or count it as lost: false. Neither waits nor allocates.
    #[inline]
    pub fn write(&mut self, record: R) -> bool {
        let kind = record.kind();
        add_one(&self.counters.made, kind);
        let is_written = self.ring.put(record).is_ok();
        if !is_written {
            add_one(&self.counters.lost, kind);
        }
        is_written
    }
}

/// A ring and its writer's counters.
struct Source<R> {
    ring: Consumer<R>,
    counters: Arc<Counters>,
}

impl<R> Source<R> {
    /// Has the writer been dropped?
    fn has_ended(&self) -> bool {
        Arc::strong_count(&self.counters) == 1
    }
}

/// The rings as the control thread reads them.
pub struct Records<R: Record> {
    sources: Vec<Source<R>>,
    /// Counts of writers that are gone.
    ended: Vec<KindCounts>,
}

impl<R: Record> Default for Records<R> {
    fn default() -> Records<R> {
        Records { sources: Vec::new(), ended: vec![KindCounts::default(); R::KINDS.len()] }
    }
}

impl<R: Record> Records<R> {
    /// A ring of `capacity` records, rounded up to a power of two, for one more writer. The ring
    /// goes when the writer has been dropped and the last record was taken.
    pub fn open(&mut self, capacity: usize) -> Recorder<R> {
        let (producer, consumer) = ring(capacity);
        let counters = Arc::new(Counters::new(R::KINDS.len()));
        self.sources.push(Source { ring: consumer, counters: counters.clone() });
        Recorder { ring: producer, counters }
    }

    /// Does no record wait, and is no writer gone whose ring is still there?
    pub fn is_idle(&mut self) -> bool {
        self.sources.iter_mut().all(|source| source.ring.is_empty() && !source.has_ended())
    }

    /// Take at most `max` records of each ring, the oldest first. True when more wait.
    pub fn take(&mut self, max: usize, mut each: impl FnMut(R)) -> bool {
        let mut more = false;
        for source in &mut self.sources {
            // What is known to wait may be less than what waits: it is asked again.
            let mut left = max;
            while left > 0 {
                match source.ring.take_up_to(left, &mut each) {
                    0 => break,
                    count => left -= count,
                }
            }
            more |= !source.ring.is_empty();
        }
        let ended = &mut self.ended;
        self.sources.retain_mut(|source| {
            let is_over = source.has_ended() && source.ring.is_empty();
            if is_over {
                for (kind, total) in ended.iter_mut().enumerate() {
                    *total = sum(*total, source.counters.read(kind));
                }
            }
            !is_over
        });
        more
    }

    /// The counts of each kind, over all writers since the start.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, KindCounts)> + '_ {
        R::KINDS.iter().zip(&self.ended).enumerate().map(|(kind, (word, ended))| {
            let live = self.sources.iter().map(|source| source.counters.read(kind));
            (*word, live.fold(*ended, sum))
        })
    }
}

fn sum(a: KindCounts, b: KindCounts) -> KindCounts {
    KindCounts { made: a.made + b.made, lost: a.lost + b.lost }
}
