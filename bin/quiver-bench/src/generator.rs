//! The traffic generator's own paths: clocks per frame for making and sending it, and for receiving
//! it, beside a bare loop that does no more than copy a frame or look at its stamp.

use std::any::Any;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use quiver_control::Registry;
use quiver_core::clock::Clock;
use quiver_core::control::interfaces::InterfaceSpec;
use quiver_core::cpu::{Body, clocks};
use quiver_core::graph::builder::EngineConfig;
use quiver_core::graph::frame::FRAME_PACKETS_MAX;
use quiver_core::memory::buffer::{BufferCache, BufferPool};
use quiver_core::memory::mapping::PageSize;
use quiver_core::memory::ring::{Consumer, Producer, ring};
use quiver_core::worker::device::{Device, RxMode, RxQueue, TxQueue};
use quiver_core::{Context, Engine, Frame, InterfaceId, NodeId, NodeSpec, Packet, WorkerId};
use quiver_tg_measuring::generator::Generator;
use quiver_tg_measuring::request::{Measure, Rate};
use quiver_tg_measuring::surroundings::Surroundings;
use quiver_tg_traffic::profile::{Port, Profile};
use quiver_tg_traffic::stamp::{STAMP_BYTES, Stamp};

use crate::measure::{Form, Measured};

/// Passes of the worker in one round of the generator, and vectors in one of the bare loop.
const PASSES: usize = 4000;
/// Packets that the wire between the two ports holds.
const WIRE_FRAMES: usize = 4096;
/// Longer than any benchmark runs, seconds.
const ENDLESS_S: f64 = 3600.0;

/// Which nodes of the generator a path is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Sending,
    Receiving,
    Both,
}

/// One path.
pub struct GeneratorPath {
    /// Its name.
    pub name: &'static str,
    frame: &'static str,
    destination: &'static str,
    latency: &'static str,
    part: Part,
}

const ONE: &str = "20.0.0.1";
const MILLION: &str = "{first: 20.0.0.0, count: 1000000, order: random}";

/// All of them.
pub const ALL: [GeneratorPath; 8] = [
    of("tg-send-1", "64", ONE, "off", Part::Sending),
    of("tg-send-1m-random", "64", MILLION, "off", Part::Sending),
    of("tg-send-imix", "imix", ONE, "off", Part::Sending),
    of("tg-send-sampled", "64", ONE, "sampled", Part::Sending),
    of("tg-receive", "64", ONE, "off", Part::Receiving),
    of("tg-receive-latency", "64", ONE, "every", Part::Receiving),
    of("tg-loop-1", "64", ONE, "sampled", Part::Both),
    of("tg-loop-1m-random", "64", MILLION, "sampled", Part::Both),
];

const fn of(
    name: &'static str,
    frame: &'static str,
    destination: &'static str,
    latency: &'static str,
    part: Part,
) -> GeneratorPath {
    GeneratorPath { name, frame, destination, latency, part }
}

impl GeneratorPath {
    fn profile(&self) -> Result<Profile> {
        let GeneratorPath { frame, destination, latency, .. } = self;
        let text = format!(
            "self_test: false\nlatency: {latency}\nports: [{{tap: {{name: a}}}}, \
             {{tap: {{name: b}}}}]\nstreams:\n  - {{from: 0, to: 1, frame: {frame}, layers: \
             {{ethernet: {{dst: \"02:fe:00:00:00:01\"}}, ip4: \
             {{src: 10.0.0.2, dst: {destination}}}, udp: {{}}}}}}\n"
        );
        Ok(Profile::parse(&text, Path::new(self.name))?)
    }

    fn holds(&self, node: &str) -> bool {
        let receives = node.starts_with("tg-rx");
        match self.part {
            Part::Sending => !receives,
            Part::Receiving => receives,
            Part::Both => true,
        }
    }
}

/// What a port puts packets into, and what it takes them from.
type End = (Option<Producer<Packet>>, Option<Consumer<Packet>>);

/// Two ports joined by a wire on which packets are handed over as they are.
struct Wire {
    ends: Vec<End>,
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

struct Out(Option<Producer<Packet>>);

impl TxQueue for Out {
    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let mut packets = frame.drain();
        if let Some(wire) = &mut self.0 {
            wire.put_all(&mut packets);
        }
        packets.for_each(|packet| cx.buffers.free(packet));
    }
}

struct In(Option<Consumer<Packet>>);

impl RxQueue for In {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        let wire = self.0.as_mut()?;
        wire.take_up_to(frame.room(), |packet| {
            if let Err(packet) = frame.push(packet) {
                cx.buffers.free(packet);
            }
        });
        None
    }
}

impl Surroundings for Wire {
    fn register(&mut self, registry: &mut Registry) {
        registry.graph.node(NodeSpec::input("wire-input", "Frames from the benchmark's wire"));
    }

    fn make_port(
        &mut self,
        engine: &mut Engine,
        number: usize,
        _: &Port,
        input: &str,
    ) -> Result<InterfaceId> {
        let (put, take) = std::mem::take(self.ends.get_mut(number).context("two ports")?);
        let id = engine.create_interface(InterfaceSpec {
            name: format!("wire{number}"),
            device: Box::new(Plug),
            mac: [2, 0, 0, 0, 0, number as u8],
            mtu_bytes: 1500,
            input: input.to_owned(),
            link_up: true,
            tx: vec![Box::new(Out(put))],
        })?;
        engine.add_rx_queue(id, "wire-input", Box::new(In(take)), RxMode::Polling, None)?;
        Ok(id)
    }

    fn wait(&mut self, engine: &mut Engine, at_most_ns: u64) {
        let until_ns = engine.now_ns() + at_most_ns;
        while engine.now_ns() < until_ns {
            engine.step();
        }
    }
}

/// Measure a path.
pub fn path(path: &GeneratorPath, rounds: usize, form: Form) -> Result<Measured> {
    let (put, take) = ring(WIRE_FRAMES);
    let wire = Wire { ends: vec![(Some(put), None), (None, Some(take))] };
    let config = EngineConfig {
        worker_cores: vec![0],
        buffers: 2 * WIRE_FRAMES,
        pages: PageSize::Best,
        variant: form.variant,
        block_driver: form.block_driver,
        ..EngineConfig::default()
    };
    let mut generator = Generator::new(&path.profile()?, config, Clock::tsc(), wire)?;
    generator.wait_for_links()?;
    generator.begin(&Measure { warmup_s: 0.0, ..Measure::new(Rate::Max, ENDLESS_S) })?;
    let mut bare = Bare::new(path, form)?;
    round(&mut generator, path)?; // both warm up
    bare.round();
    let (mut graph, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        graph.push(round(&mut generator, path)?);
        floor.push(bare.round());
    }
    generator.abort();
    graph.sort_by(|a, b| a.0.total_cmp(&b.0));
    floor.sort_by(f64::total_cmp);
    let range = (graph[0].0, graph[graph.len() - 1].0);
    let (clocks, nodes) = graph.swap_remove(graph.len() / 2);
    Ok(Measured { name: path.name.to_owned(), clocks, range, bare: floor[floor.len() / 2], nodes })
}

/// Clocks per frame of the path's nodes, together and each.
fn round(
    generator: &mut Generator<Wire>,
    path: &GeneratorPath,
) -> Result<(f64, Vec<(String, f64)>)> {
    let engine = generator.engine();
    engine.clear_runtime();
    let worker = engine.inline_worker(WorkerId(0)).context("a worker on this thread")?;
    for _ in 0..PASSES {
        worker.pass();
    }
    let input = engine.node_id("wire-input").context("the wire's node")?;
    let frames = engine.node_totals(WorkerId(0), input).vectors;
    if frames < (PASSES / 2 * FRAME_PACKETS_MAX) as u64 {
        return Err(anyhow!("{}: {frames} frames came in {PASSES} passes", path.name));
    }
    let ids: Vec<NodeId> = engine.all_nodes().map(|(id, _)| id).filter(|id| *id != input).collect();
    let nodes: Vec<(String, f64)> = ids
        .into_iter()
        .map(|id| (engine.node_name(id), engine.node_totals(WorkerId(0), id)))
        .filter(|(name, totals)| totals.vectors > 0 && path.holds(name))
        .map(|(name, totals)| (name, totals.clocks as f64 / frames as f64))
        .collect();
    Ok((nodes.iter().map(|(_, clocks)| clocks).sum(), nodes))
}

/// The floor: frames copied from a template with a number behind, and numbers looked at.
struct Bare {
    cache: BufferCache,
    frame: Box<Frame>,
    template: Box<[u8]>,
    lengths: Vec<usize>,
    part: Part,
    form: Form,
    sequence: u64,
    seen: u64,
}

impl Bare {
    fn new(path: &GeneratorPath, form: Form) -> Result<Bare> {
        let pool =
            BufferPool::new(2048, EngineConfig::default().buffer_data_bytes, PageSize::Best)?;
        let lengths = match path.frame {
            "imix" => [[64; 7].as_slice(), &[570; 4], &[1518]].concat(),
            fixed => vec![fixed.parse()?],
        };
        let template = vec![0; 1536].into_boxed_slice();
        let (cache, frame) = (pool.cache(), Frame::new());
        Ok(Bare { cache, frame, template, lengths, part: path.part, form, sequence: 0, seen: 0 })
    }

    fn round(&mut self) -> f64 {
        let mut taken = 0;
        for _ in 0..PASSES {
            let start = clocks();
            self.form.variant.run(Make(self));
            let made = clocks();
            self.form.variant.run(Look(self));
            let looked = clocks();
            taken += match self.part {
                Part::Sending => made - start,
                Part::Receiving => looked - made,
                Part::Both => looked - start,
            };
        }
        taken as f64 / (PASSES * FRAME_PACKETS_MAX) as f64
    }
}

/// Copy a vector of frames.
struct Make<'a>(&'a mut Bare);

impl Body for Make<'_> {
    type Answer = ();

    #[inline(always)]
    fn run(self) {
        let Bare { cache, frame, template, lengths, sequence, .. } = self.0;
        let data_bytes = cache.pool().data_bytes();
        let mut turns = lengths.iter().cycle();
        for _ in 0..FRAME_PACKETS_MAX {
            let (Some(mut packet), Some(length)) = (cache.packet(), turns.next()) else { return };
            assert!(packet.set_length(*length, data_bytes), "a buffer holds the frame");
            packet.bytes_mut().copy_from_slice(&template[..*length]);
            let stamp =
                Stamp { measurement: 0, stream: 0, sequence: *sequence, sent_ns: 0 }.encode();
            packet.bytes_mut()[length - STAMP_BYTES..].copy_from_slice(&stamp);
            *sequence += 1;
            if let Err(packet) = frame.push(packet) {
                cache.free(packet);
            }
        }
    }
}

/// Look at a vector's stamps.
struct Look<'a>(&'a mut Bare);

impl Body for Look<'_> {
    type Answer = ();

    #[inline(always)]
    fn run(self) {
        let Bare { cache, frame, sequence, seen, .. } = self.0;
        let head = Stamp { measurement: 0, stream: 0, sequence: 0, sent_ns: 0 }.head();
        let first = *sequence - frame.len() as u64;
        for (place, packet) in frame.packets().iter().enumerate() {
            let end = packet.bytes().last_chunk::<STAMP_BYTES>();
            *seen +=
                u64::from(end.is_some_and(|end| Stamp::continues(end, head, first + place as u64)));
        }
        frame.drain().for_each(|packet| cache.free(packet));
    }
}
