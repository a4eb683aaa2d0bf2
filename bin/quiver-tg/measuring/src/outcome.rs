//! Adding up: from what the workers gave back to the report.

use std::sync::Arc;

use hdrhistogram::Histogram;

use crate::faults::FaultsReport;
use crate::gaps::Gaps;
use crate::latency::{self, Distribution};
use crate::reception::{Arrivals, Reception};
use crate::report::{
    Direction, FCS_BYTES, Kind, LatencyStreams, Limit, NotSent, PortReport, Report, StreamReport,
    WIRE_OVERHEAD_BYTES,
};
use crate::request::Measure;
use crate::stall::Stalls;
use crate::transmission::{Leg, Transmission};

/// Slower than this part of the rate that was requested: the generator was the limit.
const RATE_PART_MIN: f64 = 0.995;
/// Flat out, the forwarder kept up when fewer bursts than this part met a full ring.
const FULL_BURSTS_PART_MIN: f64 = 0.1;
/// Flat out, the forwarder was at its end when it lost more than this part of what was offered.
const OVERLOAD_PART_MIN: f64 = 0.02;

/// Flat out, a smaller part of the frames may be lost without the received rate saying less.
const LOST_PART_MIN: f64 = 1.0 - RATE_PART_MIN;

/// Properties of a stream for the report.
#[derive(Clone, Debug)]
pub struct StreamFacts {
    /// Its name.
    pub name: String,
    /// The port that sends.
    pub from: usize,
    /// The port where the frames should come back.
    pub to: usize,
    /// Bytes of a frame on average, without FCS.
    pub frame_bytes: f64,
    /// The sequence of its sizes (RFC 6985), unless it is drawn at random.
    pub genome: Option<String>,
    /// Its purpose.
    pub kind: Kind,
}

/// Results of a measurement as the worker returned them, by port.
pub struct Outcome {
    /// Transmissions.
    pub sent: Vec<Transmission>,
    /// Receptions.
    pub received: Vec<Reception>,
    /// Faults of received frames, at ports that have faults.
    pub faults: Vec<Option<FaultsReport>>,
    /// Times in which the worker did not run.
    pub stalls: Arc<Stalls>,
}

/// Whether generator or host, rather than the forwarder, lost or delayed frames.
struct Verdict {
    limit: Option<Limit>,
    is_host_stalled: bool,
}

/// Times of several streams.
struct Sums {
    latency: Histogram<u64>,
    ipdv: Histogram<u64>,
}

impl Sums {
    fn new() -> Sums {
        Sums { latency: latency::histogram(), ipdv: latency::histogram() }
    }

    fn add(&mut self, arrivals: &Arrivals) {
        // All have the same bounds, so that nothing can be refused.
        let _ = self.latency.add(&arrivals.times.latency);
        let _ = self.ipdv.add(&arrivals.times.ipdv);
    }

    fn distribution(&self, whole: bool) -> (Option<Distribution>, Option<Distribution>) {
        let distribution = |histogram| Distribution::with_histogram(histogram, whole);
        (distribution(&self.latency), distribution(&self.ipdv))
    }
}

/// Of what to be timed: latency streams if there are any, else the load.
fn timed_kind(streams: &[StreamFacts]) -> Kind {
    let has_latency_streams = streams.iter().any(|s| s.kind == Kind::Latency);
    if has_latency_streams { Kind::Latency } else { Kind::Load }
}

impl Outcome {
    fn legs(&self) -> impl Iterator<Item = &Leg> {
        self.sent.iter().flat_map(|t| t.legs.iter())
    }

    fn arrivals(&self, stream: usize, facts: &StreamFacts) -> Option<&Arrivals> {
        self.received.get(facts.to)?.streams.get(stream)?.arrivals.as_ref()
    }

    /// Seconds from the first counted frame to the end of the last one's interval; those of the
    /// request where there are too few to say.
    fn duration_s(&self, requested_s: f64) -> f64 {
        let of_port = |t: &Transmission| {
            let frames = t.legs.iter().map(|leg| leg.came_due()).max().unwrap_or(0);
            let between_s = t.last_ns.saturating_sub(t.first_ns) as f64 / 1e9;
            match frames {
                0 | 1 => requested_s,
                _ if t.is_flat_out => between_s,
                _ => between_s * frames as f64 / (frames - 1) as f64,
            }
        };
        self.sent.iter().map(of_port).fold(0.0, f64::max).max(1e-9)
    }

    /// One stream, over so many seconds.
    fn stream(
        &self,
        stream: usize,
        facts: &StreamFacts,
        duration_s: f64,
        whole: bool,
    ) -> StreamReport {
        let own = || self.legs().filter(move |leg| usize::from(leg.stream) == stream);
        let offered = own().map(Leg::sent).sum::<u64>();
        let numbers = own().map(|leg| leg.counted).sum::<u64>();
        let refused = own().map(|leg| leg.refused).sum::<u64>();
        let at_ports = |of: fn(&crate::reception::StreamReception) -> u64| {
            self.received.iter().filter_map(|port| port.streams.get(stream)).map(of).sum::<u64>()
        };
        let arrivals = self.arrivals(stream, facts);
        let count = |of: fn(&Arrivals) -> u64| arrivals.map_or(0, of);
        let (received, received_bytes) = (count(|a| a.received), count(|a| a.received_bytes));
        let distribution = |of: fn(&Arrivals) -> &Histogram<u64>| {
            arrivals.and_then(|a| Distribution::with_histogram(of(a), whole))
        };
        let bits =
            |overhead_bytes: f64| 8.0 * (received_bytes as f64 + overhead_bytes * received as f64);
        let intended = own().map(|leg| leg.intended).sum::<u64>();
        let mut departures = latency::histogram();
        own().for_each(|leg| {
            let _ = departures.add(&leg.departures.error_ns); // the same bounds
        });
        StreamReport {
            stream,
            name: facts.name.clone(),
            genome: facts.genome.clone(),
            intended,
            not_sent: NotSent::new(
                intended.saturating_sub(offered),
                refused,
                own().map(|leg| leg.short).sum(),
            ),
            departure_ns: Distribution::with_histogram(&departures, whole),
            kind: facts.kind,
            from: facts.from,
            to: facts.to,
            offered,
            received,
            received_bytes,
            lost: offered as i64 - received as i64,
            gaps: arrivals.map_or(Gaps::default(), |a| a.gaps(numbers)),
            reordered: count(|a| a.reordered),
            reordered_behind_max: count(|a| a.reordered_behind_max),
            duplicated: count(|a| a.duplicated),
            misdelivered: at_ports(|s| s.misdelivered),
            corrupted: at_ports(|s| s.corrupted),
            too_late: count(|a| a.too_late),
            stale: at_ports(|s| s.stale),
            time_impossible: count(|a| a.times.impossible),
            frame_bytes: facts.frame_bytes,
            offered_pps: offered as f64 / duration_s,
            received_pps: received as f64 / duration_s,
            received_l2_bps: bits(FCS_BYTES) / duration_s,
            received_l1_bps: bits(FCS_BYTES + WIRE_OVERHEAD_BYTES) / duration_s,
            latency_ns: distribution(|a| &a.times.latency),
            ipdv_ns: distribution(|a| &a.times.ipdv),
        }
    }

    /// Streams of the load by direction; times of those streams that are timed.
    fn directions(
        &self,
        streams: &[StreamFacts],
        each: &[StreamReport],
        whole: bool,
    ) -> Vec<Direction> {
        let timed = timed_kind(streams);
        let mut all: Vec<(Direction, Sums, f64)> = Vec::new();
        for (facts, stream) in streams.iter().zip(each) {
            let is_same =
                |(d, ..): &(Direction, Sums, f64)| (d.from, d.to) == (facts.from, facts.to);
            let place = all.iter().position(is_same).unwrap_or_else(|| {
                all.push((Direction::new(facts.from, facts.to), Sums::new(), 0.0));
                all.len() - 1
            });
            let (direction, sums, frame_bytes) = &mut all[place];
            if facts.kind == Kind::Load {
                direction.offered += stream.offered;
                direction.received += stream.received;
                direction.lost += stream.lost;
                direction.reordered += stream.reordered;
                direction.duplicated += stream.duplicated;
                *frame_bytes += stream.offered as f64 * facts.frame_bytes;
            }
            if facts.kind == timed
                && let Some(arrivals) = self.arrivals(stream.stream, facts)
            {
                sums.add(arrivals);
            }
        }
        let distribution = |(direction, sums, frame_bytes): (Direction, Sums, f64)| {
            let (latency_ns, ipdv_ns) = sums.distribution(whole);
            let frame_bytes = frame_bytes / (direction.offered as f64).max(1.0);
            Direction { frame_bytes, latency_ns, ipdv_ns, ..direction }
        };
        all.into_iter().map(distribution).collect()
    }

    /// The report of a port.
    fn port(&self, port: usize) -> PortReport {
        let reception = &self.received[port];
        let of_streams = |of: fn(&crate::reception::StreamReception) -> u64| {
            reception.streams.iter().map(of).sum::<u64>()
        };
        let arrived = |of: fn(&Arrivals) -> u64| {
            reception.streams.iter().filter_map(|s| s.arrivals.as_ref()).map(of).sum::<u64>()
        };
        PortReport {
            port,
            frames: reception.frames,
            received: arrived(|a| a.received),
            duplicated: arrived(|a| a.duplicated),
            too_late: arrived(|a| a.too_late),
            misdelivered: of_streams(|s| s.misdelivered),
            corrupted: of_streams(|s| s.corrupted) + reception.corrupted_nameless,
            stale: of_streams(|s| s.stale) + reception.stale_nameless,
            foreign: reception.foreign,
            clock_steps: reception.clock_steps,
            faults: self.faults.get(port).copied().flatten(),
        }
    }

    /// `due_pps` is the rate of the frames that came due, taken or not.
    fn verdict(
        &self,
        request: &Measure,
        intended: u64,
        due_pps: f64,
        lost: i64,
        offered: u64,
    ) -> Verdict {
        let bursts: u64 = self.sent.iter().map(|t| t.bursts).sum();
        let full: u64 = self.sent.iter().map(|t| t.full_bursts).sum();
        let by_load = self.received.iter().any(|r| r.ring_full > 0);
        let by_stall = self.received.iter().any(|r| r.ring_full_stalled > 0);
        let is_flat_out = self.sent.iter().any(|t| t.is_flat_out);
        let is_slow = match is_flat_out {
            // Behind a link that takes everything, a loss says what full bursts say elsewhere.
            true => {
                (full as f64) < FULL_BURSTS_PART_MIN * bursts as f64
                    && (lost as f64) < OVERLOAD_PART_MIN * offered as f64
            }
            false => due_pps < RATE_PART_MIN * intended as f64 / request.duration_s,
        };
        // Flat out the received rate is the result: a few frames do not change it.
        let is_lossy = lost as f64 > if is_flat_out { LOST_PART_MIN * offered as f64 } else { 0.0 };
        let missing_s =
            request.duration_s - due_pps * request.duration_s.powi(2) / intended.max(1) as f64;
        let slept_long = !is_flat_out && self.stalls.report(0).total_s >= missing_s;
        let limit = match (is_lossy && by_load, is_slow && !slept_long) {
            (true, _) => Some(Limit::Receive),
            (false, true) => Some(Limit::Transmit),
            (false, false) => None,
        };
        Verdict { limit, is_host_stalled: is_lossy && by_stall || is_slow && slept_long }
    }

    fn times(
        &self,
        streams: &[StreamFacts],
        whole: bool,
    ) -> (Option<Distribution>, Option<Distribution>) {
        let timed = timed_kind(streams);
        let mut sums = Sums::new();
        for (number, facts) in streams.iter().enumerate().filter(|(_, facts)| facts.kind == timed) {
            if let Some(arrivals) = self.arrivals(number, facts) {
                sums.add(arrivals);
            }
        }
        sums.distribution(whole)
    }

    /// Add everything up.
    pub fn report(&self, request: &Measure, streams: &[StreamFacts]) -> Report {
        let (whole, duration_s) = (request.histograms, self.duration_s(request.duration_s));
        let each: Vec<StreamReport> = streams
            .iter()
            .enumerate()
            .map(|(number, facts)| self.stream(number, facts, duration_s, whole))
            .collect();
        let ports: Vec<PortReport> = (0..self.received.len()).map(|port| self.port(port)).collect();
        let sum = |kind: Kind, of: fn(&StreamReport) -> u64| {
            each.iter().filter(|s| s.kind == kind).map(of).sum::<u64>()
        };
        let total = |of: fn(&StreamReport) -> u64| sum(Kind::Load, of);
        let at_ports = |of: fn(&PortReport) -> u64| ports.iter().map(of).sum::<u64>();
        let (offered, received) = (total(|s| s.offered), total(|s| s.received));
        let intended = total(|s| s.intended);
        let lost = offered as i64 - received as i64;
        let mut not_sent = NotSent::default();
        each.iter().filter(|s| s.kind == Kind::Load).for_each(|s| not_sent.add(s.not_sent));
        let due_pps = (offered + not_sent.ring_full) as f64 / duration_s;
        let verdict = self.verdict(request, intended, due_pps, lost, offered);
        let filled = self.received.iter().map(|port| port.ring_full_stalled).sum();
        let (latency_ns, ipdv_ns) = self.times(streams, whole);
        let load = || each.iter().filter(|s| s.kind == Kind::Load);
        let offered_l1_bits = load()
            .map(|s| (s.frame_bytes + FCS_BYTES + WIRE_OVERHEAD_BYTES) * 8.0 * s.offered as f64);
        Report {
            intended,
            offered,
            not_sent,
            received,
            lost,
            reordered: total(|s| s.reordered),
            duplicated: total(|s| s.duplicated),
            misdelivered: at_ports(|p| p.misdelivered),
            corrupted: at_ports(|p| p.corrupted),
            too_late: total(|s| s.too_late),
            stale: at_ports(|p| p.stale),
            foreign: at_ports(|p| p.foreign),
            duration_s,
            held_up_s: self.sent.iter().map(|t| t.held_up_ns()).max().unwrap_or(0) as f64 / 1e9,
            host_stalls: self.stalls.report(filled),
            host_stalled: verdict.is_host_stalled,
            limited_by_generator: verdict.limit.is_some(),
            limit: verdict.limit,
            generator_bound: None,
            self_test: None,
            own_latency: None,
            offered_pps: offered as f64 / duration_s,
            received_pps: received as f64 / duration_s,
            offered_l1_bps: offered_l1_bits.sum::<f64>() / duration_s,
            received_l1_bps: load().map(|s| s.received_l1_bps).sum(),
            received_l2_bps: load().map(|s| s.received_l2_bps).sum(),
            latency_ns,
            ipdv_ns,
            clock_steps: at_ports(|p| p.clock_steps),
            time_impossible: each.iter().map(|s| s.time_impossible).sum(),
            latency_streams: (timed_kind(streams) == Kind::Latency).then(|| {
                let (offered, received) =
                    (sum(Kind::Latency, |s| s.offered), sum(Kind::Latency, |s| s.received));
                LatencyStreams { offered, received, lost: offered as i64 - received as i64 }
            }),
            per_direction: self.directions(streams, &each, whole),
            per_stream: each,
            per_port: ports,
            captures: Vec::new(),
        }
    }
}
