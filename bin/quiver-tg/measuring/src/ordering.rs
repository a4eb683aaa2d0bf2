//! From a request to what each port has to send: every stream at its own rate or with its share of
//! the whole.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::pacing::{Gaps, Pacer, Recorded, Schedule};
use crate::plan::ENDLESS;
use crate::plan::{Plan, Rounds};
use crate::reception::Live;
use crate::request::{Measure, Rate};
use crate::timing::timed_every;
use crate::transmission::{Leg, Transmission};
use quiver_tg_traffic::frames::Source;
use quiver_tg_traffic::profile::quantity::RATE_PPS_MAX;
use quiver_tg_traffic::profile::timing::Timing;
use quiver_tg_traffic::profile::{BURST_MAX, Bursts, Pacing, Profile, Stream};

/// Rate, pacing and order of a stream, from its profile.
#[derive(Clone, Debug)]
pub struct Sending {
    /// The port that sends.
    pub from: usize,
    /// Its share of what is divided among streams without a rate of their own.
    pub weight: f64,
    /// Its own rate.
    pub rate: Option<Rate>,
    /// Bytes of a frame on average, without FCS.
    pub frame_bytes: f64,
    /// Line rate of the sending port, bits a second, if the profile gives one.
    pub line_rate_bps: Option<f64>,
    /// Which of its frames are timed.
    pub timing: Timing,
    /// It waits to be resumed.
    pub is_paused: bool,
    pacing: Pacing,
    bursts: Option<Bursts>,
    delay_ns: u64,
    loops: u64,
    /// The number of the stream that must have ended before.
    after: Option<usize>,
    /// Its own times.
    times_ns: Option<Arc<[u64]>>,
}

impl Sending {
    /// The timing of a stream of a checked profile; `source` makes its frames.
    ///
    /// # Errors
    /// When a rate in per cent needs a line rate that the profile does not give.
    pub fn new(profile: &Profile, stream: &Stream, source: &Source) -> Result<Sending, String> {
        let line_rate = profile.ports[stream.from].value.line_rate;
        let mean_bytes = source.frame_bytes_mean();
        let times_ns = source.times_ns();
        let rate = match stream.rate {
            Some(rate) => Some(rate.pps(mean_bytes, line_rate)?.map_or(Rate::Max, Rate::Pps)),
            None if stream.latency => Some(Rate::Pps(LATENCY_PPS_DEFAULT)),
            None => times_ns.as_ref().map(|times| Rate::Pps(mean_pps(times))),
        };
        let packets = source.packets().filter(|_| times_ns.is_some() && stream.after.is_some());
        let bursts =
            stream.bursts.or(packets.map(|packets| Bursts { packets, count: 1, gap: 0.0 }));
        Ok(Sending {
            from: stream.from,
            weight: stream.weight,
            rate,
            frame_bytes: mean_bytes,
            line_rate_bps: line_rate,
            timing: if stream.latency { Timing::Every } else { profile.latency },
            is_paused: stream.paused,
            pacing: stream.pacing,
            bursts,
            delay_ns: (stream.delay * 1e9) as u64,
            loops: stream.loops,
            after: stream.after.as_deref().and_then(|name| profile.number_of(name)),
            times_ns,
        })
    }

    /// Is it sent from the beginning to the end of the measurement?
    fn is_continuous(&self) -> bool {
        self.bursts.is_none() && self.after.is_none() && self.delay_ns == 0
    }
}

/// The rate of a latency stream that says none, frames a second (seed 004 §1.5.3).
const LATENCY_PPS_DEFAULT: f64 = 9000.0;

/// The mean rate of a recording.
fn mean_pps(times_ns: &[u64]) -> f64 {
    let gaps = times_ns.len().saturating_sub(1).max(1) as f64;
    let last_ns = times_ns.last().copied().unwrap_or(0).max(1) as f64;
    (gaps * 1e9 / last_ns).clamp(1e-3, 500e6)
}

/// How fast a stream is when all together have this rate: its own rate, or its share.
pub fn rate_of(sendings: &[Sending], rate: Rate, stream: usize) -> Rate {
    let own = &sendings[stream];
    match (own.rate, rate) {
        (Some(own_rate), _) => own_rate,
        (None, Rate::Pps(rate)) => Rate::Pps(rate * own.weight / shared(sendings)),
        (None, Rate::Max) => Rate::Max,
    }
}

/// The weights of all streams that share the rate of the whole.
fn shared(sendings: &[Sending]) -> f64 {
    sendings.iter().filter(|sending| sending.rate.is_none()).map(|sending| sending.weight).sum()
}

/// Makes what the ports have to send.
pub struct Ordering<'a> {
    /// By stream.
    pub sendings: &'a [Sending],
    /// The request.
    pub request: &'a Measure,
    /// Of the warm-up; the next one is that of the frames that count.
    pub measurement: u8,
    /// When it begins, nanoseconds of the engine's clock.
    pub start_ns: u64,
    /// Frames in a burst at most, if the profile says so.
    pub burst: Option<usize>,
    /// By stream.
    pub live: &'a [Arc<Live>],
}

impl Ordering<'_> {
    /// By port.
    pub fn transmissions(&self, ports: usize) -> Vec<Transmission> {
        let plans = self.plans();
        let mut legs: Vec<Vec<Leg>> = (0..ports).map(|_| Vec::new()).collect();
        for (stream, plan) in plans.into_iter().enumerate() {
            let of_port = &mut legs[self.sendings[stream].from];
            of_port.push(self.leg(stream, of_port.len(), plan));
        }
        legs.into_iter().map(|legs| self.transmission(legs)).collect()
    }

    fn transmission(&self, mut legs: Vec<Leg>) -> Transmission {
        let counted_from_ns = self.start_ns + (self.request.warmup_s * 1e9) as u64;
        // The ring takes the first frames of a burst: those that must leave in time come first.
        legs.sort_by_key(|leg| leg.is_flat_out);
        let is_flat_out = legs.iter().any(|leg| leg.is_flat_out);
        let mut transmission = Transmission {
            measurement: self.measurement,
            start_ns: self.start_ns,
            counted_from_ns,
            end_ns: counted_from_ns + (self.request.duration_s * 1e9) as u64,
            is_flat_out,
            burst_frames_max: self.burst.unwrap_or(BURST_MAX),
            first_ns: 0,
            last_ns: 0,
            bursts: 0,
            full_bursts: 0,
            stalls: None,
            finished: Arc::new(AtomicBool::new(legs.is_empty())),
            legs: legs.into_boxed_slice(),
        };
        transmission.share_bursts();
        transmission
    }

    /// By stream; `None` for those that are simply sent.
    fn plans(&self) -> Vec<Option<Box<Plan>>> {
        let rounds: Vec<Rounds> = self.sendings.iter().map(|_| Rounds::default()).collect();
        let first_of = |mut stream: usize| {
            while let Some(before) = self.sendings[stream].after {
                stream = before;
            }
            stream
        };
        let plan = |stream: usize| {
            let sending = &self.sendings[stream];
            if sending.is_continuous() {
                return None;
            }
            let bursts = sending.bursts.unwrap_or(Bursts { packets: ENDLESS, count: 1, gap: 0.0 });
            let first = first_of(stream);
            let chain =
                (0..rounds.len()).filter(|other| stream == first && first_of(*other) == first);
            Some(Box::new(Plan {
                packets: bursts.packets,
                bursts: bursts.count,
                gap_ns: (bursts.gap * 1e9) as u64,
                delay_ns: sending.delay_ns,
                rounds: self.sendings[first].loops,
                after: sending.after.map(|before| rounds[before].clone()),
                chain: chain.map(|other| rounds[other].clone()).collect(),
                own: rounds[stream].clone(),
                ..Plan::default()
            }))
        };
        (0..self.sendings.len()).map(plan).collect()
    }

    fn leg(&self, stream: usize, source: usize, plan: Option<Box<Plan>>) -> Leg {
        let sending = &self.sendings[stream];
        let rate = rate_of(self.sendings, self.request.rate, stream);
        let (own_pps, is_flat_out) = match rate {
            Rate::Pps(own_pps) => (own_pps, false),
            Rate::Max => (RATE_PPS_MAX, true),
        };
        let (warmup, planned) = match plan {
            None if !is_flat_out && !sending.is_paused => (
                self.frames(stream, own_pps, self.request.warmup_s),
                self.frames(stream, own_pps, self.request.duration_s),
            ),
            _ => (0, ENDLESS),
        };
        let pacer = self.pacer(sending, own_pps, stream);
        let live = self.live[stream].clone();
        let (weight, sample) = (sending.weight, timed_every(sending.timing, rate));
        let mut leg = Leg {
            is_flat_out,
            warmup,
            planned,
            plan,
            weight,
            sample,
            ..Leg::new(stream as u8, source, pacer, live)
        };
        if sending.is_paused {
            leg.pause(self.start_ns);
        }
        leg
    }

    fn pacer(&self, sending: &Sending, rate_pps: f64, stream: usize) -> Pacer {
        let pacer = Pacer::new(rate_pps, self.start_ns);
        let pacer = if self.request.make_up { pacer } else { pacer.without_making_up() };
        match (&sending.times_ns, sending.pacing) {
            (Some(times_ns), _) => {
                pacer.with_schedule(Schedule::Recorded(Box::new(Recorded::new(times_ns.clone()))))
            }
            (None, Pacing::Constant) => pacer,
            (None, Pacing::Poisson) => {
                pacer.with_schedule(Schedule::Poisson(Box::new(Gaps::new(stream as u64 + 1))))
            }
            (None, Pacing::BurstsOf(frames)) => {
                pacer.with_schedule(Schedule::Bursts(u64::from(frames)))
            }
        }
    }

    /// Frames of a stream in so many seconds. Of those that share a rate they are cumulated, so
    /// that rounding loses no frame of the whole.
    fn frames(&self, stream: usize, own_pps: f64, seconds: f64) -> u64 {
        let Rate::Pps(rate) = self.request.rate else {
            return self.request.frames(own_pps, seconds);
        };
        if self.sendings[stream].rate.is_some() {
            return self.request.frames(own_pps, seconds);
        }
        let (frames, all) = (self.request.frames(rate, seconds) as f64, shared(self.sendings));
        let up_to = |count: usize| (frames * shared(&self.sendings[..count]) / all).round() as u64;
        up_to(stream + 1) - up_to(stream)
    }
}
