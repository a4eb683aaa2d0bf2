//! Executing commands: one line, or many from a file or a pipe, in steps that leave the control
//! loop its time.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::args::Slot;
use crate::batch::{BATCH_COMMANDS_MAX, Gathered, Place, lines_in};
use crate::error::{Refusal, shown_path};
use crate::grammar::{Action, Commands, Work, closed};
use crate::job::{Collected, Job, Progress, Sink, Step};
use crate::names::Names;
use crate::output::Output;
use crate::words::{self, Word};

/// Files that execute files, at most so deep.
pub const EXEC_DEPTH_MAX: usize = 8;

/// A file of commands is at most this long.
pub const EXEC_BYTES_MAX: u64 = words::TEXT_BYTES_MAX as u64;

/// How long a script works before it lets the control loop go on.
const SLICE: Duration = Duration::from_millis(20);

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
    Job(Box<dyn Job<S>>),
    Script(Box<Script<S>>),
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
    pub fn step(
        &mut self,
        commands: &Commands<S>,
        state: &mut S,
        sink: &mut dyn Sink,
    ) -> Result<Step, Refusal> {
        match &mut self.0 {
            Kind::Job(job) => job.step(state, sink),
            Kind::Script(script) => script.step(commands, state, sink),
        }
    }

    /// Would stopping now leave a command half done?
    pub fn must_end(&self) -> bool {
        match &self.0 {
            Kind::Job(job) => job.must_end(),
            Kind::Script(script) => script.child.as_ref().is_some_and(|(child, _)| child.must_end()),
        }
    }

    /// Do all of it, waiting where it waits.
    pub fn finish(
        mut self,
        commands: &Commands<S>,
        state: &mut S,
        sink: &mut dyn Sink,
    ) -> Result<Output, Refusal> {
        loop {
            match self.step(commands, state, sink)? {
                Step::Again => {}
                Step::Until(when) => std::thread::sleep(when.saturating_duration_since(Instant::now())),
                Step::Done(output) => return Ok(output),
            }
        }
    }
}

impl<S: Names + 'static> Commands<S> {
    /// Execute one line to its end. An empty line, or a comment, does nothing.
    pub fn execute(&self, state: &mut S, line: &str) -> Result<Output, Refusal> {
        match self.start(state, line)? {
            Started::Done(output) => Ok(output),
            Started::Running(execution) => {
                let mut sink = Collected::default();
                let last = execution.finish(self, state, &mut sink)?;
                let mut outputs = sink.outputs;
                if outputs.is_empty() {
                    return Ok(last);
                }
                outputs.push(last);
                Ok(Output::text(outputs.iter().map(Output::to_text).collect::<String>()))
            }
        }
    }

    /// Execute a file to its end, as at start-up. Returns how many commands were applied.
    pub fn execute_file(&self, state: &mut S, path: &Path, sink: &mut dyn Sink) -> Result<u64, Refusal> {
        let script = Script::from_file(path, 1)?;
        let output = Execution(Kind::Script(Box::new(script))).finish(self, state, sink)?;
        Ok(output.to_json()["commands"].as_u64().unwrap_or(0))
    }

    /// Begin one line.
    pub fn start(&self, state: &mut S, line: &str) -> Result<Started<S>, Refusal> {
        let mut words = Vec::new();
        closed(words::split(line, &mut words)?, words.len())?;
        self.start_words(state, line, &words, &mut Vec::new(), 0)
    }

    /// Begin many lines; messages call their source `name`.
    pub fn start_script(&self, text: String, name: Option<String>, on_refusal: OnRefusal) -> Execution<S> {
        Execution(Kind::Script(Box::new(Script::new(text, name, on_refusal, 0))))
    }

    fn start_words<'a>(
        &self,
        state: &mut S,
        line: &'a str,
        words: &[Word],
        slots: &mut Vec<Slot<'a>>,
        depth: usize,
    ) -> Result<Started<S>, Refusal> {
        let Some(last) = words.last() else { return Ok(Started::Done(Output::none())) };
        if !last.quoted && last.text(line) == "?" {
            return Ok(Started::Done(self.help_at(&*state, line, &words[..words.len() - 1])));
        }
        slots.clear();
        let form = self.matcher.parse(&*state, line, words, slots)? as usize;
        self.start_form(state, form, slots, depth)
    }

    fn start_form(
        &self,
        state: &mut S,
        form: usize,
        slots: &[Slot<'_>],
        depth: usize,
    ) -> Result<Started<S>, Refusal> {
        let args = self.args(form, slots);
        self.admit(state, form)?;
        let output = match &self.registered(form).action {
            Action::Run(run) => run(state, &args)?,
            Action::Begin(begin) => return Ok(Started::Running(Execution(Kind::Job(begin(state, &args)?)))),
            Action::RunOrBegin(run) => match run(state, &args)? {
                Work::Done(output) => output,
                Work::Begun(job) => return Ok(Started::Running(Execution(Kind::Job(job)))),
            },
            Action::Help => self.help(&*state, args.or("command", "")?)?,
            Action::RunningConfig => {
                let config = self.running_config(state);
                let lines: Vec<&str> = config.lines().collect();
                Output::both(config.as_str(), json!({ "commands": lines }))
            }
            Action::Exec => {
                let script = Script::from_file(Path::new(args.get::<&str>("file")?), depth + 1)?;
                return Ok(Started::Running(Execution(Kind::Script(Box::new(script)))));
            }
        };
        let as_json = self.forms[form].words[0] == "show" && args.has("json");
        Ok(Started::Done(if as_json { output.showing_json() } else { output }))
    }
}

/// Many commands under way.
struct Script<S> {
    text: String,
    name: Option<String>,
    on_refusal: OnRefusal,
    depth: usize,
    /// Next byte to execute.
    at: usize,
    /// Its line, counted from 1.
    line: u32,
    applied: u64,
    /// Commands that are gathered at once: more while all of them are taken together, few where those
    /// who take them stop early, so that no line is gathered again and again.
    gather: usize,
    /// The command under way, and its line.
    child: Option<(Execution<S>, u32)>,
}

impl<S: Names + 'static> Script<S> {
    fn new(text: String, name: Option<String>, on_refusal: OnRefusal, depth: usize) -> Script<S> {
        Script {
            text,
            name,
            on_refusal,
            depth,
            at: 0,
            line: 1,
            applied: 0,
            gather: BATCH_COMMANDS_MAX,
            child: None,
        }
    }

    fn from_file(path: &Path, depth: usize) -> Result<Script<S>, Refusal> {
        let name = shown_path(path);
        if depth > EXEC_DEPTH_MAX {
            return Err(Refusal::new(format!("files execute each other deeper than {EXEC_DEPTH_MAX}")));
        }
        let failed = |error: std::io::Error| Refusal::new(format!("cannot read {name}: {error}"));
        let metadata = fs::metadata(path).map_err(failed)?;
        if !metadata.is_file() {
            return Err(Refusal::new(format!("{name} is not a file")));
        }
        if metadata.len() > EXEC_BYTES_MAX {
            return Err(Refusal::new(format!("{name} is longer than 1 GiB")));
        }
        let text = String::from_utf8(fs::read(path).map_err(failed)?).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let line = 1 + error.as_bytes()[..valid].iter().filter(|b| **b == b'\n').count();
            Refusal::new("not text in UTF-8").in_file(name.clone(), line as u32).after(0)
        })?;
        Ok(Script::new(text, Some(name), OnRefusal::Stop, depth))
    }

    fn step(&mut self, commands: &Commands<S>, state: &mut S, sink: &mut dyn Sink) -> Result<Step, Refusal> {
        let deadline = Instant::now() + SLICE;
        loop {
            if let Some(step) = self.step_child(commands, state, sink)? {
                return Ok(step);
            }
            if self.at == self.text.len() {
                return Ok(Step::Done(Output::none().json("commands", json!(self.applied))));
            }
            if Instant::now() >= deadline {
                self.report(sink);
                return Ok(Step::Again);
            }
            if let Err((refusal, line)) = self.next(commands, state, sink) {
                self.refused(refusal, line, sink)?;
            }
        }
    }

    /// Step the command under way. Returns what to wait for, or nothing when it is finished.
    fn step_child(
        &mut self,
        commands: &Commands<S>,
        state: &mut S,
        sink: &mut dyn Sink,
    ) -> Result<Option<Step>, Refusal> {
        let Some((child, line)) = &mut self.child else { return Ok(None) };
        let line = *line;
        match child.step(commands, state, sink) {
            Ok(Step::Done(output)) => {
                if matches!(child.0, Kind::Script(_)) {
                    self.applied += output.to_json()["commands"].as_u64().unwrap_or(0);
                } else {
                    sink.output(output);
                    self.applied += 1;
                }
                self.child = None;
                Ok(None)
            }
            Ok(step) => Ok(Some(step)),
            Err(refusal) => {
                self.child = None;
                self.refused(refusal, line, sink)?;
                Ok(None)
            }
        }
    }

    /// Stop with the refusal, or report it and go on.
    fn refused(&mut self, refusal: Refusal, line: u32, sink: &mut dyn Sink) -> Result<(), Refusal> {
        let placed = match &self.name {
            Some(name) => refusal.in_file(name.clone(), line),
            None => refusal,
        };
        match self.on_refusal {
            OnRefusal::Stop => Err(placed.after(self.applied)),
            OnRefusal::Continue => {
                sink.refused(placed);
                Ok(())
            }
        }
    }

    fn report(&self, sink: &mut dyn Sink) {
        let of = self.name.as_ref().map_or(String::new(), |name| format!(" of {name}"));
        let what = format!("{} commands{of}, bytes read", self.applied);
        sink.progress(Progress { what, done: self.at as u64, total: self.text.len() as u64 });
    }

    /// Execute the next command, or the next ones when they are of a kind that comes in batches.
    /// On return, `at` and `line` are past what was executed or refused. A refusal comes with the
    /// line of its command.
    fn next(
        &mut self,
        commands: &Commands<S>,
        state: &mut S,
        sink: &mut dyn Sink,
    ) -> Result<(), (Refusal, u32)> {
        let (mut words, mut slots) = (Vec::new(), Vec::new());
        let text = &self.text[self.at..];
        let Some((length, end)) = words::logical_line(text, &mut words, true) else { return Ok(()) };
        let line = self.line;
        self.at += length;
        self.line += lines_in(&text[..length]);
        end.and_then(|end| closed(end, words.len())).map_err(|refusal| (refusal, line))?;
        let is_empty = words.is_empty();
        let started = if words.last().is_none_or(|last| last.text(text) == "?") {
            commands.start_words(state, text, &words, &mut slots, self.depth)
        } else {
            let form = commands.matcher.parse(&*state, text, &words, &mut slots);
            let form = form.map_err(|refusal| (refusal, line))? as usize;
            if let Some((varies, run_many)) = &commands.registered(form).many {
                commands.admit(state, form).map_err(|refusal| (refusal, line))?;
                let place = Place { end: length, line, next_line: self.line };
                let mut gathered = Gathered::new(commands, form, varies, slots, place);
                gathered.fill(self.gather, &*state, text, &mut words);
                let (done, refusal) = match run_many(state, &gathered.batch) {
                    Ok(done) => (done.min(gathered.batch.len()), None),
                    Err(refused) => (refused.applied.min(gathered.batch.len() - 1), Some(refused.refusal)),
                };
                let all = done == gathered.batch.len();
                self.gather = if all { (self.gather * 4).min(BATCH_COMMANDS_MAX) } else { done.max(1) };
                let dealt_with = (done + usize::from(refusal.is_some())).max(1);
                let last = gathered.places[dealt_with - 1];
                self.applied += done as u64;
                self.at += last.end - length;
                self.line = last.next_line;
                if refusal.is_some() || done > 0 {
                    return refusal.map_or(Ok(()), |refusal| Err((refusal, last.line)));
                }
                // The first of them is for itself.
                slots = gathered.batch.first().to_vec();
            }
            commands.start_form(state, form, &slots, self.depth)
        };
        match started.map_err(|refusal| (refusal, line))? {
            Started::Done(output) => {
                self.applied += u64::from(!is_empty);
                sink.output(output);
            }
            Started::Running(execution) => self.child = Some((execution, line)),
        }
        Ok(())
    }
}
