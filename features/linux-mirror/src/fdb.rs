//! Stations behind ports of bridge domains, where the twin of a port is a port of a Linux bridge.
//! Entries of Linux's forwarding database become entries of the bridge domain, and go with them.
//! What the bridge domain has learned Linux gets as learned elsewhere (`NTF_EXT_LEARNED`).
//!
//! What is learned is written at once, as far as the log of the bridge domains has it. The MAC
//! table is walked a part at a time beside; at the end of a walk the differences are written.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use quiver_control::layer_two::{BridgeFdb, FdbEntry};
use quiver_core::{Engine, InterfaceId};

use crate::evpn::stations;
use crate::mirror::{Mirror, Namespace, mirror};
use crate::reader::{OwnChange, StationFacts, StationKey};

/// How often a part of the MAC table is looked at.
pub(crate) const LOOK_NS: u64 = 20_000_000;
/// Segments of the table in a part: less than a millisecond.
const SEGMENTS_PER_LOOK: usize = 16;
/// Learned stations that Linux gets at most.
const WRITTEN_MAX: usize = 65_536;

/// What either side has of the other.
#[derive(Default)]
pub(crate) struct Stations {
    /// By VLAN (0 for none): what Linux has.
    linux: BTreeMap<FdbEntry, BTreeMap<u16, StationFacts>>,
    /// Added to bridge domains: is the entry static, and which domain is it?
    added: BTreeMap<FdbEntry, (bool, u32)>,
    /// Written to Linux.
    written: HashSet<FdbEntry>,
    /// The last event of the bridge domains that was followed.
    followed: u64,
    /// Where the walk goes on.
    at: u32,
    /// What the walk has found.
    found: HashSet<FdbEntry>,
}

/// Linux says something of a station behind a link.
pub(crate) fn take_station(
    engine: &mut Engine,
    namespace: &Namespace,
    (link, mac, vlan): StationKey,
    facts: Option<StationFacts>,
) {
    if stations::take_bridged(engine, namespace, (link, mac), facts.is_some()) {
        return;
    }
    let Some(mirror) = mirror(engine) else { return };
    let evpn = || {
        let of_link = mirror
            .evpn
            .iter()
            .find(|(_, twin)| twin.namespace == *namespace && twin.local() == Some(link));
        of_link.map(|(id, _)| *id)
    };
    let Some(port) = mirror.by_link(namespace, link).or_else(evpn) else { return };
    let station = FdbEntry { port, mac };
    let all = mirror.stations.linux.entry(station).or_default();
    match facts {
        Some(facts) => drop(all.insert(vlan, facts)),
        None => drop(all.remove(&vlan)),
    }
    if all.is_empty() {
        mirror.stations.linux.remove(&station);
        // It is written again when the bridge domain still has it.
        mirror.stations.written.remove(&station);
    }
    fit(engine, station);
}

/// Let a bridge domain have a station of Linux, or no more.
fn fit(engine: &mut Engine, station: FdbEntry) {
    let Some(calls) = engine.get::<BridgeFdb>().copied() else { return };
    let domain = (calls.domain)(engine, station.port);
    let Some(mirror) = mirror(engine) else { return };
    let all = mirror.stations.linux.get(&station).into_iter().flat_map(BTreeMap::values);
    let own = all.filter(|facts| !facts.is_external).map(|facts| facts.is_static);
    let wanted = own.reduce(|one, other| one | other).zip(domain);
    let has = mirror.stations.added.remove(&station);
    if has.is_some_and(|has| Some(has) != wanted) {
        (calls.remove)(engine, station);
    }
    let Some((is_static, domain)) = wanted else { return };
    if has != wanted
        && let Err(why) = (calls.add)(engine, station, is_static)
    {
        tracing::debug!("{}: a station of Linux: {why}", engine.interface_name(station.port));
        return;
    }
    if let Some(mirror) = engine.get_mut::<Mirror>() {
        mirror.stations.added.insert(station, (is_static, domain));
    }
}

/// An interface has no twin in Linux any more: its bridge domain loses the stations of Linux.
pub(crate) fn forget(engine: &mut Engine, port: InterfaceId) {
    let Some(mirror) = mirror(engine) else { return };
    let stations = &mut mirror.stations;
    stations.linux.retain(|station, _| station.port != port);
    stations.written.retain(|station| station.port != port);
    let added: Vec<FdbEntry> = stations.added.keys().filter(|s| s.port == port).copied().collect();
    added.into_iter().for_each(|station| fit(engine, station));
}

/// The interfaces whose links Linux has stations behind: those of ports whose twins are ports of
/// Linux bridges are behind these, those of other ports of a domain behind the silent device of its
/// VXLAN interface.
struct Ports {
    bridged: BTreeSet<InterfaceId>,
    /// By domain.
    evpn: BTreeMap<u32, InterfaceId>,
}

impl Ports {
    fn of(engine: &Engine, mirror: &Mirror, calls: BridgeFdb) -> Ports {
        let bridged = mirror.pairs.iter().filter(|(_, pair)| pair.is_bridge_port);
        let bridged = bridged.map(|(id, _)| *id);
        let evpn = mirror.evpn.iter().filter(|(_, twin)| twin.local().is_some());
        let evpn = evpn.filter_map(|(id, _)| Some(((calls.domain)(engine, *id)?, *id)));
        Ports {
            bridged: bridged.filter(|id| (calls.domain)(engine, *id).is_some()).collect(),
            evpn: evpn.collect(),
        }
    }

    fn is_empty(&self) -> bool {
        self.bridged.is_empty() && self.evpn.is_empty()
    }

    /// Where Linux has a station that the router has learned.
    fn station(&self, engine: &Engine, calls: BridgeFdb, station: FdbEntry) -> Option<FdbEntry> {
        if self.bridged.contains(&station.port) {
            return Some(station);
        }
        let domain = (calls.domain)(engine, station.port).filter(|_| !self.evpn.is_empty())?;
        let port = *self.evpn.get(&domain)?;
        Some(FdbEntry { port, mac: station.mac })
    }
}

/// Look at a part of the MAC table.
pub(crate) fn look(engine: &mut Engine) {
    let Some(calls) = engine.get::<BridgeFdb>().copied() else { return };
    let Some(mirror) = engine.get::<Mirror>() else { return };
    let has_none = mirror.pairs.values().all(|pair| !pair.is_bridge_port);
    if has_none && mirror.evpn.is_empty() && mirror.stations.is_empty() {
        return;
    }
    let ports = Ports::of(engine, mirror, calls);
    let updates_linux = mirror.updates_linux;
    let (mut at, mut found) = (Some(mirror.stations.at), HashSet::new());
    for _ in 0..SEGMENTS_PER_LOOK {
        let Some(from) = at.filter(|_| updates_linux && !ports.is_empty()) else { break };
        at = (calls.learned)(engine, from, &mut |station| {
            found.extend(ports.station(engine, calls, station));
        });
    }
    let Some(mirror) = engine.get_mut::<Mirror>() else { return };
    let stations = &mut mirror.stations;
    let left = WRITTEN_MAX.saturating_sub(stations.found.len());
    stations.found.extend(found.into_iter().take(left));
    stations.at = at.unwrap_or(0);
    let is_whole = at.is_none() || ports.is_empty() || !updates_linux;
    if is_whole {
        write(mirror);
        fit_moved(engine, calls);
        stations::follow_domains(engine);
    }
}

/// Have Linux get what was learned since the last turn.
pub(crate) fn follow_learned(engine: &mut Engine) {
    let Some(calls) = engine.get::<BridgeFdb>().copied() else { return };
    let Some(mirror) = engine.get::<Mirror>() else { return };
    let (after, mut learned) = (mirror.stations.followed, Vec::new());
    let last = (calls.learned_since)(engine, after, &mut |station| learned.push(station));
    if last == after {
        return;
    }
    let ports = Ports::of(engine, mirror, calls);
    let is_followed = mirror.updates_linux && !ports.is_empty();
    learned.retain(|_| is_followed);
    let found = learned.into_iter().filter_map(|station| ports.station(engine, calls, station));
    let found: HashSet<FdbEntry> = found.collect();
    let Some(mirror) = engine.get_mut::<Mirror>() else { return };
    let stations = &mut mirror.stations;
    stations.followed = last;
    let left = WRITTEN_MAX.saturating_sub(stations.written.len());
    let new: Vec<FdbEntry> = found.difference(&stations.written).copied().take(left).collect();
    // A walk that has passed them already does not take them away again.
    stations.found.extend(&new);
    write_changes(mirror, [(Vec::new(), false), (new, true)]);
}

/// A walk is over: have Linux get what is new, and lose what is gone.
fn write(mirror: &mut Mirror) {
    mirror.stations.at = 0;
    let found = std::mem::take(&mut mirror.stations.found);
    let known = &mirror.stations.written;
    let gone: Vec<FdbEntry> = known.difference(&found).copied().collect();
    let new: Vec<FdbEntry> = found.difference(known).copied().collect();
    write_changes(mirror, [(gone, false), (new, true)]);
}

/// Have Linux get stations, or lose them.
fn write_changes(mirror: &mut Mirror, all: [(Vec<FdbEntry>, bool); 2]) {
    let mut changes: BTreeMap<Namespace, Vec<OwnChange>> = BTreeMap::new();
    for (stations, is_there) in all {
        for station in stations {
            let pair = mirror.pairs.get(&station.port).filter(|pair| pair.is_bridge_port);
            let pair = pair.and_then(|pair| Some((&pair.namespace, pair.link?)));
            let evpn = mirror.evpn.get(&station.port);
            let evpn = evpn.and_then(|twin| Some((&twin.namespace, twin.local()?)));
            // Linux takes entries away with the port of its bridge.
            if let Some((namespace, link)) = pair.or(evpn) {
                let change = OwnChange::Station(link, station.mac, is_there);
                changes.entry(namespace.clone()).or_default().push(change);
            }
            match is_there {
                true => mirror.stations.written.insert(station),
                false => mirror.stations.written.remove(&station),
            };
        }
    }
    changes.into_iter().for_each(|(namespace, changes)| mirror.write(&namespace, changes));
}

/// Stations of Linux whose port is in another bridge domain than before.
fn fit_moved(engine: &mut Engine, calls: BridgeFdb) {
    let Some(mirror) = engine.get::<Mirror>() else { return };
    let stations = &mirror.stations;
    let is_moved = |station: &&FdbEntry| {
        let domain = (calls.domain)(engine, station.port);
        stations.added.get(station).map(|(_, domain)| *domain) != domain
    };
    let moved: Vec<FdbEntry> = stations.linux.keys().filter(is_moved).copied().collect();
    moved.into_iter().for_each(|station| fit(engine, station));
}

impl Stations {
    /// Linux has nothing behind a port any more.
    pub fn forget_port(&mut self, port: InterfaceId) {
        self.linux.retain(|station, _| station.port != port);
        self.written.retain(|station| station.port != port);
    }

    /// Has Linux a station behind this port because the bridge domain has learned it?
    pub fn has_written(&self, station: &FdbEntry) -> bool {
        self.written.contains(station)
    }

    fn is_empty(&self) -> bool {
        self.linux.is_empty() && self.written.is_empty()
    }
}
