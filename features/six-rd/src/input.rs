//! Decapsulation: an IPv6 packet in an IPv4 packet for the router itself, which no configured
//! tunnel is for, is received by the interface of the 6rd tunnel that ends there.

use std::sync::Arc;

use quiver_core::graph::arc::ArcId;
use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::decapsulated::{self, InnerBad};
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily, IpTables};
use quiver_wire::{Header, Ip4Header};

use crate::tables::Tables;

/// The node's name.
pub(crate) const NODE: &str = "6rd-input";

quiver_core::reasons! {
    /// Why packets from 6rd tunnels die.
    pub enum SixRdInputDrop {
        /// Cannot be behind the nodes before.
        Truncated = "truncated", "the packet is shorter than its headers say";
        /// Nobody's.
        NoTunnel = "no-tunnel", "no 6rd tunnel ends at this address, and no other one is for it";
        /// Down.
        InterfaceDown = "interface-down", "the interface of the tunnel is down";
        /// An inner packet.
        InnerWrong = "inner-packet-wrong", "the inner packet is no IPv6 packet, or cut off";
        /// RFC 6040 §4.2.
        Congestion = "congestion-not-carried",
            "the outer header says congestion, and the inner packet cannot carry it on";
        /// RFC 5969 §12.
        Spoofed = "spoofed-source",
            "the outer source is not the address that the inner source names";
        /// Round and round.
        Loop = "loop", "the packet came out of tunnels too often: they lead back into one another";
    }
}

impl From<InnerBad> for SixRdInputDrop {
    fn from(bad: InnerBad) -> SixRdInputDrop {
        match bad {
            InnerBad::Truncated => SixRdInputDrop::Truncated,
            InnerBad::Wrong => SixRdInputDrop::InnerWrong,
            InnerBad::Congestion => SixRdInputDrop::Congestion,
        }
    }
}

/// The node.
pub struct SixRdInput {
    ends: Arc<Tables>,
    tables: Arc<IpTables>,
    arc: ArcId,
    look_up: NodeId,
}

impl Stage for SixRdInput {
    const NAME: &'static str = NODE;
    const SORTS: bool = true;
    type Reason = SixRdInputDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, SixRdInputDrop> {
        let outer = Ip4Header::overlay(packet.bytes()).ok_or(SixRdInputDrop::Truncated)?;
        let (at, outer_source) = (outer.header_len(), outer.source_bits());
        let table = Ip4::table_of(&self.tables.interfaces, packet.rx);
        let pass = context.pass();
        let interface =
            self.ends.at(table, outer.destination_bits(), pass).ok_or(SixRdInputDrop::NoTunnel)?;
        let tunnel = self.ends.tunnel(interface, pass).ok_or(SixRdInputDrop::NoTunnel)?;
        let inner = packet.bytes().get(at..).ok_or(SixRdInputDrop::Truncated)?;
        if tunnel.checks_source {
            let source = Ip6::source(inner).ok_or(SixRdInputDrop::InnerWrong)?;
            if !tunnel.domain.is_source(source, outer_source) {
                return Err(SixRdInputDrop::Spoofed);
            }
        }
        if decapsulated::ip6_fast::<Ip4>(packet, at).is_none() {
            decapsulated::ip6::<Ip4>(packet, at)?;
        }
        let row = context
            .interface(interface)
            .filter(|row| row.up)
            .ok_or(SixRdInputDrop::InterfaceDown)?;
        if !packet.turn() {
            return Err(SixRdInputDrop::Loop);
        }
        let counters = context.interface_counters(interface);
        let (packets, bytes) = packet.on_wire();
        counters.rx_packets.add(packets);
        counters.rx_bytes.add(bytes);
        counters.ip6.add(packets);
        packet.rx = interface;
        packet.hand_over_nothing();
        packet.clear(PacketFlags::L2_GROUP.union(PacketFlags::NOTED));
        packet.arc_restart();
        Ok(row.first(self.arc, self.look_up))
    }
}

/// The declaration. `arc` is `ip6-unicast`.
pub(crate) fn spec(ends: &Arc<Tables>, arc: ArcId) -> NodeSpec {
    let ends = ends.clone();
    NodeSpec::stage("Takes the outer header of a 6rd tunnel off", move |wiring: &Wiring<'_>| {
        SixRdInput {
            ends: ends.clone(),
            tables: wiring.shared(),
            arc,
            look_up: wiring.node("ip6-lookup"),
        }
    })
    .takes_offloads()
    .describe(|record, names| {
        let (from, bytes) = (names.interface(record.rx), record.packet_bytes);
        format!("{bytes} bytes from {from}, to {}", names.node(record.next))
    })
}
