//! Addresses of an interface and of its twin: what either gets or loses, the other does, too.

use std::net::IpAddr;

use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::ip::InterfaceAddresses;
use quiver_netlink::address::LinkAddress;

use crate::mirror::{Mirror, Namespace, mirror};
use crate::reader::AddressKey;

/// Linux's twin has an address, or has it no more.
pub(crate) fn take_address(
    engine: &mut Engine,
    namespace: &Namespace,
    (link, address, length): AddressKey,
    is_there: bool,
) {
    let Some(calls) = engine.get::<InterfaceAddresses>().copied() else { return };
    let Some(mirror) = mirror(engine) else { return };
    let Some(id) = mirror.by_link(namespace, link) else { return };
    let Some(pair) = mirror.pairs.get_mut(&id) else { return };
    let own = (address, length_of(address, length));
    pair.refused.remove(&own);
    let was_there = match is_there {
        true => !pair.addresses.insert(own),
        false => !pair.addresses.remove(&own),
    };
    let has = (calls.of)(engine, id).contains(&own);
    if was_there || has == is_there {
        return;
    }
    let done = match is_there {
        true => (calls.add)(engine, id, own.0, own.1),
        false => (calls.remove)(engine, id, own.0, own.1),
    };
    let Err(why) = done else { return };
    tracing::warn!("{}: {address}/{length} of Linux: {why}", engine.interface_name(id));
    let pair = engine.get_mut::<Mirror>().and_then(|mirror| mirror.pairs.get_mut(&id));
    if let Some(pair) = pair.filter(|_| is_there) {
        pair.addresses.remove(&own);
        pair.refused.insert(own, why);
    }
}

/// The router has no subnet for a link-local address.
fn length_of(address: IpAddr, length: u8) -> u8 {
    match address {
        IpAddr::V6(address) if address.is_unicast_link_local() => 128,
        _ => length,
    }
}

/// Once a turn of the control loop: have Linux follow what has changed here.
pub(crate) fn update_twins(engine: &mut Engine) {
    let Some(calls) = engine.get::<InterfaceAddresses>().copied() else { return };
    let changes = (calls.changes)(engine);
    let Some(mirror) = mirror(engine) else { return };
    if mirror.address_changes == changes || !mirror.updates_linux {
        return;
    }
    mirror.address_changes = changes;
    let ids: Vec<InterfaceId> = mirror.pairs.keys().copied().collect();
    ids.into_iter().for_each(|id| update_twin(engine, id, calls));
}

/// Have a twin get the addresses of its interface, and lose those that the interface lost.
pub(crate) fn update_twin(engine: &mut Engine, id: InterfaceId, calls: InterfaceAddresses) {
    let own = (calls.of)(engine, id);
    let Some(mirror) = mirror(engine) else { return };
    let Some(pair) = mirror.pairs.get_mut(&id) else { return };
    let Some(link) = pair.link else { return };
    let mut asks = Vec::new();
    for (address, length) in &own {
        if pair.addresses.insert((*address, *length)) {
            let wire = if length_of(*address, 0) == 128 { 64 } else { *length };
            let new = LinkAddress { link, address: *address, length: wire, is_duplicate: false };
            asks.push((format!("address {address}/{wire} of {}", pair.host_name), new.add()));
        }
    }
    let gone: Vec<_> = pair.addresses.iter().filter(|has| !own.contains(has)).copied().collect();
    for (address, length) in gone {
        pair.addresses.remove(&(address, length));
        let wire = if length_of(address, 0) == 128 { 64 } else { length };
        let old = LinkAddress { link, address, length: wire, is_duplicate: false };
        asks.push((format!("removal of {address}/{wire} from {}", pair.host_name), old.remove()));
    }
    let namespace = pair.namespace.clone();
    for (what, request) in asks {
        mirror.ask(&namespace, what, request);
    }
}
