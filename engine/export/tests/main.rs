//! All tests of this crate, in one program.

mod collector;
mod commands;
mod exporter;
mod messages;
mod records;
mod sender;
