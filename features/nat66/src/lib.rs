#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod config;
mod enabling;
mod errors;
mod hairpin;
mod node;
mod owner;
mod pool;
mod reasons;
mod running;
mod session;
mod shows;
mod slow_path;
mod statics;
mod tables;
mod translator;

use std::sync::Arc;

use quiver_control::{Registry, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};
use quiver_translation::own_errors::{NAT66, SPACE6};

use crate::config::Nat66;
use crate::tables::Shared;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("nat66", "NAPT66: hosts with IPv6 behind few addresses of IPv6");
    let shared = Arc::new(Shared::new(registry.graph.epochs()));
    let arc = registry.graph.arc(translator::ARC);
    registry.graph.node(node::spec::<false>(arc, &shared));
    registry.graph.node(node::spec::<true>(arc, &shared));
    registry.graph.node(slow_path::spec(arc, &shared));
    registry.graph.node(hairpin::spec(arc, &shared));
    registry.graph.node(errors::spec_own(arc, &shared));
    registry.graph.claim(SPACE6, NAT66, errors::OWN_ERRORS);
    for node in [translator::OUT2IN, translator::IN2OUT] {
        let arc = translator::ARC;
        registry.graph.feature(FeatureSpec { arc, node, phase: Phase::Translation, after: &[] });
    }
    commands::register(registry);
    shows::register(registry);
    registry.running_config(order::ROUTES, running::write_plugin);
    registry.running_config(order::FEATURES, running::write_config);
    registry.running_config(order::LIMITS, running::write_limits);
    registry.on_start(move |engine| {
        engine.insert(Nat66::new(shared));
        engine.on_interface_change(config::follow_interface);
        engine.on_turn(config::look);
    });
}
