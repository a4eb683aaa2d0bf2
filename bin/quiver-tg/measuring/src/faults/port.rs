//! The nodes of a port's faults, put into the graph of a generator.

use std::sync::Arc;

use quiver_core::memory::ring::ring;
use quiver_core::worker::device::RxMode;
use quiver_core::{Engine, InterfaceId, NodeId, NodeSpec};
use quiver_tg_traffic::profile::faults::Faults;

use super::{FaultCounts, FaultLine, FaultNode, RING_FRAMES, Subject};
use crate::surroundings::WORKER;

/// A port whose frames suffer faults before a node sees them.
pub struct FaultPort {
    /// The number of the port in the profile.
    pub number: usize,
    /// The interface of what the generator itself lets in.
    pub inputs: InterfaceId,
    /// The node that gets the frames that are left.
    pub next: NodeId,
}

impl FaultPort {
    /// Put faults before the next node. Returns the node to which frames go first, and the counts
    /// of what was done to them.
    ///
    /// # Errors
    /// The engine has no place for a node or a queue more.
    pub fn add(
        self,
        engine: &mut Engine,
        faults: &Faults,
        subject: Subject,
    ) -> anyhow::Result<(NodeId, Arc<FaultCounts>)> {
        let (put, take) = ring(RING_FRAMES);
        let done = Arc::new(FaultCounts::default());
        let spec = NodeSpec::input(format!("tg-faults-{}", self.number), "Faults on purpose");
        let node = FaultNode::new(put, subject, done.clone());
        let node = engine.add_node(spec.sink(), vec![Box::new(node)])?;
        let line = FaultLine::new(faults, subject, take, self.next, done.clone());
        engine.add_rx_queue(
            self.inputs,
            "tg-input",
            Box::new(line),
            RxMode::Polling,
            Some(WORKER),
        )?;
        Ok((node, done))
    }
}
