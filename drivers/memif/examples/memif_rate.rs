//! How fast frames cross memif: a generator (core 0) sends on two interfaces and receives on both;
//! a router (core 1) cross-connects them. `cargo run --release -p quiver-memif --example memif_rate
//! -- [frame bytes] [milliseconds] [runs] [router's role: master|slave] [threads|inline] [ring
//! size]`. The role `slave-zero-copy` lends the router's buffers, `master-zero-copy` lets the
//! generator lend its own. With `inline` both run on the calling thread by turns, which shows the
//! instructions without the way between two cores. Clocks are those of the time stamp counter, per
//! packet, as the router's nodes count them; the median of the runs counts: on a busy machine short
//! ones, and many.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use quiver_core::clock::Clock;
use quiver_core::control::interfaces::InterfaceSpec;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::graph::node::{Never, Node};
use quiver_core::memory::mapping::PageSize;
use quiver_core::worker::device::{Device, RxMode, RxQueue, TxQueue};
use quiver_core::{Context, Engine, Frame, InterfaceId, NodeId, NodeSpec, WorkerId};
use quiver_memif::{MemifConfig, Role};

type Outputs = Arc<[AtomicU16; 16]>;

/// Frees what comes back.
struct Sink;

impl Node for Sink {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.drain().for_each(|packet| cx.buffers.free(packet));
    }
}

/// Sends what came in by one interface out by the other.
struct CrossConnect(Outputs);

impl Node for CrossConnect {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        let outputs = &self.0;
        frame.route::<Never>(|p| Ok(NodeId(outputs[p.rx.index() % 16].load(Ordering::Relaxed))));
    }
}

/// Makes frames, for the two interfaces by turns.
struct Source {
    template: Vec<u8>,
    outputs: [NodeId; 2],
    turn: usize,
}

impl RxQueue for Source {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        let data_bytes = cx.buffers.pool().data_bytes();
        while frame.room() > 0 {
            let Some(mut packet) = cx.buffers.packet() else { break };
            if packet.set_length(self.template.len(), data_bytes) {
                packet.bytes_mut().copy_from_slice(&self.template);
            }
            if let Err(packet) = frame.push(packet) {
                cx.buffers.free(packet);
            }
        }
        self.turn ^= 1;
        Some(self.outputs[self.turn])
    }
}

struct NoDevice;

impl Device for NoDevice {
    fn kind(&self) -> &'static str {
        "source"
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

impl TxQueue for NoDevice {
    fn transmit(&mut self, _: &mut Context<'_>, _: &mut Frame) {}
}

fn engine(
    core: usize,
    buffers: usize,
    input: impl Fn() -> Box<dyn Node> + Send + Sync + 'static,
) -> Engine {
    let config = EngineConfig {
        worker_cores: vec![core],
        buffers,
        pages: PageSize::Best,
        ..EngineConfig::default()
    };
    let mut graph = GraphBuilder::new(config, Clock::tsc()).expect("graph");
    quiver_memif::declare(&mut graph);
    graph.node(NodeSpec::input("source-input", "frames made here"));
    graph.node(NodeSpec::new("ethernet-input", "what comes in", move |_| input()));
    Engine::build(graph).expect("engine")
}

fn interfaces(
    engine: &mut Engine,
    role: Role,
    zero_copy: bool,
    ring_size: u32,
) -> [InterfaceId; 2] {
    quiver_memif::add_socket(engine, 1, &format!("@quiver-memif-rate-{}", std::process::id()))
        .expect("socket");
    [0, 1].map(|id| {
        let zero_copy = zero_copy && role == Role::Slave;
        let config = MemifConfig { zero_copy, ring_size, ..MemifConfig::new(1, id, role) };
        let id = quiver_memif::create(engine, config).expect("interface");
        engine.set_admin_up(id, true).expect("up");
        id
    })
}

fn start_source(engine: &mut Engine, memif: [InterfaceId; 2], bytes: usize) {
    let spec = InterfaceSpec {
        name: "source".into(),
        device: Box::new(NoDevice),
        mac: [0; 6],
        mtu_bytes: 1500,
        input: "ethernet-input".into(),
        link_up: true,
        tx: vec![Box::new(NoDevice)],
    };
    let source = engine.create_interface(spec).expect("source");
    engine.set_admin_up(source, true).expect("up");
    let outputs = memif.map(|id| engine.interface(id).expect("memif").row().output);
    let queue = Source { template: (0..bytes).map(|i| i as u8).collect(), outputs, turn: 0 };
    engine
        .add_rx_queue(source, "source-input", Box::new(queue), RxMode::Polling, None)
        .expect("queue");
}

/// Name, clocks, packets and calls of a node since the last clear.
fn node(engine: &Engine, name: &str) -> (u64, u64, u64) {
    let id = engine.node_id(name).expect("node");
    let totals = engine.node_totals(WorkerId(0), id);
    (totals.clocks, totals.vectors, totals.calls)
}

fn main() {
    let argument = |n: usize, default: u64| {
        std::env::args().nth(n).map_or(default, |a| a.parse().expect("a number"))
    };
    let (bytes, window_ms, runs) = (argument(1, 64), argument(2, 1000), argument(3, 5));
    let form = std::env::args().nth(4).unwrap_or("master".into());
    let (router_is_slave, zero_copy) = (form.starts_with("slave"), form.ends_with("zero-copy"));
    let ring_size = argument(6, 1024) as u32;
    let buffers = 16_384.max(8 * ring_size as usize);
    let (ours, theirs) =
        if router_is_slave { (Role::Slave, Role::Master) } else { (Role::Master, Role::Slave) };
    let outputs = Outputs::default();
    let mut generator = engine(0, buffers, || Box::new(Sink));
    let mut router = engine(1, buffers, {
        let outputs = outputs.clone();
        move || Box::new(CrossConnect(outputs.clone()))
    });
    let (m, s) = if router_is_slave {
        let s = interfaces(&mut generator, theirs, zero_copy, ring_size);
        (interfaces(&mut router, ours, zero_copy, ring_size), s)
    } else {
        let m = interfaces(&mut router, ours, zero_copy, ring_size);
        (m, interfaces(&mut generator, theirs, zero_copy, ring_size))
    };
    for (from, to) in [(0, 1), (1, 0)] {
        let output = router.interface(m[to]).expect("memif").row().output;
        outputs[m[from].index()].store(output.0, Ordering::Relaxed);
    }
    let inline = std::env::args().nth(5).as_deref() == Some("inline");
    if !inline {
        router.start_threads().expect("threads");
        generator.start_threads().expect("threads");
    }
    let turn = |time: Duration, router: &mut Engine, generator: &mut Engine| {
        let start = Instant::now();
        while start.elapsed() < time {
            router.turn(u64::from(!inline));
            generator.turn(u64::from(!inline));
            for _ in 0..if inline { 100 } else { 0 } {
                generator.step();
                router.step();
            }
        }
        start.elapsed().as_secs_f64()
    };
    turn(Duration::from_millis(200), &mut router, &mut generator);
    start_source(&mut generator, s, bytes as usize);
    turn(Duration::from_millis(300), &mut router, &mut generator);
    let names = [
        "memif-input",
        "ethernet-input",
        "memif1/0-output",
        "memif1/1-output",
        "memif1/0-tx",
        "memif1/1-tx",
    ];
    let mut all = Vec::new();
    for _ in 0..runs {
        router.clear_runtime();
        router.clear_interfaces();
        generator.clear_interfaces();
        let elapsed = turn(Duration::from_millis(window_ms), &mut router, &mut generator);
        let back: u64 = s.iter().map(|id| generator.interface_totals(*id).rx_packets).sum();
        let lost: u64 = m.iter().map(|id| router.interface_totals(*id).tx_errors).sum();
        let (_, packets, calls) = node(&router, "memif-input");
        let per_packet = |name: &&str| node(&router, name).0 as f64 / packets.max(1) as f64;
        let clocks: Vec<f64> = names.iter().map(per_packet).collect();
        all.push((
            clocks.iter().sum::<f64>(),
            clocks,
            back as f64 / elapsed / 1e6,
            packets as f64 / calls.max(1) as f64,
            lost,
        ));
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (name, place) in [("lower quartile", all.len() / 4), ("median", all.len() / 2)] {
        let (sum, clocks, mpps, vector, lost) = &all[place];
        println!(
            "{name}: {sum:.1} clocks per packet (in {:.1}, cross-connect {:.1}, output {:.1}, out \
             {:.1}), {vector:.0} packets a call, {mpps:.1} Mpps back, {lost} lost",
            clocks[0],
            clocks[1],
            clocks[2] + clocks[3],
            clocks[4] + clocks[5],
        );
    }
}
