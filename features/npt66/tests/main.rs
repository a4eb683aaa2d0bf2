//! All tests of this crate, in one program.

mod commands;
mod golden;
mod hostile;
