#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod addresses;
mod commands;
mod events;
mod ip4;
mod ip6;
mod ip_input;
mod local;
mod metrics;
mod neighbor;
mod nodes;
mod notifications;
mod route_drop;
mod state;

use std::sync::Arc;

use quiver_control::{Registry, by_interface, modes, order};
use quiver_forwarding::adjacency::counts::AdjacencyCounts;
use quiver_forwarding::fib::Fib;

pub use crate::commands::limits::startup;
pub use crate::state::IpState;

use crate::addresses::{autoconfig, calls, interfaces};
use crate::local::icmp_limits::IcmpLimits;
use crate::local::pending_pings::WaitingPings;
use crate::local::punt::Punts;
use crate::neighbor::control;
use crate::neighbor::pending_packets::HeldCounts;
use crate::nodes::{Numbers, Shared};
use quiver_forwarding::ip::{IpInterfaces, IpTables};

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("ip", "IPv4 and IPv6: forwarding, tables, neighbours, ICMP");
    registry.topic(&events::NEIGHBOR);
    registry.topic(&events::ROUTE);
    registry.topic(&events::DAD);
    let epochs = registry.graph.epochs().clone();
    let numbers = Numbers::begin(&mut registry.graph);
    let fib = Fib::new(&epochs, numbers.fib_nodes());
    let Some(fib) = registry.require(fib) else { return };
    let tables = IpTables {
        ip4: fib.ip4_tables().clone(),
        ip6: fib.ip6_tables().clone(),
        groups: fib.groups().clone(),
        adjacencies: fib.adjacencies().clone(),
        neighbours: fib.neighbours().generations().clone(),
        messages: Arc::default(),
        interfaces: Arc::new(IpInterfaces::new(&epochs)),
        udp_ports: Arc::default(),
    };
    let pings = Arc::new(WaitingPings::default());
    let limits = Arc::new(IcmpLimits::default());
    let held = Arc::new(HeldCounts::default());
    let punts = Punts::default();
    let counts =
        AdjacencyCounts::new(registry.graph.workers()).expect("address space for the counters");
    let counts = Arc::new(counts);
    registry.graph.share(Arc::new(tables.clone()));
    registry.graph.share(fib.label_tables().clone());
    nodes::declare(
        &mut registry.graph,
        numbers,
        &tables,
        &Shared {
            pings: &pings,
            limits: &limits,
            held: &held,
            counts: &counts,
            punts: &punts.table,
        },
    );
    commands::register(registry);
    registry.running_config(order::TABLES, commands::tables::write_config);
    registry.running_config(order::LIMITS, commands::limits::write_config);
    registry.running_config(order::INTERFACE_SETTINGS, commands::addresses::write_config);
    let own = by_interface(commands::addresses::write_own);
    registry.running_config_in_slices(order::INTERFACE_SETTINGS, own);
    let borrowed = by_interface(commands::addresses::write_borrowed);
    registry.running_config_in_slices(order::INTERFACE_SETTINGS, borrowed);
    let proxies = by_interface(commands::proxies::write_interface);
    registry.running_config_in_slices(order::INTERFACE_SETTINGS, proxies);
    registry.running_config_in_slices(order::NEIGHBORS, commands::neighbours::begin_config);
    registry.running_config_in_slices(order::ROUTES, commands::routes::begin_config);
    let hop_by_hop = by_interface(commands::hop_by_hop::write_interface);
    registry.running_config_in_slices(order::FEATURES, hop_by_hop);
    registry.memory(commands::memory::rows);
    registry.on_start(move |engine| {
        engine.insert(fib);
        engine.insert(counts);
        engine.insert(IpState::new(tables, pings, limits, held, punts));
        engine.insert(autoconfig::CALLS);
        engine.insert(calls::CALLS);
        engine.on_interface_change(interfaces::follow_interface);
        modes::ask_before_hold(engine, interfaces::stays);
        control::start(engine);
        metrics::start(engine);
    });
}
