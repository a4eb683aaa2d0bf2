//! `ip6-input`: is this an IPv6 packet that may go on (RFC 8200 §3, RFC 4291 §2)?

use quiver_core::graph::arc::ArcId;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_wire::Header;
use quiver_wire::ip6::{self, Ip6Bad, Ip6Header, address};

use crate::nodes;

quiver_core::reasons! {
    /// Why `ip6-input` drops.
    pub enum Ip6InputDrop {
        /// The header is wrong.
        Header(Ip6Bad);
        /// RFC 4291 §2.5.2: only to find out about an address, which is asked of a group.
        SourceIsUnspecified = "source-unspecified",
            "IPv6 source is the unspecified address, and the destination is no group";
        /// As for IPv4.
        UnicastInGroupFrame = "unicast-in-l2-group",
            "unicast IPv6 destination in a multicast frame";
    }
}

/// `ip6-input`, a packet's part of it. Leaves the packet exactly as long as its header says.
pub struct Ip6Input {
    arc: ArcId,
    lookup: NodeId,
}

#[cold]
#[inline(never)]
fn take_slow_path(packet: &mut Packet) -> Result<(), Ip6InputDrop> {
    let available = packet.length();
    let header = ip6::validate(packet.bytes(), available)?;
    let total = usize::from(header.payload_length()) + Ip6Header::LEN;
    if !address::is_multicast(header.destination()) {
        if address::is_unspecified(header.source()) {
            return Err(Ip6InputDrop::SourceIsUnspecified);
        }
        if packet.has(PacketFlags::L2_GROUP) {
            return Err(Ip6InputDrop::UnicastInGroupFrame);
        }
    }
    packet.trim(total);
    Ok(())
}

impl Stage for Ip6Input {
    const NAME: &'static str = nodes::ip6::INPUT;
    const LOOKS_FIRST: bool = true;
    type Reason = Ip6InputDrop;
    /// The first feature of the arc, or the look-up.
    type InterfaceState = NodeId;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> NodeId {
        cx.interface(rx).map_or(self.lookup, |row| row.first(self.arc, self.lookup))
    }

    #[inline(always)]
    fn decide(
        &self,
        _: StageContext<'_>,
        first: NodeId,
        packet: &mut Packet,
    ) -> Result<NodeId, Ip6InputDrop> {
        packet.arc_restart();
        let available = packet.segment_length();
        let header = Ip6Header::overlay(packet.bytes()).ok_or(Ip6Bad::Truncated)?;
        let plain = ip6::is_plain(header, available);
        let exact = usize::from(header.payload_length()) + Ip6Header::LEN == available;
        if !(plain & exact & packet.has_none(PacketFlags::CHAINED.union(PacketFlags::L2_GROUP))) {
            take_slow_path(packet)?;
        }
        Ok(first)
    }

    fn arrived(&self, cx: &Context<'_>, rx: InterfaceId, packets: u64) {
        cx.interface_counters(rx).ip6.add(packets);
    }
}

/// The declaration. `arc` is `ip6-unicast`.
pub fn spec(arc: ArcId) -> NodeSpec {
    NodeSpec::stage("Checks IPv6 headers", move |wiring| Ip6Input {
        arc,
        lookup: wiring.node(nodes::ip6::LOOKUP),
    })
    .takes_offloads()
    .describe(|record, names| {
        format!("{}, to {}", crate::ip6::describe(record.bytes()), names.node(record.next))
    })
}
