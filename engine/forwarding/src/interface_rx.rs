//! `ip4-interface-rx`, `ip6-interface-rx`: a route that says "as if it had been received on that
//! interface": the packet meets that interface's features, and is looked up in its table.

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};

use crate::fib::Family;
use crate::handover::ReceivingInterface;
use crate::nodes;

quiver_core::reasons! {
    /// Why a packet is not received once more.
    pub enum InterfaceRxDrop {
        /// Round and round.
        Loop = "interface-loop", "routes receive the packet on interface after interface without \
            end";
        /// Gone or down.
        InterfaceDown = "interface-down", "the route's interface is down or gone";
    }
}

struct InterfaceRx {
    input: NodeId,
}

impl InterfaceRx {
    fn decide(&self, cx: &Context<'_>, packet: &mut Packet) -> Result<NodeId, InterfaceRxDrop> {
        if !packet.turn() {
            return Err(InterfaceRxDrop::Loop);
        }
        let ReceivingInterface(on) = packet.handed_over();
        if !cx.interface(on).is_some_and(|row| row.up) {
            return Err(InterfaceRxDrop::InterfaceDown);
        }
        packet.rx = on;
        Ok(self.input)
    }
}

impl Node for InterfaceRx {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
        frame.look_at_rx();
    }
}

/// The declaration of one of the two.
pub fn spec(family: Family) -> NodeSpec {
    let (name, input, words): (_, _, fn(&[u8]) -> String) = match family {
        Family::Ip4 => (nodes::ip4::INTERFACE_RX, nodes::ip4::INPUT, crate::ip4::describe),
        Family::Ip6 => (nodes::ip6::INTERFACE_RX, nodes::ip6::INPUT, crate::ip6::describe),
    };
    NodeSpec::new(
        name,
        "Receives a packet once more, on the interface that its route names",
        move |wiring| Box::new(InterfaceRx { input: wiring.node(input) }),
    )
    .takes_offloads()
    .reasons::<InterfaceRxDrop>()
    .describe(move |record, names| {
        format!("{}, as if received on {}", words(record.bytes()), names.interface(record.rx))
    })
}
