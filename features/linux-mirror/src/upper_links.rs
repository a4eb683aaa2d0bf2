//! Links of Linux that stand on twins: macvlans, with which daemons give an interface further layer
//! 2 addresses. VRRP in Linux (keepalived with `use_vmac`, FRR's vrrpd) has its virtual MAC address
//! (RFC 9568 §7.3) and the addresses of the virtual router there.
//!
//! While such a link can send and has an address, the interface takes frames to its layer 2
//! address, answers ARP and neighbour discovery for its addresses with it, and forwards packets to
//! others. A backup's link has no addresses (keepalived), or cannot send (FRR).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Fib, Path, Source, Target};
use quiver_forwarding::ip::IpTables;
use quiver_tables::prefix::IpPrefix;
use quiver_wire::MacAddress;

use crate::mirror::{Mirror, Namespace, mirror};
use crate::reader::LinkFacts;

/// Whose further addresses of interfaces these are.
const OWNER: &str = "linux-cp";

/// A link on another one.
#[derive(Debug)]
struct UpperLink {
    parent: u32,
    mac: [u8; 6],
    is_running: bool,
    addresses: BTreeSet<IpAddr>,
}

impl UpperLink {
    /// Does Linux use it? The address that a kernel gives a link by itself says nothing.
    fn is_active(&self) -> bool {
        let own = IpAddr::from(MacAddress(self.mac).link_local());
        self.is_running && self.addresses.iter().any(|address| *address != own)
    }
}

/// Links on twins.
#[derive(Default)]
pub(crate) struct UpperLinks {
    links: BTreeMap<(Namespace, u32), UpperLink>,
    /// Routes to their addresses, by interface: table and prefix.
    routes: BTreeMap<InterfaceId, BTreeSet<(u32, IpPrefix)>>,
}

/// Linux says what a link is like, or that it is gone.
pub(crate) fn take_link(
    engine: &mut Engine,
    namespace: &Namespace,
    link: u32,
    facts: Option<&LinkFacts>,
) {
    let Some(mirror) = mirror(engine) else { return };
    let key = (namespace.clone(), link);
    let before = mirror.uppers.links.get(&key).map(|upper| upper.parent);
    let parent = facts.filter(|facts| facts.is_macvlan).and_then(|facts| facts.parent);
    match facts.zip(parent) {
        Some((facts, parent)) => {
            let addresses = BTreeSet::new();
            let new = UpperLink { parent, mac: facts.mac, is_running: facts.is_running, addresses };
            let upper = mirror.uppers.links.entry(key).or_insert(new);
            (upper.parent, upper.mac, upper.is_running) = (parent, facts.mac, facts.is_running);
        }
        None => drop(mirror.uppers.links.remove(&key)),
    }
    let parents: BTreeSet<u32> = before.into_iter().chain(parent).collect();
    let ids: Vec<_> = parents.iter().filter_map(|on| mirror.by_link(namespace, *on)).collect();
    ids.into_iter().for_each(|id| fit_interface(engine, id));
}

/// A link has an address, or has it no more.
pub(crate) fn take_address(
    engine: &mut Engine,
    namespace: &Namespace,
    link: u32,
    address: IpAddr,
    is_there: bool,
) {
    let Some(mirror) = mirror(engine) else { return };
    let Some(upper) = mirror.uppers.links.get_mut(&(namespace.clone(), link)) else { return };
    let is_news = match is_there {
        true => upper.addresses.insert(address),
        false => upper.addresses.remove(&address),
    };
    let parent = upper.parent;
    if let Some(id) = mirror.by_link(namespace, parent).filter(|_| is_news) {
        fit_interface(engine, id);
    }
}

/// Let an interface have the layer 2 addresses of the links on its twin, and none when it has no
/// twin any more.
pub(crate) fn fit_interface(engine: &mut Engine, id: InterfaceId) {
    let Some(mirror) = engine.get::<Mirror>() else { return };
    let on_twin = |key: &(Namespace, u32), upper: &UpperLink| {
        mirror.by_link(&key.0, upper.parent) == Some(id) && upper.is_active()
    };
    let active = mirror.uppers.links.iter().filter(|(key, upper)| on_twin(key, upper));
    let (mut macs, mut addresses) = (Vec::new(), Vec::new());
    for (_, upper) in active {
        macs.push(upper.mac);
        addresses.extend(upper.addresses.iter().map(|own| (*own, MacAddress(upper.mac))));
    }
    addresses.sort_unstable_by_key(|(address, _)| *address);
    addresses.dedup_by_key(|(address, _)| *address);
    if engine.interface(id).is_some()
        && let Err(error) = engine.set_virtual_macs(id, OWNER, macs)
    {
        tracing::warn!("{}: further MAC addresses: {error}", engine.interface_name(id));
    }
    if let Some(tables) = engine.shared::<IpTables>() {
        tables.interfaces.publish_virtual(id, OWNER, addresses.clone());
    }
    engine.with(|engine, mirror: &mut Mirror| fit_routes(engine, mirror, id, &addresses));
}

/// Packets to these addresses are for the router, or for Linux.
fn fit_routes(
    engine: &mut Engine,
    mirror: &mut Mirror,
    id: InterfaceId,
    addresses: &[(IpAddr, MacAddress)],
) {
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    let own: Vec<IpAddr> = fib.addresses(id).map(|(address, _)| address).collect();
    let others = addresses.iter().map(|(address, _)| *address);
    let others = others.filter(|address| !own.contains(address));
    let wanted: BTreeSet<(u32, IpPrefix)> =
        others.filter_map(|to| Some((table(fib, id, to)?, IpPrefix::host(to)))).collect();
    let has = mirror.uppers.routes.remove(&id).unwrap_or_default();
    for (table, prefix) in has.difference(&wanted) {
        let _ = fib.remove_route(*table, *prefix, Source::Feature); // it may have gone with a table
    }
    for (table, prefix) in wanted.difference(&has) {
        let paths = [Path::new(Target::Local)];
        if let Err(error) = fib.replace_route(*table, *prefix, Source::Feature, &paths) {
            tracing::warn!("no route to {prefix}, which Linux has: {error}");
        }
    }
    if !wanted.is_empty() {
        mirror.uppers.routes.insert(id, wanted);
    }
}

/// The table in which an address of an interface is looked up.
fn table(fib: &Fib, id: InterfaceId, address: IpAddr) -> Option<u32> {
    let info = fib.interface(id)?;
    match address {
        IpAddr::V4(_) => Some(info.ip4_table),
        IpAddr::V6(six) if six.is_unicast_link_local() => fib.link_local_table(id),
        IpAddr::V6(_) => Some(info.ip6_table),
    }
}
