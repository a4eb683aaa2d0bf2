//! Neighbours on the control thread: what nodes hear, and what is forgotten.

use std::net::IpAddr;

use quiver_core::event::Event;
use quiver_core::{Engine, InterfaceId};
use quiver_tables::fib::{Fib, FibError};
use quiver_tables::neighbour::Learned;
use quiver_wire::MacAddress;

use crate::held;
use crate::notice::{Heard, Notice};
use crate::state::{ASKED_MAX, IpState, with_ip};

/// A dynamic neighbour that says nothing for so long counts as stale, and is still used.
pub const STALE_AFTER_MS: u64 = 60_000;
/// A dynamic neighbour that says nothing for so long is forgotten, and asked for when it is needed.
pub const FORGET_AFTER_MS: u64 = 20 * 60_000;
/// A neighbour that does not answer for so long is no more listed as asked for.
const ASKED_FOR_NS: u64 = 3_000_000_000;
/// How often neighbours are looked through.
const LOOK_THROUGH_NS: u64 = 1_000_000_000;
/// How often memory that no worker sees any more is made free.
const COLLECT_NS: u64 = 20_000_000;

/// The nodes that send notices.
const NOTICING: [&str; 9] = [
    "arp-input",
    "ip4-arp",
    "ip4-glean",
    "ip4-icmp-input",
    "ip6-discover-neighbor",
    "ip6-glean",
    "ip6-icmp-input",
    "icmp6-neighbor-solicitation",
    "icmp6-neighbor-advertisement",
];

/// Listen to nodes, and begin to look through the neighbours.
pub(crate) fn start(engine: &mut Engine) {
    for node in NOTICING {
        engine.on_event(node, hear);
    }
    engine.every(LOOK_THROUGH_NS, look_through);
    let collect = |engine: &mut Engine| {
        if let Some(fib) = engine.get_mut::<Fib>() {
            fib.collect();
        }
    };
    engine.every(COLLECT_NS, collect);
    engine.on_reclaim(collect);
}

/// Milliseconds on the router's clock.
pub(crate) fn now_ms(engine: &Engine) -> u64 {
    engine.now_ns() / 1_000_000
}

fn hear(engine: &mut Engine, event: &Event) {
    if held::hear(engine, event) {
        return;
    }
    let Some(notice) = Notice::read(event) else { return };
    match notice {
        Notice::Neighbour { address, mac, heard } => learn(engine, event.interface, address, mac, heard),
        Notice::Wanted { address } => want(engine, event.interface, address, event.at_ns),
        Notice::Conflict { address, mac } => {
            let interface = engine.interface_name(event.interface);
            tracing::warn!(
                "{interface}: {mac} uses our address {address} too; one of the two must change it"
            );
        }
        Notice::Ping { .. } => {
            if let Some(ip) = engine.get_mut::<IpState>() {
                ip.mailboxes.deliver(notice, event.at_ns);
            }
        }
    }
}

/// A neighbour was asked for.
pub(crate) fn want(engine: &mut Engine, on: InterfaceId, address: IpAddr, at_ns: u64) {
    // It may have spoken while the event was under way.
    let known = engine.get::<Fib>().map(Fib::neighbours);
    if known.is_some_and(|known| known.get(on, address).is_some()) {
        return;
    }
    let Some(ip) = engine.get_mut::<IpState>() else { return };
    if ip.asked.len() < ASKED_MAX || ip.asked.contains_key(&(on, address)) {
        ip.asked.insert((on, address), at_ns);
    }
}

/// A neighbour is known: what waits for it goes on.
pub(crate) fn serve(engine: &mut Engine, on: InterfaceId, address: IpAddr) {
    let now_ns = engine.now_ns();
    if let Some(ip) = engine.get_mut::<IpState>() {
        let packets = ip.held.take(on, address, now_ns);
        held::put_back(engine, on, packets);
    }
}

fn learn(engine: &mut Engine, on: InterfaceId, address: IpAddr, mac: MacAddress, heard: Heard) {
    let now = now_ms(engine);
    let learned = with_ip(engine, |_, ip, fib| {
        let known = fib.neighbours().get(on, address).map(|neighbour| neighbour.mac);
        let asked = ip.asked.contains_key(&(on, address));
        let wanted = match heard {
            Heard::Spoke => true,
            Heard::Overheard => known.is_some() || asked,
            Heard::Confirmed => known.is_none_or(|known| known == mac),
        };
        if !wanted {
            return Ok(false);
        }
        let learned = fib.learn_neighbour(on, address, mac, now)?;
        ip.asked.remove(&(on, address));
        Ok::<bool, FibError>(learned == Learned::Changed)
    });
    if matches!(learned, Err(FibError::NeighboursFull(_)))
        && let Some(ip) = engine.get_mut::<IpState>()
    {
        ip.not_learned += 1;
    }
    match learned {
        Ok(true) => serve(engine, on, address),
        Ok(false) => {}
        Err(error) => {
            let interface = engine.interface_name(on);
            tracing::debug!("{interface}: neighbour {address} at {mac} is not learned: {error}");
        }
    }
}

/// Neighbours age, and what waits for them in vain is forgotten.
fn look_through(engine: &mut Engine) {
    let now = now_ms(engine);
    let now_ns = engine.now_ns();
    with_ip(engine, |_, ip, fib| {
        ip.asked.retain(|_, at| now_ns.saturating_sub(*at) < ASKED_FOR_NS);
        match ip.held.forget_old(now_ns) {
            0 => {}
            count => tracing::debug!("{count} packets are forgotten: no neighbour answered in time"),
        }
        let stale: Vec<_> = fib.neighbours().older_than(STALE_AFTER_MS, now).collect();
        let old: Vec<_> = fib.neighbours().older_than(FORGET_AFTER_MS, now).collect();
        for (on, address) in stale {
            fib.set_neighbour_stale(on, address);
        }
        for (on, address) in old {
            if let Err(error) = fib.remove_neighbour(on, address) {
                tracing::warn!("neighbour {address} cannot be forgotten: {error}");
            }
        }
    });
}
