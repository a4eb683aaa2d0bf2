//! The slow path of a small feature: packets whose session is known go by, others get one.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use quiver_core::clock::Clock;
use quiver_core::control::interfaces::InterfaceSpec;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::memory::mapping::PageSize;
use quiver_core::worker::device::{Device, RxMode, RxQueue, TxQueue};
use quiver_core::{Context, Engine, Frame, InterfaceId, Node, NodeId, NodeSpec, Packet, WorkerId};
use quiver_sessions::{KEY_WORDS, SessionMaker, SlowQueue, run_slow_path, tick_slow_path};

/// Packets that a slow path decides about in a pass, and from how many that wait it holds.
const PER_PASS: usize = 12;
const HELD_FROM: usize = 1_024;
/// A vector.
const VECTOR: usize = 256;

quiver_core::reasons! {
    /// What becomes of packets.
    pub enum TestDrop {
        /// Too many wait.
        Congestion = "congestion", "too many wait";
        /// Of this port.
        Refused = "refused", "the flow gets no session";
        /// Counted.
        BackPressure = info "back-pressure", "passes without receiving";
    }
}

/// What stands between the nodes and the test.
#[derive(Clone, Default)]
struct World {
    arriving: Arc<Mutex<VecDeque<Vec<u8>>>>,
    left: Arc<Mutex<Vec<(u16, u16)>>>,
    sessions: Arc<Mutex<HashSet<u16>>>,
    /// Packets that the slow path has decided about.
    decided: Arc<Mutex<usize>>,
    /// Receives asked for.
    received: Arc<Mutex<usize>>,
    /// Most packets that have waited.
    waiting_max: Arc<Mutex<usize>>,
}

/// A packet of UDP from the port `flow`, with a number in its text.
fn packet(flow: u16, number: u16) -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 0, 30, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 1];
    bytes.extend(flow.to_be_bytes());
    bytes.extend([0, 53, 0, 10, 0, 0]);
    bytes.extend(number.to_be_bytes());
    bytes
}

fn read(packet: &Packet) -> (u16, u16) {
    let bytes = packet.bytes();
    let at = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    (at(20), at(28))
}

impl RxQueue for World {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        *self.received.lock().unwrap() += 1;
        let mut arriving = self.arriving.lock().unwrap();
        while frame.room() > 0 && !arriving.is_empty() {
            let Some(mut packet) = cx.buffers.packet() else { break };
            assert!(packet.append(&arriving.pop_front().unwrap(), cx.buffers));
            assert!(frame.push(packet).is_ok());
        }
        None
    }
}

impl TxQueue for World {
    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let mut left = self.left.lock().unwrap();
        for packet in frame.drain() {
            left.push(read(&packet));
            cx.buffers.free(packet);
        }
    }
}

impl Device for World {
    fn kind(&self) -> &'static str {
        "test"
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

/// The short path.
struct Short {
    world: World,
    slow: NodeId,
}

impl Node for Short {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let output = cx.interface(InterfaceId(0)).map(|row| row.output).unwrap();
        let sessions = self.world.sessions.lock().unwrap();
        frame.route(|packet| {
            let (flow, _) = read(packet);
            Ok::<_, TestDrop>(if sessions.contains(&flow) { output } else { self.slow })
        });
    }
}

/// Makes sessions of all flows but the last hundred.
struct Slow {
    world: World,
    queue: SlowQueue,
}

impl SessionMaker for Slow {
    type Reason = TestDrop;
    const CONGESTION: TestDrop = TestDrop::Congestion;
    const BACK_PRESSURE: TestDrop = TestDrop::BackPressure;

    fn queue(&mut self) -> &mut SlowQueue {
        &mut self.queue
    }

    fn key(&self, packet: &Packet) -> [u64; KEY_WORDS] {
        [u64::from(read(packet).0), 0, 0, 0, 0]
    }

    fn decide(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, TestDrop> {
        let (flow, _) = read(packet);
        *self.world.decided.lock().unwrap() += 1;
        if flow >= u16::MAX - 100 {
            return Err(TestDrop::Refused);
        }
        if !self.world.sessions.lock().unwrap().insert(flow) {
            self.queue.note_found();
        }
        Ok(cx.interface(InterfaceId(0)).map(|row| row.output).unwrap())
    }

    fn turn(&mut self, _: &mut Context<'_>) -> bool {
        false
    }
}

impl Node for Slow {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        run_slow_path(self, cx, frame);
        let mut most = self.world.waiting_max.lock().unwrap();
        *most = self.queue.len().max(*most);
    }

    fn tick(&mut self, cx: &mut Context<'_>) -> Option<u64> {
        tick_slow_path(self, cx)
    }
}

/// A router with these workers; packets arrive on the last one.
fn router(workers: usize) -> (Engine, World) {
    let config = EngineConfig {
        worker_cores: (0..workers).collect(),
        buffers: 16_384,
        pages: PageSize::Small,
        ..EngineConfig::default()
    };
    let world = World::default();
    let mut builder = GraphBuilder::new(config, Clock::tsc()).unwrap();
    builder.node(NodeSpec::input("test-input", "arrivals"));
    let of_short = world.clone();
    builder.node(
        NodeSpec::new("short", "by sessions", move |wiring| {
            Box::new(Short { world: of_short.clone(), slow: wiring.node("slow") })
        })
        .reasons::<TestDrop>(),
    );
    let of_slow = world.clone();
    builder.node(
        NodeSpec::new("slow", "makes sessions", move |wiring| {
            Box::new(Slow { world: of_slow.clone(), queue: SlowQueue::new(wiring.worker) })
        })
        .slow_path()
        .reasons::<TestDrop>(),
    );
    let mut engine = Engine::build(builder).unwrap();
    let tx = (0..workers).map(|_| Box::new(world.clone()) as Box<dyn TxQueue>).collect();
    let id = engine
        .create_interface(InterfaceSpec {
            name: "test0".to_owned(),
            device: Box::new(world.clone()),
            mac: [2, 0, 0, 0, 0, 1],
            mtu_bytes: 1500,
            input: "short".to_owned(),
            link_up: true,
            tx,
        })
        .unwrap();
    let (queue, last) = (Box::new(world.clone()), WorkerId(workers as u16 - 1));
    engine.add_rx_queue(id, "test-input", queue, RxMode::Polling, Some(last)).unwrap();
    engine.set_admin_up(id, true).unwrap();
    (engine, world)
}

fn count(engine: &Engine, reason: &str) -> u64 {
    let counts = engine.reason_counts(true);
    counts.iter().filter(|line| line.reason == reason).map(|line| line.count).sum()
}

/// All that arrives leaves, in the order of each flow; passes that it took.
fn let_all_through(engine: &mut Engine, world: &World, packets: usize) -> usize {
    for passes in 0..200_000 {
        let before = world.sessions.lock().unwrap().len();
        engine.step();
        let made = world.sessions.lock().unwrap().len() - before;
        assert!(made <= PER_PASS, "{made} sessions in one pass");
        if world.left.lock().unwrap().len() >= packets {
            return passes;
        }
    }
    panic!("{} of {packets} left", world.left.lock().unwrap().len());
}

fn check_order(world: &World) {
    let mut last = std::collections::HashMap::new();
    for (flow, number) in world.left.lock().unwrap().iter() {
        if let Some(before) = last.insert(*flow, *number) {
            assert!(before < *number, "{number} of flow {flow} came behind {before}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn packets_of_a_flow_keep_their_order_whether_they_wait_or_not(
        flows in prop::collection::vec(prop_oneof![0..8u16, 0..400u16], 1..3000),
        burst in 1..300usize,
        workers in 1..3usize,
    ) {
        let (mut engine, world) = router(workers);
        for (part, flows) in flows.chunks(burst).enumerate() {
            let numbers = (part * burst..).map(|number| number as u16);
            let packets = flows.iter().zip(numbers).map(|(flow, number)| packet(*flow, number));
            world.arriving.lock().unwrap().extend(packets);
            engine.step();
        }
        let_all_through(&mut engine, &world, flows.len());
        // A packet in the ring between two workers may be overtaken.
        if workers == 1 {
            check_order(&world);
        }
        prop_assert_eq!(world.sessions.lock().unwrap().len(), {
            let mut all = flows.clone();
            all.sort_unstable();
            all.dedup();
            all.len()
        });
        prop_assert_eq!(engine.pool().free(), engine.pool().total());
    }
}

#[test]
fn a_flood_of_new_flows_waits_in_the_device_and_known_ones_go_by() {
    let (mut engine, world) = router(1);
    world.sessions.lock().unwrap().insert(50_000);
    let flood = (0..10_000).map(|flow| packet(flow, 0));
    world.arriving.lock().unwrap().extend(flood);
    for _ in 0..4 {
        engine.step();
    }
    world.arriving.lock().unwrap().push_front(packet(50_000, 7));
    engine.step();
    assert!(world.left.lock().unwrap().contains(&(50_000, 7)), "a known one waited for new ones");
    let passes = let_all_through(&mut engine, &world, 10_001);
    assert!(passes <= 10_000 / PER_PASS, "{passes}");
    let most = *world.waiting_max.lock().unwrap();
    assert!((HELD_FROM..HELD_FROM + VECTOR).contains(&most), "{most} waited");
    assert!(*world.received.lock().unwrap() < passes, "each pass has received");
    assert!(count(&engine, "back-pressure") > 0);
    assert_eq!(count(&engine, "congestion"), 0);
    assert_eq!(engine.pool().free(), engine.pool().total());
}

#[test]
fn what_gets_no_session_dies_counted_while_it_waits_too() {
    let (mut engine, world) = router(1);
    world.arriving.lock().unwrap().extend((0..200).map(|n| packet(u16::MAX - n % 100, n)));
    for pass in 0..20 {
        engine.step();
        let decided = *world.decided.lock().unwrap();
        assert!(decided <= (PER_PASS + 1) * (pass + 1), "{decided} in {pass} passes");
    }
    assert_eq!(count(&engine, "refused"), 200);
    assert_eq!(engine.pool().free(), engine.pool().total());
}

#[test]
fn another_worker_waits_for_the_ring_and_for_an_owner_that_has_too_many() {
    let (mut engine, world) = router(2);
    world.arriving.lock().unwrap().extend((0..8_000).map(|flow| packet(flow, 0)));
    let_all_through(&mut engine, &world, 8_000);
    assert!(*world.waiting_max.lock().unwrap() <= HELD_FROM + VECTOR);
    assert_eq!(count(&engine, "congestion"), 0);
    assert!(count(&engine, "back-pressure") > 0);
}
