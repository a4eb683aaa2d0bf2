#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod config;
mod follow;
pub mod frames;
mod guard;
mod input;
pub mod machine;
mod metrics;
mod reasons;
mod routers;
mod shared;
mod show;

use quiver_control::{Registry, order};
use quiver_wire::IpProtocol;

use crate::config::Vrrp;
use crate::shared::Shared;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("vrrp", "VRRP: several routers stand for one, and one of them forwards");
    let shared = Shared::new(registry.graph.epochs());
    let Some(shared) = registry.require(shared) else { return };
    registry.topic(&follow::VRRP);
    registry.graph.node(input::spec(&shared));
    registry.graph.node(guard::spec());
    for space in ["ip4-protocol", "ip6-protocol"] {
        registry.graph.claim(space, IpProtocol::VRRP.0.into(), input::NODE);
    }
    commands::register(registry);
    show::register(registry);
    registry.running_config(order::FEATURES, commands::write_config);
    let vrrp = Vrrp::new(shared, registry.graph.workers());
    registry.on_start(move |engine| {
        follow::start(engine, vrrp);
        metrics::start(engine);
    });
}
