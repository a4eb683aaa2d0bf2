#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod class;
mod commands;
mod config;
pub mod headers;
pub mod map;
mod map_commands;
mod mark;
mod record;
mod shows;
mod tables;

use quiver_control::{Registry, by_interface, of_each, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};

use crate::config::Config;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("qos", "classes of service: recorded at input, written at output");
    let config = Config::new(registry.graph.epochs());
    registry.graph.node(record::spec(config.published()));
    registry.graph.node(mark::spec(config.published()));
    for (arc, node, phase) in [
        ("device-input", record::NODE, Phase::Capture),
        ("interface-output", mark::NODE, Phase::Marking),
    ] {
        registry.graph.feature(FeatureSpec { arc, node, phase, after: &[] });
    }
    map_commands::register(registry);
    commands::register(registry);
    shows::register(registry);
    let maps = of_each(map_commands::numbers, map_commands::write);
    registry.running_config_in_slices(order::RESOURCES, maps);
    registry.running_config_in_slices(order::FEATURES, by_interface(commands::write_interface));
    registry.on_start(move |engine| {
        engine.insert(config);
        engine.on_interface_change(config::follow_interface);
    });
}
