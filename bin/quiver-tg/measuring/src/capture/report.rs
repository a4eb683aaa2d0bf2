//! The report of a capture.

use std::path::PathBuf;

use quiver_tg_traffic::profile::capture::Direction;
use schemars::JsonSchema;
use serde::Serialize;

/// What a capture has come to since the generator was started. What was wanted was written or
/// dropped.
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
