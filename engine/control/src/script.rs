//! Executing commands: one line, or many from a file or a pipe, in steps that leave the control
//! loop its time.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::args::{Args, Slot};
use crate::background::Elsewhere;
use crate::batch::{BATCH_COMMANDS_MAX, Gathered, Place, lines_in};
use crate::error::{Refusal, shown_path};
use crate::files::{Access, Trust};
use crate::filter::{Filtered, Filters, pipe_of};
use crate::grammar::{Action, Commands, Work, closed};
use crate::job::{Collected, Job, Progress, Sink, Step};
use crate::names::Names;
use crate::output::Output;
use crate::words::{self, Word};

/// Files that execute files, at most so deep.
pub const EXEC_DEPTH_MAX: usize = 8;

/// A file of commands is at most this long.
pub const EXEC_BYTES_MAX: u64 = words::TEXT_BYTES_MAX as u64;

/// How long a script works before it says how far it is, where nobody says that it must pause.
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
    Job {
        job: Box<dyn Job<S>>,
        as_json: bool,
    },
    Script(Box<Script<S>>),
    /// A file of commands, while a thread of its own reads it.
    Reading(Reading),
    Filtered {
        inner: Box<Execution<S>>,
        filters: Filters,
    },
}

/// Whose command it is, and how deep in files that execute files.
#[derive(Clone, Debug, Default)]
struct Context {
    access: Rc<Access>,
    depth: usize,
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
                    Step::Done(output) => Ok(Step::Done(Output::text(filters.end(&output.as_told())))),
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
            Kind::Job { .. } => false,
        }
    }

    /// Would stopping now leave a command half done?
    pub fn must_end(&self) -> bool {
        match &self.0 {
            Kind::Job { job, .. } => job.must_end(),
            Kind::Reading(_) => false,
            Kind::Filtered { inner, .. } => inner.must_end(),
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
                sink.output(last);
                let mut outputs = sink.outputs;
                if outputs.len() == 1 {
                    return Ok(outputs.remove(0));
                }
                Ok(Output::text(outputs.iter().map(Output::to_text).collect::<String>()))
            }
        }
    }

    /// Execute a file to its end, up to the first command that is refused. Returns how many were applied.
    pub fn execute_file(&self, state: &mut S, path: &Path, sink: &mut dyn Sink) -> Result<u64, Refusal> {
        self.execute_file_with(state, path, OnRefusal::Stop, sink)
    }

    /// The same, and say what happens when a command is refused.
    pub fn execute_file_with(
        &self,
        state: &mut S,
        path: &Path,
        on_refusal: OnRefusal,
        sink: &mut dyn Sink,
    ) -> Result<u64, Refusal> {
        let context = Context { depth: 1, ..Context::default() };
        let script = Script::new(read(path, &context.access)?, Some(shown_path(path)), on_refusal, context);
        let output = Execution(Kind::Script(Box::new(script))).finish(self, state, sink)?;
        Ok(output.to_json()["commands"].as_u64().unwrap_or(0))
    }

    /// Parse every command of a file, and of the files that it executes, without doing anything. Returns what
    /// cannot be parsed; what a command names need not be there.
    pub fn check_file(&self, path: &Path) -> Vec<Refusal> {
        let mut faults = Vec::new();
        self.check_nested(path, 1, &mut faults).unwrap_or_else(|refusal| faults.push(refusal));
        faults
    }

    fn check_nested(&self, path: &Path, depth: usize, faults: &mut Vec<Refusal>) -> Result<(), Refusal> {
        if depth > EXEC_DEPTH_MAX {
            return Err(Refusal::new(format!("files execute each other deeper than {EXEC_DEPTH_MAX}")));
        }
        let script = read(path, &Context::default().access)?;
        let name = shown_path(path);
        let (mut at, mut line, mut words) = (0, 1, Vec::new());
        while let Some((length, end)) = words::logical_line(&script[at..], &mut words, true) {
            let text = &script[at..at + length];
            let parsed = end.and_then(|end| closed(end, words.len())).and_then(|()| match words.is_empty() {
                true => Ok(()),
                false => self.check_words(text, &words, depth, faults),
            });
            if let Err(refusal) = parsed {
                faults.push(refusal.in_file(name.clone(), line));
            }
            line += lines_in(text);
            at += length;
        }
        Ok(())
    }

    fn check_words(
        &self,
        text: &str,
        words: &[Word],
        depth: usize,
        faults: &mut Vec<Refusal>,
    ) -> Result<(), Refusal> {
        let mut slots = Vec::new();
        let form = self.matcher.parse(&(), text, words, &mut slots)? as usize;
        match self.registered(form).action {
            Action::Exec => {
                self.check_nested(Path::new(self.args(form, &slots).get::<&str>("file")?), depth + 1, faults)
            }
            _ => Ok(()),
        }
    }

    /// Begin one line, with the router's own rights.
    pub fn start(&self, state: &mut S, line: &str) -> Result<Started<S>, Refusal> {
        self.start_as(state, line, Trust::Full)
    }

    /// Begin one line of somebody's.
    pub fn start_as(&self, state: &mut S, line: &str, trust: Trust) -> Result<Started<S>, Refusal> {
        let started = self.start_line(state, line, trust);
        if let Err(refusal) = &started {
            self.journal.note(line, 0, Some(refusal));
        }
        started
    }

    fn start_line(&self, state: &mut S, line: &str, trust: Trust) -> Result<Started<S>, Refusal> {
        let mut words = Vec::new();
        closed(words::split(line, &mut words)?, words.len())?;
        self.start_words(state, line, &words, &mut Vec::new(), &self.context(trust))
    }

    /// Begin many lines, with the router's own rights; messages call their source `name`.
    pub fn start_script(&self, text: String, name: Option<String>, on_refusal: OnRefusal) -> Execution<S> {
        self.start_script_as(text, name, on_refusal, Trust::Full)
    }

    /// Begin many lines of somebody's.
    pub(crate) fn start_script_as(
        &self,
        text: String,
        name: Option<String>,
        on_refusal: OnRefusal,
        trust: Trust,
    ) -> Execution<S> {
        Execution(Kind::Script(Box::new(Script::new(text, name, on_refusal, self.context(trust)))))
    }

    fn context(&self, trust: Trust) -> Context {
        Context { access: Rc::new(Access { trust, places: self.places.clone() }), depth: 0 }
    }

    fn start_words<'a>(
        &self,
        state: &mut S,
        line: &'a str,
        words: &[Word],
        slots: &mut Vec<Slot<'a>>,
        context: &Context,
    ) -> Result<Started<S>, Refusal> {
        if let Some(pipe) = filters_of(line, words) {
            let mut filters = Filters::read(line, words, pipe)?;
            return Ok(match self.start_words(state, line, &words[..pipe], slots, context)? {
                Started::Done(output) => Started::Done(Output::text(filters.end(&output.as_told()))),
                Started::Running(inner) => {
                    Started::Running(Execution(Kind::Filtered { inner: Box::new(inner), filters }))
                }
            });
        }
        let Some(last) = words.last() else { return Ok(Started::Done(Output::none())) };
        if !last.quoted && last.text(line) == "?" {
            return Ok(Started::Done(self.help_at(&*state, line, &words[..words.len() - 1])));
        }
        slots.clear();
        let form = self.matcher.parse(&*state, line, words, slots)? as usize;
        let started = self.start_form(state, form, slots, context)?;
        if !self.only_looks(form) {
            self.journal.note(line, 0, None);
        }
        Ok(started)
    }

    fn start_form(
        &self,
        state: &mut S,
        form: usize,
        slots: &[Slot<'_>],
        context: &Context,
    ) -> Result<Started<S>, Refusal> {
        let args = Args { access: Some(&context.access), ..self.args(form, slots) };
        self.admit(state, form)?;
        let as_json = self.forms[form].words[0] == "show" && args.has("json");
        let begun = |job| Ok(Started::Running(Execution(Kind::Job { job, as_json })));
        let output = match &self.registered(form).action {
            Action::Run(run) => run(state, &args)?,
            Action::Begin(begin) => return begun(begin(state, &args)?),
            Action::RunOrBegin(run) => match run(state, &args)? {
                Work::Done(output) => output,
                Work::Begun(job) => return begun(job),
            },
            Action::Help => self.help(&*state, args.or("command", "")?)?,
            Action::RunningConfig => {
                let config = match args.has("secrets") {
                    true => self.running_config(state),
                    false => self.running_config_without_secrets(state),
                };
                let lines: Vec<&str> = config.lines().collect();
                Output::both(config.as_str(), json!({ "commands": lines }))
            }
            Action::Exec => {
                let reading = Reading::begin(Path::new(args.get::<&str>("file")?), context)?;
                return Ok(Started::Running(Execution(Kind::Reading(reading))));
            }
            Action::Quit => Output::none(),
        };
        Ok(Started::Done(if as_json { output.showing_json() } else { output }))
    }
}

/// The filters behind a command. A comment may say anything.
fn filters_of(line: &str, words: &[Word]) -> Option<usize> {
    let first = words.first()?;
    pipe_of(line, words).filter(|_| first.text(line) != "comment")
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

/// A file of commands that a thread of its own reads: a file system may take its time, or for ever.
struct Reading {
    path: PathBuf,
    text: Elsewhere<String>,
    context: Context,
}

impl Reading {
    fn begin(path: &Path, context: &Context) -> Result<Reading, Refusal> {
        let depth = context.depth + 1;
        if depth > EXEC_DEPTH_MAX {
            return Err(Refusal::new(format!("files execute each other deeper than {EXEC_DEPTH_MAX}")));
        }
        let (access, own_path) = (Access::clone(&context.access), path.to_owned());
        let text = Elsewhere::begin(move || read(&own_path, &access))?;
        Ok(Reading { path: path.to_owned(), text, context: Context { depth, ..context.clone() } })
    }

    /// The script, once the file is read.
    fn look<S: Names + 'static>(&mut self) -> Result<Option<Script<S>>, Refusal> {
        let Some(text) = self.text.look()? else { return Ok(None) };
        let name = Some(shown_path(&self.path));
        Ok(Some(Script::new(text, name, OnRefusal::Stop, self.context.clone())))
    }
}

/// Read a file of commands.
fn read(path: &Path, access: &Access) -> Result<String, Refusal> {
    let name = shown_path(path);
    let failed = |why: String| Refusal::new(format!("cannot read {why}"));
    let file = access.open_to_read(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(EXEC_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|e| failed(format!("{name}: {e}")))?;
    if bytes.len() as u64 > EXEC_BYTES_MAX {
        return Err(Refusal::new(format!("{name} is longer than 1 GiB")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..valid].iter().filter(|b| **b == b'\n').count();
        Refusal::new("not text in UTF-8").in_file(name, line as u32).after(0)
    })
}

/// Many commands under way.
struct Script<S> {
    text: String,
    name: Option<String>,
    on_refusal: OnRefusal,
    context: Context,
    /// A command said that nothing more is to be executed.
    has_quit: bool,
    /// Next byte to execute.
    at: usize,
    /// Its line, counted from 1.
    line: u32,
    /// First byte of the last command that was begun.
    begun: usize,
    applied: u64,
    /// Commands that are gathered at once: more while all of them are taken together, few where those
    /// who take them stop early, so that no line is gathered again and again.
    gather: usize,
    /// The command under way, and its line.
    child: Option<(Execution<S>, u32)>,
}

impl<S: Names + 'static> Script<S> {
    fn new(text: String, name: Option<String>, on_refusal: OnRefusal, context: Context) -> Script<S> {
        Script {
            text,
            name,
            on_refusal,
            context,
            has_quit: false,
            at: 0,
            line: 1,
            begun: 0,
            applied: 0,
            gather: BATCH_COMMANDS_MAX,
            child: None,
        }
    }

    fn step(&mut self, commands: &Commands<S>, state: &mut S, sink: &mut dyn Sink) -> Result<Step, Refusal> {
        let deadline = Instant::now() + SLICE;
        loop {
            if let Some(step) = self.step_child(commands, state, sink)? {
                return Ok(step);
            }
            if self.at == self.text.len() {
                let output = Output::none().json("commands", json!(self.applied));
                return Ok(Step::Done(if self.has_quit { output.json("quit", json!(true)) } else { output }));
            }
            if sink.must_pause() || Instant::now() >= deadline {
                self.report(sink);
                return Ok(Step::Again);
            }
            if let Err((refusal, line)) = self.next(commands, state, sink) {
                self.refused(commands, refusal, line, sink)?;
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
                if child.is_script() {
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
                self.refused(commands, refusal, line, sink)?;
                Ok(None)
            }
        }
    }

    /// Stop with the refusal, or report it and go on.
    fn refused(
        &mut self,
        commands: &Commands<S>,
        refusal: Refusal,
        line: u32,
        sink: &mut dyn Sink,
    ) -> Result<(), Refusal> {
        let refused = self.text[self.begun..].lines().next().unwrap_or_default();
        commands.journal.note(refused, 0, Some(&refusal));
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
        let (line, start) = (self.line, self.at);
        self.begun = start;
        self.at += length;
        self.line += lines_in(&text[..length]);
        end.and_then(|end| closed(end, words.len())).map_err(|refusal| (refusal, line))?;
        let is_empty = words.is_empty();
        sink.spend(1);
        let is_special = words.last().is_none_or(|last| last.text(text) == "?");
        let started = if is_special || filters_of(text, &words).is_some() {
            commands.start_words(state, text, &words, &mut slots, &self.context)
        } else {
            let form = commands.matcher.parse(&*state, text, &words, &mut slots);
            let form = form.map_err(|refusal| (refusal, line))? as usize;
            if matches!(commands.registered(form).action, Action::Quit) {
                (self.has_quit, self.at) = (true, self.text.len());
                return Ok(());
            }
            if let Some((varies, run_many)) = &commands.registered(form).many {
                commands.admit(state, form).map_err(|refusal| (refusal, line))?;
                let place = Place { end: length, line, next_line: self.line };
                let mut gathered = Gathered::new(commands, form, varies, slots, place);
                let most = self.gather.min(usize::try_from(sink.units_left()).unwrap_or(usize::MAX)).max(1);
                gathered.fill(most, &*state, text, &mut words);
                let (done, refusal) = match run_many(state, &gathered.batch) {
                    Ok(done) => (done.min(gathered.batch.len()), None),
                    Err(refused) => (refused.applied.min(gathered.batch.len() - 1), Some(refused.refusal)),
                };
                let all = done == gathered.batch.len();
                self.gather = if all { (self.gather * 4).min(BATCH_COMMANDS_MAX) } else { done.max(1) };
                let dealt_with = (done + usize::from(refusal.is_some())).max(1);
                sink.spend(dealt_with as u64 - 1);
                let last = gathered.places[dealt_with - 1];
                if refusal.is_some() && dealt_with > 1 {
                    self.begun = start + gathered.places[dealt_with - 2].end;
                }
                self.applied += done as u64;
                if done > 0 {
                    commands.journal.note(&text[..length], done - 1, None);
                }
                self.at += last.end - length;
                self.line = last.next_line;
                if refusal.is_some() || done > 0 {
                    return refusal.map_or(Ok(()), |refusal| Err((refusal, last.line)));
                }
                // The first of them is for itself.
                slots = gathered.batch.first().to_vec();
            }
            let started = commands.start_form(state, form, &slots, &self.context);
            if started.is_ok() && !commands.only_looks(form) {
                commands.journal.note(&text[..length], 0, None);
            }
            started
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
