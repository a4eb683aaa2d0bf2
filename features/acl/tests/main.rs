//! All tests of this crate, in one program.

mod any_lists;
mod commands;
mod golden;
