//! What a liveness protocol (BFD, RFC 5882) says of neighbours: by one that is down no route sends.
//! What is for the neighbour itself still goes to it.

use std::net::IpAddr;

use quiver_core::InterfaceId;
use quiver_tables::GroupId;

use super::Fib;
use super::path::Family;
use super::path_list::Tracked;

/// A neighbour on an interface, or, without one, a next hop that routes of table 0 lead to.
pub type Watched = (Option<InterfaceId>, IpAddr);

impl Fib {
    /// Let no path lead through a neighbour that is not alive, or let paths lead through it again.
    /// Traffic moves to the paths that are left by one store for each group of them.
    ///
    /// Without an interface: through a next hop that table 0 says how to reach. A path to it of
    /// [`Target::Through`](super::path::Target::Through) with `table: Some(0)` and no condition is
    /// used in any case: it carries the packets of the liveness protocol itself.
    pub fn set_neighbour_alive(&mut self, watched: Watched, is_alive: bool) {
        let changed = match is_alive {
            true => self.dead.remove(&watched),
            false => self.dead.insert(watched),
        };
        if !changed {
            return;
        }
        self.liveness_changes = self.liveness_changes.wrapping_add(1);
        let mut users = self.paths_through(watched);
        users.sort_unstable();
        users.dedup();
        self.resolve_again(users);
    }

    fn paths_through(&self, (interface, address): Watched) -> Vec<GroupId> {
        let Some(interface) = interface else {
            let tracked = Tracked { family: Family::of(address), table: 0, address };
            return self.lists.tracking(&tracked);
        };
        // On an interface without neighbours the adjacency names nobody.
        [Some(address), None]
            .into_iter()
            .flat_map(|next_hop| self.adjacencies.towards(interface, next_hop))
            .flat_map(|key| self.adjacencies.users(key))
            .collect()
    }

    /// Does a liveness protocol say that this neighbour is down?
    pub fn is_neighbour_dead(&self, watched: Watched) -> bool {
        self.dead.contains(&watched)
    }

    /// How often [`is_neighbour_dead`](Self::is_neighbour_dead) has changed for any neighbour: a
    /// feature that follows neighbours compares it on each turn of the control loop.
    pub fn liveness_changes(&self) -> u64 {
        self.liveness_changes
    }
}
