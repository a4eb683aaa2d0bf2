//! What other features call ([`BridgeFdb`]): they add entries to the MAC table that are no part of
//! the configuration, and read what was learned.

use std::net::IpAddr;
use std::sync::Arc;

use quiver_control::layer_two::{BridgeFdb, FdbEntry, Visit};
use quiver_core::{Engine, InterfaceId};
use quiver_tables::mac::{Configured, FarEnd, MacKey, StampMinutes};
use quiver_wire::MacAddress;

use crate::events::Happened;
use crate::state::{Bridges, PortKind, STATIONS_MAX};

/// Let features find the calls.
pub(crate) fn start(engine: &mut Engine) {
    engine.insert(BridgeFdb { domain, add, add_behind, remove, answer, learned, learned_since });
}

fn domain(engine: &Engine, id: InterfaceId) -> Option<u32> {
    let port = engine.get::<Bridges>()?.ports.get(&id)?;
    (port.kind == PortKind::Normal).then_some(port.domain)
}

fn key(bridges: &Bridges, station: FdbEntry) -> Option<MacKey> {
    let port = bridges.ports.get(&station.port).filter(|port| port.kind == PortKind::Normal)?;
    let domain = bridges.domains.get(&port.domain)?;
    Some(MacKey::new(domain.index, MacAddress(station.mac)))
}

fn add(engine: &mut Engine, station: FdbEntry, is_static: bool) -> Result<(), String> {
    configure(engine, station, is_static, None)
}

fn add_behind(
    engine: &mut Engine,
    station: FdbEntry,
    is_static: bool,
    far_end: u16,
) -> Result<(), String> {
    configure(engine, station, is_static, Some(FarEnd(far_end)))
}

fn configure(
    engine: &mut Engine,
    station: FdbEntry,
    is_static: bool,
    far_end: Option<FarEnd>,
) -> Result<(), String> {
    let now = StampMinutes::from_ns(engine.now_ns());
    engine.with(|_, bridges: &mut Bridges| {
        let key = key(bridges, station).ok_or("the interface is no port of a bridge domain")?;
        if station.mac[0] & 1 == 1 || station.mac == [0; 6] {
            return Err("a station's address is not zero and no group's".to_owned());
        }
        let is_others = bridges.macs.get(key).is_some_and(|known| known.is_configured())
            && !bridges.added.contains_key(&key);
        if is_others {
            return Err(format!("{} is configured already", key.mac()));
        }
        let port = Some(station.port);
        let entry = Configured { port, is_static, is_filter: false, is_bvi: false, far_end };
        bridges.macs.configure(key, entry, now).map_err(|error| error.to_string())?;
        bridges.added.insert(key, station.port);
        Ok(())
    })
}

fn remove(engine: &mut Engine, station: FdbEntry) {
    engine.with(|_, bridges: &mut Bridges| {
        // A port that has left its domain has taken its entries along.
        let Some(key) = key(bridges, station) else { return };
        if bridges.added.get(&key) != Some(&station.port) {
            return;
        }
        bridges.added.remove(&key);
        let known = bridges.macs.get(key);
        if known.is_some_and(|known| known.is_configured() && known.port() == station.port) {
            bridges.macs.remove(key);
            bridges.offices.forget();
        }
    });
}

fn answer(engine: &mut Engine, port: InterfaceId, address: IpAddr, mac: Option<[u8; 6]>) {
    engine.with(|_, bridges: &mut Bridges| {
        let Some(number) = bridges.ports.get(&port).map(|port| port.domain) else { return };
        let Ok(domain) = bridges.domain_mut(number) else { return };
        let stations = Arc::make_mut(&mut domain.stations);
        match mac {
            Some(mac) if stations.len() < STATIONS_MAX || stations.contains_key(&address) => {
                stations.insert(address, MacAddress(mac));
            }
            Some(_) => return,
            None => drop(stations.remove(&address)),
        }
        bridges.publish(number);
    });
}

fn learned(engine: &Engine, from: u32, each: Visit<'_>) -> Option<u32> {
    let macs = &engine.get::<Bridges>()?.macs;
    macs.scan(from, |key, entry| {
        if !entry.is_configured() && macs.holds(key, entry) {
            each(FdbEntry { port: entry.port(), mac: key.mac().0 });
        }
    })
}

fn learned_since(engine: &Engine, after: u64, each: Visit<'_>) -> u64 {
    let Some(bridges) = engine.get::<Bridges>() else { return after };
    for event in bridges.events.since(after) {
        let known = bridges.macs.get(event.key).filter(|known| !known.is_configured());
        if let (Some(known), Happened::Learned | Happened::Moved { .. }) = (known, event.happened) {
            each(FdbEntry { port: known.port(), mac: event.key.mac().0 });
        }
    }
    bridges.events.last()
}
