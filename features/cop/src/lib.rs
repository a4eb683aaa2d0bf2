#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod config;
mod tables;
mod whitelist;

use std::sync::Arc;

use quiver_control::{Registry, by_interface, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{Ip4, Ip6};

use crate::config::Cop;
use crate::tables::Whitelists;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("cop", "COP: lets only sources pass that a table lists, per interface");
    let lists = Arc::new(Whitelists::new());
    let (arc4, arc6) = (registry.graph.arc("ip4-unicast"), registry.graph.arc("ip6-unicast"));
    registry.graph.node(whitelist::spec::<Ip4>(arc4, &lists));
    registry.graph.node(whitelist::spec::<Ip6>(arc6, &lists));
    for (arc, node) in [Family::Ip4, Family::Ip6].map(config::place) {
        registry.graph.feature(FeatureSpec { arc, node, phase: Phase::Filter, after: &[] });
    }
    commands::register(registry);
    registry.running_config_in_slices(order::FEATURES, by_interface(commands::write_interface));
    registry.on_start(move |engine| {
        engine.insert(Cop::new(lists));
        engine.on_interface_change(config::follow_interface);
    });
}
