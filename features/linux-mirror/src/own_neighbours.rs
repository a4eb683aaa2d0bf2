//! Neighbours of the router that Linux gets: the configured ones of interfaces with twins, and
//! those that the router has learned beside bridges of VNIs. FRR announces what it finds beside
//! such a bridge, so that other edges answer ARP and neighbour solicitations for them (RFC 7432
//! §10).

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use quiver_control::layer_two::FdbEntry;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::Fib;
use quiver_forwarding::neighbour::{NeighbourState, Neighbours};

use crate::evpn;
use crate::mirror::{Mirror, Namespace, Pair};
use crate::own_routes::WAITING_MAX;
use crate::reader::{OwnChange, neighbour};

/// Learned neighbours are compared with what Linux has so often.
const LOOK_PAUSE_NS: u64 = 500_000_000;
/// Learned neighbours that Linux gets at most beside one bridge. Each becomes a route of BGP on all
/// edges of the VNI, and any host behind the bridge can make up addresses.
pub(crate) const LEARNED_MAX: usize = 16_384;
/// Those of one station, which may answer ARP for others. The rest of [`LEARNED_MAX`] is left to
/// others when one makes up addresses.
pub(crate) const LEARNED_PER_STATION_MAX: usize = 1_024;

/// What Linux was given, and what is to be compared; each pair has the neighbours themselves.
#[derive(Default)]
pub(crate) struct OwnNeighbours {
    is_dirty: bool,
    static_changes: u64,
    /// When learned neighbours are compared again.
    looks_ns: u64,
    /// Learned neighbours that Linux does not get.
    left_out: usize,
}

impl OwnNeighbours {
    /// Something changed that any neighbour may depend on: a pair, a link.
    pub fn compare_all(&mut self) {
        self.is_dirty = true;
    }

    /// How many learned neighbours Linux does not get, because of [`LEARNED_MAX`] and
    /// [`LEARNED_PER_STATION_MAX`].
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

/// A neighbour that Linux may get.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    address: IpAddr,
    mac: [u8; 6],
    is_static: bool,
}

/// Learned neighbours at most, and those of one station.
#[derive(Clone, Copy, Debug)]
struct Limits {
    all: usize,
    station: usize,
}

const LIMITS: Limits = Limits { all: LEARNED_MAX, station: LEARNED_PER_STATION_MAX };

/// What Linux is to have of the neighbours of an interface. Of learned ones those that Linux has
/// already come first. Returns how many are left out, too.
fn choose(
    all: &[Candidate],
    written: &BTreeMap<IpAddr, [u8; 6]>,
    limits: Limits,
) -> (BTreeMap<IpAddr, [u8; 6]>, usize) {
    let (fixed, learned): (Vec<&Candidate>, Vec<&Candidate>) =
        all.iter().partition(|one| one.is_static);
    let (old, new): (Vec<&Candidate>, Vec<&Candidate>) =
        learned.into_iter().partition(|one| written.get(&one.address) == Some(&one.mac));
    let mut chosen: BTreeMap<IpAddr, [u8; 6]> =
        fixed.into_iter().map(|one| (one.address, one.mac)).collect();
    let (mut stations, mut count, mut left_out) = (HashMap::<[u8; 6], usize>::new(), 0, 0);
    for one in old.into_iter().chain(new) {
        let of_station = stations.entry(one.mac).or_default();
        if count >= limits.all || *of_station >= limits.station {
            left_out += 1;
            continue;
        }
        (count, *of_station) = (count + 1, *of_station + 1);
        chosen.insert(one.address, one.mac);
    }
    (chosen, left_out)
}

/// Have Linux get neighbours, and lose those that are gone. Returns when to look again, at the
/// latest.
pub(crate) fn update(engine: &Engine, mirror: &mut Mirror, own: &mut OwnNeighbours) -> Option<u64> {
    let now_ns = engine.now_ns();
    let is_due = !mirror.evpn.is_empty() && now_ns >= own.looks_ns;
    let neighbours = engine.get::<Fib>()?.neighbours();
    let static_changes = neighbours.static_changes();
    let is_changed = std::mem::take(&mut own.is_dirty) || own.static_changes != static_changes;
    if is_changed || is_due {
        own.static_changes = static_changes;
        own.looks_ns = now_ns + LOOK_PAUSE_NS;
        compare(neighbours, mirror, own, is_changed);
    }
    let is_beside_bridges = !mirror.evpn.is_empty();
    is_beside_bridges.then(|| own.looks_ns.saturating_sub(now_ns))
}

/// Compare the neighbours of routed interfaces of VNIs, and of all others when any changed.
fn compare(neighbours: &Neighbours, mirror: &mut Mirror, own: &mut OwnNeighbours, all: bool) {
    let bridges = evpn::routed(mirror);
    let Mirror { pairs, stations, followed, updates_linux, .. } = mirror;
    let is_busy = followed.values().any(|of| of.kernel.reader.own_waiting() > WAITING_MAX);
    if is_busy && !all {
        return;
    }
    let mut changes: Vec<(Namespace, Vec<OwnChange>)> = Vec::new();
    own.left_out = 0;
    for (id, pair) in pairs {
        let vxlan = bridges.get(id);
        if !all && vxlan.is_none() {
            continue;
        }
        // Behind a far end FRR knows the neighbour itself.
        let is_local = |mac: [u8; 6]| {
            vxlan.is_some_and(|vxlan| stations.has_written(&FdbEntry { port: *vxlan, mac }))
        };
        let (of_pair, left_out) = compare_pair(neighbours, *id, pair, *updates_linux, is_local);
        own.left_out += left_out;
        changes.push((pair.namespace.clone(), of_pair));
    }
    for (namespace, changes) in changes {
        mirror.write(&namespace, changes);
    }
}

/// What changes in Linux for one pair, and how many neighbours are left out.
fn compare_pair(
    neighbours: &Neighbours,
    id: InterfaceId,
    pair: &mut Pair,
    updates_linux: bool,
    is_local: impl Fn([u8; 6]) -> bool,
) -> (Vec<OwnChange>, usize) {
    let is_up = pair.linux.is_some_and(|(is_up, _)| is_up);
    let Some(link) = pair.link.filter(|_| is_up) else {
        pair.written_neighbours.clear(); // Linux forgets them with a link that is down
        return (Vec::new(), 0);
    };
    let known = neighbours.on(id).filter(|(_, known)| match known.state {
        NeighbourState::Static => true,
        NeighbourState::External => false,
        _ => is_local(known.mac.0),
    });
    let all: Vec<Candidate> = known
        .filter(|_| updates_linux)
        .map(|(address, known)| {
            let is_static = known.state == NeighbourState::Static;
            Candidate { address, mac: known.mac.0, is_static }
        })
        .collect();
    let (chosen, left_out) = choose(&all, &pair.written_neighbours, LIMITS);
    // FRR has put its own in the place of one that has moved behind a far end.
    let is_frrs = |address: IpAddr| {
        neighbours.get(id, address).is_some_and(|known| known.state == NeighbourState::External)
    };
    let gone = pair.written_neighbours.keys().filter(|known| !chosen.contains_key(known));
    let gone = gone.filter(|address| !is_frrs(**address));
    let mut changes: Vec<OwnChange> = gone.map(|address| neighbour(link, *address, None)).collect();
    for (address, mac) in &chosen {
        let old = pair.written_neighbours.get(address);
        // FRR 8.4 uses memory that it has freed when the MAC address of a neighbour changes: the
        // old one goes first.
        if old.is_some_and(|old| old != mac) {
            changes.push(neighbour(link, *address, None));
        }
        if old != Some(mac) {
            changes.push(neighbour(link, *address, Some(*mac)));
        }
    }
    pair.written_neighbours = chosen;
    (changes, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    fn learned(number: u8) -> Candidate {
        let mac = [2, 0, 0, 0, 0, number];
        Candidate { address: address(number), mac, is_static: false }
    }

    #[test]
    fn a_flood_of_addresses_leaves_linux_what_it_has() {
        let written = BTreeMap::from([8, 9].map(|number| (address(number), learned(number).mac)));
        let mut all: Vec<Candidate> = (1..=9).map(learned).collect();
        all.push(Candidate { is_static: true, ..learned(200) });
        let (kept, left_out) = choose(&all, &written, Limits { all: 3, station: 9 });
        let addresses: Vec<IpAddr> = kept.keys().copied().collect();
        assert_eq!(addresses, [1, 8, 9, 200].map(address), "configured ones have no limit");
        assert_eq!(left_out, 6);
    }

    #[test]
    fn nothing_is_left_out_below_the_limit() {
        let all: Vec<Candidate> = (1..=3).map(learned).collect();
        let (kept, left_out) = choose(&all, &BTreeMap::new(), Limits { all: 3, station: 1 });
        assert_eq!((kept.len(), left_out), (3, 0));
    }

    #[test]
    fn a_station_that_makes_up_addresses_leaves_others_their_room() {
        let made_up = (1..=9).map(|number| Candidate { mac: [6; 6], ..learned(number) });
        let all: Vec<Candidate> = made_up.chain([learned(100)]).collect();
        let (kept, left_out) = choose(&all, &BTreeMap::new(), Limits { all: 5, station: 2 });
        let addresses: Vec<IpAddr> = kept.keys().copied().collect();
        assert_eq!(addresses, [1, 2, 100].map(address));
        assert_eq!(left_out, 7);
    }
}
