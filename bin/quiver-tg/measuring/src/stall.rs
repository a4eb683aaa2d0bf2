//! Stalls of the host: times in which the worker did not run, told from passes that were long
//! because there was much to do.

use quiver_core::Context;
use quiver_core::graph::counters::Count;
use quiver_core::graph::frame::FRAME_PACKETS_MAX;
use schemars::JsonSchema;
use serde::Serialize;

/// A pass may take so long whatever it does, nanoseconds: a worker call of the control thread, a
/// page that is touched for the first time.
const PASS_NS: u64 = 50_000;
/// The same through the kernel: behind a vector of live frames the worker gives its core away until
/// the kernel is done with them, and where setting a timer is slow that takes hundreds of
/// microseconds, however few they are.
const KERNEL_PASS_NS: u64 = 500_000;
/// And so long for each frame that came or was made, nanoseconds: several times what a frame of
/// 1,514 bytes takes over shared memory.
const FRAME_NS: u64 = 250;
/// The same through the kernel, which may do its own work in the same call.
const KERNEL_FRAME_NS: u64 = 10_000;
/// Time after a stall in which its backlog in the rings arrives, nanoseconds: two rings
/// of 1,024 frames at 2 Mpps.
const STALL_WINDOW_NS: u64 = 1_000_000;

/// Stalls of one measurement. One worker writes, others may read.
#[derive(Default)]
pub struct Stalls {
    count: Count,
    total_ns: Count,
    longest_ns: Count,
}

/// Stalls in a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct HostStalls {
    /// How many began while counted frames were sent.
    pub count: u64,
    /// All together, seconds.
    pub total_s: f64,
    /// The longest, seconds.
    pub longest_s: f64,
    /// Times that a receive ring was found full behind one.
    pub rings_filled: u64,
}

impl Stalls {
    /// The worker did not run for so long.
    pub fn note(&self, ns: u64) {
        self.count.add(1);
        self.total_ns.add(ns);
        self.longest_ns.max(ns);
    }

    /// The report, with the number of stalls after which a ring was full.
    pub fn report(&self, rings_filled: u64) -> HostStalls {
        let seconds = |ns: &Count| ns.get() as f64 / 1e9;
        HostStalls {
            count: self.count.get(),
            total_s: seconds(&self.total_ns),
            longest_s: seconds(&self.longest_ns),
            rings_filled,
        }
    }
}

/// How long a pass of the worker may take by its own work.
#[derive(Clone, Copy, Debug)]
pub struct PassBudget {
    pass_ns: u64,
    frame_ns: u64,
    /// Inputs of the worker: each has a vector in a pass at most.
    inputs: u64,
}

impl PassBudget {
    /// Of a generator with so many ports, frames going through the kernel or not.
    pub fn new(ports: usize, through_kernel: bool) -> PassBudget {
        let (pass_ns, frame_ns) =
            if through_kernel { (KERNEL_PASS_NS, KERNEL_FRAME_NS) } else { (PASS_NS, FRAME_NS) };
        // A port receives, makes frames, and may hold some back on purpose.
        PassBudget { pass_ns, frame_ns, inputs: 3 * ports as u64 }
    }

    /// The last pass was so much longer than its work explains that the worker did not run; how
    /// long it was.
    #[inline]
    pub fn stall_before(&self, cx: &Context<'_>) -> Option<u64> {
        let took_ns = cx.counters.last_pass_ns.get();
        let may_ns = self.pass_ns + cx.counters.last_pass_packets.get() * self.frame_ns;
        (took_ns > may_ns).then_some(took_ns)
    }

    /// The same of this pass, at `now_ns`; what it has to do is not known yet.
    #[inline]
    fn stalls_within(&self, cx: &Context<'_>, now_ns: u64) -> bool {
        let may_ns = self.pass_ns + self.inputs * FRAME_PACKETS_MAX as u64 * self.frame_ns;
        now_ns.saturating_sub(cx.now_ns) > may_ns
    }
}

/// Remembers whether a stall was a moment ago: what it left in the rings comes now.
#[derive(Clone, Copy, Debug)]
pub struct StallWindow {
    budget: PassBudget,
    until_ns: u64,
}

impl StallWindow {
    /// No stall so far.
    pub fn new(budget: PassBudget) -> StallWindow {
        StallWindow { budget, until_ns: 0 }
    }

    /// Is what comes at `now_ns` perhaps what a stall left? Asked with every vector, `is_full` or
    /// not: a vector that is not shows that the ring has run empty.
    #[inline]
    pub fn is_on(&mut self, cx: &Context<'_>, now_ns: u64, is_full: bool) -> bool {
        if self.budget.stall_before(cx).is_some() || self.budget.stalls_within(cx, now_ns) {
            self.until_ns = now_ns + STALL_WINDOW_NS;
        }
        let is_on = now_ns < self.until_ns;
        if !is_full {
            self.until_ns = 0;
        }
        is_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_are_counted_with_their_sum_and_the_longest() {
        let stalls = Stalls::default();
        [2_000_000, 5_000_000, 1_000_000].into_iter().for_each(|ns| stalls.note(ns));
        let report = stalls.report(2);
        assert_eq!((report.count, report.rings_filled), (3, 2));
        assert!((report.total_s - 0.008).abs() < 1e-12 && (report.longest_s - 0.005).abs() < 1e-12);
    }
}
