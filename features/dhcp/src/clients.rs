//! The router's DHCP clients: their messages, addresses and default routes.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId, WorkerId};
use quiver_forwarding::fib::{Family, Fib, Path, Source};
use quiver_forwarding::ip::InterfaceAddresses;
use quiver_tables::prefix::IpPrefix;
use quiver_wire::MacAddress;
use quiver_wire::dhcp4::{CLIENT_PORT, Message, SERVER_PORT};

use crate::client::{Action, Client, Settings};
use crate::config::{Dhcp, is_up};
use crate::datagram::{Datagram, packet};
use crate::input::{Arrival, Arrivals, DETECT};
use crate::outbox::Send;
use crate::reasons::ClientReason;
use crate::relay::frame;

/// The arc in which packets for clients are taken.
pub(crate) const ARC: &str = "ip4-unicast";

/// The MAC address of an interface that is up and has one.
fn link(engine: &Engine, id: InterfaceId) -> Option<MacAddress> {
    let row = engine.interface(id)?.row();
    let mac = MacAddress(row.mac);
    (row.up && mac != MacAddress::ZERO).then_some(mac)
}

/// Let an interface get its IPv4 address from DHCP servers.
pub(crate) fn add(engine: &mut Engine, id: InterfaceId, settings: Settings) -> Result<(), Refusal> {
    let known = engine.get_mut::<Dhcp>().and_then(|dhcp| dhcp.clients.get_mut(&id));
    if let Some(client) = known {
        client.settings = settings;
        return Ok(());
    }
    engine.set_feature(id, ARC, DETECT, true)?;
    engine.with(|engine, dhcp: &mut Dhcp| {
        dhcp.clients.insert(id, Client::new(settings));
        follow_link(engine, dhcp, id);
    });
    Ok(())
}

/// Let it do so no more: its lease is released.
pub(crate) fn remove(engine: &mut Engine, id: InterfaceId) -> Result<(), Refusal> {
    let is_there = engine.get::<Dhcp>().is_some_and(|dhcp| dhcp.clients.contains_key(&id));
    if !is_there {
        let name = engine.interface_name(id);
        return Err(Refusal::new(format!("{name} has no DHCP client"))
            .remedy("`show dhcp client` lists those that have"));
    }
    engine.set_feature(id, ARC, DETECT, false)?;
    engine.with(|engine, dhcp: &mut Dhcp| {
        release(engine, dhcp, id);
        dhcp.clients.remove(&id);
        follow_routes(engine, dhcp);
    });
    Ok(())
}

/// Tell the server, while the address is still there, that the lease ends.
fn release(engine: &mut Engine, dhcp: &mut Dhcp, id: InterfaceId) {
    let now_ns = engine.now_ns();
    let Some(client) = dhcp.clients.get_mut(&id) else { return };
    let actions = client.release(now_ns);
    let tells = actions.len() > 1;
    for action in actions {
        if action == Action::Withdraw && tells {
            dhcp.outbox.flush(engine);
            if let Err(stalled) = engine.wait_for_worker(WorkerId(0)) {
                tracing::warn!("{}: the DHCP release: {stalled}", engine.interface_name(id));
            }
        }
        act(engine, dhcp, id, action);
    }
}

/// An interface came up, went down, or has another MAC address.
fn follow_link(engine: &mut Engine, dhcp: &mut Dhcp, id: InterfaceId) {
    let (mac, now_ns) = (link(engine, id), engine.now_ns());
    let Dhcp { clients, jitter, .. } = dhcp;
    let Some(client) = clients.get_mut(&id) else { return };
    let actions = client.set_link(mac, now_ns, jitter);
    actions.into_iter().for_each(|action| act(engine, dhcp, id, action));
}

pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    let is_concerned = engine.get::<Dhcp>().is_some_and(|dhcp| dhcp.clients.contains_key(&id));
    if !is_concerned {
        return;
    }
    engine.with(|engine, dhcp: &mut Dhcp| {
        if change == InterfaceChange::Deleted {
            dhcp.clients.remove(&id);
        } else if change != InterfaceChange::GoingDown {
            follow_link(engine, dhcp, id);
        }
        follow_routes(engine, dhcp);
        dhcp.outbox.flush(engine);
    });
}

/// Time passes for all clients.
pub(crate) fn look(engine: &mut Engine) {
    if engine.get::<Dhcp>().is_none_or(|dhcp| dhcp.clients.is_empty()) {
        return;
    }
    let calls = engine.get::<InterfaceAddresses>().copied();
    engine.with(|engine, dhcp: &mut Dhcp| {
        let ids: Vec<InterfaceId> = dhcp.clients.keys().copied().collect();
        for id in ids {
            follow_link(engine, dhcp, id);
            let now_ns = engine.now_ns();
            let Dhcp { clients, jitter, .. } = &mut *dhcp;
            let Some(client) = clients.get_mut(&id) else { continue };
            let claimed = |address: Ipv4Addr| {
                calls.is_some_and(|calls| (calls.is_claimed)(engine, id, address.into()))
            };
            let leased = client.lease.as_ref().map(|lease| lease.address);
            let actions = match leased {
                Some(address) if client.is_on_probation(now_ns) && claimed(address) => {
                    client.decline(now_ns, jitter)
                }
                _ => client.pass_time(now_ns, jitter),
            };
            actions.into_iter().for_each(|action| act(engine, dhcp, id, action));
        }
        follow_routes(engine, dhcp);
        dhcp.outbox.flush(engine);
    });
}

/// Fetch the packets for clients that workers have taken.
pub(crate) fn fetch(engine: &mut Engine, arrivals: &mut Arrivals) {
    if arrivals.is_empty() {
        return;
    }
    engine.with(|engine, dhcp: &mut Dhcp| {
        while let Some(arrival) = arrivals.take() {
            if let Err(why) = hear(engine, dhcp, &arrival) {
                dhcp.outbox.count_client(Family::Ip4, why);
            }
        }
        follow_routes(engine, dhcp);
        dhcp.outbox.flush(engine);
    });
}

fn hear(engine: &mut Engine, dhcp: &mut Dhcp, arrival: &Arrival) -> Result<(), ClientReason> {
    let datagram = Datagram::of(arrival.bytes()).ok_or(ClientReason::NotUdp)?;
    if !arrival.is_checked && !datagram.is_good() {
        return Err(ClientReason::NotUdp);
    }
    let message = Message::parse(datagram.payload).map_err(|_| ClientReason::Malformed)?;
    let (id, now_ns) = (arrival.rx, engine.now_ns());
    let Dhcp { clients, jitter, .. } = &mut *dhcp;
    let client = clients.get_mut(&id).ok_or(ClientReason::Other)?;
    let actions = client.hear(&message, now_ns, jitter)?;
    actions.into_iter().for_each(|action| act(engine, dhcp, id, action));
    Ok(())
}

fn lease(engine: &mut Engine, id: InterfaceId, wanted: Option<(Ipv4Addr, u8)>) {
    let Some(calls) = engine.get::<InterfaceAddresses>().copied() else { return };
    if let Err(error) = (calls.lease)(engine, id, wanted) {
        tracing::warn!("{}: the leased address: {error}", engine.interface_name(id));
    }
}

/// Do what a client wants.
fn act(engine: &mut Engine, dhcp: &mut Dhcp, id: InterfaceId, action: Action) {
    let info = engine.get::<Fib>().and_then(|fib| fib.interface(id)).cloned();
    match action {
        Action::Broadcast(message) => {
            let (from, to) = (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::BROADCAST.into());
            let bytes = packet(from, to, (CLIENT_PORT, SERVER_PORT), &message);
            let Some((info, bytes)) = info.zip(bytes) else { return };
            let frame = frame(&info, MacAddress::BROADCAST, &bytes);
            dhcp.outbox.send(Send::Frame(frame, info.output, id));
        }
        Action::Unicast(message, from, to) => {
            let bytes = packet(from.into(), to.into(), (CLIENT_PORT, SERVER_PORT), &message);
            let Some((info, bytes)) = info.zip(bytes) else { return };
            dhcp.outbox.send(Send::Routed(bytes, info.ip4_table));
        }
        Action::Use(given) => {
            let name = engine.interface_name(id);
            tracing::info!(
                "{name}: {} leases {}/{} for {} s",
                given.server,
                given.address,
                given.length,
                given.lease_s
            );
            lease(engine, id, Some((given.address, given.length)));
        }
        Action::Withdraw => lease(engine, id, None),
    }
}

/// Make the default routes of the tables those of the leases. One that finds no room is tried again
/// the next time.
fn follow_routes(engine: &mut Engine, dhcp: &mut Dhcp) {
    engine.with(|engine, fib: &mut Fib| follow_routes_in(engine, fib, dhcp));
}

fn follow_routes_in(engine: &Engine, fib: &mut Fib, dhcp: &mut Dhcp) {
    let mut wanted: BTreeMap<u32, Vec<Path>> = BTreeMap::new();
    for (id, client) in &dhcp.clients {
        let lease = client.lease.as_ref().filter(|_| client.is_bound() && is_up(engine, *id));
        let Some((lease, info)) = lease.zip(fib.interface(*id)) else { continue };
        for (place, router) in lease.routers.iter().enumerate() {
            // RFC 2132 §3.5: in the order of preference.
            let path = Path::via(IpAddr::V4(*router), Some(*id)).preference(place as u8);
            wanted.entry(info.ip4_table).or_default().push(path);
        }
    }
    wanted.values_mut().for_each(|paths| {
        paths.sort_unstable();
        paths.dedup();
    });
    let everywhere = IpPrefix::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    for table in dhcp.default_routes.keys().filter(|table| !wanted.contains_key(table)) {
        // It may be gone already with its table.
        let _ = fib.remove_route(*table, everywhere, Source::Leased);
    }
    wanted.retain(|table, paths| {
        dhcp.default_routes.get(table) == Some(paths)
            || fib.replace_route(*table, everywhere, Source::Leased, paths).is_ok()
    });
    dhcp.default_routes = wanted;
}
