//! Worker calls: closures that the control thread runs on a worker between two passes, and what
//! they can use there.

use crate::graph::context::{Context, WorkerContext};
use crate::graph::node::Node;
use crate::graph::observer::Observer;
use crate::ids::{InterfaceId, NodeId};
use crate::memory::buffer::BufferCache;
use crate::memory::packet::{Packet, PacketFlags};
use crate::worker::{Worker, context};

/// Worker calls carried out between two passes at most.
const WORKER_CALLS_PER_PASS: usize = 8;

/// Something the control thread wants done on a worker between two passes. It carries everything
/// it needs there and everything it replaces back, so that the worker allocates and frees nothing.
pub trait WorkerCall: Send {
    /// Do it.
    fn run(&mut self, worker: &mut Worker);
    /// What it brings back, for a sender who waits for it.
    fn answer(&mut self) -> Option<&mut dyn std::any::Any> {
        None
    }
}

impl Worker {
    /// Carry out what waits.
    pub(super) fn run_worker_calls(&mut self) {
        for _ in 0..WORKER_CALLS_PER_PASS {
            let Some(mut call) = self.worker_calls.take() else { break };
            self.shared.counters.enters_worker_call();
            let begun_ns = self.clock.now_ns();
            call.run(self);
            self.shared.counters.note_worker_call(self.clock.now_ns().saturating_sub(begun_ns));
            // Never full: the sender keeps no more than the ring's size under way.
            let _ = self.worker_calls_done.put(call);
        }
    }

    /// The worker is between two passes: it holds nothing that is published.
    pub(crate) fn rest(&mut self) {
        self.reader.quiescent();
    }

    /// Put a packet of these bytes before `next`; false when there is no buffer.
    pub fn inject(&mut self, bytes: &[u8], next: NodeId, rx: InterfaceId, tx: InterfaceId) -> bool {
        let Some(mut packet) = self.buffers.packet() else { return false };
        packet.rx = rx;
        packet.tx = tx;
        packet.set(PacketFlags::LOCALLY_ORIGINATED);
        if !packet.append(bytes, &mut self.buffers) {
            self.buffers.free(packet);
            return false;
        }
        self.put(packet, next);
        true
    }

    /// Have a worker call work with this worker's instance of a node, with what the node itself
    /// would borrow ([`Node::as_any`]). `None` when it is not there or of another type.
    pub fn visit<N: Node + 'static, R>(
        &mut self,
        id: NodeId,
        work: impl FnOnce(&mut N, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let mut installed = self.nodes.get_mut(id.index()).and_then(Option::take)?;
        let now_ns = self.clock.now_ns();
        let node = installed
            .work
            .node()
            .and_then(|node| node.as_any())
            .and_then(|node| node.downcast_mut::<N>());
        let result = node.map(|node| work(node, &mut context!(self, id, now_ns)));
        self.nodes[id.index()] = Some(installed);
        result
    }

    /// Swap the observer of a node; the one before comes back in its place.
    pub(crate) fn observe(&mut self, id: NodeId, observer: &mut Option<Box<dyn Observer>>) {
        if let Some(Some(installed)) = self.nodes.get_mut(id.index()) {
            std::mem::swap(&mut installed.observer, observer);
        }
    }

    /// Put a packet before `next`.
    pub fn put(&mut self, packet: Packet, next: NodeId) {
        self.outbox.put(next, packet, true, false, &mut self.buffers, &self.shared.counters);
    }

    /// The worker's buffers.
    pub fn buffers(&mut self) -> &mut BufferCache {
        &mut self.buffers
    }
}
