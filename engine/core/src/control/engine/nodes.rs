//! The nodes of a running engine: an instance of each for every worker, and what comes and goes
//! while it runs.

use super::{Engine, Stalled};
use crate::block::{KernelSlot, Makers, Pair};
use crate::graph::builder::BuildError;
use crate::graph::counters::NODES_MAX;
use crate::graph::node::{Names, Node, NodeKind, NodeSpec, Wiring};
use crate::graph::observer::Observer;
use crate::graph::trace::TraceRecord;
use crate::ids::{NodeId, WorkerId};
use crate::worker::{Installed, Work, Worker};

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

impl Engine {
    /// Make an instance of a declared node for each worker.
    pub(super) fn instantiate(&mut self, id: NodeId) -> Result<(), BuildError> {
        let Some(spec) = self.nodes[id.index()].as_ref().map(|node| &node.spec) else {
            return Ok(());
        };
        let (make, make_kernel) = (spec.make.clone(), spec.make_kernel.clone());
        for worker in 0..self.workers.len() {
            let worker = WorkerId(worker as u16);
            let wiring = Wiring::new(&self.directory, id, worker);
            let work = match (&make, &make_kernel) {
                (Some(make), _) => Work::Node(make(&wiring)),
                (None, Some(make)) => {
                    let kernel = make(&wiring);
                    Work::Kernel(KernelSlot::new(kernel, self.pairs_at(id, worker)))
                }
                (None, None) => return Ok(()),
            };
            let (edges, missing) = wiring.finish();
            if let Some(missing) = missing.into_iter().next() {
                return Err(BuildError::EdgeMissing { node: self.node_name(id), missing });
            }
            if let Some(info) = &mut self.nodes[id.index()] {
                info.edges = edges;
            }
            self.install(id, worker, work);
        }
        Ok(())
    }

    fn install(&mut self, id: NodeId, worker: WorkerId, work: Work) {
        let spec = self.nodes[id.index()].as_ref().map(|n| &n.spec);
        let is_sink = spec.is_some_and(|s| s.kind == NodeKind::Sink);
        let sink = is_sink.then(|| {
            if id == crate::graph::node::DROP {
                crate::graph::capture::Point::Drop
            } else {
                crate::graph::capture::Point::Tx
            }
        });
        let is_slow_path = spec.is_some_and(|s| s.is_slow_path);
        let offloads = spec.map(|s| s.offloads).unwrap_or_default();
        let detour =
            spec.and_then(|s| s.detour).and_then(|name| self.directory.ids.get(name).copied());
        let observer = None;
        let mut installed = Some(Box::new(Installed {
            work,
            sink,
            is_sink,
            is_slow_path,
            offloads,
            detour,
            observer,
        }));
        self.post_always(worker, move |w: &mut Worker| {
            installed = w.swap_node(id, installed.take());
        });
    }

    /// A worker's instances of the pairs that begin at a node.
    fn pairs_at(&self, id: NodeId, worker: WorkerId) -> Vec<Pair> {
        let specs = |id: NodeId| self.nodes[id.index()].as_ref().map(|info| &info.spec);
        let makers = Makers { directory: &self.directory, specs: &specs, worker };
        let name = self.node_name(id);
        let here = self.pairs.iter().filter(|pair| pair.names[0] == name);
        here.filter_map(|pair| pair.instance(&makers)).collect()
    }

    /// The pairs of nodes that run as one loop.
    pub fn pairs(&self) -> impl Iterator<Item = [&'static str; 2]> {
        self.pairs.iter().map(|pair| pair.names)
    }

    /// Add a node while the router runs, with an instance per worker made by its declaration or,
    /// when that makes none, taken from `instances`.
    ///
    /// # Errors
    /// A node of this name exists, the graph is full, or a worker does not answer.
    pub fn add_node(
        &mut self,
        spec: NodeSpec,
        instances: Vec<Box<dyn Node>>,
    ) -> Result<NodeId, BuildError> {
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
            _ => {
                return Err(BuildError::TooMany(format!(
                    "the graph has {NODES_MAX} nodes already"
                )));
            }
        };
        self.directory.ids.insert(spec.name.clone(), id);
        let has_make = spec.make.is_some() || spec.make_kernel.is_some();
        self.nodes[id.index()] = Some(NodeInfo { spec, edges: Vec::new() });
        for (worker, node) in instances.into_iter().enumerate() {
            self.install(id, WorkerId(worker as u16), Work::Node(node));
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

    /// Have an observer see what comes to a node, on each worker the one that `make` makes, in
    /// place of the one before; `None` ends it. Kernels are not observed.
    ///
    /// # Errors
    /// A worker does not answer in time: it, and those behind it, have the observer from before.
    pub fn observe(
        &mut self,
        node: NodeId,
        mut make: impl FnMut(WorkerId) -> Option<Box<dyn Observer>>,
    ) -> Result<(), Stalled> {
        let info = self.node_info(node);
        assert!(info.is_none_or(|info| info.spec.make_kernel.is_none()), "a kernel is observed");
        for worker in (0..self.worker_count()).map(|worker| WorkerId(worker as u16)) {
            let mut observer = make(worker);
            self.call(worker, move |w: &mut Worker| w.observe(node, &mut observer))?;
        }
        Ok(())
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
}
