//! Jobs: commands that take longer than one turn of the control loop (links that come up, a
//! measurement that ends).

use std::time::{Duration, Instant};

use quiver_control::{Job, Output, Progress, Refusal, Sink, Step};
use serde_json::json;

use super::owner::{Owner, OwnerWatch};
use super::session::{Outcome, Session};
use super::shows;
use quiver_tg_measuring::request::Rate;
use quiver_tg_measuring::surroundings::{LINK_LOOK_NS, Surroundings};

/// Interval at which the end of the warm-up is polled.
const WARMUP_POLL: Duration = Duration::from_millis(5);
/// Interval of the progress messages to the client of a measurement.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

fn after(pause: Duration) -> Step {
    Step::Until(Instant::now() + pause)
}

/// Waits for the links of a profile that was loaded.
pub struct Linking;

impl<S: Surroundings> Job<Session<S>> for Linking {
    fn step(&mut self, session: &mut Session<S>, _: &mut dyn Sink) -> Result<Step, Refusal> {
        match session.links()? {
            true => Ok(Step::Done(shows::profile(session)?)),
            false => Ok(after(Duration::from_nanos(LINK_LOOK_NS))),
        }
    }

    fn must_end(&self) -> bool {
        true // others may use the profile when its client is gone
    }
}

/// Waits for the end of a measurement and answers with its result.
pub struct Waiting {
    measurement: u64,
    last_progress: Instant,
    _owner: Option<Owner>,
}

impl Waiting {
    /// For a measurement that goes on after its clients have left.
    pub fn new(measurement: u64) -> Waiting {
        Waiting { measurement, last_progress: Instant::now(), _owner: None }
    }

    /// For a measurement that ends when this client leaves.
    pub fn owning(measurement: u64) -> (Waiting, OwnerWatch) {
        let owner = Owner::new();
        let watch = owner.watch();
        (Waiting { measurement, last_progress: Instant::now(), _owner: Some(owner) }, watch)
    }
}

impl<S: Surroundings> Job<Session<S>> for Waiting {
    fn step(&mut self, session: &mut Session<S>, sink: &mut dyn Sink) -> Result<Step, Refusal> {
        match session.outcome(self.measurement) {
            Outcome::Done(measured) => Ok(Step::Done(shows::result(measured))),
            Outcome::Failed(why) => Err(Refusal::new(why)),
            Outcome::Unknown => Err(Refusal::new("the measurement was given up")),
            Outcome::UnderWay => {
                if self.last_progress.elapsed() >= PROGRESS_EVERY
                    && let Some(progress) = progress(session)
                {
                    self.last_progress = Instant::now();
                    sink.progress(progress);
                }
                // Not more often: the control thread shares the worker's core.
                Ok(after(session.pause().min(PROGRESS_EVERY)))
            }
        }
    }
}

/// How far the measurement under way is.
fn progress<S: Surroundings>(session: &Session<S>) -> Option<Progress> {
    let ms = |seconds: f64| (seconds * 1e3) as u64;
    if let Some(snapshot) = session.transactions() {
        let side = snapshot.clients.as_ref().or(snapshot.servers.as_ref())?;
        let (begun, done) = (side.transactions.attempted.get(), side.transactions.successful.get());
        let what = format!("ms measured; {begun} transactions begun, {done} successful");
        return Some(Progress { what, done: ms(snapshot.at_s), total: ms(snapshot.of_s) });
    }
    let snapshot = session.snapshot()?;
    let received = snapshot.streams.iter().map(|s| s.1).sum::<u64>();
    let sent = snapshot.streams.iter().map(|s| s.0).sum::<u64>();
    let what = format!("ms measured; {sent} frames sent, {received} back");
    Some(Progress { what, done: ms(snapshot.at_s), total: ms(snapshot.of_s) })
}

/// A change of the measurement under way.
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

impl<S: Surroundings> Job<Session<S>> for Changing {
    fn step(&mut self, session: &mut Session<S>, _: &mut dyn Sink) -> Result<Step, Refusal> {
        let generator = session.measuring()?;
        if !generator.counts() {
            return Ok(after(WARMUP_POLL));
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
