//! What a port has received in one measurement: counts, windows of sequence numbers, latencies.
//! Made by the control thread, filled by the worker, given back.

use std::sync::Arc;

use hdrhistogram::Histogram;
use quiver_core::counters::Count;

use crate::latency;
use crate::stamp::{NoStamp, STAMP_BYTES, Stamp, age_ns};
use crate::window::{Arrival, WINDOW_FRAMES, Window};

/// Counts of one stream that may be read while a measurement runs. Each has one writer.
#[derive(Default)]
pub struct Live {
    /// Frames made since the measurement's counted part began; the transmitter writes it.
    pub made: Count,
    /// Frames that came back; the receiver writes it.
    pub received: Count,
}

/// What arrived of a stream at the port where it should.
pub struct Arrivals {
    /// Frames received, each number once.
    pub received: u64,
    /// Of these, frames that came behind a later one.
    pub reordered: u64,
    /// Further frames of a number that has been here.
    pub duplicated: u64,
    /// Frames so late that it is not known whether they are duplicates; counted as lost.
    pub too_late: u64,
    /// Transmission to reception, nanoseconds.
    pub latency: Histogram<u64>,
    window: Window,
}

/// One stream at one port.
pub struct StreamReception {
    /// `None` where it should not come.
    pub arrivals: Option<Arrivals>,
    live: Arc<Live>,
}

/// Frames of one stream that come one after the other: nothing is counted before the run ends.
struct Run {
    /// What the stamps begin with: magic, measurement, stream.
    head: u32,
    /// The stream's place.
    stream: usize,
    /// The next number.
    next: u64,
    /// Numbers below this have been sent, as far as is known.
    end: u64,
    /// So many have come.
    count: u64,
}

impl Run {
    /// No stamp continues it.
    const NONE: Run = Run { head: 0, stream: 0, next: 0, end: 0, count: 0 };
}

/// What one port has received.
pub struct Reception {
    measurement: Option<u8>,
    run: Run,
    /// By number.
    pub streams: Box<[StreamReception]>,
    /// Frames of this measurement that should have come to another port.
    pub misdelivered: u64,
    /// Frames with a damaged stamp, or one that was never sent.
    pub corrupted: u64,
    /// Frames of the warm-up or of an earlier measurement.
    pub stale: u64,
    /// Frames without a stamp.
    pub foreign: u64,
    /// Times that as many frames as the receive ring holds came without a pause.
    pub ring_full: u64,
}

/// What to do with a frame that has been looked at.
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
            misdelivered: 0,
            corrupted: 0,
            stale: 0,
            foreign: 0,
            ring_full: 0,
        }
    }

    /// For `port` in a measurement. `streams` says for each stream where it should arrive.
    pub fn new(port: usize, measurement: u8, streams: &[(usize, Arc<Live>)]) -> Box<Reception> {
        let stream = |(to, live): &(usize, Arc<Live>)| StreamReception {
            arrivals: (*to == port).then(Arrivals::new),
            live: live.clone(),
        };
        Box::new(Reception::for_streams(Some(measurement), streams.iter().map(stream).collect()))
    }

    /// A frame that ends with `end` has come at `now_ns`. What it counts is known after
    /// [`publish`](Self::publish).
    #[inline(always)]
    pub fn note(&mut self, end: &[u8; STAMP_BYTES], now_ns: u64) -> Seen {
        let run = &mut self.run;
        if run.next < run.end && Stamp::continues(end, run.head, run.next) {
            run.next += 1;
            run.count += 1;
            if let Some(sent_ns) = Stamp::time_of(end)
                && let Some(arrivals) = &mut self.streams[self.run.stream].arrivals
            {
                arrivals.latency.saturating_record(age_ns(now_ns, sent_ns));
            }
            return Seen::Ours;
        }
        self.end_run();
        self.note_alone(end, now_ns)
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
        }
    }

    /// A frame that continues nothing; perhaps others will continue it.
    fn note_alone(&mut self, end: &[u8; STAMP_BYTES], now_ns: u64) -> Seen {
        let stamp = match Stamp::decode(end) {
            Ok(stamp) => stamp,
            Err(NoStamp::Foreign) => return Seen::Foreign,
            Err(NoStamp::Corrupted) => {
                self.corrupted += 1;
                return Seen::Ours;
            }
        };
        if Some(stamp.measurement) != self.measurement {
            self.stale += 1;
            return Seen::Ours;
        }
        let Some(stream) = self.streams.get_mut(usize::from(stamp.stream)) else {
            self.corrupted += 1;
            return Seen::Ours;
        };
        let made = stream.live.made.get();
        if stamp.sequence >= made {
            self.corrupted += 1;
        } else if let Some(arrivals) = &mut stream.arrivals {
            arrivals.note(&stamp, now_ns);
            let (head, next) = (stamp.head(), arrivals.window.next());
            self.run = Run { head, stream: usize::from(stamp.stream), next, end: made, count: 0 };
        } else {
            self.misdelivered += 1;
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
    fn new() -> Arrivals {
        let window = Window::new(WINDOW_FRAMES);
        Arrivals {
            received: 0,
            reordered: 0,
            duplicated: 0,
            too_late: 0,
            latency: latency::histogram(),
            window,
        }
    }

    fn note(&mut self, stamp: &Stamp, now_ns: u64) {
        match self.window.note(stamp.sequence) {
            Arrival::InOrder => self.received += 1,
            Arrival::Reordered => {
                self.received += 1;
                self.reordered += 1;
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
        if stamp.sent_ns != 0 {
            self.latency.saturating_record(age_ns(now_ns, stamp.sent_ns));
        }
    }
}
