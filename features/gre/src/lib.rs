#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod commands;
mod header;

use quiver_control::{Registry, order};
use quiver_encap::tunnel::{self, Tunnels};

pub use crate::header::Gre;

/// `gre4-encap-ip4` and its siblings: the outer family, then the inner one.
pub type GreEncap<O, F> = tunnel::TunnelEncap<Gre, O, F>;
/// `gre4-encap-teb`, `gre6-encap-teb`.
pub type GreFrameEncap<O> = tunnel::FrameEncap<Gre, O>;
/// `gre4-input`, `gre6-input`.
pub type GreInput<O> = tunnel::TunnelInput<Gre, O>;
/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("gre", "GRE tunnels: packets and Ethernet frames over IPv4 and IPv6, with keys");
    let tunnels = tunnel::register::<Gre>(&mut registry.graph);
    let Some(tunnels) = registry.require(tunnels) else { return };
    commands::register(registry);
    registry.running_config(order::INTERFACES, commands::write_config);
    registry.memory(|engine| {
        let bytes = engine.get::<Tunnels<Gre>>().map_or(0, |tunnels| tunnels.resident_bytes() as u64);
        vec![("peers of GRE tunnels", bytes)]
    });
    registry.on_start(move |engine| tunnel::start(engine, tunnels));
}
