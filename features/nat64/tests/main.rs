//! All tests of this crate, in one program.

#[path = "../../../engine/export/tests/collector.rs"]
mod collector;
mod golden;
mod hostile;
mod log;
mod sessions;
mod standby;
