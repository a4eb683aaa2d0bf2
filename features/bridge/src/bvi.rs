//! The bridge's own routed interface: frames to it leave the bridge by `bvi-input` and are received
//! on the loopback; what the router sends by the loopback comes into the bridge by `bvi-output`.

use quiver_core::graph::arc::DEVICE_INPUT;
use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};

use crate::nodes;

quiver_core::reasons! {
    /// Why frames to the routed interface die.
    pub enum BviDrop {
        /// Down.
        Down = "interface-down", "the bridge's routed interface is down (`set interface state IF \
            up`)";
        /// Round and round.
        Loop = "loop", "the packet came by bridges' routed interfaces too often: routes send it \
            in a circle";
    }
}

/// All packets came for one interface, in [`Packet::tx`]: that one.
fn common_tx(frame: &Frame) -> Option<InterfaceId> {
    let first = frame.packets().first()?.tx;
    let differing = frame.packets().iter().fold(0, |all, packet| all | (packet.tx.0 ^ first.0));
    (differing == 0).then_some(first)
}

/// Where packets go that come for a routed interface; `None` when it is down or gone.
fn way(cx: &Context<'_>, id: InterfaceId) -> Option<NodeId> {
    let row = cx.interface(id).filter(|row| row.up)?;
    Some(row.first(DEVICE_INPUT, row.input))
}

/// Received on the routed interface, as from a device.
#[inline(always)]
fn receive(id: InterfaceId, way: Option<NodeId>, packet: &mut Packet) -> Result<NodeId, BviDrop> {
    packet.rx = id;
    packet.l2_bytes = 0;
    packet.clear(PacketFlags::L2_GROUP);
    packet.arc_restart();
    if !packet.turn() {
        return Err(BviDrop::Loop);
    }
    way.ok_or(BviDrop::Down)
}

fn count(cx: &Context<'_>, id: InterfaceId, packets: u64, bytes: u64) {
    let counters = cx.interface_counters(id);
    counters.rx_packets.add(packets);
    counters.rx_bytes.add(bytes);
}

/// `bvi-input`.
struct BviInput;

impl Node for BviInput {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        match common_tx(frame) {
            Some(id) => {
                let (way, mut packets, mut bytes) = (way(cx, id), 0, 0);
                frame.route(|packet| {
                    let on_wire = packet.on_wire();
                    (packets, bytes) = (packets + on_wire.0, bytes + on_wire.1);
                    receive(id, way, packet)
                });
                count(cx, id, packets, bytes);
                frame.set_same_rx(true);
            }
            None => {
                frame.set_same_rx(false);
                frame.route(|packet| {
                    let id = packet.tx;
                    let (packets, bytes) = packet.on_wire();
                    count(cx, id, packets, bytes);
                    receive(id, way(cx, id), packet)
                });
            }
        }
    }
}

/// `bvi-output`, a feature at `interface-output`, behind all others.
struct BviOutput {
    bridge: NodeId,
}

impl Node for BviOutput {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        let same = common_tx(frame).is_some();
        for packet in frame.packets_mut() {
            packet.rx = packet.tx;
            packet.clear(PacketFlags::L2_GROUP);
        }
        frame.set_same_rx(same);
        frame.set_all_next(self.bridge);
    }
}

pub(crate) fn input_spec() -> NodeSpec {
    NodeSpec::new(
        nodes::BVI_INPUT,
        "Frames to a bridge's routed interface are received on it",
        |_| Box::new(BviInput),
    )
    .takes_offloads()
    .reasons::<BviDrop>()
    .describe(|record, names| {
        let (rx, frame) = (names.interface(record.rx), crate::description::frame(record));
        format!(
            "{frame}: received on {rx}, the bridge's routed interface; to {}",
            names.node(record.next)
        )
    })
}

pub(crate) fn output_spec() -> NodeSpec {
    NodeSpec::new(
        nodes::BVI_OUTPUT,
        "What is sent by a bridge's routed interface comes into the bridge",
        |wiring| Box::new(BviOutput { bridge: wiring.node(nodes::INPUT) }),
    )
    .takes_offloads()
    .describe(|record, names| {
        let (rx, frame) = (names.interface(record.rx), crate::description::frame(record));
        format!("{frame}: comes into the bridge from {rx}")
    })
}
