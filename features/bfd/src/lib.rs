#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod auth;
mod bond_commands;
mod bonds;
mod commands;
mod config;
pub mod datagram;
pub mod dplane;
pub mod echo;
mod follow;
mod input;
mod member;
mod metrics;
mod peers;
mod reasons;
pub mod session;
pub mod shared;
mod show;
mod template;
pub mod wheel;

use quiver_control::aggregates::MEMBER_UDP_PORT;
use quiver_control::{Registry, order};
use quiver_wire::bfd::MEMBER_PORT;

use crate::config::Bfd;
use crate::shared::Writer;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("bfd", "BFD: finds out within milliseconds that a neighbour is not reached");
    let writer = Writer::new(registry.graph.epochs());
    let Some(writer) = registry.require(writer) else { return };
    registry.topic(&follow::BFD);
    registry.graph.node(input::spec(writer.shared()));
    registry.graph.node(member::spec());
    registry.graph.claim(MEMBER_UDP_PORT, MEMBER_PORT.into(), member::NODE);
    for port in input::PORTS {
        registry.graph.claim("udp4-port", port.into(), input::NODE);
        registry.graph.claim("udp6-port", port.into(), input::NODE);
    }
    commands::register(registry);
    bond_commands::register(registry);
    show::register(registry);
    registry.running_config(order::FEATURES, commands::write_config);
    let bfd = Bfd::new(writer, registry.graph.workers());
    registry.on_start(move |engine| {
        follow::start(engine, bfd);
        metrics::start(engine);
    });
}
