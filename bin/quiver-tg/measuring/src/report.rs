//! The report of one measurement. README.md defines each count.

use schemars::JsonSchema;
use serde::Serialize;

use crate::capture::CaptureReport;
use crate::faults::FaultsReport;
use crate::gaps::Gaps;
use crate::latency::Distribution;
use crate::own_share::{OwnLatency, OwnShare};
use crate::stall::HostStalls;

/// Preamble, start delimiter and gap between two frames on a wire (IEEE 802.3), bytes.
pub const WIRE_OVERHEAD_BYTES: f64 = 20.0;
/// Frame check sequence, bytes. Frame sizes here do not contain it.
pub const FCS_BYTES: f64 = 4.0;
/// Which side of the generator was at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// It could not make frames fast enough.
    Transmit,
    /// It could not take frames fast enough.
    Receive,
}

/// The purpose of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Its frames are the load.
    Load,
    /// It goes beside the load and is timed; its frames are in no count of the load.
    Latency,
    /// Its frames carry no stamp: they are sent, and nobody knows them when they come back.
    Unstamped,
}

/// Frames that should have been sent and were not. They are not offered, and so not lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotSent {
    /// The generator was held up, or is too slow.
    pub held_up: u64,
    /// There were no buffers.
    pub no_buffers: u64,
    /// They found the transmit ring full: the forwarder did not take them.
    pub ring_full: u64,
}

impl NotSent {
    /// Of `missing` frames, when so many found the ring full and `short` could not be made in time
    /// for want of buffers.
    pub fn new(missing: u64, ring_full: u64, short: u64) -> NotSent {
        let unmade = missing.saturating_sub(ring_full);
        let no_buffers = short.min(unmade);
        NotSent { held_up: unmade - no_buffers, no_buffers, ring_full }
    }

    /// And these.
    pub fn add(&mut self, more: NotSent) {
        self.held_up += more.held_up;
        self.no_buffers += more.no_buffers;
        self.ring_full += more.ring_full;
    }
}

/// The report of one stream.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StreamReport {
    /// Its place in the profile.
    pub stream: usize,
    /// Its name.
    pub name: String,
    /// The sequence of its sizes (RFC 6985), unless it is drawn at random.
    pub genome: Option<String>,
    /// Its purpose.
    pub kind: Kind,
    /// The port that sent.
    pub from: usize,
    /// The port where the frames should come back.
    pub to: usize,
    /// Frames that were due until the end; flat out, what was offered.
    pub intended: u64,
    /// Frames offered.
    pub offered: u64,
    /// Intended and not offered, and why.
    pub not_sent: NotSent,
    /// Actual minus intended departure; nothing flat out.
    pub departure_ns: Option<Distribution>,
    /// Frames received, each once.
    pub received: u64,
    /// Bytes of these, without FCS, as they arrived.
    pub received_bytes: u64,
    /// Offered and not received.
    pub lost: i64,
    /// Numbers that never came, in runs.
    pub gaps: Gaps,
    /// Received behind a later one.
    pub reordered: u64,
    /// The most numbers that one was behind the highest seen.
    pub reordered_behind_max: u64,
    /// Received again; not in `received`.
    pub duplicated: u64,
    /// Arrived at another port; not in `received`.
    pub misdelivered: u64,
    /// Arrived with a damaged stamp that names this stream; not in `received`.
    pub corrupted: u64,
    /// Arrived too far behind to be told from duplicates; not in `received`.
    pub too_late: u64,
    /// Frames of the warm-up or of an earlier measurement.
    pub stale: u64,
    /// Received, and timed by a clock that was set meanwhile; not in `latency_ns`.
    pub time_impossible: u64,
    /// Bytes of an offered frame on average, without FCS.
    pub frame_bytes: f64,
    /// Offered frames a second.
    pub offered_pps: f64,
    /// Received frames a second of sending.
    pub received_pps: f64,
    /// Received bits a second with FCS.
    pub received_l2_bps: f64,
    /// Received bits a second on a wire.
    pub received_l1_bps: f64,
    /// One-way delay (RFC 7679).
    pub latency_ns: Option<Distribution>,
    /// How much it varies between frames sent one after the other, absolute (RFC 3393).
    pub ipdv_ns: Option<Distribution>,
}

/// The report of one port: every received frame is in exactly one of the counts after `frames`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PortReport {
    /// Its number.
    pub port: usize,
    /// All frames.
    pub frames: u64,
    /// Received.
    pub received: u64,
    /// Received again.
    pub duplicated: u64,
    /// Too far behind to be told from duplicates.
    pub too_late: u64,
    /// Should have come to another port.
    pub misdelivered: u64,
    /// Their stamp is damaged.
    pub corrupted: u64,
    /// Of the warm-up or an earlier measurement.
    pub stale: u64,
    /// Without a stamp.
    pub foreign: u64,
    /// Times that the clock stood earlier than before.
    pub clock_steps: u64,
    /// Faults that the profile wants here, and that were done to counted frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultsReport>,
}

impl PortReport {
    /// Is every frame in exactly one count?
    pub fn is_balanced(&self) -> bool {
        let known = self.received + self.duplicated + self.too_late + self.misdelivered;
        self.frames == known + self.corrupted + self.stale + self.foreign
    }
}

/// One direction's share.
#[derive(Clone, Debug, Serialize, JsonSchema)]
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
    pub latency_ns: Option<Distribution>,
    /// How much that varies (RFC 3393).
    pub ipdv_ns: Option<Distribution>,
}

impl Direction {
    /// Nothing yet.
    pub fn new(from: usize, to: usize) -> Direction {
        Direction {
            from,
            to,
            offered: 0,
            received: 0,
            lost: 0,
            reordered: 0,
            duplicated: 0,
            frame_bytes: 0.0,
            latency_ns: None,
            ipdv_ns: None,
        }
    }
}

/// The dedicated latency streams together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LatencyStreams {
    /// Frames offered.
    pub offered: u64,
    /// Frames received, each once.
    pub received: u64,
    /// Offered and not received.
    pub lost: i64,
}

/// What one measurement found. Counts are of the load; what came to the ports (`misdelivered` and
/// what follows) counts the frames of latency streams, too.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Report {
    /// Rate × duration; flat out, what was offered.
    pub intended: u64,
    /// Frames that were put on the ring.
    pub offered: u64,
    /// Intended and not offered, and why.
    pub not_sent: NotSent,
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
    /// From the first counted frame to the end of the last one's interval, seconds.
    pub duration_s: f64,
    /// Time for which the generator was held up (another program on its core) and fell behind its
    /// schedule by more than it could send at once, warm-up included, seconds.
    pub held_up_s: f64,
    /// Times in which the worker did not run, behind the warm-up.
    pub host_stalls: HostStalls,
    /// Such stalls may have caused the missing frames: neither the generator's limit nor
    /// the forwarder's.
    pub host_stalled: bool,
    /// The number says more about the generator than about the forwarder.
    pub limited_by_generator: bool,
    /// Which side of it.
    pub limit: Option<Limit>,
    /// The same with the ceiling, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator_bound: Option<GeneratorBound>,
    /// Limits of the generator itself with this profile on this host, measured before the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub self_test: Option<OwnShare>,
    /// Its own part of `latency_ns`, measured before the run at about this rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_latency: Option<OwnLatency>,
    /// Offered frames a second.
    pub offered_pps: f64,
    /// Received frames a second of sending.
    pub received_pps: f64,
    /// Offered bits a second on a wire: with FCS, preamble and gap.
    pub offered_l1_bps: f64,
    /// Received bits a second on a wire.
    pub received_l1_bps: f64,
    /// Received bits a second with FCS, without preamble and gap.
    pub received_l2_bps: f64,
    /// How long frames took, all directions together: of latency streams if there are any, else of
    /// the load.
    pub latency_ns: Option<Distribution>,
    /// How much that varies between frames sent one after the other (RFC 3393), of the same
    /// streams.
    pub ipdv_ns: Option<Distribution>,
    /// Times that the generator's clock was seen to go back.
    pub clock_steps: u64,
    /// Frames received that a clock set meanwhile could not time.
    pub time_impossible: u64,
    /// The dedicated latency streams, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_streams: Option<LatencyStreams>,
    /// By direction.
    pub per_direction: Vec<Direction>,
    /// By stream.
    pub per_stream: Vec<StreamReport>,
    /// By port.
    pub per_port: Vec<PortReport>,
    /// The captures, since the generator was started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<CaptureReport>,
}

/// A result that the generator limited.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GeneratorBound {
    /// Which side of it was at its end.
    pub side: Limit,
    /// Highest rate of its self-loop with this profile on this host, frames a second, all
    /// ports together, when that was measured.
    pub ceiling_pps: Option<f64>,
    /// In words.
    pub why: String,
}
