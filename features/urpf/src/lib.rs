#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod config;
mod rx;
mod source_check;
mod tables;
mod tx;

use std::sync::Arc;

use quiver_control::{Registry, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};
use quiver_forwarding::ip::{Ip4, Ip6};

use crate::config::Urpf;
use crate::tables::Checks;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry
        .feature("urpf", "Reverse path checks: drops packets whose source cannot come from there");
    let checks = Arc::new(Checks::new(registry.graph.epochs()));
    let (arc4, arc6) = (registry.graph.arc("ip4-unicast"), registry.graph.arc("ip6-unicast"));
    registry.graph.node(rx::spec::<Ip4>(arc4, &checks));
    registry.graph.node(rx::spec::<Ip6>(arc6, &checks));
    registry.graph.node(tx::spec::<Ip4>(&checks));
    registry.graph.node(tx::spec::<Ip6>(&checks));
    for (arc, node) in [
        ("ip4-unicast", "ip4-rx-urpf"),
        ("ip6-unicast", "ip6-rx-urpf"),
        ("interface-output", "ip4-tx-urpf"),
        ("interface-output", "ip6-tx-urpf"),
    ] {
        registry.graph.feature(FeatureSpec { arc, node, phase: Phase::SourceCheck, after: &[] });
    }
    commands::register(registry);
    registry.running_config_in_slices(order::FEATURES, commands::begin_config);
    registry.on_start(move |engine| {
        engine.insert(Urpf::new(checks));
        engine.on_interface_change(config::follow_interface);
    });
}
