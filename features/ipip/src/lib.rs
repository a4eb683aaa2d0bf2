#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod commands;
mod header;

use quiver_control::{Registry, order};
use quiver_encap::tunnel::{self, Tunnels};

pub use crate::header::Ipip;

/// `ipip4-encap-ip4` and its siblings: the outer family, then the inner one.
pub type IpipEncap<O, F> = tunnel::TunnelEncap<Ipip, O, F>;
/// `ipip4-input`, `ipip6-input`.
pub type IpipInput<O> = tunnel::TunnelInput<Ipip, O>;
/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("ipip", "IP in IP tunnels: IPv4 and IPv6 packets over IPv4 and IPv6");
    let tunnels = tunnel::register::<Ipip>(&mut registry.graph);
    let Some(tunnels) = registry.require(tunnels) else { return };
    commands::register(registry);
    registry.running_config(order::INTERFACES, commands::write_config);
    registry.memory(|engine| {
        let bytes = engine.get::<Tunnels<Ipip>>().map_or(0, |tunnels| tunnels.resident_bytes() as u64);
        vec![("peers of IP in IP tunnels", bytes)]
    });
    registry.on_start(move |engine| tunnel::start(engine, tunnels));
}
