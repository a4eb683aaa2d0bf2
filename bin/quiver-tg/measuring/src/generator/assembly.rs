//! The generator, assembled from a profile: an engine with one worker, ports, streams.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use quiver_core::clock::Clock;
use quiver_core::graph::builder::EngineConfig;
use quiver_core::memory::ring::ring;
use quiver_core::worker::device::RxMode;
use quiver_core::{Engine, InterfaceId, NodeId, NodeSpec};

use crate::capture::Captures;
use crate::faults::{FaultCounts, FaultPort, Subject};
use crate::neighbours::{Gateway, GatewayMac, Neighbours};
use crate::ordering::Sending;
use crate::outcome::StreamFacts;
use crate::own_share::OwnShare;
use crate::receiver::{REPLIES_MAX, Receiver, ReceiverHandle};
use crate::report::Kind;
use crate::stall::PassBudget;
use crate::surroundings::{LINK_LOOK_NS, PortState, Surroundings, WORKER, make_engine, port_state};
use crate::transmitter::{Transmitter, TransmitterHandle, TxPath};
use quiver_tg_traffic::frames::Source;
use quiver_tg_traffic::profile::{Port, Profile, Stream};

use super::running::Running;

pub(crate) struct PortParts {
    pub(crate) name: String,
    pub(crate) interface: InterfaceId,
    pub(crate) receiver_node: NodeId,
    pub(crate) receiver: ReceiverHandle,
    pub(crate) transmitter: TransmitterHandle,
    pub(crate) announcements: Vec<Vec<u8>>,
    /// Asked for when streams wait for it: their places among the port's streams.
    pub(crate) gateway: Option<(Gateway, Vec<usize>)>,
    /// The MAC address of the gateway by its replies, and the frame that solicits them.
    pub(crate) gateway_mac: Arc<GatewayMac>,
    pub(crate) solicitation: Option<Vec<u8>>,
    pub(crate) faults: Option<Arc<FaultCounts>>,
}

/// The parts of a generator that depend on streams.
pub(crate) struct StreamParts {
    /// Frame sources, by port.
    pub(crate) sources: Vec<Vec<Source>>,
    /// By stream.
    pub(crate) sendings: Vec<Sending>,
    /// By stream.
    pub(crate) facts: Vec<StreamFacts>,
}

/// A generator.
pub struct Generator<S> {
    pub(crate) engine: Engine,
    pub(crate) surroundings: S,
    pub(crate) ports: Vec<PortParts>,
    pub(crate) streams: Vec<StreamFacts>,
    pub(crate) sendings: Vec<Sending>,
    pub(crate) burst: Option<usize>,
    pub(crate) link_timeout_s: f64,
    /// The next measurement's warm-up.
    pub(crate) measurement: u8,
    pub(super) running: Option<Running>,
    pub(crate) captures: Captures,
    is_announced: bool,
    /// Limits of the generator itself, if they were measured.
    pub(crate) own: Option<OwnShare>,
}

impl<S: Surroundings> Generator<S> {
    /// Make everything that a profile describes. The worker does not run yet.
    ///
    /// # Errors
    /// When the engine or a port cannot be made, a file of values or packets cannot be read, or a
    /// frame does not fit a port.
    pub fn new(
        profile: &Profile,
        config: EngineConfig,
        clock: Clock,
        mut surroundings: S,
    ) -> anyhow::Result<Generator<S>> {
        let (engine, inputs) = make_engine(config, clock.clone(), &mut surroundings)?;
        let mut generator = Generator {
            engine,
            surroundings,
            ports: Vec::new(),
            streams: Vec::new(),
            sendings: Vec::new(),
            burst: profile.burst.as_ref().map(|b| b.value),
            link_timeout_s: profile.link_timeout_s,
            measurement: 1,
            running: None,
            captures: Captures::default(),
            is_announced: false,
            own: None,
        };
        let made = Self::make_streams(profile)?;
        (generator.streams, generator.sendings) = (made.facts, made.sendings);
        for (number, sources) in made.sources.into_iter().enumerate() {
            let added = generator.add_port(profile, number, sources, &clock, inputs);
            added.with_context(|| format!("port {number}"))?;
        }
        Ok(generator)
    }

    /// Make what makes the streams' frames, by port.
    pub(crate) fn make_streams(profile: &Profile) -> anyhow::Result<StreamParts> {
        let sources = profile.ports.iter().map(|_| Vec::new()).collect();
        let mut made = StreamParts { sources, sendings: Vec::new(), facts: Vec::new() };
        for (number, stream) in profile.streams.iter().map(|s| &s.value).enumerate() {
            let named = || format!("stream {}", stream.name_or(number));
            let source = Source::new(stream).with_context(named)?;
            let sending = Sending::new(profile, stream, &source).map_err(anyhow::Error::msg);
            made.sendings.push(sending.with_context(named)?);
            made.facts.push(facts(number, stream, &source));
            made.sources[stream.from].push(source);
        }
        Ok(made)
    }

    /// Does a port take frames as long as these?
    pub(crate) fn check_frames(
        &self,
        id: InterfaceId,
        port: &Port,
        sources: &[Source],
    ) -> anyhow::Result<()> {
        let longest = sources.iter().map(Source::frame_bytes_max).max().unwrap_or(0);
        match self.surroundings.frame_bytes_max(&self.engine, id, port) {
            Some(most) if longest > most => {
                bail!(
                    "a stream sends frames of {longest} bytes, and this port takes {most}; raise \
                     its MTU"
                )
            }
            _ => Ok(()),
        }
    }

    fn add_port(
        &mut self,
        profile: &Profile,
        number: usize,
        sources: Vec<Source>,
        clock: &Clock,
        inputs: InterfaceId,
    ) -> anyhow::Result<()> {
        let port = &profile.ports[number].value;
        let gateway_mac = Arc::<GatewayMac>::default();
        let neighbours = Neighbours::new(profile.port_mac(number), port, &gateway_mac);
        let announcements = neighbours.announcements();
        let solicitation = neighbours.solicitation();
        let (replies_put, replies) = ring(REPLIES_MAX);
        let rings = self.surroundings.rings(port);
        let is_kernel = |port: &Port| self.surroundings.rings(port).is_kernel;
        let is_kernel = profile.ports.iter().any(|port| is_kernel(&port.value));
        let budget = PassBudget::new(profile.ports.len(), is_kernel);
        let (receiver, receiver_handle) =
            Receiver::new(clock.clone(), neighbours, replies_put, rings, budget);
        let input = format!("tg-rx-{number}");
        let spec =
            NodeSpec::input(input.clone(), "Looks at the stamps of frames that came back").sink();
        let receiver_node = self.engine.add_node(spec, vec![Box::new(receiver)])?;
        let interface = self.surroundings.make_port(&mut self.engine, number, port, &input)?;
        self.check_frames(interface, port, &sources)?;
        let faults = match &port.faults {
            Some(faults) => Some(FaultPort { number, inputs, next: receiver_node }.add(
                &mut self.engine,
                faults,
                Subject::Streams,
            )?),
            None => None,
        };
        let input_node = faults.as_ref().map_or(receiver_node, |(node, _)| *node);
        let known = self.engine.interface(interface).context("the port's interface is gone")?;
        let (name, output) = (known.name.clone(), known.row().output);
        let specs = profile.captures.iter().map(|capture| &capture.value);
        let path = (input_node, output);
        let (input_node, output) =
            self.captures.around(&mut self.engine, clock, number, specs, path)?;
        self.engine.set_input_node(interface, input_node)?;
        self.engine.set_admin_up(interface, true)?;
        let path = TxPath { interface, output, refuses_the_rest: rings.refuses_the_rest, budget };
        let (transmitter, handle) = Transmitter::new(clock.clone(), path, sources, replies);
        self.engine.add_rx_queue(
            inputs,
            "tg-input",
            Box::new(transmitter),
            RxMode::Polling,
            Some(WORKER),
        )?;
        let mut parts = PortParts {
            name,
            interface,
            receiver_node,
            receiver: receiver_handle,
            transmitter: handle,
            announcements,
            gateway: None,
            gateway_mac,
            solicitation,
            faults: faults.map(|(_, done)| done),
        };
        parts.gateway = gateway(profile, number, &parts);
        self.ports.push(parts);
        Ok(())
    }

    /// Start the worker in its own thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(&mut self) -> anyhow::Result<()> {
        for complaint in self.engine.start_threads()? {
            tracing::warn!("{complaint}");
        }
        Ok(())
    }

    /// Set the limits of the generator itself, with which reports compare.
    pub fn set_own_share(&mut self, own: Option<OwnShare>) {
        self.own = own;
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

    /// The streams that it sends.
    pub fn streams(&self) -> &[StreamFacts] {
        &self.streams
    }

    /// Link and counters of its ports since they were made.
    pub fn port_states(&self) -> Vec<PortState> {
        self.ports.iter().map(|port| port_state(&self.engine, &port.name, port.interface)).collect()
    }

    /// Do what is due on the control thread for at most so long.
    pub fn wait(&mut self, at_most_ns: u64) {
        self.surroundings.wait(&mut self.engine, at_most_ns);
    }

    /// Its environment.
    pub fn surroundings(&mut self) -> &mut S {
        &mut self.surroundings
    }

    pub(crate) fn port_without_link(&self) -> Option<usize> {
        let is_up =
            |port: &PortParts| self.engine.interface(port.interface).is_some_and(|i| i.row().up);
        self.ports.iter().position(|port| !is_up(port))
    }

    /// Wait until every port has a link, then announce its addresses.
    ///
    /// # Errors
    /// When a link or a gateway's answer is missing after the profile's `link_timeout_s`.
    pub fn wait_for_links(&mut self) -> anyhow::Result<()> {
        let deadline = self.link_deadline_ns();
        while !self.has_links(deadline)? {
            self.surroundings.wait(&mut self.engine, LINK_LOOK_NS);
        }
        Ok(())
    }

    /// Until when the ports may be without links, if they begin to wait now.
    pub fn link_deadline_ns(&self) -> u64 {
        self.engine.now_ns() + (self.link_timeout_s * 1e9) as u64
    }

    /// Every port has a link, and every gateway that streams wait for has answered. The addresses
    /// are announced once the links are up.
    ///
    /// # Errors
    /// When one of these is missing after `deadline_ns`, or the generator is interrupted.
    pub fn has_links(&mut self, deadline_ns: u64) -> anyhow::Result<bool> {
        let is_late = self.engine.now_ns() >= deadline_ns || self.surroundings.is_interrupted();
        if let Some(port) = self.port_without_link() {
            if is_late {
                bail!("{} after {} s", self.link_trouble(port), self.link_timeout_s);
            }
            return Ok(false);
        }
        if !self.is_announced {
            self.is_announced = true;
            self.announce();
        }
        self.refresh_gateways();
        let unanswered =
            |parts: &&PortParts| parts.gateway.as_ref().is_some_and(|(g, _)| !g.is_known());
        match self.ports.iter().find(unanswered) {
            Some(port) if is_late => {
                let no_answer =
                    port.gateway.as_ref().map(|(g, _)| g.no_answer()).unwrap_or_default();
                bail!("{}: {no_answer}", port.name)
            }
            Some(_) => Ok(false),
            None => Ok(true),
        }
    }

    /// Ask for gateways when it is time, and send to where they say they are.
    pub(crate) fn refresh_gateways(&mut self) {
        let now_ns = self.engine.now_ns();
        for number in 0..self.ports.len() {
            let port = &mut self.ports[number];
            let Some((gateway, awaiting)) = &mut port.gateway else { continue };
            if let Some(mac) = gateway.take_update() {
                for place in awaiting.iter() {
                    if !port.transmitter.set_destination(*place, mac) {
                        tracing::warn!(
                            "{}: the worker does not take its gateway's address",
                            port.name
                        );
                    }
                }
            }
            if let Some(solicitation) = gateway.solicitation(now_ns).map(<[u8]>::to_vec) {
                self.send_alone(number, solicitation);
            }
        }
    }

    /// Send one frame of the control thread's.
    fn send_alone(&mut self, port: usize, frame: Vec<u8>) {
        let id = self.ports[port].interface;
        let Some(output) = self.engine.interface(id).map(|i| i.row().output) else { return };
        self.engine.post(WORKER, move |worker| {
            worker.inject(&frame, output, InterfaceId::NONE, id);
        });
    }

    fn announce(&mut self) {
        for number in 0..self.ports.len() {
            for frame in self.ports[number].announcements.clone() {
                self.send_alone(number, frame);
            }
        }
    }

    pub(crate) fn link_trouble(&self, port: usize) -> String {
        let parts = &self.ports[port];
        let trouble = self.surroundings.link_trouble(&self.engine, parts.interface);
        format!("port {port} ({}): {trouble}", parts.name)
    }
}

fn facts(number: usize, stream: &Stream, source: &Source) -> StreamFacts {
    let kind = match (stream.latency, stream.stamp) {
        (true, _) => Kind::Latency,
        (false, true) => Kind::Load,
        (false, false) => Kind::Unstamped,
    };
    StreamFacts {
        name: stream.name_or(number),
        from: stream.from,
        to: stream.to,
        frame_bytes: source.frame_bytes_mean(),
        genome: stream.sizes.genome(),
        kind,
    }
}

/// The gateway whose MAC address streams of a port wait for, and their places among the port's
/// streams.
pub(super) fn gateway(
    profile: &Profile,
    number: usize,
    parts: &PortParts,
) -> Option<(Gateway, Vec<usize>)> {
    let streams = profile.streams.iter().map(|stream| &stream.value);
    let of_port = streams.filter(|stream: &&Stream| stream.from == number);
    let awaiting = of_port.enumerate().filter(|(_, stream)| stream.awaits_gateway);
    let awaiting: Vec<usize> = awaiting.map(|(place, _)| place).collect();
    let (address, solicitation) =
        (profile.ports[number].value.gateway?, parts.solicitation.clone()?);
    let gateway = || Gateway::new(address, solicitation, Arc::clone(&parts.gateway_mac));
    (!awaiting.is_empty()).then(|| (gateway(), awaiting))
}
