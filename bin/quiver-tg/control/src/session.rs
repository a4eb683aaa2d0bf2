//! The session: the loaded profile, its generator, the measurement under way, and past results.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use quiver_control::{Names, Refusal};
use serde::Serialize;

use super::any_generator::{AnyGenerator, AnyReport};
use super::owner::OwnerWatch;
use super::sampler::{Rates, Sampler};
use quiver_tg_measuring::generator::Snapshot;
use quiver_tg_measuring::request::{Measure, Rate};
use quiver_tg_measuring::surroundings::Surroundings;
use quiver_tg_measuring::turn::Turn;
use quiver_tg_stateful::snapshot::Snapshot as StatefulSnapshot;
use quiver_tg_traffic::profile::{Profile, ProfileError, StreamList, StreamRate};

/// Results that are kept.
pub const RESULTS_MAX: usize = 64;
/// Between two turns, at least and at most.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// A measurement without a duration ends after so long, seconds.
pub const UNTIL_STOPPED_S: f64 = quiver_tg_measuring::request::DURATION_S_MAX;

/// One measurement's result.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Counted from 1 since the program began.
    pub measurement: u64,
    /// The report.
    #[serde(flatten)]
    pub report: AnyReport,
}

/// The state of a measurement.
pub enum Outcome<'a> {
    /// It goes on.
    UnderWay,
    /// It ended so.
    Done(&'a Measured),
    /// It could not be finished, and why.
    Failed(&'a str),
    /// Its result is not kept any more.
    Unknown,
}

type Make<S> = Box<dyn FnMut(&Profile) -> anyhow::Result<AnyGenerator<S>>>;

/// The state of a generator that commands read and change.
pub struct Session<S> {
    make: Make<S>,
    pub(super) loaded: Option<Loaded<S>>,
    /// The core to run on, whatever profiles say.
    pub core: Option<usize>,
    /// The number of the measurement under way, or of the last one.
    pub(super) measurement: u64,
    /// The client whose leaving ends the measurement under way.
    pub(super) owner: Option<OwnerWatch>,
    due_ns: Option<u64>,
    /// Profiles that have been loaded: each has an engine of its own.
    pub(super) loads: u64,
    results: VecDeque<Result<Measured, (u64, String)>>,
    pub(super) sampler: Sampler,
    pub(super) quits: bool,
}

/// A profile and its generator.
pub(super) struct Loaded<S> {
    pub(super) profile: Profile,
    pub(super) generator: AnyGenerator<S>,
    /// Until when links are waited for; `None` once they are there.
    pub(super) waits_until_ns: Option<u64>,
}

impl<S> Names for Session<S> {}

impl<S: Surroundings> Session<S> {
    /// With nothing loaded; `make` makes a profile's generator and starts it.
    pub fn new(
        make: impl FnMut(&Profile) -> anyhow::Result<AnyGenerator<S>> + 'static,
    ) -> Session<S> {
        Session {
            make: Box::new(make),
            loaded: None,
            core: None,
            measurement: 0,
            owner: None,
            due_ns: None,
            loads: 0,
            results: VecDeque::new(),
            sampler: Sampler::default(),
            quits: false,
        }
    }

    /// Make the ports of a profile. [`links`](Self::links) says when they are there. A profile that
    /// is loaded already goes, unless this one cannot be read; ports that are the same stay.
    ///
    /// # Errors
    /// When a measurement is under way, or the ports or frames cannot be made.
    pub fn load(&mut self, mut profile: Profile) -> Result<(), Refusal> {
        if let Some(core) = self.core {
            profile.cores = vec![core];
        }
        self.check_idle("a profile is loaded")?;
        if let Some(loaded) = &mut self.loaded
            && loaded.waits_until_ns.is_none()
            && loaded.profile.has_ports_of(&profile)
            && let Some(generator) = loaded.generator.as_streams()
        {
            generator.set_streams(&profile).map_err(|error| in_profile(&profile, &error))?;
            loaded.waits_until_ns = Some(generator.link_deadline_ns());
            loaded.profile = profile;
            self.sampler = Sampler::default();
            return Ok(());
        }
        // The sockets and devices of the one before are needed again.
        self.loaded = None;
        self.sampler = Sampler::default();
        let generator = (self.make)(&profile).map_err(|error| in_profile(&profile, &error))?;
        let waits_until_ns = Some(generator.link_deadline_ns());
        self.loaded = Some(Loaded { profile, generator, waits_until_ns });
        self.loads += 1;
        Ok(())
    }

    /// Change the streams of the loaded profile. A refusal changes nothing.
    ///
    /// # Errors
    /// When a measurement is under way, no profile is loaded, `change` refuses, or the streams are
    /// no longer a profile.
    pub fn change_streams(
        &mut self,
        change: impl FnOnce(&mut StreamList) -> Result<(), String>,
    ) -> Result<(), Refusal> {
        self.check_idle("streams are changed")?;
        let profile = &self.loaded()?.profile;
        let mut list = StreamList::of(profile).map_err(Refusal::new)?;
        change(&mut list).map_err(Refusal::new)?;
        let changed = Profile::parse(&list.text(), &profile.path).map_err(changed)?;
        self.load(changed)
    }

    /// Close the ports of the profile.
    ///
    /// # Errors
    /// When a measurement is under way.
    pub fn unload(&mut self) -> Result<(), Refusal> {
        self.check_idle("the profile is unloaded")?;
        self.loaded = None;
        Ok(())
    }

    /// Has every port its link? A profile whose links do not come in time is unloaded.
    ///
    /// # Errors
    /// When no profile is loaded, or a link or a gateway's answer is missing in time.
    pub fn links(&mut self) -> Result<bool, Refusal> {
        let loaded = self.loaded()?;
        let Some(deadline_ns) = loaded.waits_until_ns else { return Ok(true) };
        match loaded.generator.has_links(deadline_ns) {
            Ok(false) => Ok(false),
            Ok(true) => {
                loaded.waits_until_ns = None;
                Ok(true)
            }
            Err(error) => {
                let refusal = in_profile(&loaded.profile, &error);
                self.loaded = None;
                Err(refusal)
            }
        }
    }

    /// A rate in frames a second: of one stream of the profile, or of all that share the rate of
    /// the whole.
    ///
    /// # Errors
    /// When no profile is loaded, there is no such stream, or the rate needs a line rate that the
    /// profile does not give.
    pub fn rate(&mut self, rate: StreamRate, stream: Option<usize>) -> Result<Rate, Refusal> {
        self.loaded()?.generator.rate_in_frames(rate, stream).map_err(Refusal::new)
    }

    /// Begin to measure; the measurement's number.
    ///
    /// # Errors
    /// When a measurement is under way, no profile is loaded, the links are not up yet, or the
    /// generator refuses the request.
    pub fn start(&mut self, request: &Measure) -> Result<u64, Refusal> {
        self.check_idle("another begins")?;
        if !self.links()? {
            return Err(
                Refusal::new("the ports have no links yet").remedy("wait until load has answered")
            );
        }
        let loaded = self.loaded()?;
        loaded.generator.begin(request).map_err(in_words)?;
        self.measurement += 1;
        self.due_ns = Some(0);
        self.sampler = Sampler::default();
        Ok(self.measurement)
    }

    /// End the sending now; the result comes when late frames have had their time.
    ///
    /// # Errors
    /// When nothing is measured, or the worker does not answer.
    pub fn stop(&mut self) -> Result<u64, Refusal> {
        self.measuring()?.stop().map_err(in_words)?;
        self.due_ns = Some(0);
        Ok(self.measurement)
    }

    /// Go on with what is under way.
    pub fn turn(&mut self) {
        self.due_ns = self.advance();
    }

    /// Time until the next turn is due, a second at most.
    pub fn pause(&mut self) -> Duration {
        let Some((due_ns, loaded)) = self.due_ns.zip(self.loaded.as_mut()) else {
            return PAUSE_MAX;
        };
        let left = Duration::from_nanos(due_ns.saturating_sub(loaded.generator.engine().now_ns()));
        left.clamp(PAUSE_MIN, PAUSE_MAX)
    }

    /// Returns when the next turn is due, nanoseconds of the engine's clock.
    fn advance(&mut self) -> Option<u64> {
        if self.owner.as_ref().is_some_and(OwnerWatch::is_gone) {
            self.owner = None;
            if self.is_measuring() {
                let _ = self.stop(); // `turn` below reports the error
            }
        }
        if self.loaded.as_ref()?.waits_until_ns.is_some() {
            return None; // the job that loads the profile polls for the links
        }
        self.sample();
        let loaded = self.loaded.as_mut()?;
        let number = self.measurement;
        let result = match loaded.generator.turn() {
            Ok(Turn::Idle) => return None,
            Ok(Turn::Until(then_ns)) => return Some(then_ns),
            Ok(Turn::Done(report)) => Ok(Measured { measurement: number, report: *report }),
            Err(error) => Err((number, format!("{error:#}"))),
        };
        if self.results.len() == RESULTS_MAX {
            self.results.pop_front();
        }
        self.results.push_back(result);
        self.owner = None;
        None
    }

    /// The state of a measurement.
    pub fn outcome(&self, number: u64) -> Outcome<'_> {
        if number == self.measurement && self.is_measuring() {
            return Outcome::UnderWay;
        }
        let of = |result: &&Result<Measured, (u64, String)>| match result {
            Ok(measured) => measured.measurement == number,
            Err((failed, _)) => *failed == number,
        };
        match self.results.iter().find(of) {
            Some(Ok(measured)) => Outcome::Done(measured),
            Some(Err((_, why))) => Outcome::Failed(why),
            None => Outcome::Unknown,
        }
    }

    /// The results that are kept, the oldest first.
    pub fn results(&self) -> impl DoubleEndedIterator<Item = &Measured> {
        self.results.iter().filter_map(|result| result.as_ref().ok())
    }

    /// Is a measurement under way?
    pub fn is_measuring(&self) -> bool {
        self.loaded.as_ref().is_some_and(|loaded| loaded.generator.is_measuring())
    }

    /// How far the measurement of streams under way is.
    pub fn snapshot(&self) -> Option<Snapshot> {
        match &self.loaded.as_ref()?.generator {
            AnyGenerator::Streams(generator) => generator.snapshot(),
            AnyGenerator::Transactions(_) => None,
        }
    }

    /// How far the measurement of transactions under way is.
    pub fn transactions(&self) -> Option<StatefulSnapshot> {
        match &self.loaded.as_ref()?.generator {
            AnyGenerator::Streams(_) => None,
            AnyGenerator::Transactions(generator) => generator.snapshot(),
        }
    }

    /// A client sent `shutdown`.
    pub fn quits(&self) -> bool {
        self.quits
    }

    /// The measurement that was begun last.
    pub fn last(&self) -> u64 {
        self.measurement
    }

    /// The current rates of a stream, by the counts of the last half second or second.
    pub fn rates(&mut self, stream: usize) -> Rates {
        self.sample();
        self.sampler.rates(stream)
    }

    /// Record the counts of now, from which rates follow.
    pub(super) fn sample(&mut self) {
        match self.loaded.as_mut().map(|loaded| &mut loaded.generator) {
            Some(AnyGenerator::Streams(generator)) => {
                if let Some(snapshot) = generator.snapshot() {
                    self.sampler.record(&snapshot, || generator.spreads());
                }
            }
            Some(AnyGenerator::Transactions(generator)) => {
                if let Some(snapshot) = generator.snapshot() {
                    generator.sampler.record(&snapshot);
                }
            }
            None => {}
        }
    }

    /// The generator, when a profile is loaded.
    pub fn generator(&mut self) -> Option<&mut AnyGenerator<S>> {
        self.loaded.as_mut().map(|loaded| &mut loaded.generator)
    }

    pub(super) fn loaded(&mut self) -> Result<&mut Loaded<S>, Refusal> {
        self.loaded.as_mut().ok_or_else(nothing_loaded)
    }

    /// The generator, while it measures.
    pub(super) fn measuring(&mut self) -> Result<&mut AnyGenerator<S>, Refusal> {
        let loaded = self.loaded()?;
        if loaded.generator.is_measuring() {
            return Ok(&mut loaded.generator);
        }
        Err(Refusal::new("nothing is measured now").remedy("`start` begins a measurement"))
    }

    fn check_idle(&self, before: &str) -> Result<(), Refusal> {
        if !self.is_measuring() {
            return Ok(());
        }
        Err(Refusal::new(format!("measurement {} is under way", self.measurement))
            .remedy(format!("wait for its end, or `stop`, before {before}")))
    }
}

fn nothing_loaded() -> Refusal {
    Refusal::new("no profile is loaded").remedy("`load FILE` loads one")
}

/// Read a profile; what is wrong with it names file and line.
///
/// # Errors
/// When the file cannot be read, or holds no profile that can be sent.
pub fn read(path: &Path) -> Result<Profile, Refusal> {
    Profile::read(path).map_err(of_profile)
}

/// Read a profile that a client names: a regular file, for the control loop must not wait.
pub(super) fn read_regular(path: &Path) -> Result<Profile, Refusal> {
    Profile::read_regular(path).map_err(of_profile)
}

/// Read a profile that a program sent.
pub(super) fn parse(text: &str) -> Result<Profile, Refusal> {
    Profile::parse(text, Path::new("inline")).map_err(of_profile)
}

fn of_profile(error: ProfileError) -> Refusal {
    match error {
        ProfileError::Text { path, line, message } => {
            Refusal::new(message).in_file(path, line as u32)
        }
        ProfileError::Read { path, source } => {
            Refusal::new(format!("{path} cannot be read: {source}"))
        }
    }
}

/// Lines of a profile that was changed are not those of its file.
fn changed(error: ProfileError) -> Refusal {
    match error {
        ProfileError::Text { message, .. } => Refusal::new(message),
        read => of_profile(read),
    }
}

fn in_profile(profile: &Profile, error: &anyhow::Error) -> Refusal {
    Refusal::new(format!("{}: {error:#}", profile.path.display()))
}

fn in_words(error: anyhow::Error) -> Refusal {
    Refusal::new(format!("{error:#}"))
}
