#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod addresses;
mod apply;
mod auto_subint;
mod classes;
mod commands;
mod evpn;
mod fdb;
mod from_host;
mod labels;
mod link_state;
mod metrics;
mod mirror;
mod objects;
mod own_neighbours;
mod own_routes;
mod pairs;
mod reader;
mod routes;
mod segments;
mod show;
mod startup;
mod tables;
mod to_host;
mod twins;
mod upper_links;
mod vlan_links;

use quiver_control::{Registry, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};

use crate::classes::Limits;
use crate::mirror::Mirror;
#[cfg(feature = "lab")]
pub use crate::reader::lab;
pub use crate::startup::startup;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature(
        "linux-mirror",
        "Twins of interfaces in Linux, for routing daemons and other programs there",
    );
    let twins = twins::none(registry.graph.epochs());
    let limits = Limits::new();
    registry.graph.node(from_host::spec(&twins));
    registry.graph.node(to_host::spec(&twins, &limits));
    registry.graph.feature(FeatureSpec {
        arc: "device-input",
        node: from_host::NAME,
        phase: Phase::CrossConnect,
        after: &[],
    });
    commands::register(registry);
    show::register(registry);
    registry.running_config(order::TABLES, commands::write_config);
    registry.on_start(move |engine| {
        engine.insert(Mirror::new(twins, limits));
        engine.on_interface_change(pairs::follow_interface);
        engine.on_turn(addresses::update_twins);
        engine.on_turn(tables::follow_all);
        // Behind addresses, which routes need in Linux.
        engine.on_turn(own_routes::update_linux);
        engine.on_turn(fdb::follow_learned);
        metrics::start(engine);
        engine.every(fdb::LOOK_NS, fdb::look);
    });
}
