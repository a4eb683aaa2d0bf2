//! EVPN: a VXLAN interface with many far ends has a VXLAN device and a bridge in Linux, where FRR
//! finds the VNI. What FRR writes there, far ends of stations and of the flood list, is read back;
//! stations that the bridge domain has learned behind its other ports Linux's bridge gets behind a
//! silent device, so that FRR announces them (RFC 7432, RFC 8365).

pub(crate) mod stations;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use quiver_control::Refusal;
use quiver_control::layer_two::{BridgeFdb, FarEnds, FdbEntry};
use quiver_core::{Engine, InterfaceId};
use quiver_linux::TapKind;
use quiver_linux::link::check_name;
use quiver_netlink::Request;
use quiver_netlink::link::{
    LinkChange, NewKind, NewLink, PortUse, delete, join, without_own_address,
};

use crate::mirror::{Mirror, Namespace, Pair, mirror, name_of};
use crate::pairs::{self, PairWish};
use crate::reader::{Again, FarValue, LinkFacts, Order};

/// Bytes of a link's name in Linux at most, without what stands behind it in those of its bridge
/// and of the bridge's other ports.
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
    /// The tap by which the bridge is the twin of a routed interface, if it is.
    tap: Option<u32>,
    /// The links that went last: what stood behind them is reported gone after the link.
    gone: VecDeque<(Part, u32)>,
    /// Those that Linux was told to make.
    told: [bool; 3],
    /// Which links Linux was told to join.
    joined: Option<Joined>,
    /// Behind which far ends stations are or were, as FRR says.
    remotes: BTreeMap<[u8; 6], FarValue>,
    /// Stations that Linux's bridge has behind the VXLAN device now.
    bridged: BTreeSet<[u8; 6]>,
    /// Who has which address, as FRR says.
    answers: BTreeMap<IpAddr, [u8; 6]>,
    /// The bridge domain in which they are.
    domain: Option<u32>,
}

/// The bridge, and those of its ports that are not always there or are not made as they are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Joined {
    bridge: u32,
    vxlan: u32,
    tap: Option<u32>,
}

impl EvpnTwin {
    fn name(&self, part: Part) -> String {
        match part {
            Part::Bridge => bridge_name(&self.host_name),
            Part::Vxlan => self.host_name.clone(),
            Part::Local => format!("{}-l", self.host_name),
        }
    }

    /// The routed interface that has the bridge as its twin.
    pub fn routed(&self, mirror: &Mirror) -> Option<InterfaceId> {
        let bridge = self.name(Part::Bridge);
        let has_it = |pair: &Pair| pair.namespace == self.namespace && pair.host_name == bridge;
        mirror.pairs.iter().find(|(_, pair)| has_it(pair)).map(|(id, _)| *id)
    }

    fn link(&self, part: Part) -> Option<u32> {
        self.links[part as usize]
    }

    /// The link that stations behind other ports are behind in Linux.
    pub fn local(&self) -> Option<u32> {
        self.link(Part::Local)
    }

    /// What makes all others ports of the bridge: those that are left of a bridge that Linux has
    /// lost, and the tap of a routed interface. Nothing is learned behind the tap, for FRR says
    /// where stations are; and what the bridge itself sends to all goes to the router alone, which
    /// sends it on to the far ends. Without a tap the VXLAN device does that.
    fn join(&mut self) -> Vec<(String, Request)> {
        let [Some(bridge), Some(vxlan), Some(local)] = self.links else { return Vec::new() };
        let now = Joined { bridge, vxlan, tap: self.tap };
        let before = self.joined.replace(now);
        let mut asks = Vec::new();
        if before.is_some_and(|before| before.bridge != bridge) {
            let ports = [(Part::Vxlan, vxlan), (Part::Local, local)];
            asks.extend(ports.map(|(part, link)| (self.name(part), join(link, bridge))));
        }
        if let Some(tap) = self.tap.filter(|_| before != Some(now)) {
            let learns_not = PortUse::Learning(false).request(tap);
            asks.extend(
                [join(tap, bridge), learns_not].map(|ask| (tap_name(&self.host_name), ask)),
            );
        }
        let had_tap = before.is_some_and(|before| before.tap.is_some());
        if before != Some(now) && (had_tap || self.tap.is_some()) {
            let floods = PortUse::Flood(self.tap.is_none()).request(vxlan);
            asks.push((self.host_name.clone(), floods));
        }
        let in_words = |(link, ask)| (format!("{link} to be a port of the bridge"), ask);
        asks.into_iter().map(in_words).collect()
    }

    /// Do FRR's entries stand behind this link, or did they until it went?
    fn has(&self, namespace: &Namespace, part: Part, link: u32) -> bool {
        let is_known = self.link(part) == Some(link) || self.gone.contains(&(part, link));
        self.namespace == *namespace && is_known
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct EvpnWish {
    /// The VXLAN interface.
    pub id: InterfaceId,
    pub host_name: String,
    pub namespace: Namespace,
}

impl EvpnWish {
    /// The pair that lets the bridge be the twin of a routed interface.
    pub fn routed(&self, interface: InterfaceId) -> PairWish {
        PairWish {
            id: interface,
            kind: TapKind::Tap,
            host_name: bridge_name(&self.host_name),
            namespace: self.namespace.clone(),
            tap: None,
            tap_name: Some(tap_name(&self.host_name)),
            is_automatic: true,
        }
    }
}

/// The routed interfaces that have bridges of VNIs as twins, and the VXLAN interfaces of these.
pub(crate) fn routed(mirror: &Mirror) -> BTreeMap<InterfaceId, InterfaceId> {
    let bridge = |twin: &EvpnTwin| (twin.namespace.clone(), twin.name(Part::Bridge));
    let bridges: BTreeMap<(Namespace, String), InterfaceId> =
        mirror.evpn.iter().map(|(vxlan, twin)| (bridge(twin), *vxlan)).collect();
    let pairs = mirror.pairs.iter().filter(|(_, pair)| pair.is_automatic && !bridges.is_empty());
    pairs
        .filter_map(|(id, pair)| {
            let vxlan = bridges.get(&(pair.namespace.clone(), pair.host_name.clone()))?;
            Some((*id, *vxlan))
        })
        .collect()
}

fn bridge_name(host_name: &str) -> String {
    format!("{host_name}-b")
}

fn tap_name(host_name: &str) -> String {
    format!("{host_name}-r")
}

/// Can the interface have this twin?
pub(crate) fn check(engine: &Engine, wish: &EvpnWish) -> Result<(), Refusal> {
    let EvpnWish { id, host_name, namespace } = wish;
    let (id, name) = (*id, engine.interface_name(*id));
    let calls = engine.get::<FarEnds>();
    if calls.and_then(|calls| (calls.network)(engine, id)).is_none() {
        let what = format!("{name} is no VXLAN interface with many far ends");
        return Err(Refusal::new(what).remedy("`create vxlan interface … evpn` makes one"));
    }
    check_name(host_name).map_err(|error| Refusal::new(error.to_string()))?;
    if host_name.len() > NAME_BYTES_MAX {
        let what = format!("a link called {host_name}-b cannot be: names have 15 bytes");
        return Err(Refusal::new(what).remedy("give it a shorter name"));
    }
    let Some(mirror) = engine.get::<Mirror>() else { return Ok(()) };
    if mirror.evpn.contains_key(&id) {
        let remedy = format!("`lcp evpn del {name}` first");
        return Err(Refusal::new(format!("{name} has links in Linux already")).remedy(remedy));
    }
    if !mirror.followed.contains_key(namespace) {
        let what = format!("nothing has a twin in namespace `{}`", name_of(namespace));
        return Err(Refusal::new(what).remedy("`lcp create` for the interface to the underlay"));
    }
    Ok(())
}

/// Let an interface with many far ends have its twin in Linux.
pub(crate) fn create(engine: &mut Engine, wish: EvpnWish) -> Result<(), Refusal> {
    check(engine, &wish)?;
    let EvpnWish { id, host_name, namespace } = wish;
    let Some(mirror) = mirror(engine) else { return Ok(()) };
    let twin = EvpnTwin {
        host_name,
        namespace: namespace.clone(),
        links: [None; 3],
        tap: None,
        gone: VecDeque::new(),
        told: [false; 3],
        joined: None,
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
    if let Some(routed) = engine.get::<Mirror>().and_then(|mirror| twin.routed(mirror))
        && let Err(refusal) = pairs::delete(engine, routed)
    {
        tracing::warn!("{}: its twin stays: {refusal}", engine.interface_name(routed));
    }
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

/// Have Linux make the next link that is missing; once all are there, let the tap of a routed
/// interface be a port of the bridge.
fn fit(engine: &mut Engine, id: InterfaceId) {
    let Some(calls) = engine.get::<FarEnds>().copied() else { return };
    let Some(network) = (calls.network)(engine, id) else { return };
    let Some(mirror) = mirror(engine) else { return };
    let Mirror { evpn, followed, .. } = mirror;
    let Some(twin) = evpn.get_mut(&id) else { return };
    let Some(followed) = followed.get(&twin.namespace) else { return };
    let ask = |what: String, ask: Request| followed.kernel.reader.order(Order::Ask(what, ask));
    let Some(part) = PARTS.into_iter().find(|part| twin.link(*part).is_none()) else {
        return twin.join().into_iter().for_each(|(what, request)| ask(what, request));
    };
    if std::mem::replace(&mut twin.told[part as usize], true) {
        return;
    }
    let kind = match part {
        Part::Bridge => NewKind::Bridge,
        Part::Vxlan => {
            NewKind::Vxlan { vni: network.vni, local: network.source, port: network.port }
        }
        Part::Local => NewKind::Silent,
    };
    let new = NewLink { name: twin.name(part), kind, bridge: twin.link(Part::Bridge) };
    ask(format!("to make {}", new.name), new.create());
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
        let is_tap = facts.is_some_and(|facts| facts.name == tap_name(&twin.host_name));
        if is_tap != (twin.tap == Some(link)) {
            twin.tap = is_tap.then_some(link);
            news = Some((*id, is_tap));
        }
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
