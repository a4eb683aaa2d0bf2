//! What the control thread and workers share.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::{InterfaceId, WorkerId};

use crate::flow::FlowRecord;
use crate::flows::Flows;
use crate::key::{Kinds, Secret, Shape};

/// A worker's part.
#[derive(Default)]
pub(crate) struct PerWorker {
    /// Its flows, while any interface is recorded. The control thread has the lock only while it
    /// gives or takes them; a worker never waits for it.
    pub flows: Mutex<Option<Box<Flows>>>,
    /// Flows that live.
    pub live: AtomicU64,
}

/// All of it.
pub(crate) struct Shared {
    /// By direction and interface: which packets are recorded.
    kinds: [Box<[AtomicU8]>; 2],
    shape: AtomicU8,
    active_ms: AtomicU64,
    passive_ms: AtomicU64,
    /// Flows that began before this moment end, milliseconds.
    flush_ms: AtomicU64,
    pub secret: Secret,
    pub workers: Box<[PerWorker]>,
}

/// When records end.
pub(crate) struct Timers<'s> {
    pub active_ms: u64,
    pub passive_ms: u64,
    flush_ms: u64,
    shared: &'s Shared,
}

impl Timers<'_> {
    /// Has the operator ended the flow?
    pub fn is_forced(&self, record: &FlowRecord) -> bool {
        record.first_ms() < self.flush_ms
            || self.shared.kinds(record.interface().0, record.is_output()) == Kinds::default()
    }
}

impl Shared {
    pub fn new(workers: usize) -> Shared {
        let none = || (0..INTERFACES_MAX).map(|_| AtomicU8::new(0)).collect();
        Shared {
            kinds: [none(), none()],
            shape: AtomicU8::new(0),
            active_ms: AtomicU64::new(0),
            passive_ms: AtomicU64::new(0),
            flush_ms: AtomicU64::new(0),
            secret: Secret::random(),
            workers: (0..workers).map(|_| PerWorker::default()).collect(),
        }
    }

    pub fn worker(&self, worker: WorkerId) -> Option<&PerWorker> {
        self.workers.get(worker.index())
    }

    /// Which packets of an interface are recorded.
    #[inline(always)]
    pub fn kinds(&self, interface: u32, is_output: bool) -> Kinds {
        let own = &self.kinds[usize::from(is_output)];
        Kinds(own.get(interface as usize).map_or(0, |kinds| kinds.load(Ordering::Relaxed)))
    }

    pub fn set_kinds(&self, interface: InterfaceId, is_output: bool, kinds: Kinds) {
        if let Some(place) = self.kinds[usize::from(is_output)].get(interface.index()) {
            place.store(kinds.0, Ordering::Relaxed);
        }
    }

    /// Which fields are recorded.
    #[inline(always)]
    pub fn shape(&self) -> Shape {
        Shape(self.shape.load(Ordering::Relaxed))
    }

    /// Change what is recorded, and when records end, seconds.
    pub fn set(&self, shape: Shape, active_s: u32, passive_s: u32) {
        self.shape.store(shape.0, Ordering::Relaxed);
        self.active_ms.store(u64::from(active_s) * 1_000, Ordering::Relaxed);
        self.passive_ms.store(u64::from(passive_s) * 1_000, Ordering::Relaxed);
    }

    /// End all flows that began before a moment.
    pub fn flush(&self, before_ms: u64) {
        self.flush_ms.store(before_ms, Ordering::Relaxed);
    }

    pub fn timers(&self) -> Timers<'_> {
        Timers {
            active_ms: self.active_ms.load(Ordering::Relaxed),
            passive_ms: self.passive_ms.load(Ordering::Relaxed),
            flush_ms: self.flush_ms.load(Ordering::Relaxed),
            shared: self,
        }
    }
}
