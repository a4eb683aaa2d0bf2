//! What takes longer than one turn of the control loop: a ping, the load of a big file.

use std::time::Instant;

use crate::error::Refusal;
use crate::output::Output;

/// A command under way. The control loop calls `step` again and again until it is done; dropping
/// the job cancels it, which happens when its client leaves.
pub trait Job<S> {
    /// Do a little (some milliseconds at most) and say when to go on.
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
    fn output(&mut self, output: Output) {
        self.outputs.push(output);
    }

    fn refused(&mut self, refusal: Refusal) {
        self.refusals.push(refusal);
    }
}
