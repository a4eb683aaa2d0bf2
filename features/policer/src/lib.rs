#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod class_commands;
mod class_config;
mod classes;
mod classify;
mod commands;
mod config;
mod node;
mod shows;
mod subscriber_commands;
mod subscriber_config;
mod subscriber_meters;
mod subscriber_node;
mod subscriber_numbers;
mod subscribers;
mod tables;

use std::sync::Arc;

use quiver_control::{Registry, by_interface, of_each, order};
use quiver_core::Engine;
use quiver_core::graph::arc::{FeatureSpec, Phase};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{Ip4, Ip6};

use crate::classes::Classes;
use crate::config::Config;
use crate::subscriber_config::Subscribers;
use crate::subscribers::SubscriberTables;
use crate::tables::{Attached, Direction};

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("policer", "policers: rates that packets of an interface are metered by");
    quiver_access_lists::register(registry);
    quiver_policing::register(registry);
    let tables = SubscriberTables::new(registry.graph.workers());
    let Some(tables) = registry.require(tables) else { return };
    let (attached, tables) = (Arc::new(Attached::new()), Arc::new(tables));
    let classes = Arc::new(Classes::new(registry.graph.epochs()));
    registry.graph.node(classify::spec::<Ip4, false>(&classes));
    registry.graph.node(classify::spec::<Ip6, false>(&classes));
    registry.graph.node(classify::spec::<Ip4, true>(&classes));
    registry.graph.node(classify::spec::<Ip6, true>(&classes));
    registry.graph.node(subscriber_node::spec::<false>(&tables));
    registry.graph.node(subscriber_node::spec::<true>(&tables));
    for direction in Direction::ALL {
        registry.graph.node(node::spec(direction, &attached));
        let classes = [Family::Ip4, Family::Ip6].map(|family| direction.class_node(family));
        let others = [direction.node(), direction.subscriber_node()];
        for node in classes.into_iter().chain(others) {
            let (arc, phase) = (direction.arc(), Phase::Filter);
            registry.graph.feature(FeatureSpec { arc, node, phase, after: &[] });
        }
    }
    commands::register(registry);
    class_commands::register(registry);
    subscriber_commands::register(registry);
    shows::register(registry);
    running_config(registry);
    registry.memory(|engine: &Engine| {
        let config = engine.get::<Config>();
        let bytes = config.map_or(0, |config| config.subscribers.meter_bytes());
        vec![("policers of subscribers", bytes as u64)]
    });
    let epochs = registry.graph.epochs().clone();
    registry.on_start(move |engine| {
        let Some(policers) = engine.shared() else { return };
        let subscribers = Subscribers::new(tables, &epochs);
        engine.insert(Config::new(policers, attached, classes, subscribers));
        engine.on_interface_change(config::follow_interface);
        engine.on_turn(|engine: &mut Engine| {
            if let Some(config) = engine.get_mut::<Config>() {
                config.subscribers.collect();
            }
        });
    });
}

fn running_config(registry: &mut Registry) {
    let policers = of_each(commands::names, commands::write_policer);
    registry.running_config_in_slices(order::RESOURCES, policers);
    let subscribers = of_each(subscriber_commands::prefixes, subscriber_commands::write_prefix);
    registry.running_config_in_slices(order::RESOURCES, subscribers);
    registry.running_config_in_slices(order::FEATURES, by_interface(commands::write_interface));
    let classes = by_interface(class_commands::write_interface);
    registry.running_config_in_slices(order::FEATURES, classes);
    let subscribers = by_interface(subscriber_commands::write_interface);
    registry.running_config_in_slices(order::FEATURES, subscribers);
}
