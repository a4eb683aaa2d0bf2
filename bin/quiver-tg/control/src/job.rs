//! What takes longer than one turn: links that come up, a measurement that ends.

use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use quiver_control::{Job, Output, Progress, Refusal, Sink, Step};
use serde_json::json;

use super::shows;
use super::station::{Outcome, Station};
use quiver_tg_measuring::request::Rate;
use quiver_tg_measuring::surroundings::{LINK_LOOK_NS, Surroundings};

/// How often the end of a warm-up is looked for.
const WARMUP_LOOK: Duration = Duration::from_millis(5);
/// How often the client of a measurement hears how far it is.
const TELL_EVERY: Duration = Duration::from_secs(1);

fn later(pause: Duration) -> Step {
    Step::Until(Instant::now() + pause)
}

/// Waits for the links of a profile that was loaded.
pub struct Linking;

impl<S: Surroundings> Job<Station<S>> for Linking {
    fn step(&mut self, station: &mut Station<S>, _: &mut dyn Sink) -> Result<Step, Refusal> {
        match station.links()? {
            true => Ok(Step::Done(shows::profile(station)?)),
            false => Ok(later(Duration::from_nanos(LINK_LOOK_NS))),
        }
    }

    fn must_end(&self) -> bool {
        true // others may use the profile when its client is gone
    }
}

/// Ends the measurement of a client that left before it had its answer.
pub struct Wanted(Weak<()>);

impl Wanted {
    pub fn is_left(&self) -> bool {
        self.0.strong_count() == 0
    }
}

/// Waits for the end of a measurement and answers with its result.
pub struct Waiting {
    measurement: u64,
    told: Instant,
    _wanted: Option<Rc<()>>,
}

impl Waiting {
    /// For a measurement that goes on when nobody waits any more.
    pub fn new(measurement: u64) -> Waiting {
        Waiting { measurement, told: Instant::now(), _wanted: None }
    }

    /// For a measurement that only this client wants.
    pub fn owning(measurement: u64) -> (Waiting, Wanted) {
        let wanted = Rc::new(());
        let hold = Wanted(Rc::downgrade(&wanted));
        (Waiting { measurement, told: Instant::now(), _wanted: Some(wanted) }, hold)
    }
}

impl<S: Surroundings> Job<Station<S>> for Waiting {
    fn step(&mut self, station: &mut Station<S>, sink: &mut dyn Sink) -> Result<Step, Refusal> {
        match station.outcome(self.measurement) {
            Outcome::Done(measured) => Ok(Step::Done(shows::result(measured))),
            Outcome::Failed(why) => Err(Refusal::new(why)),
            Outcome::Unknown => Err(Refusal::new("the measurement was given up")),
            Outcome::UnderWay => {
                if self.told.elapsed() >= TELL_EVERY
                    && let Some(progress) = progress(station)
                {
                    self.told = Instant::now();
                    sink.progress(progress);
                }
                // Not more often: the control thread shares the worker's core.
                Ok(later(station.pause().min(TELL_EVERY)))
            }
        }
    }
}

/// How far the measurement under way is.
fn progress<S: Surroundings>(station: &Station<S>) -> Option<Progress> {
    let ms = |seconds: f64| (seconds * 1e3) as u64;
    if let Some(look) = station.transactions() {
        let side = look.clients.as_ref().or(look.servers.as_ref())?;
        let (begun, done) = (side.transactions.attempted.get(), side.transactions.successful.get());
        let what = format!("ms measured; {begun} transactions begun, {done} successful");
        return Some(Progress { what, done: ms(look.at_s), total: ms(look.of_s) });
    }
    let look = station.look()?;
    let received = look.streams.iter().map(|s| s.1).sum::<u64>();
    let sent = look.streams.iter().map(|s| s.0).sum::<u64>();
    let what = format!("ms measured; {sent} frames sent, {received} back");
    Some(Progress { what, done: ms(look.at_s), total: ms(look.of_s) })
}

/// What a measurement under way is changed to.
#[derive(Clone, Copy)]
pub enum To {
    Rate(Rate),
    Paused,
    Resumed,
}

/// Changes the measurement under way, once its warm-up is over.
pub struct Changing {
    pub stream: Option<usize>,
    pub to: To,
}

impl<S: Surroundings> Job<Station<S>> for Changing {
    fn step(&mut self, station: &mut Station<S>, _: &mut dyn Sink) -> Result<Step, Refusal> {
        let generator = station.measuring()?;
        if !generator.counts() {
            return Ok(later(WARMUP_LOOK));
        }
        let done = match self.to {
            To::Rate(rate) => generator.set_rate(self.stream, rate),
            To::Paused => generator.set_paused(self.stream, true),
            To::Resumed => generator.set_paused(self.stream, false),
        };
        done.map_err(|error| Refusal::new(format!("{error:#}")))?;
        Ok(Step::Done(Output::none()))
    }
}

/// A short answer: which measurement.
pub fn numbered(what: &str, measurement: u64) -> Output {
    Output::both(format!("measurement {measurement} {what}"), json!({ "measurement": measurement }))
}
