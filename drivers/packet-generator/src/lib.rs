#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod edit;
mod queue;
mod sink;
mod streams;
mod template;
pub mod text;

use quiver_control::{Registry, of_each_interface, order};
use quiver_core::NodeSpec;
use quiver_core::control::interfaces::InterfaceChange;

pub use edit::{ChecksumField, Edit, Order};
pub use queue::CATCH_UP_NS_MAX;
pub use sink::{INSTANCE_MAX, MTU_BYTES, create_interface};
pub use streams::{
    EDITS_MAX, STREAMS_MAX, StreamConfig, StreamCounts, StreamError, add_stream, delete_stream,
    disable_stream, enable_stream, stream_counts, stream_names,
};
pub use template::{PACKET_BYTES_MAX, STREAM_BYTES_MAX};

/// Register the driver.
pub fn register(registry: &mut Registry) {
    registry
        .feature("packet-generator", "streams of made-up packets, and interfaces that only count");
    registry.graph.node(
        NodeSpec::input("pg-input", "Packets that streams of the packet generator make").describe(
            |record, names| {
                format!("made {} bytes on {}", record.packet_bytes, names.interface(record.rx))
            },
        ),
    );
    commands::register(registry);
    let interfaces = of_each_interface(commands::interface_ids, commands::write_interface);
    registry.running_config_in_slices(order::INTERFACES, interfaces);
    registry.running_config(order::STREAMS, commands::write_streams);
    registry.on_start(|engine| {
        engine.insert(streams::Streams::default());
        engine.on_interface_change(|engine, interface, change| {
            if change == InterfaceChange::Deleted {
                streams::interface_deleted(engine, interface);
            }
        });
    });
}
