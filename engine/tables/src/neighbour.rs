//! Neighbours: which MAC address answers for an IP address on an interface. Control side only;
//! workers see the adjacencies that are made of them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use quiver_core::InterfaceId;
use quiver_wire::MacAddress;

/// Neighbours that are kept, unless configured otherwise. A scan of a connected /8 must not fill
/// the router's memory.
pub const NEIGHBOURS_MAX: usize = 1 << 16;

/// How sure a neighbour is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighbourState {
    /// Configured; does not age.
    Static,
    /// Heard from lately.
    Reachable,
    /// Not heard from for some time; still used, and asked again.
    Stale,
}

/// A neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its MAC address.
    pub mac: MacAddress,
    /// How sure that is.
    pub state: NeighbourState,
    /// When it was last confirmed, on the router's clock.
    pub confirmed_ms: u64,
}

/// All neighbours of the router, both families.
#[derive(Debug)]
pub struct Neighbours {
    map: BTreeMap<(InterfaceId, IpAddr), Neighbour>,
    limit: usize,
    dynamic: usize,
}

/// What came of learning a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// New, or its MAC changed.
    Changed,
    /// Known already; its age starts anew.
    Refreshed,
    /// A static one stands and does not change.
    StaticStands,
    /// There is no room for more dynamic ones.
    Full,
}

impl Default for Neighbours {
    fn default() -> Self {
        Neighbours { map: BTreeMap::new(), limit: NEIGHBOURS_MAX, dynamic: 0 }
    }
}

impl Neighbours {
    /// At most `limit` dynamic neighbours from now on; those that are there stay.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The limit of dynamic neighbours.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// How many, static ones included.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The neighbour with this address on this interface.
    pub fn get(&self, interface: InterfaceId, address: IpAddr) -> Option<&Neighbour> {
        self.map.get(&(interface, address))
    }

    /// What [`learn`](Self::learn) would do.
    pub fn would_learn(&self, interface: InterfaceId, address: IpAddr, mac: MacAddress) -> Learned {
        match self.get(interface, address) {
            Some(old) if old.state == NeighbourState::Static => Learned::StaticStands,
            Some(old) if old.mac == mac => Learned::Refreshed,
            Some(_) => Learned::Changed,
            None if self.dynamic >= self.limit => Learned::Full,
            None => Learned::Changed,
        }
    }

    /// A dynamic neighbour was heard.
    pub fn learn(
        &mut self,
        interface: InterfaceId,
        address: IpAddr,
        mac: MacAddress,
        now_ms: u64,
    ) -> Learned {
        let learned = self.would_learn(interface, address, mac);
        if matches!(learned, Learned::Changed | Learned::Refreshed) {
            let neighbour = Neighbour { mac, state: NeighbourState::Reachable, confirmed_ms: now_ms };
            self.put(interface, address, neighbour);
        }
        learned
    }

    /// A neighbour was configured.
    pub fn set_static(&mut self, interface: InterfaceId, address: IpAddr, mac: MacAddress, now_ms: u64) {
        self.put(interface, address, Neighbour { mac, state: NeighbourState::Static, confirmed_ms: now_ms });
    }

    fn put(&mut self, interface: InterfaceId, address: IpAddr, neighbour: Neighbour) {
        let is_dynamic = |neighbour: &Neighbour| usize::from(neighbour.state != NeighbourState::Static);
        self.dynamic += is_dynamic(&neighbour);
        let old = self.map.insert((interface, address), neighbour);
        self.dynamic -= old.as_ref().map_or(0, is_dynamic);
    }

    /// Forget a neighbour.
    pub fn remove(&mut self, interface: InterfaceId, address: IpAddr) -> Option<Neighbour> {
        let old = self.map.remove(&(interface, address))?;
        self.dynamic -= usize::from(old.state != NeighbourState::Static);
        Some(old)
    }

    /// Mark as stale; it stays in use.
    pub fn set_stale(&mut self, interface: InterfaceId, address: IpAddr) {
        if let Some(neighbour) = self.map.get_mut(&(interface, address))
            && neighbour.state == NeighbourState::Reachable
        {
            neighbour.state = NeighbourState::Stale;
        }
    }

    /// All, by interface and address.
    pub fn iter(&self) -> impl Iterator<Item = (InterfaceId, IpAddr, &Neighbour)> {
        self.map.iter().map(|((interface, address), neighbour)| (*interface, *address, neighbour))
    }

    /// Those on `interface`.
    pub fn on(&self, interface: InterfaceId) -> impl Iterator<Item = (IpAddr, &Neighbour)> {
        let all = self.map.range((interface, IpAddr::from([0; 4]))..);
        all.take_while(move |((on, _), _)| *on == interface)
            .map(|((_, address), neighbour)| (*address, neighbour))
    }

    /// Dynamic ones not confirmed since `age_ms`.
    pub fn older_than(&self, age_ms: u64, now_ms: u64) -> impl Iterator<Item = (InterfaceId, IpAddr)> {
        let old = move |neighbour: &Neighbour| {
            neighbour.state != NeighbourState::Static
                && now_ms.saturating_sub(neighbour.confirmed_ms) >= age_ms
        };
        self.iter().filter(move |(_, _, neighbour)| old(neighbour)).map(|(on, address, _)| (on, address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON: InterfaceId = InterfaceId(1);
    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

    #[test]
    fn a_static_neighbour_is_not_overwritten_and_does_not_age() {
        let (mut neighbours, address) = (Neighbours::default(), IpAddr::from([10, 0, 0, 1]));
        neighbours.set_static(ON, address, MAC, 0);
        assert_eq!(neighbours.learn(ON, address, MacAddress([2, 0, 0, 0, 0, 9]), 5), Learned::StaticStands);
        assert_eq!(neighbours.older_than(10, 1000).count(), 0);
        assert_eq!(neighbours.get(ON, address).map(|neighbour| neighbour.mac), Some(MAC));
    }

    #[test]
    fn a_full_table_refuses_new_ones_and_refreshes_old_ones() {
        let mut neighbours = Neighbours::default();
        neighbours.set_limit(1);
        assert_eq!(neighbours.learn(ON, IpAddr::from([10, 0, 0, 1]), MAC, 0), Learned::Changed);
        assert_eq!(neighbours.learn(ON, IpAddr::from([10, 0, 0, 2]), MAC, 0), Learned::Full);
        assert_eq!(neighbours.learn(ON, IpAddr::from([10, 0, 0, 1]), MAC, 7), Learned::Refreshed);
        assert_eq!(neighbours.older_than(10, 12).count(), 0);
        assert_eq!(neighbours.older_than(10, 17).count(), 1);
    }
}
