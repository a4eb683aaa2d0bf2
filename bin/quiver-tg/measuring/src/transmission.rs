//! A port's transmission in one measurement: frames, rates and results. Made by the
//! control thread, worked off by the worker, given back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::pacing::{Departures, Pacer};
use crate::plan::{Allowance, ENDLESS, Plan};
use crate::reception::Live;
use crate::stall::Stalls;

/// How much longer than requested the sending may take, to make up for a delay: a part of the
/// duration, at least and at most so long.
const OVERTIME_PART: u64 = 20;
const OVERTIME_NS: std::ops::RangeInclusive<u64> = 20_000_000..=500_000_000;

/// How fast a stream is from now on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// Frames a second, above 0.
    Pps(f64),
    /// As fast as the ring takes them.
    Max,
}

/// A change of a transmission under way. It takes effect between two passes of the worker; frames
/// of other streams are not affected. `stream` is a number in the profile; `None` means all of the
/// port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Another rate. The next frame leaves when the rest of its interval, scaled to the new rate,
    /// is over.
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

/// One stream's part.
pub struct Leg {
    /// Its number in the profile.
    pub stream: u8,
    /// Its place among those who make the port's frames.
    pub source: usize,
    /// As fast as the ring takes it; otherwise when the pacer says.
    pub is_flat_out: bool,
    /// When its frames are due.
    pub pacer: Pacer,
    /// Frames of the warm-up, by the pacer.
    pub warmup: u64,
    /// Counted frames behind them.
    pub planned: u64,
    /// Flat out, frames that a burst of one frame has of it.
    pub(crate) share: f64,
    /// Flat out, what is left of the last bursts' shares.
    pub(crate) credit: f64,
    /// When, if not from the beginning to the end.
    pub plan: Option<Box<Plan>>,
    /// Frames made, those of the warm-up included.
    pub made: u64,
    /// Numbers that counted frames have used.
    pub counted: u64,
    /// Of these, numbers of frames that were not sent.
    pub holes: u64,
    /// Counted frames that came due and found the ring full; flat out they are made again and no
    /// longer among those made.
    pub refused: u64,
    /// Counted frames that should have been made until the transmission ended; known when it is
    /// over.
    pub intended: u64,
    /// Frames that were due and could not be made when there were no buffers. Most of them came
    /// later.
    pub short: u64,
    /// How far behind their schedule frames left.
    pub departures: Departures,
    /// Every so manieth frame is timed, a power of two; 0 = none.
    pub sample: u64,
    /// Its share of what the port sends flat out, beside those of its other streams.
    pub weight: f64,
    /// Waits to be resumed.
    pub is_paused: bool,
    /// Sends nothing any more.
    pub is_ended: bool,
    /// Published to the receiver and to observers.
    pub live: Arc<Live>,
}

/// The transmission of one port.
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
    /// Where stalls of the worker are noted, by one port for all.
    pub stalls: Option<Arc<Stalls>>,
    /// Set when nothing is left to send and all refusals are known.
    pub finished: Arc<AtomicBool>,
}

/// When a transmission counts and when it ends, nanoseconds of the engine's clock.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The end of the warm-up.
    pub counted_from_ns: u64,
    /// The end of sending.
    pub end_ns: u64,
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
            stalls: None,
            finished: Arc::new(AtomicBool::new(true)),
        })
    }

    /// Is nothing left to send?
    pub fn is_over(&self, now_ns: u64) -> bool {
        let duration_ns = self.end_ns - self.start_ns;
        let overtime_ns =
            (duration_ns / OVERTIME_PART).clamp(*OVERTIME_NS.start(), *OVERTIME_NS.end());
        self.legs.iter().all(|leg| {
            let is_late = match (&leg.plan, leg.is_flat_out) {
                (None, false) => now_ns >= self.end_ns.saturating_add(overtime_ns),
                _ => now_ns >= self.end_ns,
            };
            let has_all = !leg.is_flat_out && leg.made >= leg.warmup.saturating_add(leg.planned);
            leg.is_ended
                || is_late
                || has_all
                || leg.plan.as_ref().is_some_and(|plan| plan.is_ended())
        })
    }

    /// Were counted frames to leave at `at_ns`, or did they, being late?
    pub fn is_sending(&self, at_ns: u64) -> bool {
        at_ns < self.end_ns.max(self.last_ns)
    }

    /// It is over at `now_ns`: note how much each stream should have sent.
    pub fn close(&mut self, now_ns: u64) {
        let end_ns = now_ns.min(self.end_ns);
        for leg in &mut self.legs {
            leg.intended = leg.intended_by(end_ns).max(leg.came_due());
        }
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
        let sends = |leg: &Leg| leg.is_flat_out && !leg.is_ended && !leg.is_paused;
        let all: f64 = self.legs.iter().filter(|leg| sends(leg)).map(|leg| leg.weight).sum();
        for leg in &mut self.legs {
            leg.share = if sends(leg) { leg.weight / all } else { 0.0 };
        }
    }

    /// Time for which a stream's schedule was held up, at most.
    pub fn held_up_ns(&self) -> u64 {
        let paced = self.legs.iter().filter(|leg| !leg.is_flat_out);
        paced.map(|leg| leg.pacer.held_up_ns()).max().unwrap_or(0)
    }

    /// All refusals are known: the control thread may have it back.
    pub fn finish(&self) {
        self.finished.store(true, Ordering::Release);
    }

    /// So many of the frames made last found the ring full; `last` says how many counted frames
    /// each leg had made, in order. They were not sent, and so not offered. Their numbers are used
    /// again where they are known to be `the_last`.
    pub fn note_refused(&mut self, mut refused: u64, last: &[u64], the_last: bool) {
        // The ring takes the first frames of a burst: those of the last legs were refused.
        for (leg, made) in self.legs.iter_mut().zip(last).rev() {
            let here = refused.min(*made);
            if the_last {
                leg.counted -= here;
                leg.live.made.set(leg.counted);
            } else {
                leg.holes += here;
            }
            if leg.is_flat_out {
                leg.made -= here;
                if let Some(plan) = &mut leg.plan {
                    plan.take_back(here);
                }
            } else {
                leg.refused += here;
            }
            refused -= here;
        }
    }
}

impl Leg {
    /// Of stream `stream`, made by the port's `source`, by a pacer; nothing is planned yet.
    pub fn new(stream: u8, source: usize, pacer: Pacer, live: Arc<Live>) -> Leg {
        Leg {
            stream,
            source,
            is_flat_out: false,
            pacer,
            warmup: 0,
            planned: ENDLESS,
            share: 0.0,
            credit: 0.0,
            plan: None,
            made: 0,
            counted: 0,
            holes: 0,
            refused: 0,
            intended: 0,
            short: 0,
            departures: Departures::new(),
            sample: 1,
            weight: 1.0,
            is_paused: false,
            is_ended: false,
            live,
        }
    }

    /// Counted frames that were sent.
    pub fn sent(&self) -> u64 {
        self.counted - self.holes
    }

    /// Counted frames that came due, sent or not.
    pub fn came_due(&self) -> u64 {
        self.sent() + self.refused
    }

    fn set_speed(&mut self, speed: Speed, now_ns: u64) {
        match speed {
            Speed::Pps(rate) if self.is_flat_out => {
                self.is_flat_out = false;
                self.warmup = self.made - self.came_due();
                self.pacer.set_rate(rate, now_ns);
                self.pacer.restart_after(self.made, now_ns);
            }
            Speed::Pps(rate) => self.pacer.set_rate(rate, now_ns),
            Speed::Max => {
                self.is_flat_out = true;
                self.credit = 0.0;
            }
        }
        // Its time counts from now on, no number of frames.
        self.planned = ENDLESS;
        // Which of its frames are timed stays: pairs of RFC 3393 are so many numbers apart.
    }

    /// Send nothing until it is resumed.
    pub fn pause(&mut self, now_ns: u64) {
        if !self.is_flat_out && !self.is_paused {
            self.pacer.pause(now_ns);
        }
        self.is_paused = true;
    }

    fn resume(&mut self, now_ns: u64) {
        if !self.is_flat_out && self.is_paused {
            self.pacer.resume(now_ns);
        }
        self.is_paused = false;
    }

    /// Frames of this stream to make now, at most `room`. In flat-out mode `room` is the whole
    /// burst, of which the stream has its share.
    #[inline]
    pub fn batch(&mut self, now_ns: u64, times: Times, room: u64) -> Batch {
        let nothing = Batch { frames: 0, is_counted: false };
        // What was not made in time is made up only where a number of frames was planned.
        let is_over = self.planned == ENDLESS && now_ns >= times.end_ns;
        if self.is_paused || self.is_ended || is_over {
            return nothing;
        }
        let allowed = match &mut self.plan {
            None => self.warmup.saturating_add(self.planned).saturating_sub(self.made),
            Some(plan) => match plan.allow(now_ns, times.counted_from_ns) {
                Allowance::Nothing => return nothing,
                Allowance::Frames(left) => left,
                Allowance::Begins(at_ns, left) => {
                    self.pacer.restart(at_ns);
                    self.credit = 0.0;
                    left
                }
            },
        };
        if self.is_flat_out {
            self.credit = (self.credit + self.share * room as f64).min(2.0 * room as f64);
            let frames = (self.credit as u64).min(room).min(allowed);
            return Batch { frames, is_counted: now_ns >= times.counted_from_ns };
        }
        let frames = self.pacer.due(now_ns).min(allowed).min(room);
        match self.warmup.saturating_sub(self.made) {
            0 => Batch { frames, is_counted: true },
            left => Batch { frames: frames.min(left), is_counted: false },
        }
    }

    /// `made` frames of a batch were made, beginning at `now_ns`.
    #[inline]
    pub fn advance(&mut self, batch: Batch, made: u64, now_ns: u64) {
        self.short += batch.frames - made;
        if made == 0 {
            return;
        }
        self.made += made;
        if self.is_flat_out {
            self.credit -= made as f64;
        } else {
            if batch.is_counted {
                self.departures.note(&self.pacer, made, now_ns);
            }
            self.pacer.advance(made);
        }
        if batch.is_counted {
            self.counted += made;
        }
        if let Some(plan) = &mut self.plan {
            let due_ns = if self.is_flat_out { now_ns } else { self.pacer.last_sent_due_ns() };
            plan.advance(made, due_ns);
        }
    }

    /// Counted frames that should have been made by `end_ns`.
    fn intended_by(&mut self, end_ns: u64) -> u64 {
        if self.is_flat_out {
            return self.came_due();
        }
        let due = self.pacer.intended(end_ns);
        match &self.plan {
            Some(plan) => {
                let came_due = self.came_due();
                plan.left().map_or(came_due, |left| due.min(came_due.saturating_add(left)))
            }
            None => due.saturating_sub(self.warmup).min(self.planned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transmission_is_sending_until_its_end_and_until_its_last_frame_when_that_is_late() {
        let mut sent = Transmission::idle();
        sent.end_ns = 1_000;
        assert!(sent.is_sending(999) && !sent.is_sending(1_000));
        sent.last_ns = 1_500;
        assert!(sent.is_sending(1_499) && !sent.is_sending(1_500));
    }
}
