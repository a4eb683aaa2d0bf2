#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod access;
mod action;
mod commands;
mod config;
mod field;
pub mod filter;
mod filter_commands;
pub mod key;
mod listed;
pub mod mask;
mod police;
mod request;
mod routed;
mod session_commands;
mod session_config;
mod shows;
mod tables;

use quiver_control::{Registry, by_interface, of_each, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{Ip4, Ip6};
use quiver_policing::TableKeeper;

use crate::config::Config;
use crate::filter_commands::Filters;
use crate::tables::Direction;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("classify", "classifier tables: filters of traces and captures, access lists");
    let config = Config::new(registry.graph.epochs());
    let Some(config) = registry.require(config) else { return };
    quiver_policing::register(registry);
    let tables = config.published();
    registry.graph.node(access::spec::<false>(tables));
    registry.graph.node(access::spec::<true>(tables));
    registry.graph.node(police::spec::<false>(tables));
    registry.graph.node(police::spec::<true>(tables));
    for direction in Direction::ALL {
        for node in [direction.node(), direction.policer_node()] {
            let (arc, phase) = (direction.arc(), Phase::Filter);
            registry.graph.feature(FeatureSpec { arc, node, phase, after: &[] });
        }
    }
    let (arc4, arc6) = (registry.graph.arc("ip4-unicast"), registry.graph.arc("ip6-unicast"));
    registry.graph.node(routed::spec::<Ip4>(arc4, tables));
    registry.graph.node(routed::spec::<Ip6>(arc6, tables));
    for family in [Family::Ip4, Family::Ip6] {
        let (arc, node, _) = routed::names(family);
        registry.graph.feature(FeatureSpec { arc, node, phase: Phase::Policy, after: &[] });
    }
    commands::register(registry);
    session_commands::register(registry);
    filter_commands::register(registry);
    shows::register(registry);
    let tables = of_each(session_commands::lines, session_commands::write_line);
    registry.running_config_in_slices(order::RESOURCES, tables);
    let sessions = of_each(session_commands::route_lines, session_commands::write_line);
    registry.running_config_in_slices(order::FEATURES, sessions);
    registry.running_config_in_slices(order::FEATURES, by_interface(commands::write_interface));
    registry.on_start(move |engine| {
        engine.insert(config);
        engine.insert(Filters::default());
        engine.insert(TableKeeper { set: config::set_policer_tables, get: config::policer_tables });
        engine.on_interface_change(config::follow_interface);
    });
}
