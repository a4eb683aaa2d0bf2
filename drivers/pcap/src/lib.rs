#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod config;
mod driver;
mod file;
mod receive;
mod transmit;

use quiver_control::{Registry, of_each_interface, order};

pub use config::{
    MTU_BYTES_DEFAULT, PACKET_BYTES_MAX, PcapConfig, PcapDriverError, RX_BYTES_MAX, RX_PACKETS_MAX,
};
pub use driver::{INPUT_NODE, create, declare, delete};

/// Register the driver.
pub fn register(registry: &mut Registry) {
    registry.feature(
        "pcap",
        "files as interfaces: what comes in from one, what is sent goes to another",
    );
    declare(&mut registry.graph);
    commands::register(registry);
    let interfaces = of_each_interface(commands::ids, commands::write_interface);
    registry.running_config_in_slices(order::INTERFACES, interfaces);
}
