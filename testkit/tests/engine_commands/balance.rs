//! Whatever is traced, captured, created and sent: no buffer is lost.

use proptest::prelude::*;
use quiver_control::Registry;
use quiver_core::graph::node::NodeSpec;
use quiver_core::{Context, Frame, Node};
use quiver_testkit::{Router, Settings};

use crate::toy::{frame, register};

/// A node that forgets what it is given.
struct Forgetful;

impl Node for Forgetful {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.drain().for_each(std::mem::forget);
    }
}

fn register_forgetful(registry: &mut Registry) {
    registry.graph.node(NodeSpec::new("ethernet-input", "Forgets", |_| Box::new(Forgetful)).sink());
}

#[test]
#[should_panic(expected = "buffers are lost")]
fn a_lost_buffer_fails_the_test_that_lost_it() {
    let mut router = Router::new(&[register_forgetful]);
    router.interface("e0");
    router.send("e0", &frame(0, 60));
}

#[test]
fn buffers_that_a_feature_rightly_keeps_are_not_lost() {
    let mut router = Router::new(&[register_forgetful]);
    router.interface("e0");
    router.send("e0", &frame(0, 3000));
    assert_eq!(router.buffers_in_use(), 2);
    router.expect_held(2);
}

/// One thing that an operator or a peer does.
#[derive(Clone, Debug)]
enum Act {
    Line(String),
    Frame { interface: u8, to: u8, bytes: usize },
    Pass,
    Stall(bool),
}

fn line() -> impl Strategy<Value = String> {
    let file = std::env::temp_dir().join(format!("quiver-balance-{}.pcap", std::process::id()));
    let file = file.display().to_string();
    prop_oneof![
        (1..200u32).prop_map(|n| format!("trace add test-input {n}")),
        Just("trace add handoff-input 5 verbose".to_owned()),
        Just("show trace".to_owned()),
        Just("clear trace".to_owned()),
        Just("trace filter include error-drop".to_owned()),
        (0..8u8, 1..50u32).prop_map(move |(points, max)| {
            let mut line = format!("pcap trace max {max} file {file}");
            for (bit, point) in ["rx", "tx", "drop"].iter().enumerate() {
                if points >> bit & 1 == 1 {
                    line += &format!(" {point}");
                }
            }
            line
        }),
        Just("pcap trace off".to_owned()),
        Just("create loopback interface".to_owned()),
        (0..3u8).prop_map(|n| format!("set interface state loop{n} up")),
        (0..3u8).prop_map(|n| format!("delete loopback interface intfc loop{n}")),
        (0..2u8, any::<bool>()).prop_map(|(n, up)| format!(
            "set interface state e{n} {}",
            if up { "up" } else { "down" }
        )),
        (0..2u8, 0..2u8).prop_map(|(n, w)| format!("set interface rx-placement e{n} worker {w}")),
        Just("clear runtime".to_owned()),
        Just("show runtime verbose".to_owned()),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => line().prop_map(Act::Line),
        6 => (0..2u8, 0..6u8, prop_oneof![0..100usize, 2000..2100usize, Just(9000)])
            .prop_map(|(interface, to, bytes)| Act::Frame { interface, to, bytes }),
        2 => Just(Act::Pass),
        1 => any::<bool>().prop_map(Act::Stall),
    ]
}

proptest! {
    #[test]
    fn no_sequence_of_traces_and_captures_loses_a_buffer(
        acts in prop::collection::vec(act(), 1..60)
    ) {
        // So few buffers that the pool runs empty too.
        let settings = Settings { workers: 2, buffers: 256, ..Settings::default() };
        let mut router = Router::with(settings, &[register]);
        router.interface("e0");
        router.interface("e1");
        for act in acts {
            match act {
                // A refusal is an answer too.
                Act::Line(line) => drop(router.execute(&line)),
                Act::Frame { interface, to, bytes } => {
                    router.inject(if interface == 0 { "e0" } else { "e1" }, &frame(to, bytes));
                }
                Act::Pass => drop(router.step()),
                Act::Stall(stalled) => router.stall("e1", stalled),
            }
        }
        router.run();
        prop_assert_eq!(router.buffers_in_use(), 0);
    }
}
