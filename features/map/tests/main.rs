//! All tests of this crate, in one program.

mod commands;
mod fixture;
mod golden;
mod hostile;
mod paths;
mod softwires;
mod translation;
