//! SR-MPLS policies (RFC 9256): lists of segments behind a binding label, and prefixes that are
//! steered into them. The first segment of a list is a label of table 0: its route says where
//! packets go, with which label in its place.

mod commands;
mod config;

use quiver_control::{Registry, order};

/// Register the commands.
pub(crate) fn register(registry: &mut Registry) {
    commands::register(registry);
    registry.running_config(order::FEATURES, commands::write_config);
    registry.on_start(|engine| engine.insert(config::Policies::default()));
}
