#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod config;
mod copy;
pub mod table;

use quiver_control::{Registry, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};

pub use crate::config::Spans;
use crate::table::Direction;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("span", "SPAN: copies of the frames of one port leave by another");
    let spans = Spans::new(registry.graph.epochs());
    registry.graph.node(copy::spec(Direction::Rx, spans.published()));
    registry.graph.node(copy::spec(Direction::Tx, spans.published()));
    // First of what is received, last of what is sent: as it is on the wire.
    for (arc, node, phase) in [
        ("device-input", "span-input", Phase::Capture),
        ("interface-output", "span-output", Phase::CaptureSent),
    ] {
        registry.graph.feature(FeatureSpec { arc, node, phase, after: &[] });
    }
    registry.running_config_in_slices(order::FEATURES, config::begin_config);
    registry.on_start(move |engine| {
        engine.insert(spans);
        engine.on_interface_change(config::follow_interface);
    });
    commands::register(registry);
}
