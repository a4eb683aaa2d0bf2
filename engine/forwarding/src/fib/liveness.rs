//! What a liveness protocol (BFD, RFC 5882) says of neighbours: by one that is down no route sends.
//! What is for the neighbour itself still goes to it.

use std::net::IpAddr;

use quiver_core::InterfaceId;

use super::Fib;
use super::adjacencies::AdjacencyKey;
use super::path::Family;

impl Fib {
    /// Let no path lead through a neighbour that is not alive, or let paths lead through it again.
    /// Traffic moves to the paths that are left by one store for each group of them.
    pub fn set_neighbour_alive(&mut self, interface: InterfaceId, address: IpAddr, is_alive: bool) {
        let changed = match is_alive {
            true => self.dead.remove(&(interface, address)),
            false => self.dead.insert((interface, address)),
        };
        if !changed {
            return;
        }
        // On an interface without neighbours the adjacency names nobody.
        let key = |payload, next_hop| AdjacencyKey { interface, payload, next_hop };
        let mut users: Vec<_> = [Family::Ip4, Family::Ip6]
            .into_iter()
            .flat_map(|payload| [key(payload, Some(address)), key(payload, None)])
            .flat_map(|key| self.adjacencies.users(key))
            .collect();
        users.sort_unstable();
        users.dedup();
        self.resolve_again(users);
    }

    /// Does a liveness protocol say that this neighbour is down?
    pub fn is_neighbour_dead(&self, interface: InterfaceId, address: IpAddr) -> bool {
        self.dead.contains(&(interface, address))
    }
}
