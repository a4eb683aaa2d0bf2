//! A router for tests: an engine stepped by hand, whose input nodes write down what they see.
#![allow(dead_code)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quiver_core::clock::Clock;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::graph::node::{Node, Reason};
use quiver_core::memory::mapping::PageSize;
use quiver_core::{Context, Engine, Frame, InterfaceId, NodeSpec, WorkerId};
use quiver_memif::{MemifConfig, MemifReason, Role};

/// Longer than anything takes on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Frames as an input node saw them.
pub type Seen = Arc<Mutex<Vec<Vec<u8>>>>;

struct Recorder(Seen);

impl Node for Recorder {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let mut seen = self.0.lock().unwrap();
        for packet in frame.drain() {
            let mut bytes = Vec::new();
            packet.copy_to(&mut bytes);
            seen.push(bytes);
            cx.buffers.free(packet);
        }
    }
}

pub struct Router {
    pub engine: Engine,
    pub ethernet: Seen,
    pub ip: Seen,
    time: Arc<AtomicU64>,
}

/// A socket in the abstract name space that no other test has.
pub fn socket(test: &str) -> String {
    format!("@quiver-memif-{test}-{}", std::process::id())
}

impl Router {
    pub fn new(workers: usize) -> Router {
        Router::with_buffers(workers, 4096)
    }

    pub fn with_buffers(workers: usize, buffers: usize) -> Router {
        let (clock, time) = Clock::manual();
        let config = EngineConfig {
            worker_cores: (0..workers).collect(),
            buffers,
            pages: PageSize::Small,
            ..EngineConfig::default()
        };
        let mut graph = GraphBuilder::new(config, clock).expect("graph");
        quiver_memif::declare(&mut graph);
        let (ethernet, ip) = (Seen::default(), Seen::default());
        for (name, seen) in [("ethernet-input", &ethernet), ("ip-input", &ip)] {
            let seen = seen.clone();
            graph.node(
                NodeSpec::new(name, "writes down", move |_| Box::new(Recorder(seen.clone())))
                    .sink(),
            );
        }
        Router { engine: Engine::build(graph).expect("engine"), ethernet, ip, time }
    }

    /// With one interface on socket 1.
    pub fn with(
        path: &str,
        role: Role,
        change: impl FnOnce(&mut MemifConfig),
    ) -> (Router, InterfaceId) {
        let mut router = Router::new(1);
        let id = router.add(path, role, change);
        (router, id)
    }

    pub fn add(
        &mut self,
        path: &str,
        role: Role,
        change: impl FnOnce(&mut MemifConfig),
    ) -> InterfaceId {
        let _ = quiver_memif::add_socket(&mut self.engine, 1, path);
        let mut config = MemifConfig::new(1, 0, role);
        change(&mut config);
        let id = quiver_memif::create(&mut self.engine, config).expect("interface");
        self.engine.set_admin_up(id, true).expect("up");
        id
    }

    /// What is due on the control thread, and a pass of each worker.
    pub fn turn(&mut self) {
        self.engine.turn(0);
        self.engine.step();
    }

    pub fn pass_ms(&mut self, ms: u64) {
        self.time.fetch_add(ms * 1_000_000, Ordering::Relaxed);
        self.turn();
    }

    pub fn is_up(&self, id: InterfaceId) -> bool {
        self.engine.interface(id).is_some_and(|i| i.row().up)
    }

    pub fn reason(&self, id: InterfaceId) -> String {
        quiver_memif::disconnect_reason(&self.engine, id)
    }

    /// Put a packet before the interface's output, on one worker.
    pub fn send_on(&mut self, worker: u16, id: InterfaceId, bytes: &[u8]) {
        let output = self.engine.interface(id).expect("interface").row().output;
        let worker = self.engine.inline_worker(WorkerId(worker)).expect("worker");
        assert!(worker.inject(bytes, output, InterfaceId::NONE, id));
    }

    pub fn send(&mut self, id: InterfaceId, bytes: &[u8]) {
        self.send_on(0, id, bytes);
    }

    pub fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.ethernet.lock().unwrap())
    }

    pub fn count(&self, reason: MemifReason) -> u64 {
        let node = self.engine.node_id(quiver_memif::INPUT_NODE).expect("declared");
        self.engine.reason_count(node, reason.number())
    }

    /// `allocated = free + in flight`, with nothing in flight.
    pub fn assert_balance(&mut self) {
        (0..3).for_each(|_| self.turn());
        let pool = self.engine.pool();
        assert_eq!(pool.free(), pool.total(), "buffers are lost");
    }
}

/// Let both go on until `done`.
pub fn until(a: &mut Router, b: &mut Router, what: &str, done: impl Fn(&Router, &Router) -> bool) {
    let start = Instant::now();
    while !done(a, b) {
        assert!(start.elapsed() < PATIENCE, "never happened: {what}");
        a.turn();
        b.turn();
        std::thread::yield_now(); // threads carry interrupts over
    }
}

/// A frame that can be recognised.
pub fn frame(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|i| (number.wrapping_mul(31) + i * 7 + i / 251) as u8).collect()
}
