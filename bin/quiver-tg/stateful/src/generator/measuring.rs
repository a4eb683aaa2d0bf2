//! How transactions are measured: find the next hops, see whether the forwarder is ready, begin
//! what comes due, wait for the ends.

use anyhow::{Context as _, bail};

use super::assembly::StatefulGenerator;
use super::running::{POLL_NS, Phase, Running};
use crate::report::{Facts, StatefulReport};
use crate::schedule::Schedule;
use crate::snapshot::Snapshot;
use crate::stateful_node::{FinalState, StatefulNode};
use crate::tcp::Connection;
use crate::udp::Exchange;
use quiver_tg_measuring::request::{Measure, Rate};
use quiver_tg_measuring::surroundings::{Surroundings, WORKER};
use quiver_tg_measuring::turn::Turn;
use quiver_tg_traffic::profile::stateful::Kind;

/// How often, while it gets ready.
const READY_POLL_NS: u64 = 2_000_000;
/// How long next hops may take to answer, nanoseconds.
const HOPS_NS_MAX: u64 = 5_000_000_000;
/// From the order to the first transaction.
const START_DELAY_NS: u64 = 300_000;
/// How much longer than a transaction may take is waited for the last of them.
const ENDING_EXTRA_NS: u64 = 1_000_000_000;

fn rate_of(rate_cps: f64) -> Rate {
    if rate_cps.is_finite() { Rate::Pps(rate_cps) } else { Rate::Max }
}

impl<S: Surroundings> StatefulGenerator<S> {
    /// Measure from beginning to end.
    ///
    /// # Errors
    /// As [`begin`](Self::begin) and [`turn`](Self::turn).
    pub fn measure(&mut self, request: &Measure) -> anyhow::Result<StatefulReport> {
        self.begin(request)?;
        loop {
            match self.turn()? {
                Turn::Done(report) => return Ok(*report),
                Turn::Until(then_ns) => {
                    let left_ns = then_ns.saturating_sub(self.engine.now_ns());
                    self.surroundings.wait(&mut self.engine, left_ns.max(1));
                }
                Turn::Idle => bail!("the measurement was given up"),
            }
        }
    }

    /// Begin to measure; [`turn`](Self::turn) goes on with it.
    ///
    /// # Errors
    /// When the request is impossible, a measurement is under way, a port has no link, or the
    /// worker does not answer.
    pub fn begin(&mut self, request: &Measure) -> anyhow::Result<()> {
        request.check().map_err(anyhow::Error::msg)?;
        if self.running.is_some() {
            bail!("a measurement is under way");
        }
        if let Some(port) = self.port_without_link() {
            bail!("{}; no transaction was begun", self.link_trouble(port));
        }
        self.ports
            .iter()
            .filter_map(|port| port.faults.as_ref())
            .for_each(|faults| faults.begin(1));
        let refused_before = self.refused();
        let shared = match self.stateful.kind {
            Kind::Udp => self.install::<Exchange>()?,
            Kind::Tcp => self.install::<Connection>()?,
        };
        let rate_cps = match request.rate {
            Rate::Max => self.stateful.rate_cps.unwrap_or(f64::INFINITY),
            rate => cps_of(rate),
        };
        let phase = Phase::Resolving { until_ns: self.engine.now_ns() + HOPS_NS_MAX };
        self.running = Some(Running {
            request: *request,
            shared,
            schedule: None,
            rate_cps,
            is_paused: false,
            is_stopped: false,
            refused_before,
            phase,
        });
        Ok(())
    }

    /// Is a measurement under way?
    pub fn is_measuring(&self) -> bool {
        self.running.is_some()
    }

    /// Counts of the measurement under way.
    pub fn snapshot(&self) -> Option<Snapshot> {
        let running = self.running.as_ref()?;
        let now_ns = self.engine.now_ns();
        let seconds = |from_ns: u64, to_ns: u64| to_ns.saturating_sub(from_ns) as f64 / 1e9;
        let (at_s, of_s) =
            running.schedule.as_ref().map_or((0.0, running.request.duration_s), |schedule| {
                (seconds(schedule.start_ns, now_ns), seconds(schedule.start_ns, schedule.end_ns))
            });
        let state = match running.phase {
            Phase::Resolving { .. } | Phase::Probing { .. } => "getting ready",
            Phase::Beginning if running.is_paused => "paused",
            Phase::Beginning => "sending",
            Phase::Ending { .. } => "waiting for ends",
            Phase::Draining { .. } => "waiting for late frames",
        };
        Some(Snapshot {
            now_ns,
            at_s,
            of_s,
            state,
            rate: rate_of(running.rate_cps),
            is_paused: running.is_paused,
            clients: running.shared.clients.clone(),
            servers: running.shared.servers.clone(),
        })
    }

    /// Do transactions begin? Before that no rate may be changed.
    pub fn counts(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.schedule.is_some())
    }

    /// Change how fast transactions begin, from now on.
    ///
    /// # Errors
    /// When no transactions begin, or the worker does not answer.
    pub fn set_rate(&mut self, rate: Rate) -> anyhow::Result<()> {
        self.change(|running| running.rate_cps = cps_of(rate))
    }

    /// Pause or resume the begin of transactions. Open ones continue in either case.
    ///
    /// # Errors
    /// As [`set_rate`](Self::set_rate).
    pub fn set_paused(&mut self, is_paused: bool) -> anyhow::Result<()> {
        self.change(|running| running.is_paused = is_paused)
    }

    fn change(&mut self, change: impl FnOnce(&mut Running)) -> anyhow::Result<()> {
        let Some(mut running) = self.running.take() else { bail!("nothing is measured now") };
        if !matches!(running.phase, Phase::Beginning) {
            self.running = Some(running);
            bail!("no more transactions begin now");
        }
        change(&mut running);
        let rate_cps = if running.is_paused { 0.0 } else { running.rate_cps };
        let now_ns = self.engine.now_ns();
        let changed =
            self.reschedule(move |schedule, begun| schedule.with_rate(now_ns, rate_cps, begun));
        running.schedule = changed?.or(running.schedule);
        self.running = Some(running);
        Ok(())
    }

    /// Begin no more transactions; the report comes from [`turn`](Self::turn) when those that are
    /// open have ended, or at once after a second stop.
    ///
    /// # Errors
    /// When the worker does not answer.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        let Some(mut running) = self.running.take() else { return Ok(()) };
        let was_stopped = std::mem::replace(&mut running.is_stopped, true);
        let now_ns = self.engine.now_ns();
        match running.phase {
            Phase::Beginning => {
                let ended =
                    self.reschedule(move |schedule, begun| schedule.ended(now_ns, begun))?;
                running.schedule = ended.or(running.schedule);
                self.end_beginning(&mut running)?;
            }
            Phase::Ending { .. } | Phase::Draining { .. } if was_stopped => {
                running.phase = Phase::Draining { until_ns: now_ns };
            }
            Phase::Ending { .. } | Phase::Draining { .. } => {}
            Phase::Resolving { .. } | Phase::Probing { .. } => {
                let schedule = self.schedule(&running);
                running.schedule = Some(schedule.ended(schedule.start_ns, 0));
                running.phase = Phase::Draining { until_ns: now_ns };
            }
        }
        self.running = Some(running);
        Ok(())
    }

    /// Continue the measurement under way.
    ///
    /// # Errors
    /// When a link is lost, a next hop does not answer, or the worker does not answer: the
    /// measurement is over then, without a report.
    pub fn turn(&mut self) -> anyhow::Result<Turn<StatefulReport>> {
        let Some(mut running) = self.running.take() else { return Ok(Turn::Idle) };
        let turn = self.advance(&mut running);
        match &turn {
            Ok(Turn::Until(_)) => self.running = Some(running),
            Ok(_) => {}
            Err(_) => drop(self.take_off()), // what is wrong has been said
        }
        turn
    }

    fn advance(&mut self, running: &mut Running) -> anyhow::Result<Turn<StatefulReport>> {
        let now_ns = self.engine.now_ns();
        if let Some(port) = self.port_without_link() {
            bail!("{}; it was lost while measuring", self.link_trouble(port));
        }
        let has_clients = running.shared.clients.is_some();
        match running.phase {
            Phase::Resolving { until_ns } => {
                let live = &running.shared.live;
                if live.polls.get() == 0 || live.unknown_hops.get() > 0 {
                    if now_ns > until_ns {
                        return self.name_silent_hop();
                    }
                    return Ok(Turn::Until(now_ns + READY_POLL_NS));
                }
                // After two polls the node has published the number of hosts to ping.
                let until_ns = now_ns + (self.stateful.ready_s * 1e9) as u64;
                running.phase = Phase::Probing { until_ns, polls: live.polls.get() + 2 };
                Ok(Turn::Until(now_ns + READY_POLL_NS))
            }
            Phase::Probing { until_ns, polls } => {
                let live = &running.shared.live;
                if now_ns < until_ns && (live.polls.get() < polls || live.unready_hosts.get() > 0) {
                    return Ok(Turn::Until(now_ns + READY_POLL_NS));
                }
                let schedule = self.schedule(running);
                self.set_schedule(Some(schedule))?;
                running.schedule = Some(schedule);
                running.phase = Phase::Beginning;
                Ok(Turn::Until(now_ns + START_DELAY_NS))
            }
            Phase::Beginning => {
                let schedule = running.schedule.context("a schedule")?;
                let all = schedule.intended().unwrap_or(u64::MAX);
                let has_begun_all =
                    has_clients && !running.is_paused && running.shared.live.begun.get() >= all;
                // Servers alone begin nothing.
                let overtime_ns = if has_clients { schedule.overtime_ns() } else { 0 };
                let until_ns = schedule.end_ns.saturating_add(overtime_ns);
                if has_begun_all || now_ns >= until_ns {
                    self.end_beginning(running)?;
                }
                Ok(Turn::Until(now_ns + POLL_NS))
            }
            Phase::Ending { until_ns } => {
                if now_ns >= until_ns || running.shared.open() == 0 {
                    let drain_ns = (running.request.drain_s * 1e9) as u64;
                    running.phase = Phase::Draining { until_ns: now_ns + drain_ns };
                }
                Ok(Turn::Until(now_ns + POLL_NS))
            }
            Phase::Draining { until_ns } if now_ns < until_ns => Ok(Turn::Until(until_ns)),
            Phase::Draining { .. } => Ok(Turn::Done(Box::new(self.finish(running)?))),
        }
    }

    fn end_beginning(&mut self, running: &mut Running) -> anyhow::Result<()> {
        self.set_schedule(None)?;
        let life_ns = ((self.stateful.timeout_s + self.stateful.hold_s) * 1e9) as u64;
        let wait_ns = if running.shared.clients.is_some() { life_ns + ENDING_EXTRA_NS } else { 0 };
        running.phase = Phase::Ending { until_ns: self.engine.now_ns() + wait_ns };
        Ok(())
    }

    /// The error of a next hop that does not answer.
    fn name_silent_hop<T>(&mut self) -> anyhow::Result<T> {
        let final_state = self.take_off()?;
        let silence = "is it there, on this VLAN, and is the port's own address in its network?";
        match final_state.unknown_hop {
            Some(hop) => {
                bail!("{hop} has not answered on the clients' or servers' port; {silence}")
            }
            None => bail!("next hops do not answer"),
        }
    }

    fn finish(&mut self, running: &Running) -> anyhow::Result<StatefulReport> {
        let final_state = self.take_off()?;
        let (shared, schedule) = (&running.shared, running.schedule.context("a schedule")?);
        let facts = Facts {
            stateful: &self.stateful,
            schedule,
            begun: shared.live.begun.get(),
            first_ns: shared.live.first_ns.get(),
            last_ns: shared.live.last_ns.get(),
            tx_ring_full: self.refused() - running.refused_before,
            is_interrupted: running.is_stopped,
            histograms: running.request.histograms,
            captures: self.captures.report(),
            faults: self
                .ports
                .iter()
                .map(|port| port.faults.as_ref().map(|done| done.report()))
                .collect(),
        };
        Ok(StatefulReport::new(
            &facts,
            shared.clients.as_deref(),
            shared.servers.as_deref(),
            final_state,
        ))
    }

    /// Packets that the ports' devices did not take.
    fn refused(&self) -> u64 {
        self.ports.iter().map(|port| self.engine.interface_totals(port.interface).tx_errors).sum()
    }

    fn set_schedule(&mut self, schedule: Option<Schedule>) -> anyhow::Result<()> {
        let node = self.node;
        self.engine.call(WORKER, move |worker| {
            worker.visit::<StatefulNode, _>(node, |node, _| {
                if let Some(workload) = node.workload() {
                    workload.set_schedule(schedule);
                }
            });
        })?;
        Ok(())
    }

    /// Change the schedule where it is followed; what it is now.
    fn reschedule(
        &mut self,
        change: impl Fn(&Schedule, u64) -> Schedule + Send + 'static,
    ) -> anyhow::Result<Option<Schedule>> {
        let node = self.node;
        let changed = self.engine.call(WORKER, move |worker| {
            worker.visit::<StatefulNode, _>(node, |node, _| node.workload()?.change(&change))
        })?;
        Ok(changed.flatten())
    }

    /// Remove the workload from the node; its results.
    fn take_off(&mut self) -> anyhow::Result<FinalState> {
        let node = self.node;
        let workload = self.engine.call(WORKER, move |worker| {
            worker.visit::<StatefulNode, _>(node, |node, _| node.install(None))
        })?;
        let mut workload = workload.flatten().context("the generator's node is gone")?;
        Ok(workload.final_state())
    }

    /// When transactions begin: the requested rate overrides the profile's.
    fn schedule(&self, running: &Running) -> Schedule {
        let (stateful, rate_cps) = (&self.stateful, running.rate_cps);
        let duration_s = match stateful.limit {
            Some(limit) if rate_cps.is_finite() => {
                Schedule::duration_of(limit, rate_cps, stateful.ramp_up_s)
            }
            _ => running.request.duration_s,
        };
        let start_ns = self.engine.now_ns() + START_DELAY_NS;
        let end_ns = start_ns + (duration_s * 1e9).round() as u64;
        let ramp_up_ns = (stateful.ramp_up_s * 1e9) as u64;
        Schedule::new(start_ns, end_ns, rate_cps, ramp_up_ns, stateful.limit.unwrap_or(u64::MAX))
    }
}

fn cps_of(rate: Rate) -> f64 {
    match rate {
        Rate::Pps(rate) => rate,
        Rate::Max => f64::INFINITY,
    }
}
