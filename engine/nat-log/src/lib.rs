#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod deterministic;
mod metrics;
mod record;
mod recorder;
mod state;
mod syslog;
mod templates;

use quiver_control::{Registry, order};

pub use crate::deterministic::{Deterministic, note_deterministic};
pub use crate::record::{Detail, Event, NatRecord};
pub use crate::recorder::{Host, Inside64, Log};
pub use crate::state::{drain, is_on, open};

/// Register commands and the log. `quiver_export` must be registered, too.
pub fn register(registry: &mut Registry) {
    registry
        .feature("nat-log", "The log of NAT: who had which address and port, by IPFIX or syslog");
    commands::register(registry);
    registry.running_config(order::RESOURCES, commands::write_config).named("nat-log");
    registry.on_start(|engine| {
        engine.insert(state::NatLog::default());
        engine.on_turn(state::turn);
        metrics::start(engine);
    });
}
