#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod clock;
mod commands;
mod config;
mod exporting;
mod flow;
mod flows;
mod headers;
mod key;
mod metrics;
mod plain;
mod probe;
mod shared;
mod shows;
mod templates;

use std::sync::Arc;

use quiver_control::{Registry, by_interface, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};

use crate::config::Flowprobe;
use crate::shared::Shared;

/// Register nodes, commands and counters. `quiver_export` must be registered, too.
pub fn register(registry: &mut Registry) {
    registry.feature("flowprobe", "Flow records of interfaces, exported by IPFIX");
    let shared = Arc::new(Shared::new(registry.graph.workers()));
    registry.graph.node(clock::spec(&shared));
    registry.graph.node(probe::spec::<false>(&shared));
    registry.graph.node(probe::spec::<true>(&shared));
    // First of what is received, last of what is sent: as it is on the wire.
    for (arc, node, phase) in [
        ("device-input", probe::name(false), Phase::Capture),
        ("interface-output", probe::name(true), Phase::CaptureSent),
    ] {
        registry.graph.feature(FeatureSpec { arc, node, phase, after: &[] });
    }
    commands::register(registry);
    shows::register(registry);
    registry.running_config(order::RESOURCES, commands::write_settings);
    registry.running_config_in_slices(order::FEATURES, by_interface(commands::write_interface));
    registry.on_start(move |engine| {
        engine.insert(Flowprobe::new(shared));
        engine.on_turn(exporting::turn);
        engine.on_interface_change(config::follow_interface);
        metrics::start(engine);
    });
}
