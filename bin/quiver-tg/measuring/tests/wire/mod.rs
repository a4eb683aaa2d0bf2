//! Ports joined by wires that lose, delay, repeat, damage and misdeliver exactly what a test says,
//! on a clock that stands still until it is moved.
#![allow(dead_code)] // each test uses a part

use std::any::Any;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use quiver_control::Registry;
use quiver_core::clock::Clock;
use quiver_core::control::interfaces::InterfaceSpec;
use quiver_core::graph::builder::EngineConfig;
use quiver_core::memory::mapping::PageSize;
use quiver_core::worker::device::{Device, RxMode, RxQueue, TxQueue};
use quiver_core::{Context, Engine, Frame, InterfaceId, NodeId, NodeSpec};
use quiver_tg_measuring::generator::Generator;
use quiver_tg_measuring::report::{Kind, Report, StreamReport};
use quiver_tg_measuring::surroundings::Surroundings;
use quiver_tg_traffic::profile::{Port, Profile};

/// What becomes of one frame: copies, each to a port after a delay.
pub type Fate = Vec<(usize, u64)>;
/// Decides about the n-th frame that enters at a port, and may change its bytes.
pub type Fault = Box<dyn FnMut(usize, u64, &mut Vec<u8>) -> Fate + Send>;

/// Frames under way: when they arrive, and what they are.
type Queue = VecDeque<(u64, Vec<u8>)>;

/// The wires.
pub struct Wires {
    queues: Vec<Queue>,
    seen: Vec<u64>,
    fault: Fault,
    /// A port takes no more while so many frames wait in it.
    capacity: usize,
    /// Places in a port's receive ring.
    ring: usize,
}

impl Wires {
    /// Receive rings of so many places: what finds no room in them is lost.
    pub fn set_ring(&mut self, ring: usize) {
        self.ring = ring;
    }

    /// Another fault from now on.
    pub fn set_fault(&mut self, fault: Fault) {
        self.fault = fault;
    }
}

type Shared = Arc<Mutex<Wires>>;

struct Out {
    wires: Shared,
    port: usize,
    time: Arc<AtomicU64>,
}

impl TxQueue for Out {
    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let mut wires = self.wires.lock().expect("wires");
        let wires = &mut *wires;
        let mut taken = 0;
        for packet in frame.packets() {
            let waiting: usize = wires.queues.iter().map(VecDeque::len).sum();
            if waiting >= wires.capacity {
                break;
            }
            let mut bytes = Vec::new();
            packet.copy_to(&mut bytes);
            let number = wires.seen[self.port];
            wires.seen[self.port] += 1;
            let fate = (wires.fault)(self.port, number, &mut bytes);
            // The fault may have set the clock.
            let now = self.time.load(Ordering::Relaxed);
            for (port, delay) in fate {
                let queue = &mut wires.queues[port];
                let place = queue.partition_point(|(at, _)| *at <= now + delay);
                queue.insert(place, (now + delay, bytes.clone()));
            }
            taken += 1;
        }
        frame.take_front(taken, |packet| cx.buffers.free(packet));
    }
}

struct In {
    wires: Shared,
    interface: InterfaceId,
    port: usize,
    time: Arc<AtomicU64>,
}

impl RxQueue for In {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        let mut wires = self.wires.lock().expect("wires");
        let now = self.time.load(Ordering::Relaxed);
        let ring = wires.ring;
        let queue = &mut wires.queues[self.port];
        let due = queue.partition_point(|(at, _)| *at <= now);
        if due >= ring {
            queue.drain(ring..due);
            cx.interface_counters(self.interface).rx_ring_full.add(1);
        }
        while frame.room() > 0 && queue.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, bytes)) = queue.pop_front() else { break };
            let mut packet = cx.buffers.packet().expect("a buffer");
            assert!(packet.append(&bytes, cx.buffers));
            frame.push(packet).expect("room");
        }
        None
    }
}

struct Plug;

impl Device for Plug {
    fn kind(&self) -> &'static str {
        "wire"
    }
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// The test's surroundings.
pub struct Bench {
    pub wires: Shared,
    pub time: Arc<AtomicU64>,
    /// How far the clock moves with each pass of the worker.
    pub pass_ns: u64,
}

impl Surroundings for Bench {
    fn register(&mut self, registry: &mut Registry) {
        registry.graph.node(NodeSpec::input("wire-input", "Frames from a wire"));
    }

    fn make_port(
        &mut self,
        engine: &mut Engine,
        number: usize,
        _: &Port,
        input: &str,
    ) -> anyhow::Result<InterfaceId> {
        let (wires, time) = (self.wires.clone(), self.time.clone());
        let id = engine.create_interface(InterfaceSpec {
            name: format!("wire{number}"),
            device: Box::new(Plug),
            mac: [2, 0, 0, 0, 0, number as u8],
            mtu_bytes: 1500,
            input: input.to_owned(),
            link_up: true,
            tx: vec![Box::new(Out { wires: wires.clone(), port: number, time: time.clone() })],
        })?;
        let queue = Box::new(In { wires, interface: id, port: number, time });
        engine.add_rx_queue(id, "wire-input", queue, RxMode::Polling, None)?;
        Ok(id)
    }

    fn wait(&mut self, engine: &mut Engine, at_most_ns: u64) {
        let until = self.time.load(Ordering::Relaxed) + at_most_ns;
        while self.time.load(Ordering::Relaxed) < until {
            engine.step();
            self.time.fetch_add(self.pass_ns, Ordering::Relaxed);
        }
    }
}

/// Frames pass from each port to the other.
pub fn cross(port: usize, delay_ns: u64) -> Fate {
    vec![(1 - port, delay_ns)]
}

/// A profile of two ports.
pub fn profile(streams: &str) -> Profile {
    profile_with(streams, "")
}

/// As [`profile`]; the second port has these keys, too.
pub fn profile_with(streams: &str, keys: &str) -> Profile {
    let text = format!(
        "ports: [{{tap: {{name: a}}, ip4: [10.0.0.2], ip6: [\"2001:2::2\"]}}, {{tap: {{name: \
         b}}{keys}}}]\n{streams}"
    );
    Profile::parse(&text, Path::new("test.yaml")).expect("profile")
}

/// A generator in front of wires; its links have not been waited for.
pub fn unlinked(profile: &Profile, capacity: usize, fault: Fault) -> Generator<Bench> {
    let wires = Wires {
        queues: vec![Queue::new(), Queue::new()],
        seen: vec![0; 2],
        fault,
        capacity,
        ring: usize::MAX,
    };
    let (clock, time) = Clock::manual();
    let bench = Bench { wires: Arc::new(Mutex::new(wires)), time, pass_ns: 1_000 };
    let config =
        EngineConfig { worker_cores: vec![0], pages: PageSize::Small, ..EngineConfig::default() };
    Generator::new(profile, config, clock, bench).expect("generator")
}

/// A generator with two ports in front of wires.
pub fn generator(streams: &str, capacity: usize, fault: Fault) -> Generator<Bench> {
    generator_with(streams, "", capacity, fault)
}

/// As [`generator`]; the second port has these keys, too.
pub fn generator_with(
    streams: &str,
    keys: &str,
    capacity: usize,
    fault: Fault,
) -> Generator<Bench> {
    let mut generator = unlinked(&profile_with(streams, keys), capacity, fault);
    generator.wait_for_links().expect("links");
    // The announcements leave before anything is measured.
    pass_a_millisecond(&mut generator);
    let wires = generator.surroundings().wires.clone();
    wires.lock().expect("wires").seen = vec![0; 2];
    generator
}

/// Let a millisecond pass.
pub fn pass_a_millisecond(generator: &mut Generator<Bench>) {
    for _ in 0..1000 {
        generator.engine().step();
        generator.surroundings().time.fetch_add(1_000, Ordering::Relaxed);
    }
}

/// Every buffer must be back.
pub fn check_balance(generator: &mut Generator<Bench>) {
    pass_a_millisecond(generator);
    let pool = generator.engine().pool();
    assert_eq!(pool.free(), pool.total(), "every buffer is back");
}

/// Every frame is counted once: where it was sent, where it came, and where it did not.
pub fn check_counts(report: &Report) {
    assert_eq!(report.lost, report.offered as i64 - report.received as i64);
    for stream in &report.per_stream {
        assert_eq!(stream.lost, stream.offered as i64 - stream.received as i64, "{stream:?}");
        // Counted in another way: from what the bitmap says came.
        assert_eq!(stream.lost, stream.gaps.frames as i64, "{stream:?}");
    }
    for port in &report.per_port {
        assert!(port.is_balanced(), "{port:?}");
    }
    let load = || report.per_stream.iter().filter(|s| s.kind == Kind::Load);
    let sum = |of: fn(&StreamReport) -> u64| load().map(of).sum::<u64>();
    assert_eq!((report.offered, report.received), (sum(|s| s.offered), sum(|s| s.received)));
    let at_ports = report.per_port.iter().map(|p| p.received).sum::<u64>();
    assert_eq!(report.received + report.latency_streams.map_or(0, |l| l.received), at_ports);
}

/// One stream each way, 64 B.
pub const BOTH_WAYS: &str = r#"
streams:
  - from: 0
    to: 1
    frame: 64
    layers:
      ethernet: {src: "02:00:00:00:00:01", dst: "02:fe:00:00:00:01"}
      ip4: {src: 10.0.0.2, dst: {first: 10.1.0.0, count: 10}}
      udp: {}
  - from: 1
    to: 0
    frame: 64
    layers:
      ethernet: {src: "02:00:00:00:00:02", dst: "02:fe:00:00:00:02"}
      ip4: {src: 10.0.0.3, dst: 10.1.0.0}
      udp: {}
"#;

/// One stream from port 0 to port 1.
pub const ONE_WAY: &str = r#"
streams:
  - from: 0
    to: 1
    frame: imix
    layers:
      ethernet: {src: "02:00:00:00:00:01", dst: "02:fe:00:00:00:01"}
      ip6: {src: "2001:2::2", dst: "2001:2:0:1::2"}
      udp: {}
"#;
