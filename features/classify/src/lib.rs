#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod access;
mod commands;
mod config;
mod field;
pub mod filter;
mod filter_commands;
pub mod key;
pub mod mask;
mod shows;
mod tables;

use quiver_control::{Registry, by_interface, of_each, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};

use crate::config::Config;
use crate::filter_commands::Filters;
use crate::tables::Direction;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("classify", "classifier tables: filters of traces and captures, access lists");
    let config = Config::new(registry.graph.epochs());
    let Some(config) = registry.require(config) else { return };
    registry.graph.node(access::spec::<false>(config.published()));
    registry.graph.node(access::spec::<true>(config.published()));
    for direction in Direction::ALL {
        let (arc, node) = (direction.arc(), direction.node());
        registry.graph.feature(FeatureSpec { arc, node, phase: Phase::Filter, after: &[] });
    }
    commands::register(registry);
    filter_commands::register(registry);
    shows::register(registry);
    let tables = of_each(commands::lines, commands::write_line);
    registry.running_config_in_slices(order::RESOURCES, tables);
    registry.running_config_in_slices(order::FEATURES, by_interface(commands::write_interface));
    registry.on_start(move |engine| {
        engine.insert(config);
        engine.insert(Filters::default());
        engine.on_interface_change(config::follow_interface);
    });
}
