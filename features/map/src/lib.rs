#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod border;
mod commands;
mod config;
mod cut_inner;
mod decapsulate;
mod domain;
mod domain_config;
mod encapsulate;
mod errors;
mod params;
mod port_set;
mod reasons;
mod running;
mod shows;
mod tables;
mod to_customers;
mod to_ip4;
mod to_ip6;
mod upper;

use std::sync::Arc;

use quiver_control::{Registry, by_interface, of_each, order};
use quiver_wire::IpProtocol;

use crate::config::Map;
use crate::tables::Shared;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("map", "MAP-E, MAP-T and lightweight 4over6: the border relay");
    let (epochs, workers) = (registry.graph.epochs().clone(), registry.graph.workers());
    let shared = Arc::new(Shared::new(&epochs, workers));
    registry.graph.node(encapsulate::spec(&shared));
    registry.graph.node(cut_inner::spec());
    for spec in decapsulate::specs(&shared) {
        registry.graph.node(spec);
    }
    registry.graph.node(to_ip6::spec(&shared));
    registry.graph.node(to_ip4::spec(&shared));
    registry.graph.node(quiver_translation::versions::fragment::spec(border::CUT_TRANSLATED));
    // What reassembly has put together, and what has extension headers.
    let claim = "ip6-protocol-without-tunnel";
    registry.graph.claim(claim, IpProtocol::IPV4.0.into(), border::FROM_CUSTOMERS_LOCAL);
    commands::register(registry);
    params::register(registry);
    shows::register(registry);
    registry.running_config(order::FEATURES, running::write_params);
    registry.running_config_in_slices(order::FEATURES, of_each(running::keys, running::write));
    registry.running_config_in_slices(order::FEATURES, by_interface(running::write_interface));
    registry.on_start(move |engine| {
        engine.insert(Map::new(shared));
        engine.on_interface_change(config::follow_interface);
        engine.on_turn(config::collect);
    });
}
