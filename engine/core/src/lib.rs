//! The engine: what moves packets, and knows no protocol.
//!
//! - [`memory`]: buffers, packets, rings, epochs.
//! - [`graph`]: nodes, vectors, what nodes decide and how vectors move between them.
//! - `block`: how blocks of packets are taken through the kernels of their nodes.
//! - [`worker`]: the thread that runs the graph, and what it receives from.
//! - [`control`]: the thread that owns the configuration.

#![warn(clippy::missing_errors_doc)]

mod block;
pub mod clock;
pub mod control;
pub mod cpu;
pub mod graph;
pub mod ids;
pub mod jitter;
pub mod memory;
pub mod pcap_file;
pub mod throttle;
pub mod worker;

pub use control::engine::Engine;
pub use graph::context::Context;
pub use graph::frame::Frame;
pub use graph::node::{Node, NodeSpec};
pub use graph::stage::{LookUp, Stage};
pub use graph::watch::Watch;
pub use ids::{InterfaceId, NodeId, WorkerId};
pub use memory::packet::Packet;
