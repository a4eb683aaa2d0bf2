//! `mpls-interface-rx`, `mpls-l2-rx`: the last label goes, and the packet or the frame behind it is
//! received on the interface that the route names.

use std::sync::Arc;

use quiver_core::graph::arc::DEVICE_INPUT;
use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::handover::ReceivingInterface;
use quiver_forwarding::nodes;
use quiver_wire::mpls::ENTRY_BYTES;
use quiver_wire::{EthernetHeader, Header};

use crate::reasons::MplsDrop;
use crate::stack::{Entry, top, version};
use crate::tunnel::{CONTROL_WORD_BYTES, PublishedEnds};

/// Take the last label off a packet whose route names an interface that is up.
fn receive(cx: &Context<'_>, packet: &mut Packet) -> Result<quiver_core::InterfaceId, MplsDrop> {
    if !packet.turn() {
        return Err(MplsDrop::Loop);
    }
    let ReceivingInterface(on) = packet.handed_over();
    let entry = Entry(top(packet).ok_or(MplsDrop::Truncated)?);
    if !entry.is_bottom() {
        return Err(MplsDrop::UnknownPayload);
    }
    if !cx.interface(on).is_some_and(|row| row.up) {
        return Err(MplsDrop::InterfaceDown);
    }
    if !packet.pull(ENTRY_BYTES) {
        return Err(MplsDrop::Truncated);
    }
    (packet.hash, packet.l2_bytes) = (0, 0);
    packet.rx = on;
    let counters = cx.interface_counters(on);
    let (packets, bytes) = packet.on_wire();
    counters.rx_packets.add(packets);
    counters.rx_bytes.add(bytes);
    Ok(on)
}

struct PacketRx {
    inputs: [NodeId; 2],
}

impl Node for PacketRx {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| {
            receive(cx, packet)?;
            match version(packet.bytes()) {
                4 => Ok(self.inputs[0]),
                6 => Ok(self.inputs[1]),
                _ => Err(MplsDrop::UnknownPayload),
            }
        });
        frame.look_at_rx();
    }
}

/// The declaration of `mpls-interface-rx`.
pub(crate) fn spec_of_packets() -> NodeSpec {
    NodeSpec::new(
        nodes::mpls::INTERFACE_RX,
        "Takes the last label off, and receives the packet on another interface",
        |wiring| {
            let inputs = [nodes::ip4::INPUT, nodes::ip6::INPUT].map(|name| wiring.node(name));
            Box::new(PacketRx { inputs })
        },
    )
    .reasons::<MplsDrop>()
    .describe(describe)
}

struct FrameRx {
    tunnels: Arc<PublishedEnds>,
}

impl Node for FrameRx {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| {
            let on = receive(cx, packet)?;
            let ends = self.tunnels.read(on.index(), cx.pass);
            if ends.is_some_and(|ends| ends.control_word) && !packet.pull(CONTROL_WORD_BYTES) {
                return Err(MplsDrop::Truncated);
            }
            if packet.segment_length() < EthernetHeader::LEN {
                return Err(MplsDrop::BadPayload);
            }
            packet.clear(PacketFlags::L2_GROUP);
            packet.arc_restart();
            let row = cx.interface(on).ok_or(MplsDrop::InterfaceDown)?;
            Ok(row.first(DEVICE_INPUT, row.input))
        });
        frame.look_at_rx();
    }
}

/// The declaration of `mpls-l2-rx`.
pub(crate) fn spec_of_frames() -> NodeSpec {
    NodeSpec::new(
        nodes::mpls::FRAME_RX,
        "Takes the last label off, and receives the frame behind it",
        |wiring| {
            for name in ["ethernet-input", "l2-input", "l2-xconnect"] {
                wiring.node_if_built(name); // an edge, for `show graph`
            }
            Box::new(FrameRx { tunnels: wiring.shared() })
        },
    )
    .reasons::<MplsDrop>()
    .describe(describe)
}

fn describe(
    record: &quiver_core::graph::trace::TraceRecord,
    names: &dyn quiver_core::graph::node::Names,
) -> String {
    let (rx, bytes) = (names.interface(record.rx), record.packet_bytes);
    format!("{bytes} bytes, received on {rx}, to {}", names.node(record.next))
}
