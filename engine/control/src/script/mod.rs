//! Executing commands: one line, or many from a file or a pipe, in steps that leave the control
//! loop its time.

pub(crate) mod document;
mod file;
mod run;
mod start;
mod yaml;

use std::rc::Rc;
use std::time::Instant;

use crate::background::Elsewhere;
use crate::configuration::Configuration;
use crate::error::Refusal;
use crate::files::Access;
use crate::filter::{Filtered, Filters};
use crate::grammar::Commands;
use crate::job::{Job, Progress, Sink, Step};
use crate::names::Names;
use crate::output::Output;
use crate::rights::Role;
use crate::versions::commands::Showing;
use document::Documented;
use file::{FileId, Reading};
use run::Script;
use yaml::Writing;

/// What happens when a command of many is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRefusal {
    /// The rest is not executed.
    Stop,
    /// The next one is executed.
    Continue,
}

/// A command that has begun.
pub enum Started<S> {
    /// And ended.
    Done(Output),
    /// And goes on in steps.
    Running(Execution<S>),
}

/// A command or a script under way.
pub struct Execution<S>(Kind<S>);

enum Kind<S> {
    Job {
        job: Box<dyn Job<S>>,
        as_json: bool,
    },
    Script(Box<Script<S>>),
    /// A file of commands, while a thread of its own reads it.
    Reading(Reading),
    /// A whole configuration.
    Documented {
        documented: Box<Documented<S>>,
        as_json: bool,
    },
    /// A version, line by line.
    Version {
        showing: Box<Showing>,
        as_json: bool,
    },
    /// The configuration, part by part.
    Configuration {
        writing: Box<Configuration<S>>,
        as_json: bool,
    },
    /// The configuration as a document.
    Yaml {
        writing: Box<Writing<S>>,
        as_json: bool,
    },
    Filtered {
        inner: Box<Execution<S>>,
        filters: Filters,
    },
}

/// Whose command it is, and which files it stands in, the outermost first.
#[derive(Clone, Debug, Default)]
struct Context {
    role: Role,
    access: Rc<Access>,
    files: Vec<FileId>,
    /// The text of the file that the command names, if its client has sent it.
    attached: Option<Rc<str>>,
}

impl<S> Execution<S> {
    /// The script goes on from an earlier part: count lines from `line` on, and commands on top of
    /// `applied`.
    pub(crate) fn going_on(mut self, line: u32, applied: u64) -> Execution<S> {
        if let Kind::Script(script) = &mut self.0 {
            script.line = line;
            script.applied = applied;
        }
        self
    }
}

impl<S: Names + 'static> Execution<S> {
    /// Do a little.
    ///
    /// # Errors
    /// The command is refused; what was done before stays.
    pub fn step(
        &mut self,
        commands: &Commands<S>,
        state: &mut S,
        sink: &mut dyn Sink,
    ) -> Result<Step, Refusal> {
        match &mut self.0 {
            Kind::Job { job, as_json: false } => job.step(state, sink),
            Kind::Job { job, as_json: true } => match job.step(state, &mut AsJson(sink))? {
                Step::Done(output) => Ok(Step::Done(output.showing_json())),
                step => Ok(step),
            },
            Kind::Script(script) => script.step(commands, state, sink),
            Kind::Reading(reading) => match reading.look()? {
                Some(script) => {
                    self.0 = Kind::Script(Box::new(script));
                    Ok(Step::Again)
                }
                None => Ok(Elsewhere::<String>::pause()),
            },
            Kind::Documented { documented, as_json } => {
                let step = documented.step(commands, state, sink);
                if *as_json { step.map(showing_json) } else { step }
            }
            Kind::Version { showing, as_json } => {
                let step = showing.step(commands, state, sink);
                if *as_json { step.map(showing_json) } else { step }
            }
            Kind::Configuration { writing, as_json: false } => {
                Ok(writing.step(commands, state, sink))
            }
            Kind::Configuration { writing, as_json: true } => {
                match writing.step(commands, state, &mut AsJson(sink)) {
                    Step::Done(output) => Ok(Step::Done(output.showing_json())),
                    step => Ok(step),
                }
            }
            Kind::Yaml { writing, as_json } => match writing.step(commands, state, sink)? {
                Step::Done(output) if *as_json => Ok(Step::Done(output.showing_json())),
                step => Ok(step),
            },
            Kind::Filtered { inner, filters } => {
                match inner.step(
                    commands,
                    state,
                    &mut Filtered { filters: &mut *filters, sink: &mut *sink },
                )? {
                    Step::Done(output) if inner.is_script() => {
                        sink.output(Output::text(filters.end("")));
                        Ok(Step::Done(output))
                    }
                    Step::Done(output) => {
                        Ok(Step::Done(Output::text(filters.end(&output.as_printed()))))
                    }
                    step => Ok(step),
                }
            }
        }
    }

    /// Does it execute several commands?
    pub(crate) fn is_script(&self) -> bool {
        match &self.0 {
            Kind::Script(_) | Kind::Reading(_) => true,
            Kind::Filtered { inner, .. } => inner.is_script(),
            _ => false,
        }
    }

    /// Does it keep its refusals in the journal by itself, each with its line?
    pub(crate) fn keeps_refusals(&self) -> bool {
        match &self.0 {
            Kind::Script(_) => true,
            Kind::Filtered { inner, .. } => inner.keeps_refusals(),
            _ => false,
        }
    }

    /// Would stopping now leave a command half done?
    pub fn must_end(&self) -> bool {
        match &self.0 {
            Kind::Job { job, .. } => job.must_end(),
            Kind::Reading(_)
            | Kind::Configuration { .. }
            | Kind::Yaml { .. }
            | Kind::Version { .. } => false,
            Kind::Documented { documented, .. } => documented.must_end(),
            Kind::Filtered { inner, .. } => inner.must_end(),
            Kind::Script(script) => {
                script.child.as_ref().is_some_and(|(child, _)| child.must_end())
            }
        }
    }

    /// Do all of it, waiting where it waits.
    ///
    /// # Errors
    /// The command is refused; what was done before stays.
    pub fn finish(
        mut self,
        commands: &Commands<S>,
        state: &mut S,
        sink: &mut dyn Sink,
    ) -> Result<Output, Refusal> {
        loop {
            match self.step(commands, state, sink)? {
                Step::Again => {}
                Step::Until(when) => {
                    std::thread::sleep(when.saturating_duration_since(Instant::now()))
                }
                Step::Done(output) => return Ok(output),
            }
        }
    }
}

/// The answer at the end as JSON.
fn showing_json(step: Step) -> Step {
    match step {
        Step::Done(output) => Step::Done(output.showing_json()),
        step => step,
    }
}

/// Marks answers so that their text is their JSON.
struct AsJson<'s>(&'s mut dyn Sink);

impl Sink for AsJson<'_> {
    fn output(&mut self, output: Output) {
        self.0.output(output.showing_json());
    }

    fn progress(&mut self, progress: Progress) {
        self.0.progress(progress);
    }

    fn refused(&mut self, refusal: Refusal) {
        self.0.refused(refusal);
    }

    fn spend(&mut self, units: u64) {
        self.0.spend(units);
    }

    fn must_pause(&self) -> bool {
        self.0.must_pause()
    }

    fn units_left(&self) -> u64 {
        self.0.units_left()
    }
}
