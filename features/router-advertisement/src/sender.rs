//! When advertisements are sent: now and then, soon after a host asks, and a last time (RFC 4861
//! §6.2.4 to §6.2.6, §6.2.8).

use std::net::{IpAddr, Ipv6Addr};

use quiver_control::{EventValue, Field, Topic, publish};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::jitter::Jitter;
use quiver_core::worker::Worker;
use quiver_core::worker::event::Event;
use quiver_core::{Engine, InterfaceId, WorkerId};
use quiver_forwarding::fib::Fib;
use quiver_forwarding::nodes;
use quiver_wire::Ip6Prefix;
use quiver_wire::icmp6::nd::PrefixInformation;
use quiver_wire::ip6::address::{ALL_NODES, is_link_local, is_unicast};

use crate::config::RaConfig;
use crate::message::{Gone, Own, packet, prefixes};
use crate::neighbor_routers::{ROUTER_PREFIXES_MAX, contradictions, contradicts_prefix};
use crate::notifications::{Notification, RouterSays};
use crate::state::{ANSWERS_WAITING_MAX, Advertiser, Phase, RaState};
use crate::{advertisement, host, solicitation};

/// The longest that an answer waits (RFC 4861 §10, MAX_RA_DELAY_TIME).
pub const ANSWER_DELAY_NS_MAX: u64 = 500_000_000;
/// The shortest time between advertisements to all nodes (MIN_DELAY_BETWEEN_RAS).
pub const BETWEEN_NS_MIN: u64 = 3_000_000_000;
/// Last advertisements (MAX_FINAL_RTR_ADVERTISEMENTS).
pub const FINAL_COUNT: u8 = 3;
/// How often addresses of interfaces are looked at.
const LOOK_NS: u64 = 1_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// Listen to nodes and interfaces.
pub(crate) fn start(engine: &mut Engine) {
    engine.insert(RaState::new());
    engine.on_event(solicitation::NAME, hear);
    engine.on_event(advertisement::NAME, hear);
    engine.on_interface_change(follow);
    engine.every(LOOK_NS, |engine| {
        let now_ns = engine.now_ns();
        work(engine, |engine, state| {
            state.routers.forget_old(now_ns);
            let configured: Vec<_> = state.interfaces.keys().copied().collect();
            configured.into_iter().for_each(|id| fit(engine, state, id));
        });
    });
}

/// Change the state, and let the timer follow.
pub(crate) fn work<R>(
    engine: &mut Engine,
    change: impl FnOnce(&mut Engine, &mut RaState) -> R,
) -> R {
    engine.with(|engine, state: &mut RaState| {
        let result = change(engine, state);
        let due_ns =
            state.interfaces.values().filter_map(|advertiser| advertiser.phase.due_ns()).min();
        state.alarm.set(engine, due_ns, fire);
        result
    })
}

fn fire(engine: &mut Engine) {
    work(engine, |engine, state| {
        state.alarm.fired();
        let now_ns = engine.now_ns();
        let due = |(id, advertiser): (&InterfaceId, &Advertiser)| {
            advertiser.phase.due_ns().is_some_and(|at| at <= now_ns).then_some(*id)
        };
        let due: Vec<_> = state.interfaces.iter().filter_map(due).collect();
        for id in due {
            send_due(engine, state, id, now_ns);
        }
    });
}

/// What advertisements say of an interface; `None` when it is down or does not speak IPv6.
pub(crate) fn own(engine: &Engine, id: InterfaceId) -> Option<Own> {
    let fib = engine.get::<Fib>()?;
    let info = fib.interface(id).filter(|info| info.up)?;
    let six = |(address, length)| match address {
        IpAddr::V6(address) => Some((address, length)),
        IpAddr::V4(_) => None,
    };
    let addresses: Vec<(Ipv6Addr, u8)> = fib.addresses(id).filter_map(six).collect();
    let link_local =
        addresses.iter().map(|(address, _)| *address).find(|address| is_link_local(*address))?;
    let mut prefixes: Vec<_> = addresses
        .iter()
        .filter(|(address, length)| !is_link_local(*address) && *length < Ip6Prefix::LENGTH_MAX)
        .filter_map(|(address, length)| Ip6Prefix::covering(*address, *length).ok())
        .collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    Some(Own { link_local, mac: info.mac, mtu_bytes: info.mtu_bytes.into(), prefixes })
}

fn follow(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    work(engine, |engine, state| {
        if change == InterfaceChange::Deleted {
            state.interfaces.remove(&id);
            state.routers.forget_interface(id);
        } else if change == InterfaceChange::GoingDown {
            say_last(engine, state, id);
        } else if state.interfaces.contains_key(&id) {
            fit(engine, state, id);
        }
    });
}

/// The interface goes down: hosts hear that the router is none any more, before nothing can be
/// sent.
fn say_last(engine: &mut Engine, state: &mut RaState, id: InterfaceId) {
    let Some(advertiser) = state.interfaces.get_mut(&id) else { return };
    if let Phase::Advertising { own, .. } | Phase::Ceasing { own, .. } =
        std::mem::take(&mut advertiser.phase)
    {
        let last = packet(&advertiser.config, &own, &[], ALL_NODES, true);
        send_to_all(engine, id, advertiser, last);
        if let Err(stalled) = engine.wait_for_worker(WorkerId(0)) {
            tracing::warn!(
                "{}: the last router advertisement: {stalled}",
                engine.interface_name(id)
            );
        }
    }
}

/// Something else is configured than `before`: hosts hear of it soon, and leave the addresses of
/// prefixes that are not told any more.
pub(crate) fn configured(
    engine: &mut Engine,
    state: &mut RaState,
    id: InterfaceId,
    before: &RaConfig,
) {
    if let Some(Advertiser { config, phase: Phase::Advertising { own, gone, .. }, .. }) =
        state.interfaces.get_mut(&id)
    {
        Gone::follow(gone, prefixes(before, own, &[]).0, &prefixes(config, own, &[]).0);
    }
    fit(engine, state, id);
    let now_ns = engine.now_ns();
    let RaState { interfaces, jitter, .. } = state;
    let Some(advertiser) = interfaces.get_mut(&id) else { return };
    let soonest = soonest_ns(jitter, advertiser.last_ns, now_ns);
    if let Phase::Advertising { initial_left, next_ns, .. } = &mut advertiser.phase {
        *initial_left = advertiser.config.initial_count;
        *next_ns = soonest.min(*next_ns);
    }
}

/// When the next advertisement to all nodes may be sent at the soonest.
fn soonest_ns(jitter: &mut Jitter, last_ns: Option<u64>, now_ns: u64) -> u64 {
    let delay_ns = jitter.between(0, ANSWER_DELAY_NS_MAX);
    (now_ns + delay_ns).max(last_ns.map_or(0, |last| last + BETWEEN_NS_MIN))
}

/// Begin, go on or cease as the configuration and the interface ask for.
fn fit(engine: &mut Engine, state: &mut RaState, id: InterfaceId) {
    let (now, now_ns) = (own(engine, id), engine.now_ns());
    let RaState { interfaces, jitter, .. } = state;
    let Some(advertiser) = interfaces.get_mut(&id) else { return };
    let Advertiser { config, phase, last_ns, .. } = advertiser;
    let wanted = now.clone().filter(|_| config.advertise && !config.ceased);
    let soonest = soonest_ns(jitter, *last_ns, now_ns);
    let mut former = None;
    match (phase, wanted) {
        (Phase::Advertising { own, initial_left, next_ns, gone, .. }, Some(now)) => {
            if *own != now {
                Gone::follow(gone, prefixes(config, own, &[]).0, &prefixes(config, &now, &[]).0);
                former = Some(own.clone()).filter(|own| own.link_local != now.link_local);
                (*own, *initial_left) = (now, config.initial_count);
                *next_ns = soonest.min(*next_ns);
            }
        }
        (phase @ Phase::Advertising { .. }, None) => {
            *phase = match now {
                Some(own) => Phase::Ceasing { left: FINAL_COUNT, next_ns: now_ns, own },
                None => Phase::Silent,
            };
        }
        (phase, Some(own)) => {
            *phase = Phase::Advertising {
                initial_left: config.initial_count,
                next_ns: soonest,
                own,
                gone: Vec::new(),
                answers: Vec::new(),
            };
        }
        (phase @ Phase::Ceasing { .. }, None) if now.is_none() => *phase = Phase::Silent,
        (Phase::Ceasing { .. } | Phase::Silent, None) => {}
    }
    // RFC 4861 §6.2.8: the router of the old address is none any more.
    if let Some(former) = former {
        let last = packet(config, &former, &[], ALL_NODES, true);
        send_to_all(engine, id, advertiser, last);
    }
}

/// Send what is due on an interface.
fn send_due(engine: &mut Engine, state: &mut RaState, id: InterfaceId, now_ns: u64) {
    let RaState { interfaces, jitter, .. } = state;
    let Some(advertiser) = interfaces.get_mut(&id) else { return };
    let config = advertiser.config.clone();
    match &mut advertiser.phase {
        Phase::Silent => {}
        Phase::Advertising { initial_left, next_ns, own, gone, answers } => {
            let own = own.clone();
            let due: Vec<_> =
                answers.extract_if(.., |(at, _)| *at <= now_ns).map(|(_, to)| to).collect();
            let told = gone.clone();
            let to_all = (*next_ns <= now_ns).then(|| {
                gone.iter_mut().for_each(|gone| gone.left -= 1);
                gone.retain(|gone| gone.left > 0);
                *next_ns = now_ns + interval_ns(&config, initial_left, jitter);
                packet(&config, &own, &told, ALL_NODES, false)
            });
            for to in due {
                send_to_one(engine, id, advertiser, packet(&config, &own, &told, to, false));
            }
            if let Some(bytes) = to_all {
                send_to_all(engine, id, advertiser, bytes);
            }
        }
        Phase::Ceasing { left, next_ns, own } => {
            let bytes = packet(&config, own, &[], ALL_NODES, true);
            *left -= 1;
            *next_ns = now_ns + BETWEEN_NS_MIN;
            if *left == 0 {
                advertiser.phase = Phase::Silent;
            }
            send_to_all(engine, id, advertiser, bytes);
        }
    }
}

/// How long until the next one (RFC 4861 §6.2.4).
fn interval_ns(config: &RaConfig, initial_left: &mut u8, jitter: &mut Jitter) -> u64 {
    let (min, max) = (u64::from(config.min_interval_s()), u64::from(config.max_interval_s));
    let usual = jitter.between(min * SECOND_NS, max * SECOND_NS);
    *initial_left = initial_left.saturating_sub(1);
    match *initial_left {
        0 => usual,
        _ => usual.min(u64::from(config.initial_interval_s).max(3) * SECOND_NS),
    }
}

/// Send a packet to all nodes of the link.
fn send_to_all(
    engine: &mut Engine,
    id: InterfaceId,
    advertiser: &mut Advertiser,
    packet: Option<Vec<u8>>,
) {
    let info = engine.get::<Fib>().and_then(|fib| fib.interface(id));
    let Some((info, packet)) = info.zip(packet) else { return };
    let mut frame = info.header_to_group(ALL_NODES.into());
    frame.extend(packet);
    let output = info.output;
    let sent = engine.post(WorkerId(0), move |worker: &mut Worker| {
        worker.inject(&frame, output, InterfaceId::NONE, id);
    });
    advertiser.last_ns = Some(engine.now_ns());
    let count = if sent { &mut advertiser.counts.sent } else { &mut advertiser.counts.not_sent };
    *count += 1;
}

/// Send a packet to one host; its MAC address is found, or asked for, on the way.
fn send_to_one(
    engine: &mut Engine,
    id: InterfaceId,
    advertiser: &mut Advertiser,
    packet: Option<Vec<u8>>,
) {
    let lookup = engine.node_id(nodes::ip6::LOOKUP);
    let Some((lookup, packet)) = lookup.zip(packet) else { return };
    let sent = engine.post(WorkerId(0), move |worker: &mut Worker| {
        worker.inject(&packet, lookup, id, id);
    });
    let count =
        if sent { &mut advertiser.counts.sent_unicast } else { &mut advertiser.counts.not_sent };
    *count += 1;
}

fn hear(engine: &mut Engine, event: &Event) {
    let on = event.interface;
    let notice = Notification::read(event);
    if let Some(notice) = &notice {
        host::hear(engine, on, notice);
    }
    match notice {
        Some(Notification::Solicitation { from }) => {
            work(engine, |engine, state| solicited(engine, state, on, from))
        }
        Some(Notification::Router { from, says }) => hear_router(engine, on, from, says),
        Some(Notification::Prefix { from, says }) => hear_prefix(engine, on, from, says),
        Some(Notification::Route { .. }) | None => {}
    }
}

/// A host asks (RFC 4861 §6.2.6).
fn solicited(engine: &mut Engine, state: &mut RaState, on: InterfaceId, from: Ipv6Addr) {
    let now_ns = engine.now_ns();
    let RaState { interfaces, jitter, .. } = state;
    let Some(advertiser) = interfaces.get_mut(&on) else { return };
    let soonest = soonest_ns(jitter, advertiser.last_ns, now_ns);
    let delayed = now_ns + jitter.between(0, ANSWER_DELAY_NS_MAX);
    let Phase::Advertising { next_ns, answers, .. } = &mut advertiser.phase else { return };
    advertiser.counts.solicitations += 1;
    if !(advertiser.config.unicast && is_unicast(from)) {
        *next_ns = soonest.min(*next_ns);
    } else if answers.iter().all(|(_, waiting)| *waiting != from) {
        if answers.len() < ANSWERS_WAITING_MAX {
            answers.push((delayed, from));
        } else {
            advertiser.counts.unanswered += 1;
        }
    }
}

/// Advertisements of other routers.
pub(crate) static ROUTER_ADVERTISEMENT: Topic = Topic {
    name: "router-advertisement",
    help: "another router advertised itself, or a prefix (RFC 4861 §4.2, §4.6.2)",
    fields: &[
        Field { key: "interface", help: "the interface that heard it" },
        Field { key: "router", help: "the link-local address of the router" },
        Field { key: "lifetime_s", help: "how long it is a default router; of a prefix, nothing" },
        Field {
            key: "hop_limit",
            help: "what hosts are to put into their packets; 0 leaves it open",
        },
        Field { key: "flags", help: "the byte of flags of the router, or of the prefix" },
        Field { key: "mtu_bytes", help: "the MTU of the link; 0 leaves it open" },
        Field { key: "prefix", help: "the prefix, if the event is about one" },
        Field { key: "prefix_length", help: "its length" },
        Field { key: "valid_s", help: "how long the prefix is valid" },
        Field { key: "preferred_s", help: "how long addresses of the prefix are preferred" },
    ],
};

fn publish_router(engine: &Engine, on: InterfaceId, from: Ipv6Addr, says: &RouterSays) {
    let number = |n: u64| EventValue::Number(n);
    let values = [
        EventValue::Text(engine.interface_name(on)),
        EventValue::Ip(from.into()),
        number(says.lifetime_s.into()),
        number(says.hop_limit.into()),
        number(says.flags.into()),
        number(says.mtu_bytes.into()),
        EventValue::None,
        EventValue::None,
        EventValue::None,
        EventValue::None,
    ];
    publish(engine, &ROUTER_ADVERTISEMENT, values);
}

fn publish_prefix(engine: &Engine, on: InterfaceId, from: Ipv6Addr, says: &PrefixInformation) {
    let values = [
        EventValue::Text(engine.interface_name(on)),
        EventValue::Ip(from.into()),
        EventValue::None,
        EventValue::None,
        EventValue::Number(says.flags.into()),
        EventValue::None,
        EventValue::Ip(says.prefix.into()),
        EventValue::Number(says.length.into()),
        EventValue::Number(says.valid_s.into()),
        EventValue::Number(says.preferred_s.into()),
    ];
    publish(engine, &ROUTER_ADVERTISEMENT, values);
}

fn hear_router(engine: &mut Engine, on: InterfaceId, from: Ipv6Addr, says: RouterSays) {
    publish_router(engine, on, from, &says);
    let name = engine.interface_name(on);
    work(engine, |engine, state| {
        let now_ns = engine.now_ns();
        let router = state.routers.hear(on, from, says, now_ns);
        let Some(advertiser) = state.interfaces.get_mut(&on) else { return };
        advertiser.counts.advertisements += 1;
        let Phase::Advertising { own, .. } = &advertiser.phase else { return };
        let found = contradictions(&advertiser.config, own, &says);
        if found.is_empty() {
            return;
        }
        advertiser.counts.inconsistent += 1;
        tracing::warn!(
            "{name}: router {from} advertises another {} than this one",
            found.join(", ")
        );
        if let Some(router) = router {
            router.contradicts = found;
        }
    });
}

fn hear_prefix(engine: &mut Engine, on: InterfaceId, from: Ipv6Addr, says: PrefixInformation) {
    publish_prefix(engine, on, from, &says);
    let RaState { interfaces, routers, .. } = match engine.get_mut::<RaState>() {
        Some(state) => state,
        None => return,
    };
    let Some(router) = routers.known.get_mut(&(on, from)) else { return };
    let key = (says.prefix, says.length);
    if router.prefixes.len() < ROUTER_PREFIXES_MAX || router.prefixes.contains_key(&key) {
        router.prefixes.insert(key, says);
    }
    let Some(advertiser) = interfaces.get_mut(&on) else { return };
    let Phase::Advertising { own, .. } = &advertiser.phase else { return };
    let Some(found) = contradicts_prefix(&advertiser.config, own, &says) else { return };
    // One advertisement counts once, however many of its fields differ.
    if router.contradicts.is_empty() {
        advertiser.counts.inconsistent += 1;
    }
    router.contradicts.push(found);
}
