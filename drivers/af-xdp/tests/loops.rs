//! Two drivers at the two ends of a Linux device: whatever frames one sends, the other receives,
//! each byte of them and in order. A tap against a packet socket at its Linux end, and AF_XDP
//! against a packet socket at the other end of a veth.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use quiver_control::{Collected, Commands, Registry, Started};
use quiver_core::clock::Clock;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::graph::node::Node;
use quiver_core::memory::mapping::PageSize;
use quiver_core::{Context, Engine, Frame, InterfaceId, NodeSpec, WorkerId};
use quiver_linux::lab::{run, unique, why_not};

/// MTU of all devices, bytes; frames are up to 14 longer.
const MTU_BYTES: usize = 9000;
/// Frames that are under way at a time: no ring is full then.
const FRAMES_MAX: usize = 48;
/// How often an interface is deleted and made again.
const ROUNDS: usize = 16;
/// Longer than anything takes on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// The source address of our frames; what the kernel says by itself has another one.
const SOURCE: [u8; 6] = [0x02, 0x51, 0x55, 0x49, 0x56, 0x45];

/// Frames as they came in, by interface.
type Seen = Arc<Mutex<Vec<(InterfaceId, Vec<u8>)>>>;

struct Recorder(Seen);

impl Node for Recorder {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let mut seen = self.0.lock().unwrap();
        for packet in frame.drain() {
            let mut bytes = Vec::new();
            packet.copy_to(&mut bytes);
            if bytes.get(6..12) == Some(&SOURCE[..]) {
                seen.push((packet.rx, bytes));
            }
            cx.buffers.free(packet);
        }
    }
}

/// A router whose worker is stepped by hand.
struct Lab {
    engine: Engine,
    commands: Rc<RefCell<Commands<Engine>>>,
    seen: Seen,
    /// A Linux device to be deleted.
    device: String,
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = std::process::Command::new("ip").args(["link", "del", &self.device]).output();
    }
}

impl Lab {
    /// None, with the reason printed, where Linux devices cannot be made.
    fn new(stem: &str) -> Option<Lab> {
        if let Some(reason) = why_not() {
            eprintln!("skipped: {reason}");
            return None;
        }
        let config = EngineConfig {
            worker_cores: vec![0],
            buffers: 16_384,
            pages: PageSize::Small,
            ..EngineConfig::default()
        };
        let mut registry = Registry::new(GraphBuilder::new(config, Clock::tsc()).expect("graph"));
        let seen = Seen::default();
        let shared = seen.clone();
        registry.graph.node(
            NodeSpec::new("ethernet-input", "writes down", move |_| {
                Box::new(Recorder(shared.clone()))
            })
            .sink()
            .takes_offloads(),
        );
        quiver_af_packet::register(&mut registry);
        quiver_tap::register(&mut registry);
        quiver_af_xdp::register(&mut registry);
        let (engine, commands) = registry.build().expect("engine");
        Some(Lab { engine, commands, seen, device: unique(stem) })
    }

    /// Make an interface and set it up.
    fn make(&mut self, line: &str) -> InterfaceId {
        let output = self.commands.borrow().execute(&mut self.engine, line).expect(line).to_text();
        let id = self.engine.interface_id(output.trim()).expect("interface");
        self.engine.set_admin_up(id, true).expect("up");
        id
    }

    fn step_until(&mut self, what: &str, holds: impl Fn(&Lab) -> bool) {
        let start = Instant::now();
        while !holds(self) {
            assert!(start.elapsed() < PATIENCE, "never happened: {what}");
            self.engine.turn(0);
            self.engine.step();
        }
    }

    /// Send frames from one end; what arrives at the other.
    fn send(&mut self, from: InterfaceId, to: InterfaceId, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let output = self.engine.interface(from).expect("interface").row().output;
        let worker = self.engine.inline_worker(WorkerId(0)).expect("worker");
        for frame in frames {
            assert!(worker.inject(frame, output, InterfaceId::NONE, from), "no buffer");
        }
        let count = frames.len();
        self.step_until("all frames have arrived", |lab| lab.seen.lock().unwrap().len() >= count);
        let seen = std::mem::take(&mut *self.seen.lock().unwrap());
        assert!(seen.iter().all(|(rx, _)| *rx == to));
        seen.into_iter().map(|(_, bytes)| bytes).collect()
    }

    /// Whatever frames are sent at either end arrive at the other, and all buffers come home.
    fn check(mut self, ends: [InterfaceId; 2]) {
        self.step_until("both links are up", |lab| {
            ends.iter().all(|end| lab.engine.interface(*end).is_some_and(|i| i.row().up))
        });
        let lab = RefCell::new(self);
        let config = Config { failure_persistence: None, ..Config::with_cases(48) };
        let frames = prop::collection::vec(frame(), 1..FRAMES_MAX);
        let result = TestRunner::new(config).run(&(frames, any::<bool>()), |(frames, turned)| {
            let [from, to] = if turned { [ends[1], ends[0]] } else { ends };
            let arrived = lab.borrow_mut().send(from, to, &frames);
            let lengths = |frames: &[Vec<u8>]| frames.iter().map(Vec::len).collect::<Vec<_>>();
            prop_assert_eq!(lengths(&arrived), lengths(&frames));
            prop_assert!(arrived == frames, "bytes differ");
            Ok(())
        });
        result.expect("every frame arrives as it was sent");
        let is_balanced = |lab: &Lab| lab.engine.pool().free() == lab.engine.pool().total();
        lab.into_inner().step_until("all buffers are back", is_balanced);
    }
}

/// A frame of any length and content, with tags, to somebody whom the kernel does not know.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let ethertype = prop_oneof![
        Just(vec![0x88, 0xb5]),
        Just(vec![0x08, 0x00]),
        Just(vec![0x86, 0xdd]),
        Just(vec![0x08, 0x06]),
        Just(vec![0x00, 0x20]),
        any::<[u8; 2]>().prop_map(|tag| vec![0x81, 0x00, tag[0], tag[1], 0x88, 0xb5]),
        any::<[u8; 2]>()
            .prop_map(|tag| vec![0x88, 0xa8, tag[0], tag[1], 0x81, 0x00, 0, 7, 0x08, 0x00]),
    ];
    let length = prop_oneof![46usize..1500, 46usize..64, 1980usize..2080, 46usize..MTU_BYTES - 8];
    (any::<[u8; 5]>(), ethertype, length, any::<u64>()).prop_map(|(to, ethertype, length, seed)| {
        let mut bytes = vec![0x02];
        bytes.extend(to);
        bytes.extend(SOURCE);
        bytes.extend(ethertype);
        let mut state = seed | 1;
        bytes.extend((0..length).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        }));
        bytes
    })
}

/// The kernel has nothing to say on this device.
fn silence(device: &str) {
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6"), "1");
}

#[test]
fn a_tap_and_a_packet_socket_pass_on_any_frames() {
    let Some(mut lab) = Lab::new("t") else { return };
    let device = lab.device.clone();
    let tap = lab.make(&format!("create tap host-if-name {device} host-mtu-size {MTU_BYTES}"));
    silence(&device);
    let host = lab.make(&format!("create host-interface name {device}"));
    lab.check([tap, host]);
}

#[test]
fn an_af_xdp_socket_and_a_packet_socket_pass_on_any_frames() {
    let Some(mut lab) = Lab::new("x") else { return };
    let device = lab.device.clone();
    let other = unique("y");
    run("ip", &["link", "add", &device, "type", "veth", "peer", "name", &other]);
    for end in [&device, &other] {
        silence(end);
        run("ip", &["link", "set", end, "mtu", &MTU_BYTES.to_string()]);
    }
    let host = lab.make(&format!("create host-interface name {device}"));
    let xdp = lab.make(&format!("create interface af_xdp host-if {other}"));
    lab.check([xdp, host]);
}

#[test]
fn what_is_deleted_and_made_again_at_once_never_makes_the_control_thread_wait() {
    let Some(mut lab) = Lab::new("z") else { return };
    let (device, other) = (lab.device.clone(), unique("w"));
    run("ip", &["link", "add", &device, "type", "veth", "peer", "name", &other]);
    let line = format!("create interface af_xdp host-if {device}");
    lab.make(&line);
    let commands = lab.commands.clone();
    let mut was_busy = false;
    for _ in 0..ROUNDS {
        let commands = commands.borrow();
        commands
            .execute(&mut lab.engine, &format!("delete interface af_xdp {device}/0"))
            .expect("deleted");
        // Where Linux still holds the queue, the command goes on in steps.
        if let Started::Running(execution) =
            commands.start(&mut lab.engine, &line).expect("no other socket")
        {
            was_busy = true;
            execution
                .finish(&commands, &mut lab.engine, &mut Collected::default())
                .expect("free at last");
        }
        assert!(lab.engine.interface_id(&format!("{device}/0")).is_some());
    }
    if !was_busy {
        eprintln!("Linux let go of all {ROUNDS} queues at once: no command had to wait");
    }
}
