#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod address;
mod arp_termination;
mod bvi;
mod bvi_mtu;
mod calls;
mod commands;
mod description;
mod events;
mod flood;
mod forward;
mod input;
mod learn;
mod learn_requests;
mod learning;
mod membership;
mod metrics;
mod nodes;
mod startup;
mod state;
mod tables;
mod uu_forward;

use std::sync::Arc;

use quiver_control::{Registry, by_interface, of_each, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};
use quiver_tables::exact::Seed;
use quiver_tables::mac::{MAC_ENTRIES_MAX, MacWriter};

pub use crate::events::{EVENTS_KEPT, EventLog, Happened, MacEvent};
pub use crate::forward::L2Forward;
pub use crate::input::{L2FloodInput, L2Input};
pub use crate::learn::L2Learn;
use crate::learn_requests::LearnRings;
pub use crate::membership::{Join, join};
pub use crate::startup::startup;
pub use crate::state::{BridgeDomain, BridgePort, Bridges, DOMAIN_NUMBER_MAX, PortKind, Switches};
use crate::tables::{Published, View};

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature(
        "bridge",
        "Bridge domains: learning, forwarding, flooding, and a routed interface of their own",
    );
    let epochs = registry.graph.epochs().clone();
    let macs = MacWriter::new(&epochs, MAC_ENTRIES_MAX, Seed::random());
    let Some(macs) = registry.require(macs) else { return };
    let (published, offices) =
        (Arc::new(Published::new(&epochs, View::default())), LearnRings::default());
    let table = macs.table();
    registry.graph.node(input::spec(&published));
    registry.graph.node(input::flood_spec(&published));
    registry.graph.node(learn::spec::<false>(&published, &table, &offices));
    registry.graph.node(learn::spec::<true>(&published, &table, &offices));
    registry.graph.node(forward::spec(&published, &table));
    registry.graph.node(flood::spec::<false>(&published, &table));
    registry.graph.node(flood::spec::<true>(&published, &table));
    registry.graph.node(uu_forward::spec(&published));
    registry.graph.node(arp_termination::spec(&published));
    registry.graph.node(bvi::input_spec());
    registry.graph.node(bvi::output_spec());
    let (arc, node) = ("interface-output", nodes::BVI_OUTPUT);
    registry.graph.feature(FeatureSpec { arc, node, phase: Phase::Bridge, after: &[] });
    commands::register(registry);
    registry.topic(&learning::MAC);
    let domains = of_each(commands::domains::configured, commands::domains::write_config);
    registry.running_config_in_slices(order::TABLES, domains);
    registry.running_config(order::LIMITS, commands::domains::write_limits);
    let ports = by_interface(commands::ports::write_config);
    registry.running_config_in_slices(order::INTERFACE_SETTINGS, ports);
    let stations = of_each(commands::l2fib::configured_runs, commands::l2fib::write_run);
    registry.running_config_in_slices(order::NEIGHBORS, stations);
    registry.memory(|engine| {
        let bytes =
            engine.get::<Bridges>().map_or(0, |bridges| bridges.macs.usage().resident_bytes as u64);
        vec![("MAC table", bytes)]
    });
    registry.on_start(move |engine| {
        engine.insert(Bridges::new(macs, published, offices));
        calls::start(engine);
        engine.on_interface_change(membership::follow_interface);
        learning::start(engine);
        metrics::start(engine);
    });
}
