#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod bindings;
mod by_session;
mod commands;
mod config;
mod errors;
mod in2out;
mod out2in;
mod owner;
mod pool;
mod reasons;
mod running;
mod session;
mod shows;
mod standby;
mod statics;
mod tables;
mod translator;

use std::sync::Arc;

use quiver_control::{Registry, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};
use quiver_translation::own_errors::{NAT64, SPACE};

use crate::config::Nat64;
use crate::tables::Shared;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("nat64", "NAT64: hosts with IPv6 alone reach hosts with IPv4 alone");
    let shared = Arc::new(Shared::new(registry.graph.epochs()));
    let (arc4, arc6) = (registry.graph.arc("ip4-unicast"), registry.graph.arc("ip6-unicast"));
    registry.graph.node(quiver_translation::versions::fragment::spec(translator::FRAGMENT));
    registry.graph.node(owner::spec(&shared));
    registry.graph.node(in2out::spec(arc6, &shared));
    registry.graph.node(out2in::spec(arc4, &shared));
    registry.graph.node(errors::spec_hairpin(&shared));
    registry.graph.node(errors::spec_own(&shared));
    registry.graph.node(errors::spec_prefix(&shared));
    registry.graph.claim(SPACE, NAT64, errors::OWN_ERRORS);
    for (arc, node) in [("ip6-unicast", translator::IN2OUT), ("ip4-unicast", translator::OUT2IN)] {
        registry.graph.feature(FeatureSpec { arc, node, phase: Phase::Translation, after: &[] });
    }
    commands::register(registry);
    shows::register(registry);
    quiver_standby_sessions::register::<Nat64>(registry);
    registry.running_config(order::ROUTES, running::write_plugin);
    registry.running_config(order::FEATURES, running::write_config);
    registry.running_config(order::LIMITS, running::write_limits);
    registry.on_start(move |engine| {
        engine.insert(Nat64::new(shared));
        quiver_standby_sessions::start::<Nat64>(engine);
        engine.on_interface_change(config::follow_interface);
        engine.on_turn(config::look);
    });
}
