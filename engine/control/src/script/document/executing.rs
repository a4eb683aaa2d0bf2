//! Commands that lead from one configuration to another, one after the other.

use std::collections::VecDeque;

use super::super::{Context, Execution, Started};
use crate::changes::Change;
use crate::error::Refusal;
use crate::grammar::{Commands, closed};
use crate::job::{Collected, Progress, Sink, Step};
use crate::names::Names;
use crate::words;

/// Commands under way.
pub(super) struct Executing<S> {
    left: VecDeque<Change>,
    done: u64,
    total: u64,
    child: Option<Execution<S>>,
    /// Go on after one is refused.
    goes_on: bool,
    /// The first that was refused and did not end it, and how many there were.
    refused: Option<(Refusal, u64)>,
}

/// How far they are.
pub(super) enum Executed {
    /// There is more to do, as the step says.
    Pauses(Step),
    /// All were executed; also the first that was refused, and how many there were.
    All(Option<(Refusal, u64)>),
}

impl<S: Names + 'static> Executing<S> {
    pub(super) fn new(commands: Vec<Change>, goes_on: bool) -> Executing<S> {
        let total = commands.len() as u64;
        Executing { left: commands.into(), done: 0, total, child: None, goes_on, refused: None }
    }

    /// How many were executed.
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// Execute some.
    ///
    /// # Errors
    /// One is refused, and those after it are not executed.
    pub(super) fn step(
        &mut self,
        commands: &Commands<S>,
        state: &mut S,
        sink: &mut dyn Sink,
        context: &Context,
    ) -> Result<Executed, Refusal> {
        loop {
            if let Some(child) = &mut self.child {
                match child.step(commands, state, &mut Collected::default()) {
                    Ok(Step::Done(_)) => (self.child, self.done) = (None, self.done + 1),
                    Ok(step) => return Ok(Executed::Pauses(step)),
                    Err(refusal) => {
                        self.child = None;
                        self.refused(refusal)?;
                    }
                }
                continue;
            }
            if sink.must_pause() && !self.left.is_empty() {
                let what = format!("{} of {} commands", self.done, self.total);
                sink.progress(Progress { what, done: self.done, total: self.total });
                return Ok(Executed::Pauses(Step::Again));
            }
            let Some(change) = self.left.pop_front() else {
                return Ok(Executed::All(self.refused.take()));
            };
            sink.spend(1);
            match start(commands, state, &change.command, context) {
                Ok(Started::Done(_)) => self.done += 1,
                Ok(Started::Running(child)) => self.child = Some(child),
                Err(refusal) => self.refused(refusal)?,
            }
        }
    }

    fn refused(&mut self, refusal: Refusal) -> Result<(), Refusal> {
        if !self.goes_on {
            return Err(refusal);
        }
        let (_, count) = self.refused.get_or_insert((refusal, 0));
        *count += 1;
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
