#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod agent;
mod commands;
mod config;
mod counters;
pub mod datagram;
mod discard;
mod drop_codes;
mod header;
mod input;
mod limit;
mod metrics;
mod notifications;
mod output;
mod sample;
mod sampler;
pub mod skip;
mod sources;

use std::sync::Arc;

use quiver_control::{Registry, by_interface, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};

pub use crate::agent::Agent;
use crate::sources::Shared;

/// Register nodes, commands and counters.
pub fn register(registry: &mut Registry) {
    registry.feature(
        "sflow",
        "sFlow version 5: packets sampled at random, counters of interfaces, dropped packets",
    );
    let workers = registry.graph.workers();
    let shared = Arc::new(Shared::new(workers));
    registry.graph.node(input::spec(&shared));
    registry.graph.node(output::spec(&shared));
    // First of what is received, last of what is sent: as it is on the wire.
    for (arc, node, phase) in [
        ("device-input", sampler::name(false), Phase::Capture),
        ("interface-output", sampler::name(true), Phase::CaptureSent),
    ] {
        registry.graph.feature(FeatureSpec { arc, node, phase, after: &[] });
    }
    commands::register(registry);
    registry.running_config(order::RESOURCES, commands::write_settings);
    registry.running_config_in_slices(order::FEATURES, by_interface(commands::write_interface));
    registry.on_start(move |engine| {
        engine.insert(Agent::new(shared, workers));
        engine.on_turn(agent::turn);
        engine.on_interface_change(config::follow_interface);
        metrics::start(engine);
    });
}
