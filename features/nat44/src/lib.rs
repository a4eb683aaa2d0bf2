#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod alg;
mod bindings;
mod commands;
mod config;
mod flows;
mod icmp_error;
mod mapping_commands;
mod mapping_shows;
mod mappings;
mod node;
mod observed;
mod own_errors;
mod owned;
mod owner;
mod ports;
mod provider;
mod provider_commands;
mod provider_shows;
mod session;
mod shows;
mod sides;
mod softwires;
mod standby;
mod tables;
mod translate;

use std::sync::Arc;

use quiver_control::{Registry, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};
use quiver_translation::own_errors::{NAT44_ED, SPACE};

use crate::config::Nat44;
use crate::tables::Shared;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature(
        "nat44",
        "NAT44: IPv4 addresses and ports translated, for hosts and for a provider's subscribers",
    );
    let shared = Arc::new(Shared::new(registry.graph.epochs()));
    let arc = registry.graph.arc("ip4-unicast");
    registry.graph.node(owner::spec(arc, &shared));
    registry.graph.node(node::spec::<true>(arc, &shared));
    registry.graph.node(node::spec::<false>(arc, &shared));
    registry.graph.node(own_errors::spec(&shared));
    softwires::register(registry, arc, &shared);
    registry.graph.claim(SPACE, NAT44_ED, own_errors::OWN_ERRORS);
    // An interface on both sides: what comes to a session or a mapping first, then what goes out.
    for (node, after) in [(node::OUT2IN, &[][..]), (node::IN2OUT, &[node::OUT2IN][..])] {
        let phase = Phase::Translation;
        registry.graph.feature(FeatureSpec { arc: "ip4-unicast", node, phase, after });
    }
    commands::register(registry);
    provider_shows::register(registry);
    quiver_standby_sessions::register::<Nat44>(registry);
    alg::commands::register(registry);
    registry.running_config(order::ROUTES, commands::write_plugin);
    registry.running_config(order::FEATURES, commands::write_config);
    registry.running_config(order::LIMITS, commands::write_limits);
    registry.on_start(move |engine| {
        engine.insert(Nat44::new(shared));
        quiver_export::translated::register(engine, observed::translated);
        quiver_standby_sessions::start::<Nat44>(engine);
        alg::start(engine);
        engine.on_interface_change(config::follow_interface);
        engine.on_turn(config::look);
    });
}
