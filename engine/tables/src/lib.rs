//! Quiver's tables: prefix match, next-hop groups, adjacencies, neighbours, and the FIB that ties
//! them together. Workers read them without waiting; one control thread patches them in place.
//!
//! Whoever reads does so inside a pass ([`quiver_core::memory::epoch`]) and keeps no index across passes.

pub mod adjacency;
pub mod adjacency_counts;
pub mod counted_lines;
pub mod exact;
pub mod fib;
mod fragment_request;
mod icmp_error_request;
pub mod ip;
pub mod ip4_lpm;
pub mod ip6_lpm;
pub mod lpm;
#[cfg(not(loom))]
pub mod mac;
pub mod memory;
#[cfg(not(loom))]
pub mod mfib;
pub mod neighbour;
pub mod neighbour_generations;
pub mod next_hop_group;
pub mod prefix;
mod prefix_map;
mod reassembly_request;
pub mod synthetic;

pub use adjacency::{Adjacencies, Adjacency, AdjacencyKind};
pub use counted_lines::{CountedLine, CountedLines, WorkerLines};
pub use fragment_request::FragmentRequest;
pub use icmp_error_request::IcmpErrorRequest;
pub use next_hop_group::{GroupId, Groups, Hop};
pub use reassembly_request::ReassemblyRequest;
