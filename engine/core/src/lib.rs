//! The engine: what moves packets, and knows no protocol.

pub mod epoch;
pub mod ids;
pub mod sync;

pub use ids::{InterfaceId, NodeId, WorkerId};
