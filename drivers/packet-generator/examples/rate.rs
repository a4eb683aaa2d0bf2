//! How fast streams are: packets per second and clocks per packet on one core, into a sink.
//!
//! `cargo run --release -p quiver-packet-generator --example rate`

use std::time::Instant;

use quiver_control::Registry;
use quiver_core::clock::Clock;
use quiver_core::cpu::clocks;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::graph::node::Never;
use quiver_core::{Context, Engine, Frame, Node, NodeSpec};
use quiver_packet_generator::{
    ChecksumField, Edit, Order, StreamConfig, add_stream, create_interface, delete_stream,
    enable_stream,
};

/// Stands in for the real one; nothing goes there.
struct Nowhere;

impl Node for Nowhere {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|_| Ok::<_, Never>(quiver_core::graph::node::DROP));
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = GraphBuilder::new(EngineConfig::default(), Clock::tsc())?;
    let mut registry = Registry::new(graph);
    registry.graph.node(NodeSpec::new("ethernet-input", "stands in", |_| Box::new(Nowhere)));
    quiver_packet_generator::register(&mut registry);
    let (mut engine, _) = registry.build()?;
    let id = create_interface(&mut engine, 0)?;
    engine.set_admin_up(id, true)?;
    println!("{:<44} {:>8} {:>14}", "stream", "Mpps", "clocks/packet");
    let checksum = |offset, is_udp| ChecksumField { offset, is_udp };
    let edit = |sums: &[ChecksumField]| {
        Edit::u32(30, 0x0a00_0000u32, 2_000_000, Order::Random, sums.to_vec())
    };
    let cases: [(&str, usize, usize, Vec<Edit>); 7] = [
        ("64 B, one packet", 64, 1, vec![]),
        ("64 B, 1,024 packets", 64, 1024, vec![]),
        ("64 B, 65,536 packets", 64, 65_536, vec![]),
        ("64 B, one packet, a random address", 64, 1, vec![edit(&[])]),
        (
            "64 B, one packet, a random address, 2 sums",
            64,
            1,
            vec![edit(&[checksum(24, false), checksum(40, true)])],
        ),
        ("512 B, one packet", 512, 1, vec![]),
        ("1,518 B, one packet", 1518, 1, vec![]),
    ];
    for (name, size, count, edits) in cases {
        let mut config = StreamConfig::new("x", vec![vec![1; size]; count]);
        config.edits = edits;
        config.node = Some("pg0-tx".into());
        add_stream(&mut engine, id, config)?;
        enable_stream(&mut engine, "x")?;
        let (mpps, per_packet) = (0..7)
            .map(|_| measure(&mut engine))
            .fold((0.0, f64::MAX), |a: (f64, f64), b| (a.0.max(b.0), a.1.min(b.1)));
        delete_stream(&mut engine, "x")?;
        println!("{name:<44} {mpps:>8.1} {per_packet:>14.1}");
    }
    Ok(())
}

/// The best of several short runs is the one that nothing disturbed.
fn measure(engine: &mut Engine) -> (f64, f64) {
    let (start, start_clocks, mut packets) = (Instant::now(), clocks(), 0);
    for _ in 0..20_000 {
        packets += engine.step();
    }
    (
        packets as f64 / start.elapsed().as_secs_f64() / 1e6,
        (clocks() - start_clocks) as f64 / packets as f64,
    )
}
