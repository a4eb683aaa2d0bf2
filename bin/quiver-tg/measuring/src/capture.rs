//! Captures: frames that a port sent or received, those that a filter wants, in a pcapng file.
//!
//! A port with captures has a node on its way that copies what is wanted into records; the control
//! thread writes them. A port without has nothing of this on its way.

mod around;
mod book;
mod node;
pub mod pcapng;
mod report;

pub use book::{Book, Captures, Output};
pub use node::{CaptureNode, Record, Tap, tap};
pub use report::CaptureReport;
