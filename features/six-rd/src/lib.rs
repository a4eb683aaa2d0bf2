#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
pub mod config;
pub mod domain;
mod encap;
mod errors;
mod input;
mod output;
mod tables;

use quiver_control::Registry;
use quiver_encap::tunnel::OuterEnds;
use quiver_forwarding::ip::{Ip4, Ip6};
use quiver_wire::IpProtocol;

pub use crate::config::{SixRdConfig, SixRds};
pub use crate::encap::SixRdEncap;
pub use crate::input::SixRdInput;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("6rd", "6rd: IPv6 over IPv4 without state, by addresses that have another");
    let rds = SixRds::new(registry.graph.workers(), registry.graph.epochs());
    let Some(rds) = registry.require(rds) else { return };
    let (entries, tables) = (rds.worker_entries(), rds.tables().clone());
    let arc = registry.graph.arc("ip6-unicast");
    registry.graph.node(encap::spec::<Ip6>(&entries, &tables));
    registry.graph.node(encap::spec::<Ip4>(&entries, &tables));
    registry.graph.node(output::spec(&entries, &tables));
    registry.graph.node(input::spec(&tables, arc));
    registry.graph.node(errors::spec(&tables));
    let protocol = u32::from(IpProtocol::IPV6.0);
    registry.graph.claim(Ip4::REST_CLAIMS, protocol, input::NODE);
    registry.graph.claim(Ip4::REST_ERROR_CLAIMS, protocol, errors::NODE);
    // Reverse path checks ask for the nodes whose index is a stacked adjacency.
    registry.graph.claim("stacked-adjacency", STACKED_CLAIM, encap::NODE);
    commands::register(registry);
    registry.on_start(move |engine| config::start(engine, rds));
}

/// The number of the claim on stacked adjacencies: no protocol number of a tunnel, shifted by 8.
const STACKED_CLAIM: u32 = 0x1_0000;
