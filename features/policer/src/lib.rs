#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod class_commands;
mod class_config;
mod classes;
mod classify;
mod commands;
mod config;
mod dscp;
pub mod meter;
mod node;
mod shows;
mod tables;

use quiver_control::{Registry, by_interface, of_each, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{Ip4, Ip6};

use crate::config::Config;
use crate::tables::Direction;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("policer", "policers: rates that packets of an interface are metered by");
    let config = Config::new(registry.graph.epochs());
    quiver_access_lists::register(registry);
    let (policers, classes) = (config.published(), &config.class_table);
    registry.graph.node(classify::spec::<Ip4, false>(policers, classes));
    registry.graph.node(classify::spec::<Ip6, false>(policers, classes));
    registry.graph.node(classify::spec::<Ip4, true>(policers, classes));
    registry.graph.node(classify::spec::<Ip6, true>(policers, classes));
    for direction in Direction::ALL {
        for family in [Family::Ip4, Family::Ip6] {
            let (arc, node) = (direction.arc(), direction.class_node(family));
            registry.graph.feature(FeatureSpec { arc, node, phase: Phase::Filter, after: &[] });
        }
        registry.graph.node(node::spec(direction, config.published()));
        let (arc, node) = (direction.arc(), direction.node());
        registry.graph.feature(FeatureSpec { arc, node, phase: Phase::Filter, after: &[] });
    }
    commands::register(registry);
    class_commands::register(registry);
    shows::register(registry);
    let policers = of_each(commands::names, commands::write_policer);
    registry.running_config_in_slices(order::RESOURCES, policers);
    registry.running_config_in_slices(order::FEATURES, by_interface(commands::write_interface));
    let classes = by_interface(class_commands::write_interface);
    registry.running_config_in_slices(order::FEATURES, classes);
    registry.on_start(move |engine| {
        engine.insert(config);
        engine.on_interface_change(config::follow_interface);
    });
}
