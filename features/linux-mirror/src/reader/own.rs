//! Routes and neighbours of the router that Linux is to have: the thread writes them, and after a
//! dump takes away what an earlier router left there and writes again what is missing.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use quiver_netlink::Request;
use quiver_netlink::neighbour::{LearnedStation, NewNeighbour};
use quiver_netlink::route::{NewHop, NewRoute, RouteKind, protocol};
use quiver_wire::MacAddress;

use super::routes::RouteKey;

/// The metric of the router's routes in Linux. It is behind that of subnets of IPv4 addresses (0),
/// and in front of those of routing daemons (FRR 20, BIRD 32).
const METRIC: u32 = 1;

/// A route that Linux is to have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OwnRoute {
    /// Packets are dropped.
    Drop(RouteKind),
    /// They go to these hops.
    Hops(Vec<NewHop>),
}

/// What Linux is to have, or no more.
#[derive(Clone, Debug)]
pub(crate) enum OwnChange {
    Route(RouteKey, Option<Arc<OwnRoute>>),
    Neighbour(NewNeighbour, Option<[u8; 6]>),
    /// A station behind the port of a bridge that a link is.
    Station(u32, [u8; 6], bool),
}

impl OwnChange {
    /// Does it take something away?
    pub fn removes(&self) -> bool {
        use OwnChange::{Neighbour, Route, Station};
        matches!(self, Route(_, None) | Neighbour(_, None) | Station(_, _, false))
    }

    /// In words, for the log and for `show lcp sync`.
    pub fn words(&self) -> String {
        match self {
            OwnChange::Route(key, _) => format!("route {} of table {}", key.prefix, key.table),
            OwnChange::Neighbour(whom, _) => format!("neighbour {}", whom.address),
            OwnChange::Station(link, mac, _) => {
                format!("station {} behind link {link}", MacAddress(*mac))
            }
        }
    }

    /// The request that makes it so.
    pub fn request(&self) -> Request {
        match self {
            OwnChange::Route(key, route) => {
                let (kind, hops) = match route.as_deref() {
                    Some(OwnRoute::Hops(hops)) => (RouteKind::Unicast, hops.as_slice()),
                    Some(OwnRoute::Drop(kind)) => (*kind, &[][..]),
                    None => (RouteKind::Unicast, &[][..]),
                };
                let (table, prefix) = (key.table, key.prefix);
                let protocol = protocol::QUIVER;
                let new = NewRoute { table, prefix, protocol, kind, metric: METRIC, hops };
                if route.is_some() { new.add() } else { new.remove() }
            }
            OwnChange::Neighbour(whom, Some(mac)) => whom.add(*mac),
            OwnChange::Neighbour(whom, None) => whom.remove(),
            OwnChange::Station(link, mac, is_there) => {
                let station = LearnedStation { link: *link, mac: *mac };
                if *is_there { station.add() } else { station.remove() }
            }
        }
    }
}

/// The routes and neighbours that Linux is to have.
#[derive(Default)]
pub(super) struct Wanted {
    routes: HashMap<RouteKey, Arc<OwnRoute>>,
    neighbours: HashSet<(u32, IpAddr)>,
}

impl Wanted {
    /// Take a change over.
    pub fn take(&mut self, change: &OwnChange) {
        match change {
            OwnChange::Route(key, Some(route)) => {
                self.routes.insert(*key, route.clone());
            }
            OwnChange::Route(key, None) => {
                self.routes.remove(key);
            }
            OwnChange::Neighbour(whom, mac) => {
                let key = (whom.link, whom.address);
                match mac {
                    Some(_) => self.neighbours.insert(key),
                    None => self.neighbours.remove(&key),
                };
            }
            OwnChange::Station(..) => {}
        }
    }

    /// How many routes there are.
    pub fn routes(&self) -> usize {
        self.routes.len()
    }

    /// What takes away neighbours that an earlier router has left in Linux.
    pub fn stale_neighbours(&self, found: &HashSet<(u32, IpAddr)>) -> Vec<OwnChange> {
        let stale = found.difference(&self.neighbours);
        stale.map(|(link, address)| neighbour(*link, *address, None)).collect()
    }

    /// What makes of the routes that were found in Linux those that are wanted.
    pub fn repairs(&self, found: &HashSet<RouteKey>) -> Vec<OwnChange> {
        let stale = found.iter().filter(|key| !self.routes.contains_key(key));
        let stale = stale.map(|key| OwnChange::Route(*key, None));
        let missing = self.routes.iter().filter(|(key, _)| !found.contains(key));
        let missing = missing.map(|(key, route)| OwnChange::Route(*key, Some(route.clone())));
        stale.chain(missing).collect()
    }
}

/// A neighbour of a link.
pub(crate) fn neighbour(link: u32, address: IpAddr, mac: Option<[u8; 6]>) -> OwnChange {
    OwnChange::Neighbour(NewNeighbour { link, address }, mac)
}

#[cfg(test)]
mod tests {
    use quiver_tables::prefix::{IpPrefix, Prefix};

    use super::*;

    #[test]
    fn after_a_dump_stale_routes_go_and_missing_ones_come_back() {
        let key = |n: u32| RouteKey { table: 254, prefix: IpPrefix::V4(Prefix::new(n << 8, 24)) };
        let route = Arc::new(OwnRoute::Drop(RouteKind::Blackhole));
        let mut wanted = Wanted::default();
        for n in [1, 2, 3] {
            wanted.take(&OwnChange::Route(key(n), Some(route.clone())));
        }
        wanted.take(&OwnChange::Route(key(3), None));
        let repairs = wanted.repairs(&HashSet::from([key(2), key(3)]));
        let of = |removes: bool| {
            let those = repairs.iter().filter(move |change| change.removes() == removes);
            those.map(OwnChange::words).collect::<Vec<_>>()
        };
        assert_eq!(of(true), ["route 0.0.3.0/24 of table 254"]);
        assert_eq!(of(false), ["route 0.0.1.0/24 of table 254"]);
    }

    #[test]
    fn after_a_dump_stale_neighbours_go() {
        let address = |n: u8| IpAddr::from([10, 0, 0, n]);
        let mut wanted = Wanted::default();
        for n in [1, 2] {
            wanted.take(&neighbour(7, address(n), Some([2, 0, 0, 0, 0, n])));
        }
        wanted.take(&neighbour(7, address(2), None));
        let found = HashSet::from([(7, address(1)), (7, address(2)), (8, address(1))]);
        let stale = wanted.stale_neighbours(&found);
        let mut names: Vec<String> = stale.iter().map(OwnChange::words).collect();
        names.sort();
        assert!(stale.iter().all(OwnChange::removes));
        assert_eq!(names, ["neighbour 10.0.0.1", "neighbour 10.0.0.2"]);
    }
}
