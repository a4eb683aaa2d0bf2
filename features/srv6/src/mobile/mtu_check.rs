//! Whether a packet with other headers fits where it will leave, asked while it still has those
//! that it came with.

use quiver_core::graph::node::Wiring;
use quiver_core::graph::stage::StageContext;
use quiver_core::{NodeId, Packet};
use quiver_forwarding::nodes;
use quiver_tables::GroupId;
use quiver_wire::ip6::MTU_MIN;

use super::decapsulate::Came;
use crate::endpoint::next_nodes::NextNodes;
use crate::endpoint::reasons::{Bad, LocalSidDrop};

/// The nodes whose index is an adjacency.
pub(super) struct MtuCheck([NodeId; 4]);

impl MtuCheck {
    pub fn new(wiring: &Wiring<'_>) -> MtuCheck {
        MtuCheck(
            [
                nodes::ip6::REWRITE,
                nodes::ip6::CONFIRM_NEIGHBOR,
                nodes::ip6::DISCOVER_NEIGHBOR,
                nodes::ip6::ADJACENCY_COUNTER,
            ]
            .map(|name| wiring.node(name)),
        )
    }

    /// Do `length` bytes surely fit? Every link carries as many as they are, or there is one way,
    /// which does.
    #[inline(always)]
    pub fn fits_plainly(&self, next_nodes: &NextNodes, group: GroupId, length: usize) -> bool {
        length <= MTU_MIN || self.fits_one_way(next_nodes, group, length)
    }

    #[inline(always)]
    fn fits_one_way(&self, next_nodes: &NextNodes, group: GroupId, length: usize) -> bool {
        let [rewrite, ..] = self.0;
        let word = next_nodes.tables.groups.word(group);
        let hop = word.hop();
        let mtu_bytes = usize::from(next_nodes.tables.adjacencies.get(hop.index).mtu_bytes);
        word.is_single() & (hop.next == rewrite) & (length <= mtu_bytes)
    }

    /// Will `length` bytes fit where a flow of the group leaves? If not, the packet's sender is
    /// told, or the new packet is to be fragmented.
    #[cold]
    #[inline(never)]
    pub fn fits(
        &self,
        next_nodes: &NextNodes,
        context: StageContext<'_>,
        (group, hash): (GroupId, u32),
        came: &Came,
        length: usize,
        packet: &Packet,
    ) -> Result<bool, Bad> {
        let hop = next_nodes.tables.groups.resolve(group, hash);
        let mtu_bytes = usize::from(next_nodes.tables.adjacencies.get(hop.index).mtu_bytes);
        if !self.0.contains(&hop.next) || length <= mtu_bytes {
            return Ok(true);
        }
        let room = (mtu_bytes + packet.length()).saturating_sub(length);
        if let Some(request) = came.too_big(packet.length(), room) {
            return Err(Bad::Complain(request, LocalSidDrop::TooBig));
        }
        context.count(LocalSidDrop::Fragmented, 1);
        Ok(false)
    }
}
