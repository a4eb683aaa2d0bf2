//! Received frames of a port in one measurement: counts, windows of sequence numbers, latencies.
//! Made by the control thread, filled by the worker, given back.

use std::sync::Arc;

use quiver_core::graph::counters::Count;

use crate::gaps::Gaps;
use crate::latency::Times;
use crate::spread::Spread;
use crate::window::{Arrival, WINDOW_FRAMES, Window};
use quiver_tg_traffic::stamp::{NoStamp, STAMP_BYTES, Stamp, age_ns};

/// Counts of one stream that may be read while a measurement runs. Each has one writer.
#[derive(Default)]
pub struct Live {
    /// Frames made since the measurement's counted part began; the transmitter writes it.
    pub made: Count,
    /// Frames that came back; the receiver writes it.
    pub received: Count,
    /// How long they took; the receiver writes it.
    pub spread: Spread,
}

/// Frames of a stream that arrived at the right port.
pub struct Arrivals {
    /// Frames received, each number once.
    pub received: u64,
    /// Their bytes without FCS, as they arrived.
    pub received_bytes: u64,
    /// Of these, frames that came behind a later one (RFC 4737 §3).
    pub reordered: u64,
    /// The most numbers that one of these was behind the highest one seen.
    pub reordered_behind_max: u64,
    /// Further frames of a number that has been here.
    pub duplicated: u64,
    /// Frames so late that it is not known whether they are duplicates; counted as lost.
    pub too_late: u64,
    /// Transmission to reception.
    pub times: Times,
    window: Window,
}

/// The properties of a stream that the receiver needs.
pub struct Wanted {
    /// The port where it should arrive.
    pub to: usize,
    /// Every so manieth of its frames is timed.
    pub timed_every: u64,
    /// Its counts.
    pub live: Arc<Live>,
}

/// One stream at one port.
pub struct StreamReception {
    /// `None` where it should not come.
    pub arrivals: Option<Arrivals>,
    /// Frames that should have come to another port.
    pub misdelivered: u64,
    /// Frames with a damaged stamp that names this stream, or with a number that was never sent.
    pub corrupted: u64,
    /// Frames of the warm-up or of an earlier measurement.
    pub stale: u64,
    live: Arc<Live>,
}

/// Frames of one stream that come one after the other: nothing is counted before the run ends.
struct Run {
    /// Beginning of the stamps: magic, measurement, stream.
    head: u32,
    /// The stream's place.
    stream: usize,
    /// The next number.
    next: u64,
    /// Numbers below this have been sent, as far as is known.
    end: u64,
    /// So many have come.
    count: u64,
    /// Their bytes.
    bytes: u64,
}

impl Run {
    /// No stamp continues it.
    const NONE: Run = Run { head: 0, stream: 0, next: 0, end: 0, count: 0, bytes: 0 };
}

/// Received frames of one port.
pub struct Reception {
    measurement: Option<u8>,
    run: Run,
    /// By number.
    pub streams: Box<[StreamReception]>,
    /// All frames that came to the port, of whatever kind.
    pub frames: u64,
    /// Frames with a damaged stamp that names no stream of this measurement.
    pub corrupted_nameless: u64,
    /// Frames of an earlier measurement whose stream is not known.
    pub stale_nameless: u64,
    /// Frames without a stamp.
    pub foreign: u64,
    /// Times that the receive ring was found full while the worker ran: the load had filled it.
    pub ring_full: u64,
    /// Times that it was found full behind a stall of the host.
    pub ring_full_stalled: u64,
    /// Full rings count from then on, nanoseconds of the engine's clock.
    pub counted_from_ns: u64,
    /// Times that the clock stood earlier than at the vector before.
    pub clock_steps: u64,
}

/// The result of examining a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It was counted.
    Ours,
    /// It has no stamp.
    Foreign,
}

impl Reception {
    /// For a port that waits for nothing.
    pub fn idle() -> Box<Reception> {
        Box::new(Reception::for_streams(None, Box::default()))
    }

    fn for_streams(measurement: Option<u8>, streams: Box<[StreamReception]>) -> Reception {
        Reception {
            measurement,
            run: Run::NONE,
            streams,
            frames: 0,
            corrupted_nameless: 0,
            stale_nameless: 0,
            foreign: 0,
            ring_full: 0,
            ring_full_stalled: 0,
            counted_from_ns: 0,
            clock_steps: 0,
        }
    }

    /// For `port` in a measurement whose warm-up ends at `counted_from_ns`.
    pub fn new(
        port: usize,
        measurement: u8,
        streams: &[Wanted],
        counted_from_ns: u64,
    ) -> Box<Reception> {
        let stream = |wanted: &Wanted| StreamReception {
            arrivals: (wanted.to == port).then(|| Arrivals::new(wanted.timed_every)),
            misdelivered: 0,
            corrupted: 0,
            stale: 0,
            live: wanted.live.clone(),
        };
        let streams = streams.iter().map(stream).collect();
        Box::new(Reception {
            counted_from_ns,
            ..Reception::for_streams(Some(measurement), streams)
        })
    }

    /// A frame of `bytes` bytes that ends with `end` has come at `now_ns`. What it counts is known
    /// after [`publish`](Self::publish).
    #[inline(always)]
    pub fn note(&mut self, end: &[u8; STAMP_BYTES], bytes: usize, now_ns: u64) -> Seen {
        let run = &mut self.run;
        let sequence = run.next;
        if sequence < run.end && Stamp::continues(end, run.head, sequence) {
            run.next += 1;
            run.count += 1;
            run.bytes += bytes as u64;
            let stream = &mut self.streams[self.run.stream];
            if let Some(sent_ns) = Stamp::time_of(end)
                && let Some(arrivals) = &mut stream.arrivals
            {
                let age_ns = age_ns(now_ns, sent_ns);
                arrivals.times.note(sequence, age_ns);
                stream.live.spread.note(age_ns);
            }
            return Seen::Ours;
        }
        self.end_run();
        self.note_alone(end, bytes, now_ns)
    }

    /// Count what has come in order.
    #[inline]
    fn end_run(&mut self) {
        let run = std::mem::replace(&mut self.run, Run::NONE);
        if run.count > 0
            && let Some(arrivals) = &mut self.streams[run.stream].arrivals
        {
            arrivals.window.note_run(run.count);
            arrivals.received += run.count;
            arrivals.received_bytes += run.bytes;
        }
    }

    /// A frame that continues nothing; perhaps others will continue it.
    fn note_alone(&mut self, end: &[u8; STAMP_BYTES], bytes: usize, now_ns: u64) -> Seen {
        let stamp = match Stamp::decode(end) {
            Ok(stamp) => stamp,
            Err(NoStamp::Foreign) => return Seen::Foreign,
            Err(NoStamp::Corrupted) => {
                let (measurement, stream) = Stamp::claims(end);
                let is_warm_up = self.measurement.map(|m| m.wrapping_sub(1)) == Some(measurement);
                match self.streams.get_mut(usize::from(stream)) {
                    Some(named) if is_warm_up => named.stale += 1,
                    Some(named) if Some(measurement) == self.measurement => named.corrupted += 1,
                    _ => self.corrupted_nameless += 1,
                }
                return Seen::Ours;
            }
        };
        let number = usize::from(stamp.stream);
        let is_current = Some(stamp.measurement) == self.measurement;
        let Some(stream) = self.streams.get_mut(number) else {
            let count =
                if is_current { &mut self.corrupted_nameless } else { &mut self.stale_nameless };
            *count += 1;
            return Seen::Ours;
        };
        let made = stream.live.made.get();
        if !is_current {
            stream.stale += 1;
        } else if stamp.sequence >= made {
            stream.corrupted += 1;
        } else if let Some(arrivals) = &mut stream.arrivals {
            arrivals.note(&stamp, bytes, now_ns, &stream.live.spread);
            let (head, next) = (stamp.head(), arrivals.window.next());
            self.run = Run { head, stream: number, next, end: made, count: 0, bytes: 0 };
        } else {
            stream.misdelivered += 1;
        }
        Seen::Ours
    }

    /// Show how far it has come.
    #[inline]
    pub fn publish(&mut self) {
        self.end_run();
        for stream in &self.streams {
            if let Some(arrivals) = &stream.arrivals {
                stream.live.received.set(arrivals.received);
            }
        }
    }
}

impl Arrivals {
    fn new(timed_every: u64) -> Arrivals {
        Arrivals {
            received: 0,
            received_bytes: 0,
            reordered: 0,
            reordered_behind_max: 0,
            duplicated: 0,
            too_late: 0,
            times: Times::new(timed_every),
            window: Window::new(WINDOW_FRAMES),
        }
    }

    /// Which of the first `sent` frames never came.
    pub fn gaps(&self, sent: u64) -> Gaps {
        self.window.gaps(sent)
    }

    fn note(&mut self, stamp: &Stamp, bytes: usize, now_ns: u64, spread: &Spread) {
        match self.window.note(stamp.sequence) {
            Arrival::InOrder => self.received += 1,
            Arrival::Reordered => {
                self.received += 1;
                self.reordered += 1;
                let behind = self.window.next() - 1 - stamp.sequence;
                self.reordered_behind_max = self.reordered_behind_max.max(behind);
            }
            Arrival::Duplicate => {
                self.duplicated += 1;
                return;
            }
            Arrival::TooLate => {
                self.too_late += 1;
                return;
            }
        }
        self.received_bytes += bytes as u64;
        if stamp.sent_ns != 0 {
            let age_ns = age_ns(now_ns, stamp.sent_ns);
            self.times.note(stamp.sequence, age_ns);
            spread.note(age_ns);
        }
    }
}
