//! Quiver's plain look-up structures: prefix match, exact match, MAC tables, counted lines. Workers
//! read them without waiting; one control thread patches them in place.
//!
//! Readers do so inside a pass ([`quiver_core::memory::epoch`]) and keep no index across
//! passes.

#![warn(clippy::missing_errors_doc)]

pub mod counted_lines;
pub mod exact;
mod group_id;
pub mod ip4_lpm;
pub mod ip6_lpm;
pub mod lpm;
#[cfg(not(loom))]
pub mod mac;
pub mod memory;
pub mod prefix;
mod prefix_map;
#[cfg(not(loom))]
pub mod sessions;
pub mod synthetic;

pub use counted_lines::{CountedLine, CountedLines, WorkerLines};
pub use group_id::GroupId;
