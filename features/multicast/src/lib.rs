#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod ends;
mod lookup;
mod replicate;
mod rpf;
mod shows;
mod signal;
mod state;

use quiver_control::{Registry, along, order};
use quiver_forwarding::mfib::Mfib;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("multicast", "Forwards packets to groups, IPv4 and IPv6, by multicast routes");
    let epochs = registry.graph.epochs().clone();
    let mfib = Mfib::new(&epochs, registry.graph.workers());
    let Some(mfib) = registry.require(mfib) else { return };
    for six in [false, true] {
        registry.graph.node(lookup::spec(six, mfib.tables()));
        registry.graph.node(rpf::spec(six, mfib.tables()));
        registry.graph.node(replicate::spec(six, mfib.tables()));
    }
    commands::register(registry);
    shows::register(registry);
    registry.running_config_in_slices(order::ROUTES, along(commands::write_config));
    registry.memory(shows::memory);
    registry.on_start(move |engine| state::start(engine, mfib));
}
