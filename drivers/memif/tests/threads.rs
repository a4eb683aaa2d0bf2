//! Workers in threads of their own: sleeping and waking, and connections that end under load.

use crate::router;

use std::time::{Duration, Instant};

use quiver_core::clock::Clock;
use quiver_core::control::interfaces::InterfaceError;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::graph::node::Node;
use quiver_core::memory::mapping::PageSize;
use quiver_core::worker::Worker;
use quiver_core::worker::device::RxMode;
use quiver_core::{Context, Engine, Frame, InterfaceId, NodeSpec, WorkerId};
use quiver_memif::{MemifConfig, MemifError, Role};
use router::{frame, socket};

const PATIENCE: Duration = Duration::from_secs(120);

struct Sink;

impl Node for Sink {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.drain().for_each(|packet| cx.buffers.free(packet));
    }
}

fn engine(workers: usize) -> Engine {
    let config = EngineConfig {
        worker_cores: (0..workers).collect(),
        buffers: 4096,
        pages: PageSize::Small,
        ..EngineConfig::default()
    };
    let mut graph = GraphBuilder::new(config, Clock::tsc()).expect("graph");
    quiver_memif::declare(&mut graph);
    graph.node(NodeSpec::new("ethernet-input", "frees", |_| Box::new(Sink)).sink());
    let mut engine = Engine::build(graph).expect("engine");
    engine.start_threads().expect("threads"); // cores that do not exist are only complained about
    engine
}

fn add(engine: &mut Engine, path: &str, role: Role, mode: RxMode, zero_copy: bool) -> InterfaceId {
    let _ = quiver_memif::add_socket(engine, 1, path);
    let mut config = MemifConfig::new(1, 0, role);
    config.rx_mode = mode;
    config.ring_size = 256;
    config.zero_copy = zero_copy && role == Role::Slave;
    let id = quiver_memif::create(engine, config).expect("interface");
    engine.set_admin_up(id, true).expect("up");
    id
}

fn send(engine: &mut Engine, id: InterfaceId, count: usize) {
    let output = engine.interface(id).expect("interface").row().output;
    engine.post(WorkerId(0), move |worker: &mut Worker| {
        for number in 0..count {
            let length = if number % 16 == 0 { 9000 } else { 64 };
            worker.inject(&frame(number, length), output, InterfaceId::NONE, id);
        }
    });
}

fn received(engine: &Engine, id: InterfaceId) -> u64 {
    engine.interface_totals(id).rx_packets
}

fn until(a: &mut Engine, b: &mut Engine, what: &str, done: impl Fn(&Engine, &Engine) -> bool) {
    let start = Instant::now();
    while !done(a, b) {
        assert!(start.elapsed() < PATIENCE, "never happened: {what}");
        a.turn(1);
        b.turn(1);
    }
}

#[test]
fn a_sleeping_worker_is_woken_by_every_frame() {
    let modes = [("interrupt", RxMode::Interrupt), ("adaptive", RxMode::Adaptive)];
    for ((test, mode), zero_copy) in
        modes.into_iter().flat_map(|mode| [(mode, false), (mode, true)])
    {
        let path = socket(&format!("threads-{test}-{zero_copy}"));
        let (mut a, mut b) = (engine(1), engine(1));
        let m = add(&mut a, &path, Role::Master, mode, zero_copy);
        let s = add(&mut b, &path, Role::Slave, mode, zero_copy);
        let is_up = |engine: &Engine, id| engine.interface(id).is_some_and(|i| i.row().up);
        until(&mut a, &mut b, "both up", |a, b| is_up(a, m) && is_up(b, s));
        let mut quickest = Duration::MAX;
        for number in 1..=30 {
            until(&mut a, &mut b, "both asleep", |a, b| {
                a.is_asleep(WorkerId(0)) && b.is_asleep(WorkerId(0))
            });
            let start = Instant::now();
            send(&mut b, s, 1);
            send(&mut a, m, 1);
            until(&mut a, &mut b, "both woke", |a, b| {
                received(a, m) == number && received(b, s) == number
            });
            quickest = quickest.min(start.elapsed());
        }
        // Not by the safety net of the worker, which is a second.
        assert!(quickest < Duration::from_millis(900), "{quickest:?}");
    }
}

#[test]
fn connections_that_end_under_load_leave_no_buffer_and_no_mapping_behind() {
    for zero_copy in [false, true] {
        end_connections_under_load(zero_copy);
    }
}

/// A worker whose core others want may answer late: then nothing has changed, and the command is
/// given again.
fn delete(engine: &mut Engine, id: InterfaceId) {
    for _ in 0..10 {
        match quiver_memif::delete(engine, id) {
            Ok(()) => return,
            Err(MemifError::Interface(InterfaceError::Stalled(_))) => continue,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the worker does not answer");
}

fn end_connections_under_load(zero_copy: bool) {
    let path = socket(&format!("threads-load-{zero_copy}"));
    let mut pools = Vec::new();
    {
        let (mut a, mut b) = (engine(1), engine(1));
        pools.extend([a.pool().clone(), b.pool().clone()]);
        let mut m = add(&mut a, &path, Role::Master, RxMode::Polling, zero_copy);
        let mut s = add(&mut b, &path, Role::Slave, RxMode::Polling, zero_copy);
        let mut crossed = 0;
        for round in 0..30 {
            let start = Instant::now();
            // On a busy machine the workers' threads may get no core for longer.
            let is_over = |crossed: u64| {
                let passed = start.elapsed();
                passed > Duration::from_millis(60) && crossed > 0 || passed > Duration::from_secs(5)
            };
            while !is_over(received(&a, m) + received(&b, s)) {
                send(&mut a, m, 64);
                send(&mut b, s, 64);
                a.turn(0);
                b.turn(0);
                std::thread::yield_now();
            }
            crossed += received(&a, m) + received(&b, s);
            if round % 2 == 0 {
                delete(&mut b, s);
                s = add(&mut b, &path, Role::Slave, RxMode::Polling, zero_copy);
            } else {
                delete(&mut a, m);
                m = add(&mut a, &path, Role::Master, RxMode::Polling, zero_copy);
                // The slave would wait a second to try again.
                delete(&mut b, s);
                s = add(&mut b, &path, Role::Slave, RxMode::Polling, zero_copy);
            }
        }
        assert!(crossed > 1000, "only {crossed} frames crossed");
    }
    for pool in pools {
        assert_eq!(pool.free(), pool.total(), "buffers are lost");
    }
}
