//! The host side of router discovery on interfaces where the operator asks for it: solicitations
//! (RFC 4861 §6.3.7, RFC 7559), addresses made of prefixes (RFC 4862 §5.5), default routes and
//! more.

mod commands;
mod learned;
mod routes;
mod solicit;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use learned::Learned;
use quiver_control::{Refusal, Registry, order};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::control::reactor::Alarm;
use quiver_core::jitter::Jitter;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::Fib;
use quiver_forwarding::ip::{AutoAddress, AutoAddressState, AutoSettings, Autoconfiguration};
use quiver_wire::{Ip6Prefix, MacAddress};
use routes::Installed;
use solicit::Solicit;

use crate::notifications::Notification;

/// How often lifetimes are looked at.
const LOOK_NS: u64 = 1_000_000_000;

/// Autoconfiguration of one interface.
#[derive(Debug, Default)]
struct Host {
    /// Are default routers and routes used?
    default_route: bool,
    /// What was advertised.
    learned: Learned,
    /// When routers are asked.
    solicit: Solicit,
    /// Advertisements received.
    advertisements: u64,
    /// The settings that `quiver-ip` has.
    applied: Option<AutoSettings>,
}

/// Autoconfiguration of all interfaces.
struct HostState {
    interfaces: BTreeMap<InterfaceId, Host>,
    installed: Installed,
    jitter: Jitter,
    alarm: Alarm,
}

/// Register commands and timers.
pub(crate) fn register(registry: &mut Registry) {
    commands::register(registry);
    registry.running_config(order::FEATURES, commands::write_config);
    registry.on_start(|engine| {
        engine.insert(HostState {
            interfaces: BTreeMap::new(),
            installed: Installed::default(),
            jitter: Jitter::random(),
            alarm: Alarm::default(),
        });
        engine.on_interface_change(follow);
        engine.every(LOOK_NS, |engine| work(engine, |_, _| ()));
    });
}

/// Change the state; let addresses, routes and the timer follow.
fn work(engine: &mut Engine, change: impl FnOnce(&mut Engine, &mut HostState)) {
    if engine.get::<HostState>().is_none() {
        return;
    }
    engine.with(|engine, state: &mut HostState| {
        change(engine, state);
        let now_ns = engine.now_ns();
        for (id, host) in &mut state.interfaces {
            host.learned.expire(now_ns);
            solicit::send_due(engine, *id, host, &mut state.jitter);
            apply(engine, *id, host);
        }
        state.installed.follow(engine, &state.interfaces);
        let due_ns = state.interfaces.values().filter_map(|host| host.solicit.due_ns()).min();
        state.alarm.set(engine, due_ns, fire);
    });
}

fn fire(engine: &mut Engine) {
    work(engine, |_, state| state.alarm.fired());
}

fn calls(engine: &Engine) -> Option<Autoconfiguration> {
    engine.get::<Autoconfiguration>().copied()
}

fn is_up(engine: &Engine, id: InterfaceId) -> bool {
    engine.interface(id).is_some_and(|interface| interface.row().up)
}

/// The interface identifier of addresses: of the MAC address (RFC 2464 §4), or, without one, of the
/// link-local address.
fn identifier(engine: &Engine, id: InterfaceId, calls: &Autoconfiguration) -> Option<u64> {
    let mac = engine.get::<Fib>()?.interface(id)?.mac;
    let link_local = mac.map(MacAddress::link_local).or_else(|| (calls.link_local)(engine, id))?;
    Some(link_local.to_bits() as u64)
}

/// The address that an interface has of a prefix.
fn address_of(prefix: Ip6Prefix, identifier: u64) -> Ipv6Addr {
    Ipv6Addr::from_bits(prefix.address().to_bits() | u128::from(identifier))
}

/// The settings that follow from what was advertised.
fn settings(
    engine: &Engine,
    id: InterfaceId,
    host: &Host,
    calls: &Autoconfiguration,
) -> AutoSettings {
    let (identifier, now_ns) = (identifier(engine, id, calls), engine.now_ns());
    let with_address = host.learned.prefixes.iter().filter_map(|(prefix, known)| {
        let (times, identifier) = (known.address?, identifier?);
        let deprecated = times.preferred_until_ns <= now_ns;
        Some(AutoAddress { address: address_of(*prefix, identifier), deprecated })
    });
    let addresses = with_address.collect();
    AutoSettings { addresses, mtu_bytes: host.learned.mtu_bytes, hop_limit: host.learned.hop_limit }
}

/// Let `quiver-ip` have the settings, when they have changed or it refused some of them.
fn apply(engine: &mut Engine, id: InterfaceId, host: &mut Host) {
    let Some(calls) = calls(engine) else { return };
    let wanted = settings(engine, id, host, &calls);
    let refused =
        |auto: &AutoAddress| (calls.state)(engine, id, auto.address) == AutoAddressState::Refused;
    if host.applied.as_ref() == Some(&wanted) && !wanted.addresses.iter().any(refused) {
        return;
    }
    match (calls.set)(engine, id, Some(wanted.clone())) {
        Ok(()) => host.applied = Some(wanted),
        Err(error) => tracing::debug!("{}: autoconfiguration: {error}", engine.interface_name(id)),
    }
}

/// Turn autoconfiguration of an interface on.
fn enable(engine: &mut Engine, id: InterfaceId, default_route: bool) -> Result<(), Refusal> {
    let calls = calls(engine).ok_or_else(|| Refusal::new("IP is not built in"))?;
    let is_on = engine.get::<HostState>().is_some_and(|state| state.interfaces.contains_key(&id));
    if !is_on {
        (calls.set)(engine, id, Some(AutoSettings::default())).map_err(Refusal::new)?;
    }
    work(engine, |engine, state| {
        let HostState { interfaces, jitter, .. } = state;
        let host = interfaces.entry(id).or_default();
        host.default_route = default_route;
        if !is_on && is_up(engine, id) {
            host.solicit.begin(engine.now_ns(), jitter);
        }
    });
    Ok(())
}

/// Turn it off: its addresses and routes go.
fn disable(engine: &mut Engine, id: InterfaceId) -> Result<(), Refusal> {
    work(engine, |_, state| drop(state.interfaces.remove(&id)));
    match calls(engine) {
        Some(calls) => (calls.set)(engine, id, None).map_err(Refusal::new),
        None => Ok(()),
    }
}

/// Behind a link that goes down may be another one when it comes up again: all is learned anew.
fn follow(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    let is_concerned =
        engine.get::<HostState>().is_some_and(|state| state.interfaces.contains_key(&id));
    if !is_concerned {
        return;
    }
    work(engine, |engine, state| {
        let HostState { interfaces, jitter, .. } = state;
        match change {
            InterfaceChange::Deleted => drop(interfaces.remove(&id)),
            InterfaceChange::State => {
                let Some(host) = interfaces.get_mut(&id) else { return };
                if is_up(engine, id) {
                    host.solicit.begin(engine.now_ns(), jitter);
                } else {
                    host.learned.clear();
                    host.solicit.end();
                }
            }
            _ => {}
        }
    });
}

/// An advertisement, or an option of one, was received.
pub(crate) fn hear(engine: &mut Engine, on: InterfaceId, notice: &Notification) {
    let is_on = engine.get::<HostState>().is_some_and(|state| state.interfaces.contains_key(&on));
    let (Notification::Router { from, .. }
    | Notification::Prefix { from, .. }
    | Notification::Route { from, .. }) = *notice
    else {
        return;
    };
    if !is_on || !is_up(engine, on) || is_own(engine, on, from) {
        return;
    }
    let mtu_bytes =
        engine.get::<Fib>().and_then(|fib| fib.interface(on)).map_or(0, |info| info.mtu_bytes);
    work(engine, |engine, state| {
        let now_ns = engine.now_ns();
        let Some(host) = state.interfaces.get_mut(&on) else { return };
        match notice {
            Notification::Router { from, says } => {
                host.advertisements += 1;
                host.learned.hear_router(*from, says, mtu_bytes, now_ns);
                if says.lifetime_s > 0 {
                    host.solicit.end();
                }
            }
            Notification::Prefix { says, .. } => host.learned.hear_prefix(says, now_ns),
            Notification::Route { from, says } => host.learned.hear_route(*from, says, now_ns),
            Notification::Solicitation { .. } => {}
        }
    });
}

/// Is this the interface's own address: an advertisement of ours that came back?
fn is_own(engine: &Engine, on: InterfaceId, from: Ipv6Addr) -> bool {
    engine.get::<Fib>().is_some_and(|fib| fib.addresses(on).any(|(own, _)| own == IpAddr::V6(from)))
}
