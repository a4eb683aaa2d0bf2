//! The control thread's side of the server: takes requests, executes them, and steps what takes
//! longer.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Answer, Ask, Bell, Request};
use crate::error::Refusal;
use crate::grammar::Commands;
use crate::job::{Progress, Sink, Step};
use crate::names::Names;
use crate::output::Output;
use crate::script::{Execution, OnRefusal, Started};

/// A client hears of progress at most this often.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Where requests arrive on the control thread. The loop waits for [`fd`](Self::fd) to be readable,
/// or for the time that [`turn`](Self::turn) returned, and calls `turn`.
pub struct Desk<S> {
    requests: Receiver<Request>,
    answers: Sender<(u64, Answer)>,
    bell: Bell,
    server_bell: Bell,
    running: Vec<Running<S>>,
}

/// A command under way.
struct Running<S> {
    client: u64,
    execution: Execution<S>,
    /// When to go on.
    due: Instant,
    told: Option<Instant>,
    /// Its client left: it goes on only until no command is half done.
    is_left: bool,
}

impl<S> AsFd for Desk<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl<S> Desk<S> {
    pub(super) fn new(
        requests: Receiver<Request>,
        answers: Sender<(u64, Answer)>,
        bell: Bell,
        server_bell: Bell,
    ) -> Desk<S> {
        Desk { requests, answers, bell, server_bell, running: Vec::new() }
    }

    /// Readable when there is a request.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl<S: Names + 'static> Desk<S> {
    /// Take what was asked for, and go on with what is under way. Returns when to come again even
    /// if nobody asks; a time that is past means at once.
    pub fn turn(&mut self, commands: &Commands<S>, state: &mut S) -> Option<Instant> {
        self.bell.silence();
        while let Ok(Request { client, ask }) = self.requests.try_recv() {
            if matches!(ask, Ask::Gone) {
                self.running.iter_mut().filter(|running| running.client == client).for_each(|running| {
                    running.is_left = true;
                });
                self.running.retain(|running| !running.is_left || running.execution.must_end());
                continue;
            }
            match begin(commands, state, ask) {
                Ok(Started::Done(output)) => self.answer(client, Answer::Done(Ok(output))),
                Ok(Started::Running(execution)) => {
                    self.running.push(Running {
                        client,
                        execution,
                        due: Instant::now(),
                        told: None,
                        is_left: false,
                    });
                    // At once, so that a client who says something and leaves is heard.
                    self.step(self.running.len() - 1, commands, state);
                }
                Err(refusal) => self.answer(client, Answer::Done(Err(refusal))),
            }
        }
        let mut index = 0;
        while index < self.running.len() {
            if self.step(index, commands, state) {
                index += 1;
            }
        }
        self.running.iter().map(|running| running.due).min()
    }

    /// Step one command that is due. Returns whether it is still under way.
    fn step(&mut self, index: usize, commands: &Commands<S>, state: &mut S) -> bool {
        let now = Instant::now();
        let running = &mut self.running[index];
        if running.due > now {
            return true;
        }
        let client = running.client;
        let mut sink = ToClient { client, answers: &self.answers, told: &mut running.told, now, sent: false };
        let step = running.execution.step(commands, state, &mut sink);
        if sink.sent {
            self.server_bell.ring();
        }
        if running.is_left && !running.execution.must_end() {
            self.running.remove(index);
            return false;
        }
        let end = match step {
            Ok(Step::Again) => {
                running.due = now;
                return true;
            }
            Ok(Step::Until(when)) => {
                running.due = when;
                return true;
            }
            Ok(Step::Done(output)) => Ok(output),
            Err(refusal) => Err(refusal),
        };
        self.running.remove(index);
        self.answer(client, Answer::Done(end));
        false
    }

    fn answer(&self, client: u64, answer: Answer) {
        // Without a server there is nobody to tell.
        let _ = self.answers.send((client, answer));
        self.server_bell.ring();
    }
}

fn begin<S: Names + 'static>(commands: &Commands<S>, state: &mut S, ask: Ask) -> Result<Started<S>, Refusal> {
    match ask {
        Ask::Lines(text) => Ok(Started::Running(commands.start_script(text, None, OnRefusal::Continue))),
        Ask::Line(line) => commands.start(state, &line),
        Ask::Script { text, from } => {
            let script = commands.start_script(text, Some(from.name), from.on_refusal);
            Ok(Started::Running(script.going_on(from.line, from.applied)))
        }
        Ask::Command(form) => commands.start(state, &commands.line_of_json(&form)?),
        Ask::Complete { line, cursor } => {
            let found = commands.complete(&*state, &line, cursor);
            Ok(Started::Done(Output::bare(json!(found))))
        }
        Ask::Help(command) => commands.help(&*state, &command).map(Started::Done),
        Ask::Schema => Ok(Started::Done(Output::bare(commands.schema()))),
        Ask::Gone => Ok(Started::Done(Output::none())),
    }
}

/// Sends what a command says to its client.
struct ToClient<'d> {
    client: u64,
    answers: &'d Sender<(u64, Answer)>,
    told: &'d mut Option<Instant>,
    now: Instant,
    sent: bool,
}

impl ToClient<'_> {
    fn send(&mut self, answer: Answer) {
        let _ = self.answers.send((self.client, answer));
        self.sent = true;
    }
}

impl Sink for ToClient<'_> {
    fn output(&mut self, output: Output) {
        if !output.is_empty() {
            self.send(Answer::Part(output));
        }
    }

    fn progress(&mut self, progress: Progress) {
        if self.told.is_none_or(|told| self.now >= told + PROGRESS_EVERY) {
            *self.told = Some(self.now);
            self.send(Answer::Progress(progress));
        }
    }

    fn refused(&mut self, refusal: Refusal) {
        self.send(Answer::Refused(refusal));
    }
}
