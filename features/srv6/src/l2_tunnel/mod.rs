//! Layer 2 tunnels: interfaces that send frames by SR policies, and receive those of the SIDs that
//! name them (End.DT2U, End.DT2M: RFC 8986 §4.11, §4.12). In a bridge domain such an interface
//! stands for the remote end.

mod commands;
mod output;
mod tunnels;

use quiver_control::{Registry, order};

pub use output::TunnelL2;
pub(crate) use tunnels::Tunnels;

/// Register the node and the commands.
pub(crate) fn register(registry: &mut Registry) {
    let tunnels = Tunnels::new(registry.graph.epochs());
    registry.graph.node(output::spec(tunnels.next_nodes()));
    commands::register(registry);
    registry.running_config(order::INTERFACES, commands::write_created);
    registry.running_config(order::FEATURES, commands::write_policies);
    registry.on_start(|engine| tunnels::start(engine, tunnels));
}
