//! Whether a packet with other headers fits where it will leave, asked while it still has those that it came with.

use quiver_core::node::Wiring;
use quiver_core::stage::Tally;
use quiver_core::{NodeId, Packet};
use quiver_tables::GroupId;

use super::decapsulate::Came;
use crate::endpoint::reasons::{Bad, LocalSidDrop};
use crate::endpoint::ways::Ways;

/// The nodes whose index is an adjacency.
pub(super) struct Onward([NodeId; 3]);

impl Onward {
    pub fn new(wiring: &Wiring<'_>) -> Onward {
        Onward(["ip6-rewrite", "ip6-confirm-neighbor", "ip6-discover-neighbor"].map(|name| wiring.node(name)))
    }

    /// Will `length` bytes fit where a flow of the group leaves? If not, the packet's sender is told, or the new
    /// packet is to be fragmented.
    #[cold]
    #[inline(never)]
    pub fn fits(
        &self,
        ways: &Ways,
        tally: Tally<'_>,
        (group, hash): (GroupId, u32),
        came: &Came,
        length: usize,
        packet: &Packet,
    ) -> Result<bool, Bad> {
        let hop = ways.tables.groups.resolve(group, hash);
        let mtu_bytes = usize::from(ways.tables.adjacencies.get(hop.index).mtu_bytes);
        if !self.0.contains(&hop.next) || length <= mtu_bytes {
            return Ok(true);
        }
        let room = (mtu_bytes + packet.length()).saturating_sub(length);
        if let Some(request) = came.too_big(packet.length(), room) {
            return Err(Bad::Complain(request, LocalSidDrop::TooBig));
        }
        tally.count(LocalSidDrop::Fragmented, 1);
        Ok(false)
    }
}
