//! What takes longer than one turn of the control loop: a ping, the load of a big file.

use std::time::Instant;

use crate::error::Refusal;
use crate::output::Output;

/// A command under way. The control loop calls `step` again and again until it is done; dropping
/// the job cancels it, which happens when its client leaves.
pub trait Job<S> {
    /// Do a little and say when to go on. What comes in many units counts them by
    /// [`Sink::spend`], and ends the step when [`Sink::must_pause`] says so.
    ///
    /// # Errors
    /// The command is refused; what was done before stays.
    fn step(&mut self, state: &mut S, sink: &mut dyn Sink) -> Result<Step, Refusal>;

    /// Has it begun something that must not stay half done? Then it goes on when its client leaves.
    fn must_end(&self) -> bool {
        false
    }
}

/// How far a job is.
#[derive(Debug)]
pub enum Step {
    /// There is more to do now.
    Again,
    /// There is nothing to do before then.
    Until(Instant),
    /// It is finished, and this is the rest of its answer.
    Done(Output),
}

/// Where a job's answers go while it runs.
pub trait Sink {
    /// An answer, or a part of one.
    fn output(&mut self, output: Output);

    /// A line of text.
    fn line(&mut self, text: &str) {
        self.output(Output::text(text));
    }

    /// How far it is. May be dropped when the client is slow.
    fn progress(&mut self, progress: Progress) {
        let _ = progress;
    }

    /// A command of many was refused, and the others go on.
    fn refused(&mut self, refusal: Refusal);

    /// Count work that was done: a unit is a command, a row, or an entry that was changed.
    fn spend(&mut self, units: u64) {
        let _ = units;
    }

    /// Should the step end now? Its client has not read what it was sent, or others wait.
    fn must_pause(&self) -> bool {
        false
    }

    /// Units of work that this step may still do.
    fn units_left(&self) -> u64 {
        u64::MAX
    }
}

/// How far a long command is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// What is being done, with its object: `412000 commands of routes.cli`.
    pub what: String,
    /// How much is done, in the unit of `total`.
    pub done: u64,
    /// How much there is; 0 when unknown.
    pub total: u64,
}

/// Keeps everything; what executes at start-up and in tests uses it.
#[derive(Debug, Default)]
pub struct Collected {
    /// The answers.
    pub outputs: Vec<Output>,
    /// The refusals of a script that goes on after them.
    pub refusals: Vec<Refusal>,
}

impl Sink for Collected {
    /// Pages of a long answer become one.
    fn output(&mut self, output: Output) {
        let left = match self.outputs.last_mut() {
            Some(last) => last.join(output).err(),
            None => Some(output),
        };
        self.outputs.extend(left);
    }

    fn refused(&mut self, refusal: Refusal) {
        self.refusals.push(refusal);
    }
}
