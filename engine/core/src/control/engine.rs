//! The engine as the control thread holds it: the graph, the workers, the interfaces.

mod nodes;
mod worker_calls;
mod workers;

use std::any::{Any, TypeId};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::block::PairSpec;
use crate::clock::Clock;
use crate::control::interfaces::Interfaces;
use crate::control::reactor::Reactor;
use crate::control::watchdog::Watchdog;
use crate::cpu::Variant;
use crate::graph::arc::ArcId;
use crate::graph::builder::{ArcSpec, BuildError, EngineConfig, GraphBuilder};
use crate::graph::counters::WorkerCounters;
use crate::graph::directory::Directory;
use crate::graph::drop_reason::DropReason;
use crate::graph::interface::InterfaceRows;
use crate::graph::node::Names;
use crate::ids::{InterfaceId, NodeId};
use crate::memory::buffer::BufferPool;
use crate::memory::epoch::{Epochs, Stamp};
use crate::worker::Shared;
use crate::worker::event::Event;
use crate::worker::handoff::Handoff;
use crate::worker::poll::Bell;

use self::workers::make_worker;

pub use self::nodes::NodeInfo;
pub(crate) use self::workers::WorkerHandle;
pub use crate::control::watchdog::Stalled;

/// May features send what nobody asked for (announcements of addresses, …)? They may unless the
/// engine holds [`Unasked`] with `false`: a test that counts frames wants only those that follow
/// from what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unasked(pub bool);

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
    pub(crate) pairs: Vec<PairSpec>,
    pub(crate) rows: Arc<InterfaceRows>,
    pub(crate) interfaces: Interfaces,
    pub(crate) workers: Vec<WorkerHandle>,
    stop: Arc<AtomicBool>,
    handlers: HashMap<NodeId, EventHandler>,
    extensions: HashMap<TypeId, Box<dyn Any>>,
    pub(crate) reactor: Reactor,
    pub(crate) baselines: crate::control::statistics::Baselines,
    pub(crate) watchdog: Watchdog,
}

impl Engine {
    /// Build the graph that was declared. Its workers run on the calling thread, one pass per
    /// [`step`](Self::step), until [`start_threads`](Self::start_threads).
    ///
    /// # Errors
    /// Names of nodes, edges or arcs do not fit together, or there is no memory for buffers and
    /// counters.
    pub fn build(builder: GraphBuilder) -> Result<Engine, BuildError> {
        builder.check_memory()?;
        let directory = builder.directory()?;
        let mut pairs = builder.pairs.clone();
        pairs.retain(|pair| pair.names.iter().all(|name| directory.ids.contains_key(*name)));
        let arcs = builder.ordered_arcs()?;
        let rows = Arc::new(InterfaceRows::new(&builder.epochs));
        let mut workers = Vec::new();
        let shared: Vec<Arc<Shared>> = (0..builder.workers())
            .map(|_| {
                let counters = WorkerCounters::default();
                Ok(Arc::new(Shared {
                    counters,
                    asleep: AtomicBool::new(false),
                    wake: Bell::new()?,
                }))
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
            nodes: builder
                .nodes
                .into_iter()
                .map(|spec| Some(NodeInfo { spec, edges: Vec::new() }))
                .collect(),
            directory,
            free_nodes: VecDeque::new(),
            arcs,
            pairs,
            rows,
            interfaces: Interfaces::default(),
            workers,
            stop: Arc::new(AtomicBool::new(false)),
            handlers: HashMap::new(),
            extensions: HashMap::new(),
            reactor: Reactor::default(),
            baselines: crate::control::statistics::Baselines::default(),
            watchdog: Watchdog::default(),
        };
        for id in 0..engine.nodes.len() {
            engine.instantiate(NodeId(id as u16))?;
        }
        Ok(engine)
    }

    /// The form in which loops over packets and look-ups run.
    pub fn variant(&self) -> Variant {
        self.config.variant.min(Variant::best())
    }

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

    fn reason(&self, reason: DropReason) -> String {
        let number = reason.number;
        let info = self.node_info(reason.node);
        let text = info.and_then(|info| info.spec.reasons.get(usize::from(number)));
        text.map_or_else(|| format!("reason {number}"), |text| text.text.to_owned())
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
