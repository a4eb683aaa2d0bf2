//! `ip4-full-reassembly-feature` and its kin: where a feature stands in the arc of an interface,
//! fragments go to the node that keeps them, and all others go on. A stage: packets that are no
//! fragments pay one look.

use std::sync::Arc;

use quiver_core::graph::arc::ArcId;
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::{Never, NodeSpec};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::nodes;
use quiver_forwarding::requests::ReassemblyRequest;
use quiver_wire::ip6::extension::{Walk, is_walked};
use quiver_wire::{Header, Ip4Header, Ip6Header};

use crate::tables::Kind;

/// One of the four: virtual or in full, IPv6 or IPv4.
pub struct SortFragments<const VIRTUAL: bool, const SIX: bool> {
    arc: ArcId,
    own: NodeId,
    arc_end: NodeId,
    keeper: NodeId,
    /// Which forwarding table addresses are meant in.
    tables: Arc<IpTables>,
}

impl<const VIRTUAL: bool, const SIX: bool> Stage for SortFragments<VIRTUAL, SIX> {
    const NAME: &'static str = Kind::of(VIRTUAL, SIX).feature();
    type Reason = Never;
    /// What stands behind, and what fragments from this interface are marked with.
    type InterfaceState = (Behind, ReassemblyRequest);

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> (Behind, ReassemblyRequest) {
        let tables = &self.tables.interfaces;
        let scope = if SIX { tables.table6(rx) } else { tables.table4(rx) };
        let request = ReassemblyRequest { is_local: false, scope };
        (cx.behind(self.arc, rx, self.own, self.arc_end), request)
    }

    #[inline(always)]
    fn decide(
        &self,
        _: StageContext<'_>,
        interface_state: (Behind, ReassemblyRequest),
        packet: &mut Packet,
    ) -> Result<NodeId, Never> {
        let (behind, request) = interface_state;
        let is_fragment = if SIX {
            let header = Ip6Header::overlay(packet.bytes());
            header.is_some_and(|header| is_walked(header.next_header()))
                && is_ip6_fragment(packet, VIRTUAL)
        } else {
            Ip4Header::overlay(packet.bytes()).is_some_and(Ip4Header::is_fragment)
        };
        if is_fragment {
            packet.hand_over(request);
            return Ok(self.keeper);
        }
        Ok(behind.take(packet))
    }
}

/// Is there a fragment header? What is a packet of its own nevertheless (RFC 6946) is of interest
/// only to who takes the header off.
#[cold]
#[inline(never)]
fn is_ip6_fragment(packet: &Packet, is_virtual: bool) -> bool {
    let Some((header, behind)) = Ip6Header::split(packet.bytes()) else { return false };
    let mut headers = Walk::new(header.next_header(), behind).flatten();
    let fragment = headers.find_map(|extension| extension.fragment());
    fragment.is_some_and(|fragment| !(is_virtual && fragment.is_atomic()))
}

/// The declaration.
pub(crate) fn spec<const VIRTUAL: bool, const SIX: bool>(arc: ArcId) -> NodeSpec {
    let kind = Kind::of(VIRTUAL, SIX);
    NodeSpec::stage("Sends fragments to reassembly", move |wiring| SortFragments::<VIRTUAL, SIX> {
        arc,
        own: wiring.id,
        arc_end: wiring.node(if SIX { nodes::ip6::LOOKUP } else { nodes::ip4::LOOKUP }),
        keeper: wiring.node(kind.node()),
        tables: wiring.shared(),
    })
    .takes_offloads()
    .describe(move |record, names| {
        let next = names.node(record.next);
        let what = if next == kind.node() { "a fragment" } else { "no fragment" };
        format!("{what}, to {next}")
    })
}
