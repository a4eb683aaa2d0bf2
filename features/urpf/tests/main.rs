//! All tests of this crate, in one program.

mod any_sources;
mod commands;
mod golden;
