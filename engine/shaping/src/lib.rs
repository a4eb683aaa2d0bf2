//! Shaping: when each packet of a tree of rates may leave. Fair queues with CoDel (RFC 8289,
//! RFC 8290), virtual clocks, a timing wheel with find-first-set words, deficit round robin among
//! the children of a node.
//!
//! The clock is an argument, and a packet is any [`Item`]: nothing here knows a graph, a device or
//! a buffer; `quiver-core` lends its prefetch. One thread owns a
//! [`Scheduler`](scheduler::Scheduler). It allocates when it is made and in
//! [`Chunk::new`](node::Chunk::new), never while packets come.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod classes;
pub mod codel;
mod entries;
pub mod fair;
mod flows;
pub mod node;
pub mod scheduler;
pub mod settings;
pub mod stats;
mod wheel;

/// In the place of a number: none.
pub const NONE: u32 = u32::MAX;

/// A packet, as far as shaping knows it.
pub trait Item {
    /// Its bytes, without overhead.
    fn bytes(&self) -> u32;
    /// Buffers that it occupies while it waits.
    fn buffers(&self) -> u32;
    /// Mark it with Congestion Experienced (RFC 3168 §5). False when its transport does not know
    /// of ECN: the packet is unchanged then.
    fn mark(&mut self) -> bool;
}

/// Why a packet that waited is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// CoDel: its flow has waited for longer than the target through a whole interval.
    Codel,
    /// Too many packets wait, and its flow has most of them.
    Overlimit,
}

/// Where packets go that leave a scheduler.
pub trait Sink<T> {
    /// The packet's time is come.
    fn send(&mut self, item: T);
    /// The packet dies.
    fn drop(&mut self, item: T, why: Death);
}
