#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod classify;
mod commands;
mod config;
mod contexts;
mod description;
mod fragment;
mod full;
mod key;
mod node;
mod reasons;
mod store;
mod tables;
mod virtual_reassembly;

use quiver_control::{Registry, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};

pub use crate::classify::SortFragments;
use crate::config::Reassembly;
use crate::tables::Kind;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("reassembly", "Fragments put together, in full or virtually");
    let graph = &mut registry.graph;
    let state = Reassembly::new(graph.pool(), graph.workers());
    let pool = graph.pool().clone();
    let (arc4, arc6) = (graph.arc(Kind::Full4.arc()), graph.arc(Kind::Full6.arc()));
    for kind in Kind::ALL {
        let arc = if kind.is_six() { arc6 } else { arc4 };
        graph.node(node::spec(kind, state.shared(), &pool, arc));
    }
    graph.node(classify::spec::<false, false>(arc4));
    graph.node(classify::spec::<false, true>(arc6));
    graph.node(classify::spec::<true, false>(arc4));
    graph.node(classify::spec::<true, true>(arc6));
    // A packet that full reassembly has put together needs no virtual reassembly.
    const AFTER: [&[&str]; 4] = [&[], &[], &[Kind::Full4.feature()], &[Kind::Full6.feature()]];
    for (kind, after) in Kind::ALL.into_iter().zip(AFTER) {
        let (arc, node) = (kind.arc(), kind.feature());
        graph.feature(FeatureSpec { arc, node, phase: Phase::Reassembly, after });
    }
    commands::register(registry);
    registry.running_config(order::FEATURES, commands::write_config);
    let interfaces = quiver_control::by_interface(commands::write_interface);
    registry.running_config_in_slices(order::FEATURES, interfaces);
    registry.memory(config::memory);
    registry.on_start(|engine| config::start(engine, state));
}
