#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod client;
pub mod collect;
mod commands;
pub mod http;
mod interfaces;
mod machine;
mod nodes;
mod scrape;
mod server;
pub mod text;

use quiver_control::Registry;

pub use crate::collect::{Scope, collect, collect_each, sampled};
pub use crate::commands::startup;
pub use crate::text::{Family, Labels, Text};

/// Register the commands and the engine's own families.
pub fn register(registry: &mut Registry) {
    registry.feature("metrics", "Counters over HTTP for Prometheus, as OpenMetrics or text");
    commands::register(registry);
    registry.on_start(|engine| {
        engine.insert(scrape::Exporter::default());
        machine::start(engine);
        interfaces::start(engine);
        nodes::start(engine);
    });
}
