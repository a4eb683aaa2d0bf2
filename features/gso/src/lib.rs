#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod node;

use quiver_control::Registry;

/// Register the node.
pub fn register(registry: &mut Registry) {
    registry.feature("gso", "Segments and checksums that packets leave to their transmitter");
    registry.graph.node(node::spec());
}
