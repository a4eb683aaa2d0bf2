//! Why a packet dies, as it is handed over to `error-drop`.

use crate::graph::node::Reason;
use crate::ids::NodeId;
use crate::memory::packet::handover::Handover;

/// A node's number 16 bits, and the number of one of its reasons 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropReason {
    /// The node that drops. The engine fills it in when the packet leaves the node.
    pub node: NodeId,
    /// The number of the reason in that node.
    pub number: u16,
}

impl DropReason {
    /// A reason of the running node.
    #[inline(always)]
    pub fn new(reason: impl Reason) -> DropReason {
        DropReason::of(NodeId(0), reason)
    }

    /// A reason of `node`.
    #[inline(always)]
    pub fn of(node: NodeId, reason: impl Reason) -> DropReason {
        DropReason { node, number: reason.number() }
    }

    /// The same reason, of `node`.
    #[inline(always)]
    pub fn with_node(self, node: NodeId) -> DropReason {
        DropReason { node, ..self }
    }
}

impl Handover for DropReason {
    #[inline(always)]
    fn to_index(self) -> u32 {
        u32::from(self.number) | u32::from(self.node.0) << 16
    }

    #[inline(always)]
    fn from_index(index: u32) -> DropReason {
        DropReason { node: NodeId((index >> 16) as u16), number: index as u16 }
    }
}
