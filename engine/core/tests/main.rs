//! All tests of this crate, in one program.

mod engine;
mod observers;
mod order;
mod ticks;
mod visits;
mod watchdog;
