//! The limit of visits: whatever sends packets round, they die counted, and no others do.

use quiver_core::clock::Clock;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::graph::builtin::{DONE, NULL, NullDrop};
use quiver_core::graph::node::Never;
use quiver_core::graph::visits::VISITS_MAX;
use quiver_core::memory::mapping::PageSize;
use quiver_core::worker::Worker;
use quiver_core::{Context, Engine, Frame, InterfaceId, Node, NodeId, NodeSpec, Packet, WorkerId};

const BUFFERS: usize = 4096;

/// Packets of 0 go to the other node for ever; others do so often, and have come to their end.
struct Hop(NodeId);

impl Node for Hop {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| {
            Ok::<_, Never>(match packet.bytes_mut().first_chunk_mut() {
                Some([0, _]) | None => self.0,
                Some([1, 0]) => DONE,
                Some([_, left]) => {
                    *left -= 1;
                    self.0
                }
            })
        });
    }
}

/// Packets go on, and a copy of each.
struct Double(NodeId);

impl Node for Double {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        for packet in frame.packets() {
            if let Some(copy) = packet.duplicate(cx.buffers) {
                cx.emit(copy, self.0);
            }
        }
        frame.set_all_next(self.0);
    }
}

/// Every packet is made anew.
struct Renew(NodeId);

impl Node for Renew {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let count = frame.len();
        frame.drain().for_each(|packet| cx.buffers.free(packet));
        for packet in (0..count).filter_map(|_| cx.buffers.packet()).collect::<Vec<_>>() {
            cx.emit(packet, self.0);
        }
    }
}

/// The other worker gets every packet.
struct Toss;

impl Node for Toss {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let other = WorkerId(1 - cx.worker.0);
        for packet in frame.drain().collect::<Vec<_>>() {
            cx.hand_off(packet, other, cx.node).expect("room for so few");
        }
    }
}

/// Keeps packets until it is told to let them go, to itself.
struct Keep(Vec<Packet>);

impl Node for Keep {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        for mut packet in frame.drain() {
            cx.keep_age(&mut packet);
            self.0.push(packet);
        }
    }

    fn as_any(&mut self) -> Option<&mut dyn std::any::Any> {
        Some(self)
    }
}

/// Sends packets to itself, and in the end away.
struct Again {
    own: NodeId,
    turns: u32,
}

impl Node for Again {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| {
            packet.hash += 1;
            Ok::<_, Never>(if packet.hash < self.turns { self.own } else { DONE })
        });
    }
}

/// Pairs of nodes between which packets go to and fro.
const PAIRS: usize = 20;

fn engine(workers: usize) -> Engine {
    let config = EngineConfig {
        worker_cores: (0..workers).collect(),
        buffers: BUFFERS,
        pages: PageSize::Small,
        ..EngineConfig::default()
    };
    let mut builder = GraphBuilder::new(config, Clock::tsc()).unwrap();
    for pair in 0..PAIRS {
        for (own, other) in [("a", "b"), ("b", "a")] {
            let other = format!("hop-{pair}{other}");
            let make = move |wiring: &quiver_core::graph::node::Wiring<'_>| -> Box<dyn Node> {
                Box::new(Hop(wiring.node(&other)))
            };
            builder.node(NodeSpec::new(format!("hop-{pair}{own}"), "hops", make));
        }
    }
    // A round of ten nodes.
    builder.node(NodeSpec::new("double", "doubles", |w| Box::new(Double(w.node("round-0")))));
    for place in 0..9 {
        let next = if place == 8 { "double".to_owned() } else { format!("round-{}", place + 1) };
        let make = move |wiring: &quiver_core::graph::node::Wiring<'_>| -> Box<dyn Node> {
            Box::new(Hop(wiring.node(&next)))
        };
        builder.node(NodeSpec::new(format!("round-{place}"), "goes on", make));
    }
    builder.node(NodeSpec::new("renew-a", "renews", |w| Box::new(Renew(w.node("renew-b")))));
    builder.node(NodeSpec::new("renew-b", "renews", |w| Box::new(Renew(w.node("renew-a")))));
    builder.node(NodeSpec::new("toss", "hands over", |_| Box::new(Toss)));
    builder.node(NodeSpec::new("keep", "keeps", |_| Box::new(Keep(Vec::new()))));
    for (name, turns) in [("again", 4000), ("for-ever", u32::MAX)] {
        builder.node(NodeSpec::new(name, "again", move |w| Box::new(Again { own: w.id, turns })));
    }
    Engine::build(builder).unwrap()
}

fn inject(engine: &mut Engine, node: &str, count: usize, bytes: [u8; 2]) {
    let next = engine.node_id(node).unwrap();
    let none = InterfaceId::NONE;
    let all =
        move |worker: &mut Worker| (0..count).all(|_| worker.inject(&bytes, next, none, none));
    assert!(engine.call(WorkerId(0), all).unwrap());
}

fn died(engine: &Engine) -> u64 {
    engine.reason_count(NULL, NullDrop::TooManyVisits as u16)
}

fn visits(engine: &Engine, node: &str) -> u64 {
    let id = engine.node_id(node).unwrap();
    (0..engine.worker_count())
        .map(|worker| engine.node_totals(WorkerId(worker as u16), id).vectors)
        .sum()
}

fn steps(engine: &mut Engine, count: u16) {
    for _ in 0..count {
        engine.step();
    }
}

fn balance(engine: &mut Engine) {
    steps(engine, 4);
    assert_eq!(engine.pool().free(), engine.pool().total(), "allocated = free + in flight");
}

#[test]
fn what_two_nodes_send_to_each_other_dies_after_so_many_visits() {
    let mut engine = engine(1);
    for (round, count) in [1, 255, 256, 257, 1000].into_iter().enumerate() {
        let (deaths, before) =
            (died(&engine), visits(&engine, "hop-0a") + visits(&engine, "hop-0b"));
        inject(&mut engine, "hop-0a", count, [0; 2]);
        engine.step();
        assert_eq!(died(&engine) - deaths, count as u64, "round {round}");
        let made = visits(&engine, "hop-0a") + visits(&engine, "hop-0b") - before;
        assert_eq!(made, count as u64 * u64::from(VISITS_MAX));
        balance(&mut engine);
    }
}

#[test]
fn a_packet_that_shares_vectors_with_an_old_one_lives() {
    let mut engine = engine(1);
    let pairs = 0..PAIRS;
    // So many vectors run in a pass at most; the rest are old when young packets join them.
    pairs.clone().for_each(|pair| inject(&mut engine, &format!("hop-{pair}a"), 1, [0; 2]));
    engine.step();
    assert!(died(&engine) < PAIRS as u64, "some are still under way");
    for pair in pairs {
        ["a", "b"]
            .iter()
            .for_each(|side| inject(&mut engine, &format!("hop-{pair}{side}"), 5, [1, 100]));
    }
    steps(&mut engine, 4);
    assert_eq!(died(&engine), PAIRS as u64);
    let done = engine.node_totals(WorkerId(0), DONE).vectors;
    assert_eq!(done, 2 * 5 * PAIRS as u64);
    balance(&mut engine);
}

#[test]
fn what_workers_hand_to_each_other_dies() {
    let mut engine = engine(2);
    inject(&mut engine, "toss", 100, [0; 2]);
    steps(&mut engine, 2 * VISITS_MAX);
    assert_eq!(died(&engine), 100);
    assert_eq!(visits(&engine, "toss"), 100 * u64::from(VISITS_MAX));
    balance(&mut engine);
}

#[test]
fn packets_that_double_on_every_round_end() {
    let mut engine = engine(1);
    inject(&mut engine, "double", 1, [0; 2]);
    steps(&mut engine, 100);
    assert!(died(&engine) > 0);
    let rounds = visits(&engine, "double");
    assert!(rounds < 4 * BUFFERS as u64, "{rounds} packets were copied");
    balance(&mut engine);
}

#[test]
fn what_is_made_of_an_old_packet_is_old() {
    let mut engine = engine(1);
    inject(&mut engine, "renew-a", 100, [0; 2]);
    engine.step();
    assert_eq!(died(&engine), 100);
    balance(&mut engine);
}

#[test]
fn a_packet_does_not_grow_younger_while_it_is_kept() {
    let mut engine = engine(1);
    let keep = engine.node_id("keep").unwrap();
    inject(&mut engine, "keep", 7, [0; 2]);
    for turn in 0..=VISITS_MAX {
        engine.step();
        assert_eq!(died(&engine), if turn < VISITS_MAX { 0 } else { 7 }, "{turn}");
        let release = move |worker: &mut Worker| {
            worker.visit(keep, |node: &mut Keep, cx| {
                node.0.drain(..).for_each(|packet| cx.emit(packet, keep));
            })
        };
        engine.call(WorkerId(0), release).unwrap().expect("built in");
    }
    balance(&mut engine);
}

#[test]
fn a_node_may_go_on_with_a_packet_for_long_but_not_for_ever() {
    let mut engine = engine(1);
    inject(&mut engine, "again", 10, [0; 2]);
    steps(&mut engine, 4);
    assert_eq!((died(&engine), engine.node_totals(WorkerId(0), DONE).vectors), (0, 10));
    inject(&mut engine, "for-ever", 10, [0; 2]);
    steps(&mut engine, 20);
    assert_eq!(died(&engine), 10);
    balance(&mut engine);
}
