//! Workers as the control thread holds them: on its own thread, or each on one of its own.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use super::Engine;
use crate::cpu::Variant;
use crate::graph::builder::{BuildError, GraphBuilder};
use crate::graph::counters::{NODES_MAX, WorkerCounters};
use crate::graph::interface::InterfaceRows;
use crate::graph::outbox::Outbox;
use crate::graph::trace::Tracer;
use crate::ids::WorkerId;
use crate::memory::ring::{Consumer, Producer, ring};
use crate::worker::event::{EVENTS_MAX, Event};
use crate::worker::handoff::Handoff;
use crate::worker::poll::Poll;
use crate::worker::ticks::Ticks;
use crate::worker::{RX_QUEUES_PER_WORKER_MAX, Shared, Worker, WorkerCall};

/// Worker calls under way to one worker at most; further ones wait in the control thread.
const WORKER_CALLS_MAX: usize = 256;

/// The control thread's side of one worker.
pub(crate) struct WorkerHandle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) core: usize,
    pub(super) worker_calls: Producer<Box<dyn WorkerCall>>,
    pub(crate) waiting: VecDeque<Box<dyn WorkerCall>>,
    pub(super) done: Consumer<Box<dyn WorkerCall>>,
    pub(crate) returned: VecDeque<Box<dyn WorkerCall>>,
    pub(super) events: Consumer<Event>,
    /// The worker itself, while it runs on the control thread (tests, benchmarks) or not yet.
    pub(crate) inline: Option<Box<Worker>>,
    pub(super) thread: Option<JoinHandle<()>>,
}

impl Engine {
    /// Let each worker run in a thread of its own, pinned to its core. Returns what could not be
    /// pinned, in words.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn start_threads(&mut self) -> Result<Vec<String>, std::io::Error> {
        let mut complaints = Vec::new();
        for (index, handle) in self.workers.iter_mut().enumerate() {
            let Some(mut worker) = handle.inline.take() else { continue };
            worker.set_awake(false);
            let (core, stop) = (handle.core, self.stop.clone());
            let (tell, told) = std::sync::mpsc::channel();
            let thread = std::thread::Builder::new().name(format!("quiver_wk_{index}")).spawn(
                move || {
                    let _ = tell.send(crate::cpu::pin_to_core(core));
                    worker.run(&stop);
                },
            )?;
            handle.thread = Some(thread);
            if let Ok(Err(error)) = told.recv() {
                complaints.push(format!("worker {index} cannot be pinned to core {core}: {error}"));
            }
        }
        Ok(complaints)
    }

    /// One pass of every worker that runs on the calling thread, then what is due here. Returns the
    /// packets that came in.
    pub fn step(&mut self) -> usize {
        let mut packets = 0;
        for handle in &mut self.workers {
            if let Some(worker) = &mut handle.inline {
                packets += worker.pass();
            }
        }
        self.tick();
        packets
    }

    /// The worker, while it runs on the calling thread.
    pub fn inline_worker(&mut self, worker: WorkerId) -> Option<&mut Worker> {
        self.workers.get_mut(worker.index())?.inline.as_deref_mut()
    }

    /// How many workers there are.
    pub fn worker_count(&self) -> usize {
        self.workers.len()
    }

    /// A worker's core.
    pub fn worker_core(&self, worker: WorkerId) -> Option<usize> {
        self.workers.get(worker.index()).map(|w| w.core)
    }

    /// Does a worker sleep now?
    pub fn is_asleep(&self, worker: WorkerId) -> bool {
        self.workers.get(worker.index()).is_some_and(|w| w.shared.asleep.load(Ordering::Relaxed))
    }

    /// A worker's counters.
    pub fn worker_counters(&self, worker: WorkerId) -> Option<&WorkerCounters> {
        self.workers.get(worker.index()).map(|w| &w.shared.counters)
    }

    /// All workers' counters.
    pub fn all_counters(&self) -> impl Iterator<Item = &WorkerCounters> {
        self.workers.iter().map(|w| &w.shared.counters)
    }
}

/// A worker and its handle.
pub(super) fn make_worker(
    builder: &GraphBuilder,
    index: usize,
    shared: Arc<Shared>,
    rows: &Arc<InterfaceRows>,
    handoff: Handoff,
) -> Result<WorkerHandle, BuildError> {
    let (worker_calls_put, worker_calls) = ring(WORKER_CALLS_MAX);
    let (worker_calls_done, done) = ring(WORKER_CALLS_MAX * 2);
    let (events_put, events) = ring(EVENTS_MAX);
    let poll = Poll::new()?;
    poll.add(shared.wake.fd());
    let mut nodes = Vec::new();
    nodes.resize_with(NODES_MAX, || None);
    let mut worker = Box::new(Worker {
        id: WorkerId(index as u16),
        reader: builder.epochs.reader(index),
        buffers: builder.pool.cache(),
        shared: shared.clone(),
        rows: rows.clone(),
        nodes,
        inputs: Vec::with_capacity(RX_QUEUES_PER_WORKER_MAX),
        outbox: Outbox::new(),
        events: RefCell::new(events_put),
        worker_calls,
        worker_calls_done,
        handoff,
        tracer: Tracer::default(),
        capture: None,
        clock: builder.clock.clone(),
        poll,
        ticks: Ticks::default(),
        variant: builder.config.variant.min(Variant::best()),
        driver: crate::block::Driver::new(),
        follows: builder.config.block_driver,
        finisher: None,
        began_ns: 0,
    });
    worker.set_awake(true);
    Ok(WorkerHandle {
        shared,
        core: builder.config.worker_cores[index],
        worker_calls: worker_calls_put,
        waiting: VecDeque::new(),
        done,
        returned: VecDeque::new(),
        events,
        inline: Some(worker),
        thread: None,
    })
}
