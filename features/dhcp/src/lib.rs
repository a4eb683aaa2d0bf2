#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod client;
pub mod client6;
mod client6_commands;
mod client6_shows;
mod client_commands;
mod clients;
pub mod clients6;
mod commands;
pub mod config;
pub mod datagram;
pub mod input;
pub mod input6;
pub mod leases6;
pub mod option82;
pub mod outbox;
pub mod prefixes;
pub mod reasons;
mod relay;
pub mod relay4;
pub mod relay6;
pub mod retransmission;
mod show;

use quiver_control::{Registry, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};
use quiver_core::graph::arrivals::arrivals;
use quiver_forwarding::fib::Family;
use quiver_wire::{dhcp4, dhcp6};

use crate::config::Dhcp;
use crate::input::PACKETS_WAITING_MAX;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("dhcp", "DHCP: relays clients to servers, gets addresses of interfaces");
    let dhcp = Dhcp::new(registry.graph.epochs());
    let workers = registry.graph.workers();
    let (senders, mut relayed4) = arrivals(workers, PACKETS_WAITING_MAX);
    registry.graph.node(input::relay_spec(Family::Ip4, &dhcp.ip4.enabled, senders));
    let (senders, mut relayed6) = arrivals(workers, PACKETS_WAITING_MAX);
    registry.graph.node(input::relay_spec(Family::Ip6, &dhcp.ip6.enabled, senders));
    registry.graph.claim("udp4-port", dhcp4::SERVER_PORT.into(), input::RELAY4);
    registry.graph.claim("udp6-port", dhcp6::SERVER_PORT.into(), input::RELAY6);
    let (senders, mut replies6) = arrivals(workers, PACKETS_WAITING_MAX);
    registry.graph.node(input6::spec(&dhcp.enabled6, senders));
    registry.graph.claim("udp6-port", dhcp6::CLIENT_PORT.into(), input6::CLIENT6);
    let (senders, mut replies4) = arrivals(workers, PACKETS_WAITING_MAX);
    let arc = registry.graph.arc(clients::ARC);
    registry.graph.node(input::detect_spec(arc, senders));
    // In front of every check of sources: servers speak to a client that has no address yet.
    registry.graph.feature(FeatureSpec {
        arc: clients::ARC,
        node: input::DETECT,
        phase: Phase::Options,
        after: &[],
    });
    commands::register(registry);
    client_commands::register(registry);
    client6_commands::register(registry);
    show::register(registry);
    client6_shows::register(registry);
    registry.running_config(order::FEATURES, commands::write_config);
    registry.running_config(order::FEATURES, client_commands::write_config);
    registry.running_config(order::FEATURES, client6_commands::write_config);
    registry.on_start(move |engine| {
        config::start(engine, dhcp);
        engine.on_turn(move |engine| {
            relay::fetch(engine, Family::Ip4, &mut relayed4);
            relay::fetch(engine, Family::Ip6, &mut relayed6);
            clients::fetch(engine, &mut replies4);
            clients6::fetch(engine, &mut replies6);
        });
    });
}
