//! The watchdog: a worker that stalls is named, what waits for it is bounded, others go on, and all
//! is well again afterwards.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quiver_core::clock::Clock;
use quiver_core::control::interfaces::{InterfaceError, InterfaceSpec};
use quiver_core::control::watchdog::{
    Activity, RETIRED_MAX, STRETCHES_MAX, Stalled, WORKER_CALLS_WAITING_MAX,
};
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::memory::epoch::{Epochs, Published};
use quiver_core::memory::mapping::PageSize;
use quiver_core::worker::Worker;
use quiver_core::worker::device::{Device, RxMode, RxQueue, TxQueue};
use quiver_core::{Context, Engine, Frame, InterfaceId, Node, NodeId, NodeSpec, WorkerId};

const STUCK: WorkerId = WorkerId(0);
const WELL: WorkerId = WorkerId(1);

/// Gives one packet for ever, or none.
struct Source {
    sent: Arc<AtomicU64>,
    gives: bool,
}

impl RxQueue for Source {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        if self.gives
            && let Some(mut packet) = cx.buffers.packet()
        {
            if packet.append(&[7; 60], cx.buffers) {
                self.sent.fetch_add(1, Ordering::Relaxed);
            }
            if let Err(packet) = frame.push(packet) {
                cx.buffers.free(packet);
            }
        }
        None
    }
}

struct Sink;

impl TxQueue for Sink {
    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.drain().for_each(|packet| cx.buffers.free(packet));
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

/// Passes packets on to where they die; on the first worker it waits whenever it is told to.
struct Trap {
    order: Arc<Mutex<Option<Receiver<()>>>>,
    drop: NodeId,
}

impl Node for Trap {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let order = if cx.worker == STUCK { self.order.lock().unwrap().take() } else { None };
        if let Some(until) = order {
            let _ = until.recv();
        }
        frame.set_all_next(self.drop);
    }
}

struct Router {
    engine: Engine,
    trap: NodeId,
    order: Arc<Mutex<Option<Receiver<()>>>>,
    received: [Arc<AtomicU64>; 2],
    interface: InterfaceId,
}

/// Two workers, each with a queue of one interface.
fn router() -> Router {
    let mut router = router_before_its_threads();
    router.engine.start_threads().unwrap();
    router
}

fn router_before_its_threads() -> Router {
    let config = EngineConfig {
        worker_cores: vec![0, 1],
        buffers: 2048,
        pages: PageSize::Small,
        ..EngineConfig::default()
    };
    let mut builder = GraphBuilder::new(config, Clock::tsc()).unwrap();
    let order = Arc::new(Mutex::new(None));
    builder.node(NodeSpec::input("test-input", "arrivals"));
    let orders = order.clone();
    builder.node(NodeSpec::new("trap", "waits when told to", move |w| {
        Box::new(Trap { order: orders.clone(), drop: w.node("error-drop") })
    }));
    let mut engine = Engine::build(builder).unwrap();
    let trap = engine.node_id("trap").unwrap();
    let interface = interface(&mut engine, "test0");
    let received: [Arc<AtomicU64>; 2] = Default::default();
    for (index, sent) in received.iter().enumerate() {
        let queue = Box::new(Source { sent: sent.clone(), gives: true });
        let worker = WorkerId(index as u16);
        engine.add_rx_queue(interface, "test-input", queue, RxMode::Polling, Some(worker)).unwrap();
    }
    engine.set_admin_up(interface, true).unwrap();
    engine.set_stall_timeout_ns(100_000_000);
    Router { engine, trap, order, received, interface }
}

fn interface(engine: &mut Engine, name: &str) -> InterfaceId {
    let tx = (0..engine.worker_count()).map(|_| Box::new(Sink) as Box<dyn TxQueue>).collect();
    let spec = InterfaceSpec {
        name: name.to_owned(),
        device: Box::new(TestDevice),
        mac: [2, 0, 0, 0, 0, 1],
        mtu_bytes: 1500,
        input: "trap".to_owned(),
        link_up: true,
        tx,
    };
    engine.create_interface(spec).unwrap()
}

impl Router {
    /// Turn the control loop until `true_now`.
    fn until(&mut self, what: &str, mut true_now: impl FnMut(&mut Router) -> bool) {
        for _ in 0..20_000 {
            self.engine.turn(1);
            if true_now(self) {
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        panic!("in vain: {what}");
    }

    /// Let the first worker stall until the sender is dropped.
    fn stall(&mut self) -> Sender<()> {
        let (release, until) = channel();
        *self.order.lock().unwrap() = Some(until);
        // A busy host may hold the worker elsewhere first, which is a stall of its own.
        let trapped = Activity::Node(self.trap);
        self.until("the stall is named", |r| {
            let health = r.engine.health(STUCK).unwrap();
            health.stalled_ns.is_some() && health.activity == trapped
        });
        release
    }

    /// Packets go on on the second worker.
    fn other_worker_goes_on(&mut self) {
        let before = self.received[1].load(Ordering::Relaxed);
        self.until("traffic goes on", |r| r.received[1].load(Ordering::Relaxed) > before + 100);
    }

    fn recover(&mut self, release: Sender<()>) {
        drop(release);
        self.until("the worker goes on", |r| r.engine.health(STUCK).unwrap().stalled_ns.is_none());
        self.until("what waited is freed", |r| {
            let waiting = r.engine.waiting();
            (waiting.retired, waiting.worker_calls) == (0, 0)
        });
    }
}

#[test]
fn a_worker_that_stalls_is_named_with_the_node_and_said_when_it_goes_on() {
    let mut router = router();
    let release = router.stall();
    let health = router.engine.health(STUCK).unwrap();
    assert_eq!(router.engine.activity_text(health.activity), "in node trap");
    router.other_worker_goes_on();
    assert_eq!(router.engine.health(STUCK).unwrap().stalls, health.stalls, "one stall counts once");
    router.recover(release);
    let after = router.engine.health(STUCK).unwrap();
    assert!(after.stalls >= health.stalls && after.longest_ns >= 100_000_000);
}

#[test]
fn a_worker_that_sleeps_does_not_stall() {
    let mut router = router();
    // Nothing to poll: both workers sleep until something rings.
    router.engine.remove_rx_queues(router.interface).unwrap();
    router.until("both sleep", |r| r.engine.is_asleep(STUCK) && r.engine.is_asleep(WELL));
    router.engine.set_stall_timeout_ns(1);
    for _ in 0..100 {
        router.engine.turn(1);
        for worker in [STUCK, WELL] {
            if router.engine.is_asleep(worker) {
                assert_eq!(router.engine.health(worker).unwrap().activity, Activity::Asleep);
            }
        }
    }
}

#[test]
fn changes_are_refused_when_too_much_waits_for_a_stalled_worker() {
    let mut router = router();
    let release = router.stall();
    let id = router.interface;
    let mut refusal = None;
    for round in 0..3 * RETIRED_MAX as u32 {
        if let Err(error) = router.engine.set_mtu(id, 1000 + round % 2) {
            refusal = Some(error);
            break;
        }
    }
    let Some(InterfaceError::Stalled(Stalled { worker, place, .. })) = &refusal else {
        panic!("{refusal:?}");
    };
    assert_eq!((*worker, place.as_str()), (STUCK, "in node trap"));
    let text = refusal.unwrap().to_string();
    assert!(
        text.starts_with("worker 0 has not finished a pass for ")
            && text.contains("(in node trap)")
    );
    assert_eq!(router.engine.waiting().retired, RETIRED_MAX);
    // What a device says is a fact, not a request: kept, and shown to workers when there is room.
    let mtu_bytes = router.engine.interface(id).unwrap().row().mtu_bytes;
    for up in [false, true, false] {
        router.engine.set_link_up(id, up).unwrap();
    }
    assert_eq!(router.engine.waiting().retired, RETIRED_MAX);
    assert!(!router.engine.interface(id).unwrap().row().up);
    router.other_worker_goes_on();
    router.recover(release);
    router.engine.set_mtu(id, mtu_bytes + 1).unwrap();
    router.engine.set_link_up(id, true).unwrap();
    let before = router.received[0].load(Ordering::Relaxed);
    router.until("both workers have traffic", |r| {
        r.received[0].load(Ordering::Relaxed) > before + 100
    });
}

#[test]
fn a_call_that_was_given_up_is_not_carried_out_later() {
    let mut router = router();
    let release = router.stall();
    let ran = Arc::new(AtomicU64::new(0));
    let count = ran.clone();
    let add = move |_: &mut Worker| count.fetch_add(1, Ordering::Relaxed);
    assert!(router.engine.call(STUCK, add.clone()).is_err());
    // Nothing of an interface goes while one of its queues cannot be taken away.
    let name = "test0";
    assert!(matches!(
        router.engine.delete_interface(router.interface),
        Err(InterfaceError::Stalled(_))
    ));
    assert_eq!(router.engine.interface_id(name), Some(router.interface));
    assert_eq!(router.engine.interface(router.interface).unwrap().rx.len(), 2);
    router.recover(release);
    assert!(router.engine.call(STUCK, add).is_ok());
    assert_eq!(ran.load(Ordering::Relaxed), 1);
    router.engine.delete_interface(router.interface).unwrap();
}

/// Two seconds, which a worker gets before a change is refused.
const PATIENCE_NS: u64 = 2_000_000_000;

#[test]
fn a_change_waits_for_a_worker_that_stalls_and_comes_back() {
    let mut router = router();
    for _ in 0..3 {
        let release = router.stall();
        let later = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            drop(release);
        });
        assert_eq!(router.engine.call(STUCK, |_: &mut Worker| 7), Ok(7));
        later.join().unwrap();
    }
}

#[test]
fn a_refusal_in_the_first_moments_says_for_how_long_the_worker_was_waited_for() {
    let mut router = router_before_its_threads();
    let (release, until) = channel();
    *router.order.lock().unwrap() = Some(until);
    router.engine.start_threads().unwrap();
    let refusal = router.engine.call(STUCK, |_: &mut Worker| ()).unwrap_err();
    assert!(refusal.lasted_ns >= PATIENCE_NS, "{refusal}");
    assert!(!refusal.to_string().contains(" 0.0 s"), "{refusal}");
    // Nobody waits again for one that has been waited for.
    let again = router.engine.call(STUCK, |_: &mut Worker| ()).unwrap_err();
    assert!(!again.passes && again.lasted_ns >= PATIENCE_NS, "{again}");
    router.recover(release);
}

#[test]
fn a_worker_that_finishes_passes_and_does_not_come_to_a_change_is_said_not_to_answer() {
    let mut router = router();
    let slow = |_: &mut Worker| std::thread::sleep(Duration::from_millis(40));
    (0..200).for_each(|_| assert!(router.engine.post(STUCK, slow)));
    let refusal = router.engine.call(STUCK, |_: &mut Worker| ()).unwrap_err();
    assert!(refusal.lasted_ns >= PATIENCE_NS && refusal.passes, "{refusal}");
    assert!(refusal.to_string().starts_with("worker 0 has not answered for "), "{refusal}");
    router.until("it has come to all", |r| r.engine.waiting().worker_calls == 0);
}

#[test]
fn worker_calls_for_a_stalled_worker_are_bounded() {
    let mut router = router();
    let release = router.stall();
    let taken = (0..4 * WORKER_CALLS_WAITING_MAX)
        .filter(|_| router.engine.post(STUCK, |_: &mut Worker| ()))
        .count();
    assert!((WORKER_CALLS_WAITING_MAX..2 * WORKER_CALLS_WAITING_MAX).contains(&taken), "{taken}");
    assert_eq!(router.engine.waiting().worker_calls, WORKER_CALLS_WAITING_MAX);
    assert_eq!(router.engine.make_room().unwrap_err().worker, STUCK);
    assert!(router.engine.post(WELL, |_: &mut Worker| ()), "others have room");
    router.recover(release);
    router.engine.make_room().unwrap();
}

#[test]
fn stretches_of_tables_that_wait_are_bounded_too() {
    let mut router = router();
    let mut context = router.engine.epochs().context();
    context.set(STRETCHES_MAX);
    let release = router.stall();
    assert_eq!(router.engine.make_room().unwrap_err().worker, STUCK);
    // The table frees what it can when it is asked to.
    let shared = Arc::new(Mutex::new(context));
    let hooked = shared.clone();
    router.engine.on_reclaim(move |_| hooked.lock().unwrap().set(STRETCHES_MAX - 1));
    router.engine.make_room().unwrap();
    router.recover(release);
}

#[test]
fn a_router_on_one_thread_never_waits_for_itself() {
    let config = EngineConfig {
        worker_cores: vec![0],
        buffers: 256,
        pages: PageSize::Small,
        ..EngineConfig::default()
    };
    let mut builder = GraphBuilder::new(config, Clock::tsc()).unwrap();
    builder.node(NodeSpec::input("test-input", "arrivals"));
    builder.node(NodeSpec::new("trap", "passes on", |w| {
        Box::new(Trap { order: Arc::default(), drop: w.node("error-drop") })
    }));
    let mut engine = Engine::build(builder).unwrap();
    let id = interface(&mut engine, "test0");
    for round in 0..3 * RETIRED_MAX as u32 {
        engine.set_mtu(id, 1000 + round % 2).unwrap();
    }
    assert!(engine.waiting().retired <= RETIRED_MAX);
}

#[test]
fn what_is_published_waits_for_the_pass_of_each_worker() {
    let epochs = Epochs::new(1);
    let mut reader = epochs.reader(0);
    reader.wake();
    let published = Published::new(&epochs, 0);
    (1..=5).for_each(|value| published.publish(value));
    assert_eq!(epochs.retired(), 5);
    reader.quiescent();
    epochs.collect();
    assert_eq!(epochs.retired(), 0);
}
