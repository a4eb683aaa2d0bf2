//! MPLS tunnels: interfaces whose packets or frames get labels (RFC 3031 §3.27; RFC 4448 for
//! frames).

mod commands;
mod config;
mod output;

use std::sync::Arc;

use quiver_control::{Registry, order};

pub(crate) use output::{CONTROL_WORD_BYTES, PublishedEnds};

/// Register the node and the commands. What workers read of tunnels is shared.
pub(crate) fn register(registry: &mut Registry) {
    let ends: Arc<PublishedEnds> = Arc::new(output::ends(registry.graph.epochs()));
    registry.graph.share(ends.clone());
    registry.graph.node(output::spec());
    commands::register(registry);
    registry.running_config(order::INTERFACES, commands::write_created);
    registry.running_config(order::FEATURES, commands::write_paths);
    registry.on_start(move |engine| config::start(engine, ends));
}
