//! VLANs (IEEE 802.1Q): sub-interfaces by tags, and tags rewritten.

mod calls;
mod commands;
mod frame;
mod input;
mod map;
mod matching;
mod rewrite;
mod rewrites;
mod sub_interfaces;
mod table;
mod tag_rewrite;

use quiver_control::{Registry, by_interface, of_each_interface, order};
use quiver_core::graph::arc::{FeatureSpec, Phase};

pub use input::VlanInput;

use rewrites::Rewrites;
use sub_interfaces::SubInterfaces;
use tag_rewrite::{FILTER, IN, OUT};

pub(crate) use rewrites::refresh;

/// The node's name.
pub(crate) const INPUT: &str = "vlan-input";

/// Register nodes and commands.
pub(crate) fn register(registry: &mut Registry) {
    let (sub_interfaces, rewrites) = (SubInterfaces::new(), Rewrites::new());
    let graph = &mut registry.graph;
    graph.node(input::spec(&sub_interfaces));
    graph.node(tag_rewrite::spec::<false>(rewrites.words().0));
    graph.node(tag_rewrite::spec::<true>(rewrites.words().1));
    graph.node(tag_rewrite::filter_spec(sub_interfaces.table()));
    for (arc, node, after) in [
        ("device-input", INPUT, &[][..]),
        ("device-input", IN, &[INPUT]),
        ("interface-output", OUT, &[]),
        ("interface-output", FILTER, &[OUT]),
    ] {
        graph.feature(FeatureSpec { arc, node, phase: Phase::Tags, after });
    }
    let parts = of_each_interface(sub_interfaces::ids, sub_interfaces::write_config);
    registry.running_config_in_slices(order::SUB_INTERFACES, parts);
    registry.running_config_in_slices(order::FEATURES, by_interface(rewrites::write_config));
    registry.on_start(move |engine| {
        engine.insert(sub_interfaces);
        calls::start(engine);
        engine.insert(rewrites);
        engine.on_interface_change(sub_interfaces::follow_interface);
        engine.on_interface_change(rewrites::follow_interface);
    });
    commands::register(registry);
}
