#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod census;
mod commands;
mod config;
mod mapping;
mod metrics;
mod node;
mod own_errors;
mod reasons;
mod shows;
mod slots;
mod tables;
mod translator;

use std::sync::Arc;

use quiver_control::{Registry, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};
use quiver_translation::own_errors::{DET44, SPACE};

use crate::config::Det44;
use crate::tables::Shared;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("det44", "DET44: which outside port is whose follows from the configuration");
    let shared = Arc::new(Shared::new(registry.graph.epochs()));
    let arc = registry.graph.arc("ip4-unicast");
    registry.graph.node(node::spec::<true>(arc, &shared));
    registry.graph.node(node::spec::<false>(arc, &shared));
    registry.graph.node(own_errors::spec(arc, &shared));
    registry.graph.claim(SPACE, DET44, own_errors::OWN_ERRORS);
    // An interface on both sides: what comes to a session first, then what goes out.
    for (node, after) in [(node::OUT2IN, &[][..]), (node::IN2OUT, &[node::OUT2IN][..])] {
        let phase = Phase::Translation;
        registry.graph.feature(FeatureSpec { arc: config::ARC, node, phase, after });
    }
    commands::register(registry);
    shows::register(registry);
    registry.running_config(order::ROUTES, commands::write_plugin);
    registry.running_config(order::FEATURES, commands::write_config);
    registry.running_config(order::LIMITS, commands::write_timeouts);
    registry.on_start(move |engine| {
        engine.insert(Det44::new(shared));
        engine.on_interface_change(config::follow_interface);
        census::start(engine);
        metrics::start(engine);
    });
}
