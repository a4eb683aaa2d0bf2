//! What follows from neighbours: complete adjacencies, and host routes on connected subnets.

use std::net::IpAddr;

use quiver_core::InterfaceId;
use quiver_wire::MacAddress;

use super::adjacencies::AdjacencyKey;
use super::path::{Family, Path, Source};
use super::routes::is_unicast;
use super::{Fib, FibError};
use crate::neighbour::{Learned, Neighbours};
use crate::prefix::IpPrefix;

impl Fib {
    /// The neighbours.
    pub fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    /// At most `limit` dynamic neighbours from now on.
    pub fn set_neighbour_limit(&mut self, limit: usize) {
        self.neighbours.set_limit(limit);
    }

    /// Mark a neighbour as not heard from; it stays in use.
    pub fn set_neighbour_stale(&mut self, interface: InterfaceId, address: IpAddr) {
        self.neighbours.set_stale(interface, address);
    }

    /// A neighbour was heard (ARP, ND).
    pub fn learn_neighbour(
        &mut self,
        interface: InterfaceId,
        address: IpAddr,
        mac: MacAddress,
        now_ms: u64,
    ) -> Result<Learned, FibError> {
        self.check_neighbour(interface, address, mac)?;
        match self.neighbours.would_learn(interface, address, mac) {
            Learned::Full => return Err(FibError::NeighboursFull(self.neighbours.limit())),
            Learned::StaticStands => return Ok(Learned::StaticStands),
            Learned::Refreshed | Learned::Changed => {}
        }
        let learned = self.neighbours.learn(interface, address, mac, now_ms);
        if learned == Learned::Changed
            && let Err(error) = self.neighbour_changed(interface, address)
        {
            self.neighbours.remove(interface, address);
            self.refresh_neighbour(interface, address);
            return Err(error);
        }
        Ok(learned)
    }

    /// A neighbour is configured.
    pub fn set_static_neighbour(
        &mut self,
        interface: InterfaceId,
        address: IpAddr,
        mac: MacAddress,
        now_ms: u64,
    ) -> Result<(), FibError> {
        self.check_neighbour(interface, address, mac)?;
        self.neighbours.set_static(interface, address, mac, now_ms);
        if let Err(error) = self.neighbour_changed(interface, address) {
            self.neighbours.remove(interface, address);
            self.refresh_neighbour(interface, address);
            return Err(error);
        }
        Ok(())
    }

    /// Forget a neighbour; whoever sends to it asks again.
    pub fn remove_neighbour(&mut self, interface: InterfaceId, address: IpAddr) -> Result<(), FibError> {
        self.neighbours.remove(interface, address).ok_or(FibError::NoNeighbour(interface, address))?;
        self.refresh_neighbour(interface, address);
        self.refresh_neighbour_route(interface, address)
    }

    fn check_neighbour(
        &mut self,
        interface: InterfaceId,
        address: IpAddr,
        mac: MacAddress,
    ) -> Result<(), FibError> {
        if !self.interfaces.contains_key(&interface) {
            return Err(FibError::NoInterface { asked: format!("neighbour {address}"), interface });
        }
        if !is_unicast(address) {
            return Err(FibError::BadNeighbour(address));
        }
        if !mac.is_unicast() {
            return Err(FibError::BadMac(mac));
        }
        // One adjacency for each family of packets, and one for the host route.
        if self.adjacencies.slots().has_room(3) {
            Ok(())
        } else {
            Err(FibError::AdjacenciesFull(self.limits.adjacencies))
        }
    }

    fn neighbour_changed(&mut self, interface: InterfaceId, address: IpAddr) -> Result<(), FibError> {
        self.refresh_neighbour(interface, address);
        self.refresh_neighbour_route(interface, address)
    }

    fn refresh_neighbour(&mut self, interface: InterfaceId, address: IpAddr) {
        let key = |payload| AdjacencyKey { interface, payload, next_hop: Some(address) };
        self.refresh_adjacencies(&[key(Family::Ip4), key(Family::Ip6)]);
    }

    /// A neighbour on a connected subnet has a host route; one elsewhere must not draw traffic.
    fn refresh_neighbour_route(&mut self, id: InterfaceId, address: IpAddr) -> Result<(), FibError> {
        let Some(interface) = self.interfaces.get(&id) else { return Ok(()) };
        let (table, prefix) = (interface.table_of(address), IpPrefix::host(address));
        let wanted = interface.connects(address)
            && interface.info.mac.is_some()
            && self.neighbours.get(id, address).is_some();
        let path = Path::via(address, Some(id));
        let said = self.said(table, prefix, Source::Neighbour);
        let ours = said.and_then(|group| self.lists.get(group)).is_some_and(|list| list.key.paths == [path]);
        match (wanted, ours) {
            (true, false) => self.replace_route(table, prefix, Source::Neighbour, &[path]),
            (false, true) => self.remove_route(table, prefix, Source::Neighbour),
            _ => Ok(()),
        }
    }

    /// After the subnets of an interface changed.
    pub(super) fn refresh_neighbour_routes(&mut self, id: InterfaceId) -> Result<(), FibError> {
        let addresses: Vec<_> = self.neighbours.on(id).map(|(address, _)| address).collect();
        addresses.into_iter().try_for_each(|address| self.refresh_neighbour_route(id, address))
    }
}
