//! When frames are due: a constant rate, Poisson, bursts, or the times of a recording, kept by the
//! clock.
//!
//! Frame k of a stream is due at `origin` and as long behind it as the schedule says. Each pass of
//! the worker sends what is due, so that a burst is as long as a pass of the worker and no longer.
//! When the worker was held up (the system ran something else on its core), the frames that it
//! missed are sent a little faster than the rate instead of all at once: a forwarder must not lose
//! frames because its tester slept.

mod departures;
mod pacer;
mod poisson;
mod recorded;

#[cfg(test)]
mod tests;

pub use departures::Departures;
pub use pacer::{Pacer, Schedule};
pub use poisson::Gaps;
pub use recorded::Recorded;
