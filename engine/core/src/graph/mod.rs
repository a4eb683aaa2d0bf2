//! The graph: nodes, the vectors between them, and what both count.

pub mod arc;
pub mod arrivals;
pub mod builder;
pub mod builtin;
pub mod capture;
pub mod context;
pub mod counters;
pub(crate) mod directory;
pub mod drop_reason;
pub mod filter;
pub mod frame;
pub mod hand_over;
pub mod interface;
pub mod node;
pub mod observer;
pub(crate) mod order;
pub(crate) mod outbox;
pub mod sessions;
pub mod stage;
pub mod trace;
pub mod visits;
pub mod watch;
