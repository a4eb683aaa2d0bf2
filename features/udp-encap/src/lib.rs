#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod decap;
mod decap_commands;
mod header;

use quiver_control::{Registry, order};
use quiver_encap::tunnel;
use quiver_forwarding::ip::{Ip4, Ip6};

pub use crate::header::UdpEncap;

/// `udp4-encap-ip4` and its siblings: the outer family, then the inner one.
pub type Encap<O, F> = tunnel::TunnelEncap<UdpEncap, O, F>;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("udp-encap", "UDP encapsulation: packets behind an IP and a UDP header");
    if !tunnel::register_nodes::<UdpEncap>(registry) {
        return;
    }
    let ports = decap::Ports::new(registry.graph.epochs());
    registry.graph.node(decap::spec::<Ip4>(&ports));
    registry.graph.node(decap::spec::<Ip6>(&ports));
    commands::register(registry);
    decap_commands::register(registry);
    registry.running_config(order::INTERFACES, commands::write_config);
    registry.running_config(order::FEATURES, commands::write_states);
    registry.running_config(order::FEATURES, decap_commands::write_config);
    registry.on_start(move |engine| engine.insert(decap_commands::Decaps::new(ports)));
}
