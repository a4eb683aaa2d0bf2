//! `mpls-output`: a labelled packet leaves as it is, or with more labels in front.

use std::sync::Arc;

use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::adjacency::AdjacencyKind;
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::nodes;

use crate::push::{Behind, push};
use crate::reasons::MplsDrop;
use crate::stack::{Entry, top};
use crate::too_big;

/// `mpls-output`, a packet's part of it. The adjacency is in the packet's index.
struct Output {
    tables: Arc<IpTables>,
    too_big: NodeId,
}

impl Stage for Output {
    const NAME: &'static str = nodes::mpls::OUTPUT;
    const SENDS: bool = true;
    type Reason = MplsDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn decide(&self, _: StageContext<'_>, (): (), packet: &mut Packet) -> Result<NodeId, MplsDrop> {
        let adjacency = self.tables.adjacencies.of(packet);
        let entry = Entry(top(packet).ok_or(MplsDrop::Truncated)?);
        if packet.length() > usize::from(adjacency.mtu_bytes) {
            return Ok(self.too_big);
        }
        if adjacency.kind == AdjacencyKind::Drop {
            return Err(MplsDrop::RouteDrops);
        }
        packet.l2_bytes = 0;
        let (class, ttl) = (entry.class(), entry.ttl());
        let behind = Behind { is_last: false, class, ttl, is_swap: false };
        push(&self.tables.adjacencies, adjacency, behind, packet)
    }
}

/// The declaration.
pub(crate) fn spec() -> NodeSpec {
    let help = "Puts labels, or none, and the neighbour's header in front of labelled packets";
    NodeSpec::stage(help, |wiring| {
        wiring.node(nodes::mpls::RESOLVE_NEIGHBOR);
        Output { tables: wiring.shared(), too_big: wiring.node(too_big::NODE) }
    })
    .describe(|record, names| {
        let (tx, bytes) = (names.interface(record.tx), record.packet_bytes);
        format!("{bytes} bytes out of {tx}, to {}", names.node(record.next))
    })
}
