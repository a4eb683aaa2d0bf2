#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod arrivals;
pub mod client;
mod client_commands;
mod clients;
mod commands;
pub mod config;
pub mod datagram;
pub mod input;
pub mod option82;
pub mod outbox;
pub mod prefixes;
pub mod reasons;
mod relay;
pub mod relay4;
pub mod relay6;
mod show;

use quiver_control::{Registry, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};
use quiver_forwarding::fib::Family;
use quiver_wire::{dhcp4, dhcp6};

use crate::config::Dhcp;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("dhcp", "DHCP: relays clients to servers, gets addresses of interfaces");
    let dhcp = Dhcp::new(registry.graph.epochs());
    let workers = registry.graph.workers();
    let (ends, mut rings4) = arrivals::rings(workers);
    registry.graph.node(input::relay_spec(Family::Ip4, &dhcp.ip4.enabled, ends));
    let (ends, mut rings6) = arrivals::rings(workers);
    registry.graph.node(input::relay_spec(Family::Ip6, &dhcp.ip6.enabled, ends));
    registry.graph.claim("udp4-port", dhcp4::SERVER_PORT.into(), input::RELAY4);
    registry.graph.claim("udp6-port", dhcp6::SERVER_PORT.into(), input::RELAY6);
    let (ends, mut rings) = arrivals::rings(workers);
    let arc = registry.graph.arc(clients::ARC);
    registry.graph.node(input::detect_spec(arc, ends));
    // In front of every check of sources: servers speak to a client that has no address yet.
    registry.graph.feature(FeatureSpec {
        arc: clients::ARC,
        node: input::DETECT,
        phase: Phase::Options,
        after: &[],
    });
    commands::register(registry);
    client_commands::register(registry);
    show::register(registry);
    registry.running_config(order::FEATURES, commands::write_config);
    registry.running_config(order::FEATURES, client_commands::write_config);
    registry.on_start(move |engine| {
        config::start(engine, dhcp);
        engine.on_turn(move |engine| {
            relay::fetch(engine, Family::Ip4, &mut rings4);
            relay::fetch(engine, Family::Ip6, &mut rings6);
            clients::fetch(engine, &mut rings);
        });
    });
}
