//! What a port sends in one measurement: how much, how fast, and what became of it. Made by the
//! control thread, worked off by the worker, given back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::pacer::Pacer;
use crate::reception::Live;

/// Every so manieth frame of a fast stream is timed.
pub const SAMPLE_FAST: u64 = 16;
/// Streams faster than this are sampled; of others every frame is timed.
pub const SAMPLE_ALL_PPS_MAX: f64 = 500_000.0;
/// How much longer than asked for the sending may take, to make up for a delay: a part of the
/// duration, at least and at most so long.
const OVERTIME_PART: u64 = 20;
const OVERTIME_NS: std::ops::RangeInclusive<u64> = 20_000_000..=500_000_000;

/// The end of a transmission that goes on until it is told to end, and the frames of its legs.
pub const ENDLESS: u64 = u64::MAX;

/// How fast a stream is from now on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// Frames a second, above 0.
    Pps(f64),
    /// As fast as the ring takes them.
    Max,
}

/// What is changed about a transmission while it runs. It takes effect between two passes of the worker;
/// frames of other streams do not notice. `stream` is a number in the profile; `None` means all of the port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Another rate. The next frame leaves when the rest of its interval, scaled to the new rate, is over.
    Rate {
        /// Which.
        stream: Option<u8>,
        /// How fast each of them.
        speed: Speed,
    },
    /// Send nothing until resumed. Time that passes meanwhile is not made up.
    Pause {
        /// Which.
        stream: Option<u8>,
    },
    /// Go on, or begin if it was made paused.
    Resume {
        /// Which.
        stream: Option<u8>,
    },
    /// Never send again in this transmission. When all streams have ended, it is finished.
    End {
        /// Which.
        stream: Option<u8>,
    },
}

/// How a stream is sent.
#[derive(Clone, Debug)]
pub enum Pace {
    /// At a constant rate, so many frames that do not count and so many that do.
    Constant {
        /// When they are due.
        pacer: Pacer,
        /// Frames of the warm-up.
        warmup: u64,
        /// Counted frames.
        counted: u64,
    },
    /// As fast as the ring takes them; its share of each burst.
    FlatOut {
        /// Frames a burst of one frame has of it.
        share: f64,
        /// What is left of the last bursts' shares.
        credit: f64,
    },
}

/// One stream's part.
pub struct Leg {
    /// Its number in the profile.
    pub stream: u8,
    /// How fast.
    pub pace: Pace,
    /// Frames made, those of the warm-up included.
    pub made: u64,
    /// Frames made that count.
    pub counted: u64,
    /// Of these, frames that found the ring full; flat out they are no longer among those made.
    pub refused: u64,
    /// Every so manieth frame is timed, a power of two.
    pub sample: u64,
    /// Its share of what the port sends flat out, beside those of its other streams.
    pub weight: f64,
    /// Waits to be resumed.
    pub is_paused: bool,
    /// Sends nothing any more.
    pub is_ended: bool,
    /// Shown to the receiver and to who looks on.
    pub live: Arc<Live>,
}

/// What one port sends.
pub struct Transmission {
    /// Stamped into frames of the warm-up; those that count have the next number.
    pub measurement: u8,
    /// When it begins, nanoseconds of the engine's clock.
    pub start_ns: u64,
    /// When the warm-up ends.
    pub counted_from_ns: u64,
    /// When sending should end.
    pub end_ns: u64,
    /// As fast as the ring takes them: a full ring is waited for, not counted.
    pub is_flat_out: bool,
    /// Frames in a burst at most.
    pub burst_frames_max: usize,
    /// The streams of the port.
    pub legs: Box<[Leg]>,
    /// When the first counted frame was made.
    pub first_ns: u64,
    /// When the last one was.
    pub last_ns: u64,
    /// Counted bursts.
    pub bursts: u64,
    /// Of these, bursts that found the ring full.
    pub full_bursts: u64,
    /// Set when nothing is left to send and all refusals are known.
    pub finished: Arc<AtomicBool>,
}

/// Frames of one stream to make now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// How many.
    pub frames: u64,
    /// They count.
    pub is_counted: bool,
}

impl Transmission {
    /// For a port that sends nothing.
    pub fn idle() -> Box<Transmission> {
        Box::new(Transmission {
            measurement: 0,
            start_ns: 0,
            counted_from_ns: 0,
            end_ns: 0,
            is_flat_out: false,
            burst_frames_max: 0,
            legs: Box::default(),
            first_ns: 0,
            last_ns: 0,
            bursts: 0,
            full_bursts: 0,
            finished: Arc::new(AtomicBool::new(true)),
        })
    }

    /// Is nothing left to send?
    pub fn is_over(&self, now_ns: u64) -> bool {
        let duration_ns = self.end_ns - self.start_ns;
        let overtime_ns = (duration_ns / OVERTIME_PART).clamp(*OVERTIME_NS.start(), *OVERTIME_NS.end());
        self.legs.iter().all(|leg| match &leg.pace {
            _ if leg.is_ended => true,
            Pace::Constant { warmup, counted, .. } => {
                leg.made >= warmup.saturating_add(*counted)
                    || now_ns >= self.end_ns.saturating_add(overtime_ns)
            }
            Pace::FlatOut { .. } => now_ns >= self.end_ns,
        })
    }

    /// Do what a change says.
    pub fn apply(&mut self, change: Change, now_ns: u64) {
        let (Change::Rate { stream, .. }
        | Change::Pause { stream }
        | Change::Resume { stream }
        | Change::End { stream }) = change;
        let chosen = |leg: &&mut Leg| stream.is_none_or(|number| number == leg.stream);
        for leg in self.legs.iter_mut().filter(chosen) {
            match change {
                Change::Rate { speed, .. } => leg.set_speed(speed, now_ns),
                Change::Pause { .. } => leg.pause(now_ns),
                Change::Resume { .. } => leg.resume(now_ns),
                Change::End { .. } => leg.is_ended = true,
            }
        }
        self.share_bursts();
    }

    /// Streams that are sent flat out share the bursts; alone they have all of them.
    pub fn share_bursts(&mut self) {
        let sends = |leg: &Leg| leg.is_flat_out() && !leg.is_ended && !leg.is_paused;
        let all: f64 = self.legs.iter().filter(|leg| sends(leg)).map(|leg| leg.weight).sum();
        for leg in &mut self.legs {
            let own = if sends(leg) { leg.weight / all } else { 0.0 };
            if let Pace::FlatOut { share, .. } = &mut leg.pace {
                *share = own;
            }
        }
    }

    /// Time for which a stream's schedule was held up, at most.
    pub fn held_up_ns(&self) -> u64 {
        let of_leg = |leg: &Leg| match &leg.pace {
            Pace::Constant { pacer, .. } => pacer.held_up_ns(),
            Pace::FlatOut { .. } => 0,
        };
        self.legs.iter().map(of_leg).max().unwrap_or(0)
    }

    /// All refusals are known: the control thread may have it back.
    pub fn finish(&self) {
        self.finished.store(true, Ordering::Release);
    }

    /// So many of the frames made last found the ring full; `last` says how many counted frames each
    /// leg had made, in order.
    pub fn note_refused(&mut self, mut refused: u64, last: &[u64]) {
        // The ring takes frames from the front: those of the last legs were refused.
        for (leg, made) in self.legs.iter_mut().zip(last).rev() {
            let here = refused.min(*made);
            match leg.pace {
                Pace::Constant { .. } => leg.refused += here,
                // They were never offered: their numbers are used again.
                Pace::FlatOut { .. } => {
                    leg.counted -= here;
                    leg.made -= here;
                }
            }
            refused -= here;
        }
    }
}

impl Leg {
    /// Is it sent as fast as the ring takes it?
    pub fn is_flat_out(&self) -> bool {
        matches!(self.pace, Pace::FlatOut { .. })
    }

    fn set_speed(&mut self, speed: Speed, now_ns: u64) {
        match (&mut self.pace, speed) {
            (Pace::Constant { pacer, counted, .. }, Speed::Pps(rate)) => {
                pacer.set_rate(rate, now_ns);
                // Its time counts from now on, no number of frames.
                *counted = ENDLESS;
            }
            (Pace::FlatOut { .. }, Speed::Max) => {}
            (Pace::FlatOut { .. }, Speed::Pps(rate)) => {
                let pacer = Pacer::new(rate, now_ns);
                self.pace = Pace::Constant { pacer, warmup: self.made, counted: ENDLESS };
            }
            (Pace::Constant { .. }, Speed::Max) => self.pace = Pace::FlatOut { share: 0.0, credit: 0.0 },
        }
        self.sample = match speed {
            Speed::Pps(rate) if rate <= SAMPLE_ALL_PPS_MAX => 1,
            _ => SAMPLE_FAST,
        };
    }

    fn pause(&mut self, now_ns: u64) {
        if let (Pace::Constant { pacer, .. }, false) = (&mut self.pace, self.is_paused) {
            pacer.pause(now_ns);
        }
        self.is_paused = true;
    }

    fn resume(&mut self, now_ns: u64) {
        if let (Pace::Constant { pacer, .. }, true) = (&mut self.pace, self.is_paused) {
            pacer.resume(now_ns);
        }
        self.is_paused = false;
    }

    /// What to make of this stream now, at most `room` frames. In flat-out mode `room` is the whole
    /// burst, of which the stream has its share.
    #[inline]
    pub fn batch(&mut self, now_ns: u64, counted_from_ns: u64, room: u64) -> Batch {
        if self.is_paused || self.is_ended {
            return Batch { frames: 0, is_counted: false };
        }
        match &mut self.pace {
            Pace::Constant { pacer, warmup, counted } => {
                let left = warmup.saturating_add(*counted).saturating_sub(self.made);
                let frames = pacer.due(now_ns).min(left).min(room);
                if self.made < *warmup {
                    Batch { frames: frames.min(*warmup - self.made), is_counted: false }
                } else {
                    Batch { frames, is_counted: true }
                }
            }
            Pace::FlatOut { share, credit } => {
                *credit += *share * room as f64;
                Batch { frames: (*credit as u64).min(room), is_counted: now_ns >= counted_from_ns }
            }
        }
    }

    /// Frames of a batch were made.
    #[inline]
    pub fn advance(&mut self, batch: Batch, made: u64) {
        self.made += made;
        if batch.is_counted {
            self.counted += made;
        }
        match &mut self.pace {
            Pace::Constant { pacer, .. } => pacer.advance(made),
            Pace::FlatOut { credit, .. } => *credit -= made as f64,
        }
    }
}
