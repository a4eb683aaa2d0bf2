//! All tests of this crate, in one program.

mod engine;
mod ticks;
mod visits;
mod watchdog;
