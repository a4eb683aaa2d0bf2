#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs, clippy::missing_errors_doc)]

pub mod bulk;
pub mod change;
mod commands;
mod counts;
pub mod feed;
mod metrics;
pub mod outcome;
mod shows;
mod state;
pub mod texts;
pub mod translator;

use quiver_control::{ConfigWriter, Registry};
use quiver_core::Engine;

pub use crate::state::forget;
pub use crate::texts::Texts;
use crate::translator::Translator;

/// Register the commands and shows of a translator's link.
pub fn register<T: Translator>(registry: &mut Registry) {
    commands::register::<T>(registry);
    shows::register::<T>(registry);
}

/// Begin without a link, when the router starts.
pub fn start<T: Translator>(engine: &mut Engine) {
    engine.insert(state::Standby::<T>::default());
    engine.on_turn(state::turn::<T>);
    metrics::start::<T>(engine);
}

/// Write what is configured of a translator's link.
pub fn write_config<T: Translator>(engine: &Engine, config: &mut ConfigWriter) {
    commands::write::<T>(engine, config);
}
