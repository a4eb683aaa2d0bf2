//! What worker calls ask of the nodes that keep fragments.

use quiver_core::worker::Worker;
use quiver_core::{Context, NodeId};

use crate::contexts::Contexts;
use crate::full::FullReassembly;
use crate::virtual_reassembly::VirtualReassembly;

/// Packets that time out are looked for before each vector, so many at most.
pub(crate) const EXPIRED_PER_VECTOR: usize = 8;

/// A node that keeps fragments.
pub(crate) trait Keeper {
    /// Where it keeps them.
    fn contexts(&mut self) -> &mut Contexts;

    /// Forget the oldest packet when its time is over; false when there is none.
    fn expire(&mut self, cx: &mut Context<'_>) -> bool;

    /// Forget so many at most.
    fn expire_up_to(&mut self, cx: &mut Context<'_>, most: usize) {
        for _ in 0..most {
            if !self.expire(cx) {
                break;
            }
        }
    }
}

/// Work with a worker's instance of such a node.
pub(crate) fn visit(
    worker: &mut Worker,
    node: NodeId,
    mut work: impl FnMut(&mut dyn Keeper, &mut Context<'_>),
) {
    if worker.visit(node, |keeper: &mut FullReassembly, cx| work(keeper, cx)).is_none() {
        worker.visit(node, |keeper: &mut VirtualReassembly, cx| work(keeper, cx));
    }
}
