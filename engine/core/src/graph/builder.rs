//! The declaration of a graph, before it runs: nodes, arcs, features.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::Arc;

use crate::block::PairSpec;
use crate::clock::Clock;
use crate::control::watchdog::Stalled;
use crate::cpu::Variant;
use crate::graph::arc::{ARCS_MAX, ArcId, FeatureSpec, Phase, order};
use crate::graph::builtin;
use crate::graph::counters::NODES_MAX;
use crate::graph::directory::{Claim, Directory, Shared};
use crate::graph::node::NodeSpec;
use crate::graph::stage::Stage;
use crate::ids::NodeId;
use crate::memory::buffer::{BUFFERS_DEFAULT, BufferPool, DATA_BYTES_DEFAULT, PoolError};
use crate::memory::epoch::Epochs;
use crate::memory::mapping::PageSize;
use crate::memory::reserve::is_available;

/// Workers that a router can have.
pub const WORKERS_MAX: usize = 64;

/// Memory that the control thread needs beside its tables, and then some.
const START_BYTES: usize = 128 << 20;
/// Memory that a worker needs: counters of all nodes and interfaces, vectors, its stack and the
/// allocator's arena.
const WORKER_BYTES: usize = 96 << 20;

/// What must be known before anything is made.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Cores of the workers, one worker each.
    pub worker_cores: Vec<usize>,
    /// Core of the control thread.
    pub main_core: Option<usize>,
    /// Buffers in the pool.
    pub buffers: usize,
    /// Bytes of data in a buffer.
    pub buffer_data_bytes: usize,
    /// Pages for the buffers.
    pub pages: PageSize,
    /// Folder for sockets and for files without a folder of their own.
    pub runtime_dir: std::path::PathBuf,
    /// The form in which loops over packets and look-ups run; one that the processor does not have
    /// is replaced by the best it has.
    pub variant: Variant,
    /// Do blocks go on from node to node in one pass? Otherwise every vector goes node by node.
    pub block_driver: bool,
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig {
            worker_cores: vec![1],
            main_core: None,
            buffers: BUFFERS_DEFAULT,
            buffer_data_bytes: DATA_BYTES_DEFAULT,
            pages: PageSize::Best,
            runtime_dir: "/run/quiver".into(),
            variant: Variant::best(),
            block_driver: true,
        }
    }
}

/// Why a graph cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The pool.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// Two nodes want the same packets.
    #[error("{0} and {1} both claim {2} {3}")]
    ClaimedTwice(&'static str, &'static str, &'static str, u32),
    /// Two nodes of one name.
    #[error("two nodes are called {0}")]
    NodeTwice(String),
    /// An edge to nowhere.
    #[error("node {node} has an edge to {missing}, which is not built in")]
    EdgeMissing {
        /// Whose edge.
        node: String,
        /// The name that does not exist.
        missing: String,
    },
    /// A feature in no arc.
    #[error("feature {node} stands in arc {arc}, which does not exist")]
    ArcMissing {
        /// The feature.
        node: &'static str,
        /// The name that does not exist.
        arc: &'static str,
    },
    /// A feature without a node.
    #[error("feature {0} in an arc has no node of that name")]
    FeatureMissing(&'static str),
    /// Features that wait for each other.
    #[error("{0}")]
    Cycle(String),
    /// Limits.
    #[error("{0}")]
    TooMany(String),
    /// The system has no memory or address space for something that every router needs.
    #[error("{0}")]
    Memory(String),
    /// The system refused something.
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// A worker does not answer.
    #[error(transparent)]
    Stalled(#[from] Stalled),
}

/// An arc with the order of its features resolved.
#[derive(Clone, Debug)]
pub struct ArcSpec {
    /// Its name.
    pub name: &'static str,
    /// Its features' nodes, in order.
    pub features: Vec<&'static str>,
    /// Their phases, in the same order.
    pub phases: Vec<Phase>,
}

/// Collects what drivers and features declare.
pub struct GraphBuilder {
    pub(crate) config: EngineConfig,
    pub(crate) nodes: Vec<NodeSpec>,
    arcs: Vec<&'static str>,
    features: Vec<FeatureSpec>,
    claims: Vec<Claim>,
    shared: Shared,
    pub(crate) pairs: Vec<PairSpec>,
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) pool: Arc<BufferPool>,
    pub(crate) clock: Clock,
}

impl GraphBuilder {
    /// An almost empty graph: where packets die, and the arcs `device-input` and
    /// `interface-output`.
    ///
    /// # Errors
    /// A size of the configuration is out of range, or there is no memory for the buffers.
    pub fn new(config: EngineConfig, clock: Clock) -> Result<GraphBuilder, BuildError> {
        if config.worker_cores.is_empty() || config.worker_cores.len() > WORKERS_MAX {
            return Err(BuildError::TooMany(format!(
                "cpu: {} workers, but a router has 1 to {WORKERS_MAX}",
                config.worker_cores.len()
            )));
        }
        let pool = BufferPool::new(config.buffers, config.buffer_data_bytes, config.pages)?;
        Ok(GraphBuilder {
            epochs: Epochs::new(config.worker_cores.len()),
            nodes: builtin::fixed_nodes(),
            arcs: vec!["device-input", "interface-output"],
            features: Vec::new(),
            claims: Vec::new(),
            shared: Shared::new(),
            pairs: Vec::new(),
            pool,
            clock,
            config,
        })
    }

    /// For tables that workers read.
    pub fn epochs(&self) -> &Arc<Epochs> {
        &self.epochs
    }

    /// All buffers.
    pub fn pool(&self) -> &Arc<BufferPool> {
        &self.pool
    }

    /// Workers that the router will have.
    pub fn workers(&self) -> usize {
        self.config.worker_cores.len()
    }

    /// Is there address space for what is made when the graph is built and runs: counters, vectors,
    /// threads? What is made then is many small things, which have no error of their own.
    pub(crate) fn check_memory(&self) -> Result<(), BuildError> {
        let bytes = START_BYTES + self.workers() * WORKER_BYTES;
        if is_available(bytes) {
            return Ok(());
        }
        let (mib, workers) = (bytes >> 20, self.workers());
        Err(BuildError::Memory(format!(
            "no {mib} MiB of memory for {workers} workers and the control thread; raise the limit \
             (ulimit -v) or ask for fewer workers (cpu {{ workers N }})"
        )))
    }

    /// Add a node.
    pub fn node(&mut self, spec: NodeSpec) -> NodeId {
        self.nodes.push(spec);
        NodeId((self.nodes.len() - 1) as u16)
    }

    /// Add an arc, or get the one that has this name.
    pub fn arc(&mut self, name: &'static str) -> ArcId {
        if let Some(index) = self.arcs.iter().position(|a| *a == name) {
            return ArcId(index as u8);
        }
        self.arcs.push(name);
        ArcId((self.arcs.len() - 1) as u8)
    }

    /// Add a feature to an arc.
    pub fn feature(&mut self, spec: FeatureSpec) {
        self.features.push(spec);
    }

    /// Let `node` have the packets that carry `number` in a field of a lower protocol: `ethertype`,
    /// `ip4-protocol`, `ip6-protocol`, `udp4-port`, `udp6-port`. The node that sorts by it asks
    /// [`Wiring::claims`](crate::graph::node::Wiring::claims).
    pub fn claim(&mut self, space: &'static str, number: u32, node: &'static str) {
        self.claims.push(Claim { space, number, node });
    }

    /// Let the nodes of all features have this: tables that one feature keeps and others read.
    /// There is one of each type; whoever is made later finds it by
    /// [`Wiring::shared`](crate::graph::node::Wiring::shared), whatever the order of registration.
    pub fn share<T: Send + Sync + 'static>(&mut self, shared: Arc<T>) {
        self.shared.insert(TypeId::of::<T>(), shared);
    }

    /// Run two stages as one loop where the first leads to the second. The types are those with
    /// which their nodes were declared; a pair whose nodes are not both built in is left out.
    pub fn pair<A: Stage, B: Stage>(&mut self) {
        self.pairs.push(PairSpec::of::<A, B>());
    }

    /// The number of each name, and claims; an error for a name or a claim that is there twice.
    pub(crate) fn directory(&self) -> Result<Directory, BuildError> {
        if self.nodes.len() > NODES_MAX {
            return Err(BuildError::TooMany(format!(
                "{} nodes, at most {NODES_MAX}",
                self.nodes.len()
            )));
        }
        let mut names = HashMap::new();
        for (index, spec) in self.nodes.iter().enumerate() {
            if names.insert(spec.name.clone(), NodeId(index as u16)).is_some() {
                return Err(BuildError::NodeTwice(spec.name.clone()));
            }
        }
        for (place, claim) in self.claims.iter().enumerate() {
            let same = |other: &&Claim| (other.space, other.number) == (claim.space, claim.number);
            if let Some(other) = self.claims[..place].iter().find(same) {
                let (space, number) = (claim.space, claim.number);
                return Err(BuildError::ClaimedTwice(other.node, claim.node, space, number));
            }
        }
        Ok(Directory { ids: names, claims: self.claims.clone(), shared: self.shared.clone() })
    }

    /// The arcs, their features in order.
    pub(crate) fn ordered_arcs(&self) -> Result<Vec<ArcSpec>, BuildError> {
        if self.arcs.len() > ARCS_MAX {
            return Err(BuildError::TooMany(format!(
                "{} arcs, at most {ARCS_MAX}",
                self.arcs.len()
            )));
        }
        for feature in &self.features {
            if !self.arcs.contains(&feature.arc) {
                return Err(BuildError::ArcMissing { node: feature.node, arc: feature.arc });
            }
            if !self.nodes.iter().any(|n| n.name == feature.node) {
                return Err(BuildError::FeatureMissing(feature.node));
            }
        }
        let ordered = self.arcs.iter().map(|&name| {
            let of_arc: Vec<_> = self.features.iter().filter(|f| f.arc == name).collect();
            let features = order(&of_arc).map_err(BuildError::Cycle)?;
            let phase = |node: &&str| of_arc.iter().find(|f| f.node == *node).map(|f| f.phase);
            let phases = features.iter().filter_map(phase).collect();
            Ok(ArcSpec { name, features, phases })
        });
        ordered.collect()
    }
}
