//! The watchdog: which worker has not finished a pass for too long, and where it is; and the bound
//! on what may wait for it.

use std::fmt;
use std::time::{Duration, Instant};

use crate::control::engine::Engine;
use crate::graph::counters::WorkerCounters;
use crate::ids::{NodeId, WorkerId};

/// A worker that finishes no pass for so long stalls, unless something else is set.
pub const STALL_NS_DEFAULT: u64 = 1_000_000_000;
/// Worker calls that wait in the control thread for one worker at most; changes that need more are
/// refused.
pub const WORKER_CALLS_WAITING_MAX: usize = 1024;
/// Replaced values ([`Published`](crate::memory::epoch::Published), interface rows) that wait until
/// no worker sees them, at most. Some are as long as there are interfaces: 64 KiB each.
pub const RETIRED_MAX: usize = 1024;
/// Stretches of tables that wait until no worker sees them, at most; all tables together.
pub const STRETCHES_MAX: usize = 1 << 20;
/// How long the control thread waits for a worker before it refuses what needs that worker.
const PATIENCE: Duration = Duration::from_millis(2000);
/// How long it waits when the worker has begun: what has begun cannot be taken back, and a worker
/// whose core others want comes to its end late.
const PATIENCE_BEGUN: Duration = Duration::from_secs(10);
/// Of the time between two looks at the clock so much counts as waiting at most: while the whole
/// process stood still (SIGSTOP, a machine that was suspended) no worker could have answered.
const LOOK_MAX: Duration = Duration::from_millis(50);

/// What a worker is at, as it notes it down before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It sleeps until a device or the control thread wakes it.
    Asleep,
    /// It has not made a pass yet.
    Starting,
    /// It carries out a worker call of the control thread.
    WorkerCall,
    /// It runs this node, or ran it last.
    Node(NodeId),
}

/// How [`Activity`] stands in a counter: 0 before the first pass, a node's number and 1, or this.
const WORKER_CALL: u64 = u64::MAX;

impl WorkerCounters {
    /// The worker is about to run a node.
    #[inline(always)]
    pub(crate) fn enters(&self, node: NodeId) {
        self.running.set(u64::from(node.0) + 1);
    }

    /// The worker is about to carry out a worker call.
    #[inline]
    pub(crate) fn enters_worker_call(&self) {
        self.running.set(WORKER_CALL);
    }

    /// What the worker has noted down last.
    pub fn activity(&self) -> Activity {
        match self.running.get() {
            0 => Activity::Starting,
            WORKER_CALL => Activity::WorkerCall,
            node => Activity::Node(NodeId((node - 1) as u16)),
        }
    }
}

/// A worker that a change must wait for. The change was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "worker {} has not {} for {} ({place}); changes wait for it, traffic of other workers goes on: \
     `show workers` says more",
    worker.0, if *.passes { "answered" } else { "finished a pass" }, Seconds(*.lasted_ns)
)]
pub struct Stalled {
    /// Which.
    pub worker: WorkerId,
    /// It does finish passes, or sleeps, but has not come to the change.
    pub passes: bool,
    /// For how long it has finished no pass, or has been waited for, nanoseconds.
    pub lasted_ns: u64,
    /// Where it is, in words.
    pub place: String,
}

/// Nanoseconds, written as seconds.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} s", self.0 as f64 / 1e9)
    }
}

/// How long the control thread has waited for a worker.
pub(crate) struct Wait {
    since: Instant,
    looked: Instant,
    counted: Duration,
    patience: Duration,
}

impl Wait {
    pub(crate) fn begin() -> Wait {
        let now = Instant::now();
        Wait { since: now, looked: now, counted: Duration::ZERO, patience: PATIENCE }
    }

    /// The worker is carrying out just now what is waited for.
    pub(crate) fn has_begun(&mut self) {
        self.patience = PATIENCE_BEGUN;
    }

    /// Has it waited long enough?
    pub(crate) fn is_over(&mut self) -> bool {
        let now = Instant::now();
        self.counted += (now - self.looked).min(LOOK_MAX);
        self.looked = now;
        self.counted >= self.patience
    }

    fn lasted_ns(&self) -> u64 {
        self.since.elapsed().as_nanos() as u64
    }
}

/// What the watchdog knows of a worker.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Its passes when they last went on.
    passes: u64,
    /// When that was seen.
    at_ns: u64,
    /// The stall under way was told.
    stalls_now: bool,
    stalls: u64,
    longest_ns: u64,
}

/// The control thread's eye on its workers.
pub(crate) struct Watchdog {
    timeout_ns: u64,
    seen: Vec<Seen>,
    hooks: Vec<Hook>,
}

type Hook = Box<dyn FnMut(&mut Engine)>;

impl Default for Watchdog {
    fn default() -> Watchdog {
        Watchdog { timeout_ns: STALL_NS_DEFAULT, seen: Vec::new(), hooks: Vec::new() }
    }
}

/// A worker's health, for shows.
#[derive(Clone, Copy, Debug)]
pub struct Health {
    /// What it is at.
    pub activity: Activity,
    /// For how long it has finished no pass, nanoseconds, when that is a stall.
    pub stalled_ns: Option<u64>,
    /// Stalls since the start, the one under way included.
    pub stalls: u64,
    /// The longest so far, nanoseconds.
    pub longest_ns: u64,
    /// Worker calls that wait in the control thread for a place in the worker's ring.
    pub worker_calls_waiting: usize,
}

/// What waits until workers have finished a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Replaced values; [`RETIRED_MAX`] at most.
    pub retired: usize,
    /// Stretches of tables; [`STRETCHES_MAX`] at most.
    pub stretches: usize,
    /// Worker calls for the worker for which most wait; [`WORKER_CALLS_WAITING_MAX`] at most.
    pub worker_calls: usize,
}

impl Waiting {
    /// Is there no room for what one more change would retire?
    pub fn is_full(self) -> bool {
        self.retired >= RETIRED_MAX
            || self.stretches >= STRETCHES_MAX
            || self.worker_calls >= WORKER_CALLS_WAITING_MAX
    }
}

impl Engine {
    /// A worker that finishes no pass for so long (nanoseconds) stalls.
    pub fn stall_timeout_ns(&self) -> u64 {
        self.watchdog.timeout_ns
    }

    /// Set it.
    pub fn set_stall_timeout_ns(&mut self, timeout_ns: u64) {
        self.watchdog.timeout_ns = timeout_ns;
    }

    /// A worker's health, as of the last turn of the control loop.
    pub fn health(&self, worker: WorkerId) -> Option<Health> {
        let handle = self.workers.get(worker.index())?;
        let seen = self.watchdog.seen.get(worker.index()).copied().unwrap_or_default();
        let asleep = self.is_asleep(worker);
        let lasted_ns = self.now_ns().saturating_sub(seen.at_ns);
        Some(Health {
            activity: if asleep { Activity::Asleep } else { handle.shared.counters.activity() },
            stalled_ns: seen.stalls_now.then_some(lasted_ns),
            stalls: seen.stalls,
            longest_ns: if seen.stalls_now {
                seen.longest_ns.max(lasted_ns)
            } else {
                seen.longest_ns
            },
            worker_calls_waiting: handle.waiting.len(),
        })
    }

    /// What a worker is at, in words.
    pub fn activity_text(&self, activity: Activity) -> String {
        match activity {
            Activity::Asleep => "asleep".to_owned(),
            Activity::Starting => "before its first pass".to_owned(),
            Activity::WorkerCall => "in a worker call of the control thread".to_owned(),
            Activity::Node(node) => format!("in node {}", self.node_name(node)),
        }
    }

    /// What waits for workers now.
    pub fn waiting(&self) -> Waiting {
        let worker_calls = self.workers.iter().map(|handle| handle.waiting.len()).max();
        Waiting {
            retired: self.epochs.retired(),
            stretches: self.epochs.stretches(),
            worker_calls: worker_calls.unwrap_or(0),
        }
    }

    /// Look after every worker that has a thread of its own. The control loop does on every turn.
    pub(crate) fn look_after_workers(&mut self) {
        for index in 0..self.workers.len() {
            self.look_after(WorkerId(index as u16));
        }
    }

    fn look_after(&mut self, worker: WorkerId) {
        let now_ns = self.now_ns();
        let (handle, index) = (&self.workers[worker.index()], worker.index());
        let passes = handle.shared.counters.passes.get();
        let rests = self.is_asleep(worker) || handle.inline.is_some();
        self.watchdog.seen.resize(self.workers.len(), Seen { at_ns: now_ns, ..Seen::default() });
        let before = self.watchdog.seen[index];
        let lasted_ns = now_ns.saturating_sub(before.at_ns);
        if rests || passes != before.passes {
            let seen = &mut self.watchdog.seen[index];
            (seen.passes, seen.at_ns, seen.stalls_now) = (passes, now_ns, false);
            if before.stalls_now {
                seen.longest_ns = seen.longest_ns.max(lasted_ns);
                tracing::warn!(
                    "worker {index} finishes passes again, after {}",
                    Seconds(lasted_ns)
                );
            }
        } else if lasted_ns >= self.watchdog.timeout_ns && !before.stalls_now {
            let seen = &mut self.watchdog.seen[index];
            seen.stalls_now = true;
            seen.stalls += 1;
            let place = self.activity_text(self.workers[index].shared.counters.activity());
            let core = self.workers[index].core;
            tracing::warn!(
                "worker {index} on core {core} has not finished a pass for {}: {place}",
                Seconds(lasted_ns)
            );
        }
    }

    /// For how long a worker has finished no pass, as of the last look at it.
    fn without_pass_ns(&self, worker: WorkerId) -> u64 {
        let seen = self.watchdog.seen.get(worker.index());
        seen.map_or(0, |seen| self.now_ns().saturating_sub(seen.at_ns))
    }

    /// The error that names a worker, after this wait.
    pub(crate) fn stalled(&self, worker: WorkerId, wait: &Wait) -> Stalled {
        let (without_pass_ns, waited_ns) = (self.without_pass_ns(worker), wait.lasted_ns());
        let asleep = self.is_asleep(worker);
        let activity = self.workers[worker.index()].shared.counters.activity();
        Stalled {
            worker,
            passes: without_pass_ns + (LOOK_MAX.as_nanos() as u64) < waited_ns,
            lasted_ns: without_pass_ns.max(waited_ns),
            place: self.activity_text(if asleep { Activity::Asleep } else { activity }),
        }
    }

    /// Refuse at once when this worker has stalled for so long that it need not be waited for.
    pub(crate) fn check_answering(&mut self, worker: WorkerId, wait: &Wait) -> Result<(), Stalled> {
        self.look_after(worker);
        let gives_up = self.without_pass_ns(worker) >= PATIENCE.as_nanos() as u64;
        let stalls = self.watchdog.seen.get(worker.index()).is_some_and(|seen| seen.stalls_now);
        if gives_up && stalls { Err(self.stalled(worker, wait)) } else { Ok(()) }
    }

    /// Before a change: is there room for what it retires? When there is none, workers get a moment
    /// to finish their pass; when one does not, the change is refused, and nothing grows without
    /// bound.
    ///
    /// # Errors
    /// A worker does not answer in time.
    pub fn make_room(&mut self) -> Result<(), Stalled> {
        if !self.waiting().is_full() {
            return Ok(());
        }
        let mut wait = Wait::begin();
        loop {
            self.reclaim();
            let waiting = self.waiting();
            if !waiting.is_full() {
                return Ok(());
            }
            if let Some(worker) = self.last_worker(waiting) {
                self.check_answering(worker, &wait)?;
                if wait.is_over() {
                    return Err(self.stalled(worker, &wait));
                }
            }
            std::thread::yield_now();
        }
    }

    /// Free what came back from workers and what none sees any more. A worker that runs on this
    /// thread is between two passes now.
    fn reclaim(&mut self) {
        for handle in &mut self.workers {
            handle.pump();
            handle.returned.clear();
            if let Some(worker) = &mut handle.inline {
                worker.rest();
            }
        }
        let mut hooks = std::mem::take(&mut self.watchdog.hooks);
        hooks.iter_mut().for_each(|hook| hook(self));
        hooks.append(&mut self.watchdog.hooks);
        self.watchdog.hooks = hooks;
        self.epochs.collect();
    }

    /// Call `hook` when memory is short: tables then free what no worker sees any more.
    pub fn on_reclaim(&mut self, hook: impl FnMut(&mut Engine) + 'static) {
        self.watchdog.hooks.push(Box::new(hook));
    }

    /// The worker that everything waits for.
    fn last_worker(&self, waiting: Waiting) -> Option<WorkerId> {
        let all = || (0..self.workers.len()).map(|index| WorkerId(index as u16));
        let worker_calls = |worker: &WorkerId| self.workers[worker.index()].waiting.len();
        if waiting.worker_calls >= WORKER_CALLS_WAITING_MAX {
            return all().max_by_key(worker_calls);
        }
        all()
            .filter_map(|worker| Some((self.epochs.last_seen(worker.index())?, worker)))
            .min()
            .map(|(_, w)| w)
    }
}
