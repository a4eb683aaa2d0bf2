#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod cross;
mod input;
mod mac_control;
mod state;
mod vlan;

use quiver_control::{Registry, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};
use quiver_wire::EtherType;

use crate::state::CrossConnects;

pub use crate::cross::Cross;
pub use crate::input::EthernetInput;
pub use crate::vlan::VlanInput;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("ethernet", "Ethernet frames, VLANs, layer 2 patch and cross-connect");
    let crosses = CrossConnects::new(registry.graph.epochs());
    registry.graph.node(input::spec());
    registry.graph.node(mac_control::spec());
    registry.graph.claim("ethertype", u32::from(EtherType::MAC_CONTROL.0), mac_control::NODE);
    registry.graph.node(cross::spec::<true>(&crosses));
    registry.graph.node(cross::spec::<false>(&crosses));
    let (arc, node) = ("device-input", "l2-patch");
    registry.graph.feature(FeatureSpec { arc, node, phase: Phase::CrossConnect, after: &[] });
    registry.running_config(order::FEATURES, state::write_config);
    registry.on_start(move |engine| {
        engine.insert(crosses);
        engine.on_interface_change(state::follow_interface);
    });
    commands::register(registry);
    vlan::register(registry);
}
