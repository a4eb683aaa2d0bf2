//! Faults on purpose: frames that come to a port are lost, repeated, damaged, held back, before
//! they are looked at. Seeded, and counted one by one, so that what was done can be compared with
//! what was found. A port without faults has nothing of this on its way.

mod counts;
mod line;
mod node;
mod port;
mod subject;

pub use counts::{FaultCounts, FaultsReport};
pub use line::{FaultLine, HELD_FRAMES_MAX, REORDER_HOLD_NS_MAX};
pub use node::{FaultNode, RING_FRAMES};
pub use port::FaultPort;
pub use subject::Subject;
