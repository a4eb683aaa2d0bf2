//! A configuration in a file, against the one that runs: checked, compared, applied.
//!
//! It is applied as the smallest list of commands that leads there. When one of them is refused,
//! what was done is taken back, by the commands that lead from where that is to where it began.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

use super::file::Reading;
use super::{Context, Execution, Started};
use crate::background::Elsewhere;
use crate::changes::{Change, Changes, Mistake};
use crate::configuration::Configuration;
use crate::document::{Language, Parsed, Wanted, parse};
use crate::error::Refusal;
use crate::grammar::{Commands, closed};
use crate::job::{Collected, Progress, Sink, Step};
use crate::names::Names;
use crate::output::Output;
use crate::words::{self, COMMAND_BYTES_MAX};

/// What is done with a configuration in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Look for mistakes.
    Check,
    /// Say which commands lead there.
    Diff,
    /// Execute them.
    Apply,
}

/// A mistake more than these is counted, not told.
const MISTAKES_LISTED_MAX: usize = 100;

/// A configuration in a file, under way.
pub(super) struct Documented<S> {
    purpose: Purpose,
    context: Context,
    name: String,
    language: Language,
    /// What the file says, once it is read.
    wanted: Wanted,
    at: At<S>,
}

enum At<S> {
    /// A thread of its own reads the file.
    Reading(Reading),
    /// A thread of its own reads the document in it.
    Parsing(Elsewhere<Result<Parsed, Mistake>>),
    /// The running configuration is written.
    Writing { running: Box<Configuration<S>>, written: Collected },
    /// The commands are executed.
    Executing(Box<Executing<S>>),
}

/// Commands that lead from one configuration to another.
struct Executing<S> {
    /// The configuration before the first of them.
    before: String,
    left: VecDeque<Change>,
    done: u64,
    total: u64,
    child: Option<Execution<S>>,
    /// Why what was done is taken back.
    taking_back: Option<Refusal>,
}

impl<S: Names + 'static> Documented<S> {
    pub(super) fn begin(
        purpose: Purpose,
        path: &Path,
        language: Language,
        context: &Context,
    ) -> Result<Documented<S>, Refusal> {
        let reading = Reading::begin(path, context)?;
        let name = reading.name();
        let (context, at) = (context.clone(), At::Reading(reading));
        Ok(Documented { purpose, context, name, language, wanted: Wanted::default(), at })
    }

    /// Would stopping now leave it half applied?
    pub(super) fn must_end(&self) -> bool {
        matches!(self.at, At::Executing(_))
    }

    pub(super) fn step(
        &mut self,
        commands: &Commands<S>,
        state: &mut S,
        sink: &mut dyn Sink,
    ) -> Result<Step, Refusal> {
        match &mut self.at {
            At::Reading(reading) => {
                let Some(text) = reading.look_text()? else {
                    return Ok(Elsewhere::<String>::pause());
                };
                if self.language == Language::Yaml {
                    self.at = At::Parsing(Elsewhere::begin(move || Ok(parse(&text)))?);
                    return Ok(Step::Again);
                }
                self.read(commands, state, Wanted::of_commands(text))
            }
            At::Parsing(parsing) => {
                let Some(parsed) = parsing.look()? else {
                    return Ok(Elsewhere::<String>::pause());
                };
                let read = parsed
                    .map_err(|mistake| vec![mistake])
                    .and_then(|parsed| commands.read_parsed(&*state, &parsed));
                match read {
                    Ok(wanted) => self.read(commands, state, wanted),
                    Err(mistakes) => Err(self.refusal_of(&mistakes)),
                }
            }
            At::Writing { running, written } => {
                match running.step(commands, state, &mut Quiet { written, sink }) {
                    Step::Done(last) => written.output(last),
                    step => return Ok(step),
                }
                let outputs = std::mem::take(&mut written.outputs);
                let running: String = outputs.iter().map(Output::to_text).collect();
                self.compared(commands, state, running)
            }
            At::Executing(executing) => {
                let step = executing.step(commands, state, sink, &self.context)?;
                if matches!(step, Step::Done(_)) {
                    commands.keep_comments(self.wanted.comments.take().unwrap_or_default());
                }
                Ok(step)
            }
        }
    }

    /// The file is read.
    fn read(&mut self, commands: &Commands<S>, state: &S, wanted: Wanted) -> Result<Step, Refusal> {
        self.wanted = wanted;
        if self.purpose != Purpose::Check {
            let running = Box::new(Configuration::new(commands, false));
            self.at = At::Writing { running, written: Collected::default() };
            return Ok(Step::Again);
        }
        let mistakes = commands.mistakes_in(state, &self.wanted.text);
        match mistakes.is_empty() {
            true => Ok(Step::Done(Output::text(format!("{} has no mistakes\n", self.name)))),
            false => Err(self.refusal_of(&mistakes)),
        }
    }

    fn compared(
        &mut self,
        commands: &Commands<S>,
        state: &mut S,
        running: String,
    ) -> Result<Step, Refusal> {
        let changes = commands
            .changes_between(&*state, &running, &self.wanted.text)
            .map_err(|mistakes| self.refusal_of(&mistakes))?;
        if self.purpose == Purpose::Diff {
            let hides = |line: &str| commands.masked_within(&*state, line, COMMAND_BYTES_MAX);
            let document = match self.language {
                Language::Yaml => self.difference(commands, &running, &hides)?,
                Language::Commands => None,
            };
            return Ok(Step::Done(listed(&changes, document, &hides)));
        }
        let total = changes.commands.len() as u64;
        let (left, child) = (changes.commands.into(), None);
        self.at = At::Executing(Box::new(Executing {
            before: running,
            left,
            done: 0,
            total,
            child,
            taking_back: None,
        }));
        Ok(Step::Again)
    }

    /// What differs, key by key.
    fn difference(
        &self,
        commands: &Commands<S>,
        running: &str,
        hides: &dyn Fn(&str) -> String,
    ) -> Result<Option<String>, Refusal> {
        let document = |lines: &str| {
            let hidden: String =
                lines.lines().flat_map(|line| [hides(line), "\n".into()]).collect();
            commands.document_of(&hidden)
        };
        Ok(Some(document(running)?.difference(&document(&self.wanted.text)?)))
    }

    /// All mistakes in one refusal.
    fn refusal_of(&self, mistakes: &[Mistake]) -> Refusal {
        let mistakes: Vec<Mistake> =
            mistakes.iter().map(|mistake| self.wanted.placed(mistake.clone())).collect();
        match mistakes.as_slice() {
            [] => return Refusal::new("it cannot be compared"),
            [Mistake { line: 0, refusal, .. }] => return refusal.clone(),
            [Mistake { line, column, refusal }] => {
                return refusal.clone().in_file(self.name.clone(), *line).at_column(*column);
            }
            _ => {}
        }
        let mut text = format!("{} has {} mistakes", self.name, mistakes.len());
        for Mistake { line, column, refusal } in mistakes.iter().take(MISTAKES_LISTED_MAX) {
            let _ = match column {
                0 => write!(text, "\n  line {line}: {refusal}"),
                _ => write!(text, "\n  {}:{line}:{column}: {refusal}", self.name),
            };
        }
        if let Some(more) = mistakes.len().checked_sub(MISTAKES_LISTED_MAX).filter(|more| *more > 0)
        {
            let _ = write!(text, "\n  and {more} more");
        }
        Refusal::new(text)
    }
}

/// The changes, as `diff` prints them, without secrets.
fn listed(changes: &Changes, document: Option<String>, hides: &dyn Fn(&str) -> String) -> Output {
    let all = |lines: &[String]| lines.iter().map(|line| hides(line)).collect::<Vec<String>>();
    let (removed, added) = (all(&changes.removed), all(&changes.added));
    let commands: Vec<String> =
        changes.commands.iter().map(|change| hides(&change.command)).collect();
    let lines = removed.iter().map(|line| format!("- {line}\n"));
    let text: String = lines.chain(added.iter().map(|line| format!("+ {line}\n"))).collect();
    let text = match document {
        Some(document) if text.is_empty() => document,
        Some(document) => format!("{document}\nas commands:\n{text}"),
        None => text,
    };
    Output::text(text)
        .json("removed", json!(removed))
        .json("added", json!(added))
        .json("commands", json!(commands))
}

impl<S: Names + 'static> Executing<S> {
    fn step(
        &mut self,
        commands: &Commands<S>,
        state: &mut S,
        sink: &mut dyn Sink,
        context: &Context,
    ) -> Result<Step, Refusal> {
        loop {
            if let Some(child) = &mut self.child {
                match child.step(commands, state, &mut Collected::default()) {
                    Ok(Step::Done(_)) => (self.child, self.done) = (None, self.done + 1),
                    Ok(step) => return Ok(step),
                    Err(refusal) => {
                        self.child = None;
                        self.refused(commands, state, refusal)?;
                    }
                }
                continue;
            }
            let Some(change) = self.left.pop_front() else { return self.finished() };
            if sink.must_pause() {
                self.left.push_front(change);
                let what = format!("{} commands", self.done);
                sink.progress(Progress { what, done: self.done, total: self.total });
                return Ok(Step::Again);
            }
            sink.spend(1);
            match start(commands, state, &change.command, context) {
                Ok(Started::Done(_)) => self.done += 1,
                Ok(Started::Running(child)) => self.child = Some(child),
                Err(refusal) => self.refused(commands, state, refusal)?,
            }
        }
    }

    fn finished(&mut self) -> Result<Step, Refusal> {
        match self.taking_back.take() {
            Some(refusal) => Err(refusal),
            None => Ok(Step::Done(Output::none().json("commands", json!(self.done)))),
        }
    }

    /// A command was refused: take back what was done before it.
    fn refused(
        &mut self,
        commands: &Commands<S>,
        state: &mut S,
        refusal: Refusal,
    ) -> Result<(), Refusal> {
        if let Some(first) = self.taking_back.take() {
            // What cannot be taken back is told, and the rest is.
            self.taking_back = Some(first.but(&refusal));
            return Ok(());
        }
        let running = commands.running_config(state);
        let back = commands.changes_between(&*state, &running, &self.before);
        let (back, refusal) = match back {
            Ok(changes) => (changes.commands, refusal.taken_back()),
            Err(_) => (Vec::new(), refusal.after(self.done)),
        };
        self.left = back.into();
        self.taking_back = Some(refusal);
        Ok(())
    }
}

fn start<S: Names + 'static>(
    commands: &Commands<S>,
    state: &mut S,
    line: &str,
    context: &Context,
) -> Result<Started<S>, Refusal> {
    let mut split = Vec::new();
    words::split(line, &mut split).and_then(|end| closed(end, split.len()))?;
    let started = commands.start_words(state, line, &split, &mut Vec::new(), context);
    started.map_err(|refused| {
        let (refusal, is_command) = refused.parts();
        commands.note_refused(&*state, line, &refusal, is_command);
        refusal.of_command(&commands.masked(&*state, line))
    })
}

/// Collects pages, and pauses when its client says so.
pub(super) struct Quiet<'a> {
    pub(super) written: &'a mut Collected,
    pub(super) sink: &'a mut dyn Sink,
}

impl Sink for Quiet<'_> {
    fn output(&mut self, output: Output) {
        self.written.output(output);
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
