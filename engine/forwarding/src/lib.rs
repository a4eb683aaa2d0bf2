#![doc = include_str!("../README.md")]
#![warn(clippy::missing_errors_doc)]

pub mod adjacency;
pub mod adjacency_counter;
pub mod fib;
pub mod handover;
pub mod hop_description;
pub mod hop_view;
pub mod interface_rx;
pub mod ip;
pub mod ip4;
pub mod ip6;
pub mod lookup;
pub mod lookup_in_table;
#[cfg(not(loom))]
pub mod mfib;
pub mod mpls;
pub mod neighbour;
pub mod next_hop_group;
pub mod nodes;
pub mod out_labels;
pub mod requests;
pub mod route_end;
pub mod segment_routing;
pub mod segments;

pub use adjacency::{Adjacencies, Adjacency, AdjacencyKind};
pub use next_hop_group::{Groups, Hop};
pub use quiver_tables::GroupId;
pub use requests::{FragmentRequest, IcmpErrorRequest, ReassemblyRequest};
