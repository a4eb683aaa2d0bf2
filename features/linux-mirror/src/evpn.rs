//! EVPN: a VXLAN interface with many far ends has a VXLAN device and a bridge in Linux, where FRR
//! finds the VNI. What FRR writes there, far ends of stations and of the flood list, is read back;
//! stations that the bridge domain has learned behind its other ports Linux's bridge gets behind a
//! silent device, so that FRR announces them (RFC 7432, RFC 8365).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use quiver_control::Refusal;
use quiver_control::layer_two::{BridgeFdb, FarEnds, FarPlace, FdbEntry};
use quiver_core::{Engine, InterfaceId};
use quiver_linux::link::check_name;
use quiver_netlink::Request;
use quiver_netlink::link::{LinkChange, NewKind, NewLink, delete, without_own_address};

use crate::mirror::{Mirror, Namespace, mirror, name_of};
use crate::reader::{Again, FarKey, FarValue, LinkFacts, NeighbourFacts, Order};

/// Bytes of a link's name in Linux at most, without what stands behind it in those of the bridge
/// and of the silent device.
pub(crate) const NAME_BYTES_MAX: usize = 13;
/// Links of a twin that went and are remembered: their stations are reported within a second.
const GONE_LINKS_MAX: usize = 16;

/// The links that a twin has in Linux, in the order in which they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Bridge,
    Vxlan,
    Local,
}

const PARTS: [Part; 3] = [Part::Bridge, Part::Vxlan, Part::Local];

/// What a VXLAN interface has in Linux.
pub(crate) struct EvpnTwin {
    /// The name of the VXLAN device.
    pub host_name: String,
    pub namespace: Namespace,
    /// The numbers of its links, once they are known.
    links: [Option<u32>; 3],
    /// The links that went last: what stood behind them is reported gone after the link.
    gone: VecDeque<(Part, u32)>,
    /// Those that Linux was told to make.
    told: [bool; 3],
    /// Behind which far ends stations are or were, as FRR says.
    remotes: BTreeMap<[u8; 6], FarValue>,
    /// Stations that Linux's bridge has behind the VXLAN device now.
    bridged: BTreeSet<[u8; 6]>,
    /// Who has which address, as FRR says.
    answers: BTreeMap<IpAddr, [u8; 6]>,
    /// The bridge domain in which they are.
    domain: Option<u32>,
}

impl EvpnTwin {
    fn name(&self, part: Part) -> String {
        match part {
            Part::Bridge => format!("{}-b", self.host_name),
            Part::Vxlan => self.host_name.clone(),
            Part::Local => format!("{}-l", self.host_name),
        }
    }

    fn link(&self, part: Part) -> Option<u32> {
        self.links[part as usize]
    }

    /// The link that stations behind other ports are behind in Linux.
    pub fn local(&self) -> Option<u32> {
        self.link(Part::Local)
    }

    /// Do FRR's entries stand behind this link, or did they until it went?
    fn has(&self, namespace: &Namespace, part: Part, link: u32) -> bool {
        let is_known = self.link(part) == Some(link) || self.gone.contains(&(part, link));
        self.namespace == *namespace && is_known
    }
}

/// Let an interface with many far ends have its twin in Linux.
pub(crate) fn create(
    engine: &mut Engine,
    id: InterfaceId,
    host_name: String,
    namespace: Namespace,
) -> Result<(), Refusal> {
    let name = engine.interface_name(id);
    let calls = engine.get::<FarEnds>().copied();
    if calls.and_then(|calls| (calls.network)(engine, id)).is_none() {
        let what = format!("{name} is no VXLAN interface with many far ends");
        return Err(Refusal::new(what).remedy("`create vxlan interface … evpn` makes one"));
    }
    check_name(&host_name).map_err(|error| Refusal::new(error.to_string()))?;
    if host_name.len() > NAME_BYTES_MAX {
        let what = format!("a link called {host_name}-b cannot be: names have 15 bytes");
        return Err(Refusal::new(what).remedy("give it a shorter name"));
    }
    let Some(mirror) = mirror(engine) else { return Ok(()) };
    if mirror.evpn.contains_key(&id) {
        let remedy = format!("`lcp evpn {name} del` first");
        return Err(Refusal::new(format!("{name} has links in Linux already")).remedy(remedy));
    }
    if !mirror.followed.contains_key(&namespace) {
        let what = format!("nothing has a twin in namespace `{}`", name_of(&namespace));
        return Err(Refusal::new(what).remedy("`lcp create` for the interface to the underlay"));
    }
    let twin = EvpnTwin {
        host_name,
        namespace: namespace.clone(),
        links: [None; 3],
        gone: VecDeque::new(),
        told: [false; 3],
        remotes: BTreeMap::new(),
        bridged: BTreeSet::new(),
        answers: BTreeMap::new(),
        domain: None,
    };
    mirror.evpn.insert(id, twin);
    // Links that are there already are reported again; what is missing is made then.
    mirror.report_again(&namespace, Again::All);
    fit(engine, id);
    Ok(())
}

/// The interface has no twin any more: its links go, and what FRR has said.
pub(crate) fn end(engine: &mut Engine, id: InterfaceId) -> bool {
    let Some(twin) = mirror(engine).and_then(|mirror| mirror.evpn.remove(&id)) else {
        return false;
    };
    withdraw(engine, id, &twin);
    let Some(mirror) = mirror(engine) else { return true };
    mirror.stations.forget_port(id);
    for (part, link) in PARTS.into_iter().zip(twin.links).rev() {
        if let Some(link) = link {
            mirror.ask(&twin.namespace, format!("to delete {}", twin.name(part)), delete(link));
        }
    }
    true
}

/// Take what FRR has said out of the bridge domain.
fn withdraw(engine: &mut Engine, port: InterfaceId, twin: &EvpnTwin) {
    let (far, bridge) = (engine.get::<FarEnds>().copied(), engine.get::<BridgeFdb>().copied());
    for mac in &twin.bridged {
        if let Some(calls) = far {
            (calls.remove)(engine, FdbEntry { port, mac: *mac });
        }
    }
    for address in twin.answers.keys() {
        if let Some(calls) = bridge {
            (calls.answer)(engine, port, *address, None);
        }
    }
}

/// Have Linux make the next link that is missing.
fn fit(engine: &mut Engine, id: InterfaceId) {
    let Some(calls) = engine.get::<FarEnds>().copied() else { return };
    let Some(network) = (calls.network)(engine, id) else { return };
    let Some(mirror) = mirror(engine) else { return };
    let Mirror { evpn, followed, .. } = mirror;
    let Some(twin) = evpn.get_mut(&id) else { return };
    let next = PARTS.into_iter().find(|part| twin.link(*part).is_none());
    let Some(part) = next.filter(|part| !twin.told[*part as usize]) else { return };
    twin.told[part as usize] = true;
    let kind = match part {
        Part::Bridge => NewKind::Bridge,
        Part::Vxlan => {
            NewKind::Vxlan { vni: network.vni, local: network.source, port: network.port }
        }
        Part::Local => NewKind::Silent,
    };
    let bridge = twin.link(Part::Bridge);
    let new = NewLink { name: twin.name(part), kind, bridge };
    if let Some(followed) = followed.get(&twin.namespace) {
        let what = format!("to make {}", new.name);
        followed.kernel.reader.order(Order::Ask(what, new.create()));
    }
}

/// Linux says what a link is like, or that it is gone.
pub(crate) fn take_link(
    engine: &mut Engine,
    namespace: &Namespace,
    link: u32,
    facts: Option<&LinkFacts>,
) {
    let Some(mirror) = mirror(engine) else { return };
    let mut news = None;
    for (id, twin) in mirror.evpn.iter_mut().filter(|(_, twin)| twin.namespace == *namespace) {
        for part in PARTS {
            let is_it = facts.is_some_and(|facts| facts.name == twin.name(part));
            let was_it = twin.links[part as usize] == Some(link);
            if is_it && !was_it {
                twin.links[part as usize] = Some(link);
                news = Some((*id, true));
            } else if was_it && facts.is_none() {
                (twin.links[part as usize], twin.told[part as usize]) = (None, false);
                twin.gone.push_front((part, link));
                twin.gone.truncate(GONE_LINKS_MAX);
                news = Some((*id, false));
            }
        }
    }
    let Some((id, is_new)) = news else { return };
    if is_new {
        let quiet: Request = without_own_address(link);
        let up = LinkChange { up: Some(true), ..LinkChange::default() }.request(link);
        mirror.ask(namespace, format!("link {link} to have no address"), quiet);
        mirror.ask(namespace, format!("link {link} to be up"), up);
        // What stands behind it may have been told before.
        mirror.report_again(namespace, Again::Link(link));
    }
    fit(engine, id);
}

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
