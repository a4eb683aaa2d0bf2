//! How a generator measures: give every port something to send and to fill, go on until all is
//! sent, take it back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::bail;
use quiver_core::InterfaceId;

use super::assembly::Generator;
use super::running::{Drain, Phase, Running, Snapshot};
use crate::bound;
use crate::ordering::{Ordering as Orders, rate_of};
use crate::outcome::Outcome;
use crate::rates;
use crate::reception::{Live, Reception, Wanted};
use crate::report::Report;
use crate::request::{Measure, Rate};
use crate::schedule::Schedule;
use crate::stall::Stalls;
use crate::surroundings::{ProgressObserver, Surroundings, WORKER};
use crate::timing::timed_every;
use crate::transmission::{Change, Speed, Transmission};
use crate::turn::Turn;
use quiver_tg_traffic::profile::StreamRate;
use quiver_tg_traffic::profile::no_stream;

/// From the order to the first frame: all ports must have it by then.
const START_DELAY_NS: u64 = 300_000;
/// How long a port may take to answer an order.
const ANSWER_NS_MAX: u64 = 5_000_000_000;
/// Interval at which the end of a transmission is polled.
const POLL_NS: u64 = 1_000_000;
/// A stream that has not begun so long after the warm-up will not, or counts already.
const WARMUP_LATE_NS: u64 = 1_000_000_000;
/// How often the wait for late frames may begin anew.
const DRAINS_MAX: usize = 10;

impl<S: Surroundings> Generator<S> {
    /// Measure from beginning to end.
    ///
    /// # Errors
    /// As [`begin`](Self::begin) and [`turn`](Self::turn), and when it is interrupted.
    pub fn measure(
        &mut self,
        request: &Measure,
        observer: &mut dyn ProgressObserver,
    ) -> anyhow::Result<Report> {
        self.begin(request)?;
        loop {
            if self.surroundings.is_interrupted() {
                self.abort();
                bail!("the measurement was interrupted");
            }
            if let Some(snapshot) = self.snapshot().filter(|snapshot| snapshot.is_sending) {
                let sum = |of: fn(&(u64, u64)) -> u64| snapshot.streams.iter().map(of).sum();
                observer.progress(snapshot.at_s, snapshot.of_s, sum(|s| s.0), sum(|s| s.1));
            }
            match self.turn()? {
                Turn::Done(report) => return Ok(*report),
                Turn::Until(then_ns) => {
                    let left_ns = then_ns.saturating_sub(self.engine.now_ns());
                    self.surroundings.wait(&mut self.engine, left_ns.max(POLL_NS));
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
            bail!("{}; nothing was sent", self.link_trouble(port));
        }
        let live: Vec<Arc<Live>> = self.streams.iter().map(|_| Arc::default()).collect();
        let measurement = self.measurement;
        self.measurement = self.measurement.wrapping_add(2);
        let counted = measurement.wrapping_add(1);
        let wanted: Vec<Wanted> = (0..self.streams.len())
            .map(|stream| Wanted {
                to: self.streams[stream].to,
                timed_every: timed_every(
                    self.sendings[stream].timing,
                    rate_of(&self.sendings, request.rate, stream),
                ),
                live: live[stream].clone(),
            })
            .collect();
        self.ports
            .iter()
            .filter_map(|port| port.faults.as_ref())
            .for_each(|faults| faults.begin(counted));
        let earliest_ns = self.engine.now_ns() + (request.warmup_s * 1e9) as u64;
        self.exchange_receptions(&mut |port| Reception::new(port, counted, &wanted, earliest_ns))?;
        let start_ns = self.engine.now_ns() + START_DELAY_NS;
        let (sendings, burst) = (&self.sendings, self.burst);
        let ordering = Orders { sendings, request, measurement, start_ns, burst, live: &live };
        let mut orders = ordering.transmissions(self.ports.len());
        let stalls = Arc::<Stalls>::default();
        if let Some(first) = orders.first_mut() {
            first.stalls = Some(stalls.clone());
        }
        let finished: Vec<Arc<AtomicBool>> = orders.iter().map(|t| t.finished.clone()).collect();
        let mut orders = orders.into_iter();
        self.exchange_transmissions(&mut |_| {
            orders.next().map_or_else(Transmission::idle, Box::new)
        })?;
        let counted_from_ns = start_ns + (request.warmup_s * 1e9) as u64;
        let rates =
            (0..self.streams.len()).map(|stream| rate_of(&self.sendings, request.rate, stream));
        let mut schedule = Schedule::new(rates, counted_from_ns);
        let waiting = self.sendings.iter().enumerate().filter(|(_, sending)| sending.is_paused);
        waiting.for_each(|(stream, _)| schedule.set_paused(stream, true, start_ns));
        let phase = Phase::Sending;
        let request = *request;
        self.running = Some(Running { request, live, start_ns, stalls, finished, schedule, phase });
        Ok(())
    }

    /// Convert a rate to frames a second: of one stream, or of all that share the rate of the
    /// whole.
    ///
    /// # Errors
    /// When there is no such stream, or a rate in per cent needs a line rate that the profile does
    /// not give.
    pub fn rate_in_frames(&self, rate: StreamRate, stream: Option<usize>) -> Result<Rate, String> {
        rates::in_frames(&self.sendings, rate, stream)
    }

    /// Change the rate of one stream, or of all together, while it is sent. No frame is skipped.
    ///
    /// # Errors
    /// When nothing is sent, when there is no such stream, or when the worker does not answer.
    pub fn set_rate(&mut self, stream: Option<usize>, rate: Rate) -> anyhow::Result<()> {
        for number in self.chosen(stream)? {
            if stream.is_none() && self.sendings[number].rate.is_some() {
                continue; // it keeps its own
            }
            let rate = if stream.is_some() { rate } else { rate_of(&self.sendings, rate, number) };
            let speed = match rate {
                Rate::Pps(rate) => Speed::Pps(rate),
                Rate::Max => Speed::Max,
            };
            self.change(number, Change::Rate { stream: Some(number as u8), speed })?;
            self.note(|schedule, now_ns| schedule.set_rate(number, rate, now_ns));
        }
        Ok(())
    }

    /// Pause or resume one stream, or all. The measurement's time goes on meanwhile.
    ///
    /// # Errors
    /// As [`set_rate`](Self::set_rate).
    pub fn set_paused(&mut self, stream: Option<usize>, is_paused: bool) -> anyhow::Result<()> {
        for number in self.chosen(stream)? {
            let stream = Some(number as u8);
            let change =
                if is_paused { Change::Pause { stream } } else { Change::Resume { stream } };
            self.change(number, change)?;
            self.note(|schedule, now_ns| schedule.set_paused(number, is_paused, now_ns));
        }
        Ok(())
    }

    /// Is the warm-up over? Before that no rate may be changed.
    pub fn counts(&self) -> bool {
        self.running.as_ref().is_some_and(|running| {
            let warm_ns = running.start_ns + (running.request.warmup_s * 1e9) as u64;
            let now_ns = self.engine.now_ns();
            let has_begun = running.live.iter().all(|live| live.made.get() > 0);
            now_ns > warm_ns && (has_begun || now_ns > warm_ns + WARMUP_LATE_NS)
        })
    }

    fn chosen(&self, stream: Option<usize>) -> anyhow::Result<std::ops::Range<usize>> {
        let count = self.streams.len();
        match stream {
            Some(stream) if stream >= count => bail!(no_stream(stream, count)),
            Some(stream) => Ok(stream..stream + 1),
            None => Ok(0..count),
        }
    }

    fn change(&mut self, stream: usize, change: Change) -> anyhow::Result<()> {
        let is_sending = self.running.as_ref().is_some_and(|r| matches!(r.phase, Phase::Sending));
        if !is_sending {
            bail!("nothing is sent now");
        }
        let port = self.streams[stream].from;
        if self.ports[port].transmitter.change(change).is_err() {
            bail!("the generator's worker does not answer; is another program busy on its core?");
        }
        Ok(())
    }

    fn note(&mut self, note: impl FnOnce(&mut Schedule, u64)) {
        let now_ns = self.engine.now_ns();
        if let Some(running) = &mut self.running {
            note(&mut running.schedule, now_ns);
        }
    }

    /// Continue the measurement under way.
    ///
    /// # Errors
    /// When a link is lost or the worker does not answer: the measurement is over then, without a
    /// report.
    pub fn turn(&mut self) -> anyhow::Result<Turn> {
        self.refresh_gateways();
        let Some(mut running) = self.running.take() else { return Ok(Turn::Idle) };
        let turn = self.advance(&mut running);
        match &turn {
            Ok(Turn::Until(_)) => self.running = Some(running),
            Ok(_) => {}
            // Nothing may go on being sent or counted.
            Err(_) => self.stop_all(),
        }
        turn
    }

    /// End the sending now. Late frames are waited for, and the report, which is about the time
    /// until now, comes from [`turn`](Self::turn).
    ///
    /// # Errors
    /// When the worker does not answer.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        let Some(mut running) = self.running.take() else { return Ok(()) };
        if matches!(running.phase, Phase::Sending) {
            let counted_s = self.engine.now_ns().saturating_sub(running.start_ns) as f64 / 1e9;
            let counted_s = (counted_s - running.request.warmup_s).max(1e-9);
            running.request.duration_s = counted_s.min(running.request.duration_s);
            self.end_sending(&mut running)?;
        }
        self.running = Some(running);
        Ok(())
    }

    /// End the measurement at once, without a report.
    pub fn abort(&mut self) {
        if self.running.take().is_some() {
            self.stop_all();
        }
    }

    fn stop_all(&mut self) {
        let unanswered = self.exchange_transmissions(&mut |_| Transmission::idle());
        let deaf = self.exchange_receptions(&mut |_| Reception::idle());
        if let Err(error) = unanswered.map(drop).and(deaf.map(drop)) {
            tracing::error!("a measurement cannot be ended: {error:#}");
        }
    }

    /// Is a measurement under way?
    pub fn is_measuring(&self) -> bool {
        self.running.is_some()
    }

    /// Counts of the measurement under way.
    pub fn snapshot(&self) -> Option<Snapshot> {
        let running = self.running.as_ref()?;
        let now_ns = self.engine.now_ns();
        Some(Snapshot {
            now_ns,
            at_s: now_ns.saturating_sub(running.start_ns) as f64 / 1e9,
            of_s: running.request.warmup_s + running.request.duration_s,
            is_sending: matches!(running.phase, Phase::Sending),
            streams: running.live.iter().map(|l| (l.made.get(), l.received.get())).collect(),
            plans: (0..running.live.len())
                .map(|stream| (running.schedule.rate(stream), running.schedule.is_paused(stream)))
                .collect(),
        })
    }

    /// How long frames of each stream took so far, by class of [`Spread`](crate::spread::Spread).
    pub fn spreads(&self) -> Vec<Vec<u64>> {
        self.running
            .iter()
            .flat_map(|running| &running.live)
            .map(|live| live.spread.read())
            .collect()
    }

    fn advance(&mut self, running: &mut Running) -> anyhow::Result<Turn> {
        let now_ns = self.engine.now_ns();
        if let Some(port) = self.port_without_link() {
            bail!("{}; it was lost while measuring", self.link_trouble(port));
        }
        match &mut running.phase {
            Phase::Sending if running.finished.iter().all(|f| f.load(Ordering::Acquire)) => {
                self.end_sending(running)?;
                self.advance(running)
            }
            Phase::Sending => {
                let whole_s = running.request.warmup_s + running.request.duration_s;
                let end_ns = running.start_ns + (whole_s * 1e9) as u64;
                if running.schedule.is_changed() && now_ns >= end_ns {
                    self.end_sending(running)?;
                    return self.advance(running);
                }
                if now_ns > end_ns + ANSWER_NS_MAX {
                    let late_s = ANSWER_NS_MAX / 1_000_000_000;
                    bail!("the generator's worker has not finished {late_s} s after the end");
                }
                // The control thread shares the worker's core: it polls rarely.
                let wait_ns = end_ns.saturating_sub(now_ns).clamp(POLL_NS, 1_000_000_000);
                Ok(Turn::Until(now_ns + wait_ns))
            }
            Phase::Draining(drain) if now_ns < drain.until_ns => Ok(Turn::Until(drain.until_ns)),
            Phase::Draining(drain) => {
                let received = running.live.iter().map(|l| l.received.get()).sum();
                if received != drain.received && drain.left > 0 {
                    drain.received = received;
                    drain.left -= 1;
                    drain.until_ns = now_ns + (running.request.drain_s * 1e9) as u64;
                    return Ok(Turn::Until(drain.until_ns));
                }
                let sent = std::mem::take(&mut drain.sent);
                let received = self.exchange_receptions(&mut |_| Reception::idle())?;
                let faults = self
                    .ports
                    .iter()
                    .map(|port| port.faults.as_ref().map(|f| f.report()))
                    .collect();
                let outcome = Outcome { sent, received, faults, stalls: running.stalls.clone() };
                let mut report = outcome.report(&running.request, &self.streams);
                report.captures = self.captures.report();
                bound::classify(&mut report, self.own.as_ref(), running.request.rate == Rate::Max);
                Ok(Turn::Done(Box::new(report)))
            }
        }
    }

    /// Take back what was sent, and begin to wait for late frames.
    fn end_sending(&mut self, running: &mut Running) -> anyhow::Result<()> {
        let sent = self.exchange_transmissions(&mut |_| Transmission::idle())?;
        if running.schedule.is_changed() {
            let Measure { warmup_s, duration_s, .. } = running.request;
            let end_ns = running.start_ns + ((warmup_s + duration_s) * 1e9) as u64;
            running.request.rate = running.schedule.mean_rate(end_ns, duration_s);
        }
        running.phase = Phase::Draining(Drain {
            sent,
            until_ns: self.engine.now_ns() + (running.request.drain_s * 1e9) as u64,
            received: running.live.iter().map(|l| l.received.get()).sum(),
            left: DRAINS_MAX,
        });
        Ok(())
    }

    /// Give every port something new to fill; what it has filled.
    fn exchange_receptions(
        &mut self,
        next: &mut dyn FnMut(usize) -> Box<Reception>,
    ) -> anyhow::Result<Vec<Reception>> {
        for (number, port) in self.ports.iter_mut().enumerate() {
            port.receiver.begin(next(number));
        }
        let deadline = self.worker_deadline();
        let mut before: Vec<Option<Box<Reception>>> = self.ports.iter().map(|_| None).collect();
        loop {
            for (slot, port) in before.iter_mut().zip(&mut self.ports) {
                if slot.is_none() {
                    *slot = port.receiver.take();
                    let node = port.receiver_node;
                    if slot.is_none() {
                        // An empty packet makes the node run, which then takes its order.
                        self.engine.post(WORKER, move |worker| {
                            worker.inject(&[], node, InterfaceId::NONE, InterfaceId::NONE);
                        });
                    }
                }
            }
            if before.iter().all(Option::is_some) {
                return Ok(before.into_iter().flatten().map(|b| *b).collect());
            }
            self.wait_for_worker(deadline)?;
        }
    }

    /// Give every port something new to send; what it has sent.
    fn exchange_transmissions(
        &mut self,
        next: &mut dyn FnMut(usize) -> Box<Transmission>,
    ) -> anyhow::Result<Vec<Transmission>> {
        for (number, port) in self.ports.iter_mut().enumerate() {
            port.transmitter.begin(next(number));
        }
        let deadline = self.worker_deadline();
        let mut before: Vec<Option<Box<Transmission>>> = self.ports.iter().map(|_| None).collect();
        loop {
            for (slot, port) in before.iter_mut().zip(&mut self.ports) {
                *slot = slot.take().or_else(|| port.transmitter.take());
            }
            if before.iter().all(Option::is_some) {
                return Ok(before.into_iter().flatten().map(|b| *b).collect());
            }
            self.wait_for_worker(deadline)?;
        }
    }

    /// Until when a port must have taken an order that is given now.
    pub(crate) fn worker_deadline(&self) -> u64 {
        self.engine.now_ns() + ANSWER_NS_MAX
    }

    pub(crate) fn wait_for_worker(&mut self, deadline: u64) -> anyhow::Result<()> {
        if self.engine.now_ns() > deadline {
            bail!("the generator's worker does not answer; is another program busy on its core?");
        }
        self.surroundings.wait(&mut self.engine, POLL_NS);
        Ok(())
    }
}
