//! What workers read: which table lists the sources that may come by an interface.

use quiver_core::InterfaceId;
use quiver_tables::fib::Family;

/// The lists as workers see them, replaced whole.
pub(crate) type Published = quiver_core::epoch::Published<Whitelists>;

/// Small numbers of tables, by family, then by interface.
#[derive(Clone, Debug, Default)]
pub(crate) struct Whitelists([Vec<Option<u32>>; 2]);

impl Whitelists {
    /// Let the sources of an interface's packets be looked up in a table.
    pub fn set(&mut self, family: Family, interface: InterfaceId, table: u32) {
        let places = &mut self.0[family as usize];
        if places.len() <= interface.index() {
            places.resize(interface.index() + 1, None);
        }
        places[interface.index()] = Some(table);
    }

    /// The table that lists who may come by an interface.
    #[inline(always)]
    pub fn get(&self, family: Family, interface: InterfaceId) -> Option<u32> {
        self.0[family as usize].get(interface.index()).copied().flatten()
    }
}
