#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod bindings;
mod commands;
mod config;
mod input;
mod mapping;
mod output;
mod reasons;
mod translate;

use std::sync::Arc;

use quiver_control::{Registry, by_interface, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};

use crate::bindings::Bindings;
use crate::config::Npt66;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("npt66", "NPTv6: prefixes of IPv6 translated without state (RFC 6296)");
    let bindings = Arc::new(Bindings::new(registry.graph.epochs()));
    let arc = registry.graph.arc("ip6-unicast");
    registry.graph.node(input::spec(arc, &bindings));
    registry.graph.node(output::spec(&bindings));
    for (arc, node) in config::PLACES {
        registry.graph.feature(FeatureSpec { arc, node, phase: Phase::Translation, after: &[] });
    }
    commands::register(registry);
    registry.running_config_in_slices(order::FEATURES, by_interface(commands::write_interface));
    registry.on_start(move |engine| {
        engine.insert(Npt66::new(bindings));
        engine.on_interface_change(config::follow_interface);
    });
}
