//! What FRR says of a VNI: behind which far end stations are, where frames to all go, and who has
//! which address.

use std::net::IpAddr;

use quiver_control::layer_two::{BridgeFdb, FarEnds, FarPlace, FdbEntry};
use quiver_core::{Engine, InterfaceId};

use super::Part;
use crate::mirror::{Mirror, Namespace, mirror};
use crate::reader::{FarKey, FarValue, NeighbourFacts};

/// FRR says behind which far end a station is, or that frames to all go there.
pub(crate) fn take_far(
    engine: &mut Engine,
    namespace: &Namespace,
    (link, mac, to_all): FarKey,
    remote: Option<FarValue>,
) {
    let Some(calls) = engine.get::<FarEnds>().copied() else { return };
    let Some(mirror) = mirror(engine) else { return };
    let mut twins = mirror.evpn.iter_mut();
    let found = twins.find(|(_, twin)| twin.has(namespace, Part::Vxlan, link));
    let Some((port, twin)) = found.map(|(id, twin)| (*id, twin)) else { return };
    if let Some(address) = to_all {
        if let Err(why) = (calls.flood)(engine, port, address, remote.is_some()) {
            tracing::warn!("{}: VTEP {address}: {why}", engine.interface_name(port));
        }
        return;
    }
    match remote {
        Some(remote) => twin.remotes.insert(mac, remote),
        None => twin.remotes.remove(&mac),
    };
    fit_station(engine, calls, FdbEntry { port, mac });
}

/// Linux's bridge has a station behind the VXLAN device, or no more. FRR leaves the far end of a
/// station that has moved to this side in the VXLAN device: the bridge's entry decides. False for a
/// link that is no such device.
pub(crate) fn take_bridged(
    engine: &mut Engine,
    namespace: &Namespace,
    (link, mac): (u32, [u8; 6]),
    is_there: bool,
) -> bool {
    let Some(calls) = engine.get::<FarEnds>().copied() else { return false };
    let Some(mirror) = mirror(engine) else { return false };
    let mut twins = mirror.evpn.iter_mut();
    let found = twins.find(|(_, twin)| twin.has(namespace, Part::Vxlan, link));
    let Some((port, twin)) = found.map(|(id, twin)| (*id, twin)) else { return false };
    match is_there {
        true => twin.bridged.insert(mac),
        false => twin.bridged.remove(&mac),
    };
    fit_station(engine, calls, FdbEntry { port, mac });
    true
}

/// Let a station be behind the far end that FRR says, or behind none.
fn fit_station(engine: &mut Engine, calls: FarEnds, station: FdbEntry) {
    let twin = engine.get::<Mirror>().and_then(|mirror| mirror.evpn.get(&station.port));
    let remote = twin.filter(|twin| twin.bridged.contains(&station.mac));
    let place = remote.and_then(|twin| Some((twin, *twin.remotes.get(&station.mac)?)));
    let place = place.map(|(twin, value)| match value {
        FarValue::Vtep(remote) => FarPlace::Vtep(remote),
        FarValue::Object(id) => FarPlace::Group(id, far_object(engine, &twin.namespace, id)),
    });
    match place {
        None => (calls.remove)(engine, station),
        Some(place) => {
            if let Err(why) = (calls.add)(engine, station, place) {
                let name = engine.interface_name(station.port);
                tracing::debug!("{name}: a station of EVPN: {why}");
            }
        }
    }
}

/// The far end to which frames go that name a next-hop object.
fn far_object(engine: &Engine, namespace: &Namespace, id: u32) -> Option<IpAddr> {
    engine.get::<Mirror>()?.followed.get(namespace)?.far_objects.get(&id).copied()
}

/// The frames of all stations behind a next-hop object go to this far end, or to none.
pub(crate) fn take_far_object(
    engine: &mut Engine,
    namespace: &Namespace,
    id: u32,
    remote: Option<IpAddr>,
) {
    let Some(calls) = engine.get::<FarEnds>().copied() else { return };
    let Some(mirror) = mirror(engine) else { return };
    let Some(followed) = mirror.followed.get_mut(namespace) else { return };
    let old = match remote {
        Some(remote) => followed.far_objects.insert(id, remote),
        None => followed.far_objects.remove(&id),
    };
    if old == remote {
        return;
    }
    let twins = mirror.evpn.iter().filter(|(_, twin)| twin.namespace == *namespace);
    let ports: Vec<InterfaceId> = twins.map(|(port, _)| *port).collect();
    for port in ports {
        if let Err(why) = (calls.redirect)(engine, port, id, remote) {
            tracing::warn!("{}: next-hop object {id}: {why}", engine.interface_name(port));
        }
    }
}

/// FRR says who has an address: the bridge domain answers for it.
pub(crate) fn take_neighbour(
    engine: &mut Engine,
    namespace: &Namespace,
    link: u32,
    address: IpAddr,
    facts: Option<NeighbourFacts>,
) {
    let Some(calls) = engine.get::<BridgeFdb>().copied() else { return };
    let Some(mirror) = mirror(engine) else { return };
    let mut twins = mirror.evpn.iter_mut();
    let found = twins.find(|(_, twin)| twin.has(namespace, Part::Bridge, link));
    let Some((port, twin)) = found.map(|(id, twin)| (*id, twin)) else { return };
    match facts {
        Some(facts) => twin.answers.insert(address, facts.mac),
        None => twin.answers.remove(&address),
    };
    (calls.answer)(engine, port, address, facts.map(|facts| facts.mac));
}

/// Let what FRR has said be in the bridge domain that the interface is in now.
pub(crate) fn follow_domains(engine: &mut Engine) {
    let (far, bridge) = (engine.get::<FarEnds>().copied(), engine.get::<BridgeFdb>().copied());
    let (Some(far), Some(bridge)) = (far, bridge) else { return };
    let Some(mirror) = engine.get::<Mirror>() else { return };
    let moved: Vec<(InterfaceId, Option<u32>)> = mirror
        .evpn
        .iter()
        .map(|(id, twin)| (*id, twin.domain, (bridge.domain)(engine, *id)))
        .filter(|(_, old, new)| old != new)
        .map(|(id, _, new)| (id, new))
        .collect();
    for (port, domain) in moved {
        let Some(mirror) = engine.get_mut::<Mirror>() else { return };
        let Some(twin) = mirror.evpn.get_mut(&port) else { continue };
        twin.domain = domain;
        let (stations, answers) = (twin.bridged.clone(), twin.answers.clone());
        for mac in stations {
            (far.remove)(engine, FdbEntry { port, mac });
            fit_station(engine, far, FdbEntry { port, mac });
        }
        for (address, mac) in answers {
            (bridge.answer)(engine, port, address, Some(mac));
        }
    }
}
