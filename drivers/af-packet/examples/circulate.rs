//! How many packets a worker sends and receives by packet sockets: 200 of them circulate between
//! the two ends of a veth, both of which are host interfaces. Needs root.
//!
//! `cargo run --release -p quiver-af-packet --example circulate`

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use quiver_af_packet::{HostConfig, create_host_interface};
use quiver_control::Registry;
use quiver_core::clock::Clock;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::graph::node::Never;
use quiver_core::{Context, Engine, Frame, InterfaceId, Node, NodeId, NodeSpec, WorkerId};
use quiver_linux::lab::{run, unique};

/// Sends each packet back out of the interface that it came in by.
struct Back(Arc<Vec<AtomicU16>>);

impl Node for Back {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|p| Ok::<_, Never>(NodeId(self.0[p.rx.index()].load(Ordering::Relaxed))));
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (a, b) = (unique("c"), unique("c"));
    run("ip", &["link", "add", &a, "type", "veth", "peer", "name", &b]);
    let result = measure(&[&a, &b]);
    run("ip", &["link", "del", &a]);
    result
}

fn measure(ends: &[&String; 2]) -> Result<(), Box<dyn std::error::Error>> {
    let outputs: Arc<Vec<AtomicU16>> = Arc::new((0..8).map(|_| AtomicU16::new(0)).collect());
    let config = EngineConfig { worker_cores: vec![1], ..EngineConfig::default() };
    let mut registry = Registry::new(GraphBuilder::new(config, Clock::tsc())?);
    let shared = outputs.clone();
    let back = NodeSpec::new("ethernet-input", "sends packets back", move |_| {
        Box::new(Back(shared.clone()))
    });
    registry.graph.node(back.takes_offloads());
    quiver_af_packet::register(&mut registry);
    let (mut engine, _) = registry.build()?;
    let mut ids = Vec::new();
    for end in ends {
        let config = HostConfig { linux_name: end.to_string(), rx_queues: 1, tx_queues: None };
        let id = create_host_interface(&mut engine, config)?;
        engine.set_admin_up(id, true)?;
        let output = engine.node_id(&format!("host-{end}-output")).ok_or("no output")?;
        outputs[id.index()].store(output.0, Ordering::Relaxed);
        ids.push((id, output));
    }
    engine.start_threads()?;
    wait(&mut engine, Duration::from_millis(500));
    for size in [60, 512, 1514] {
        let (_, output) = ids[0];
        engine.call(WorkerId(0), move |worker| {
            let frame = vec![0x5a; size];
            (0..200).all(|_| worker.inject(&frame, output, InterfaceId::NONE, InterfaceId::NONE))
        })?;
        wait(&mut engine, Duration::from_millis(200));
        let received = |engine: &Engine| -> u64 {
            ids.iter().map(|(id, _)| engine.interface_totals(*id).rx_packets).sum()
        };
        let (before, start) = (received(&engine), Instant::now());
        wait(&mut engine, Duration::from_secs(2));
        let rate = (received(&engine) - before) as f64 / start.elapsed().as_secs_f64() / 1e6;
        println!("{size:>5} B: {rate:.2} million packets a second received and sent, one worker");
        for (id, _) in &ids {
            engine.set_admin_up(*id, false)?;
        }
        wait(&mut engine, Duration::from_millis(100));
        for (id, _) in &ids {
            engine.set_admin_up(*id, true)?;
        }
    }
    Ok(())
}

fn wait(engine: &mut Engine, time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        engine.turn(10);
    }
}
