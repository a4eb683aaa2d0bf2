#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod advertisement;
mod commands;
mod config;
mod host;
mod message;
mod neighbor_routers;
mod notifications;
mod sender;
mod shows;
mod solicitation;
mod state;

use quiver_control::{Registry, order};
use quiver_wire::icmp6::kind;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature(
        "router-advertisement",
        "Tells IPv6 hosts their prefixes, router and name servers",
    );
    registry.topic(&sender::ROUTER_ADVERTISEMENT);
    registry.graph.node(solicitation::spec());
    registry.graph.node(advertisement::spec());
    registry.graph.claim("icmp6-type", kind::ROUTER_SOLICITATION.into(), solicitation::NAME);
    registry.graph.claim("icmp6-type", kind::ROUTER_ADVERTISEMENT.into(), advertisement::NAME);
    commands::register(registry);
    shows::register(registry);
    host::register(registry);
    registry.running_config(order::FEATURES, commands::write_config);
    registry.on_start(sender::start);
}
