#![doc = include_str!("../README.md")]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod config;
mod connection;
mod copy;
mod driver;
mod guard;
mod handshake;
#[cfg(test)]
mod hostile;
mod interrupt;
mod lend;
mod link;
pub mod protocol;
mod reasons;
mod receive;
mod region;
mod ring;
#[cfg(test)]
#[path = "../tests/router/mod.rs"]
mod router;
mod show;
mod slots;
mod socket;
mod state;
mod transmit;

use quiver_control::{Registry, order};

#[cfg(test)]
extern crate self as quiver_memif;

pub use config::{
    BUFFER_BYTES_DEFAULT, BUFFER_BYTES_MAX, BUFFER_BYTES_MIN, MTU_BYTES_DEFAULT, MemifConfig,
    MemifError, Mode, QUEUES_MAX, RING_SIZE_DEFAULT, RING_SIZE_MAX, RING_SIZE_MIN, Role,
};
pub use driver::{
    INPUT_NODE, SOCKET_FILE_DEFAULT, add_socket, create, declare, delete, delete_socket,
    disconnect_reason, is_connected, socket_of_path,
};
pub use reasons::MemifReason;

/// Register the driver.
pub fn register(registry: &mut Registry) {
    registry.feature("memif", "packets through shared memory, both roles");
    declare(&mut registry.graph);
    commands::register(registry);
    registry.running_config_in_slices(order::RESOURCES, commands::begin_sockets);
    registry.running_config_in_slices(order::INTERFACES, commands::begin_interfaces);
}
