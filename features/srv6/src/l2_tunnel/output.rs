//! `sr-pl-l2-tunnel`: what a layer 2 tunnel sends goes by its policy for one station, or by one for
//! many: that of the split-horizon group that the frame came from, or that of all others.

use std::sync::Arc;

use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::epoch::PublishedSlots;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::flow::kept_frame_hash;
use quiver_forwarding::ip::IpTables;
use quiver_tables::GroupId;
use quiver_tables::mac::Flooded;

use crate::headend::{FRAME_BYTES_MIN, FRAME_NODES, HeadendDrop};

/// The node.
pub(super) const NODE: &str = "sr-pl-l2-tunnel";

/// The policies of a tunnel as workers read them.
#[derive(Debug, Default)]
pub(super) struct NextNodes {
    /// For frames to one station.
    pub unicast: Option<GroupId>,
    /// For frames to many.
    pub flood: Flood,
    /// For frames to many that came by a port of a split-horizon group, in order.
    pub by_group: Box<[(u8, Flood)]>,
}

/// What is done with frames to many.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Flood {
    /// As with frames to one station.
    #[default]
    AsUnicast,
    /// They go by this policy.
    By(GroupId),
    /// They are not for this tunnel.
    Off,
}

/// The policies of all tunnels, by interface.
pub(super) type Published = PublishedSlots<NextNodes>;

impl NextNodes {
    /// The policy of a frame; refused is one that there is none for.
    #[inline(always)]
    fn of(&self, packet: &Packet) -> Result<GroupId, HeadendDrop> {
        let to_group = packet.bytes().first().is_some_and(|first| first & 1 != 0);
        let flood = match packet.handed_over_if() {
            Some(Flooded { from_group }) => self.flood_from(from_group),
            None if to_group => self.flood,
            None => Flood::AsUnicast,
        };
        match flood {
            Flood::By(group) => Ok(group),
            Flood::AsUnicast => self.unicast.ok_or(HeadendDrop::TunnelUnset),
            Flood::Off => Err(HeadendDrop::NotFlooded),
        }
    }

    fn flood_from(&self, group: u8) -> Flood {
        let found = self.by_group.binary_search_by_key(&group, |(known, _)| *known).ok();
        found.and_then(|place| self.by_group.get(place)).map_or(self.flood, |(_, flood)| *flood)
    }
}

/// `sr-pl-l2-tunnel`, a packet's part of it.
pub struct TunnelL2 {
    next_nodes: Arc<Published>,
    tables: Arc<IpTables>,
    nodes: [NodeId; 2],
}

impl Stage for TunnelL2 {
    const NAME: &'static str = NODE;
    type Reason = HeadendDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, HeadendDrop> {
        let next_nodes = self
            .next_nodes
            .read(packet.tx.index(), context.pass())
            .ok_or(HeadendDrop::TunnelUnset)?;
        if packet.segment_length() < FRAME_BYTES_MIN {
            return Err(HeadendDrop::Truncated);
        }
        let word = self.tables.groups.word(next_nodes.of(packet)?);
        let hop = match word.is_single() {
            true => word.hop(),
            false => self.tables.groups.choose(word, kept_frame_hash(packet)),
        };
        if !self.nodes.contains(&hop.next) {
            return Err(HeadendDrop::NoPolicy);
        }
        Ok(hop.route(packet))
    }
}

/// The declaration of the node.
pub(super) fn spec(next_nodes: &Arc<Published>) -> NodeSpec {
    let next_nodes = next_nodes.clone();
    NodeSpec::stage("Finds the policy of a layer 2 tunnel that a frame goes by", move |wiring| {
        TunnelL2 {
            next_nodes: next_nodes.clone(),
            tables: wiring.shared(),
            nodes: FRAME_NODES.map(|name| wiring.node(name)),
        }
    })
    .takes_offloads()
    .describe(|record, names| {
        let (tunnel, bytes) = (names.interface(record.tx), record.packet_bytes);
        format!("{bytes} bytes by {tunnel}, to {}", names.node(record.next))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_to_many_go_by_the_policy_of_the_group_that_they_came_from() {
        let by_group = vec![(3, Flood::By(GroupId(33))), (7, Flood::Off), (9, Flood::AsUnicast)]
            .into_boxed_slice();
        let next_nodes =
            NextNodes { unicast: Some(GroupId(1)), flood: Flood::By(GroupId(2)), by_group };
        let told = |group| match next_nodes.flood_from(group) {
            Flood::By(group) => group.0,
            Flood::AsUnicast => 1,
            Flood::Off => 0,
        };
        assert_eq!([0, 3, 7, 9, 255].map(told), [2, 33, 0, 1, 2]);
    }
}
