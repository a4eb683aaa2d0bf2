//! VLANs (IEEE 802.1Q): sub-interfaces by tags.

mod commands;
mod frame;
mod input;
mod map;
mod matching;
mod sub_interfaces;
mod table;

use quiver_control::{Registry, order};
use quiver_core::arc::FeatureSpec;

pub use input::VlanInput;

use sub_interfaces::SubInterfaces;

/// The node's name.
pub(crate) const INPUT: &str = "vlan-input";

/// Register node and commands.
pub(crate) fn register(registry: &mut Registry) {
    let sub_interfaces = SubInterfaces::new();
    registry.graph.node(input::spec(&sub_interfaces));
    registry.graph.feature(FeatureSpec {
        arc: "device-input",
        node: INPUT,
        before: &[],
        after: &["l2-patch"],
    });
    registry.running_config(order::INTERFACES + 50, sub_interfaces::write_config);
    registry.on_start(move |engine| {
        engine.insert(sub_interfaces);
        engine.on_interface_change(sub_interfaces::follow_interface);
    });
    commands::register(registry);
}
