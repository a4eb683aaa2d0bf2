//! All tests of this crate, in one program.

mod commands;
mod errors;
mod fixture;
mod golden;
mod hostile;
mod sessions;
