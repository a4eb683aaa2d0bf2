//! The engine: what moves packets, and knows no protocol.

pub mod arc;
pub mod buffer;
pub mod builtin;
pub mod capture;
pub mod clock;
pub mod context;
pub mod counters;
pub mod cpu;
pub mod device;
pub mod engine;
pub mod epoch;
pub mod event;
pub mod frame;
pub mod graph;
mod handoff;
pub mod ids;
pub mod interface;
pub mod interfaces;
pub mod memory;
pub mod node;
mod outbox;
pub mod packet;
pub mod pcap_file;
pub mod poll;
pub mod reactor;
pub mod ring;
pub mod statistics;
pub mod sync;
pub mod trace;
pub mod worker;

pub use context::Context;
pub use engine::Engine;
pub use frame::Frame;
pub use ids::{InterfaceId, NodeId, WorkerId};
pub use node::{Node, NodeSpec};
pub use packet::Packet;
