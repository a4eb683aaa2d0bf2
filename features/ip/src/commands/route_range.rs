//! `ip route … count N`: many prefixes by one command, a slice at a time.

use std::time::{Duration, Instant};

use quiver_control::{Job, Output, Progress, Refusal, Sink, Step};
use quiver_core::Engine;
use quiver_forwarding::fib::{Fib, FibError, RangeChange};
use quiver_tables::prefix::IpPrefix;

/// How long a step works before the control loop goes on.
const SLICE: Duration = Duration::from_millis(20);

/// Prefixes between two looks at the clock.
const PREFIXES_AT_ONCE: u64 = 1024;

/// The change of a range of prefixes under way.
pub(super) struct RangeJob {
    first: IpPrefix,
    /// `None` once it is ended or undone.
    range: Option<RangeChange>,
    /// Why it is being undone.
    refused: Option<Refusal>,
    /// Does it only take away, so that finding nothing is a mistake?
    removes: bool,
}

impl RangeJob {
    pub fn new(first: IpPrefix, range: RangeChange) -> RangeJob {
        let removes = range.removes();
        RangeJob { first, range: Some(range), refused: None, removes }
    }

    /// Go on until `deadline`, or until others wait; says whether it is over.
    fn advance(
        &mut self,
        engine: &mut Engine,
        sink: &mut dyn Sink,
        deadline: Instant,
    ) -> Result<bool, Refusal> {
        while let Some(range) = &mut self.range {
            sink.spend(PREFIXES_AT_ONCE);
            let fib = engine.get_mut::<Fib>().ok_or_else(super::busy)?;
            if let Some(why) = &self.refused {
                if !fib.undo_range(range, PREFIXES_AT_ONCE) {
                    self.range = None;
                    return Err(why.clone());
                }
            } else {
                match fib.step_range(range, PREFIXES_AT_ONCE) {
                    Ok(true) => {}
                    Ok(false) => {
                        let found = range.found();
                        self.range.take().into_iter().for_each(|range| fib.end_range(range));
                        if self.removes && found == 0 {
                            return Err(Refusal::of_table(engine, FibError::NoRoute(self.first)));
                        }
                    }
                    Err(error) => self.refused = Some(Refusal::of_table(engine, error)),
                }
            }
            if sink.must_pause() || Instant::now() >= deadline {
                break;
            }
        }
        Ok(self.range.is_none())
    }
}

impl Job<Engine> for RangeJob {
    fn step(&mut self, engine: &mut Engine, sink: &mut dyn Sink) -> Result<Step, Refusal> {
        if self.advance(engine, sink, Instant::now() + SLICE)? {
            return Ok(Step::Done(Output::none()));
        }
        if let Some(range) = &self.range {
            let back = if self.refused.is_some() { "taking back " } else { "" };
            let what = format!("{back}{} prefixes from {}", range.count(), self.first);
            sink.progress(Progress { what, done: range.done(), total: range.count() });
        }
        Ok(Step::Again)
    }

    fn must_end(&self) -> bool {
        self.range.is_some()
    }
}
