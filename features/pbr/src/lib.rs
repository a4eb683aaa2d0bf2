#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod config;
mod fields;
mod input;
mod listed;
mod paths;
mod tables;

use std::sync::Arc;

use quiver_control::{Registry, along, by_interface, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{Ip4, Ip6};

use crate::config::Policies;
use crate::tables::Attached;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("abf", "Policy routing: packets that match go by paths of their own");
    let attached = Arc::new(Attached::new(registry.graph.epochs()));
    let workers = registry.graph.workers();
    let (arc4, arc6) = (registry.graph.arc("ip4-unicast"), registry.graph.arc("ip6-unicast"));
    quiver_access_lists::register(registry);
    registry.graph.node(input::spec::<Ip4>(arc4, &attached));
    registry.graph.node(input::spec::<Ip6>(arc6, &attached));
    registry.graph.node(listed::spec::<Ip4>(arc4, &attached));
    registry.graph.node(listed::spec::<Ip6>(arc6, &attached));
    for (arc, nodes) in [Family::Ip4, Family::Ip6].map(tables::place) {
        for node in nodes {
            registry.graph.feature(FeatureSpec { arc, node, phase: Phase::Policy, after: &[] });
        }
    }
    commands::register(registry);
    registry.running_config_in_slices(order::FEATURES, along(commands::write_policies));
    registry.running_config_in_slices(order::FEATURES, by_interface(commands::write_attached));
    registry.on_start(move |engine| {
        engine.insert(Policies::new(attached, workers));
        engine.on_interface_change(config::follow_interface);
    });
}
