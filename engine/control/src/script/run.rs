//! Many commands under way.

use std::time::{Duration, Instant};

use serde_json::json;

use super::start::{Refused, filters_of};
use super::{Context, Execution, OnRefusal, Started};
use crate::batch::{BATCH_COMMANDS_MAX, Gathered, Place, lines_in};
use crate::error::Refusal;
use crate::grammar::{Action, Commands, closed};
use crate::job::{Progress, Sink, Step};
use crate::names::Names;
use crate::output::Output;
use crate::words;

/// How long a script works before it says how far it is, where nobody says that it must pause.
const SLICE: Duration = Duration::from_millis(20);

/// Many commands under way.
pub(super) struct Script<S> {
    text: String,
    name: Option<String>,
    on_refusal: OnRefusal,
    context: Context,
    /// A command said that nothing more is to be executed.
    has_quit: bool,
    /// Next byte to execute.
    at: usize,
    /// Its line, counted from 1.
    pub(super) line: u32,
    /// First byte of the last command that was begun.
    begun: usize,
    pub(super) applied: u64,
    /// Commands that are gathered at once: more while all of them are taken together, few where
    /// those who take them stop early, so that no line is gathered again and again.
    gather: usize,
    /// The command under way, and its line.
    pub(super) child: Option<(Execution<S>, u32)>,
}

impl<S: Names + 'static> Script<S> {
    pub(super) fn new(
        text: String,
        name: Option<String>,
        on_refusal: OnRefusal,
        context: Context,
    ) -> Script<S> {
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

    pub(super) fn step(
        &mut self,
        commands: &Commands<S>,
        state: &mut S,
        sink: &mut dyn Sink,
    ) -> Result<Step, Refusal> {
        let deadline = Instant::now() + SLICE;
        loop {
            if let Some(step) = self.step_child(commands, state, sink)? {
                return Ok(step);
            }
            if self.at == self.text.len() {
                let output = Output::none().json("commands", json!(self.applied));
                return Ok(Step::Done(if self.has_quit {
                    output.json("quit", json!(true))
                } else {
                    output
                }));
            }
            if sink.must_pause() || Instant::now() >= deadline {
                self.report(sink);
                return Ok(Step::Again);
            }
            if let Err((refused, line)) = self.next(commands, state, sink) {
                let refusal = self.keep_refusal(commands, &*state, refused, line);
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
                if !child.keeps_refusals() {
                    commands.note_refused(&*state, self.begun_line(), &refusal, true);
                }
                self.child = None;
                self.refused(refusal, line, sink)?;
                Ok(None)
            }
        }
    }

    /// The first line of the last command that was begun.
    fn begun_line(&self) -> &str {
        self.text[self.begun..].lines().next().unwrap_or_default()
    }

    /// Keep a refusal in the journal. Returns it as its client may see it: of a file that the
    /// router read, no line is repeated that is not a command.
    fn keep_refusal(
        &self,
        commands: &Commands<S>,
        state: &S,
        refused: Refused,
        line: u32,
    ) -> Refusal {
        let (refusal, is_command) = refused.parts();
        let file = self.name.as_deref().filter(|_| !is_command && !self.context.files.is_empty());
        match file {
            Some(file) => {
                commands.note_no_command(file, line, &refusal);
                refusal.unquoted()
            }
            None => {
                commands.note_refused(state, self.begun_line(), &refusal, is_command);
                refusal
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
    ) -> Result<(), (Refused, u32)> {
        let (mut words, mut slots) = (Vec::new(), Vec::new());
        let text = &self.text[self.at..];
        let Some((length, end)) = words::logical_line(text, &mut words, true) else {
            return Ok(());
        };
        let (line, start) = (self.line, self.at);
        self.begun = start;
        self.at += length;
        self.line += lines_in(&text[..length]);
        let no_command = |refusal| (Refused::NoCommand(refusal), line);
        end.and_then(|end| closed(end, words.len())).map_err(no_command)?;
        let is_empty = words.is_empty();
        sink.spend(1);
        let is_special = words.last().is_none_or(|last| last.text(text) == "?");
        let started = if is_special || filters_of(text, &words).is_some() {
            commands.start_words(state, &text[..length], &words, &mut slots, &self.context)
        } else {
            let form = commands.matcher.parse(&*state, text, &words, &mut slots);
            let form = form.map_err(no_command)? as usize;
            if matches!(commands.registered(form).action, Action::Quit) {
                (self.has_quit, self.at) = (true, self.text.len());
                return Ok(());
            }
            if let Some((varies, run_many)) = &commands.registered(form).many {
                let args = commands.args(form, &slots);
                commands
                    .admit(state, form, &args, self.context.role)
                    .map_err(|refusal| (Refused::Command(refusal), line))?;
                commands.note_change();
                let place = Place { end: length, line, next_line: self.line };
                let mut gathered = Gathered::new(commands, form, varies, slots, place);
                let most = self
                    .gather
                    .min(usize::try_from(sink.units_left()).unwrap_or(usize::MAX))
                    .max(1);
                gathered.fill(most, &*state, text, &mut words);
                let (done, refusal) = match run_many(state, &gathered.batch) {
                    Ok(done) => (done.min(gathered.batch.len()), None),
                    Err(refused) => {
                        (refused.applied.min(gathered.batch.len() - 1), Some(refused.refusal))
                    }
                };
                let all = done == gathered.batch.len();
                self.gather =
                    if all { (self.gather * 4).min(BATCH_COMMANDS_MAX) } else { done.max(1) };
                let dealt_with = (done + usize::from(refusal.is_some())).max(1);
                sink.spend(dealt_with as u64 - 1);
                let last = gathered.places[dealt_with - 1];
                if refusal.is_some() && dealt_with > 1 {
                    self.begun = start + gathered.places[dealt_with - 2].end;
                }
                self.applied += done as u64;
                if done > 0 {
                    commands.note_done(&*state, &text[..length], done - 1);
                }
                self.at += last.end - length;
                self.line = last.next_line;
                if refusal.is_some() || done > 0 {
                    return refusal
                        .map_or(Ok(()), |refusal| Err((Refused::Command(refusal), last.line)));
                }
                // The first of them is for itself.
                slots = gathered.batch.first().to_vec();
            }
            let started = commands.start_form(state, form, &slots, &self.context);
            if started.is_ok() && !commands.only_looks(form) {
                commands.note_done(&*state, &text[..length], 0);
            }
            started.map_err(Refused::Command)
        };
        match started.map_err(|refused| (refused, line))? {
            Started::Done(output) => {
                self.applied += u64::from(!is_empty);
                sink.output(output);
            }
            Started::Running(execution) => self.child = Some((execution, line)),
        }
        Ok(())
    }
}
