#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod flows;
mod node;
mod segment;

use quiver_control::{Registry, by_interface, order};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::graph::arc::{FeatureSpec, Phase};

/// The arc of the node.
const ARC: &str = "interface-output";

/// Register node and command.
pub fn register(registry: &mut Registry) {
    registry.feature("gro", "Receive coalescing: TCP segments leave as super-frames");
    registry.graph.node(node::spec());
    let (arc, node) = (ARC, node::NAME);
    registry.graph.feature(FeatureSpec { arc, node, phase: Phase::Offload, after: &[] });
    commands::register(registry);
    registry.running_config_in_slices(order::FEATURES, by_interface(commands::write_interface));
    registry.on_start(|engine| {
        engine.on_interface_change(|engine, id, change| {
            let takes = engine.interface(id).is_some_and(|interface| interface.takes_offloads);
            if change == InterfaceChange::Created && takes {
                // Without room for the change, it stays off: `show interface features` says so.
                let _ = engine.set_feature(id, ARC, node::NAME, true);
            }
        });
    });
}
