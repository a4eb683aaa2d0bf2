#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;

use quiver_control::{Registry, order};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_encap::tunnel::Teib;

/// Register commands.
pub fn register(registry: &mut Registry) {
    registry.feature(
        "teib",
        "TEIB: behind which outer addresses the next hops of multipoint tunnels are",
    );
    commands::register(registry);
    registry.running_config(order::NEIGHBORS, commands::write_config);
    registry.on_start(|engine| {
        engine.on_interface_change(|engine, id, change| {
            if change == InterfaceChange::Deleted {
                Teib::forget(engine, id);
            }
        });
    });
}
