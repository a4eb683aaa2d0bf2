//! What one measurement found.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::latency::{self, Latency};
use crate::reception::Reception;
use crate::request::{Measure, Rate};
use crate::transmission::Transmission;

/// Preamble, start delimiter and gap between two frames on a wire (IEEE 802.3), bytes.
pub const WIRE_OVERHEAD_BYTES: f64 = 20.0;
/// Frame check sequence, bytes. Frame sizes here do not contain it.
pub const FCS_BYTES: f64 = 4.0;
/// Slower than this part of the rate that was asked for: the generator was the limit.
const RATE_PART_MIN: f64 = 0.995;
/// Flat out, the forwarder kept up when fewer bursts than this part met a full ring.
const FULL_BURSTS_PART_MIN: f64 = 0.1;

/// Which side of the generator was at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// It could not make frames fast enough.
    Transmit,
    /// It could not take frames fast enough.
    Receive,
}

/// One direction's share.
#[derive(Clone, Debug, Serialize)]
pub struct Direction {
    /// The port that sent.
    pub from: usize,
    /// The port where the frames should come back.
    pub to: usize,
    /// Frames offered.
    pub offered: u64,
    /// Frames received.
    pub received: u64,
    /// Offered and not received.
    pub lost: i64,
    /// Received behind a later one.
    pub reordered: u64,
    /// Received again.
    pub duplicated: u64,
    /// Bytes of a frame on average, without FCS.
    pub frame_bytes: f64,
    /// How long frames took.
    pub latency_ns: Option<Latency>,
}

/// What one measurement found. README.md says what each count is.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Rate × duration; flat out, what was offered.
    pub intended: u64,
    /// Frames that came due and were put on the ring or found it full.
    pub offered: u64,
    /// Frames that came back at the right port, each once.
    pub received: u64,
    /// Offered and not received.
    pub lost: i64,
    /// Received behind a later one of their stream.
    pub reordered: u64,
    /// Received again; not in `received`.
    pub duplicated: u64,
    /// Arrived at another port; not in `received`.
    pub misdelivered: u64,
    /// Arrived with a damaged stamp; not in `received`.
    pub corrupted: u64,
    /// Arrived too far behind to be told from duplicates; not in `received`.
    pub too_late: u64,
    /// Frames of the warm-up or of an earlier measurement that arrived during this one.
    pub stale: u64,
    /// Frames without a stamp.
    pub foreign: u64,
    /// Offered frames that found the transmit ring full.
    pub ring_full: u64,
    /// From the first counted frame to the end of the last one's interval, seconds.
    pub duration_s: f64,
    /// Time for which the generator was held up (another program on its core) and fell behind its
    /// schedule by more than it could send at once, warm-up included, seconds.
    pub held_up_s: f64,
    /// The number says more about the generator than about the forwarder.
    pub limited_by_generator: bool,
    /// Which side of it.
    pub limit: Option<Limit>,
    /// Offered frames a second.
    pub offered_pps: f64,
    /// Received frames a second of sending.
    pub received_pps: f64,
    /// Offered bits a second on a wire: with FCS, preamble and gap.
    pub offered_l1_bps: f64,
    /// Received bits a second on a wire.
    pub received_l1_bps: f64,
    /// How long frames took, all directions together.
    pub latency_ns: Option<Latency>,
    /// By direction.
    pub per_direction: Vec<Direction>,
}

/// What a report must know of a stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamFacts {
    /// The port that sends.
    pub from: usize,
    /// The port where the frames should come back.
    pub to: usize,
    /// Bytes of a frame on average, without FCS.
    pub frame_bytes: f64,
}

/// What became of a measurement, as the workers gave it back: by port.
pub struct Outcome {
    /// What was sent.
    pub sent: Vec<Transmission>,
    /// What was received.
    pub received: Vec<Reception>,
}

/// A direction as it is added up.
struct Sums {
    direction: Direction,
    frame_bits: f64,
    latency: Histogram<u64>,
    too_late: u64,
}

impl Sums {
    fn new(facts: &StreamFacts) -> Sums {
        let direction = Direction {
            from: facts.from,
            to: facts.to,
            offered: 0,
            received: 0,
            lost: 0,
            reordered: 0,
            duplicated: 0,
            frame_bytes: 0.0,
            latency_ns: None,
        };
        Sums { direction, frame_bits: 0.0, latency: latency::histogram(), too_late: 0 }
    }
}

impl Outcome {
    /// Frames of a stream that were offered.
    fn offered(&self, stream: usize, is_flat_out: bool) -> u64 {
        let legs =
            self.sent.iter().flat_map(|t| t.legs.iter()).filter(|leg| usize::from(leg.stream) == stream);
        legs.map(|leg| if is_flat_out { leg.counted - leg.refused } else { leg.counted }).sum()
    }

    fn ring_full(&self) -> u64 {
        self.sent.iter().flat_map(|t| t.legs.iter()).map(|leg| leg.refused).sum()
    }

    /// Seconds from the first counted frame to the end of the last one's interval.
    fn duration_s(&self) -> f64 {
        let of_port = |t: &Transmission| {
            let frames = t.legs.iter().map(|leg| leg.counted).max().unwrap_or(0);
            let between_s = t.last_ns.saturating_sub(t.first_ns) as f64 / 1e9;
            match frames {
                0 | 1 => (t.end_ns - t.counted_from_ns) as f64 / 1e9,
                _ if t.is_flat_out => between_s,
                _ => between_s * frames as f64 / (frames - 1) as f64,
            }
        };
        self.sent.iter().map(of_port).fold(0.0, f64::max).max(1e-9)
    }

    fn sums(&self, streams: &[StreamFacts], is_flat_out: bool) -> Vec<Sums> {
        let mut all: Vec<Sums> = Vec::new();
        for (number, facts) in streams.iter().enumerate() {
            let is_same = |s: &Sums| (s.direction.from, s.direction.to) == (facts.from, facts.to);
            let place = all.iter().position(is_same).unwrap_or_else(|| {
                all.push(Sums::new(facts));
                all.len() - 1
            });
            let sums = &mut all[place];
            let offered = self.offered(number, is_flat_out);
            sums.direction.offered += offered;
            sums.frame_bits += offered as f64 * facts.frame_bytes;
            let stream = self.received.get(facts.to).and_then(|r| r.streams.get(number));
            if let Some(arrivals) = stream.and_then(|s| s.arrivals.as_ref()) {
                sums.direction.received += arrivals.received;
                sums.direction.reordered += arrivals.reordered;
                sums.direction.duplicated += arrivals.duplicated;
                sums.too_late += arrivals.too_late;
                // Both have the same bounds, so that nothing can be refused.
                let _ = sums.latency.add(&arrivals.latency);
            }
        }
        for sums in &mut all {
            let direction = &mut sums.direction;
            direction.lost = direction.offered as i64 - direction.received as i64;
            direction.latency_ns = Latency::of(&sums.latency);
            direction.frame_bytes = sums.frame_bits / (direction.offered as f64).max(1.0);
        }
        all
    }

    fn limit(&self, request: &Measure, offered_pps: f64, lost: i64) -> Option<Limit> {
        let bursts: u64 = self.sent.iter().map(|t| t.bursts).sum();
        let full: u64 = self.sent.iter().map(|t| t.full_bursts).sum();
        let receive_full = self.received.iter().any(|r| r.ring_full > 0);
        let is_slow = match request.rate {
            Rate::Max => (full as f64) < FULL_BURSTS_PART_MIN * bursts as f64,
            Rate::Pps(_) => offered_pps < RATE_PART_MIN * request.intended() as f64 / request.duration_s,
        };
        match (lost > 0 && receive_full, is_slow) {
            (true, _) => Some(Limit::Receive),
            (false, true) => Some(Limit::Transmit),
            (false, false) => None,
        }
    }

    /// Add everything up.
    pub fn report(&self, request: &Measure, streams: &[StreamFacts]) -> Report {
        let is_flat_out = request.rate == Rate::Max;
        let all = self.sums(streams, is_flat_out);
        let mut latency = latency::histogram();
        all.iter().for_each(|s| {
            let _ = latency.add(&s.latency); // the same bounds, as above
        });
        let total = |of: fn(&Direction) -> u64| all.iter().map(|s| of(&s.direction)).sum::<u64>();
        let (offered, received) = (total(|d| d.offered), total(|d| d.received));
        let intended = match request.rate {
            Rate::Max => offered,
            Rate::Pps(_) => request.intended(),
        };
        let lost = offered as i64 - received as i64;
        let duration_s = self.duration_s();
        let limit = self.limit(request, offered as f64 / duration_s, lost);
        let at_port = |of: fn(&Reception) -> u64| self.received.iter().map(of).sum::<u64>();
        let l1_bits = |of: fn(&Direction) -> u64| {
            let bits = |d: &Direction| (d.frame_bytes + FCS_BYTES + WIRE_OVERHEAD_BYTES) * 8.0 * of(d) as f64;
            all.iter().map(|s| bits(&s.direction)).sum::<f64>() / duration_s
        };
        Report {
            intended,
            offered,
            received,
            lost,
            reordered: total(|d| d.reordered),
            duplicated: total(|d| d.duplicated),
            misdelivered: at_port(|r| r.misdelivered),
            corrupted: at_port(|r| r.corrupted),
            too_late: all.iter().map(|s| s.too_late).sum(),
            stale: at_port(|r| r.stale),
            foreign: at_port(|r| r.foreign),
            ring_full: if is_flat_out { 0 } else { self.ring_full() },
            duration_s,
            held_up_s: self.sent.iter().map(|t| t.held_up_ns()).max().unwrap_or(0) as f64 / 1e9,
            limited_by_generator: limit.is_some(),
            limit,
            offered_pps: offered as f64 / duration_s,
            received_pps: received as f64 / duration_s,
            offered_l1_bps: l1_bits(|d| d.offered),
            received_l1_bps: l1_bits(|d| d.received),
            latency_ns: Latency::of(&latency),
            per_direction: all.into_iter().map(|s| s.direction).collect(),
        }
    }
}
