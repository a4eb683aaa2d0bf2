//! All tests of this crate, in one program.

mod engine;
mod visits;
mod watchdog;
