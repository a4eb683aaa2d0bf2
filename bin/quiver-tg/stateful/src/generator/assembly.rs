//! The generator, assembled from a profile: an engine with one worker, ports, both sides.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use quiver_core::clock::Clock;
use quiver_core::graph::builder::EngineConfig;
use quiver_core::worker::device::RxMode;
use quiver_core::{Engine, InterfaceId, NodeId, NodeSpec};

use super::running::{POLL_NS, Running, SharedCounters};
use crate::flow::Flow;
use crate::frame::Heading;
use crate::next_hop::NextHop;
use crate::plan::Plan;
use crate::program::{Program, Role};
use crate::rates::Sampler;
use crate::readiness::Readiness;
use crate::side::{ListenPorts, Side};
use crate::stateful_node::{AnyWorkload, Live, SideRunner, StatefulNode, WakeupInput, Workload};
use quiver_tg_measuring::capture::Captures;
use quiver_tg_measuring::faults::{FaultCounts, FaultPort, Subject};
use quiver_tg_measuring::neighbours::Neighbours;
use quiver_tg_measuring::surroundings::{PortState, Surroundings, WORKER, make_engine, port_state};
use quiver_tg_traffic::profile::stateful::Stateful;
use quiver_tg_traffic::profile::stateful::hosts::Hosts;
use quiver_tg_traffic::profile::{Port, Profile};

/// A part of the clients' entries more for the servers, who learn later that one is over.
const SERVER_ENTRIES_PART: usize = 8;

pub(super) struct PortParts {
    pub(super) name: String,
    pub(super) interface: InterfaceId,
    pub(super) output: NodeId,
    pub(super) neighbours: Neighbours,
    pub(super) announcements: Vec<Vec<u8>>,
    pub(super) faults: Option<Arc<FaultCounts>>,
}

/// The generator.
pub struct StatefulGenerator<S> {
    pub(super) engine: Engine,
    pub(super) surroundings: S,
    pub(super) node: NodeId,
    pub(super) ports: Vec<PortParts>,
    pub(super) profile: Profile,
    pub(super) stateful: Stateful,
    pub(super) running: Option<Running>,
    pub(super) is_announced: bool,
    pub(super) captures: Captures,
    /// How fast it goes.
    pub sampler: Sampler,
}

impl<S: Surroundings> StatefulGenerator<S> {
    /// Make everything that a profile describes. The worker does not run yet.
    ///
    /// # Errors
    /// When the profile has no `stateful`, the engine or a port cannot be made, or a frame does not
    /// fit a port.
    pub fn new(
        profile: &Profile,
        config: EngineConfig,
        clock: Clock,
        mut surroundings: S,
    ) -> anyhow::Result<StatefulGenerator<S>> {
        let stateful =
            profile.stateful.as_ref().context("the profile has no `stateful`")?.value.clone();
        let (mut engine, inputs) = make_engine(config, clock.clone(), &mut surroundings)?;
        let spec = NodeSpec::input("tg-stateful", "Plays clients and servers").sink();
        let node = engine.add_node(spec, vec![Box::new(StatefulNode::new(clock.clone()))])?;
        let mut generator = StatefulGenerator {
            engine,
            surroundings,
            node,
            ports: Vec::new(),
            profile: profile.clone(),
            stateful,
            running: None,
            is_announced: false,
            captures: Captures::default(),
            sampler: Sampler::default(),
        };
        for number in 0..profile.ports.len() {
            generator.add_port(number, inputs, &clock).with_context(|| format!("port {number}"))?;
        }
        let wakeup = Box::new(WakeupInput::at(node));
        generator.engine.add_rx_queue(inputs, "tg-input", wakeup, RxMode::Polling, Some(WORKER))?;
        Ok(generator)
    }

    /// The hosts that a port plays besides its own addresses.
    fn hosts_on(&self, number: usize) -> Vec<Hosts> {
        let clients = self.stateful.clients.as_ref().filter(|clients| clients.on == number);
        let servers = Some(&self.stateful.servers).filter(|servers| servers.on == Some(number));
        clients.and_then(|c| c.hosts()).into_iter().chain(servers.and_then(|s| s.hosts())).collect()
    }

    fn add_port(
        &mut self,
        number: usize,
        inputs: InterfaceId,
        clock: &Clock,
    ) -> anyhow::Result<()> {
        let port = &self.profile.ports[number].value.clone();
        let mac = self.profile.port_mac(number);
        let own = Neighbours::new(mac, port, &Arc::default());
        let announcements = own.announcements();
        let neighbours = own.with_hosts(self.hosts_on(number));
        let interface =
            self.surroundings.make_port(&mut self.engine, number, port, "tg-stateful")?;
        let longest = self.stateful.frame_bytes_max() + port.vlan.bytes();
        if let Some(most) = self.surroundings.frame_bytes_max(&self.engine, interface, port)
            && longest > most
        {
            bail!(
                "transactions send frames of {longest} bytes, and this port takes {most}; make \
                 `segment` or `frame` smaller"
            );
        }
        let faults = match &port.faults {
            Some(faults) => Some(FaultPort { number, inputs, next: self.node }.add(
                &mut self.engine,
                faults,
                Subject::Transactions(self.stateful.kind),
            )?),
            None => None,
        };
        let known = self.engine.interface(interface).context("the port's interface is gone")?;
        let (name, output) = (known.name.clone(), known.row().output);
        let input_node = faults.as_ref().map_or(self.node, |(node, _)| *node);
        let specs = self.profile.captures.iter().map(|capture| &capture.value);
        let path = (input_node, output);
        let (input_node, output) =
            self.captures.around(&mut self.engine, clock, number, specs, path)?;
        self.engine.set_input_node(interface, input_node)?;
        self.engine.set_admin_up(interface, true)?;
        let faults = faults.map(|(_, done)| done);
        self.ports.push(PortParts { name, interface, output, neighbours, announcements, faults });
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

    /// The engine below.
    pub fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Its environment.
    pub fn surroundings(&mut self) -> &mut S {
        &mut self.surroundings
    }

    /// Link and counters of its ports since they were made.
    pub fn port_states(&self) -> Vec<PortState> {
        self.ports.iter().map(|port| port_state(&self.engine, &port.name, port.interface)).collect()
    }

    /// The transactions of the profile.
    pub fn stateful(&self) -> &Stateful {
        &self.stateful
    }

    /// Do what is due on the control thread for at most so long.
    pub fn wait(&mut self, at_most_ns: u64) {
        self.surroundings.wait(&mut self.engine, at_most_ns);
    }

    /// Wait until every port has a link, then announce its addresses.
    ///
    /// # Errors
    /// When a link is missing after the profile's `link_timeout_s`.
    pub fn wait_for_links(&mut self) -> anyhow::Result<()> {
        let deadline = self.link_deadline_ns();
        while !self.has_links(deadline)? {
            self.surroundings.wait(&mut self.engine, POLL_NS);
        }
        Ok(())
    }

    /// Until when the ports may be without links, if they begin to wait now.
    pub fn link_deadline_ns(&self) -> u64 {
        self.engine.now_ns() + (self.profile.link_timeout_s * 1e9) as u64
    }

    /// Every port has a link. The addresses are announced once that is so.
    ///
    /// # Errors
    /// When one has no link after `deadline_ns`, or the generator is interrupted.
    pub fn has_links(&mut self, deadline_ns: u64) -> anyhow::Result<bool> {
        if let Some(port) = self.port_without_link() {
            if self.engine.now_ns() >= deadline_ns || self.surroundings.is_interrupted() {
                bail!("{} after {} s", self.link_trouble(port), self.profile.link_timeout_s);
            }
            return Ok(false);
        }
        if !std::mem::replace(&mut self.is_announced, true) {
            self.announce();
        }
        Ok(true)
    }

    fn announce(&mut self) {
        for port in &self.ports {
            for frame in port.announcements.clone() {
                let (output, id) = (port.output, port.interface);
                self.engine.post(WORKER, move |worker| {
                    worker.inject(&frame, output, InterfaceId::NONE, id);
                });
            }
        }
    }

    pub(super) fn port_without_link(&self) -> Option<usize> {
        let is_up =
            |port: &PortParts| self.engine.interface(port.interface).is_some_and(|i| i.row().up);
        self.ports.iter().position(|port| !is_up(port))
    }

    pub(super) fn link_trouble(&self, number: usize) -> String {
        let port = &self.ports[number];
        let trouble = self.surroundings.link_trouble(&self.engine, port.interface);
        format!("port {number} ({}): {trouble}", port.name)
    }

    /// Install both sides in the node.
    pub(super) fn install<F: Flow>(&mut self) -> anyhow::Result<SharedCounters> {
        let stateful = self.stateful.clone();
        let servers_hosts = stateful.servers.hosts().context("servers")?;
        let live: Arc<Live> = Arc::default();
        let entries = stateful.concurrent();
        let clients = match &stateful.clients {
            Some(clients) => {
                let hosts = clients.hosts().context("clients")?;
                let runner =
                    self.runner::<F>(clients.on, Role::Client, hosts, Some(servers_hosts), entries);
                Some((runner, Plan::new(&stateful, clients, servers_hosts)))
            }
            None => None,
        };
        let more = entries.div_ceil(SERVER_ENTRIES_PART);
        let servers = stateful
            .servers
            .on
            .map(|on| self.runner::<F>(on, Role::Server, servers_hosts, None, entries + more));
        let shared = SharedCounters {
            clients: clients.as_ref().map(|(runner, _)| runner.side.counters().clone()),
            servers: servers.as_ref().map(|runner| runner.side.counters().clone()),
            live: live.clone(),
        };
        let mut workload: Option<Box<dyn AnyWorkload>> =
            Some(Box::new(Workload::new(clients, servers, live)));
        let node = self.node;
        self.engine.call(WORKER, move |worker| {
            worker.visit::<StatefulNode, _>(node, |node, _| node.install(workload.take()));
        })?;
        Ok(shared)
    }

    fn runner<F: Flow>(
        &self,
        on: usize,
        role: Role,
        hosts: Hosts,
        targets: Option<Hosts>,
        entries: usize,
    ) -> SideRunner<F> {
        let (parts, port) = (&self.ports[on], &self.profile.ports[on].value);
        let mac = self.profile.port_mac(on);
        let listen_ports = match role {
            Role::Client => ListenPorts::Nowhere,
            Role::Server => ListenPorts::at(self.stateful.servers.port),
        };
        let seed = quiver_core::clock::unix_ns();
        let program = Program::new(&self.stateful, role);
        let heading = Heading::new(mac, &port.vlan, hosts);
        let mut side =
            Side::new(program, heading, listen_ports, entries, seed, self.engine.now_ns());
        side.gateway = port.gateway_mac;
        let envelope = parts.neighbours.envelope();
        let is_known = port.gateway_mac.is_some();
        let gateway = port.gateway.filter(|_| !is_known).and_then(|gateway| Hosts::new(gateway, 1));
        let readiness = targets.filter(|_| self.stateful.ready_s > 0.0);
        let readiness = readiness.map(|servers| Readiness::new(envelope.clone(), hosts, servers));
        let targets = if is_known { None } else { targets };
        let hop = gateway.or(targets).map(|targets| {
            NextHop::new(
                envelope.clone(),
                solicitation_source(port, &hosts),
                targets,
                gateway.is_some(),
            )
        });
        SideRunner {
            side,
            interface: parts.interface,
            output: parts.output,
            neighbours: parts.neighbours.clone(),
            hop,
            readiness,
        }
    }
}

/// Source address of solicitations: the port itself, or its first host.
fn solicitation_source(port: &Port, hosts: &Hosts) -> std::net::IpAddr {
    let own4 = port.ip4.first().map(Into::into);
    let own6 = port.ip6.first().map(Into::into);
    let own = if hosts.is_ip6() { own6 } else { own4 };
    own.unwrap_or_else(|| hosts.at(0))
}
