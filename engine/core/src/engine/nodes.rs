//! The nodes of a running engine: an instance of each for every worker, and what comes and goes while it runs.

use super::Engine;
use crate::counters::NODES_MAX;
use crate::graph::BuildError;
use crate::ids::{NodeId, WorkerId};
use crate::node::{Names, Node, NodeKind, NodeSpec, Wiring};
use crate::superblock::{Chains, Fused};
use crate::trace::TraceRecord;
use crate::worker::{Installed, Worker};

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
        let is_slow_path = spec.is_some_and(|s| s.is_slow_path);
        let detour = spec.and_then(|s| s.detour).and_then(|name| self.directory.ids.get(name).copied());
        let chains = Chains::new(spec.map_or(Vec::new(), |spec| self.superblocks_at(&spec.name, worker)));
        let mut installed = Some(Box::new(Installed { node, sink, is_sink, is_slow_path, detour, chains }));
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
