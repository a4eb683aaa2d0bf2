#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod group;
mod input;
mod message;
mod notifications;
mod port;
mod proxy;
mod querier;
mod router;
mod router_commands;
mod router_shows;
mod sender;
mod shows;
mod state;

use quiver_control::{Registry, order};
use quiver_wire::{IpProtocol, mld};

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature(
        "group-membership",
        "IGMP and MLD: tells routers which groups this one listens to, asks hosts, and is a proxy \
         for them",
    );
    registry.graph.node(input::spec(false));
    registry.graph.node(input::spec(true));
    registry.graph.claim("ip4-protocol", IpProtocol::IGMP.0.into(), input::name(false));
    for kind in [mld::kind::QUERY, mld::kind::REPORT_V1, mld::kind::DONE, mld::kind::REPORT_V2] {
        registry.graph.claim("icmp6-type", kind.into(), input::name(true));
    }
    commands::register(registry);
    shows::register(registry);
    router_commands::register(registry);
    router_shows::register(registry);
    registry.topic(&router::GROUP_MEMBERSHIP);
    registry.running_config(order::FEATURES, commands::write_config);
    registry.running_config(order::FEATURES, router_commands::write_config);
    registry.on_start(sender::start);
}
