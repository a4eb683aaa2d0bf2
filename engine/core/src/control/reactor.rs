//! What the control thread waits for: descriptors and times, each with what to do then.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::os::fd::RawFd;

use crate::control::engine::Engine;

/// What a watched descriptor waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// Something to read, or the other side is gone.
    pub read: bool,
    /// Room to write.
    pub write: bool,
}

impl Interest {
    /// Only reading.
    pub const READ: Interest = Interest { read: true, write: false };
}

/// Names a watch or a timer, to end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(u64);

/// A timer that follows the next thing that is due: set it after each change of what is.
#[derive(Debug, Default)]
pub struct Alarm(Option<(u64, Token)>);

impl Alarm {
    /// Call `fire` once at `due_ns`, or not at all. What was set before is forgotten.
    pub fn set(&mut self, engine: &mut Engine, due_ns: Option<u64>, fire: fn(&mut Engine)) {
        if self.0.map(|(at, _)| at) == due_ns {
            return;
        }
        if let Some((_, old)) = self.0.take() {
            engine.unwatch(old);
        }
        self.0 = due_ns.map(|at| (at, engine.after(at.saturating_sub(engine.now_ns()), fire)));
    }

    /// It fires just now: to be said first of all.
    pub fn fired(&mut self) {
        self.0 = None;
    }
}

type Callback = Box<dyn FnMut(&mut Engine)>;

struct Watch {
    fd: RawFd,
    interest: Interest,
    /// Away while it runs.
    callback: Option<Callback>,
}

struct Timer {
    token: Token,
    period_ns: Option<u64>,
    callback: Callback,
}

/// The watches and timers of one engine.
#[derive(Default)]
pub(crate) struct Reactor {
    watches: BTreeMap<Token, Watch>,
    timers: BTreeMap<(u64, u64), Timer>,
    last: u64,
    /// The timer whose callback runs, until somebody ends it.
    running: Option<Token>,
    /// Run on every turn.
    every_turn: Vec<Callback>,
}

impl Reactor {
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn arm(&mut self, at_ns: u64, timer: Timer) {
        let number = self.number();
        self.timers.insert((at_ns, number), timer);
    }
}

impl Engine {
    /// Call `callback` whenever `fd` is ready, until [`unwatch`](Self::unwatch).
    pub fn watch(
        &mut self,
        fd: RawFd,
        interest: Interest,
        callback: impl FnMut(&mut Engine) + 'static,
    ) -> Token {
        let token = Token(self.reactor.number());
        self.reactor
            .watches
            .insert(token, Watch { fd, interest, callback: Some(Box::new(callback)) });
        token
    }

    /// Watch for something else.
    pub fn set_interest(&mut self, token: Token, interest: Interest) {
        if let Some(watch) = self.reactor.watches.get_mut(&token) {
            watch.interest = interest;
        }
    }

    /// End a watch or a timer; may be called from inside its own callback.
    pub fn unwatch(&mut self, token: Token) {
        self.reactor.watches.remove(&token);
        self.reactor.timers.retain(|_, timer| timer.token != token);
        if self.reactor.running == Some(token) {
            self.reactor.running = None;
        }
    }

    /// Call `callback` once, `delay_ns` from now.
    pub fn after(&mut self, delay_ns: u64, callback: impl FnMut(&mut Engine) + 'static) -> Token {
        self.timer(delay_ns, None, Box::new(callback))
    }

    /// Call `callback` every `period_ns`, first one period from now.
    pub fn every(&mut self, period_ns: u64, callback: impl FnMut(&mut Engine) + 'static) -> Token {
        self.timer(period_ns, Some(period_ns), Box::new(callback))
    }

    fn timer(&mut self, delay_ns: u64, period_ns: Option<u64>, callback: Callback) -> Token {
        let token = Token(self.reactor.number());
        let at_ns = self.now_ns() + delay_ns;
        self.reactor.arm(at_ns, Timer { token, period_ns, callback });
        token
    }

    /// Run what is due: timers, workers' events, memory that nobody sees any more.
    pub fn tick(&mut self) {
        let now = self.now_ns();
        while let Some(entry) = self.reactor.timers.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let mut timer = entry.remove();
            self.reactor.running = Some(timer.token);
            (timer.callback)(self);
            if let (Some(period), Some(_)) = (timer.period_ns, self.reactor.running.take()) {
                self.reactor.arm(now + period, timer);
            }
        }
        let mut hooks = std::mem::take(&mut self.reactor.every_turn);
        hooks.iter_mut().for_each(|hook| hook(self));
        hooks.append(&mut self.reactor.every_turn);
        self.reactor.every_turn = hooks;
        self.collect();
    }

    /// Call `hook` on every turn of the control loop: to fetch what workers have put into rings of
    /// a feature's own. Who finds that more waits than it wants to take at once asks for the next
    /// turn by [`after`](Self::after) 0.
    pub fn on_turn(&mut self, hook: impl FnMut(&mut Engine) + 'static) {
        self.reactor.every_turn.push(Box::new(hook));
    }

    /// Wait for descriptors, timers and workers for at most `timeout_ms`, and run what is due.
    pub fn turn(&mut self, timeout_ms: u64) {
        let now = self.now_ns();
        let due =
            self.reactor.timers.keys().next().map_or(u64::MAX, |(at, _)| at.saturating_sub(now));
        let wait_ms = timeout_ms.min(due.div_ceil(1_000_000)).min(i32::MAX as u64) as i32;
        let tokens: Vec<Token> = self.reactor.watches.keys().copied().collect();
        let mut fds: Vec<libc::pollfd> = self.reactor.watches.values().map(poll_entry).collect();
        // SAFETY: an array of initialised entries and its length.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, wait_ms) };
        if ready > 0 {
            for (token, entry) in tokens.into_iter().zip(&fds) {
                if entry.revents != 0 {
                    self.run_watch(token);
                }
            }
        }
        self.tick();
    }

    fn run_watch(&mut self, token: Token) {
        let Some(mut callback) =
            self.reactor.watches.get_mut(&token).and_then(|w| w.callback.take())
        else {
            return;
        };
        callback(self);
        if let Some(watch) = self.reactor.watches.get_mut(&token) {
            watch.callback = Some(callback);
        }
    }
}

fn poll_entry(watch: &Watch) -> libc::pollfd {
    let mut events = 0;
    if watch.interest.read {
        events |= libc::POLLIN;
    }
    if watch.interest.write {
        events |= libc::POLLOUT;
    }
    libc::pollfd { fd: watch.fd, events, revents: 0 }
}
