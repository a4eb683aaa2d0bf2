//! What follows from sessions, and what sessions follow: routes leave peers that are down, and
//! sessions send only while their interface is up and has their address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_control::{EventValue, Field, Topic, aggregates, publish};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::control::session_states::SessionStates;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::Fib;
use quiver_wire::bfd::State;

use crate::bonds;
use crate::config::{self, Bfd, path, update};
use crate::dplane::{self, Dplane};
use crate::session::Effect;
use crate::shared::{Ends, Shared};
use crate::show::diagnostic_word;

/// How often addresses of interfaces are looked at.
const LOOK_NS: u64 = 1_000_000_000;

/// Clients can subscribe to changes of sessions.
pub(crate) static BFD: Topic = Topic {
    name: "bfd",
    help: "a BFD session comes up, goes down, or hears that its peer was taken down",
    fields: &[
        Field { key: "interface", help: "the interface of the session; null over several hops" },
        Field { key: "local", help: "this router's address" },
        Field { key: "peer", help: "the peer's address" },
        Field { key: "state", help: "AdminDown, Down, Init or Up" },
        Field { key: "remote_state", help: "the peer's, as it says" },
        Field { key: "diagnostic", help: "why the session changed, as RFC 5880 names it" },
    ],
};

/// Listen to workers, interfaces and time.
pub(crate) fn start(engine: &mut Engine, bfd: Bfd) {
    let shared = bfd.writer.shared().clone();
    engine.insert(bfd);
    engine.insert(Dplane::default());
    SessionStates::follow(engine, &shared, Shared::states, follow_states);
    engine.on_interface_change(follow_interface);
    aggregates::on_change(engine, bonds::follow_aggregate);
    engine.every(LOOK_NS, |engine| {
        engine.with(|engine, bfd: &mut Bfd| {
            bfd.writer.collect();
            refresh(engine, bfd, |_| true);
        });
        follow_states(engine);
        bonds::follow(engine);
    });
}

/// Look which sessions have changed, and let routes follow.
pub(crate) fn follow_states(engine: &mut Engine) {
    let changed = engine.with(|engine, bfd: &mut Bfd| {
        let shared = bfd.writer.shared().clone();
        let mut changed = Vec::new();
        for (ends, entry) in &mut bfd.sessions {
            let live = shared.live(entry.place.slot);
            if live != entry.live {
                let is_other_state = live.state != entry.live.state;
                entry.live = live;
                changed.push((*ends, is_other_state));
            }
        }
        for (ends, is_other_state) in &changed {
            mark(engine, bfd, ends);
            announce(engine, bfd, ends, *is_other_state);
        }
        changed.into_iter().map(|(ends, _)| ends).collect::<Vec<Ends>>()
    });
    if changed.iter().any(|ends| ends.is_member) {
        bonds::follow(engine);
    }
    if !changed.is_empty() {
        dplane::report_changes(engine, &changed);
    }
}

fn announce(engine: &Engine, bfd: &Bfd, ends: &Ends, is_other_state: bool) {
    let Some(live) = bfd.sessions.get(ends).map(|entry| entry.live) else { return };
    let name = ends.interface.map(|id| engine.interface_name(id));
    if is_other_state && live.state != State::Init {
        let on = name.as_ref().map_or_else(String::new, |name| format!(" on {name}"));
        let (state, why) = (live.state.name(), live.diagnostic.name());
        tracing::info!("BFD session {} to {}{on}: {state} ({why})", ends.local, ends.peer);
    }
    publish(
        engine,
        &BFD,
        [
            name.map_or(EventValue::None, EventValue::Text),
            EventValue::Ip(ends.local),
            EventValue::Ip(ends.peer),
            EventValue::Word(live.state.name()),
            EventValue::Word(live.remote_state.name()),
            EventValue::Text(diagnostic_word(live.diagnostic)),
        ],
    );
}

/// Let routes go through the peer of a session, or not: they do when no session with it, on this
/// interface or over several hops, says that it is down. A session on a member of a bond says
/// nothing of the bond.
pub(crate) fn mark(engine: &mut Engine, bfd: &Bfd, ends: &Ends) {
    if ends.is_member {
        return;
    }
    let watched = |ends: &Ends| (ends.interface, ends.peer);
    let same = |(other, _): &(&Ends, _)| watched(other) == watched(ends) && !other.is_member;
    let is_alive = bfd.sessions.iter().filter(same).all(|(_, entry)| entry.is_alive());
    if let Some(fib) = engine.get_mut::<Fib>() {
        fib.set_neighbour_alive(watched(ends), is_alive);
    }
}

fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change == InterfaceChange::Deleted {
        bonds::forget(engine, id);
        let sessions = engine.get::<Bfd>().into_iter().flat_map(|bfd| bfd.sessions.keys());
        let gone: Vec<Ends> = sessions.filter(|ends| ends.interface == Some(id)).copied().collect();
        for ends in gone {
            if let Err(refused) = config::delete(engine, &ends) {
                tracing::error!("BFD session to {}: {refused}", ends.peer);
            }
        }
        if let Some(bfd) = engine.get_mut::<Bfd>()
            && bfd.echo_source == Some(id)
        {
            bfd.echo_source = None;
        }
    }
    engine.with(|engine, bfd: &mut Bfd| refresh(engine, bfd, |_| true));
}

/// Look at the paths of sessions again.
pub(crate) fn refresh(engine: &mut Engine, bfd: &mut Bfd, concerned: impl Fn(&Ends) -> bool) {
    let all: Vec<Ends> = bfd.sessions.keys().filter(|ends| concerned(ends)).copied().collect();
    for ends in all {
        refresh_session(engine, bfd, &ends);
    }
}

/// Look at the path of a session again, and tell its worker what has changed.
pub(crate) fn refresh_session(engine: &mut Engine, bfd: &mut Bfd, ends: &Ends) {
    let echo_source = bfd.echo_source;
    let Some(entry) = bfd.sessions.get_mut(ends) else { return };
    if entry.group.is_none()
        && !ends.is_member
        && let Some(fib) = engine.get_mut::<Fib>()
    {
        let (family, path) = path(ends);
        entry.group = fib.hold_paths(family, 0, &[path]).ok();
    }
    let group = entry.group;
    let is_up = match ends.interface.filter(|_| ends.is_member) {
        Some(member) => engine.interface(member).is_some_and(|on| on.row().up),
        None => group.is_some() && is_local_there(engine, ends),
    };
    if is_up != entry.is_path_up
        && update(engine, entry.place, move |peer, jitter, now_ns| {
            peer.group = group;
            peer.session.set_path(is_up, now_ns, jitter)
        })
    {
        entry.is_path_up = is_up;
    }
    let source = echo_source.and_then(|id| echo_address(engine, id, ends));
    if source != entry.echo_source
        && update(engine, entry.place, move |peer, _, _| {
            peer.echo.source = source;
            Effect::default()
        })
    {
        entry.echo_source = source;
    }
}

/// Is the interface up, and has it the local address? Over several hops any interface will do.
fn is_local_there(engine: &Engine, ends: &Ends) -> bool {
    let Some(fib) = engine.get::<Fib>() else { return false };
    let has = |id| fib.addresses(id).any(|(address, _)| address == ends.local);
    match ends.interface {
        Some(id) => engine.interface(id).is_some_and(|on| on.row().up) && has(id),
        None => engine.all_interfaces().any(|on| on.row().up && has(on.id)),
    }
}

/// What echo packets of a session come from: an address that nobody has, beside one of the echo
/// source's interface, so that no ICMP redirect follows (RFC 5881 §4). None over several hops, nor
/// on members of bonds (RFC 7130 §2.2).
fn echo_address(engine: &Engine, id: InterfaceId, ends: &Ends) -> Option<IpAddr> {
    ends.interface.filter(|_| !ends.is_member)?;
    let fib = engine.get::<Fib>()?;
    let is_up = engine.interface(id).is_some_and(|on| on.row().up);
    let beside = |(address, length): (IpAddr, u8)| match address {
        IpAddr::V4(own) if length < 32 => Some(Ipv4Addr::from_bits(own.to_bits() ^ 1).into()),
        IpAddr::V6(own) if length < 128 && !own.is_unicast_link_local() => {
            Some(Ipv6Addr::from_bits(own.to_bits() ^ 1).into())
        }
        _ => None,
    };
    let of_family = |address: &IpAddr| address.is_ipv4() == ends.local.is_ipv4();
    fib.addresses(id).filter(|_| is_up).filter_map(beside).find(of_family)
}
