//! Packets of one flow keep their order through kernels, however many next nodes a vector has.

use std::sync::{Arc, Mutex};

use quiver_core::clock::Clock;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::graph::node::{Never, Wiring};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::mapping::PageSize;
use quiver_core::worker::Worker;
use quiver_core::{Context, Engine, Frame, InterfaceId, Node, NodeId, NodeSpec, Packet, WorkerId};

/// Next nodes of a vector: more than the driver follows at a time.
const BRANCHES: usize = 12;
/// A vector.
const PACKETS: usize = 256;

/// Sends packets to a branch, by the first byte.
struct Fork([NodeId; BRANCHES]);

/// What has arrived, in order.
struct Arrivals(Arc<Mutex<Vec<[u8; 2]>>>);

impl Stage for Fork {
    const NAME: &'static str = "fork";
    type Reason = Never;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    fn decide(&self, _: StageContext<'_>, (): (), packet: &mut Packet) -> Result<NodeId, Never> {
        Ok(self.0[usize::from(packet.bytes()[0]) % BRANCHES])
    }
}

/// The node of a branch; they differ in name alone.
struct Branch<const N: usize>(NodeId);

impl<const N: usize> Stage for Branch<N> {
    const NAME: &'static str = [
        "branch-0",
        "branch-1",
        "branch-2",
        "branch-3",
        "branch-4",
        "branch-5",
        "branch-6",
        "branch-7",
        "branch-8",
        "branch-9",
        "branch-10",
        "branch-11",
    ][N];
    type Reason = Never;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    fn decide(&self, _: StageContext<'_>, (): (), _: &mut Packet) -> Result<NodeId, Never> {
        Ok(self.0)
    }
}

impl Node for Arrivals {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let mut arrived = self.0.lock().unwrap();
        for packet in frame.drain() {
            arrived.push([packet.bytes()[0], packet.bytes()[1]]);
            cx.buffers.free(packet);
        }
    }
}

fn branch<const N: usize>(builder: &mut GraphBuilder) {
    let make = |wiring: &Wiring<'_>| Branch::<N>(wiring.node("arrivals"));
    builder.node(NodeSpec::stage("goes on", make));
}

fn engine(arrived: &Arc<Mutex<Vec<[u8; 2]>>>) -> Engine {
    let config = EngineConfig {
        worker_cores: vec![0],
        buffers: 4096,
        pages: PageSize::Small,
        ..EngineConfig::default()
    };
    let mut builder = GraphBuilder::new(config, Clock::tsc()).unwrap();
    builder.node(NodeSpec::stage("sends packets to branches", |wiring| {
        Fork(std::array::from_fn(|branch| wiring.node(&format!("branch-{branch}"))))
    }));
    let branches = [branch::<0>, branch::<1>, branch::<2>, branch::<3>, branch::<4>, branch::<5>];
    branches.iter().for_each(|branch| branch(&mut builder));
    let branches = [branch::<6>, branch::<7>, branch::<8>, branch::<9>, branch::<10>, branch::<11>];
    branches.iter().for_each(|branch| branch(&mut builder));
    let arrived = arrived.clone();
    let sink = move |_: &Wiring<'_>| Box::new(Arrivals(arrived.clone())) as Box<dyn Node>;
    builder.node(NodeSpec::new("arrivals", "notes the order", sink));
    Engine::build(builder).unwrap()
}

#[test]
fn packets_of_one_branch_stay_in_order_when_others_fill_the_driver() {
    let arrived = Arc::default();
    let mut engine = engine(&arrived);
    let fork = engine.node_id("fork").unwrap();
    for round in 0..8 {
        // The first packets go to all branches, those behind them to one alone.
        let branch = move |number: usize| {
            if number < 128 { number % BRANCHES } else { BRANCHES - 1 - round % 2 }
        };
        let none = InterfaceId::NONE;
        let all = move |worker: &mut Worker| {
            (0..PACKETS).all(|number| {
                worker.inject(&[branch(number) as u8, number as u8], fork, none, none)
            })
        };
        assert!(engine.call(WorkerId(0), all).unwrap());
        (0..4).for_each(|_| {
            engine.step();
        });
        let arrived = std::mem::take(&mut *arrived.lock().unwrap());
        assert_eq!(arrived.len(), PACKETS, "round {round}");
        for branch in 0..BRANCHES {
            let of: Vec<u8> = arrived
                .iter()
                .filter(|[by, _]| usize::from(*by) == branch)
                .map(|[_, n]| *n)
                .collect();
            assert!(of.is_sorted(), "round {round}, branch {branch}: {of:?}");
        }
    }
    assert_eq!(engine.pool().free(), engine.pool().total());
}
