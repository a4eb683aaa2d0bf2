//! What follows from virtual routers, and what they follow: the active one answers for its
//! addresses with its own MAC address; virtual routers run only while their interface is up and has
//! an address.

use std::collections::BTreeSet;
use std::net::IpAddr;

use quiver_control::{EventValue, Field, Topic, publish};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::control::session_states::SessionStates;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Fib, Path, Source, Target};
use quiver_forwarding::ip::{IpTables, Listener};
use quiver_forwarding::next_hop_group::Hop;
use quiver_tables::prefix::IpPrefix;
use quiver_wire::vrrp::virtual_mac;

use crate::config::{self, Entry, Tracked, Update, Vrrp, on_worker};
use crate::frames::group;
use crate::guard;
use crate::machine::State;
use crate::shared::VrKey;

/// How often addresses of interfaces are looked at.
const LOOK_NS: u64 = 1_000_000_000;

/// Clients can subscribe to changes of virtual routers.
pub(crate) static VRRP: Topic = Topic {
    name: "vrrp",
    help: "a virtual router becomes the active one here, or ceases to be",
    fields: &[
        Field { key: "interface", help: "its interface" },
        Field { key: "vr_id", help: "its number" },
        Field { key: "family", help: "ip4 or ip6" },
        Field { key: "state", help: "Initialize, Backup or Master" },
    ],
};

/// Listen to workers, interfaces and time.
pub(crate) fn start(engine: &mut Engine, vrrp: Vrrp) {
    let shared = vrrp.shared.clone();
    engine.insert(vrrp);
    SessionStates::follow(engine, &shared, |shared| shared.states(), follow_states);
    engine.on_interface_change(follow_interface);
    engine.every(LOOK_NS, refresh);
    let mut seen = 0;
    engine.on_turn(move |engine| {
        let changes = engine.get::<Fib>().map_or(seen, Fib::liveness_changes);
        if std::mem::replace(&mut seen, changes) != changes {
            refresh(engine);
        }
    });
}

fn family(key: VrKey) -> &'static str {
    if key.is_ip6 { "ip6" } else { "ip4" }
}

/// Look which virtual routers have changed, and let addresses follow.
fn follow_states(engine: &mut Engine) {
    engine.with(|engine, vrrp: &mut Vrrp| {
        let mut interfaces = BTreeSet::new();
        let shared = vrrp.shared.clone();
        for (key, entry) in &mut vrrp.routers {
            let state = shared.state(entry.place.slot);
            if state != entry.state {
                entry.state = state;
                interfaces.insert(key.interface);
                announce(engine, *key, state);
            }
        }
        for id in interfaces {
            fit_interface(engine, vrrp, id);
        }
    });
}

/// Whose further MAC addresses and addresses of interfaces these are.
const OWNER: &str = "vrrp";

fn announce(engine: &Engine, key: VrKey, state: State) {
    let (name, id) = (engine.interface_name(key.interface), key.vr_id);
    tracing::info!("VRRP {} VR ID {id} on {name}: {}", family(key), state.name());
    let values = [
        EventValue::Text(name),
        EventValue::Number(id.into()),
        EventValue::Word(family(key)),
        EventValue::Word(state.name()),
    ];
    publish(engine, &VRRP, values);
}

/// Let an interface answer for the addresses of its active virtual routers, and take frames to
/// their MAC addresses.
pub(crate) fn fit_interface(engine: &mut Engine, vrrp: &mut Vrrp, id: InterfaceId) {
    let of_interface = vrrp.routers.iter().filter(|(key, _)| key.interface == id);
    let active = of_interface.filter(|(_, entry)| entry.state == State::Active);
    let (mut macs, mut addresses) = (Vec::new(), Vec::new());
    for (key, entry) in active {
        let mac = virtual_mac(key.vr_id, key.is_ip6);
        macs.push(mac.0);
        addresses.extend(entry.new.addresses.iter().map(|address| (*address, mac)));
    }
    addresses.sort_unstable_by_key(|(address, _): &(IpAddr, _)| *address);
    if engine.interface(id).is_some()
        && let Err(error) = engine.set_virtual_macs(id, OWNER, macs)
    {
        tracing::error!("{}: virtual MAC addresses: {error}", engine.interface_name(id));
    }
    if let Some(tables) = engine.shared::<IpTables>() {
        tables.interfaces.publish_virtual(id, OWNER, addresses);
    }
    for (key, entry) in vrrp.routers.iter_mut().filter(|(key, _)| key.interface == id) {
        fit_routes(engine, *key, entry);
    }
}

/// Packets to the addresses of the active virtual router are the router's own, or dropped; those
/// that the interface has itself are its own anyway.
pub(crate) fn fit_routes(engine: &mut Engine, key: VrKey, entry: &mut Entry) {
    let guard = engine.node_id(guard::NODE);
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    let own: Vec<IpAddr> = fib.addresses(key.interface).map(|(address, _)| address).collect();
    let mut wanted = BTreeSet::new();
    if entry.state == State::Active {
        for address in entry.new.addresses.iter().filter(|address| !own.contains(address)) {
            wanted
                .extend(table(fib, key.interface, *address).map(|t| (t, IpPrefix::host(*address))));
        }
    }
    let target = match guard.filter(|_| !entry.new.accepts) {
        Some(next) => Target::Feature(Hop { next, index: 0 }),
        None => Target::Local,
    };
    for (table, prefix) in entry.routes.difference(&wanted) {
        if let Err(error) = fib.remove_route(*table, *prefix, Source::Feature) {
            tracing::error!("the route to a virtual router stays: {error}");
        }
    }
    for (table, prefix) in wanted.difference(&entry.routes) {
        let paths = [Path::new(target)];
        if let Err(error) = fib.replace_route(*table, *prefix, Source::Feature, &paths) {
            tracing::error!("no route to a virtual router: {error}");
        }
    }
    entry.routes = wanted;
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

/// Listen to the groups of advertisements where there are virtual routers.
pub(crate) fn listen(engine: &Engine, vrrp: &Vrrp, id: InterfaceId) {
    let families: BTreeSet<bool> =
        vrrp.routers.keys().filter(|key| key.interface == id).map(|key| key.is_ip6).collect();
    if let Some(tables) = engine.shared::<IpTables>() {
        let groups = families.into_iter().map(group).collect();
        tables.interfaces.publish_protocol_groups(id, Listener::VirtualRouter, groups);
    }
}

fn refresh(engine: &mut Engine) {
    engine.with(|engine, vrrp: &mut Vrrp| {
        for (key, entry) in &mut vrrp.routers {
            refresh_router(engine, *key, entry);
            fit_routes(engine, *key, entry);
        }
    });
}

/// Look at the surroundings of a virtual router again, and tell its worker what has changed.
pub(crate) fn refresh_router(engine: &mut Engine, key: VrKey, entry: &mut Entry) {
    let is_up = |id: InterfaceId| engine.interface(id).is_some_and(|on| on.row().up);
    let source = source(engine, key);
    let is_down = |tracked: Tracked| match tracked {
        Tracked::Interface(id) => !is_up(id),
        Tracked::Peer(watched) => {
            engine.get::<Fib>().is_some_and(|fib| fib.is_neighbour_dead(watched))
        }
    };
    let lost = entry.tracks.iter().filter(|(tracked, _)| is_down(**tracked));
    let lost = lost.fold(0, |lost: u8, (_, priority)| lost.saturating_add(*priority));
    let has_peers = !entry.new.is_unicast || !entry.peers.is_empty();
    let runs = entry.is_started && is_up(key.interface) && source.is_some() && has_peers;
    update_router(engine, entry, Update { source: source.filter(|_| runs), runs, lost });
}

fn update_router(engine: &mut Engine, entry: &mut Entry, update: Update) {
    if update == entry.update {
        return;
    }
    let is_updated = on_worker(engine, entry.place, move |router, now_ns| {
        router.machine.set_lost(update.lost);
        // The last advertisement still has a source.
        router.source = update.source.or(router.source);
        router.machine.set_running(update.runs, now_ns)
    });
    if is_updated {
        entry.update = update;
    }
}

/// What advertisements come from (RFC 9568 §5.1.1.1, §5.1.2.1): the first IPv4 address, or the
/// link-local one.
fn source(engine: &Engine, key: VrKey) -> Option<IpAddr> {
    let fib = engine.get::<Fib>()?;
    let mut addresses = fib.addresses(key.interface).map(|(address, _)| address);
    addresses.find(|address| match address {
        IpAddr::V4(_) => !key.is_ip6,
        IpAddr::V6(six) => key.is_ip6 && six.is_unicast_link_local(),
    })
}

fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    match change {
        InterfaceChange::Deleted => forget_interface(engine, id),
        InterfaceChange::GoingDown => cease(engine, id),
        _ => {}
    }
    if change != InterfaceChange::GoingDown {
        engine.with(|engine, vrrp: &mut Vrrp| {
            for (key, entry) in &mut vrrp.routers {
                refresh_router(engine, *key, entry);
            }
        });
    }
}

/// The interface goes down: other routers are told to take over, before nothing can be sent.
fn cease(engine: &mut Engine, id: InterfaceId) {
    engine.with(|engine, vrrp: &mut Vrrp| {
        let mut workers = BTreeSet::new();
        for (key, entry) in vrrp.routers.iter_mut().filter(|(key, _)| key.interface == id) {
            let update = Update { runs: false, source: None, ..entry.update };
            debug_assert_eq!(key.interface, id);
            update_router(engine, entry, update);
            workers.insert(entry.place.worker);
        }
        for worker in workers {
            if let Err(stalled) = engine.wait_for_worker(worker) {
                tracing::warn!("{}: the last advertisement: {stalled}", engine.interface_name(id));
            }
        }
    });
}

fn forget_interface(engine: &mut Engine, id: InterfaceId) {
    let keys = engine.get::<Vrrp>().into_iter().flat_map(|vrrp| vrrp.routers.keys().copied());
    let gone: Vec<VrKey> = keys.filter(|key| key.interface == id).collect();
    for key in gone {
        if let Err(refused) = config::delete(engine, key) {
            tracing::error!("VRRP VR ID {}: {refused}", key.vr_id);
        }
    }
    if let Some(vrrp) = engine.get_mut::<Vrrp>() {
        vrrp.routers.values_mut().for_each(|entry| {
            entry.tracks.retain(|tracked, _| tracked.interface() != Some(id));
        });
    }
}
