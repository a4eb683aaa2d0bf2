#![doc = include_str!("../README.md")]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod device;
mod maker;
mod queues;
mod tun;

use quiver_control::{Registry, of_each_interface, order};
use quiver_core::NodeSpec;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_linux::RxDrop;

pub use device::{QUEUES_MAX, TapConfig, TapError, create_tap, delete_tap};

/// Register the driver.
pub fn register(registry: &mut Registry) {
    registry.feature("tap", "network devices of Linux, one end of which is ours");
    registry.graph.node(
        NodeSpec::input("tap-input", "Frames that Linux sends on its ends of taps")
            .reasons::<RxDrop>()
            .describe(|record, names| {
                format!("{} bytes from {}", record.packet_bytes, names.interface(record.rx))
            }),
    );
    commands::register(registry);
    registry.running_config_in_slices(
        order::INTERFACES,
        of_each_interface(commands::ids, commands::write_tap),
    );
    registry.on_start(|engine| {
        engine.insert(device::Taps::default());
        engine.insert(maker::CALLS);
        engine.on_interface_change(|engine, id, change| match change {
            InterfaceChange::Mtu => device::follow_mtu(engine, id),
            InterfaceChange::Deleted => device::forget(engine, id),
            _ => {}
        });
    });
}
