//! All tests of this crate, in one program.

mod any_policies;
mod commands;
mod golden;
mod listed;
