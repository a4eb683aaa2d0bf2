#![doc = include_str!("../README.md")]
#![warn(clippy::missing_errors_doc)]

mod batch;
mod commands;
mod host;
mod receive;
mod ring;
mod socket;
mod transmit;

use quiver_control::{Registry, of_each_interface, order};
use quiver_core::NodeSpec;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_linux::RxDrop;

pub use host::{HostConfig, HostError, QUEUES_MAX, create_host_interface, delete_host_interface};
pub use ring::RING_BYTES;

/// Register the driver.
pub fn register(registry: &mut Registry) {
    registry.feature("af-packet", "Linux network devices, by packet sockets");
    registry.graph.node(
        NodeSpec::input("af-packet-input", "Frames from Linux network devices")
            .reasons::<RxDrop>()
            .describe(|record, names| {
                format!("{} bytes from {}", record.packet_bytes, names.interface(record.rx))
            }),
    );
    commands::register(registry);
    registry.running_config_in_slices(
        order::INTERFACES,
        of_each_interface(commands::ids, commands::write_host),
    );
    registry.on_start(|engine| {
        engine.insert(host::Hosts::default());
        engine.on_interface_change(|engine, id, change| {
            if change == InterfaceChange::Deleted
                && let Some(hosts) = engine.get_mut::<host::Hosts>()
            {
                hosts.configs.remove(&id);
            }
        });
    });
}
