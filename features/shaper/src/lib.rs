#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod classify;
mod commands;
mod config;
mod file;
mod metrics;
mod node;
mod numbers;
mod orders;
mod shows;
mod subscriber_commands;
mod subscribers;
mod tables;
mod waiting;

use std::sync::Arc;

use quiver_control::{Registry, by_interface, of_each, order};
use quiver_core::Engine;
use quiver_core::graph::arc::{FeatureSpec, Phase};

use crate::config::Shapers;
use crate::tables::Shared;

/// Register the node and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("shaper", "shapers: rates of subscribers in a hierarchy, with fair queues");
    let shared = Arc::new(Shared::new());
    registry.graph.node(node::spec(&shared));
    let (arc, phase) = ("interface-output", Phase::Policy);
    registry.graph.feature(FeatureSpec { arc, node: node::NAME, phase, after: &[] });
    commands::register(registry);
    subscriber_commands::register(registry);
    shows::register(registry);
    let shapers = of_each(commands::names, commands::write_shaper);
    registry.running_config_in_slices(order::RESOURCES, shapers);
    let subscribers = of_each(subscriber_commands::ids, subscriber_commands::write_subscriber);
    registry.running_config_in_slices(order::RESOURCES, subscribers);
    registry.running_config_in_slices(order::FEATURES, by_interface(commands::write_interface));
    let epochs = registry.graph.epochs().clone();
    registry.on_start(move |engine| {
        engine.insert(Shapers::new(shared, &epochs));
        engine.on_interface_change(config::follow_interface);
        engine.on_turn(|engine: &mut Engine| {
            if let Some(shapers) = engine.get_mut::<Shapers>() {
                shapers.subscribers.collect();
            }
        });
        metrics::start(engine);
    });
}
