#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
pub mod datagrams;
pub mod ipfix;
mod metrics;
pub mod moment;
pub mod records;
pub mod route;
pub mod syslog;
pub mod translated;

use quiver_control::{Registry, order};
use quiver_core::Engine;

pub use crate::commands::{check_ends, error_cell};
use crate::ipfix::exporter::IpfixExporter;
use crate::moment::Moment;
use crate::syslog::sender::SyslogSender;

/// Register commands, counters and the exporters.
pub fn register(registry: &mut Registry) {
    registry.feature("export", "Records exported to collectors: IPFIX and syslog over UDP");
    commands::ipfix::register(registry);
    commands::syslog::register(registry);
    registry.running_config(order::RESOURCES, commands::ipfix::write_config).named("ipfix");
    registry.running_config(order::RESOURCES, commands::syslog::write_config).named("syslog");
    registry.on_start(|engine| {
        engine.insert(IpfixExporter::default());
        engine.insert(SyslogSender::default());
        engine.on_turn(turn);
        metrics::start(engine);
    });
}

/// Send what has waited long enough, and templates that are due.
fn turn(engine: &mut Engine) {
    if engine.get::<IpfixExporter>().is_some_and(IpfixExporter::is_active) {
        let at = Moment::of(engine);
        if let Some(exporter) = engine.get_mut::<IpfixExporter>() {
            exporter.turn(at);
        }
    }
}
