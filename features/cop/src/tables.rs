//! What workers read: which table lists the sources that may come by an interface.

use std::sync::atomic::{AtomicU32, Ordering};

use quiver_core::InterfaceId;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_forwarding::fib::Family;

/// In the place of a table's number: no list.
const NO_LIST: u32 = u32::MAX;

/// Small numbers of tables, by family, then by interface; each is one store of the control
/// thread's.
pub(crate) struct Whitelists([Box<[AtomicU32]>; 2]);

impl Whitelists {
    /// No lists.
    pub fn new() -> Whitelists {
        let none = || (0..INTERFACES_MAX).map(|_| AtomicU32::new(NO_LIST)).collect();
        Whitelists([none(), none()])
    }

    /// Let the sources of an interface's packets be looked up in a table, or in none. An interface
    /// beyond the limit there is not.
    pub fn set(&self, family: Family, interface: InterfaceId, table: Option<u32>) {
        if let Some(place) = self.0[family as usize].get(interface.index()) {
            place.store(table.unwrap_or(NO_LIST), Ordering::Release);
        }
    }

    /// The table that lists who may come by an interface.
    #[inline(always)]
    pub fn get(&self, family: Family, interface: InterfaceId) -> Option<u32> {
        let table = self.0[family as usize].get(interface.index())?.load(Ordering::Acquire);
        (table != NO_LIST).then_some(table)
    }
}
