//! `mpls-input`: may this labelled packet go on (RFC 3032 §2.4.2)?

use std::sync::Arc;

use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::mpls::describe;
use quiver_forwarding::nodes;

use crate::icmp_error::{self, TIME_EXCEEDED};
use crate::interfaces::{MplsInterfaces, NOT_ENABLED};
use crate::reasons::MplsDrop;
use crate::stack::{Entry, top};

/// The node.
pub(crate) const NODE: &str = nodes::mpls::INPUT;

/// Checks the top label of a packet.
pub struct MplsInput {
    interfaces: Arc<MplsInterfaces>,
    lookup: NodeId,
    error: NodeId,
}

impl MplsInput {
    #[cold]
    #[inline(never)]
    fn refuse(&self, is_enabled: bool, packet: &mut Packet) -> Result<NodeId, MplsDrop> {
        if !is_enabled {
            return Err(MplsDrop::NotEnabled);
        }
        let entry = Entry(top(packet).ok_or(MplsDrop::Truncated)?);
        if packet.has(PacketFlags::L2_GROUP) {
            return Err(MplsDrop::Group);
        }
        if entry.ttl() <= 1 {
            packet.hand_over(TIME_EXCEEDED);
            return Ok(self.error);
        }
        Ok(self.lookup)
    }
}

impl Stage for MplsInput {
    const NAME: &'static str = NODE;
    const LOOKS_FIRST: bool = true;
    type Reason = MplsDrop;
    /// Does the interface take labelled packets?
    type InterfaceState = bool;

    fn interface_state(&self, _: &Context<'_>, rx: InterfaceId) -> bool {
        self.interfaces.table(rx) != NOT_ENABLED
    }

    #[inline(always)]
    fn decide(
        &self,
        _: StageContext<'_>,
        is_enabled: bool,
        packet: &mut Packet,
    ) -> Result<NodeId, MplsDrop> {
        packet.arc_restart();
        let entry = top(packet).unwrap_or(0);
        let is_alive = entry as u8 > 1;
        if is_enabled & is_alive & packet.has_none(PacketFlags::L2_GROUP) {
            return Ok(self.lookup);
        }
        self.refuse(is_enabled, packet)
    }
}

/// The declaration.
pub(crate) fn spec() -> NodeSpec {
    NodeSpec::stage("Checks the top label of packets", |wiring| MplsInput {
        interfaces: wiring.shared(),
        lookup: wiring.node(nodes::mpls::LOOKUP),
        error: wiring.node(icmp_error::NODE),
    })
    .describe(|record, names| {
        format!("{}, to {}", describe(record.bytes()), names.node(record.next))
    })
}
