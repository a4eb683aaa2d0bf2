//! The engine as a whole: packets through a graph of the test's own, on one thread and on several.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use quiver_core::clock::Clock;
use quiver_core::control::interfaces::InterfaceSpec;
use quiver_core::graph::arc::{DEVICE_INPUT, FeatureSpec, Phase};
use quiver_core::graph::builder::{BuildError, EngineConfig, GraphBuilder};
use quiver_core::graph::capture::CaptureSpec;
use quiver_core::graph::filter::{PacketFilter, SharedFilter};
use quiver_core::graph::node::{DROP, Never};
use quiver_core::graph::stage::StageContext;
use quiver_core::memory::mapping::PageSize;
use quiver_core::worker::device::{Device, RxMode, RxQueue, TxQueue};
use quiver_core::{Context, Engine, Frame, InterfaceId, Node, NodeId, NodeSpec, WorkerId};

/// A device of byte vectors. Locks are fine in a test's driver.
#[derive(Clone, Default)]
pub(crate) struct Wire {
    arriving: Arc<Mutex<VecDeque<Vec<u8>>>>,
    pub(crate) left: Arc<Mutex<Vec<Vec<u8>>>>,
    /// Packets that arrive for ever, counted; 0 = only what is in `arriving`.
    flood: Arc<AtomicU64>,
    sent: Arc<AtomicU64>,
}

impl RxQueue for Wire {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        let endless = self.flood.load(Ordering::Relaxed) > 0;
        let mut arriving = self.arriving.lock().unwrap();
        while frame.room() > 0 {
            let Some(bytes) = arriving.pop_front().or_else(|| endless.then(|| vec![7; 60])) else {
                break;
            };
            let Some(mut packet) = cx.buffers.packet() else { break };
            if !packet.append(&bytes, cx.buffers) {
                cx.buffers.free(packet);
                break;
            }
            if let Err(packet) = frame.push(packet) {
                cx.buffers.free(packet);
            }
        }
        if endless {
            self.flood.fetch_add(frame.len() as u64, Ordering::Relaxed);
        }
        None
    }
}

impl TxQueue for Wire {
    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let keep = self.flood.load(Ordering::Relaxed) == 0;
        self.sent.fetch_add(frame.len() as u64, Ordering::Relaxed);
        for packet in frame.drain() {
            if keep {
                let mut bytes = Vec::new();
                packet.copy_to(&mut bytes);
                self.left.lock().unwrap().push(bytes);
            }
            cx.buffers.free(packet);
        }
    }
}

struct TestDevice;

impl Device for TestDevice {
    fn kind(&self) -> &'static str {
        "test"
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

quiver_core::reasons! {
    /// Why `steer` drops.
    pub(crate) enum SteerDrop {
        /// The first byte is 0xff.
        Asked = "asked", "the packet asked to be dropped";
        /// No such place.
        Nowhere = "nowhere", "the first byte names no interface";
        /// Full.
        HandoffFull = "handoff-full", "the ring to the other worker is full";
    }
}

/// The first byte says where to: 0xff dies, 0xfe goes round for ever, 0xfd to the other worker,
/// else out of interface 1.
struct Steer {
    again: NodeId,
}

impl Node for Steer {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let again = self.again;
        let output = cx.interface(InterfaceId(1)).map(|row| row.output);
        let mut handed = Vec::new();
        frame.route(|packet| match packet.bytes().first().copied() {
            Some(0xff) => Err(SteerDrop::Asked),
            Some(0xfe) if packet.turn() => Ok(again),
            Some(0xfe) => Err(SteerDrop::Nowhere),
            _ => output.ok_or(SteerDrop::Nowhere),
        });
        if frame.packets().first().is_some_and(|p| p.bytes().first() == Some(&0xfd)) {
            handed.extend(frame.drain());
        }
        for mut packet in handed {
            packet.bytes_mut()[0] = 1;
            let other = WorkerId(1 - cx.worker.0);
            if let Err(packet) = cx.hand_off(packet, other, again) {
                cx.kill(packet, SteerDrop::HandoffFull);
            }
        }
    }
}

/// Marks a byte and walks on along the arc `device-input`.
struct Mark(u8, NodeId);

impl Node for Mark {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let (mark, end) = (self.0, self.1);
        frame.route(|packet| {
            if let Some(byte) = packet.bytes_mut().get_mut(1) {
                *byte = *byte * 10 + mark;
            }
            Ok::<_, SteerDrop>(cx.next_in_arc(
                quiver_core::graph::arc::DEVICE_INPUT,
                packet.rx,
                packet,
                end,
            ))
        });
    }
}

pub(crate) fn builder(workers: usize) -> GraphBuilder {
    let config = EngineConfig {
        worker_cores: (0..workers).collect(),
        buffers: 2048,
        pages: PageSize::Small,
        ..EngineConfig::default()
    };
    let mut builder = GraphBuilder::new(config, Clock::tsc()).unwrap();
    builder.node(NodeSpec::input("test-input", "arrivals"));
    builder.node(
        NodeSpec::new("steer", "by the first byte", |w| Box::new(Steer { again: w.node("steer") }))
            .reasons::<SteerDrop>(),
    );
    for (name, mark) in [("mark-1", 1), ("mark-2", 2)] {
        builder.node(NodeSpec::new(name, "marks", move |w| Box::new(Mark(mark, w.node("steer")))));
    }
    builder.feature(FeatureSpec {
        arc: "device-input",
        node: "mark-2",
        phase: Phase::Filter,
        after: &[],
    });
    builder.feature(FeatureSpec {
        arc: "device-input",
        node: "mark-1",
        phase: Phase::Capture,
        after: &[],
    });
    builder
}

pub(crate) fn interface(engine: &mut Engine, name: &str) -> (InterfaceId, Wire) {
    let wire = Wire::default();
    let tx =
        (0..engine.worker_count()).map(|_| Box::new(wire.clone()) as Box<dyn TxQueue>).collect();
    let spec = InterfaceSpec {
        name: name.to_owned(),
        device: Box::new(TestDevice),
        mac: [2, 0, 0, 0, 0, 1],
        mtu_bytes: 1500,
        input: "steer".to_owned(),
        link_up: true,
        tx,
    };
    let id = engine.create_interface(spec).unwrap();
    let queue = Box::new(wire.clone());
    engine.add_rx_queue(id, "test-input", queue, RxMode::Polling, Some(WorkerId(0))).unwrap();
    engine.set_admin_up(id, true).unwrap();
    (id, wire)
}

pub(crate) fn router() -> (Engine, Wire, Wire) {
    let mut engine = Engine::build(builder(1)).unwrap();
    let (_, first) = interface(&mut engine, "test0");
    let (_, second) = interface(&mut engine, "test1");
    (engine, first, second)
}

pub(crate) fn arrive(wire: &Wire, packets: impl IntoIterator<Item = Vec<u8>>) {
    wire.arriving.lock().unwrap().extend(packets);
}

pub(crate) fn balance(engine: &mut Engine) {
    for _ in 0..4 {
        engine.step();
    }
    assert_eq!(engine.pool().free(), engine.pool().total(), "allocated = free + in flight");
}

#[test]
fn a_packet_leaves_by_its_edge_or_a_counted_reason() {
    let (mut engine, first, second) = router();
    arrive(&first, (0..1000u32).map(|i| vec![if i % 10 == 0 { 0xff } else { 1 }, 0, i as u8]));
    while engine.step() > 0 {}
    assert_eq!(second.left.lock().unwrap().len(), 900);
    let steer = engine.node_id("steer").unwrap();
    assert_eq!(engine.reason_count(steer, SteerDrop::Asked as u16), 100);
    let totals = engine.interface_totals(InterfaceId(0));
    assert_eq!((totals.rx_packets, totals.drops), (1000, 100));
    balance(&mut engine);
}

#[test]
fn packets_keep_their_order_through_mixed_vectors() {
    let (mut engine, first, second) = router();
    arrive(&first, (0..256u32).map(|i| vec![if i % 3 == 0 { 0xff } else { 1 }, 0, i as u8]));
    engine.step();
    let left: Vec<u8> = second.left.lock().unwrap().iter().map(|p| p[2]).collect();
    assert!(left.is_sorted());
    balance(&mut engine);
}

#[test]
fn a_packet_that_goes_round_for_ever_dies_counted() {
    let (mut engine, first, _) = router();
    arrive(&first, [vec![0xfe, 0]]);
    engine.step();
    let steer = engine.node_id("steer").unwrap();
    assert_eq!(engine.reason_count(steer, SteerDrop::Nowhere as u16), 1);
    balance(&mut engine);
}

#[test]
fn features_run_in_the_order_of_the_arc_whatever_the_order_of_enabling() {
    let (mut engine, first, second) = router();
    for feature in ["mark-2", "mark-1"] {
        engine.set_feature(InterfaceId(0), "device-input", feature, true).unwrap();
    }
    arrive(&first, [vec![1, 0]]);
    engine.step();
    assert_eq!(second.left.lock().unwrap()[0], [1, 12]);
    engine.set_feature(InterfaceId(0), "device-input", "mark-1", false).unwrap();
    arrive(&first, [vec![1, 0]]);
    engine.step();
    assert_eq!(second.left.lock().unwrap()[1], [1, 2]);
    let error = engine.set_feature(InterfaceId(0), "device-input", "steer", true).unwrap_err();
    assert!(error.to_string().contains("steer"), "{error}");
    balance(&mut engine);
}

#[test]
fn an_edge_to_nowhere_and_a_cycle_of_features_are_start_up_errors() {
    let mut bad = builder(1);
    bad.node(NodeSpec::new("lost", "", |w| Box::new(Steer { again: w.node("nowhere") })));
    assert!(matches!(Engine::build(bad), Err(BuildError::EdgeMissing { .. })));
    let mut bad = builder(1);
    let after = &["steer"];
    bad.feature(FeatureSpec { arc: "device-input", node: "steer", phase: Phase::Filter, after });
    assert!(matches!(Engine::build(bad), Err(BuildError::Cycle(_))));
}

#[test]
fn what_arrives_on_an_interface_that_is_down_is_dropped_and_counted() {
    let (mut engine, first, second) = router();
    engine.set_admin_up(InterfaceId(0), false).unwrap();
    arrive(&first, [vec![1], vec![1]]);
    engine.step();
    assert!(second.left.lock().unwrap().is_empty());
    let count: u64 = engine
        .reason_counts(false)
        .iter()
        .filter(|r| r.reason == "interface-down")
        .map(|r| r.count)
        .sum();
    assert_eq!(count, 2);
    balance(&mut engine);
}

/// Walks on along `device-input` as on an interface that is gone: by the place of each packet, or
/// by its own place in the arc.
struct Stray {
    own: NodeId,
}

impl Node for Stray {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let gone = InterfaceId(9);
        let end = cx.interface(gone).map_or(DROP, |row| row.input);
        let (own, cx) = (self.own, &*cx);
        frame.route(|packet| {
            packet.rx = gone;
            Ok::<_, Never>(match packet.bytes() {
                [1, ..] => cx.next_in_arc(DEVICE_INPUT, gone, packet, end),
                [2, ..] => StageContext::new(cx).next_in_arc(DEVICE_INPUT, gone, packet, end),
                _ => cx.behind(DEVICE_INPUT, gone, own, end).take(packet),
            })
        });
    }
}

#[test]
fn a_packet_of_an_interface_that_is_gone_dies_for_a_reason_in_the_middle_of_an_arc() {
    let mut builder = builder(1);
    builder.node(NodeSpec::new("stray", "strays", |w| Box::new(Stray { own: w.id })));
    let (arc, node) = ("device-input", "stray");
    builder.feature(FeatureSpec { arc, node, phase: Phase::Options, after: &[] });
    let mut engine = Engine::build(builder).unwrap();
    let (id, first) = interface(&mut engine, "test0");
    engine.set_feature(id, arc, node, true).unwrap();
    arrive(&first, [vec![1], vec![2], vec![3]]);
    while engine.step() > 0 {}
    let deaths: Vec<_> = engine.reason_counts(false);
    let deaths: Vec<_> = deaths.iter().map(|r| (&*r.node, r.reason, r.count)).collect();
    assert_eq!(deaths, [("null-node", "node-removed", 3)]);
    balance(&mut engine);
}

#[test]
fn a_deleted_interface_takes_its_packets_along_and_its_number_is_used_again() {
    let (mut engine, first, _) = router();
    engine.delete_interface(InterfaceId(1)).unwrap();
    assert!(engine.node_id("test1-output").is_none());
    arrive(&first, [vec![1], vec![1]]);
    engine.step();
    engine.step();
    let (id, again) = interface(&mut engine, "test1");
    assert_eq!(id, InterfaceId(1));
    arrive(&first, [vec![1]]);
    engine.step();
    assert_eq!(again.left.lock().unwrap().len(), 1);
    balance(&mut engine);
}

#[test]
fn a_trace_tells_what_each_node_decided_and_a_capture_holds_the_bytes() {
    let (mut engine, first, _) = router();
    let input = engine.node_id("test-input").unwrap();
    engine.trace_add(input, 2, None).unwrap();
    let spec = CaptureSpec { rx: true, tx: true, drop: true, interface: None, packets_max: 10 };
    engine.capture_start(spec, None).unwrap();
    arrive(&first, [vec![1, 9], vec![0xff, 8], vec![1, 7]]);
    engine.step();
    let traces = engine.traces().unwrap();
    let story = |packet: u32| -> Vec<String> {
        let records = traces[0].records.iter().filter(|r| r.packet == packet);
        records.map(|r| engine.node_name(r.node)).collect()
    };
    assert_eq!(story(1), ["test-input", "steer", "test1-output", "test1-tx"]);
    assert_eq!(story(2), ["test-input", "steer", "error-drop"]);
    assert!(story(3).is_empty());
    let mut file = Vec::new();
    let captured = engine.capture_stop().unwrap().write(&mut file).unwrap();
    assert_eq!(captured, 6, "three arrived, two left, one died");
    balance(&mut engine);
}

/// Chooses packets whose first byte is this one.
struct FirstByte(u8);

impl PacketFilter for FirstByte {
    fn chooses(&self, bytes: &[u8]) -> bool {
        bytes.first() == Some(&self.0)
    }
}

#[test]
fn a_filter_chooses_what_is_traced_and_captured() {
    let (mut engine, first, _) = router();
    let input = engine.node_id("test-input").unwrap();
    let filter: SharedFilter = Arc::new(FirstByte(0xff));
    engine.trace_add(input, 2, Some(&filter)).unwrap();
    let spec = CaptureSpec { rx: true, tx: true, drop: false, interface: None, packets_max: 10 };
    engine.capture_start(spec, Some(&filter)).unwrap();
    arrive(&first, [vec![1, 9], vec![0xff, 8], vec![1, 7], vec![0xff, 6], vec![0xff, 5]]);
    engine.step();
    let traces = engine.traces().unwrap();
    let mut packets: Vec<u32> = traces[0].records.iter().map(|record| record.packet).collect();
    packets.sort_unstable();
    packets.dedup();
    assert_eq!(packets, [1, 2], "two of the three that are chosen, and nothing else");
    assert!(traces[0].records.iter().all(|record| record.bytes()[0] == 0xff));
    let captured = engine.capture_stop().unwrap().write(&mut Vec::new()).unwrap();
    assert_eq!(captured, 3);
    balance(&mut engine);
}

#[test]
fn a_pool_that_is_empty_is_survived() {
    let (mut engine, first, _) = router();
    let mut cache = engine.pool().cache();
    let hoard: Vec<_> = std::iter::from_fn(|| cache.take()).collect();
    arrive(&first, vec![vec![1; 60]; 300]);
    for _ in 0..3 {
        engine.step();
    }
    assert!(engine.pool().failures() > 0);
    hoard.into_iter().for_each(|b| cache.give(b));
    drop(cache);
    while engine.step() > 0 {}
    balance(&mut engine);
}

/// Wait (bounded) until something holds.
fn until(engine: &mut Engine, mut holds: impl FnMut(&mut Engine) -> bool) {
    for _ in 0..10_000 {
        if holds(engine) {
            return;
        }
        engine.turn(1);
    }
    panic!("it never came to hold");
}

#[test]
fn packets_handed_to_another_worker_arrive_there() {
    let mut engine = Engine::build(builder(2)).unwrap();
    let (_, first) = interface(&mut engine, "test0");
    let (_, second) = interface(&mut engine, "test1");
    engine.start_threads().unwrap();
    arrive(&first, vec![vec![0xfd, 0]; 100]);
    until(&mut engine, |_| second.left.lock().unwrap().len() == 100);
    let handed = engine.node_totals(WorkerId(1), quiver_core::graph::builtin::HANDOFF).vectors;
    assert_eq!(handed, 100);
}

#[test]
fn changes_under_load_lose_nothing() {
    let mut engine = Engine::build(builder(1)).unwrap();
    let (id, first) = interface(&mut engine, "test0");
    let (_, second) = interface(&mut engine, "test1");
    for wire in [&first, &second] {
        wire.flood.store(u64::from(std::ptr::eq(wire, &first)), Ordering::Relaxed);
    }
    // The second interface counts what it sends, and keeps none of it.
    let sent = second.sent.clone();
    engine.start_threads().unwrap();
    for round in 0..200 {
        let on = round % 2 == 0;
        engine.set_feature(id, "device-input", "mark-1", on).unwrap();
        engine.set_mtu(id, 1000 + round).unwrap();
        let (extra, _) = interface(&mut engine, &format!("extra{round}"));
        engine.set_rx(id, 0, None, Some(RxMode::Polling)).unwrap();
        engine.delete_interface(extra).unwrap();
        engine.turn(0);
    }
    first.flood.store(0, Ordering::Relaxed);
    until(&mut engine, |engine| {
        let received = engine.interface_totals(id).rx_packets;
        received > 0 && sent.load(Ordering::Relaxed) == received
    });
    assert_eq!(engine.interface_totals(id).drops, 0);
    let lost: u64 = engine.reason_counts(false).iter().map(|r| r.count).sum();
    assert_eq!(lost, 0);
    let pool = engine.pool().clone();
    drop(engine);
    assert_eq!(pool.free(), pool.total());
}
