//! The nodes that every graph has: where packets die, where interfaces send.

use crate::block::OutputKernel;
use crate::graph::context::Context;
use crate::graph::drop_reason::DropReason;
use crate::graph::frame::Frame;
use crate::graph::node::{Node, NodeSpec, Offloads, Reason};
use crate::ids::{InterfaceId, NodeId};
use crate::worker::device::TxQueue;

/// Counts packets that came from another worker: `handoff-input`.
pub const HANDOFF: NodeId = NodeId(1);
/// Stands in for nodes that are not there: `null-node`.
pub const NULL: NodeId = NodeId(2);
/// Packets that the router itself has dealt with end here, and are no drops: `packet-done`.
pub const DONE: NodeId = NodeId(4);

crate::reasons! {
    /// What happens to packets that have no node to go to.
    pub enum NullDrop {
        /// The receiving interface is down or gone.
        InterfaceDown = "interface-down", "received on an interface that is down (`set interface state IF up`)";
        /// The next node is gone.
        Removed = "node-removed", "the interface or feature was removed while the packet was under way";
        /// It circulated.
        TooManyVisits = "too-many-visits", "the packet has visited 256 nodes, or copies of it were copied too often: the configuration sends it round in a circle (`trace add` shows by which nodes)";
        /// No node finishes it.
        Unfinished = "unfinished", "a super-frame, or a packet without its checksum, in front of a node that does not take such, in a program without a node that finishes them (`gso`)";
    }
}

crate::reasons! {
    /// Why an interface does not send.
    pub enum OutputDrop {
        /// Down.
        Down = "interface-down", "the interface is down (`set interface state IF up`)";
    }
}

crate::reasons! {
    /// Why an interface that shares its output with others does not send.
    pub enum SharedOutputDrop {
        /// Down.
        Down = "interface-down",
            "the interface is down (`set interface state IF up`), or the interface that it is a \
             part of";
        /// Gone while the packet was under way.
        Gone = "interface-removed", "the interface was deleted while the packet was under way";
    }
}

crate::reasons! {
    /// Why a device does not take a packet.
    pub enum TxDrop {
        /// Full.
        RingFull = "tx-ring-full", "the device or its peer does not take packets fast enough";
        /// Longer than the device takes.
        TooLong = "tx-too-long", "the frame is longer than the device's own MTU allows";
        /// Down or gone.
        Refused = "tx-refused", "the device is down, gone, or does not take such a frame";
    }
}

/// `error-drop`: counts the reason where the packet died, and frees it.
struct ErrorDrop;

impl Node for ErrorDrop {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        for packet in frame.drain() {
            let DropReason { node, number } = packet.handed_over();
            cx.counters.reason(node, number).add(1);
            cx.counters.interface(packet.rx).drops.add(1);
            cx.buffers.free(packet);
        }
    }
}

/// `packet-done`: frees what the router itself has dealt with.
struct Done;

impl Node for Done {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        for packet in frame.drain() {
            cx.buffers.free(packet);
        }
    }
}

/// `NAME-tx`: gives packets to the device's queue.
struct DeviceTx {
    interface: InterfaceId,
    queue: Box<dyn TxQueue>,
}

impl Node for DeviceTx {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        cx.tx = self.interface;
        self.queue.transmit(cx, frame);
        if !frame.is_empty() && !self.queue.passes_on() {
            cx.interface_counters(self.interface).tx_errors.add(frame.len() as u64);
            frame.route(|_| Err(TxDrop::RingFull));
        }
    }

    fn sends_on(&self) -> Option<InterfaceId> {
        Some(self.interface)
    }
}

/// The nodes with fixed numbers, in the order of their numbers.
pub(crate) fn fixed_nodes() -> Vec<NodeSpec> {
    vec![
        NodeSpec::new("error-drop", "Counts why packets die, and frees them", |_| {
            Box::new(ErrorDrop)
        })
        .sink()
        .takes_offloads()
        .describe(|record, names| {
            let reason: DropReason = record.handed_over();
            format!("dropped by {}: {}", names.node(reason.node), names.reason(reason))
        }),
        NodeSpec::input("handoff-input", "Packets that another worker has handed over"),
        NodeSpec::input("null-node", "Stands in for nodes that are not there")
            .reasons::<NullDrop>(),
        crate::control::sub_interface::output_node(),
        NodeSpec::new("packet-done", "Frees packets that the router itself has dealt with", |_| {
            Box::new(Done)
        })
        .takes_offloads(),
        crate::control::tunnel_interface::output_node(),
        crate::control::tunnel_interface::finished_output_node(),
    ]
}

/// The declaration of an output that many interfaces share.
pub(crate) fn shared_output_node(name: &str, help: &'static str) -> NodeSpec {
    NodeSpec::kernel(name, help, |_| Box::new(OutputKernel::Shared))
        .reasons::<SharedOutputDrop>()
        .describe(|record, names| {
            let (interface, next) = (names.interface(record.tx), names.node(record.next));
            format!("{interface}: {} bytes out, to {next}", record.packet_bytes)
        })
}

/// The declaration of `NAME-output`.
pub(crate) fn output_node(name: &str, interface: InterfaceId) -> NodeSpec {
    let tx_name = format!("{name}-tx");
    NodeSpec::kernel(format!("{name}-output"), "Counts what the interface sends", move |wiring| {
        Box::new(OutputKernel::Interface(interface, wiring.node(&tx_name)))
    })
    .reasons::<OutputDrop>()
    .takes_offloads()
    .describe(|record, names| {
        format!("{}: {} bytes out", names.interface(record.tx), record.packet_bytes)
    })
}

/// The declaration of `NAME-tx`; its instances are made by [`tx_instance`].
pub(crate) fn tx_node(name: &str, queues: &[Box<dyn TxQueue>]) -> NodeSpec {
    let mut spec = NodeSpec::input(format!("{name}-tx"), "Gives packets to the device");
    spec.kind = crate::graph::node::NodeKind::Sink;
    spec.reasons = queues.first().map_or(TxDrop::ALL, |queue| queue.reasons());
    let passes_on = queues.iter().any(|queue| queue.passes_on());
    if queues.iter().all(|queue| queue.takes_offloads()) {
        spec.offloads = if passes_on { Offloads::TAKES_ALL } else { Offloads::DEVICE_TAKES };
    }
    if passes_on {
        spec.kind = crate::graph::node::NodeKind::Internal;
        return spec.describe(|record, names| {
            let (bytes, tx) = (record.packet_bytes, names.interface(record.tx));
            format!("{bytes} bytes sent on {tx} go to {}", names.node(record.next))
        });
    }
    spec.describe(|record, names| {
        format!("sent {} bytes on {}", record.packet_bytes, names.interface(record.tx))
    })
}

/// A worker's instance of `NAME-tx`.
pub(crate) fn tx_instance(interface: InterfaceId, queue: Box<dyn TxQueue>) -> Box<dyn Node> {
    Box::new(DeviceTx { interface, queue })
}
