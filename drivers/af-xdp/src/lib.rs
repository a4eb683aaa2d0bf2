#![doc = include_str!("../README.md")]
#![warn(clippy::missing_errors_doc)]

mod bpf;
mod commands;
mod interface;
mod live;
mod program;
mod receive;
mod ring;
mod socket;
mod transmit;

use quiver_control::{Registry, of_each_interface, order};
use quiver_core::NodeSpec;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_linux::RxDrop;

pub use interface::{
    QUEUES_MAX, RING_FRAMES, RING_FRAMES_MAX, RING_FRAMES_MIN, Transmit, XdpConfig, XdpError,
    create_interface, delete_interface,
};
pub use live::FRAME_BYTES_MAX as LIVE_FRAME_BYTES_MAX;

/// Register the driver.
pub fn register(registry: &mut Registry) {
    registry.feature("af-xdp", "Linux network devices, by AF_XDP sockets");
    registry.graph.node(
        NodeSpec::input("af-xdp-input", "Frames from Linux network devices, by AF_XDP")
            .reasons::<RxDrop>()
            .describe(|record, names| {
                format!("{} bytes from {}", record.packet_bytes, names.interface(record.rx))
            }),
    );
    commands::register(registry);
    let interfaces = of_each_interface(commands::ids, commands::write_interface);
    registry.running_config_in_slices(order::INTERFACES, interfaces);
    registry.on_start(|engine| {
        engine.insert(interface::Interfaces::default());
        engine.on_interface_change(|engine, id, change| {
            if change == InterfaceChange::Deleted
                && let Some(interfaces) = engine.get_mut::<interface::Interfaces>()
            {
                interfaces.configs.remove(&id);
            }
        });
    });
}
