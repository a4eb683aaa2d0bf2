//! What sees packets without deciding about them: observers in front of nodes, watches in arcs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use quiver_core::graph::arc::{DEVICE_INPUT, FeatureSpec, Phase};
use quiver_core::graph::context::Behind;
use quiver_core::graph::drop_reason::DropReason;
use quiver_core::graph::node::{DROP, Never, Reason};
use quiver_core::graph::observer::Observer;
use quiver_core::graph::stage::StageContext;
use quiver_core::{Context, Engine, InterfaceId, NodeId, NodeSpec, Packet, Watch};

use crate::engine::{SteerDrop, arrive, balance, builder, interface, router};

/// Where each packet came in, why it dies, and its bytes.
type Seen = Arc<Mutex<Vec<(InterfaceId, DropReason, Vec<u8>)>>>;

/// Writes down what it sees. Locks are fine in a test.
struct Writer(Seen);

impl Observer for Writer {
    fn see(&mut self, _: &mut Context<'_>, packets: &mut [Packet]) {
        let seen = packets.iter().map(|p| (p.rx, p.handed_over(), p.bytes().to_vec()));
        self.0.lock().unwrap().extend(seen);
    }
}

fn observe(engine: &mut Engine, seen: &Seen) {
    engine.observe(DROP, |_| Some(Box::new(Writer(seen.clone())))).unwrap();
}

#[test]
fn an_observer_sees_each_dead_packet_with_its_reason_while_it_is_there() {
    let (mut engine, first, second) = router();
    let (seen, later) = (Seen::default(), Seen::default());
    observe(&mut engine, &seen);
    arrive(&first, (0..100_u8).map(|i| vec![if i % 10 == 0 { 0xff } else { 1 }, i]));
    engine.step();
    observe(&mut engine, &later);
    arrive(&first, [vec![0xff, 200]]);
    engine.step();
    engine.observe(DROP, |_| None).unwrap();
    arrive(&first, [vec![0xff, 201]]);
    engine.step();
    let reason =
        DropReason { node: engine.node_id("steer").unwrap(), number: SteerDrop::Asked.number() };
    let wanted = |i: u8| (InterfaceId(0), reason, vec![0xff, i]);
    assert_eq!(*seen.lock().unwrap(), (0..10).map(|i| wanted(i * 10)).collect::<Vec<_>>());
    assert_eq!(*later.lock().unwrap(), [wanted(200)]);
    assert_eq!(engine.reason_count(reason.node, reason.number), 12, "they are counted as before");
    assert_eq!(second.left.lock().unwrap().len(), 90);
    balance(&mut engine);
}

#[test]
#[should_panic(expected = "a kernel is observed")]
fn a_kernel_is_not_observed() {
    let (mut engine, ..) = router();
    let output = engine.node_id("test0-output").unwrap();
    let _ = engine.observe(output, |_| None);
}

/// Packets that passed, and those that were looked at.
#[derive(Default)]
struct Counts {
    passed: AtomicU64,
    looked: AtomicU64,
}

/// Looks at the packets of every vector of fewer than 10.
struct LooksAtFew {
    counts: Arc<Counts>,
    id: NodeId,
}

impl Watch for LooksAtFew {
    const NAME: &'static str = "looks-at-few";
    type Reason = Never;
    type InterfaceState = Behind;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> Behind {
        let end = cx.interface(rx).map_or(DROP, |row| row.input);
        cx.behind(DEVICE_INPUT, rx, self.id, end)
    }

    fn behind(behind: Behind) -> Behind {
        behind
    }

    fn passes(&self, _: StageContext<'_>, _: Behind, packets: u64) -> bool {
        let passes = packets >= 10;
        if passes {
            self.counts.passed.fetch_add(packets, Ordering::Relaxed);
        }
        passes
    }

    fn look(&self, _: StageContext<'_>, _: Behind, packet: &Packet) {
        assert_eq!(packet.rx, InterfaceId(0));
        self.counts.looked.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_watch_lets_all_packets_go_on_along_the_arc_whether_it_looks_at_them_or_not() {
    let counts = Arc::new(Counts::default());
    let mut builder = builder(1);
    let own = counts.clone();
    builder.node(NodeSpec::watch("looks at few", move |wiring| LooksAtFew {
        counts: own.clone(),
        id: wiring.id,
    }));
    let (arc, node) = ("device-input", LooksAtFew::NAME);
    builder.feature(FeatureSpec { arc, node, phase: Phase::Options, after: &[] });
    let mut engine = Engine::build(builder).unwrap();
    let (id, first) = interface(&mut engine, "test0");
    let (_, second) = interface(&mut engine, "test1");
    let mut wanted = Vec::new();
    // At the end of the arc, then with features in front and behind.
    for features in [&[node][..], &["mark-1", "mark-2"][..]] {
        for feature in features {
            engine.set_feature(id, "device-input", feature, true).unwrap();
        }
        for count in [300, 3] {
            arrive(&first, (0..count).map(|_| vec![1, 0]));
            while engine.step() > 0 {}
            let mark = if features.len() == 2 { 12 } else { 0 };
            wanted.extend(std::iter::repeat_n(vec![1, mark], count));
        }
    }
    assert_eq!(*second.left.lock().unwrap(), wanted);
    let seen = [&counts.passed, &counts.looked].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(seen, [600, 6]);
    let totals = engine.node_totals(quiver_core::WorkerId(0), engine.node_id(node).unwrap());
    assert_eq!(totals.vectors, 606, "each packet is counted once");
    balance(&mut engine);
}
