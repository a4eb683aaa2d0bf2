//! The far ends of ports as the control thread holds them, by the numbers that the MAC table has.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_control::layer_two::FdbEntry;
use quiver_core::InterfaceId;

use super::config::{Peer, TunnelError};
use super::far_ends::FAR_ENDS_MAX;

/// What has a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// A far end: the outer source, the outer destination, the small number of the table, and the
    /// UDP port there.
    Vtep(IpAddr, IpAddr, u32, u16),
    /// A group of far ends of a port.
    Group(InterfaceId, u32),
}

/// Where the frames of a number go.
pub(super) enum Leads {
    /// To a far end.
    Peer(Peer),
    /// To the far end that has another number, by that one's entry.
    Other(Option<u16>),
}

/// What a number stands for, and how many use it.
pub(super) struct Known {
    pub place: Place,
    pub leads: Leads,
    pub users: u32,
}

/// The far ends as the control thread holds them.
#[derive(Default)]
pub(super) struct FarEndBook {
    pub numbers: BTreeMap<Place, u16>,
    pub known: BTreeMap<u16, Known>,
    pub free: Vec<u16>,
    /// Those that frames to all go to, by port.
    pub lists: BTreeMap<InterfaceId, BTreeMap<IpAddr, u16>>,
    /// Stations that were added, and behind which far end.
    pub stations: HashMap<FdbEntry, u16>,
}

impl FarEndBook {
    /// The far ends that frames to all stations of a port go to.
    pub fn list(&self, port: InterfaceId) -> impl Iterator<Item = IpAddr> {
        self.lists.get(&port).into_iter().flat_map(BTreeMap::keys).copied()
    }

    /// Stations that are known behind far ends of a port.
    pub fn station_count(&self, port: InterfaceId) -> usize {
        self.stations.keys().filter(|station| station.port == port).count()
    }

    /// All far ends.
    pub fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.known.values().filter_map(|known| match &known.leads {
            Leads::Peer(peer) => Some(peer),
            Leads::Other(_) => None,
        })
    }

    /// The far ends to which a source sends from a table to a UDP port.
    pub fn peers_of(
        &self,
        source: IpAddr,
        (of_table, of_port): (u32, u16),
    ) -> impl Iterator<Item = (IpAddr, &Peer)> {
        let first = match source {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let from = self.numbers.range(Place::Vtep(source, first, 0, 0)..);
        from.map_while(move |(place, number)| match place {
            Place::Vtep(from, remote, table, port) if *from == source => {
                Some((*remote, (*table, *port), number))
            }
            _ => None,
        })
        .filter(move |(_, sent, _)| *sent == (of_table, of_port))
        .filter_map(|(remote, _, number)| match &self.known.get(number)?.leads {
            Leads::Peer(peer) => Some((remote, peer)),
            Leads::Other(_) => None,
        })
    }

    /// The number of a place that is known already, for one more user.
    pub fn hold_known(&mut self, place: Place) -> Option<u16> {
        let number = *self.numbers.get(&place)?;
        self.known.get_mut(&number)?.users += 1;
        Some(number)
    }

    /// A number that is free.
    pub fn take_number(&mut self) -> Result<u16, TunnelError> {
        let next = u16::try_from(self.known.len() + 1).ok();
        self.free.pop().or(next).ok_or(TunnelError::FarEnds(FAR_ENDS_MAX))
    }

    pub fn insert(&mut self, number: u16, place: Place, leads: Leads) {
        self.numbers.insert(place, number);
        self.known.insert(number, Known { place, leads, users: 1 });
    }
}
