//! All tests of this crate, in one program.

#[path = "../../../engine/export/tests/collector.rs"]
mod collector;
mod hostile;
mod log;
mod sessions;
