//! Commands about more entries than one turn of the control loop should take.

use quiver_control::{Job, Output, Progress, Refusal, Sink, Step};
use quiver_core::Engine;
use quiver_tables::mac::{Configured, MacKey, StampMinutes};

use super::bridges_mut;
use crate::state::Bridges;

/// Entries of one step.
const SLICE: u64 = 2048;
/// Segments of the table of one step.
const SEGMENTS: usize = 4;

/// `l2fib add … count N`.
pub(super) struct Add {
    pub first: MacKey,
    pub count: u64,
    pub entry: Configured,
    pub done: u64,
}

/// `l2fib del … count N`.
pub(super) struct Remove {
    pub first: MacKey,
    pub count: u64,
    pub done: u64,
    pub removed: u64,
}

/// `clear l2fib`.
pub(super) struct Clear {
    pub at: Option<u32>,
}

fn nth(first: MacKey, n: u64) -> MacKey {
    MacKey::new(first.domain(), first.mac().offset(n))
}

impl Job<Engine> for Add {
    fn step(&mut self, engine: &mut Engine, sink: &mut dyn Sink) -> Result<Step, Refusal> {
        let now = StampMinutes::from_ns(engine.now_ns());
        let bridges = bridges_mut(engine)?;
        let until = self.count.min(self.done + SLICE);
        sink.spend(until - self.done);
        while self.done < until {
            let done = bridges.macs.configure(nth(self.first, self.done), self.entry, now);
            if let Err(error) = done {
                return Err(Refusal::of_table(engine, error).after(self.done));
            }
            bridges.added.remove(&nth(self.first, self.done));
            self.done += 1;
        }
        if self.done == self.count {
            return Ok(Step::Done(Output::none()));
        }
        sink.progress(Progress {
            what: "MAC entries".to_owned(),
            done: self.done,
            total: self.count,
        });
        Ok(Step::Again)
    }

    fn must_end(&self) -> bool {
        true
    }
}

impl Job<Engine> for Remove {
    fn step(&mut self, engine: &mut Engine, sink: &mut dyn Sink) -> Result<Step, Refusal> {
        let bridges = bridges_mut(engine)?;
        let until = self.count.min(self.done + SLICE);
        sink.spend(until - self.done);
        while self.done < until {
            let key = nth(self.first, self.done);
            let mine = bridges.macs.get(key).is_some_and(|entry| !entry.is_bvi());
            self.removed += u64::from(mine && bridges.macs.remove(key).is_some());
            bridges.added.remove(&key);
            self.done += 1;
        }
        bridges.offices.forget();
        if self.done == self.count {
            let text = format!("{} entries removed", self.removed);
            return Ok(Step::Done(
                Output::default().line(text).json("removed", self.removed.into()),
            ));
        }
        sink.progress(Progress {
            what: "MAC entries".to_owned(),
            done: self.done,
            total: self.count,
        });
        Ok(Step::Again)
    }

    fn must_end(&self) -> bool {
        true
    }
}

impl Job<Engine> for Clear {
    fn step(&mut self, engine: &mut Engine, _: &mut dyn Sink) -> Result<Step, Refusal> {
        let bridges: &mut Bridges = bridges_mut(engine)?;
        for _ in 0..SEGMENTS {
            let Some(at) = self.at else { break };
            let mut keys = Vec::new();
            self.at = bridges.macs.scan(at, |key, entry| {
                if !entry.is_bvi() {
                    keys.push(key);
                }
            });
            for key in keys {
                bridges.macs.remove(key);
                bridges.added.remove(&key);
            }
        }
        bridges.offices.forget();
        Ok(if self.at.is_some() { Step::Again } else { Step::Done(Output::none()) })
    }

    fn must_end(&self) -> bool {
        true
    }
}
