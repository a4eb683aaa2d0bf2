//! The control thread's side of the server: takes requests, executes them, and steps what takes
//! longer.
//!
//! A turn is short, whatever clients ask for: it ends when its time or its units of work are used
//! up, and the next one begins where it ended. A command whose client has not read what it was
//! sent rests.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use serde_json::json;

use super::flow::Flow;
use super::{Answer, Answered, Ask, Bell, Request};
use crate::error::{Kind, Refusal, printable};
use crate::grammar::Commands;
use crate::job::{Progress, Sink, Step};
use crate::names::Names;
use crate::output::Output;
use crate::rights::Rights;
use crate::script::document::ROUTER;
use crate::script::{Execution, OnRefusal, Started};

/// A client hears of progress at most this often.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// How long clients' commands may keep the control loop from its timers. The command that is
/// executed when the time is over ends first.
const TURN: Duration = Duration::from_millis(4);

/// Units of work of a turn: see [`Sink::spend`].
pub const UNITS_PER_TURN_MAX: u64 = 4096;

/// So many commands that wait to be begun make the share of each smaller.
const WAITING_COUNTED_MAX: usize = 15;

/// Whose commands are the router's own; no client has this number.
const NOBODY: u64 = u64::MAX;

/// Longest text of a command that is remembered.
const COMMAND_CHARS_MAX: usize = 80;

/// What clients' commands did to the control loop.
#[derive(Clone, Debug, Default)]
pub struct ControlLoad {
    /// Turns in which something was done.
    pub turns: u64,
    /// Steps of commands.
    pub steps: u64,
    /// Turns that ended before everything was done that could be.
    pub cut_short: u64,
    /// How often a command rested because its client did not read.
    pub rests: u64,
    /// The most units of work of a turn.
    pub units_most: u64,
    /// The longest turn.
    pub longest_turn: Duration,
    /// The longest step, and the command whose step it was.
    pub longest_step: Duration,
    /// That command.
    pub longest_command: String,
    /// Commands under way.
    pub running: usize,
}

/// Where requests arrive on the control thread. The loop waits for [`fd`](Self::fd) to be readable,
/// or for the time that [`turn`](Self::turn) returned, and calls `turn`.
pub struct Dispatcher<S> {
    requests: Receiver<Request>,
    answers: Sender<Answered>,
    bell: Bell,
    server_bell: Bell,
    /// Asked for and not begun. Their turn comes before that of commands under way, of which one
    /// goes on in each turn: a short command waits for none that takes longer.
    asked: VecDeque<Running<S>>,
    /// Begun. The first is the next to have its turn.
    running: VecDeque<Running<S>>,
    load: Rc<RefCell<ControlLoad>>,
}

/// A command under way.
struct Running<S> {
    client: u64,
    rights: Rights,
    /// The same client, for the journal.
    who: Arc<str>,
    flow: Arc<Flow>,
    work: Work<S>,
    /// What it is called in `show control`.
    name: String,
    /// When to go on.
    due: Instant,
    told: Option<Instant>,
    /// Its client left: it goes on only until no command is half done.
    is_left: bool,
    /// It rests until its client has read.
    rests: bool,
}

enum Work<S> {
    /// Not begun.
    Ask(Ask),
    Execution(Execution<S>),
}

impl<S> Running<S> {
    fn must_end(&self) -> bool
    where
        S: Names + 'static,
    {
        match &self.work {
            // A request of a client that has left is carried out.
            Work::Ask(_) => true,
            Work::Execution(execution) => execution.must_end(),
        }
    }
}

impl<S> AsFd for Dispatcher<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl<S> Dispatcher<S> {
    pub(super) fn new(
        requests: Receiver<Request>,
        answers: Sender<Answered>,
        bell: Bell,
        server_bell: Bell,
    ) -> Dispatcher<S> {
        let load = Rc::default();
        let (asked, running) = (VecDeque::new(), VecDeque::new());
        Dispatcher { requests, answers, bell, server_bell, asked, running, load }
    }

    /// Readable when there is a request.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// What was done so far, kept up to date.
    pub fn load(&self) -> Rc<RefCell<ControlLoad>> {
        self.load.clone()
    }
}

impl<S: Names + 'static> Dispatcher<S> {
    /// Take what was asked for, and go on with what is under way. Returns when to come again even
    /// if nobody asks; a time that is past means at once.
    pub fn turn(&mut self, commands: &Commands<S>, state: &mut S) -> Option<Instant> {
        self.bell.silence();
        self.take_requests(commands, state);
        self.take_back_unconfirmed(commands);
        let began = Instant::now();
        let share = if self.asked.is_empty() || self.running.is_empty() { 1 } else { 2 };
        let begun = self.running.len();
        let mut turn = Turn::of(share);
        while !turn.is_over()
            && let Some(asked) = self.asked.pop_front()
        {
            // The more wait, the less each does at once: what takes longer goes on behind them.
            let waiting = self.asked.len().min(WAITING_COUNTED_MAX) as u32;
            let mut first = Turn::of(share * (1 + waiting)).at_most(turn.units_left());
            self.go_on(asked, &mut first, commands, state);
            turn.units += first.units;
        }
        let (mut units, mut is_cut) = (turn.units, !self.asked.is_empty());
        turn = Turn::of(share).at_most(UNITS_PER_TURN_MAX.saturating_sub(units));
        for _ in 0..begun {
            if turn.is_over() {
                is_cut = true;
                break;
            }
            if let Some(running) = self.running.pop_front() {
                self.go_on(running, &mut turn, commands, state);
            }
        }
        units += turn.units;
        let mut load = self.load.borrow_mut();
        load.running = self.asked.len() + self.running.len();
        load.cut_short += u64::from(is_cut);
        if units > 0 {
            load.turns += 1;
            load.units_most = load.units_most.max(units);
            load.longest_turn = load.longest_turn.max(began.elapsed());
        }
        if !self.asked.is_empty() {
            return Some(began);
        }
        let due = self.running.iter().filter(|running| !running.rests).map(|running| running.due);
        due.chain(commands.versions.deadline()).min()
    }

    /// Begin to take a version back that was not confirmed in its time.
    fn take_back_unconfirmed(&mut self, commands: &Commands<S>) {
        let Some(execution) = commands.begin_return() else { return };
        self.running.push_back(Running {
            client: NOBODY,
            rights: Rights::default(),
            who: ROUTER.into(),
            flow: Arc::new(Flow::new(usize::MAX)),
            work: Work::Execution(execution),
            name: "configuration rollback".to_owned(),
            due: Instant::now(),
            told: None,
            is_left: false,
            rests: false,
        });
    }

    fn take_requests(&mut self, commands: &Commands<S>, state: &S) {
        while let Ok(Request { client, rights, who, flow, ask }) = self.requests.try_recv() {
            if matches!(ask, Ask::Gone) {
                let all = self.asked.iter_mut().chain(&mut self.running);
                all.filter(|running| running.client == client).for_each(|running| {
                    (running.is_left, running.rests) = (true, false);
                });
                self.running.retain(|running| !running.is_left || running.must_end());
                continue;
            }
            let (name, due) = (name_of(&ask, commands, state), Instant::now());
            let work = Work::Ask(ask);
            let (told, is_left, rests) = (None, false, false);
            self.asked.push_back(Running {
                client,
                rights,
                who,
                flow,
                work,
                name,
                due,
                told,
                is_left,
                rests,
            });
        }
    }

    /// Step one command if it is due and its client reads. If it is still under way then, it comes
    /// behind the others.
    fn go_on(
        &mut self,
        mut running: Running<S>,
        turn: &mut Turn,
        commands: &Commands<S>,
        state: &mut S,
    ) {
        if self.goes_on(&mut running, turn, commands, state) {
            self.running.push_back(running);
        }
    }

    /// The same; whether it is still under way.
    fn goes_on(
        &mut self,
        running: &mut Running<S>,
        turn: &mut Turn,
        commands: &Commands<S>,
        state: &mut S,
    ) -> bool {
        let now = Instant::now();
        if running.due > now {
            return true;
        }
        if running.flow.is_full() && !running.must_end() {
            self.load.borrow_mut().rests += u64::from(!running.rests);
            running.rests = true;
            return true;
        }
        running.rests = false;
        turn.units += 1;
        commands.on_behalf_of(Some(&running.who));
        let end = self.step(running, turn, commands, state);
        commands.on_behalf_of(None);
        self.measure(running, now.elapsed());
        let end = match end {
            Ok(Step::Done(output)) => Ok(output),
            Err(refusal) => {
                if let Work::Execution(execution) = &running.work
                    && !execution.keeps_refusals()
                {
                    commands.on_behalf_of(Some(&running.who));
                    commands.note_refused(state, &running.name, &refusal, true);
                    commands.on_behalf_of(None);
                }
                Err(refusal)
            }
            Ok(Step::Again) if running.is_left && !running.must_end() => return false,
            Ok(Step::Until(_)) if running.is_left && !running.must_end() => return false,
            Ok(Step::Again) => {
                running.due = now;
                return true;
            }
            Ok(Step::Until(when)) => {
                running.due = when;
                return true;
            }
        };
        ToClient::of(running, &self.answers, turn).send(Answer::Done(end));
        self.server_bell.ring();
        false
    }

    fn step(
        &self,
        running: &mut Running<S>,
        turn: &mut Turn,
        commands: &Commands<S>,
        state: &mut S,
    ) -> Result<Step, Refusal> {
        if let Work::Ask(ask) = &mut running.work {
            let ask = std::mem::replace(ask, Ask::Gone);
            match begin(commands, state, ask, running.rights)? {
                Started::Done(output) => return Ok(Step::Done(output)),
                Started::Running(execution) => running.work = Work::Execution(execution),
            }
        }
        let (client, flow, told) = (running.client, &*running.flow, &mut running.told);
        let Work::Execution(execution) = &mut running.work else { return Ok(Step::Again) };
        let is_direct = !execution.is_script();
        let answers = &self.answers;
        let now = Instant::now();
        let mut sink =
            ToClient { client, flow, answers, told, now, turn, is_direct, has_sent: false };
        let step = execution.step(commands, state, &mut sink);
        if sink.has_sent {
            self.server_bell.ring();
        }
        step
    }

    fn measure(&self, running: &Running<S>, took: Duration) {
        let mut load = self.load.borrow_mut();
        load.steps += 1;
        if took > load.longest_step {
            load.longest_step = took;
            load.longest_command.clone_from(&running.name);
        }
    }
}

/// What may be done before the control loop has other things to do, or a share of it.
struct Turn {
    began: Instant,
    time: Duration,
    units: u64,
    units_max: u64,
}

impl Turn {
    /// One of so many shares of a turn.
    fn of(shares: u32) -> Turn {
        let units_max = UNITS_PER_TURN_MAX / u64::from(shares);
        Turn { began: Instant::now(), time: TURN / shares, units: 0, units_max }
    }

    /// The same, but no more than `units`.
    fn at_most(self, units: u64) -> Turn {
        Turn { units_max: self.units_max.min(units), ..self }
    }

    fn units_left(&self) -> u64 {
        self.units_max.saturating_sub(self.units)
    }

    /// Time ends no turn in which nothing was done: however little of a core this thread gets, each
    /// turn begins a command that was asked for, and one that takes long goes on.
    fn is_over(&self) -> bool {
        self.units >= self.units_max || self.units > 0 && self.began.elapsed() >= self.time
    }
}

/// The first line of what a client asks for, without secrets.
fn name_of<S: Names + 'static>(ask: &Ask, commands: &Commands<S>, state: &S) -> String {
    let masked;
    let text = match ask {
        Ask::Lines(text) | Ask::Line(text) | Ask::Document { line: text, .. } => {
            let line = text.trim_start().lines().next().unwrap_or_default();
            masked = commands.masked(state, line);
            &masked
        }
        Ask::History(_) => "history",
        Ask::Script { from, .. } => &from.name,
        Ask::Command(form) => form["command"].as_str().unwrap_or_default(),
        Ask::Complete { .. } => "(completion)",
        Ask::Help(_) => "help",
        Ask::Method { method, .. } => method,
        Ask::IfGeneration(_, ask) => return name_of(ask, commands, state),
        Ask::Generation => "(generation)",
        Ask::Discover => "(discover)",
        Ask::Schema => "(commands)",
        Ask::Authenticate(_) | Ask::Gone => "",
    };
    text.chars().take(COMMAND_CHARS_MAX).collect()
}

fn begin<S: Names + 'static>(
    commands: &Commands<S>,
    state: &mut S,
    ask: Ask,
    rights: Rights,
) -> Result<Started<S>, Refusal> {
    match ask {
        Ask::Lines(text) => {
            Ok(Started::Running(commands.start_script_as(text, None, OnRefusal::Continue, rights)))
        }
        Ask::Line(line) => commands.start_as(state, &line, rights),
        Ask::Document { line, text } => commands.start_with_text(state, &line, &text, rights),
        Ask::Script { text, from } => {
            let script = commands.start_script_as(text, Some(from.name), from.on_refusal, rights);
            Ok(Started::Running(script.going_on(from.line, from.applied)))
        }
        Ask::Command(form) => commands.start_as(state, &commands.line_of_json(&form)?, rights),
        Ask::Complete { line, cursor } => {
            let found = commands.complete(&*state, &line, cursor);
            Ok(Started::Done(Output::bare(Arc::new(json!(found)))))
        }
        Ask::Help(command) => commands.help(&*state, &command).map(Started::Done),
        Ask::Schema => Ok(Started::Done(Output::bare(commands.schema()))),
        Ask::IfGeneration(generation, ask) => {
            commands.check_generation(&generation)?;
            begin(commands, state, *ask, rights)
        }
        Ask::Method { method, args } => {
            let command = commands.command_of_method(&method).ok_or_else(|| no_method(&method))?;
            let form = json!({ "command": command, "args": args });
            commands.start_as(state, &commands.line_of_json(&form)?, rights)
        }
        Ask::Generation => {
            let generation = json!({ "generation": commands.generation() });
            Ok(Started::Done(Output::bare(Arc::new(generation))))
        }
        Ask::Discover => Ok(Started::Done(Output::bare(commands.openrpc()))),
        Ask::History(lines) => Ok(Started::Done(listed(commands, state, &lines))),
        Ask::Authenticate(_) | Ask::Gone => Ok(Started::Done(Output::none())),
    }
}

fn no_method(method: &str) -> Refusal {
    Refusal::new(format!("there is no method '{}'", printable(method)))
        .remedy("rpc.discover lists them")
        .of_kind(Kind::NoMethod)
}

/// What a session said, each command behind its number; in JSON the commands alone.
fn listed<S: Names + 'static>(commands: &Commands<S>, state: &S, lines: &[String]) -> Output {
    let masked: Vec<String> = lines.iter().map(|line| commands.masked(state, line)).collect();
    let numbered =
        masked.iter().enumerate().map(|(index, line)| format!("{:5}  {line}\n", index + 1));
    Output::both(numbered.collect::<String>(), json!(masked))
}

/// Sends what a command says to its client.
struct ToClient<'d> {
    client: u64,
    flow: &'d Flow,
    answers: &'d Sender<Answered>,
    told: &'d mut Option<Instant>,
    now: Instant,
    turn: &'d mut Turn,
    is_direct: bool,
    has_sent: bool,
}

impl<'d> ToClient<'d> {
    fn of<S>(
        running: &'d mut Running<S>,
        answers: &'d Sender<Answered>,
        turn: &'d mut Turn,
    ) -> Self {
        let (client, flow, told, now) =
            (running.client, &*running.flow, &mut running.told, turn.began);
        ToClient { client, flow, answers, told, now, turn, is_direct: false, has_sent: false }
    }

    fn send(&mut self, answer: Answer) {
        let weight = match &answer {
            Answer::Part { output, .. } | Answer::Done(Ok(output)) => output.weight(),
            Answer::Progress(_) | Answer::Refused(_) | Answer::Done(Err(_)) => SMALL_BYTES,
        };
        self.flow.sent(weight);
        // Without a server there is nobody to tell.
        let _ = self.answers.send(Answered { client: self.client, answer, weight });
        self.has_sent = true;
    }
}

/// What an answer without an output counts as.
const SMALL_BYTES: usize = 256;

impl Sink for ToClient<'_> {
    fn output(&mut self, output: Output) {
        if !output.is_empty() {
            let is_direct = self.is_direct;
            self.send(Answer::Part { output, is_direct });
        }
    }

    fn progress(&mut self, progress: Progress) {
        let is_due = self.told.is_none_or(|told| self.now >= told + PROGRESS_EVERY);
        if is_due && !self.flow.is_full() {
            *self.told = Some(self.now);
            self.send(Answer::Progress(progress));
        }
    }

    fn refused(&mut self, refusal: Refusal) {
        self.send(Answer::Refused(refusal));
    }

    fn spend(&mut self, units: u64) {
        self.turn.units += units;
    }

    fn must_pause(&self) -> bool {
        self.turn.is_over() || self.flow.is_full()
    }

    fn units_left(&self) -> u64 {
        self.turn.units_max.saturating_sub(self.turn.units)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::{Command, Work};
    use crate::job::Job;
    use std::sync::mpsc::channel;

    /// Has all units of each turn, and never ends.
    struct Endless;

    impl Job<()> for Endless {
        fn step(&mut self, _: &mut (), sink: &mut dyn Sink) -> Result<Step, Refusal> {
            sink.spend(sink.units_left());
            Ok(Step::Again)
        }
    }

    fn commands() -> Commands<()> {
        let mut commands = Commands::new();
        commands.add(
            Command::new("count")
                .help("Count for ever")
                .run_or_begin(|(), _| Ok(Work::Begun(Box::new(Endless)))),
        );
        commands
            .add(Command::new("hello").help("Say hello").run(|(), _| Ok(Output::text("hello"))));
        commands
    }

    #[test]
    fn a_short_command_waits_for_none_that_takes_long_and_those_go_on_beside_many_short_ones() {
        let (commands, (asking, requests), (answers, answered)) =
            (commands(), channel(), channel());
        let bell = || Bell::new().expect("an eventfd");
        let mut dispatcher = Dispatcher::new(requests, answers, bell(), bell());
        let ask = |client, line: &str| {
            let (rights, flow) = (Rights::default(), Arc::new(Flow::new(1 << 20)));
            let request =
                Request { client, rights, flow, who: "test".into(), ask: Ask::Line(line.into()) };
            asking.send(request).expect("a dispatcher");
        };
        (0..40).for_each(|client| ask(client, "count"));
        for _ in 0..100 {
            dispatcher.turn(&commands, &mut ());
        }
        let mut steps = dispatcher.load.borrow().steps;
        for client in 40..1040 {
            ask(client, "hello");
            dispatcher.turn(&commands, &mut ());
            let Ok(Answered { client: who, answer: Answer::Done(Ok(_)), .. }) = answered.try_recv()
            else {
                panic!("{client} is not answered in the turn in which it asks");
            };
            assert_eq!(who, client);
            assert_eq!(
                dispatcher.load.borrow().steps,
                steps + 2,
                "one of those that take long goes on"
            );
            steps += 2;
        }
    }
}
