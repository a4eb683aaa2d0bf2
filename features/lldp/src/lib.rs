#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod config;
mod input;
pub mod neighbours;
mod receive;
mod show;
pub mod table;
mod text;
mod transmit;

use quiver_control::{Registry, by_interface, order};
use quiver_core::graph::arrivals::arrivals;
use quiver_wire::EtherType;

pub use crate::config::{Lldp, Port, PortWords};

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("lldp", "LLDP: who is at the other end of a link");
    let lldp = Lldp::new(registry.graph.epochs());
    let (senders, mut received) = arrivals(registry.graph.workers(), table::LLDPDUS_WAITING_MAX);
    registry.graph.node(input::spec(lldp.enabled(), senders));
    registry.graph.claim("ethertype", u32::from(EtherType::LLDP.0), input::NODE);
    registry.running_config(order::FEATURES, commands::write_settings);
    registry.running_config_in_slices(order::FEATURES, by_interface(commands::write_port));
    registry.on_start(move |engine| {
        engine.insert(lldp);
        engine.on_interface_change(receive::follow_interface);
        engine.on_turn(move |engine| receive::fetch(engine, &mut received));
        transmit::start(engine);
    });
    commands::register(registry);
    show::register(registry);
}
