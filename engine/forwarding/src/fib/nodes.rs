//! The nodes that hops name, and the indices that they give to them.

use quiver_core::NodeId;

use super::link::Link;
use super::path::Family;

/// The index of the hop that a table answers when no route matches.
pub const NO_ROUTE_INDEX: u32 = u32::MAX;
/// The index of a drop hop whose route says unreachable.
pub const UNREACHABLE_INDEX: u32 = u32::MAX - 1;
/// The index of a drop hop whose route says prohibited.
pub const PROHIBIT_INDEX: u32 = u32::MAX - 2;
/// The index of a local hop whose route was made by the operator or a feature; that of an
/// interface's own address has 0.
pub const LOCAL_ROUTE_INDEX: u32 = 1;

/// The bit of a table's number in a hop that takes a label off, whose TTL and class go on into what
/// is behind it (RFC 3443 §2.2).
pub const POPPED_UNIFORM: u32 = 1 << 31;

/// The nodes that a family's hops name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyNodes {
    /// Writes a complete adjacency's rewrite; index: adjacency.
    pub rewrite: NodeId,
    /// Counts packets of an adjacency, and sends on to `rewrite`; index: the complete adjacency.
    pub count: NodeId,
    /// Has a neighbour confirmed that was not heard from for some time, and sends on to `rewrite`;
    /// index: the complete adjacency.
    pub confirm: NodeId,
    /// Packets for the router itself; index: 0, or [`LOCAL_ROUTE_INDEX`].
    pub local: NodeId,
    /// Asks for a neighbour's address (ARP, ND); index: the incomplete adjacency.
    pub incomplete: NodeId,
    /// A connected subnet: makes the packet's destination a neighbour; index: the glean adjacency.
    pub glean: NodeId,
    /// Packets for nobody; index: 0, [`NO_ROUTE_INDEX`] when no route matched,
    /// [`UNREACHABLE_INDEX`] or [`PROHIBIT_INDEX`] when the sender is to be told.
    pub drop: NodeId,
    /// Packets for the control plane; index: 0.
    pub punt: NodeId,
    /// Looks up in another table; index: the table's small number.
    pub lookup: NodeId,
    /// Looks the source up in a table; index: the table's small number.
    pub source_lookup: NodeId,
    /// Receives a packet once more; index: the interface.
    pub interface_rx: NodeId,
}

/// The nodes that hops name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibNodes {
    /// For IPv4 packets.
    pub ip4: FamilyNodes,
    /// For IPv6 packets.
    pub ip6: FamilyNodes,
    /// Looks a link-local destination up in the receiving interface's own table
    /// ([`Fib::link_local_table`](super::Fib::link_local_table)); index: 0.
    pub ip6_link_local: NodeId,
    /// Packets to all hosts of an IPv4 subnet; index: an adjacency of its interface, complete where
    /// they are forwarded.
    pub ip4_broadcast: NodeId,
    /// For labelled packets to neighbours.
    pub labelled: LabelledNodes,
}

/// What becomes of labelled packets to a neighbour whatever the labels are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelledNodes {
    /// Asks for a neighbour's address; index: an adjacency to it.
    pub incomplete: NodeId,
    /// As [`FamilyNodes::confirm`], for packets that get or have labels.
    pub confirm: NodeId,
    /// As [`FamilyNodes::count`], for packets that get or have labels.
    pub count: NodeId,
}

/// The nodes that put labels on packets, swap and take them off ([`Fib::set_label_nodes`]
/// (super::Fib::set_label_nodes)). Their index is an adjacency, unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelNodes {
    /// Puts labels on IPv4 and IPv6 packets.
    pub impose: [NodeId; 2],
    /// Puts labels on Ethernet frames.
    pub impose_ethernet: NodeId,
    /// Puts labels, or none, on labelled packets.
    pub output: NodeId,
    /// Takes the top label off and puts others there, or none.
    pub swap: NodeId,
    /// Takes the last label off, for a neighbour.
    pub pop: NodeId,
    /// Takes the last label off, and looks an IPv4 or IPv6 packet up; index: the table's small
    /// number.
    pub pop_lookup: [NodeId; 2],
    /// Takes a label off, and looks the next one up; index: the label table's small number.
    pub lookup: NodeId,
    /// Takes the last label off, and receives the packet once more; index: the interface.
    pub interface_rx: NodeId,
    /// Takes the last label off, and receives the frame behind it; index: the interface.
    pub frame_rx: NodeId,
    /// Packets for nobody; index: 0.
    pub drop: NodeId,
}

impl FibNodes {
    pub(super) fn of(&self, family: Family) -> &FamilyNodes {
        match family {
            Family::Ip4 => &self.ip4,
            Family::Ip6 => &self.ip6,
        }
    }

    /// The node that drops packets of a kind; labelled ones and frames go to `labels`, where that
    /// is built in.
    pub(super) fn drop_of(&self, link: Link, labels: Option<&LabelNodes>) -> NodeId {
        match (link.family(), labels) {
            (Some(family), _) => self.of(family).drop,
            (None, Some(labels)) => labels.drop,
            (None, None) => self.ip4.drop,
        }
    }
}
