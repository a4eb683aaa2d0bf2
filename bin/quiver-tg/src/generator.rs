//! A generator: an engine of its own with one worker, its ports, its streams, and how it measures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use quiver_control::Registry;
use quiver_core::clock::Clock;
use quiver_core::device::{Device, RxMode, TxQueue};
use quiver_core::graph::{EngineConfig, GraphBuilder};
use quiver_core::interfaces::InterfaceSpec;
use quiver_core::ring::ring;
use quiver_core::{Context, Engine, Frame, InterfaceId, NodeId, NodeSpec, WorkerId};
use quiver_wire::MacAddress;

use crate::neighbours::{Answer, Neighbours};
use crate::pacer::Pacer;
use crate::profile::{Port, Profile};
use crate::receiver::{REPLIES_MAX, Receiver, ReceiverHandle};
use crate::reception::{Live, Reception};
use crate::report::{Outcome, Report, StreamFacts};
use crate::request::{Measure, Rate};
use crate::traffic::Source;
use crate::transmission::{Leg, Pace, SAMPLE_ALL_PPS_MAX, SAMPLE_FAST, Transmission};
use crate::transmitter::{Transmitter, TransmitterHandle};

/// The only worker.
const WORKER: WorkerId = WorkerId(0);
/// From the order to the first frame: all ports must have it by then.
const START_DELAY_NS: u64 = 300_000;
/// How long a port may take to answer an order.
const ANSWER_NS_MAX: u64 = 5_000_000_000;
/// How often a finished transmission is looked for.
const LOOK_NS: u64 = 1_000_000;
/// How often the wait for late frames may begin anew.
const DRAINS_MAX: usize = 10;
/// Frames of a burst at a constant rate unless the profile says otherwise.
const BURST_PACED: usize = 64;
/// Frames of a burst flat out unless the profile says otherwise.
const BURST_FLAT_OUT: usize = 256;

/// What differs between a generator that runs and one that a test steps.
pub trait Surroundings {
    /// Register the drivers.
    fn register(&mut self, registry: &mut Registry);
    /// Make a port's interface; its frames go to the node `input`.
    fn make_port(
        &mut self,
        engine: &mut Engine,
        number: usize,
        port: &Port,
        input: &str,
    ) -> anyhow::Result<InterfaceId>;
    /// Let time pass, at most so many nanoseconds, and do what is due on the control thread.
    fn wait(&mut self, engine: &mut Engine, at_most_ns: u64);
    /// Why a port has no link.
    fn link_trouble(&self, engine: &Engine, id: InterfaceId) -> String {
        let _ = (engine, id);
        "its link is down".to_owned()
    }
    /// Should a measurement under way be given up?
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// Looks on while a measurement runs.
pub trait Onlooker {
    /// So many frames have been sent and have come back, all streams together, after so many
    /// seconds of `of_s`.
    fn see(&mut self, at_s: f64, of_s: f64, sent: u64, received: u64);
}

/// Nobody looks on.
pub struct Nobody;

impl Onlooker for Nobody {
    fn see(&mut self, _: f64, _: f64, _: u64, _: u64) {}
}

struct PortParts {
    name: String,
    interface: InterfaceId,
    receiver_node: NodeId,
    receiver: ReceiverHandle,
    transmitter: TransmitterHandle,
    announcements: Vec<Answer>,
}

/// A generator.
pub struct Generator<S> {
    engine: Engine,
    surroundings: S,
    ports: Vec<PortParts>,
    streams: Vec<StreamFacts>,
    weights: Vec<f64>,
    burst: Option<usize>,
    link_timeout_s: f64,
    /// The next measurement's warm-up.
    measurement: u8,
}

impl<S: Surroundings> Generator<S> {
    /// Make everything that a profile describes. The worker does not run yet.
    pub fn new(
        profile: &Profile,
        config: EngineConfig,
        clock: Clock,
        mut surroundings: S,
    ) -> anyhow::Result<Generator<S>> {
        let mut registry = Registry::new(GraphBuilder::new(config, clock.clone())?);
        registry.graph.node(NodeSpec::input("tg-input", "Frames that the generator makes"));
        surroundings.register(&mut registry);
        let (mut engine, _) = registry.build()?;
        let inputs = engine.create_interface(InterfaceSpec {
            name: "generator".to_owned(),
            device: Box::new(Inputs),
            mac: [0; 6],
            mtu_bytes: 1500,
            input: "tg-input".to_owned(),
            link_up: false,
            tx: vec![Box::new(Inputs)],
        })?;
        let mut generator = Generator {
            engine,
            surroundings,
            ports: Vec::new(),
            streams: profile.streams.iter().map(|s| facts(&s.value)).collect(),
            weights: profile.streams.iter().map(|s| s.value.weight).collect(),
            burst: profile.burst.as_ref().map(|b| b.value),
            link_timeout_s: profile.link_timeout_s,
            measurement: 1,
        };
        for number in 0..profile.ports.len() {
            generator.add_port(profile, number, &clock, inputs).with_context(|| format!("port {number}"))?;
        }
        Ok(generator)
    }

    fn add_port(
        &mut self,
        profile: &Profile,
        number: usize,
        clock: &Clock,
        inputs: InterfaceId,
    ) -> anyhow::Result<()> {
        let port = &profile.ports[number].value;
        let of_port = || profile.streams.iter().map(|s| &s.value).filter(|s| s.from == number);
        let made_up = MacAddress([2, 0, 0, 0, 0, number as u8]);
        let mac = port.mac.or(of_port().next().map(|s| s.layers.ethernet.src)).unwrap_or(made_up);
        let neighbours = Neighbours::new(mac, &port.ip4, &port.ip6);
        let announcements = neighbours.announcements();
        let (replies_put, replies) = ring(REPLIES_MAX);
        let ring_frames = port.memif.as_ref().map_or(1024, |m| m.ring_size as usize);
        let (receiver, receiver_handle) = Receiver::new(clock.clone(), neighbours, replies_put, ring_frames);
        let input = format!("tg-rx-{number}");
        let spec = NodeSpec::input(input.clone(), "Looks at the stamps of frames that came back").sink();
        let receiver_node = self.engine.add_node(spec, vec![Box::new(receiver)])?;
        let interface = self.surroundings.make_port(&mut self.engine, number, port, &input)?;
        self.engine.set_input_node(interface, receiver_node)?;
        self.engine.set_admin_up(interface, true)?;
        let known = self.engine.interface(interface).context("the port's interface is gone")?;
        let (name, output) = (known.name.clone(), known.row().output);
        let sources = of_port().map(Source::new).collect::<Result<Vec<_>, _>>()?;
        let (transmitter, handle) = Transmitter::new(clock.clone(), interface, output, sources, replies);
        self.engine.add_rx_queue(inputs, "tg-input", Box::new(transmitter), RxMode::Polling, Some(WORKER))?;
        self.ports.push(PortParts {
            name,
            interface,
            receiver_node,
            receiver: receiver_handle,
            transmitter: handle,
            announcements,
        });
        Ok(())
    }

    /// Let the worker run in its own thread.
    pub fn start(&mut self) -> anyhow::Result<()> {
        for complaint in self.engine.start_threads()? {
            tracing::warn!("{complaint}");
        }
        Ok(())
    }

    /// The engine below.
    pub fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Ports.
    pub fn port_count(&self) -> usize {
        self.ports.len()
    }

    /// Streams.
    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// Should it end?
    pub fn is_interrupted(&self) -> bool {
        self.surroundings.is_interrupted()
    }

    /// Do what is due on the control thread while nothing is measured; returns now and then.
    pub fn idle(&mut self) {
        self.surroundings.wait(&mut self.engine, 1_000_000_000);
    }

    /// What surrounds it.
    pub fn surroundings(&mut self) -> &mut S {
        &mut self.surroundings
    }

    fn port_without_link(&self) -> Option<usize> {
        let is_up = |port: &PortParts| self.engine.interface(port.interface).is_some_and(|i| i.row().up);
        self.ports.iter().position(|port| !is_up(port))
    }

    /// Wait until every port has a link, then tell the neighbours who is here.
    pub fn wait_for_links(&mut self) -> anyhow::Result<()> {
        let deadline = self.engine.now_ns() + (self.link_timeout_s * 1e9) as u64;
        while let Some(port) = self.port_without_link() {
            if self.engine.now_ns() >= deadline || self.surroundings.is_interrupted() {
                bail!("{} after {} s", self.link_trouble(port), self.link_timeout_s);
            }
            self.surroundings.wait(&mut self.engine, 20_000_000);
        }
        for port in &self.ports {
            let Some(output) = self.engine.interface(port.interface).map(|i| i.row().output) else {
                continue;
            };
            for frame in port.announcements.clone() {
                let id = port.interface;
                self.engine.post(WORKER, move |worker| {
                    worker.inject(frame.bytes(), output, InterfaceId::NONE, id, 0);
                });
            }
        }
        Ok(())
    }

    fn link_trouble(&self, port: usize) -> String {
        let parts = &self.ports[port];
        let trouble = self.surroundings.link_trouble(&self.engine, parts.interface);
        format!("port {port} ({}): {trouble}", parts.name)
    }

    /// Measure.
    pub fn measure(&mut self, request: &Measure, onlooker: &mut dyn Onlooker) -> anyhow::Result<Report> {
        request.check().map_err(anyhow::Error::msg)?;
        if let Some(port) = self.port_without_link() {
            bail!("{}; nothing was sent", self.link_trouble(port));
        }
        let live: Vec<Arc<Live>> = self.streams.iter().map(|_| Arc::default()).collect();
        let measurement = self.measurement;
        self.measurement = self.measurement.wrapping_add(2);
        let counted = measurement.wrapping_add(1);
        let wanted: Vec<_> = self.streams.iter().zip(&live).map(|(s, l)| (s.to, l.clone())).collect();
        self.exchange_receptions(&mut |port| Reception::new(port, counted, &wanted))?;
        let sent = self.send(request, measurement, &live, onlooker);
        let drained = sent.and_then(|sent| self.drain(request, &live).map(|()| sent));
        let received = self.exchange_receptions(&mut |_| Reception::idle())?;
        let report = Outcome { sent: drained?, received }.report(request, &self.streams);
        match self.port_without_link() {
            Some(port) => bail!("{}; it was lost while measuring", self.link_trouble(port)),
            None => Ok(report),
        }
    }

    /// Have all transmissions worked off.
    fn send(
        &mut self,
        request: &Measure,
        measurement: u8,
        live: &[Arc<Live>],
        onlooker: &mut dyn Onlooker,
    ) -> anyhow::Result<Vec<Box<Transmission>>> {
        let start_ns = self.engine.now_ns() + START_DELAY_NS;
        let mut orders = self.transmissions(request, measurement, start_ns, live);
        let finished: Vec<Arc<AtomicBool>> = orders.iter().map(|t| t.finished.clone()).collect();
        self.exchange_transmissions(&mut |port| std::mem::replace(&mut orders[port], Transmission::idle()))?;
        let done = self.await_end(request, start_ns, &finished, live, onlooker);
        let sent = self.exchange_transmissions(&mut |_| Transmission::idle())?;
        done.map(|()| sent)
    }

    fn await_end(
        &mut self,
        request: &Measure,
        start_ns: u64,
        finished: &[Arc<AtomicBool>],
        live: &[Arc<Live>],
        onlooker: &mut dyn Onlooker,
    ) -> anyhow::Result<()> {
        let whole_ns = ((request.warmup_s + request.duration_s) * 1e9) as u64;
        let end_ns = start_ns + whole_ns;
        loop {
            if finished.iter().all(|f| f.load(Ordering::Acquire)) {
                return Ok(());
            }
            let now_ns = self.engine.now_ns();
            if self.surroundings.is_interrupted() {
                bail!("the measurement was interrupted");
            }
            if now_ns > end_ns + ANSWER_NS_MAX {
                bail!(
                    "the generator's worker has not finished {} s after the end",
                    ANSWER_NS_MAX / 1_000_000_000
                );
            }
            let at_s = now_ns.saturating_sub(start_ns) as f64 / 1e9;
            let sum = |of: fn(&Live) -> u64| live.iter().map(|l| of(l)).sum();
            let (made, received) = (sum(|l| l.made.get()), sum(|l| l.received.get()));
            onlooker.see(at_s, request.warmup_s + request.duration_s, made, received);
            // The control thread shares the worker's core: it looks seldom.
            let wait_ns = end_ns.saturating_sub(now_ns).clamp(LOOK_NS, 1_000_000_000);
            self.surroundings.wait(&mut self.engine, wait_ns);
        }
    }

    /// Wait for frames that are still under way.
    fn drain(&mut self, request: &Measure, live: &[Arc<Live>]) -> anyhow::Result<()> {
        let received = || live.iter().map(|l| l.received.get()).sum::<u64>();
        let drain_ns = (request.drain_s * 1e9) as u64;
        for _ in 0..=DRAINS_MAX {
            let before = received();
            let until_ns = self.engine.now_ns() + drain_ns;
            while self.engine.now_ns() < until_ns {
                if self.surroundings.is_interrupted() {
                    bail!("the measurement was interrupted");
                }
                let left_ns = until_ns.saturating_sub(self.engine.now_ns());
                self.surroundings.wait(&mut self.engine, left_ns.max(LOOK_NS));
            }
            if received() == before {
                break;
            }
        }
        Ok(())
    }

    /// Give every port something new to fill; what it has filled.
    fn exchange_receptions(
        &mut self,
        next: &mut dyn FnMut(usize) -> Box<Reception>,
    ) -> anyhow::Result<Vec<Box<Reception>>> {
        for (number, port) in self.ports.iter_mut().enumerate() {
            port.receiver.begin(next(number));
        }
        let deadline = self.engine.now_ns() + ANSWER_NS_MAX;
        let mut before: Vec<Option<Box<Reception>>> = self.ports.iter().map(|_| None).collect();
        loop {
            for (slot, port) in before.iter_mut().zip(&mut self.ports) {
                if slot.is_none() {
                    *slot = port.receiver.take();
                    let node = port.receiver_node;
                    if slot.is_none() {
                        // A knock: the node runs, and finds its order.
                        self.engine.post(WORKER, move |worker| {
                            worker.inject(&[], node, InterfaceId::NONE, InterfaceId::NONE, 0);
                        });
                    }
                }
            }
            if before.iter().all(Option::is_some) {
                return Ok(before.into_iter().flatten().collect());
            }
            self.answer_by(deadline)?;
        }
    }

    /// Give every port something new to send; what it has sent.
    fn exchange_transmissions(
        &mut self,
        next: &mut dyn FnMut(usize) -> Box<Transmission>,
    ) -> anyhow::Result<Vec<Box<Transmission>>> {
        for (number, port) in self.ports.iter_mut().enumerate() {
            port.transmitter.begin(next(number));
        }
        let deadline = self.engine.now_ns() + ANSWER_NS_MAX;
        let mut before: Vec<Option<Box<Transmission>>> = self.ports.iter().map(|_| None).collect();
        loop {
            for (slot, port) in before.iter_mut().zip(&mut self.ports) {
                *slot = slot.take().or_else(|| port.transmitter.take());
            }
            if before.iter().all(Option::is_some) {
                return Ok(before.into_iter().flatten().collect());
            }
            self.answer_by(deadline)?;
        }
    }

    fn answer_by(&mut self, deadline: u64) -> anyhow::Result<()> {
        if self.engine.now_ns() > deadline {
            bail!("the generator's worker does not answer; is another program busy on its core?");
        }
        self.surroundings.wait(&mut self.engine, LOOK_NS);
        Ok(())
    }

    /// What each port has to send.
    fn transmissions(
        &self,
        request: &Measure,
        measurement: u8,
        start_ns: u64,
        live: &[Arc<Live>],
    ) -> Vec<Box<Transmission>> {
        let counted_from_ns = start_ns + (request.warmup_s * 1e9) as u64;
        let end_ns = counted_from_ns + (request.duration_s * 1e9) as u64;
        let is_flat_out = request.rate == Rate::Max;
        let default_burst = if is_flat_out { BURST_FLAT_OUT } else { BURST_PACED };
        (0..self.ports.len())
            .map(|port| {
                let legs: Box<[Leg]> = (0..self.streams.len())
                    .filter(|stream| self.streams[*stream].from == port)
                    .map(|stream| self.leg(request, stream, port, start_ns, live[stream].clone()))
                    .collect();
                Box::new(Transmission {
                    measurement,
                    start_ns,
                    counted_from_ns,
                    end_ns,
                    is_flat_out,
                    burst_frames_max: self.burst.unwrap_or(default_burst),
                    first_ns: 0,
                    last_ns: 0,
                    bursts: 0,
                    full_bursts: 0,
                    finished: Arc::new(AtomicBool::new(legs.is_empty())),
                    legs,
                })
            })
            .collect()
    }

    fn leg(&self, request: &Measure, stream: usize, port: usize, start_ns: u64, live: Arc<Live>) -> Leg {
        let all: f64 = self.weights.iter().sum();
        let (pace, rate) = match request.rate {
            Rate::Pps(rate) => {
                // Cumulated, so that rounding loses no frame of the whole.
                let up_to = |frames: u64, count: usize| {
                    (frames as f64 * self.weights[..count].iter().sum::<f64>() / all).round() as u64
                };
                let share = |frames: u64| up_to(frames, stream + 1) - up_to(frames, stream);
                let own_rate = rate * self.weights[stream] / all;
                let warmup = share(request.frames(rate, request.warmup_s));
                let counted = share(request.frames(rate, request.duration_s));
                (Pace::Constant { pacer: Pacer::new(own_rate, start_ns), warmup, counted }, own_rate)
            }
            Rate::Max => {
                let here = self.streams.iter().zip(&self.weights).filter(|(s, _)| s.from == port);
                let share = self.weights[stream] / here.map(|(_, w)| w).sum::<f64>();
                (Pace::FlatOut { share, credit: 0.0 }, f64::INFINITY)
            }
        };
        let sample = if rate > SAMPLE_ALL_PPS_MAX { SAMPLE_FAST } else { 1 };
        Leg { stream: stream as u8, pace, made: 0, counted: 0, refused: 0, sample, live }
    }
}

fn facts(stream: &crate::profile::Stream) -> StreamFacts {
    let frame_bytes = stream.frame.mean_bytes(stream.layers.ip6.is_some());
    StreamFacts { from: stream.from, to: stream.to, frame_bytes }
}

/// The interface that the generator's own inputs belong to: drivers take their interfaces' queues
/// away when a link is lost. It sends nothing.
struct Inputs;

impl Device for Inputs {
    fn kind(&self) -> &'static str {
        "generator"
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

impl TxQueue for Inputs {
    fn transmit(&mut self, _: &mut Context<'_>, _: &mut Frame) {}
}
