//! What follows from neighbours: complete adjacencies, and host routes on connected subnets.

use std::net::IpAddr;

use quiver_core::InterfaceId;
use quiver_wire::MacAddress;

use super::adjacencies::AdjacencyKey;
use super::link::Link;
use super::path::Family;
use super::routes::is_unicast;
use super::{Fib, FibError};
use crate::neighbour::{
    Due, Learned, NeighbourChange, NeighbourConfig, NeighbourState, Neighbours,
};
use crate::next_hop_group::Hop;
use crate::out_labels::OutLabels;

impl Fib {
    /// The neighbours.
    pub fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    /// Keep the changes of neighbours for [`take_neighbour_changes`](Self::take_neighbour_changes),
    /// or no more.
    pub fn watch_neighbour_changes(&mut self, watched: bool) {
        self.neighbours.watch_changes(watched);
    }

    /// See [`Neighbours::take_changes`].
    pub fn take_neighbour_changes(&mut self) -> (std::collections::VecDeque<NeighbourChange>, u64) {
        self.neighbours.take_changes()
    }

    /// By which node and adjacency packets of a kind reach a neighbour as they are, when something
    /// leads to it.
    pub fn neighbour_hop(
        &self,
        payload: impl Into<Link>,
        interface: InterfaceId,
        address: IpAddr,
    ) -> Option<Hop> {
        let (payload, labels) = (payload.into(), OutLabels::NONE);
        let next_hop = Some(address);
        self.adjacencies.known_hop(AdjacencyKey { interface, payload, next_hop, labels })
    }

    /// Timers and limits of a family's neighbours from now on; those that are there stay.
    pub fn configure_neighbours(&mut self, family: Family, config: NeighbourConfig) {
        self.neighbours.configure(family == Family::Ip6, config);
    }

    /// A neighbour was heard (ARP, ND), and can surely be reached.
    ///
    /// # Errors
    /// The address or the MAC address is none of a host, the interface is unknown, or a table is
    /// full.
    pub fn learn_neighbour(
        &mut self,
        interface: InterfaceId,
        address: IpAddr,
        mac: MacAddress,
        now_ms: u64,
    ) -> Result<Learned, FibError> {
        self.learn_neighbour_as(NeighbourState::Reachable, interface, address, mac, now_ms)
    }

    /// A neighbour was heard (ARP, ND), and is as sure as `state` says:
    /// [`NeighbourState::Reachable`] or [`NeighbourState::Stale`].
    ///
    /// # Errors
    /// As for [`learn_neighbour`](Self::learn_neighbour).
    pub fn learn_neighbour_as(
        &mut self,
        state: NeighbourState,
        interface: InterfaceId,
        address: IpAddr,
        mac: MacAddress,
        now_ms: u64,
    ) -> Result<Learned, FibError> {
        self.check_neighbour(interface, address, mac)?;
        match self.neighbours.would_learn(interface, address, mac) {
            Learned::Full => {
                return Err(FibError::NeighboursFull(
                    self.neighbours.config(address.is_ipv6()).limit,
                ));
            }
            Learned::StaticStands => return Ok(Learned::StaticStands),
            Learned::Refreshed | Learned::Changed => {}
        }
        if let Some((on, unlucky)) = self.neighbours.unlucky_for(interface, address) {
            self.neighbours.recycle(on, unlucky);
            self.neighbour_changed(on, unlucky)?;
        }
        let learned = self.neighbours.learn(interface, address, mac, state, now_ms);
        if learned == Learned::Refreshed {
            self.refresh_neighbour(interface, address);
        }
        if learned == Learned::Changed
            && let Err(error) = self.neighbour_changed(interface, address)
        {
            self.neighbours.remove(interface, address);
            let _ = self.neighbour_changed(interface, address);
            return Err(error);
        }
        Ok(learned)
    }

    /// A packet goes to a neighbour that was not heard from for some time. It is asked in a moment.
    pub fn neighbour_used(&mut self, interface: InterfaceId, address: IpAddr, now_ms: u64) {
        if self.neighbours.used(interface, address, now_ms) {
            self.refresh_neighbour(interface, address);
        }
    }

    /// Somebody says something else about a neighbour than what is known. It stays in use, and is
    /// asked once a packet goes to it.
    pub fn doubt_neighbour(&mut self, interface: InterfaceId, address: IpAddr, now_ms: u64) {
        if self.neighbours.doubt(interface, address, now_ms) {
            self.refresh_neighbour(interface, address);
        }
    }

    /// The next neighbour for which something is due. One that is to be forgotten is forgotten.
    pub fn next_neighbour_due(&mut self, now_ms: u64) -> Option<(InterfaceId, IpAddr, Due)> {
        let (on, address, due) = self.neighbours.next_due(now_ms)?;
        match due {
            Due::Stale => self.refresh_neighbour(on, address),
            Due::Forget => {
                // Taking a route away that is there cannot fail.
                let _ = self.remove_neighbour(on, address);
            }
            Due::AskIt(_) | Due::AskAll => {}
        }
        Some((on, address, due))
    }

    /// A neighbour is configured.
    ///
    /// # Errors
    /// As for [`learn_neighbour`](Self::learn_neighbour).
    pub fn set_static_neighbour(
        &mut self,
        interface: InterfaceId,
        address: IpAddr,
        mac: MacAddress,
        now_ms: u64,
    ) -> Result<(), FibError> {
        self.fix_neighbour(NeighbourState::Static, interface, address, mac, now_ms)
    }

    /// A control plane beside the router says who a neighbour is. It takes no configured one away.
    ///
    /// # Errors
    /// As for [`learn_neighbour`](Self::learn_neighbour).
    pub fn set_external_neighbour(
        &mut self,
        interface: InterfaceId,
        address: IpAddr,
        mac: MacAddress,
        now_ms: u64,
    ) -> Result<(), FibError> {
        let known = self.neighbours.get(interface, address);
        if known.is_some_and(|known| known.state == NeighbourState::Static) {
            return Ok(());
        }
        self.fix_neighbour(NeighbourState::External, interface, address, mac, now_ms)
    }

    fn fix_neighbour(
        &mut self,
        state: NeighbourState,
        interface: InterfaceId,
        address: IpAddr,
        mac: MacAddress,
        now_ms: u64,
    ) -> Result<(), FibError> {
        self.check_neighbour(interface, address, mac)?;
        self.neighbours.fix(state, interface, address, mac, now_ms);
        if let Err(error) = self.neighbour_changed(interface, address) {
            self.neighbours.remove(interface, address);
            let _ = self.neighbour_changed(interface, address);
            return Err(error);
        }
        Ok(())
    }

    /// Forget a neighbour; the next packet to it is resolved again.
    ///
    /// # Errors
    /// There is no such neighbour, or a table is out of memory.
    pub fn remove_neighbour(
        &mut self,
        interface: InterfaceId,
        address: IpAddr,
    ) -> Result<(), FibError> {
        self.neighbours
            .remove(interface, address)
            .ok_or(FibError::NoNeighbour(interface, address))?;
        self.neighbour_changed(interface, address)
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
        // One adjacency for each family of packets, one for the host route, and the labelled ones.
        let known = self.adjacencies.towards(interface, Some(address)).len();
        if self.adjacencies.slots().has_room(known.max(2) + 1) {
            Ok(())
        } else {
            Err(FibError::AdjacenciesFull(self.limits.adjacencies))
        }
    }

    fn neighbour_changed(
        &mut self,
        interface: InterfaceId,
        address: IpAddr,
    ) -> Result<(), FibError> {
        self.refresh_neighbour(interface, address);
        let done = self.refresh_imports_of(interface, address);
        self.sweep();
        done
    }

    fn refresh_neighbour(&mut self, interface: InterfaceId, address: IpAddr) {
        self.refresh_adjacencies(&self.adjacencies.towards(interface, Some(address)));
    }

    /// After an interface began to have neighbours, or ceased to.
    pub(super) fn refresh_neighbour_routes(&mut self, id: InterfaceId) -> Result<(), FibError> {
        let mut addresses: Vec<_> = self.neighbours.on(id).map(|(address, _)| address).collect();
        addresses.extend(
            self.stacks.next_hops().filter(|(_, on)| *on == id).map(|(address, _)| address),
        );
        addresses.into_iter().try_for_each(|address| self.refresh_imports_of(id, address))?;
        self.sweep();
        Ok(())
    }
}
