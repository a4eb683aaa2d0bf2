//! When reports are sent, and how the groups follow interfaces, addresses and commands.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::jitter::Jitter;
use quiver_core::worker::Worker;
use quiver_core::worker::event::Event;
use quiver_core::{Engine, InterfaceId, WorkerId};
use quiver_forwarding::fib::{Family, Fib};
use quiver_forwarding::ip::{GroupMembership, IpTables};
use quiver_wire::ip6::address::is_link_local;

use crate::input;
use crate::message::packets;
use crate::notifications::{self, Notification};
use crate::port::{Filter, Query};
use crate::proxy;
use crate::router;
use crate::state::{Listener, Membership, Querier, automatic};

/// How often addresses of interfaces are looked at.
const LOOK_NS: u64 = 1_000_000_000;
/// Reports are made for links of at most this MTU, bytes.
const REPORT_MTU_BYTES: u16 = 1500;

/// What other features call.
const CALLS: GroupMembership = GroupMembership { join, leave };

fn join(engine: &mut Engine, id: InterfaceId, group: IpAddr) {
    hold(engine, id, |held| *held.entry(group).or_default() += 1);
}

fn leave(engine: &mut Engine, id: InterfaceId, group: IpAddr) {
    hold(engine, id, |held| {
        let left = held.get(&group).map_or(0, |count| count - 1);
        match left {
            0 => held.remove(&group),
            _ => held.insert(group, left),
        };
    });
}

/// Change what features have joined on an interface.
fn hold(engine: &mut Engine, id: InterfaceId, change: impl FnOnce(&mut BTreeMap<IpAddr, u32>)) {
    work(engine, |engine, state| {
        change(state.held.entry(id).or_default());
        state.held.retain(|_, groups| !groups.is_empty());
        publish(engine, state, id);
        fit(engine, state, id);
    });
}

/// Listen to nodes and interfaces.
pub(crate) fn start(engine: &mut Engine) {
    engine.insert(Membership::new());
    engine.insert(CALLS);
    engine.on_event(input::name(false), hear);
    engine.on_event(input::name(true), hear);
    engine.on_interface_change(follow);
    engine.every(LOOK_NS, |engine| {
        let all: Vec<_> = engine.all_interfaces().map(|interface| interface.id).collect();
        work(engine, |engine, state| {
            all.iter().for_each(|id| {
                fit(engine, state, *id);
                router::fit(engine, state, *id);
            })
        });
    });
}

/// Change the state, and let the timer follow.
pub(crate) fn work<R>(
    engine: &mut Engine,
    change: impl FnOnce(&mut Engine, &mut Membership) -> R,
) -> R {
    engine.with(|engine, state: &mut Membership| {
        let result = change(engine, state);
        let due_ns = state.due_ns();
        state.alarm.set(engine, due_ns, fire);
        result
    })
}

fn fire(engine: &mut Engine) {
    work(engine, |engine, state| {
        state.alarm.fired();
        let now_ns = engine.now_ns();
        router::due(engine, state, now_ns);
        if state.proxies.is_changed {
            proxy::listen_upstream(engine, state);
        }
        for (id, family) in state.due(now_ns) {
            let Membership { listeners, jitter, .. } = state;
            let listener = listeners.get_mut(&(id, family));
            if let Some((listener, from)) = listener.and_then(|l| l.from.map(|from| (l, from))) {
                say_due(engine, id, listener, from, jitter);
            }
            state.plan(id);
        }
    });
}

/// Say what is due on an interface.
fn say_due(
    engine: &mut Engine,
    id: InterfaceId,
    listener: &mut Listener,
    from: IpAddr,
    jitter: &mut Jitter,
) {
    for say in listener.port.due(engine.now_ns(), jitter) {
        let mtu =
            engine.get::<Fib>().and_then(|fib| fib.interface(id)).map_or(0, |info| info.mtu_bytes);
        for packet in packets(&say, from, usize::from(mtu.min(REPORT_MTU_BYTES))) {
            let sent = send(engine, id, packet.to, &packet.bytes);
            let counts = &mut listener.counts;
            *(if sent { &mut counts.sent } else { &mut counts.not_sent }) += 1;
        }
    }
}

/// Send a packet to a group of the link; false when there is no room.
pub(crate) fn send(engine: &mut Engine, id: InterfaceId, to: IpAddr, packet: &[u8]) -> bool {
    let info = engine.get::<Fib>().and_then(|fib| fib.interface(id));
    let Some(info) = info.filter(|info| info.up) else { return false };
    let (mut frame, output) = (info.header_to_group(to), info.output);
    frame.extend(packet);
    engine.post(WorkerId(0), move |worker: &mut Worker| {
        worker.inject(&frame, output, InterfaceId::NONE, id);
    })
}

/// What reports of a family come from, and the IPv6 addresses; `None` when the interface does not
/// speak it.
pub(crate) fn own(
    engine: &Engine,
    id: InterfaceId,
    family: Family,
) -> Option<(IpAddr, Vec<Ipv6Addr>)> {
    let fib = engine.get::<Fib>()?;
    fib.interface(id).filter(|info| info.up)?;
    let addresses: Vec<IpAddr> = fib.addresses(id).map(|(address, _)| address).collect();
    let of_family = |address: &&IpAddr| Family::of(**address) == family;
    let six: Vec<Ipv6Addr> = addresses
        .iter()
        .filter_map(|address| match address {
            IpAddr::V6(address) => Some(*address),
            IpAddr::V4(_) => None,
        })
        .collect();
    let mut own = addresses.iter().filter(of_family).copied();
    match family {
        Family::Ip4 => Some((own.next()?, Vec::new())),
        // RFC 3810 §5.2.13: link-local, or :: before there is one.
        Family::Ip6 => {
            own.next()?;
            let from = six.iter().copied().find(|address| is_link_local(*address));
            Some((from.unwrap_or(Ipv6Addr::UNSPECIFIED).into(), six))
        }
    }
}

/// Let what is told be what is listened to.
pub(crate) fn fit(engine: &mut Engine, state: &mut Membership, id: InterfaceId) {
    let now_ns = engine.now_ns();
    for family in [Family::Ip4, Family::Ip6] {
        let own = own(engine, id, family);
        let joined = state.joined.get(&id).into_iter().flatten();
        let mut wanted: BTreeMap<IpAddr, Filter> =
            own.as_ref().map_or_else(BTreeMap::new, |(_, six)| automatic(six));
        let proxied = state.proxied.get(&id).into_iter().flatten();
        for (group, filter) in
            proxied.chain(joined).filter(|(group, _)| Family::of(**group) == family)
        {
            let both = wanted.get(group).map_or_else(|| filter.clone(), |other| filter.with(other));
            wanted.insert(*group, both);
        }
        let held = state.held.get(&id).into_iter().flat_map(BTreeMap::keys);
        let of_family = held.filter(|group| Family::of(**group) == family);
        wanted.extend(of_family.map(|group| (*group, Filter::Any)));
        if wanted.is_empty() && !state.listeners.contains_key(&(id, family)) {
            continue;
        }
        let listener = state.listeners.entry((id, family)).or_default();
        let from = own.map(|(from, _)| from);
        if listener.from.is_none() && from.is_some() {
            listener.port.report_all(now_ns);
        }
        if from.is_some() {
            listener.from = from;
            listener.port.set(wanted, now_ns);
        } else if let Some(old) = listener.from.take() {
            tracing::debug!("{}: reports from {old} end", engine.interface_name(id));
        }
    }
    state.plan(id);
}

/// Let workers know which groups are joined on an interface.
pub(crate) fn publish(engine: &Engine, state: &Membership, id: InterfaceId) {
    let Some(tables) = engine.shared::<IpTables>() else { return };
    let mut groups: BTreeSet<IpAddr> =
        state.joined.get(&id).into_iter().flatten().map(|(group, _)| *group).collect();
    groups.extend(state.held.get(&id).into_iter().flat_map(BTreeMap::keys));
    groups.extend(state.routers.listens_to(id));
    groups.extend(state.proxies.listens_to(id));
    tables.interfaces.publish_groups(id, groups.into_iter().collect());
}

fn follow(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    work(engine, |engine, state| {
        if change == InterfaceChange::Deleted {
            router::forget(engine, state, id);
            if state.forget(id) {
                publish(engine, state, id);
            }
        } else {
            fit(engine, state, id);
            router::fit(engine, state, id);
        }
    });
}

fn hear(engine: &mut Engine, event: &Event) {
    let (id, now_ns) = (event.interface, event.at_ns);
    match notifications::read(event) {
        Some(Notification::Query { from, query, suppress }) => work(engine, |engine, state| {
            router::heard_query(engine, state, id, from, &query, suppress, now_ns);
            query_received(state, id, from, &query, now_ns);
        }),
        Some(Notification::Record { from, kind, group, sources, first, last }) => {
            work(engine, |engine, state| {
                let part = router::Part { from, kind, group, sources, first, last };
                router::heard_record(engine, state, id, part, now_ns);
            })
        }
        Some(Notification::Report { group }) => work(engine, |_, state| {
            if let Some(listener) = state.listeners.get_mut(&(id, Family::of(group))) {
                listener.port.heard_report(group, now_ns);
                state.plan(id);
            }
        }),
        None => {}
    }
}

fn query_received(
    state: &mut Membership,
    id: InterfaceId,
    from: IpAddr,
    query: &Query,
    now_ns: u64,
) {
    let Membership { listeners, jitter, .. } = state;
    let listener = listeners.entry((id, Family::of(from))).or_default();
    // A query from nobody is one of a proxy or a bridge, and no querier's (RFC 4541 §2.1.1).
    if !from.is_unspecified() && from != IpAddr::V4(Ipv4Addr::UNSPECIFIED) {
        listener.querier = Some(Querier { address: from, at_ns: now_ns });
    }
    listener.counts.queries += 1;
    listener.port.query_received(query, now_ns, jitter);
    state.plan(id);
}
