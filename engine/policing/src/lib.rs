#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod dscp;
mod held;
pub mod meter;
mod policers;
mod tables;
mod users;

use std::sync::Arc;

use quiver_control::Registry;

pub use crate::held::{Held, Neighbours};
pub use crate::policers::{
    Action, Count, Counts, NO_POLICER, POLICERS_MAX, Policer, Policers, Terms, Verdict,
};
pub use crate::tables::{PolicerTables, TableKeeper, set_tables, tables_of};
pub use crate::users::{PolicerNames, hold, release, unknown};

/// Share the policers. Each feature that meters by them calls it; the order does not matter.
pub fn register(registry: &mut Registry) {
    let policers = Policers::new(registry.graph.epochs());
    registry.graph.share(Arc::new(policers));
    registry.on_start(|engine| {
        if engine.get::<PolicerNames>().is_none() {
            engine.insert(PolicerNames::default());
        }
    });
}
