//! `vlan-input`: which sub-interface takes a frame. One that routes gets the packet without its
//! tags, one that passes frames on gets the whole frame.

use std::sync::Arc;

use quiver_control::ETHERNET_INPUT;
use quiver_core::graph::arc::DEVICE_INPUT;
use quiver_core::graph::interface::InterfaceRow;
use quiver_core::graph::node::{DROP, NodeSpec};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};

use super::frame::{FrameTags, TagShape};
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
        Down = "interface-down", "received on a sub-interface that is down (`set interface state \
            IF up`)";
        /// Somebody else's.
        NotForUs = "mac-mismatch", "destination MAC is neither ours nor a group (`set interface \
            promiscuous on IF` accepts it)";
        /// A length where the type should be.
        Llc = "llc", "802.3 length field instead of a protocol behind the tags (LLC is not routed)";
        /// Nothing in the router handles it.
        UnknownType = "unknown-ethertype", "no handler for the ethertype behind the tags";
    }
}

/// What becomes of frames of one port that have the same tags and type.
#[derive(Clone, Copy)]
struct Verdict {
    /// Whose they are: a sub-interface, or the port itself.
    by: InterfaceId,
    fate: Fate,
}

#[derive(Clone, Copy)]
enum Fate {
    /// They go on without their tags, if they are for this address.
    Route { address: Port, next: NodeId },
    /// They go on as they are.
    PassOn { next: NodeId },
    /// They walk on along the features of the port, on to its own input node; those that have
    /// walked along all of them already, to `ethernet-input` and here again, die.
    WalkOn { input: NodeId, end: VlanDrop },
    /// They die.
    Die(VlanDrop),
}

/// What is known of a vector when all its packets are like the first.
#[derive(Clone, Copy)]
pub struct Expected {
    shape: TagShape,
    verdict: Verdict,
}

impl Expected {
    /// Nothing is.
    const NOTHING: Expected = Expected {
        shape: TagShape::OF_NONE,
        verdict: Verdict { by: InterfaceId::NONE, fate: Fate::Die(VlanDrop::UnknownVlan) },
    };
}

/// `vlan-input`, a packet's part of it.
pub struct VlanInput {
    table: Arc<VlanTable>,
    protocols: Protocols,
    /// The input node of interfaces that route.
    routed: NodeId,
    own: NodeId,
}

impl VlanInput {
    #[inline(never)]
    fn classify(&self, context: StageContext<'_>, rx: InterfaceId, tags: &FrameTags) -> Verdict {
        let Some(row) = context.interface(rx) else {
            return Verdict { by: rx, fate: Fate::Die(VlanDrop::Down) };
        };
        if row.is_sub_interface() {
            // It was found before, and features of its own have let the frame pass.
            return Verdict { by: rx, fate: self.route(row, tags) };
        }
        let Some(by) = self.table.taker(rx, tags) else {
            let fate = match tags.outer {
                outer if row.input != self.routed || !self.is_last_of(row) => Fate::WalkOn {
                    input: row.input,
                    end: if outer.is_some() {
                        VlanDrop::UnknownVlan
                    } else {
                        VlanDrop::UnknownType
                    },
                },
                Some(_) => Fate::Die(VlanDrop::UnknownVlan),
                None => self.route(row, tags),
            };
            return Verdict { by: rx, fate };
        };
        let fate = match context.interface(by).filter(|row| row.up) {
            None => Fate::Die(VlanDrop::Down),
            Some(row) => match row.first(DEVICE_INPUT, row.input) {
                first if first != self.routed => Fate::PassOn { next: first },
                _ => self.route(row, tags),
            },
        };
        Verdict { by, fate }
    }

    /// Does no feature of the port's own stand behind this node?
    fn is_last_of(&self, row: &InterfaceRow) -> bool {
        row.features(DEVICE_INPUT).last().is_none_or(|last| last == self.own)
    }

    /// The way to the protocol behind the tags.
    fn route(&self, row: &InterfaceRow, tags: &FrameTags) -> Fate {
        match self.protocols.of(tags.ether_type) {
            Some(next) => Fate::Route { address: Port::of(row), next },
            None if let Some(next) = row.host => Fate::Route { address: Port::of(row), next },
            None if tags.ether_type.is_length() => Fate::Die(VlanDrop::Llc),
            None => Fate::Die(VlanDrop::UnknownType),
        }
    }

    #[inline(always)]
    fn carry_out(
        context: StageContext<'_>,
        verdict: Verdict,
        header_bytes: usize,
        packet: &mut Packet,
    ) -> Result<NodeId, VlanDrop> {
        packet.rx = verdict.by;
        match verdict.fate {
            Fate::Route { address, next } => {
                if !address.takes(context, packet) {
                    return Err(VlanDrop::NotForUs);
                }
                // The headers were there a moment ago.
                if !packet.pull(header_bytes) {
                    return Err(VlanDrop::Truncated);
                }
                packet.l2_bytes = header_bytes as u8;
                Ok(next)
            }
            Fate::PassOn { next } => {
                packet.arc_restart();
                Ok(next)
            }
            Fate::WalkOn { input, .. }
                if context.is_feature_of(DEVICE_INPUT, packet.rx, packet) =>
            {
                Ok(context.next_in_arc(DEVICE_INPUT, packet.rx, packet, input))
            }
            Fate::WalkOn { end, .. } => Err(end),
            Fate::Die(reason) => Err(reason),
        }
    }

    /// A packet that is not like the others, which are taken and counted by `expected`.
    #[inline(never)]
    fn take_slow_path(
        &self,
        context: StageContext<'_>,
        expected: InterfaceId,
        packet: &mut Packet,
    ) -> Result<NodeId, VlanDrop> {
        let tags = FrameTags::read(packet.bytes()).ok_or(VlanDrop::Truncated)?;
        let verdict = self.classify(context, packet.rx, &tags);
        if verdict.by != packet.rx && verdict.by != expected {
            let counters = context.interface_counters(verdict.by);
            let (packets, bytes) = packet.on_wire();
            counters.rx_packets.add(packets);
            counters.rx_bytes.add(bytes);
        }
        Self::carry_out(context, verdict, tags.header_bytes, packet)
    }
}

impl Stage for VlanInput {
    const NAME: &'static str = super::INPUT;
    const LOOKS_FIRST: bool = true;
    const SORTS: bool = true;
    type Reason = VlanDrop;
    type InterfaceState = Expected;

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) -> Expected {
        Expected::NOTHING
    }

    /// All like the first, as far as a look at two more tells.
    fn expect(
        &self,
        cx: &Context<'_>,
        rx: InterfaceId,
        nothing: Expected,
        first: &Packet,
    ) -> (Expected, InterfaceId) {
        let Some(tags) = FrameTags::read(first.bytes()) else { return (nothing, rx) };
        let shape = TagShape::of(first.bytes(), &tags);
        let verdict = self.classify(StageContext::new(cx), rx, &tags);
        (Expected { shape, verdict }, verdict.by)
    }

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        expected: Expected,
        packet: &mut Packet,
    ) -> Result<NodeId, VlanDrop> {
        if expected.shape.fits(packet.bytes()) {
            return Self::carry_out(
                context,
                expected.verdict,
                expected.shape.header_bytes(),
                packet,
            );
        }
        self.take_slow_path(context, expected.verdict.by, packet)
    }
}

pub(crate) fn spec(sub_interfaces: &SubInterfaces) -> NodeSpec {
    let table = sub_interfaces.table().clone();
    NodeSpec::stage("Finds the sub-interface that takes a frame, by its tags", move |wiring| {
        VlanInput {
            table: table.clone(),
            protocols: Protocols::new(wiring),
            routed: wiring.node_if_built(ETHERNET_INPUT).unwrap_or(DROP),
            own: wiring.id,
        }
    })
    .takes_offloads()
    .describe(|record, names| {
        let (interface, next) = (names.interface(record.rx), names.node(record.next));
        format!("{} bytes for {interface}, to {next}", record.packet_bytes)
    })
}
