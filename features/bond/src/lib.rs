#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod config;
mod hash;
mod input;
pub mod lacp;
mod lacp_control;
mod mode;
mod output;
mod refresh;
mod show;
mod show_lacp;
mod slow_protocols;
pub mod tables;
mod watchers;

use quiver_control::{Registry, aggregates, of_each_interface, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};
use quiver_wire::EtherType;

pub use crate::config::Bonds;
pub use crate::hash::VLAN_TAGS_MAX;
pub use crate::mode::{Balance, Mode};

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("bond", "Bonds: several links as one interface, LACP");
    let bonds = Bonds::new(registry.graph.epochs());
    registry.graph.node(input::spec(bonds.table()));
    registry.graph.node(slow_protocols::spec(bonds.table()));
    registry.graph.claim("ethertype", u32::from(EtherType::SLOW.0), slow_protocols::NODE);
    registry.graph.feature(FeatureSpec {
        arc: "device-input",
        node: input::NODE,
        phase: Phase::Aggregation,
        after: &[],
    });
    registry.running_config_in_slices(
        order::INTERFACES,
        of_each_interface(show::ids, commands::write_bond),
    );
    registry.running_config_in_slices(
        order::MEMBERS,
        of_each_interface(show::ids, commands::write_members),
    );
    registry.on_start(move |engine| {
        engine.insert(bonds);
        engine.on_interface_change(refresh::follow_interface);
        aggregates::on_change(engine, refresh::follow_watch);
        lacp_control::start(engine);
    });
    commands::register(registry);
    show::register(registry);
    show_lacp::register(registry);
}
