//! A generator of transactions: an engine with one worker, its ports, and how it measures.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use quiver_core::clock::Clock;
use quiver_core::device::RxMode;
use quiver_core::graph::EngineConfig;
use quiver_core::{Engine, InterfaceId, NodeId, NodeSpec};

use super::counters::Counters;
use super::flow::Flow;
use super::frame::Heading;
use super::hosts::Hosts;
use super::next_hop::NextHop;
use super::plan::Plan;
use super::profile::{Kind, Stateful};
use super::program::{Program, Role};
use super::report::{Facts, StatefulReport};
use super::schedule::Schedule;
use super::side::{Listens, Side};
use super::stage::{Knock, Live, Performance, Play, Player, Remains, Stage};
use super::tcp::Connection;
use super::udp::Exchange;
use crate::generator::{Onlooker, Surroundings, WORKER, make_engine};
use crate::neighbours::Neighbours;
use crate::profile::{Port, Profile};
use crate::request::{Measure, Rate};

/// How often it is looked at, nanoseconds.
const LOOK_NS: u64 = 20_000_000;
/// How long next hops may take to answer, nanoseconds.
const HOPS_NS_MAX: u64 = 5_000_000_000;
/// How long the other side may take to learn of us when it was asked for its address, nanoseconds.
const LEARN_NS: u64 = 200_000_000;
/// From the order to the first transaction.
const START_DELAY_NS: u64 = 300_000;
/// How much longer than asked for it may begin transactions that a delay held up: a part of the
/// duration, at least and at most so long.
const OVERTIME_PART: u64 = 20;
const OVERTIME_NS: std::ops::RangeInclusive<u64> = 20_000_000..=500_000_000;
/// The same for limited traffic, whose sessions are all to be begun: as long again, at least.
const OVERTIME_LIMITED_NS_MIN: u64 = 20_000_000_000;
/// How much longer than a transaction may take is waited for the last of them.
const DRAIN_EXTRA_NS: u64 = 1_000_000_000;
/// A part of the clients' entries more for the servers, who learn later that one is over.
const SERVER_ENTRIES_PART: usize = 8;

struct PortParts {
    name: String,
    interface: InterfaceId,
    output: NodeId,
    neighbours: Neighbours,
    announcements: Vec<Vec<u8>>,
}

/// The generator.
pub struct StatefulGenerator<S> {
    engine: Engine,
    surroundings: S,
    stage: NodeId,
    ports: Vec<PortParts>,
    profile: Profile,
    stateful: Stateful,
}

/// The counters of what is played, and what others may read of it.
struct Seen {
    clients: Option<Arc<Counters>>,
    servers: Option<Arc<Counters>>,
    live: Arc<Live>,
}

impl Seen {
    /// Transactions that are neither successful nor failed, on both sides.
    fn open(&self) -> u64 {
        let open = |counters: &Option<Arc<Counters>>| counters.as_ref().map_or(0, |c| c.transactions.open());
        open(&self.clients) + open(&self.servers)
    }
}

impl<S: Surroundings> StatefulGenerator<S> {
    /// Make everything that a profile describes. The worker does not run yet.
    pub fn new(
        profile: &Profile,
        config: EngineConfig,
        clock: Clock,
        mut surroundings: S,
    ) -> anyhow::Result<StatefulGenerator<S>> {
        let stateful = profile.stateful.as_ref().context("the profile has no `stateful`")?.value.clone();
        let (mut engine, inputs) = make_engine(config, clock.clone(), &mut surroundings)?;
        let spec = NodeSpec::input("tg-stateful", "Plays clients and servers").sink();
        let stage = engine.add_node(spec, vec![Box::new(Stage::new(clock))])?;
        let mut generator = StatefulGenerator {
            engine,
            surroundings,
            stage,
            ports: Vec::new(),
            profile: profile.clone(),
            stateful,
        };
        for number in 0..profile.ports.len() {
            generator.add_port(number).with_context(|| format!("port {number}"))?;
        }
        let knock = Box::new(Knock::at(stage));
        generator.engine.add_rx_queue(inputs, "tg-input", knock, RxMode::Polling, Some(WORKER))?;
        Ok(generator)
    }

    /// The hosts that a port plays besides its own addresses.
    fn hosts_on(&self, number: usize) -> Vec<Hosts> {
        let clients = self.stateful.clients.as_ref().filter(|clients| clients.on == number);
        let servers = Some(&self.stateful.servers).filter(|servers| servers.on == Some(number));
        clients.and_then(|c| c.hosts()).into_iter().chain(servers.and_then(|s| s.hosts())).collect()
    }

    fn add_port(&mut self, number: usize) -> anyhow::Result<()> {
        let port = &self.profile.ports[number].value;
        let mac = self.profile.port_mac(number);
        let own = Neighbours::new(mac, port, &Arc::default());
        let announcements = own.announcements();
        let neighbours = own.with_hosts(self.hosts_on(number));
        let interface = self.surroundings.make_port(&mut self.engine, number, port, "tg-stateful")?;
        let longest = self.stateful.frame_bytes_max();
        if let Some(most) = self.surroundings.frame_bytes_max(&self.engine, interface, port)
            && longest > most
        {
            bail!(
                "transactions send frames of {longest} bytes, and this port takes {most}; make `segment` or `frame` smaller"
            );
        }
        self.engine.set_input_node(interface, self.stage)?;
        self.engine.set_admin_up(interface, true)?;
        let known = self.engine.interface(interface).context("the port's interface is gone")?;
        let (name, output) = (known.name.clone(), known.row().output);
        self.ports.push(PortParts { name, interface, output, neighbours, announcements });
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

    /// What surrounds it.
    pub fn surroundings(&mut self) -> &mut S {
        &mut self.surroundings
    }

    /// Wait until every port has a link, then tell the neighbours who is here.
    pub fn wait_for_links(&mut self) -> anyhow::Result<()> {
        let deadline = self.engine.now_ns() + (self.profile.link_timeout_s * 1e9) as u64;
        let is_down =
            |engine: &Engine, port: &PortParts| !engine.interface(port.interface).is_some_and(|i| i.row().up);
        while let Some(number) = self.ports.iter().position(|port| is_down(&self.engine, port)) {
            if self.engine.now_ns() >= deadline || self.surroundings.is_interrupted() {
                let port = &self.ports[number];
                let trouble = self.surroundings.link_trouble(&self.engine, port.interface);
                bail!("port {number} ({}): {trouble} after {} s", port.name, self.profile.link_timeout_s);
            }
            self.surroundings.wait(&mut self.engine, LOOK_NS);
        }
        for port in &self.ports {
            for frame in port.announcements.clone() {
                let (output, id) = (port.output, port.interface);
                self.engine.post(WORKER, move |worker| {
                    worker.inject(&frame, output, InterfaceId::NONE, id, 0);
                });
            }
        }
        Ok(())
    }

    /// Begin transactions as the profile and `request` say, wait for their ends, and say what came of
    /// them.
    pub fn measure(
        &mut self,
        request: &Measure,
        onlooker: &mut dyn Onlooker,
    ) -> anyhow::Result<StatefulReport> {
        let seen = match self.stateful.kind {
            Kind::Udp => self.put_on::<Exchange>()?,
            Kind::Tcp => self.put_on::<Connection>()?,
        };
        let refused_before = self.refused();
        let played = self.play(request, &seen, onlooker);
        let remains = self.take_off()?;
        let schedule = played.with_context(|| match remains.unknown_hop {
            Some(hop) => format!("{hop} has not answered on the clients' or servers' port"),
            None => "the measurement was not finished".to_owned(),
        })?;
        let facts = Facts {
            stateful: &self.stateful,
            schedule,
            begun: seen.live.begun.get(),
            first_ns: seen.live.first_ns.get(),
            last_ns: seen.live.last_ns.get(),
            tx_ring_full: self.refused() - refused_before,
            is_interrupted: self.surroundings.is_interrupted(),
            histograms: request.histograms,
        };
        Ok(StatefulReport::new(&facts, seen.clients.as_deref(), seen.servers.as_deref(), remains))
    }

    /// Packets that the ports' devices did not take.
    fn refused(&self) -> u64 {
        self.ports.iter().map(|port| self.engine.interface_totals(port.interface).tx_errors).sum()
    }

    /// Put both sides on the stage.
    fn put_on<F: Flow>(&mut self) -> anyhow::Result<Seen> {
        let stateful = self.stateful.clone();
        let servers_hosts = stateful.servers.hosts().context("servers")?;
        let live: Arc<Live> = Arc::default();
        let entries = stateful.concurrent();
        let clients = match &stateful.clients {
            Some(clients) => {
                let hosts = clients.hosts().context("clients")?;
                let player = self.player::<F>(clients.on, Role::Client, hosts, Some(servers_hosts), entries);
                Some((player, Plan::new(&stateful, clients, servers_hosts)))
            }
            None => None,
        };
        let more = entries.div_ceil(SERVER_ENTRIES_PART);
        let servers = stateful
            .servers
            .on
            .map(|on| self.player::<F>(on, Role::Server, servers_hosts, None, entries + more));
        let seen = Seen {
            clients: clients.as_ref().map(|(player, _)| player.side.counters().clone()),
            servers: servers.as_ref().map(|player| player.side.counters().clone()),
            live: live.clone(),
        };
        let mut play: Option<Box<dyn Play>> = Some(Box::new(Performance::new(clients, servers, live)));
        let stage = self.stage;
        self.engine.call(WORKER, move |worker| {
            worker.visit::<Stage, _>(stage, |stage, _| stage.put_on(play.take()));
        })?;
        Ok(seen)
    }

    fn player<F: Flow>(
        &self,
        on: usize,
        role: Role,
        hosts: Hosts,
        targets: Option<Hosts>,
        entries: usize,
    ) -> Player<F> {
        let (parts, port) = (&self.ports[on], &self.profile.ports[on].value);
        let mac = self.profile.port_mac(on);
        let listens = match role {
            Role::Client => Listens::Nowhere,
            Role::Server => Listens::at(self.stateful.servers.port),
        };
        let seed = quiver_core::clock::unix_ns();
        let program = Program::new(&self.stateful, role);
        let heading = Heading { mac, hosts };
        let mut side = Side::new(program, heading, listens, entries, seed, self.engine.now_ns());
        side.gateway = port.gateway_mac;
        let is_known = port.gateway_mac.is_some();
        let gateway = port.gateway.filter(|_| !is_known).and_then(|gateway| Hosts::new(gateway, 1));
        let targets = if is_known { None } else { targets };
        let hop = gateway
            .or(targets)
            .map(|targets| NextHop::new(mac, asker(port, &hosts), targets, gateway.is_some()));
        Player {
            side,
            interface: parts.interface,
            output: parts.output,
            neighbours: parts.neighbours.clone(),
            hop,
        }
    }

    fn set_schedule(&mut self, schedule: Option<Schedule>) -> anyhow::Result<()> {
        let stage = self.stage;
        self.engine.call(WORKER, move |worker| {
            worker.visit::<Stage, _>(stage, |stage, _| {
                if let Some(play) = stage.play() {
                    play.set_schedule(schedule);
                }
            });
        })?;
        Ok(())
    }

    /// Take it off the stage: what is left of it.
    fn take_off(&mut self) -> anyhow::Result<Remains> {
        let stage = self.stage;
        let play = self
            .engine
            .call(WORKER, move |worker| worker.visit::<Stage, _>(stage, |stage, _| stage.put_on(None)))?;
        let mut play = play.flatten().context("the generator's node is gone")?;
        Ok(play.remains())
    }

    /// From the first question for a next hop to the last transaction's end.
    fn play(
        &mut self,
        request: &Measure,
        seen: &Seen,
        onlooker: &mut dyn Onlooker,
    ) -> anyhow::Result<Schedule> {
        let hops_until = self.engine.now_ns() + HOPS_NS_MAX;
        // The first look is taken after the node has run.
        self.surroundings.wait(&mut self.engine, LOOK_NS);
        while seen.live.unknown_hops.get() > 0 {
            if self.engine.now_ns() > hops_until || self.surroundings.is_interrupted() {
                bail!("{} next hops do not answer", seen.live.unknown_hops.get());
            }
            self.surroundings.wait(&mut self.engine, LOOK_NS);
        }
        let learnt_ns = self.engine.now_ns() + LEARN_NS;
        while self.engine.now_ns() < learnt_ns && !self.surroundings.is_interrupted() {
            self.surroundings.wait(&mut self.engine, LOOK_NS);
        }
        let schedule = self.schedule(request);
        self.set_schedule(Some(schedule))?;
        let duration_ns = schedule.end_ns - schedule.start_ns;
        let overtime_ns = match self.stateful.limit {
            Some(_) => duration_ns.max(OVERTIME_LIMITED_NS_MIN),
            None => (duration_ns / OVERTIME_PART).clamp(*OVERTIME_NS.start(), *OVERTIME_NS.end()),
        };
        let all = schedule.intended().unwrap_or(u64::MAX);
        let has_clients = seen.clients.is_some();
        self.wait_until(schedule.end_ns + overtime_ns, &schedule, seen, onlooker, |seen| {
            has_clients && seen.live.begun.get() >= all
        });
        self.set_schedule(None)?;
        let life_ns = ((self.stateful.timeout_s + self.stateful.hold_s) * 1e9) as u64;
        if has_clients {
            let until = self.engine.now_ns() + life_ns + DRAIN_EXTRA_NS;
            self.wait_until(until, &schedule, seen, onlooker, |seen| seen.open() == 0);
        }
        Ok(schedule)
    }

    /// Let time pass until something holds; a second interruption or the time ends it as well.
    fn wait_until(
        &mut self,
        until_ns: u64,
        schedule: &Schedule,
        seen: &Seen,
        onlooker: &mut dyn Onlooker,
        is_over: impl Fn(&Seen) -> bool,
    ) {
        let of_s = (schedule.end_ns - schedule.start_ns) as f64 / 1e9;
        loop {
            let now_ns = self.engine.now_ns();
            if is_over(seen) || now_ns >= until_ns || self.surroundings.is_interrupted() {
                return;
            }
            let counters = seen.clients.as_ref().or(seen.servers.as_ref());
            let (begun, done) = counters
                .map_or((0, 0), |c| (c.transactions.attempted.get(), c.transactions.successful.get()));
            onlooker.see(now_ns.saturating_sub(schedule.start_ns) as f64 / 1e9, of_s, begun, done);
            self.surroundings.wait(&mut self.engine, LOOK_NS.min(until_ns - now_ns));
        }
    }

    /// When transactions begin: `--rate` goes before the profile's.
    fn schedule(&self, request: &Measure) -> Schedule {
        let stateful = &self.stateful;
        let rate_cps = match request.rate {
            Rate::Pps(rate) => rate,
            Rate::Max => stateful.rate_cps.unwrap_or(f64::INFINITY),
        };
        let duration_s = match stateful.limit {
            Some(limit) if rate_cps.is_finite() => Schedule::duration_of(limit, rate_cps, stateful.ramp_up_s),
            _ => request.duration_s,
        };
        let start_ns = self.engine.now_ns() + START_DELAY_NS;
        Schedule {
            start_ns,
            end_ns: start_ns + (duration_s * 1e9).round() as u64,
            rate_cps,
            ramp_up_ns: (stateful.ramp_up_s * 1e9) as u64,
            limit: stateful.limit.unwrap_or(u64::MAX),
        }
    }
}

/// Who asks for next hops: the port itself, or its first host.
fn asker(port: &Port, hosts: &Hosts) -> std::net::IpAddr {
    let own4 = port.ip4.first().map(Into::into);
    let own6 = port.ip6.first().map(Into::into);
    let own = if hosts.is_ip6() { own6 } else { own4 };
    own.unwrap_or_else(|| hosts.at(0))
}
