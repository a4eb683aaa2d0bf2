#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod config;
mod dscp;
pub mod meter;
mod node;
mod shows;
mod tables;

use quiver_control::{Registry, by_interface, of_each, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};

use crate::config::Config;
use crate::tables::Direction;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("policer", "policers: rates that packets of an interface are metered by");
    let config = Config::new(registry.graph.epochs());
    for direction in Direction::ALL {
        registry.graph.node(node::spec(direction, config.published()));
        let (arc, node) = (direction.arc(), direction.node());
        registry.graph.feature(FeatureSpec { arc, node, phase: Phase::Filter, after: &[] });
    }
    commands::register(registry);
    shows::register(registry);
    let policers = of_each(commands::names, commands::write_policer);
    registry.running_config_in_slices(order::RESOURCES, policers);
    registry.running_config_in_slices(order::FEATURES, by_interface(commands::write_interface));
    registry.on_start(move |engine| {
        engine.insert(config);
        engine.on_interface_change(config::follow_interface);
    });
}
