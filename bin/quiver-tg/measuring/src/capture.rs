//! Captures: frames that a port sent or received, those that a filter wants, in a pcapng file.
//!
//! A port with captures has a node in its path that copies the frames that match into records; the
//! control thread writes them. A port without captures has no such node.

mod around;
mod node;
pub mod pcapng;
mod report;
mod writer;

pub use node::{CaptureNode, Record, Tap, tap};
pub use report::CaptureReport;
pub use writer::{CaptureWriter, Captures, Output};
