//! All tests of this crate, in one program.

mod coalescing;
mod command;
mod frames;
mod golden;
mod rules;
