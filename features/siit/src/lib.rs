#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod config;
mod map;
mod node;
mod reasons;

use std::sync::Arc;

use quiver_control::{Registry, order};
use quiver_core::memory::epoch::Published;
use quiver_translation::versions::IP6_MTU_MIN;

use crate::config::Siit;
use crate::map::Map;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("siit", "SIIT: IPv6 and IPv4 translated into each other without state");
    let map =
        Arc::new(Published::new(registry.graph.epochs(), Map::new(None, &[], IP6_MTU_MIN as u16)));
    registry.graph.node(quiver_translation::versions::fragment::spec(node::FRAGMENT));
    registry.graph.node(node::spec_to6(&map));
    registry.graph.node(node::spec_to4(&map));
    commands::register(registry);
    registry.running_config(order::FEATURES, commands::write_config);
    registry.on_start(move |engine| engine.insert(Siit::new(map)));
}
