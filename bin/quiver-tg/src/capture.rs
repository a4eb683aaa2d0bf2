//! Captures: frames that a port sent or received, those that a filter wants, in a pcapng file.
//!
//! A port with captures has a node on its way that copies what is wanted into records; the control thread
//! writes them. A port without has nothing of this on its way.

mod around;
mod book;
pub mod filter;
pub mod headers;
mod node;
pub mod pcapng;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use book::{Book, Captures, Output};
pub use filter::Filter;
pub use node::{CaptureNode, Record, Tap, tap};
pub use pcapng::Way;

/// Captures of one profile.
pub const CAPTURES_MAX: usize = 64;
/// Frames that a capture may keep of each direction.
pub const LIMIT_FRAMES_MAX: u64 = 100_000_000;
/// Bytes of a frame that a capture may keep.
pub const SNAP_BYTES_MAX: usize = 65_535;
/// Records that wait for the control thread at most. A capture of fewer frames never drops one.
pub const RECORDS_MAX: usize = 16_384;
/// How often the control thread writes what waits, nanoseconds.
pub const WRITE_EVERY_NS: u64 = 20_000_000;

/// Which frames of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Those that it hands to its device, also when that does not take them.
    Sent,
    /// Those that come, before any faults.
    Received,
    /// All.
    #[default]
    Both,
}

impl Direction {
    /// Has it frames that go this way?
    pub fn has(self, way: Way) -> bool {
        matches!(
            (self, way),
            (Direction::Both, _) | (Direction::Sent, Way::Sent) | (Direction::Received, Way::Received)
        )
    }
}

/// A capture as a profile has it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureSpec {
    /// Whose frames.
    pub port: usize,
    /// Which of them.
    #[serde(default)]
    pub direction: Direction,
    /// And of these.
    #[serde(default = "Filter::all")]
    pub filter: Filter,
    /// Where they are written to, from the beginning.
    pub file: PathBuf,
    /// So many frames of each direction, then no more.
    #[serde(default = "default_limit")]
    pub limit: u64,
    /// So many bytes of each.
    #[serde(default = "default_snap_bytes")]
    pub snap_bytes: usize,
}

fn default_limit() -> u64 {
    10_000
}

fn default_snap_bytes() -> usize {
    2048
}

impl CaptureSpec {
    /// What is impossible about it, and what would be possible.
    pub fn check(&self, ports: usize) -> Result<(), String> {
        if self.port >= ports {
            return Err(format!("captures: port {}; there are ports 0 to {}", self.port, ports - 1));
        }
        if !(1..=LIMIT_FRAMES_MAX).contains(&self.limit) {
            return Err(format!("captures: limit {} is outside 1..={LIMIT_FRAMES_MAX}", self.limit));
        }
        if !(1..=SNAP_BYTES_MAX).contains(&self.snap_bytes) {
            return Err(format!("captures: snap_bytes {} is outside 1..={SNAP_BYTES_MAX}", self.snap_bytes));
        }
        Ok(())
    }
}

/// What a capture has come to since the generator was started. What was wanted was written or dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CaptureReport {
    /// Whose frames.
    pub port: usize,
    /// Which of them.
    pub direction: Direction,
    /// Where they are.
    pub file: PathBuf,
    /// Frames that the filter wanted, up to the limit.
    pub wanted: u64,
    /// Of these, frames that are in the file.
    pub written: u64,
    /// And frames that are not: records ran out, or the file could not be written.
    pub dropped: u64,
    /// It has as many frames as it may.
    pub is_full: bool,
    /// Why nothing more is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
