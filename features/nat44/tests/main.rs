//! All tests of this crate, in one program.

mod any_packets;
mod calls;
#[path = "../../../engine/export/tests/collector.rs"]
mod collector;
mod golden;
mod helpers;
mod log;
mod mappings;
mod provider;
mod sessions;
mod softwire_log;
mod softwire_standby;
mod softwires;
mod standby;
mod twice_helpers;
