//! The key `captures` of a profile: which frames of which port go to which file.

pub mod filter;
pub mod headers;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use filter::Filter;

/// Captures of one profile.
pub const CAPTURES_MAX: usize = 64;
/// Frames that a capture may keep of each direction.
pub const LIMIT_FRAMES_MAX: u64 = 100_000_000;
/// Bytes of a frame that a capture may keep.
pub const SNAP_BYTES_MAX: usize = 65_535;

/// The direction of a frame at its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CapturedDirection {
    /// It came.
    Received,
    /// It left.
    Sent,
}

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
    /// The capture has frames of this direction.
    pub fn has(self, of: CapturedDirection) -> bool {
        matches!(
            (self, of),
            (Direction::Both, _)
                | (Direction::Sent, CapturedDirection::Sent)
                | (Direction::Received, CapturedDirection::Received)
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
    /// Check the ranges of a capture.
    ///
    /// # Errors
    /// When a value is outside its range, or there is no such port; the message says what would be
    /// possible.
    pub fn check(&self, ports: usize) -> Result<(), String> {
        if self.port >= ports {
            return Err(format!(
                "captures: port {}; there are ports 0 to {}",
                self.port,
                ports - 1
            ));
        }
        if !(1..=LIMIT_FRAMES_MAX).contains(&self.limit) {
            return Err(format!(
                "captures: limit {} is outside 1..={LIMIT_FRAMES_MAX}",
                self.limit
            ));
        }
        if !(1..=SNAP_BYTES_MAX).contains(&self.snap_bytes) {
            return Err(format!(
                "captures: snap_bytes {} is outside 1..={SNAP_BYTES_MAX}",
                self.snap_bytes
            ));
        }
        Ok(())
    }
}
