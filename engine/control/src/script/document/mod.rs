//! A configuration as a whole, against the one that runs: checked, compared, applied, saved, taken
//! back.
//!
//! It is applied as the smallest list of commands that leads there. When one of them is refused,
//! what was done is taken back, by the commands that lead from where that is to where it began.
//! Reading, comparing and executing pause when the control loop has other things to do; what waits
//! for a file system is done on another thread.

mod changing;
mod executing;
mod fetching;
mod keeping;
mod register;
mod telling;

use std::time::Duration;

use serde_json::json;

use super::Context;
use crate::args::Args;
use crate::background::Elsewhere;
use crate::changes::{Change, Changes, Lines, Mistake, Reader, between};
use crate::configuration::Configuration;
use crate::document;
use crate::error::Refusal;
use crate::grammar::Commands;
use crate::job::{Progress, Sink, Step};
use crate::names::Names;
use crate::output::Output;
use crate::versions::{COMMANDS, Current, MESSAGE_BYTES_MAX, Turn};
use executing::{Executed, Executing};
use fetching::{Fetched, Wanted};
use keeping::{Committed, Stored};
pub(crate) use register::register;

/// What is done with a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Look for mistakes.
    Check,
    /// Say which commands lead there.
    Diff,
    /// Say the same of two versions, or of a version and the router.
    DiffVersion,
    /// Say which version runs, and whether the router differs from it.
    Status,
    /// Execute what leads there.
    Apply,
    /// Make the router what a version says.
    Rollback,
    /// Keep the configuration that runs as a version.
    Save,
    /// Keep the version that waits for it.
    Confirm,
    /// The version that waits was not confirmed: go back to what was before.
    Return,
}

impl Purpose {
    /// Does it change nothing?
    pub(crate) fn only_looks(self) -> bool {
        matches!(self, Purpose::Check | Purpose::Diff | Purpose::DiffVersion | Purpose::Status)
    }
}

/// Lines that are read before the loop is asked whether to pause.
const LINES_AT_ONCE: usize = 128;

/// The configuration is written anew when it changes while it is compared, at most so often.
const ATTEMPTS_MAX: u32 = 8;

/// The longest time for a confirmation.
const CONFIRM_MAX: Duration = Duration::from_secs(7 * 86_400);

/// Who changes the configuration when nobody asked for it.
pub(crate) const ROUTER: &str = "the router";

/// What a command says besides the configuration.
#[derive(Default)]
struct Options {
    confirm: Option<Duration>,
    message: String,
    /// The state of the configuration in which it may be changed.
    generation: Option<String>,
}

/// A configuration under way.
pub(super) struct Documented<S> {
    purpose: Purpose,
    context: Context,
    options: Options,
    who: String,
    /// Nobody else changes the configuration as a whole meanwhile.
    _turn: Option<Turn>,
    /// The configuration that is wanted.
    wanted: Wanted,
    /// The document that says it, where it is one: then the text is that of its commands.
    document: Option<document::Wanted>,
    /// The text of the saved version, where the router may differ from it.
    saved: Option<String>,
    /// Does the saved version have the very text that is wanted?
    says_the_same: bool,
    /// The configuration that runs, as it was before.
    running: String,
    /// Commands that had been begun when it was written.
    begun: u64,
    attempts: u32,
    /// Why what was done is taken back.
    failed: Option<Refusal>,
    /// What leads to the wanted configuration.
    changes: Vec<Change>,
    /// Written and not yet the router's.
    stored: Option<Stored>,
    /// The first command that was refused on the way back, and how many there were.
    refused: Option<(Refusal, u64)>,
    done: u64,
    at: At<S>,
}

enum At<S> {
    /// A thread of its own reads files.
    Fetching(Elsewhere<Fetched>),
    /// The running configuration is written.
    Writing { running: Box<Configuration<S>>, text: String },
    /// The lines of the configurations are read.
    Reading { reader: Box<Reader>, before: Option<Lines>, wanted: Option<Lines> },
    /// The commands are found.
    Planning(Elsewhere<Result<Planned, Vec<Mistake>>>),
    /// The version is written.
    Storing(Elsewhere<Stored>),
    /// The commands are executed.
    Executing(Box<Executing<S>>),
    /// The version becomes the router's.
    Committing(Elsewhere<Committed>),
    /// It is entered which version is which.
    Putting(Elsewhere<Current>),
    /// Files of what did not come about are removed.
    Discarding(Elsewhere<()>),
}

/// What leads to the wanted configuration.
#[derive(Default)]
struct Planned {
    changes: Changes,
    /// Does the saved version say what runs?
    is_saved: bool,
}

impl<S: Names + 'static> Commands<S> {
    /// Begin what a command for a whole configuration says.
    pub(super) fn start_document(
        &self,
        purpose: Purpose,
        args: &Args<'_>,
        context: &Context,
    ) -> Result<Documented<S>, Refusal> {
        let confirm = args.optional::<f64>("confirm")?.map(Duration::from_secs_f64);
        if confirm.is_some_and(|confirm| confirm < Duration::from_secs(1) || confirm > CONFIRM_MAX)
        {
            return Err(args.refuse("confirm", "it must be from 1 s to 7 days"));
        }
        let message = args.or("message", "")?.to_owned();
        if message.len() > MESSAGE_BYTES_MAX {
            let what = format!("it is longer than {MESSAGE_BYTES_MAX} bytes");
            return Err(args.refuse("message", what));
        }
        let generation = args.optional::<&str>("generation")?.map(str::to_owned);
        if let Some(known) = &generation {
            self.check_generation(known)?;
        }
        let options = Options { confirm, message, generation };
        self.begin_document(purpose, options, args, context)
    }

    /// The version that waits was not confirmed: begin to go back, if its time is over.
    pub(crate) fn begin_return(&self) -> Option<super::Execution<S>> {
        let due = self.versions.deadline()?;
        if due > std::time::Instant::now() {
            return None;
        }
        self.versions.change(|kept| {
            if let Some(pending) = &mut kept.pending {
                pending.is_over = true;
                let version = pending.version;
                tracing::warn!("version {version} was not confirmed: it is taken back");
            }
        });
        let context = self.context(crate::files::Trust::Full.into());
        let documented = Box::new(self.begin_back(ROUTER.to_owned(), &context).ok()?);
        Some(super::Execution(super::Kind::Documented { documented, as_json: false }))
    }
}

impl<S: Names + 'static> Documented<S> {
    /// Would stopping now leave it half applied?
    pub(super) fn must_end(&self) -> bool {
        self.purpose == Purpose::Return
            || self.failed.is_some()
            || matches!(
                self.at,
                At::Storing(_)
                    | At::Executing(_)
                    | At::Committing(_)
                    | At::Putting(_)
                    | At::Discarding(_)
            )
    }

    pub(super) fn step(
        &mut self,
        commands: &Commands<S>,
        state: &mut S,
        sink: &mut dyn Sink,
    ) -> Result<Step, Refusal> {
        let step = self.advance(commands, state, sink)?;
        let is_done = matches!(step, Step::Done(_));
        if is_done && matches!(self.purpose, Purpose::Apply | Purpose::Rollback) {
            let comments = match self.document.take() {
                Some(document) => document.comments,
                // That of a version is read for its comments alone.
                None => self.wanted.document.as_deref().map(document::comments_of),
            };
            commands.keep_comments(comments.unwrap_or_default());
        }
        Ok(step)
    }

    fn advance(
        &mut self,
        commands: &Commands<S>,
        state: &mut S,
        sink: &mut dyn Sink,
    ) -> Result<Step, Refusal> {
        match &mut self.at {
            At::Fetching(fetching) => match fetching.look()? {
                Some(fetched) => self.fetched(commands, state, fetched),
                None => Ok(Elsewhere::<Fetched>::pause()),
            },
            At::Writing { running, text } => {
                match running.step(commands, state, &mut Quiet { text, sink }) {
                    Step::Done(last) => text.push_str(&last.to_text()),
                    step => return Ok(step),
                }
                let text = std::mem::take(text);
                self.written(commands, text)
            }
            At::Reading { reader, .. } => {
                while !reader.step(commands, &*state, LINES_AT_ONCE) {
                    sink.spend(LINES_AT_ONCE as u64);
                    if sink.must_pause() {
                        let (done, total) = reader.progress();
                        let what = "bytes of configuration compared".to_owned();
                        sink.progress(Progress { what, done, total });
                        return Ok(Step::Again);
                    }
                }
                self.read(commands)
            }
            At::Planning(planning) => match planning.look()? {
                Some(planned) => self.planned(commands, state, planned),
                None => Ok(Elsewhere::<()>::pause()),
            },
            At::Storing(storing) => match storing.look()? {
                Some(stored) => {
                    self.stored = Some(stored);
                    if self.purpose == Purpose::Save {
                        return self.commit(commands);
                    }
                    let changes = std::mem::take(&mut self.changes);
                    self.at = At::Executing(Box::new(Executing::new(changes, false)));
                    Ok(Step::Again)
                }
                None => Ok(Elsewhere::<Stored>::pause()),
            },
            At::Executing(executing) => {
                match executing.step(commands, state, sink, &self.context) {
                    Ok(Executed::Pauses(step)) => Ok(step),
                    Ok(Executed::All(refused)) => {
                        self.done = executing.done();
                        self.executed(commands, refused)
                    }
                    Err(refusal) => {
                        self.done = executing.done();
                        self.take_back(commands, refusal)
                    }
                }
            }
            At::Committing(committing) => match committing.look() {
                Ok(Some(committed)) => self.committed(commands, committed),
                Ok(None) => Ok(Elsewhere::<Committed>::pause()),
                Err(refusal) if self.purpose == Purpose::Save => Err(refusal),
                Err(refusal) => self.take_back(commands, refusal),
            },
            At::Putting(putting) => match putting.look() {
                Ok(Some(current)) => self.put(commands, current),
                Ok(None) => Ok(Elsewhere::<Current>::pause()),
                Err(refusal) => self.not_put(commands, refusal),
            },
            At::Discarding(discarding) => match discarding.look() {
                Ok(None) => Ok(Elsewhere::<()>::pause()),
                Ok(Some(())) | Err(_) => Err(self.why_failed()),
            },
        }
    }

    fn why_failed(&mut self) -> Refusal {
        self.failed.take().unwrap_or_else(|| Refusal::new("it was taken back"))
    }

    /// The files are read.
    fn fetched(
        &mut self,
        commands: &Commands<S>,
        state: &S,
        fetched: Fetched,
    ) -> Result<Step, Refusal> {
        if let Some(wanted) = fetched.wanted {
            self.wanted = wanted;
        }
        if let Some(parsed) = fetched.parsed {
            let read = parsed.map_err(|mistake| vec![mistake]);
            let document = read
                .and_then(|parsed| commands.read_parsed(state, &parsed))
                .map_err(|mistakes| self.unreadable(mistakes))?;
            self.wanted.text.clone_from(&document.text);
            self.document = Some(document);
        }
        self.says_the_same = fetched.saved.as_ref().is_some_and(|saved| {
            let Wanted { text, document, .. } = &self.wanted;
            saved.text == *text && (document.is_none() || saved.document == *document)
        });
        self.saved = fetched.saved.map(|saved| saved.text);
        match fetched.base {
            Some(base) => {
                self.at = reading(Reader::new(base));
                Ok(Step::Again)
            }
            None => self.write(commands),
        }
    }

    /// Begin to write the running configuration.
    fn write(&mut self, commands: &Commands<S>) -> Result<Step, Refusal> {
        if self.failed.is_none() && self.purpose != Purpose::Return {
            if let Some(known) = &self.options.generation {
                commands.check_generation(known)?;
            }
            self.attempts += 1;
            if self.attempts > ATTEMPTS_MAX {
                return Err(Refusal::new("the configuration changes all the time")
                    .remedy("wait until nobody changes it"));
            }
        }
        self.begun = commands.changes.begun();
        let running = Box::new(Configuration::new(commands, false));
        self.at = At::Writing { running, text: String::new() };
        Ok(Step::Again)
    }

    /// The running configuration is written.
    fn written(&mut self, commands: &Commands<S>, running: String) -> Result<Step, Refusal> {
        self.at = reading(Reader::of_running(running.clone(), &commands.lines_read));
        if self.failed.is_none() {
            if self.purpose == Purpose::Save {
                self.wanted = Wanted {
                    name: "the configuration".to_owned(),
                    text: running.clone(),
                    language: COMMANDS.to_owned(),
                    document: None,
                };
            }
            self.running = running;
        }
        Ok(Step::Again)
    }

    /// A configuration is read: the one before first, then the wanted one, then the saved one.
    fn read(&mut self, commands: &Commands<S>) -> Result<Step, Refusal> {
        // The state is moved out; each way on below enters the next one.
        let moved_out = At::Discarding(Elsewhere::done(()));
        let At::Reading { reader, before, wanted } = std::mem::replace(&mut self.at, moved_out)
        else {
            return Ok(Step::Again);
        };
        let lines = reader.end();
        let Some(before) = before else {
            if self.purpose != Purpose::DiffVersion {
                commands.lines_read.keep(&lines);
            }
            let text = match &self.failed {
                Some(_) => self.running.clone(),
                None => self.wanted.text.clone(),
            };
            let reader = match (&self.failed, self.purpose) {
                (None, Purpose::Check | Purpose::Diff | Purpose::Apply | Purpose::Rollback) => {
                    Reader::of_wanted(text, &lines)
                }
                _ => Reader::beside(text, &lines),
            };
            let reader = Box::new(reader);
            self.at = At::Reading { reader, before: Some(lines), wanted: None };
            return Ok(Step::Again);
        };
        let Some(wanted) = wanted else {
            let is_known = commands.versions.running(self.begun).is_some();
            let saved = self.saved.clone().filter(|_| self.failed.is_none() && !is_known);
            if let Some(saved) = saved {
                let reader = Box::new(Reader::beside(saved, &before));
                self.at = At::Reading { reader, before: Some(before), wanted: Some(lines) };
                return Ok(Step::Again);
            }
            return self.plan(before, lines, None);
        };
        self.plan(before, wanted, Some(lines))
    }

    /// Find the commands, on another thread: that takes a while where there are many lines.
    fn plan(
        &mut self,
        before: Lines,
        wanted: Lines,
        saved: Option<Lines>,
    ) -> Result<Step, Refusal> {
        let checks = self.purpose == Purpose::Check;
        self.at = At::Planning(Elsewhere::surely(move || {
            let found = || -> Result<Planned, Vec<Mistake>> {
                let (before, wanted) = (before.merged()?, wanted.merged()?);
                let saved = saved.and_then(|saved| saved.merged().ok());
                let is_saved = saved.is_some_and(|saved| {
                    between(before.clone(), saved).is_ok_and(|changes| changes.is_empty())
                });
                let changes = if checks { Changes::default() } else { between(before, wanted)? };
                Ok(Planned { changes, is_saved })
            };
            Ok(found())
        })?);
        Ok(Step::Again)
    }

    /// The commands are found.
    fn planned(
        &mut self,
        commands: &Commands<S>,
        state: &S,
        planned: Result<Planned, Vec<Mistake>>,
    ) -> Result<Step, Refusal> {
        let Planned { changes, is_saved } = match (planned, &self.failed) {
            (Ok(planned), _) => planned,
            (Err(_), Some(_)) => Planned::default(),
            (Err(mistakes), None) => return Err(self.unreadable(mistakes)),
        };
        if self.failed.is_some() || self.purpose == Purpose::Return {
            self.at = At::Executing(Box::new(Executing::new(changes.commands, true)));
            return Ok(Step::Again);
        }
        match self.purpose {
            Purpose::Check => {
                let said = format!("{} has no mistakes\n", self.wanted.name);
                return Ok(Step::Done(Output::text(said)));
            }
            Purpose::Diff | Purpose::DiffVersion => {
                return Ok(Step::Done(self.listed(commands, state, &changes)));
            }
            Purpose::Status => {
                // A version may say what is so anyway: that is no difference.
                let saved = commands.versions.kept().and_then(|kept| kept.current.saved);
                let is_known = saved.is_some() && commands.versions.running(self.begun) == saved;
                let changes = if is_known { Changes::default() } else { changes };
                return Ok(Step::Done(self.status(commands, &changes)));
            }
            _ => {}
        }
        if commands.changes.begun() != self.begun {
            return self.write(commands);
        }
        self.keep(commands, changes, is_saved)
    }

    /// Everything was executed.
    fn executed(
        &mut self,
        commands: &Commands<S>,
        refused: Option<(Refusal, u64)>,
    ) -> Result<Step, Refusal> {
        if let Some(failed) = self.failed.take() {
            self.failed = Some(match refused {
                Some((refusal, _)) => failed.but(&refusal),
                None => failed.taken_back(),
            });
            return self.discard();
        }
        match self.purpose {
            Purpose::Return => self.returned(commands, refused),
            _ if self.stored.is_some() => self.commit(commands),
            _ => Ok(Step::Done(Output::none().json("commands", json!(self.done)))),
        }
    }

    /// Something was refused: take back what was done before it.
    fn take_back(&mut self, commands: &Commands<S>, refusal: Refusal) -> Result<Step, Refusal> {
        self.failed = Some(refusal);
        self.write(commands)
    }

    /// Remove what was written for a version that does not come about.
    fn discard(&mut self) -> Result<Step, Refusal> {
        let Some(stored) = self.stored.take() else { return Err(self.why_failed()) };
        match Elsewhere::surely(move || {
            stored.discard();
            Ok(())
        }) {
            Ok(discarding) => self.at = At::Discarding(discarding),
            Err(_) => return Err(self.why_failed()),
        }
        Ok(Step::Again)
    }
}

fn reading<S>(reader: Reader) -> At<S> {
    At::Reading { reader: Box::new(reader), before: None, wanted: None }
}

/// Collects the text of pages, and pauses when its client says so.
pub(super) struct Quiet<'a> {
    pub(super) text: &'a mut String,
    pub(super) sink: &'a mut dyn Sink,
}

impl Sink for Quiet<'_> {
    fn output(&mut self, output: Output) {
        self.text.push_str(&output.to_text());
    }

    fn refused(&mut self, refusal: Refusal) {
        self.sink.refused(refusal);
    }

    fn spend(&mut self, units: u64) {
        self.sink.spend(units);
    }

    fn must_pause(&self) -> bool {
        self.sink.must_pause()
    }

    fn units_left(&self) -> u64 {
        self.sink.units_left()
    }
}
