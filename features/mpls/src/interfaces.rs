//! Which interfaces take labelled packets, and in which label table they look them up.

use std::sync::atomic::{AtomicU32, Ordering};

use quiver_core::InterfaceId;
use quiver_core::graph::counters::INTERFACES_MAX;

/// The table of an interface that takes no labelled packets.
pub(crate) const NOT_ENABLED: u32 = u32::MAX;

/// The small number of each interface's label table.
pub struct MplsInterfaces(Box<[AtomicU32]>);

impl MplsInterfaces {
    /// No interface takes labelled packets.
    pub(crate) fn new() -> MplsInterfaces {
        MplsInterfaces((0..INTERFACES_MAX).map(|_| AtomicU32::new(NOT_ENABLED)).collect())
    }

    /// The label table of `interface`; [`NOT_ENABLED`] when it takes none. Packets that the router
    /// made itself and that name no interface are looked up in table 0.
    #[inline(always)]
    pub(crate) fn table(&self, interface: InterfaceId) -> u32 {
        self.0.get(interface.index()).map_or(0, |table| table.load(Ordering::Relaxed))
    }

    /// Let `interface` look labels up in a table, or take none (control thread).
    pub(crate) fn set(&self, interface: InterfaceId, table: Option<u32>) {
        if let Some(place) = self.0.get(interface.index()) {
            place.store(table.unwrap_or(NOT_ENABLED), Ordering::Release);
        }
    }
}
