//! A toy: the first byte of a frame is the number of the interface that it goes out of.

use quiver_control::Registry;
use quiver_core::graph::arc::{DEVICE_INPUT, FeatureSpec, Phase};
use quiver_core::graph::node::{Never, NodeSpec};
use quiver_core::{Context, Frame, InterfaceId, Node, NodeId};
use quiver_testkit::Router;

quiver_core::reasons! {
    /// Why `ethernet-input` drops.
    enum InputDrop {
        Truncated = "truncated", "the frame is shorter than its header";
        Long = info "long", "frames of more than one buffer";
    }
}

quiver_core::reasons! {
    /// Why `toy-forward` drops.
    enum ForwardDrop {
        NoInterface = "no-interface", "there is no interface of this number";
    }
}

struct Input(NodeId);

impl Node for Input {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let long = frame.packets().iter().filter(|packet| packet.is_chained()).count();
        cx.count(InputDrop::Long, long as u64);
        frame.route(
            |packet| if packet.length() < 14 { Err(InputDrop::Truncated) } else { Ok(self.0) },
        );
    }
}

struct Forward;

impl Node for Forward {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| {
            packet.tx = InterfaceId(u32::from(packet.bytes()[0]));
            cx.interface(packet.tx).map(|row| row.output).ok_or(ForwardDrop::NoInterface)
        });
    }
}

/// Stands in the arc `device-input` and lets everything pass.
struct Watch(NodeId);

impl Node for Watch {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| {
            Ok::<_, Never>(cx.next_in_arc(DEVICE_INPUT, packet.rx, packet, self.0))
        });
    }
}

pub fn register(registry: &mut Registry) {
    registry.feature("toy", "the first byte says where a frame goes");
    registry.graph.node(
        NodeSpec::new("ethernet-input", "Looks at the length", |wiring| {
            Box::new(Input(wiring.node("toy-forward")))
        })
        .reasons::<InputDrop>(),
    );
    registry.graph.node(
        NodeSpec::new("toy-forward", "Looks at the first byte", |_| Box::new(Forward))
            .reasons::<ForwardDrop>()
            .describe(|record, names| {
                format!("the first byte says {}", names.interface(record.tx))
            }),
    );
    registry.graph.node(NodeSpec::new("toy-watch", "Lets everything pass", |wiring| {
        Box::new(Watch(wiring.node("ethernet-input")))
    }));
    let (arc, node) = ("device-input", "toy-watch");
    registry.graph.feature(FeatureSpec { arc, node, phase: Phase::Filter, after: &[] });
}

/// A frame of so many bytes that goes to this interface.
pub fn frame(to: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| if i == 0 { to } else { i as u8 }).collect()
}

/// A router with e0 (number 0) and e1 (number 1), both up.
pub fn router() -> Router {
    let mut router = Router::new(&[register]);
    router.interface("e0");
    router.interface("e1");
    router
}
