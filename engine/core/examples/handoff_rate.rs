//! What handing packets to another worker costs: clocks per packet at both ends, and packets a
//! second. `cargo run --release -p quiver-core --example handoff_rate -- [from-core to-core
//! seconds]`

use std::time::{Duration, Instant};

use quiver_core::clock::Clock;
use quiver_core::control::interfaces::InterfaceSpec;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::graph::builtin::HANDOFF;
use quiver_core::worker::device::{Device, RxMode, RxQueue, TxQueue};
use quiver_core::{Context, Engine, Frame, Node, NodeId, NodeSpec, WorkerId};

const FRAME_BYTES: usize = 64;
const VECTOR: usize = 256;

/// Makes empty packets, and hands them to the other worker or gives them back itself.
struct Source {
    other: Option<WorkerId>,
    sink: NodeId,
}

impl RxQueue for Source {
    fn receive(&mut self, cx: &mut Context<'_>, _: &mut Frame) -> Option<NodeId> {
        for _ in 0..VECTOR {
            let Some(mut packet) = cx.buffers.packet() else { break };
            if !packet.set_length(FRAME_BYTES, cx.buffers.pool().data_bytes()) {
                cx.buffers.free(packet);
                break;
            }
            match self.other {
                None => cx.buffers.free(packet),
                Some(other) => {
                    if let Err(packet) = cx.hand_off(packet, other, self.sink) {
                        cx.buffers.free(packet);
                        break;
                    }
                }
            }
        }
        None
    }
}

/// Gives packets back.
struct Sink;

impl Node for Sink {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.drain().for_each(|packet| cx.buffers.free(packet));
    }
}

/// Sends nothing.
struct Nowhere;

impl Device for Nowhere {
    fn kind(&self) -> &'static str {
        "handoff"
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

impl TxQueue for Nowhere {
    fn transmit(&mut self, _: &mut Context<'_>, _: &mut Frame) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<usize> =
        std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let (from, to) = (words.first().copied().unwrap_or(0), words.get(1).copied().unwrap_or(1));
    let seconds = words.get(2).copied().unwrap_or(1) as u64;
    let config = EngineConfig { worker_cores: vec![from, to], ..EngineConfig::default() };
    let mut builder = GraphBuilder::new(config, Clock::tsc())?;
    builder.node(NodeSpec::input("source", "packets to hand over"));
    let mut engine = Engine::build(builder)?;
    let spec = NodeSpec::input("handoff-sink", "where they end").sink();
    let sink = engine.add_node(spec, vec![Box::new(Sink), Box::new(Sink)])?;
    let interface = engine.create_interface(InterfaceSpec {
        name: "handoff".to_owned(),
        device: Box::new(Nowhere),
        mac: [0; 6],
        mtu_bytes: 1500,
        input: "source".to_owned(),
        link_up: true,
        tx: vec![Box::new(Nowhere), Box::new(Nowhere)],
    })?;
    let source = Source { other: Some(WorkerId(1)), sink };
    engine.add_rx_queue(
        interface,
        "source",
        Box::new(source),
        RxMode::Polling,
        Some(WorkerId(0)),
    )?;
    engine.start_threads()?;
    let before = engine.node_totals(WorkerId(1), HANDOFF);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        engine.turn(20);
    }
    let elapsed = began.elapsed().as_secs_f64();
    let taken = engine.node_totals(WorkerId(1), HANDOFF);
    let vectors = taken.vectors - before.vectors;
    println!(
        "{:.1} Mpps handed over; {:.1} clocks a packet where they arrive, {:.0} packets at a time",
        vectors as f64 / elapsed / 1e6,
        (taken.clocks - before.clocks) as f64 / vectors.max(1) as f64,
        vectors as f64 / (taken.calls - before.calls).max(1) as f64
    );
    Ok(())
}
