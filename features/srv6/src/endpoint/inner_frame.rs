//! SIDs whose packets have an Ethernet frame inside (RFC 8986 §4.9 to §4.12).

use quiver_core::graph::stage::StageContext;
use quiver_core::{NodeId, Packet};

use super::inner_packet::{ETHERNET, Inside, parse_inside};
use super::next_nodes::NextNodes;
use super::reasons::{Bad, LocalSidDrop};
use super::sid_entry::SidEntryRef;

/// Where inner frames go. A method and no closure, so that it is inlined on the short path although
/// the long one has it, too.
pub(super) trait SendsInner {
    /// Send the frame on that begins at byte `at` of the packet.
    fn send_inner(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        at: usize,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad>;
}

/// Send the frame inside on; what has none inside is taken as at any SID.
#[inline(always)]
pub(super) fn decide(
    behavior: &impl SendsInner,
    next_nodes: &NextNodes,
    context: StageContext<'_>,
    packet: &mut Packet,
) -> Result<NodeId, LocalSidDrop> {
    let (Inside { protocol, at }, came) = (parse_inside(packet), packet.on_wire());
    if (at == 0) | (protocol != ETHERNET) {
        return slow_path(behavior, next_nodes, context, packet);
    }
    let line = next_nodes.entry(packet);
    match behavior.send_inner(context, line, at, packet) {
        Ok(next) => Ok(next),
        bad => next_nodes.resolve(context, line.0, bad, came, packet),
    }
}

#[cold]
#[inline(never)]
fn slow_path(
    behavior: &impl SendsInner,
    next_nodes: &NextNodes,
    context: StageContext<'_>,
    packet: &mut Packet,
) -> Result<NodeId, LocalSidDrop> {
    let (line, came) = (next_nodes.entry(packet), packet.on_wire());
    let outcome =
        next_nodes.last(context, packet).and_then(|upper| match upper.is_inner(ETHERNET) {
            true => behavior.send_inner(context, line, upper.at, packet),
            false => next_nodes.upper(context, line, upper, packet),
        });
    next_nodes.resolve(context, line.0, outcome, came, packet)
}
