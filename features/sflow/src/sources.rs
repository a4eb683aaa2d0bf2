//! What the control thread and the samplers of workers share.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::{InterfaceId, WorkerId};
use quiver_export::records::Recorder;

use crate::sample::Sample;

/// Which packets of an interface are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Those that it receives.
    Rx,
    /// Those that it sends.
    Tx,
}

impl Direction {
    /// Both.
    pub const ALL: [Direction; 2] = [Direction::Rx, Direction::Tx];
}

/// A worker's counts of one interface and direction; the worker alone stores them.
#[derive(Debug, Default)]
struct Source {
    /// Packets that could have been sampled.
    pool: AtomicU64,
    /// Samples that found the ring full.
    drops: AtomicU64,
}

/// Add to a count that one thread stores.
pub(crate) fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

/// A worker's part.
#[derive(Default)]
pub(crate) struct PerWorker {
    /// By interface and direction, made when the first interface is sampled.
    sources: OnceLock<Box<[[Source; 2]]>>,
    /// Written by the worker alone. The control thread has the lock while it gives the ring.
    recorder: Mutex<Option<Recorder<Sample>>>,
}

impl PerWorker {
    fn source(&self, interface: u32, direction: Direction) -> Option<&Source> {
        self.sources.get()?.get(interface as usize)?.get(direction as usize)
    }

    /// Is there anything to write to?
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.sources.get().is_some()
    }

    /// So many packets could have been sampled.
    #[inline]
    pub fn count(&self, interface: u32, direction: Direction, packets: u64) {
        if let Some(source) = self.source(interface, direction) {
            add(&source.pool, packets);
        }
    }

    /// Write a sample; false when it is lost. It never waits.
    pub fn write(&self, sample: Sample) -> bool {
        let is_written = match self.recorder.try_lock() {
            Ok(mut recorder) => recorder.as_mut().is_some_and(|recorder| recorder.write(sample)),
            Err(_) => false,
        };
        if !is_written && let Some(source) = self.source(sample.interface.0, sample.direction) {
            add(&source.drops, 1);
        }
        is_written
    }
}

/// All of it.
pub(crate) struct Shared {
    rate: AtomicU32,
    header_bytes: AtomicU32,
    workers: Box<[PerWorker]>,
}

impl Shared {
    pub fn new(workers: usize) -> Shared {
        Shared {
            rate: AtomicU32::new(1),
            header_bytes: AtomicU32::new(0),
            workers: (0..workers).map(|_| PerWorker::default()).collect(),
        }
    }

    /// One of so many packets is sampled.
    pub fn rate(&self) -> u32 {
        self.rate.load(Ordering::Relaxed).max(1)
    }

    pub fn set_rate(&self, rate: u32) {
        self.rate.store(rate, Ordering::Relaxed);
    }

    /// Bytes of a packet that a sample has at most.
    pub fn header_bytes(&self) -> usize {
        self.header_bytes.load(Ordering::Relaxed) as usize
    }

    pub fn set_header_bytes(&self, bytes: u32) {
        self.header_bytes.store(bytes, Ordering::Relaxed);
    }

    pub fn worker(&self, worker: WorkerId) -> Option<&PerWorker> {
        self.workers.get(worker.index())
    }

    /// Make what workers write to, once. `recorder` makes a ring.
    pub fn open(&self, mut recorder: impl FnMut() -> Recorder<Sample>) {
        for worker in &self.workers {
            worker
                .sources
                .get_or_init(|| (0..INTERFACES_MAX).map(|_| Default::default()).collect());
            if let Ok(mut place) = worker.recorder.lock()
                && place.is_none()
            {
                *place = Some(recorder());
            }
        }
    }

    /// Packets of an interface that could have been sampled, and samples that were lost, over all
    /// workers since the start.
    pub fn counts(&self, interface: InterfaceId, direction: Direction) -> (u64, u64) {
        let sources = self.workers.iter().filter_map(|own| own.source(interface.0, direction));
        sources.fold((0, 0), |(pool, drops), source| {
            (
                pool.wrapping_add(source.pool.load(Ordering::Relaxed)),
                drops.wrapping_add(source.drops.load(Ordering::Relaxed)),
            )
        })
    }
}
