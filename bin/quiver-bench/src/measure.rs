//! One path measured: the graph and the bare loop take turns over the same packets and tables, and
//! the medians are told.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use quiver_control::{Collected, Commands, Registry};
use quiver_core::clock::Clock;
use quiver_core::control::interfaces::InterfaceSpec;
use quiver_core::control::statistics::InterfaceTotals;
use quiver_core::cpu::{Variant, clocks};
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::graph::frame::FRAME_PACKETS_MAX;
use quiver_core::graph::node::NodeSpec;
use quiver_core::memory::buffer::{BufferCache, BufferPool};
use quiver_core::memory::mapping::PageSize;
use quiver_core::worker::device::{RxMode, TxQueue};
use quiver_core::{Engine, Frame, InterfaceId, NodeId, WorkerId};
use quiver_tables::mac::StampMinutes;

use crate::bare::{self, Counted};
use crate::device::{BenchDevice, COLD_BUFFERS, Ender, Maker, Primer, Sink, Source, rotate};
use crate::paths::{Path, Routes, Tagging, Work};
use crate::population::OUR_MAC;

/// Packets that wait in the router, as in a shaper, leave within so long.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Vectors in one round of either.
const VECTORS: usize = 2000;
/// Passes beyond one for each packet before the rest is given up.
const PATIENCE: u64 = 1_000;
/// The node that the packets come from; its clocks are the benchmark's own and are left out.
pub const INPUT: &str = "bench-input";

/// What was measured.
pub struct Measured {
    /// The path's name.
    pub name: String,
    /// Clocks per packet of all nodes together, median of rounds.
    pub clocks: f64,
    /// The smallest and the largest round.
    pub range: (f64, f64),
    /// Clocks per packet of the bare loop, median of rounds.
    pub bare: f64,
    /// Clocks per packet by node, from the median round.
    pub nodes: Vec<(String, f64)>,
}

/// How the router is to run.
#[derive(Clone, Copy)]
pub struct Form {
    /// Loops and look-ups.
    pub variant: Variant,
    /// In one pass where nothing stands between nodes.
    pub block_driver: bool,
}

/// Measure a path.
pub fn path(path: &Path, rounds: usize, form: Form) -> Result<Measured> {
    let mut router = Router::new(path, form)?;
    let mut bare = Bare::new(path, &router.engine)?;
    router.pass_first();
    router.round(); // both warm up
    bare.round(&router.engine);
    let (mut graph, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        graph.push(router.round());
        floor.push(bare.round(&router.engine));
    }
    router.check(path)?;
    if bare.counted.odd > 0 {
        return Err(anyhow!("{}: the bare loop saw {} odd packets", path.name, bare.counted.odd));
    }
    graph.sort_by(|a, b| a.total.total_cmp(&b.total));
    floor.sort_by(f64::total_cmp);
    let range = (graph[0].total, graph[graph.len() - 1].total);
    let bare = floor[floor.len() / 2];
    let median = graph.swap_remove(graph.len() / 2);
    Ok(Measured { name: path.name.clone(), clocks: median.total, range, bare, nodes: median.nodes })
}

/// What the first packets of sessions came to.
pub struct FirstPackets {
    /// Packets, each of which makes a session.
    pub sessions: usize,
    /// Clocks per packet of all nodes together.
    pub clocks: f64,
    /// Clocks of each pass over a vector of them, with the making of its packets, in rising order.
    pub passes: Vec<u64>,
}

/// Measure the packets of a path that come once; nothing where it has none, or not a vector full.
pub fn first_packets(path: &Path, form: Form) -> Result<Option<FirstPackets>> {
    let mut router = Router::new(path, form)?;
    let vectors = router.once / FRAME_PACKETS_MAX;
    if vectors == 0 {
        return Ok(None);
    }
    router.engine.clear_runtime();
    let mut passes = Vec::new();
    let sessions = (vectors * FRAME_PACKETS_MAX) as u64;
    router.pass_until(sessions, |clocks| passes.push(clocks));
    passes.sort_unstable();
    let clocks = router.measured().total;
    router.check(path)?;
    Ok(Some(FirstPackets { sessions: vectors * FRAME_PACKETS_MAX, clocks, passes }))
}

/// Clocks of the graph over a number of vectors, for each packet.
pub struct Round {
    /// Of all nodes.
    pub total: f64,
    nodes: Vec<(String, f64)>,
}

/// A router whose packets come from the benchmark.
pub struct Router {
    /// Packets that come once.
    once: usize,
    pub engine: Engine,
    commands: std::rc::Rc<std::cell::RefCell<Commands<Engine>>>,
}

impl Router {
    fn new(path: &Path, form: Form) -> Result<Router> {
        let mut router = Router::empty(form, vec![0], buffers(path))?;
        let (mut maker, mut ender) = (maker(path), Ender::default());
        if path.cold {
            rotate(&mut maker, &mut ender, &mut router.engine.pool().cache());
        }
        let [first, second] = router.interfaces(ender)?;
        router.once = maker.once();
        let queue = Box::new(Source(maker));
        router.configure(path)?;
        if let Some(primer) = path.primer {
            let primer = Primer::new(primer.template());
            let packets = primer.packets();
            router.engine.add_rx_queue(second, INPUT, Box::new(primer), RxMode::Polling, None)?;
            router.pass_until(packets, |_| ());
        }
        router.engine.add_rx_queue(first, INPUT, queue, RxMode::Polling, None)?;
        Ok(router)
    }

    /// A router with workers on these cores, without interfaces.
    pub fn empty(form: Form, worker_cores: Vec<usize>, buffers: usize) -> Result<Router> {
        let config = EngineConfig {
            worker_cores,
            buffers,
            pages: PageSize::Best,
            variant: form.variant,
            block_driver: form.block_driver,
            ..EngineConfig::default()
        };
        let mut registry = Registry::new(GraphBuilder::new(config, Clock::tsc())?);
        registry.graph.node(NodeSpec::input(INPUT, "The benchmark's packets"));
        quiver_control::commands::register(&mut registry);
        quiver_acl::register(&mut registry);
        quiver_bfd::register(&mut registry);
        quiver_bond::register(&mut registry);
        quiver_bridge::register(&mut registry);
        quiver_ethernet::register(&mut registry);
        quiver_ip::register(&mut registry);
        quiver_urpf::register(&mut registry);
        quiver_cop::register(&mut registry);
        quiver_det44::register(&mut registry);
        quiver_nat44::register(&mut registry);
        quiver_nat64::register(&mut registry);
        quiver_nat66::register(&mut registry);
        quiver_map::register(&mut registry);
        quiver_npt66::register(&mut registry);
        quiver_pbr::register(&mut registry);
        quiver_sflow::register(&mut registry);
        quiver_flowprobe::register(&mut registry);
        quiver_policer::register(&mut registry);
        quiver_qos::register(&mut registry);
        quiver_classify::register(&mut registry);
        quiver_shaper::register(&mut registry);
        quiver_srv6::register(&mut registry);
        quiver_gre::register(&mut registry);
        quiver_ipip::register(&mut registry);
        quiver_geneve::register(&mut registry);
        quiver_lisp::register(&mut registry);
        quiver_mpls::register(&mut registry);
        quiver_vxlan::register(&mut registry);
        quiver_reassembly::register(&mut registry);
        quiver_fused::register(&mut registry);
        let (engine, commands) = registry.build()?;
        Ok(Router { once: 0, engine, commands })
    }

    /// Make the interfaces; those that packets come in by. By the second of the three they go.
    pub fn interfaces(&mut self, ender: Ender) -> Result<[InterfaceId; 2]> {
        let first = interface(&mut self.engine, "bench0", Ender::default())?;
        interface(&mut self.engine, "bench1", ender)?;
        // A second way out, of bonds, or what comes before all else.
        let second = interface(&mut self.engine, "bench2", Ender::default())?;
        Ok([first, second])
    }

    pub fn configure(&mut self, path: &Path) -> Result<()> {
        for line in path.commands() {
            let answer = self.commands.borrow().execute(&mut self.engine, &line);
            answer.map_err(|refusal| anyhow!("{}: {line}: {refusal}", path.name))?;
        }
        for routes in path.routes.into_iter().flat_map(Routes::files) {
            let file =
                std::env::temp_dir().join(format!("quiver-bench-{}.cli", std::process::id()));
            std::fs::write(&file, routes).context("the file of routes")?;
            let applied = {
                let commands = self.commands.borrow();
                commands.execute_file(&mut self.engine, &file, &mut Collected::default())
            };
            let _ = std::fs::remove_file(&file);
            applied.map_err(|refusal| anyhow!("{}: {refusal}", path.name))?;
        }
        Ok(())
    }

    /// Let so many vectors pass.
    fn pass(&mut self, vectors: usize) {
        if let Some(worker) = self.engine.inline_worker(WorkerId(0)) {
            for _ in 0..vectors {
                worker.pass();
            }
        }
    }

    /// Let the packets pass that come once.
    fn pass_first(&mut self) {
        self.pass_until(self.once as u64, |_| ());
    }

    /// Let packets pass until so many more have come and all have left; `each` is told the clocks
    /// of each pass.
    fn pass_until(&mut self, packets: u64, mut each: impl FnMut(u64)) {
        let wanted = self.packets().0 + packets;
        for _ in 0..packets + PATIENCE {
            let (received, sent) = self.packets();
            if received >= wanted && sent >= received {
                break;
            }
            let start = clocks();
            self.pass(1);
            each(clocks() - start);
        }
    }

    /// Packets that have come in and that have left.
    pub fn packets(&self) -> (u64, u64) {
        let total = |names: [&str; 2], count: fn(InterfaceTotals) -> u64| -> u64 {
            let ids = names.iter().filter_map(|name| self.engine.interface_id(name));
            ids.map(|id| count(self.engine.interface_totals(id))).sum()
        };
        let received = total(["bench0", "bench2"], |totals| totals.rx_packets);
        (received, total(["bench1", "bench2"], |totals| totals.tx_packets))
    }

    fn round(&mut self) -> Round {
        self.engine.clear_runtime();
        self.pass(VECTORS);
        self.measured()
    }

    /// What nodes took for each packet since their clocks were cleared.
    fn measured(&self) -> Round {
        self.measured_on(WorkerId(0))
    }

    /// As [`measured`](Self::measured), of any worker.
    pub fn measured_on(&self, worker: WorkerId) -> Round {
        let ids: Vec<NodeId> = self.engine.all_nodes().map(|(id, _)| id).collect();
        let input = self.engine.node_id(INPUT).unwrap_or(NodeId(0));
        let packets = self.engine.node_totals(worker, input).vectors.max(1) as f64;
        let nodes: Vec<(String, f64)> = ids
            .into_iter()
            .filter(|id| *id != input)
            .map(|id| (id, self.engine.node_totals(worker, id)))
            .filter(|(_, totals)| totals.vectors > 0)
            .map(|(id, totals)| (self.engine.node_name(id), totals.clocks as f64 / packets))
            .collect();
        Round { total: nodes.iter().map(|(_, clocks)| clocks).sum(), nodes }
    }

    /// Every packet must have left by the second or third interface, or leave soon where some wait;
    /// a path that drops measures nothing.
    fn check(&mut self, path: &Path) -> Result<()> {
        let (mut received, mut sent) = self.packets();
        if received != sent {
            let first = self.engine.interface_id("bench0").ok_or_else(|| anyhow!("no bench0"))?;
            self.engine.remove_rx_queues(first)?;
            let begun = Instant::now();
            while received != sent && begun.elapsed() < WAIT_MAX {
                self.pass(1);
                (received, sent) = self.packets();
            }
        }
        if received != sent {
            let reasons: Vec<String> = self
                .engine
                .reason_counts(false)
                .iter()
                .map(|r| format!("{} {} {}", r.count, r.node, r.reason))
                .collect();
            return Err(anyhow!(
                "{}: {received} in, {sent} out: {}",
                path.name,
                reasons.join(", ")
            ));
        }
        Ok(())
    }
}

/// Buffers of a path's router.
fn buffers(path: &Path) -> usize {
    if path.cold { COLD_BUFFERS + 4096 } else { 4096 }
}

/// What makes a path's packets.
pub fn maker(path: &Path) -> Maker {
    Maker::new(path.packets.template(), path.length, path.tagging.bytes())
}

/// Its packets end with `ender` on the first worker.
fn interface(engine: &mut Engine, name: &str, ender: Ender) -> Result<InterfaceId> {
    let others = (1..engine.worker_count()).map(|_| Ender::default());
    let tx = std::iter::once(ender).chain(others);
    Ok(engine.create_interface(InterfaceSpec {
        name: name.to_owned(),
        device: Box::new(BenchDevice),
        mac: OUR_MAC,
        mtu_bytes: 1500,
        input: "ethernet-input".to_owned(),
        link_up: true,
        tx: tx.map(|ender| Box::new(Sink(ender)) as Box<dyn TxQueue>).collect(),
    })?)
}

/// The bare loop, with buffers of its own.
struct Bare {
    work: Work,
    tagging: Tagging,
    cache: BufferCache,
    maker: Maker,
    ender: Ender,
    frame: Box<Frame>,
    counted: Counted,
    bridge: Option<bare::Bridge>,
}

impl Bare {
    fn new(path: &Path, engine: &Engine) -> Result<Bare> {
        let config = engine.config();
        let pool = BufferPool::new(config.buffers, config.buffer_data_bytes, config.pages)?;
        let mut cache = pool.cache();
        // The other bare loops read no tags: their frames have none.
        let tagging = match path.work {
            Work::Ip4 | Work::Cross => path.tagging,
            _ => Tagging::Untagged,
        };
        let (mut maker, mut ender) =
            (Maker::new(path.packets.template(), path.length, tagging.bytes()), Ender::default());
        if path.cold {
            rotate(&mut maker, &mut ender, &mut cache);
        }
        let (frame, counted, bridge) =
            (Frame::new(), Counted::default(), Bare::bridge(engine, path.work));
        Ok(Bare { work: path.work, tagging, cache, maker, ender, frame, counted, bridge })
    }

    /// The bridge domain of the path, if it has one; frames come in by its first port, or from the
    /// router.
    fn bridge(engine: &Engine, work: Work) -> Option<bare::Bridge> {
        let bridges = engine.get::<quiver_bridge::Bridges>()?;
        let (port, _) =
            bridges.ports().iter().find(|(_, port)| port.is_bvi() == (work == Work::Ip4Bridge))?;
        let (table, now) = (bridges.macs.table(), StampMinutes::from_ns(engine.now_ns()));
        let domain = bridges.domains().values().next()?.index;
        Some(bare::Bridge { seen: table.expected(*port, now), domain, table })
    }

    /// Clocks per packet of one round.
    fn round(&mut self, engine: &Engine) -> f64 {
        let Some(tables) = engine.get::<quiver_ip::IpState>().map(quiver_ip::IpState::tables)
        else {
            return 0.0;
        };
        let (mut taken, mut packets) = (0, 0);
        for _ in 0..VECTORS {
            self.maker.fill(&mut self.cache, &mut self.frame);
            packets += self.frame.len();
            let start = clocks();
            let (work, tagging, variant) = (self.work, self.tagging, engine.variant());
            let (frame, bridge, counted) =
                (&mut self.frame, self.bridge.as_ref(), &mut self.counted);
            variant.run(bare::Loop { work, tagging, variant, frame, tables, bridge, counted });
            self.ender.take(&mut self.cache, &mut self.frame);
            taken += clocks() - start;
        }
        taken as f64 / packets.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What packets from inside make, all packets from both sides find.
    #[test]
    fn packets_of_a_providers_translators_all_leave() {
        let form = Form { variant: Variant::best(), block_driver: true };
        // A million sessions are too many for a build without optimisation.
        let few = |path: &Path| !path.name.contains("-1m-");
        for path in crate::provider_paths::all().iter().filter(|path| few(path)) {
            let mut router = Router::new(path, form).expect("a good path");
            router.pass_first();
            router.pass(100);
            router.check(path).expect("all leave");
            let mut bare = Bare::new(path, &router.engine).expect("a bare loop");
            bare.maker.fill(&mut bare.cache, &mut bare.frame);
            assert_eq!(bare.frame.len(), FRAME_PACKETS_MAX, "{}", path.name);
        }
    }
}
