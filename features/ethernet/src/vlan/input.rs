//! `vlan-input`: which sub-interface takes a frame. One that routes gets the packet without its tags, one that
//! passes frames on gets the whole frame.

use std::sync::Arc;

use quiver_core::arc::DEVICE_INPUT;
use quiver_core::interface::InterfaceRow;
use quiver_core::node::{DROP, NodeSpec};
use quiver_core::stage::{Stage, Tally};
use quiver_core::{Context, InterfaceId, NodeId, Packet};

use super::frame::FrameTags;
use super::sub_interfaces::SubInterfaces;
use super::table::VlanTable;
use crate::input::{Port, Protocols};

quiver_core::reasons! {
    /// Why `vlan-input` drops.
    pub enum VlanDrop {
        /// Shorter than what it announces.
        Truncated = "truncated", "frame shorter than its Ethernet header and tags";
        /// Nobody takes it.
        UnknownVlan = "unknown-vlan", "VLAN tag, and no sub-interface for it";
        /// Down or gone.
        Down = "interface-down", "received on a sub-interface that is down (`set interface state IF up`)";
        /// Somebody else's.
        NotForUs = "mac-mismatch", "destination MAC is neither ours nor a group (`set interface promiscuous on IF` accepts it)";
        /// A length where the type should be.
        Llc = "llc", "802.3 length field instead of a protocol behind the tags (LLC is not routed)";
        /// Nothing in the router handles it.
        UnknownType = "unknown-ethertype", "no handler for the ethertype behind the tags";
    }
}

/// `vlan-input`, a packet's part of it.
pub struct VlanInput {
    table: Arc<VlanTable>,
    protocols: Protocols,
    /// The input node of interfaces that route.
    routed: NodeId,
}

impl VlanInput {
    /// Nobody takes the frame but the port itself.
    fn to_port(
        &self,
        tally: Tally<'_>,
        row: &InterfaceRow,
        tags: &FrameTags,
        packet: &mut Packet,
    ) -> Result<NodeId, VlanDrop> {
        if row.input != self.routed {
            return Ok(tally.next_in_arc(DEVICE_INPUT, packet.rx, packet, row.input));
        }
        if tags.outer.is_some() {
            return Err(VlanDrop::UnknownVlan);
        }
        self.route(Port::of(row), tags, packet)
    }

    fn to_sub_interface(
        &self,
        tally: Tally<'_>,
        id: InterfaceId,
        tags: &FrameTags,
        packet: &mut Packet,
    ) -> Result<NodeId, VlanDrop> {
        let counters = tally.interface_counters(id);
        counters.rx_packets.add(1);
        counters.rx_bytes.add(packet.length() as u64);
        packet.rx = id;
        let row = tally.interface(id).filter(|row| row.up).ok_or(VlanDrop::Down)?;
        let first = row.first(DEVICE_INPUT, row.input);
        if first != self.routed {
            packet.arc_restart();
            return Ok(first);
        }
        self.route(Port::of(row), tags, packet)
    }

    /// Hand the packet behind the tags to its protocol.
    #[inline]
    fn route(&self, port: Port, tags: &FrameTags, packet: &mut Packet) -> Result<NodeId, VlanDrop> {
        let Some(next) = self.protocols.of(tags.ether_type) else {
            return Err(if tags.ether_type.is_length() { VlanDrop::Llc } else { VlanDrop::UnknownType });
        };
        if !port.takes(packet) {
            return Err(VlanDrop::NotForUs);
        }
        // The headers were there a moment ago.
        if !packet.pull(tags.header_bytes) {
            return Err(VlanDrop::Truncated);
        }
        packet.l2_bytes = tags.header_bytes as u8;
        Ok(next)
    }
}

impl Stage for VlanInput {
    const NAME: &'static str = super::INPUT;
    const LOOKS_FIRST: bool = true;
    const SORTS: bool = true;
    type Reason = VlanDrop;
    type Common = ();

    fn common(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline]
    fn decide(&self, tally: Tally<'_>, (): (), packet: &mut Packet) -> Result<NodeId, VlanDrop> {
        let tags = FrameTags::read(packet.bytes()).ok_or(VlanDrop::Truncated)?;
        let row = tally.interface(packet.rx).ok_or(VlanDrop::Down)?;
        if row.is_sub_interface() {
            // It was found before, and features of its own have let the frame pass.
            return self.route(Port::of(row), &tags, packet);
        }
        match self.table.taker(packet.rx, &tags) {
            Some(id) => self.to_sub_interface(tally, id, &tags, packet),
            None => self.to_port(tally, row, &tags, packet),
        }
    }
}

pub(crate) fn spec(sub_interfaces: &SubInterfaces) -> NodeSpec {
    let table = sub_interfaces.table().clone();
    NodeSpec::stage("Finds the sub-interface that takes a frame, by its tags", move |wiring| VlanInput {
        table: table.clone(),
        protocols: Protocols::new(wiring),
        routed: wiring.node_if_built("ethernet-input").unwrap_or(DROP),
    })
    .describe(|record, names| {
        let (interface, next) = (names.interface(record.rx), names.node(record.next));
        format!("{} bytes for {interface}, to {next}", record.packet_bytes)
    })
}
