//! Packets of one flow keep their order through kernels, however many ways a vector goes.

use std::sync::{Arc, Mutex};

use quiver_core::clock::Clock;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::graph::node::{Never, Wiring};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::mapping::PageSize;
use quiver_core::worker::Worker;
use quiver_core::{Context, Engine, Frame, InterfaceId, Node, NodeId, NodeSpec, Packet, WorkerId};

/// Ways of packets: more than the driver goes at a time.
const WAYS: usize = 12;
/// A vector.
const PACKETS: usize = 256;

/// Sends packets their ways, by the first byte.
struct Fork([NodeId; WAYS]);

/// What has arrived, in order.
struct Arrivals(Arc<Mutex<Vec<[u8; 2]>>>);

impl Stage for Fork {
    const NAME: &'static str = "fork";
    type Reason = Never;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    fn decide(&self, _: StageContext<'_>, (): (), packet: &mut Packet) -> Result<NodeId, Never> {
        Ok(self.0[usize::from(packet.bytes()[0]) % WAYS])
    }
}

/// The node on a way; they differ in name alone.
struct Way<const N: usize>(NodeId);

impl<const N: usize> Stage for Way<N> {
    const NAME: &'static str = [
        "way-0", "way-1", "way-2", "way-3", "way-4", "way-5", "way-6", "way-7", "way-8", "way-9",
        "way-10", "way-11",
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

fn way<const N: usize>(builder: &mut GraphBuilder) {
    let make = |wiring: &Wiring<'_>| Way::<N>(wiring.node("arrivals"));
    builder.node(NodeSpec::stage("on the way", make));
}

fn engine(arrived: &Arc<Mutex<Vec<[u8; 2]>>>) -> Engine {
    let config = EngineConfig {
        worker_cores: vec![0],
        buffers: 4096,
        pages: PageSize::Small,
        ..EngineConfig::default()
    };
    let mut builder = GraphBuilder::new(config, Clock::tsc()).unwrap();
    builder.node(NodeSpec::stage("sends packets their ways", |wiring| {
        Fork(std::array::from_fn(|way| wiring.node(&format!("way-{way}"))))
    }));
    let ways = [way::<0>, way::<1>, way::<2>, way::<3>, way::<4>, way::<5>];
    ways.iter().for_each(|way| way(&mut builder));
    let ways = [way::<6>, way::<7>, way::<8>, way::<9>, way::<10>, way::<11>];
    ways.iter().for_each(|way| way(&mut builder));
    let arrived = arrived.clone();
    let sink = move |_: &Wiring<'_>| Box::new(Arrivals(arrived.clone())) as Box<dyn Node>;
    builder.node(NodeSpec::new("arrivals", "notes the order", sink));
    Engine::build(builder).unwrap()
}

#[test]
fn what_goes_one_way_stays_in_order_when_others_fill_the_driver() {
    let arrived = Arc::default();
    let mut engine = engine(&arrived);
    let fork = engine.node_id("fork").unwrap();
    for round in 0..8 {
        // The first packets go all ways, those behind them the last one alone.
        let way =
            move |number: usize| if number < 128 { number % WAYS } else { WAYS - 1 - round % 2 };
        let none = InterfaceId::NONE;
        let all = move |worker: &mut Worker| {
            (0..PACKETS)
                .all(|number| worker.inject(&[way(number) as u8, number as u8], fork, none, none))
        };
        assert!(engine.call(WorkerId(0), all).unwrap());
        (0..4).for_each(|_| {
            engine.step();
        });
        let arrived = std::mem::take(&mut *arrived.lock().unwrap());
        assert_eq!(arrived.len(), PACKETS, "round {round}");
        for way in 0..WAYS {
            let of: Vec<u8> =
                arrived.iter().filter(|[by, _]| usize::from(*by) == way).map(|[_, n]| *n).collect();
            assert!(of.is_sorted(), "round {round}, way {way}: {of:?}");
        }
    }
    assert_eq!(engine.pool().free(), engine.pool().total());
}
