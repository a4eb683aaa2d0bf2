//! State, MTU and layer 2 address of an interface and of its twin: either follows the other.

use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::ip::InterfaceAddresses;
use quiver_netlink::link::LinkChange;

use crate::mirror::{Mirror, Namespace, mirror};
use crate::reader::{Again, LinkFacts};
use crate::twins::Crossing;
use crate::{addresses, upper_links, vlan_links};

/// Linux sees a carrier on the twin while the interface can send.
pub(crate) fn show_carrier(engine: &mut Engine, id: InterfaceId) {
    let is_up = engine.interface(id).is_some_and(|interface| interface.row().up);
    let pair = engine.get::<Mirror>().and_then(|mirror| mirror.pairs.get(&id));
    // A VLAN of Linux has the carrier of the twin that it stands on.
    let own = pair.filter(|pair| pair.crossing != Crossing::Tagged);
    let Some(twin) = own.map(|pair| pair.twin) else { return };
    if engine.interface(twin).is_some_and(|twin| twin.admin_up != is_up)
        && let Err(error) = engine.set_admin_up(twin, is_up)
    {
        tracing::debug!("{}: {error}", engine.interface_name(twin));
    }
}

/// Have Linux change the twin.
fn update_linux(engine: &Engine, id: InterfaceId, change: LinkChange) {
    let Some(mirror) = engine.get::<Mirror>() else { return };
    let Some((pair, link)) = mirror.pairs.get(&id).and_then(|pair| Some((pair, pair.link?))) else {
        return;
    };
    let what = format!("a change of {}", pair.host_name);
    mirror.ask(&pair.namespace, what, change.request(link));
}

/// The interface has changed.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    let Some(interface) = engine.interface(id) else { return };
    let (admin_up, row) = (interface.admin_up, interface.row());
    let (mac, mtu_bytes) = (row.mac, row.mtu_bytes);
    let Some(mirror) = engine.get::<Mirror>() else { return };
    let Some(pair) = mirror.pairs.get(&id) else { return };
    let (linux, twin, updates_linux) = (pair.linux, pair.twin, mirror.updates_linux);
    let is_tagged = pair.crossing == Crossing::Tagged;
    match change {
        InterfaceChange::State => {
            show_carrier(engine, id);
            if updates_linux && linux.is_some_and(|(is_up, _)| is_up != admin_up) {
                update_linux(
                    engine,
                    id,
                    LinkChange { up: Some(admin_up), ..LinkChange::default() },
                );
            }
        }
        InterfaceChange::Mtu if updates_linux && is_tagged => {
            let is_news = linux.is_some_and(|(_, linux)| linux != mtu_bytes);
            let mtu_bytes = Some(mtu_bytes).filter(|_| is_news);
            if mtu_bytes.is_some() {
                update_linux(engine, id, LinkChange { mtu_bytes, ..LinkChange::default() });
            }
        }
        InterfaceChange::Mtu if updates_linux => {
            // The tap gives it on to its end in Linux.
            if let Err(error) = engine.set_mtu(twin, mtu_bytes) {
                tracing::warn!("{}: {error}", engine.interface_name(twin));
            }
        }
        InterfaceChange::Mac if !is_tagged => {
            update_linux(engine, id, LinkChange { mac: Some(mac), ..LinkChange::default() });
        }
        _ => {}
    }
}

/// Linux says what the twin of a pair is like now.
pub(crate) fn take_link(engine: &mut Engine, namespace: &Namespace, link: u32, facts: &LinkFacts) {
    let Some(id) = pair_of(engine, namespace, link, facts) else { return };
    let Some(interface) = engine.interface(id) else { return };
    let (admin_up, row) = (interface.admin_up, interface.row());
    let (mac, mtu_bytes) = (row.mac, row.mtu_bytes);
    let now = (facts.is_up, facts.mtu_bytes);
    let Some(mirror) = mirror(engine) else { return };
    let Some(pair) = mirror.pairs.get_mut(&id) else { return };
    let before = pair.linux.replace(now);
    // A sub-interface has the layer 2 address of its port.
    let follows_mac = pair.crossing == Crossing::Frames;
    pair.is_bridge_port = facts.is_bridge_port;
    pair.is_in_vrf = facts.is_in_vrf;
    let had_mac = pair.linux_mac.replace(facts.mac);
    if had_mac != Some(facts.mac) {
        pair.written_neighbours.clear(); // Linux forgets them with the layer 2 address of a link
    }
    let is_own_news = before.is_none_or(|before| before.0 != now.0) || had_mac != Some(facts.mac);
    if is_own_news {
        mirror.own.compare_all();
    }
    let Some(before) = before else {
        // The first time: the twin becomes like the interface.
        let up = (facts.is_up != admin_up).then_some(admin_up);
        let mac = (facts.mac != mac).then_some(mac);
        if up.is_some() || mac.is_some() {
            update_linux(engine, id, LinkChange { up, mac, mtu_bytes: None });
        }
        return;
    };
    let refused = |engine: &Engine, error: quiver_core::control::interfaces::InterfaceError| {
        tracing::warn!("{}: {error}", engine.interface_name(id));
    };
    if before.0 != now.0
        && now.0 != admin_up
        && let Err(error) = engine.set_admin_up(id, now.0)
    {
        refused(engine, error);
    }
    if before.1 != now.1
        && now.1 != mtu_bytes
        && let Err(error) = engine.set_mtu(id, now.1)
    {
        refused(engine, error);
    }
    if follows_mac
        && facts.mac != mac
        && facts.mac != [0; 6]
        && let Err(error) = engine.set_mac(id, facts.mac)
    {
        refused(engine, error);
    }
}

/// The pair that a link is the twin of. A pair whose link is not known yet has the one with the
/// name that it was made with.
fn pair_of(
    engine: &mut Engine,
    namespace: &Namespace,
    link: u32,
    facts: &LinkFacts,
) -> Option<InterfaceId> {
    let mirror = mirror(engine)?;
    if let Some(known) = mirror.by_link(namespace, link) {
        if let Some(pair) = mirror.pairs.get_mut(&known).filter(|p| p.host_name != facts.name) {
            tracing::info!("Linux calls {} {} now", pair.host_name, facts.name);
            pair.host_name.clone_from(&facts.name);
        }
        return Some(known);
    }
    let (id, pair) = mirror.pairs.iter_mut().find(|(_, pair)| {
        pair.link.is_none() && pair.namespace == *namespace && pair.host_name == facts.name
    })?;
    pair.link = Some(link);
    let id = *id;
    mirror.by_link.insert((namespace.clone(), link), id);
    mirror.report_again(namespace, Again::Link(link));
    upper_links::fit_interface(engine, id);
    vlan_links::fit_all(engine);
    let mirror = engine.get::<Mirror>()?;
    if let (true, Some(calls)) = (mirror.updates_linux, engine.get::<InterfaceAddresses>().copied())
    {
        addresses::update_twin(engine, id, calls);
    }
    Some(id)
}
