//! Captures: frames that a port sent or received, those that a filter wants, in a pcapng file.
//!
//! A port with captures has a node on its way that copies what is wanted into records; the control
//! thread writes them. A port without has nothing of this on its way.

mod around;
mod book;
mod node;
pub mod pcapng;

use std::path::PathBuf;

use quiver_tg_traffic::profile::capture::Direction;
use schemars::JsonSchema;
use serde::Serialize;

pub use book::{Book, Captures, Output};
pub use node::{CaptureNode, Record, Tap, tap};

/// Records that wait for the control thread at most. A capture of fewer frames never drops one.
pub const RECORDS_MAX: usize = 16_384;
/// How often the control thread writes what waits, nanoseconds.
pub const WRITE_EVERY_NS: u64 = 20_000_000;

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
