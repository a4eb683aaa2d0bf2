//! Nodes that do something at a time, without a packet.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quiver_core::clock::Clock;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::memory::mapping::PageSize;
use quiver_core::worker::Worker;
use quiver_core::{Context, Engine, Frame, Node, NodeSpec, WorkerId};

const PERIOD_NS: u64 = 1_000_000;

/// Is called every millisecond until `left` is 0, and sends a packet each time.
struct Metronome {
    called: Arc<AtomicU64>,
    left: u64,
}

impl Node for Metronome {
    fn run(&mut self, _: &mut Context<'_>, _: &mut Frame) {}

    fn tick(&mut self, cx: &mut Context<'_>) -> Option<u64> {
        self.called.fetch_add(1, Ordering::Relaxed);
        self.left -= 1;
        if let Some(packet) = cx.buffers.packet() {
            cx.emit(packet, quiver_core::graph::builtin::DONE);
        }
        (self.left > 0).then_some(cx.now_ns + PERIOD_NS)
    }
}

fn router(clock: Clock, called: &Arc<AtomicU64>) -> Engine {
    let config = EngineConfig {
        worker_cores: vec![0],
        buffers: 256,
        pages: PageSize::Small,
        ..EngineConfig::default()
    };
    let mut builder = GraphBuilder::new(config, clock).unwrap();
    let called = called.clone();
    builder.node(NodeSpec::new("metronome", "is called at times", move |_| {
        Box::new(Metronome { called: called.clone(), left: 5 })
    }));
    Engine::build(builder).unwrap()
}

fn begin(engine: &mut Engine, due_ns: u64) {
    let id = engine.node_id("metronome").unwrap();
    engine.post(WorkerId(0), move |worker: &mut Worker| assert!(worker.tick_at(id, due_ns)));
}

#[test]
fn a_node_is_called_when_its_time_is_come_and_as_often_as_it_says() {
    let (clock, time) = Clock::manual();
    let called = Arc::new(AtomicU64::new(0));
    let mut engine = router(clock, &called);
    let now_ns = engine.now_ns();
    begin(&mut engine, now_ns + 2 * PERIOD_NS);
    let mut calls = Vec::new();
    for _ in 0..8 {
        engine.step();
        engine.step();
        calls.push(called.load(Ordering::Relaxed));
        time.fetch_add(PERIOD_NS, Ordering::Relaxed);
    }
    assert_eq!(calls, [0, 0, 1, 2, 3, 4, 5, 5]);
}

#[test]
fn a_worker_that_sleeps_wakes_for_a_node_whose_time_is_come() {
    let called = Arc::new(AtomicU64::new(0));
    let mut engine = router(Clock::tsc(), &called);
    engine.start_threads().unwrap();
    let due_ns = engine.now_ns() + PERIOD_NS;
    begin(&mut engine, due_ns);
    let begun = Instant::now();
    while called.load(Ordering::Relaxed) < 5 {
        assert!(begun.elapsed() < Duration::from_secs(120), "the node was not called");
        engine.tick();
        std::thread::sleep(Duration::from_millis(1));
    }
    let sleeps = engine.worker_counters(WorkerId(0)).unwrap().sleeps.get();
    assert!(sleeps > 0, "the worker slept between the calls");
}
