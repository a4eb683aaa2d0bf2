//! A generator of streams: an engine of its own with one worker, its ports, its streams, and how it
//! measures.

mod assembly;
mod measuring;
mod replacing;
mod running;

pub use assembly::Generator;
pub use running::Snapshot;
