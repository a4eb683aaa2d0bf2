#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod node;
mod output;

use quiver_control::{Registry, by_interface, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("gso", "Segments and checksums that packets leave to their transmitter");
    registry.graph.node(node::spec());
    registry.graph.node(output::gso_spec());
    registry.graph.node(output::checksum_spec());
    for node in [output::GSO_OUTPUT, output::CHECKSUM_OUTPUT] {
        let (arc, phase) = (commands::ARC, Phase::Offload);
        registry.graph.feature(FeatureSpec { arc, node, phase, after: &[] });
    }
    commands::register(registry);
    registry.running_config_in_slices(order::FEATURES, by_interface(commands::write_interface));
}
