//! The engine as the control thread holds it: the graph, the workers, the interfaces.

use std::any::{Any, TypeId};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::arc::ArcId;
use crate::buffer::BufferPool;
use crate::clock::Clock;
use crate::counters::{NODES_MAX, WorkerCounters};
use crate::cpu::Variant;
use crate::directory::Directory;
use crate::epoch::{Epochs, Stamp};
use crate::event::{EVENTS_MAX, Event};
use crate::graph::{ArcSpec, BuildError, EngineConfig, GraphBuilder};
use crate::handoff::Handoff;
use crate::ids::{InterfaceId, NodeId, WorkerId};
use crate::interface::InterfaceRows;
use crate::interfaces::Interfaces;
use crate::node::{Names, Node, NodeKind, NodeSpec, Wiring};
use crate::outbox::Outbox;
use crate::poll::{Bell, Poll};
use crate::reactor::Reactor;
use crate::ring::{Consumer, Producer, ring};
use crate::superblock::{Fused, SuperblockSpec};
use crate::trace::{TraceRecord, Tracer};
use crate::watchdog::{ERRANDS_WAITING_MAX, Watchdog};
use crate::worker::{Errand, Installed, RX_QUEUES_PER_WORKER_MAX, Shared, Worker};

/// Errands under way to one worker at most; further ones wait in the control thread.
const ERRANDS_MAX: usize = 256;
/// How long the control thread waits for a worker's answer before it says that the worker stalls.
const ANSWER_MS_MAX: u64 = 2000;

pub use crate::watchdog::Stalled;

/// A node as the control thread knows it.
pub struct NodeInfo {
    /// Its declaration.
    pub spec: NodeSpec,
    /// Where it can send packets, as wired.
    pub edges: Vec<NodeId>,
}

impl NodeInfo {
    /// What the node saw and decided, in its own words; `None` when it has none.
    pub fn describe(&self, record: &TraceRecord, names: &dyn Names) -> Option<String> {
        self.spec.describe.as_ref().map(|words| words(record, names))
    }
}

/// May features send what nobody asked for (announcements of addresses, …)? They may unless the engine holds
/// [`Unasked`] with `false`: a test that counts frames wants only those that follow from what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unasked(pub bool);

/// The control thread's side of one worker.
pub(crate) struct WorkerHandle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) core: usize,
    errands: Producer<Box<dyn Errand>>,
    pub(crate) waiting: VecDeque<Box<dyn Errand>>,
    done: Consumer<Box<dyn Errand>>,
    pub(crate) returned: VecDeque<Box<dyn Errand>>,
    events: Consumer<Event>,
    /// The worker itself, while it runs on the control thread (tests, benchmarks) or not yet.
    pub(crate) inline: Option<Box<Worker>>,
    thread: Option<JoinHandle<()>>,
}

type EventHandler = Box<dyn FnMut(&mut Engine, &Event)>;

/// The router's engine. One thread owns it.
pub struct Engine {
    pub(crate) config: EngineConfig,
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) pool: Arc<BufferPool>,
    pub(crate) clock: Clock,
    pub(crate) nodes: Vec<Option<NodeInfo>>,
    pub(crate) directory: Directory,
    free_nodes: VecDeque<(Stamp, NodeId)>,
    pub(crate) arcs: Vec<ArcSpec>,
    pub(crate) superblocks: Vec<SuperblockSpec>,
    pub(crate) rows: Arc<InterfaceRows>,
    pub(crate) interfaces: Interfaces,
    pub(crate) workers: Vec<WorkerHandle>,
    stop: Arc<AtomicBool>,
    handlers: HashMap<NodeId, EventHandler>,
    extensions: HashMap<TypeId, Box<dyn Any>>,
    pub(crate) reactor: Reactor,
    pub(crate) baselines: crate::statistics::Baselines,
    pub(crate) watchdog: Watchdog,
}

impl Engine {
    /// Build the graph that was declared. Its workers run on the calling thread, one pass per
    /// [`step`](Self::step), until [`start_threads`](Self::start_threads).
    pub fn build(builder: GraphBuilder) -> Result<Engine, BuildError> {
        let directory = builder.directory()?;
        let superblocks = if builder.config.superblocks { builder.superblocks.clone() } else { Vec::new() };
        let superblocks: Vec<_> = superblocks
            .into_iter()
            .filter(|s| s.names.iter().all(|name| directory.ids.contains_key(*name)))
            .collect();
        let arcs = builder.ordered_arcs()?;
        let rows = Arc::new(InterfaceRows::new(&builder.epochs));
        let mut workers = Vec::new();
        let shared: Vec<Arc<Shared>> = (0..builder.workers())
            .map(|_| {
                let counters = WorkerCounters::default();
                Ok(Arc::new(Shared { counters, asleep: AtomicBool::new(false), wake: Bell::new()? }))
            })
            .collect::<Result<_, std::io::Error>>()?;
        for (index, handoff) in Handoff::between(&shared).into_iter().enumerate() {
            workers.push(make_worker(&builder, index, shared[index].clone(), &rows, handoff)?);
        }
        let mut engine = Engine {
            epochs: builder.epochs,
            pool: builder.pool,
            clock: builder.clock,
            config: builder.config,
            nodes: builder.nodes.into_iter().map(|spec| Some(NodeInfo { spec, edges: Vec::new() })).collect(),
            directory,
            free_nodes: VecDeque::new(),
            arcs,
            superblocks,
            rows,
            interfaces: Interfaces::default(),
            workers,
            stop: Arc::new(AtomicBool::new(false)),
            handlers: HashMap::new(),
            extensions: HashMap::new(),
            reactor: Reactor::default(),
            baselines: crate::statistics::Baselines::default(),
            watchdog: Watchdog::default(),
        };
        for id in 0..engine.nodes.len() {
            engine.instantiate(NodeId(id as u16))?;
        }
        Ok(engine)
    }

    /// Make an instance of a declared node for each worker.
    fn instantiate(&mut self, id: NodeId) -> Result<(), BuildError> {
        let Some(make) = self.nodes[id.index()].as_ref().and_then(|n| n.spec.make.clone()) else {
            return Ok(());
        };
        for worker in 0..self.workers.len() {
            let wiring = Wiring::new(&self.directory, id, WorkerId(worker as u16));
            let node = make(&wiring);
            let (edges, missing) = wiring.finish();
            if let Some(missing) = missing.into_iter().next() {
                return Err(BuildError::EdgeMissing { node: self.node_name(id), missing });
            }
            if let Some(info) = &mut self.nodes[id.index()] {
                info.edges = edges;
            }
            self.install(id, WorkerId(worker as u16), node);
        }
        Ok(())
    }

    fn install(&mut self, id: NodeId, worker: WorkerId, node: Box<dyn Node>) {
        let spec = self.nodes[id.index()].as_ref().map(|n| &n.spec);
        let is_sink = spec.is_some_and(|s| s.kind == NodeKind::Sink);
        let sink = is_sink.then(|| {
            if id == crate::node::DROP { crate::capture::Point::Drop } else { crate::capture::Point::Tx }
        });
        let fused = spec.map_or(Vec::new(), |spec| self.superblocks_at(&spec.name, worker));
        let mut installed = Some(Box::new(Installed { node, sink, is_sink, fused, likely: 0 }));
        self.post_always(worker, move |w: &mut Worker| {
            installed = w.swap_node(id, installed.take());
        });
    }

    /// A worker's instances of the superblocks that begin at the node called `name`.
    fn superblocks_at(&self, name: &str, worker: WorkerId) -> Vec<Fused> {
        let spec = |id: NodeId| self.nodes[id.index()].as_ref().map(|info| &info.spec);
        let here = self.superblocks.iter().filter(|s| s.head() == name);
        here.map(|superblock| superblock.instance(&self.directory, &spec, worker)).collect()
    }

    /// The superblocks: the names of their nodes.
    pub fn superblocks(&self) -> impl Iterator<Item = &[&'static str]> {
        self.superblocks.iter().map(|superblock| superblock.names.as_slice())
    }

    /// The form in which loops over packets and look-ups run.
    pub fn variant(&self) -> Variant {
        self.config.variant.min(Variant::best())
    }

    /// Add a node while the router runs, with an instance per worker made by its declaration or,
    /// when that makes none, taken from `instances`.
    pub fn add_node(&mut self, spec: NodeSpec, instances: Vec<Box<dyn Node>>) -> Result<NodeId, BuildError> {
        if self.directory.ids.contains_key(&spec.name) {
            return Err(BuildError::NodeTwice(spec.name));
        }
        self.make_room()?;
        let id = match self.free_nodes.front() {
            Some((stamp, id)) if self.epochs.has_passed(*stamp) => {
                let id = *id;
                self.free_nodes.pop_front();
                self.clear_node_baseline(id);
                id
            }
            _ if self.nodes.len() < NODES_MAX => {
                self.nodes.push(None);
                NodeId((self.nodes.len() - 1) as u16)
            }
            _ => return Err(BuildError::TooMany(format!("the graph has {NODES_MAX} nodes already"))),
        };
        self.directory.ids.insert(spec.name.clone(), id);
        let has_make = spec.make.is_some();
        self.nodes[id.index()] = Some(NodeInfo { spec, edges: Vec::new() });
        for (worker, node) in instances.into_iter().enumerate() {
            self.install(id, WorkerId(worker as u16), node);
        }
        if has_make {
            self.instantiate(id)?;
        }
        Ok(id)
    }

    /// Take a node out. Packets under way to it are dropped and counted.
    pub fn remove_node(&mut self, id: NodeId) {
        let Some(info) = self.nodes.get_mut(id.index()).and_then(Option::take) else { return };
        self.directory.ids.remove(&info.spec.name);
        for worker in 0..self.workers.len() {
            let mut empty = None;
            self.post_always(WorkerId(worker as u16), move |w: &mut Worker| {
                empty = w.swap_node(id, empty.take());
            });
        }
        self.free_nodes.push_back((self.epochs.stamp(), id));
    }

    // Errands.

    /// Have `errand` done on a worker between two passes; what it holds is dropped here afterwards.
    /// Returns false, and nothing is done, when as many errands wait for that worker as may.
    pub fn post(&mut self, worker: WorkerId, errand: impl FnMut(&mut Worker) + Send + 'static) -> bool {
        let has_room = self.workers[worker.index()].waiting.len() < ERRANDS_WAITING_MAX;
        if has_room {
            self.post_always(worker, errand);
        }
        has_room
    }

    /// As `post`, for a change that [`make_room`](Self::make_room) has let pass.
    fn post_always(&mut self, worker: WorkerId, errand: impl FnMut(&mut Worker) + Send + 'static) {
        self.post_boxed(worker, Box::new(Plain(errand)));
    }

    fn post_boxed(&mut self, worker: WorkerId, mut errand: Box<dyn Errand>) {
        let handle = &mut self.workers[worker.index()];
        if let Some(inline) = &mut handle.inline {
            errand.run(inline);
            handle.returned.push_back(errand);
            return;
        }
        handle.waiting.push_back(errand);
        handle.pump();
    }

    /// Have something done on a worker and wait for its answer. When it does not come, the worker
    /// will not do it later either.
    pub fn call<R: Send + 'static>(
        &mut self,
        worker: WorkerId,
        call: impl FnMut(&mut Worker) -> R + Send + 'static,
    ) -> Result<R, Stalled> {
        static TICKET: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        self.check_answering(worker)?;
        let ticket = TICKET.fetch_add(1, Ordering::Relaxed);
        let taken = Arc::new(AtomicBool::new(false));
        let answer = Answer { ticket, value: None };
        self.post_boxed(worker, Box::new(Call { call, taken: taken.clone(), answer }));
        let mut deadline = Instant::now() + Duration::from_millis(ANSWER_MS_MAX);
        let mut is_late = false;
        loop {
            let handle = &mut self.workers[worker.index()];
            handle.pump();
            while let Some(mut returned) = handle.returned.pop_front() {
                if let Some(answer) = returned.answer().and_then(|a| a.downcast_mut::<Answer<R>>())
                    && answer.ticket == ticket
                    && let Some(answer) = answer.value.take()
                {
                    return Ok(answer);
                }
            }
            if Instant::now() > deadline {
                self.look_after_workers();
                // Who takes it first: the worker, to do it, or this thread, so that nobody does.
                if is_late || !taken.swap(true, Ordering::AcqRel) {
                    return Err(self.stalled(worker));
                }
                is_late = true; // it is being done just now
                deadline = Instant::now() + Duration::from_millis(ANSWER_MS_MAX);
            }
            std::thread::yield_now();
        }
    }

    /// All workers' answers.
    pub fn call_all<R: Send + 'static>(
        &mut self,
        call: impl FnMut(&mut Worker) -> R + Send + Clone + 'static,
    ) -> Result<Vec<R>, Stalled> {
        (0..self.workers.len()).map(|w| self.call(WorkerId(w as u16), call.clone())).collect()
    }

    /// Free what came back and what no worker sees any more; hand events to their handlers.
    pub(crate) fn collect(&mut self) {
        for index in 0..self.workers.len() {
            self.workers[index].pump();
            self.workers[index].returned.clear();
            for _ in 0..EVENTS_MAX {
                let Some(event) = self.workers[index].events.take() else { break };
                self.handle_event(&event);
            }
        }
        self.look_after_workers();
        self.epochs.collect();
        self.publish_stale_rows();
    }

    fn handle_event(&mut self, event: &Event) {
        if let Some(mut handler) = self.handlers.remove(&event.node) {
            handler(self, event);
            self.handlers.entry(event.node).or_insert(handler);
        }
    }

    /// Call `handler` for every event that the node called `name` sends.
    pub fn on_event(&mut self, name: &str, handler: impl FnMut(&mut Engine, &Event) + 'static) {
        if let Some(id) = self.node_id(name) {
            self.handlers.insert(id, Box::new(handler));
        }
    }

    /// Wait until what was posted to a worker is done, and what it put before nodes has left them.
    pub fn settle(&mut self, worker: WorkerId) -> Result<(), Stalled> {
        self.call(worker, |_: &mut Worker| ())?;
        match self.inline_worker(worker) {
            Some(worker) => drop(worker.pass()),
            None => self.call(worker, |_: &mut Worker| ())?, // the pass of the first one is over
        }
        Ok(())
    }

    // Workers.

    /// Let each worker run in a thread of its own, pinned to its core. Returns what could not be
    /// pinned, in words.
    pub fn start_threads(&mut self) -> Result<Vec<String>, std::io::Error> {
        let mut complaints = Vec::new();
        for (index, handle) in self.workers.iter_mut().enumerate() {
            let Some(mut worker) = handle.inline.take() else { continue };
            worker.set_awake(false);
            let (core, stop) = (handle.core, self.stop.clone());
            let (tell, told) = std::sync::mpsc::channel();
            let thread = std::thread::Builder::new().name(format!("quiver_wk_{index}")).spawn(move || {
                let _ = tell.send(crate::cpu::pin_to_core(core));
                worker.run(&stop);
            })?;
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

    // Parts.

    /// The settings it was built with.
    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// For tables that workers read.
    pub fn epochs(&self) -> &Arc<Epochs> {
        &self.epochs
    }

    /// All buffers.
    pub fn pool(&self) -> &Arc<BufferPool> {
        &self.pool
    }

    /// Nanoseconds since some moment before the start.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// When the time stamp counter stood at `clocks`, on the scale of [`now_ns`](Self::now_ns).
    pub fn clocks_to_ns(&self, clocks: u64) -> u64 {
        self.clock.at_ns(clocks)
    }

    /// The number of a node.
    pub fn node_id(&self, name: &str) -> Option<NodeId> {
        self.directory.ids.get(name).copied()
    }

    /// A node.
    pub fn node_info(&self, id: NodeId) -> Option<&NodeInfo> {
        self.nodes.get(id.index())?.as_ref()
    }

    /// A node's name; `node-N` when it is gone.
    pub fn node_name(&self, id: NodeId) -> String {
        self.node_info(id).map_or_else(|| format!("node-{}", id.0), |n| n.spec.name.clone())
    }

    /// All nodes.
    pub fn all_nodes(&self) -> impl Iterator<Item = (NodeId, &NodeInfo)> {
        self.nodes.iter().enumerate().filter_map(|(i, n)| Some((NodeId(i as u16), n.as_ref()?)))
    }

    /// All arcs with their features in order.
    pub fn arcs(&self) -> &[ArcSpec] {
        &self.arcs
    }

    /// An arc's number.
    pub fn arc_id(&self, name: &str) -> Option<ArcId> {
        self.arcs.iter().position(|a| a.name == name).map(|i| ArcId(i as u8))
    }

    /// What a feature shares ([`GraphBuilder::share`]); `None` when it is not built in.
    pub fn shared<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.directory.shared()
    }

    // What features and drivers keep.

    /// Keep a feature's state, one per type.
    pub fn insert<T: 'static>(&mut self, state: T) {
        self.extensions.insert(TypeId::of::<T>(), Box::new(state));
    }

    /// May features send what nobody asked for?
    pub fn speaks_unasked(&self) -> bool {
        self.get::<Unasked>().is_none_or(|unasked| unasked.0)
    }

    /// Look at a feature's state.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.extensions.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// Change a feature's state.
    pub fn get_mut<T: 'static>(&mut self) -> Option<&mut T> {
        self.extensions.get_mut(&TypeId::of::<T>())?.downcast_mut()
    }

    /// Work with a feature's state and the engine at once: the state is away meanwhile. Panics
    /// when it was never inserted or is away already: both are mistakes of the program.
    pub fn with<T: 'static, R>(&mut self, work: impl FnOnce(&mut Engine, &mut T) -> R) -> R {
        let mut state = self
            .extensions
            .remove(&TypeId::of::<T>())
            .unwrap_or_else(|| panic!("{} is not in the engine", std::any::type_name::<T>()));
        let result = work(self, state.downcast_mut().expect("stored under its own type"));
        self.extensions.insert(TypeId::of::<T>(), state);
        result
    }
}

impl Names for Engine {
    fn interface(&self, id: InterfaceId) -> String {
        self.interface_name(id)
    }

    fn node(&self, id: NodeId) -> String {
        self.node_name(id)
    }

    fn reason(&self, index: u32) -> String {
        let info = self.node_info(NodeId((index >> 16) as u16));
        let text = info.and_then(|n| n.spec.reasons.get((index & 0xffff) as usize));
        text.map_or_else(|| format!("reason {}", index & 0xffff), |t| t.text.to_owned())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for handle in &mut self.workers {
            handle.shared.wake.ring();
            if let Some(thread) = handle.thread.take() {
                let _ = thread.join();
            }
            if let Some(mut worker) = handle.inline.take() {
                worker.set_awake(false);
            }
        }
        self.epochs.collect();
    }
}

impl WorkerHandle {
    /// Send what waits and fetch what came back.
    pub(crate) fn pump(&mut self) {
        let mut sent = false;
        while let Some(errand) = self.waiting.pop_front() {
            if let Err(errand) = self.errands.put(errand) {
                self.waiting.push_front(errand);
                break;
            }
            sent = true;
        }
        if sent || !self.waiting.is_empty() {
            self.shared.wake.ring();
        }
        while let Some(errand) = self.done.take() {
            self.returned.push_back(errand);
        }
    }
}

fn make_worker(
    builder: &GraphBuilder,
    index: usize,
    shared: Arc<Shared>,
    rows: &Arc<InterfaceRows>,
    handoff: Handoff,
) -> Result<WorkerHandle, BuildError> {
    let (errands_put, errands) = ring(ERRANDS_MAX);
    let (errands_done, done) = ring(ERRANDS_MAX * 2);
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
        events: events_put,
        errands,
        errands_done,
        handoff,
        tracer: Tracer::default(),
        capture: None,
        clock: builder.clock.clone(),
        poll,
        variant: builder.config.variant.min(Variant::best()),
        began_ns: 0,
    });
    worker.set_awake(true);
    Ok(WorkerHandle {
        shared,
        core: builder.config.worker_cores[index],
        errands: errands_put,
        waiting: VecDeque::new(),
        done,
        returned: VecDeque::new(),
        events,
        inline: Some(worker),
        thread: None,
    })
}

/// An errand without an answer.
struct Plain<F>(F);

impl<F: FnMut(&mut Worker) + Send> Errand for Plain<F> {
    fn run(&mut self, worker: &mut Worker) {
        (self.0)(worker);
    }
}

/// An errand with an answer.
struct Call<F, R> {
    call: F,
    /// By the worker, or by a sender who gave up.
    taken: Arc<AtomicBool>,
    answer: Answer<R>,
}

struct Answer<R> {
    ticket: u64,
    value: Option<R>,
}

impl<R: Send + 'static, F: FnMut(&mut Worker) -> R + Send> Errand for Call<F, R> {
    fn run(&mut self, worker: &mut Worker) {
        if !self.taken.swap(true, Ordering::AcqRel) {
            self.answer.value = Some((self.call)(worker));
        }
    }

    fn answer(&mut self) -> Option<&mut dyn Any> {
        Some(&mut self.answer)
    }
}
