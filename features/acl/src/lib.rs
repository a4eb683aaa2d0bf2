#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod acl;
mod changes;
mod commands;
mod compiled;
mod config;
mod element;
mod ethertype_commands;
mod ethertypes;
mod fields;
mod file;
mod filter;
mod icmp;
mod lists;
mod log;
mod log_commands;
mod log_config;
mod long;
mod macip;
mod macip_commands;
mod metrics;
mod named_set;
mod placing;
mod rebuild;
mod rules;
mod session;
mod session_commands;
mod session_config;
mod session_shows;
mod set_commands;
mod set_config;
mod set_file;
mod set_shows;
mod shows;
mod slow_path;
mod startup;
mod stateful;
mod tables;

use std::sync::Arc;

use quiver_access_lists::{ListUsers, Provider};
use quiver_control::{Registry, by_interface, order};
use quiver_core::graph::arc::{DEVICE_INPUT, FeatureSpec, INTERFACE_OUTPUT, Phase};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{Ip4, Ip6};

use crate::config::Lists;
use crate::ethertype_commands::Whitelists;
use crate::ethertypes::EthertypeTables;
use crate::filter::{Place, spec};
use crate::log_config::{AclLog, Rings};
use crate::macip::{MACIP, MacipTables};
use crate::macip_commands::MacipLists;
use crate::tables::{Attached, Direction};

pub use startup::startup;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("acl", "Access lists: who may pass, by addresses, protocols and ports");
    quiver_access_lists::register(registry);
    let attached = Arc::new(Attached::new(registry.graph.epochs()));
    let rings = Rings::default();
    let workers = registry.graph.workers();
    let (arc4, arc6) = (registry.graph.arc("ip4-unicast"), registry.graph.arc("ip6-unicast"));
    registry.graph.node(slow_path::spec([arc4, arc6], &attached));
    registry.graph.node(spec::<Ip4, 0>(arc4, &attached, &rings));
    registry.graph.node(spec::<Ip6, 0>(arc6, &attached, &rings));
    registry.graph.node(spec::<Ip4, 1>(DEVICE_INPUT, &attached, &rings));
    registry.graph.node(spec::<Ip6, 1>(DEVICE_INPUT, &attached, &rings));
    registry.graph.node(spec::<Ip4, 2>(INTERFACE_OUTPUT, &attached, &rings));
    registry.graph.node(spec::<Ip6, 2>(INTERFACE_OUTPUT, &attached, &rings));
    for place in [Place::Routed, Place::LayerTwo, Place::Sent] {
        for family in [Family::Ip4, Family::Ip6] {
            let (arc, node) = (place.arc(family), place.node(family));
            registry.graph.feature(FeatureSpec { arc, node, phase: Phase::Filter, after: &[] });
        }
    }
    let macip = Arc::new(MacipTables::new(registry.graph.epochs()));
    registry.graph.node(macip::spec(&macip));
    registry.graph.feature(FeatureSpec {
        arc: "device-input",
        node: MACIP,
        phase: Phase::Filter,
        after: &[],
    });
    let ethertypes = Arc::new(EthertypeTables::new(registry.graph.epochs()));
    registry.graph.node(ethertypes::spec::<false>(&ethertypes));
    registry.graph.node(ethertypes::spec::<true>(&ethertypes));
    for direction in Direction::ALL {
        let (arc, node) = (direction.frame_arc(), direction.ethertype_node());
        registry.graph.feature(FeatureSpec { arc, node, phase: Phase::Filter, after: &[] });
    }
    set_commands::register(registry);
    set_shows::register(registry);
    commands::register(registry);
    shows::register(registry);
    session_commands::register(registry);
    session_shows::register(registry);
    log_commands::register(registry);
    macip_commands::register(registry);
    ethertype_commands::register(registry);
    registry.running_config(order::RESOURCES, session_commands::write_table);
    registry.running_config_in_slices(order::RESOURCES, set_commands::write_sets);
    registry.running_config_in_slices(order::RESOURCES, commands::write_lists);
    registry
        .running_config_in_slices(order::FEATURES, by_interface(set_commands::write_interfaces));
    registry.running_config_in_slices(order::FEATURES, by_interface(commands::write_attached));
    registry.running_config(order::FEATURES, commands::write_settings);
    registry.running_config(order::LIMITS, session_commands::write_settings);
    registry.running_config(order::RESOURCES, macip_commands::write_lists);
    registry
        .running_config_in_slices(order::FEATURES, by_interface(macip_commands::write_attached));
    registry.running_config_in_slices(
        order::FEATURES,
        by_interface(ethertype_commands::write_interface),
    );
    registry.running_config(order::LIMITS, log_commands::write_config);
    registry.on_start(move |engine| {
        engine.insert(Lists::new(attached, workers));
        let provider = Provider { hold: config::hold, release: config::release };
        engine.with(|_, users: &mut ListUsers| users.provide(provider));
        engine.insert(AclLog::new(rings));
        metrics::start(engine);
        engine.insert(MacipLists::new(macip));
        engine.insert(Whitelists::new(ethertypes));
        engine.on_interface_change(config::follow_interface);
        engine.on_interface_change(macip_commands::follow_interface);
        engine.on_interface_change(ethertype_commands::follow_interface);
        engine.on_turn(|engine| {
            if let Some(lists) = engine.get_mut::<Lists>() {
                lists.sets.collect();
            }
            rebuild::turn(engine);
            log_config::turn(engine);
        });
    });
}
