//! What routes hand over to the nodes that they lead to. The FIB names a node and an index; the
//! node that reads the index says which of these types it is.

use quiver_core::memory::packet::handover::{Handover, Kind, MarkedHandover};
use quiver_core::{InterfaceId, NodeId, Packet, number_handover};

use crate::fib::{NO_ROUTE_INDEX, PROHIBIT_INDEX, UNREACHABLE_INDEX};
use crate::next_hop_group::Hop;
use crate::route_end::RouteEnd;

/// The index of a next hop, as a look-up found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHopIndex(pub u32);

/// The number of an adjacency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdjacencyIndex(pub u32);

/// The small number of a table in which a packet is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableIndex(pub u32);

/// The interface on which a route has a packet received once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivingInterface(pub InterfaceId);

/// To `ip4-local` and `ip6-local`: the packet's multicast route leads to the router itself, whether
/// or not the interface listens to the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupAccepted;

const GROUP_ACCEPTED: u32 = u32::MAX;

impl Hop {
    /// Hand the index over to the node of this hop; returns the node.
    #[inline(always)]
    pub fn route(self, packet: &mut Packet) -> NodeId {
        packet.hand_over(NextHopIndex(self.index));
        self.next
    }
}

number_handover!(
    NextHopIndex,
    AdjacencyIndex from NextHopIndex,
    TableIndex from NextHopIndex,
);

impl Handover for ReceivingInterface {
    #[inline(always)]
    fn to_index(self) -> u32 {
        self.0.0
    }

    #[inline(always)]
    fn from_index(index: u32) -> ReceivingInterface {
        ReceivingInterface(InterfaceId(index))
    }

    fn reads(kind: Kind) -> bool {
        kind.is::<ReceivingInterface>() || kind.is::<NextHopIndex>()
    }
}

impl Handover for RouteEnd {
    fn to_index(self) -> u32 {
        match self {
            RouteEnd::NoRoute => NO_ROUTE_INDEX,
            RouteEnd::Unreachable => UNREACHABLE_INDEX,
            RouteEnd::Prohibited => PROHIBIT_INDEX,
            RouteEnd::Dropped | RouteEnd::NotEnabled => 0,
        }
    }

    fn from_index(index: u32) -> RouteEnd {
        match index {
            NO_ROUTE_INDEX => RouteEnd::NoRoute,
            UNREACHABLE_INDEX => RouteEnd::Unreachable,
            PROHIBIT_INDEX => RouteEnd::Prohibited,
            _ => RouteEnd::Dropped,
        }
    }

    fn reads(kind: Kind) -> bool {
        kind.is::<RouteEnd>() || kind.is::<NextHopIndex>()
    }
}

impl Handover for GroupAccepted {
    #[inline(always)]
    fn to_index(self) -> u32 {
        GROUP_ACCEPTED
    }

    fn from_index(_: u32) -> GroupAccepted {
        GroupAccepted
    }
}

impl MarkedHandover for GroupAccepted {
    #[inline(always)]
    fn is_marked(index: u32) -> bool {
        index == GROUP_ACCEPTED
    }
}
