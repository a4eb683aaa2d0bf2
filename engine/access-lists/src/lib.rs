#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod families;
mod fields;
mod table;
mod users;

use std::sync::Arc;

use quiver_control::Registry;

pub use quiver_classifier::{Key, field};

pub use crate::families::{Twins, none_is};
pub use crate::fields::{CUT, Keyed};
pub use crate::table::{CompiledList, DENY, LISTS_MAX, ListSlot, ListTable, is_permitted};
pub use crate::users::{ListUsers, Provider, Then, hold, release};

/// Share the table of lists. Each feature that asks lists calls it; the order does not matter.
pub fn register(registry: &mut Registry) {
    let table = ListTable::new(registry.graph.epochs());
    registry.graph.share(Arc::new(table));
    registry.on_start(|engine| {
        if engine.get::<ListUsers>().is_none()
            && let Some(table) = engine.shared::<ListTable>()
        {
            engine.insert(ListUsers::new(table));
        }
    });
}
