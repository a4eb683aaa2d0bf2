//! How a generator measures: give every port something to send and to fill, wait, take it back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::bail;
use quiver_core::InterfaceId;

use crate::generator::{Generator, Onlooker, Surroundings, WORKER};
use crate::outcome::Outcome;
use crate::pacer::Pacer;
use crate::reception::{Live, Reception, Wanted};
use crate::report::Report;
use crate::request::{Measure, Rate};
use crate::transmission::{Leg, Pace, SAMPLE_ALL_PPS_MAX, SAMPLE_FAST, Transmission};

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

impl<S: Surroundings> Generator<S> {
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
        let wanted: Vec<Wanted> = (0..self.streams.len())
            .map(|stream| Wanted {
                to: self.streams[stream].to,
                timed_every: self.timed_every(request, stream),
                live: live[stream].clone(),
            })
            .collect();
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
    ) -> anyhow::Result<Vec<Transmission>> {
        let start_ns = self.engine.now_ns() + START_DELAY_NS;
        let orders = self.transmissions(request, measurement, start_ns, live);
        let finished: Vec<Arc<AtomicBool>> = orders.iter().map(|t| t.finished.clone()).collect();
        let mut orders = orders.into_iter();
        self.exchange_transmissions(&mut |_| orders.next().map_or_else(Transmission::idle, Box::new))?;
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
    ) -> anyhow::Result<Vec<Reception>> {
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
                return Ok(before.into_iter().flatten().map(|b| *b).collect());
            }
            self.answer_by(deadline)?;
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
        let deadline = self.engine.now_ns() + ANSWER_NS_MAX;
        let mut before: Vec<Option<Box<Transmission>>> = self.ports.iter().map(|_| None).collect();
        loop {
            for (slot, port) in before.iter_mut().zip(&mut self.ports) {
                *slot = slot.take().or_else(|| port.transmitter.take());
            }
            if before.iter().all(Option::is_some) {
                return Ok(before.into_iter().flatten().map(|b| *b).collect());
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
    ) -> Vec<Transmission> {
        let counted_from_ns = start_ns + (request.warmup_s * 1e9) as u64;
        let end_ns = counted_from_ns + (request.duration_s * 1e9) as u64;
        let is_flat_out = request.rate == Rate::Max;
        let default_burst = if is_flat_out { BURST_FLAT_OUT } else { BURST_PACED };
        (0..self.ports.len())
            .map(|port| {
                let legs: Box<[Leg]> = (0..self.streams.len())
                    .filter(|stream| self.streams[*stream].from == port)
                    .map(|stream| self.leg(request, stream, start_ns, live[stream].clone()))
                    .collect();
                let mut transmission = Transmission {
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
                };
                transmission.share_bursts();
                transmission
            })
            .collect()
    }

    /// Every so manieth frame of a stream is timed.
    fn timed_every(&self, request: &Measure, stream: usize) -> u64 {
        let rate_pps = match request.rate {
            Rate::Pps(rate) => rate * self.weights[stream] / self.weights.iter().sum::<f64>(),
            Rate::Max => f64::INFINITY,
        };
        if rate_pps > SAMPLE_ALL_PPS_MAX { SAMPLE_FAST } else { 1 }
    }

    fn leg(&self, request: &Measure, stream: usize, start_ns: u64, live: Arc<Live>) -> Leg {
        let all: f64 = self.weights.iter().sum();
        let pace = match request.rate {
            Rate::Pps(rate) => {
                // Cumulated, so that rounding loses no frame of the whole.
                let up_to = |frames: u64, count: usize| {
                    (frames as f64 * self.weights[..count].iter().sum::<f64>() / all).round() as u64
                };
                let share = |frames: u64| up_to(frames, stream + 1) - up_to(frames, stream);
                let own_rate = rate * self.weights[stream] / all;
                let warmup = share(request.frames(rate, request.warmup_s));
                let counted = share(request.frames(rate, request.duration_s));
                let pacer = Pacer::new(own_rate, start_ns);
                let pacer = if request.make_up { pacer } else { pacer.without_making_up() };
                Pace::Constant { pacer, warmup, counted }
            }
            Rate::Max => Pace::FlatOut { share: 0.0, credit: 0.0 },
        };
        let sample = self.timed_every(request, stream);
        let weight = self.weights[stream];
        let (is_paused, is_ended) = (false, false);
        Leg {
            stream: stream as u8,
            pace,
            made: 0,
            counted: 0,
            refused: 0,
            sample,
            weight,
            is_paused,
            is_ended,
            live,
        }
    }
}
