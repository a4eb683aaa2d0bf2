//! The router's DHCPv6 clients: their messages, and what their leases change.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId, WorkerId};
use quiver_forwarding::fib::{Family, Fib};
use quiver_forwarding::ip::{Autoconfiguration, InterfaceAddresses};
use quiver_wire::MacAddress;
use quiver_wire::dhcp6::{ALL_RELAY_AGENTS_AND_SERVERS, CLIENT_PORT, Message, SERVER_PORT};
use quiver_wire::ip6::address::is_link_local;

use crate::client6::{Client6, IaType};
use crate::config::Dhcp;
use crate::datagram::{Datagram, packet};
use crate::input::{Arrival, Arrivals};
use crate::leases6;
use crate::outbox::Send;
use crate::reasons::ClientReason;
use crate::relay::frame;

/// How often the clients' timers are looked at.
pub(crate) const LOOK6_NS: u64 = 100_000_000;

/// The clients, by interface and by what they ask for.
pub type Clients6 = BTreeMap<(InterfaceId, IaType), Client6>;

/// The identifier of an interface's identity associations. It is the same after a restart, and
/// differs between sub-interfaces, which share a MAC address (RFC 8415 §4.2, IAID): FNV-1a.
fn iaid(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The MAC address of a DUID; a local one where the interface has none.
fn mac_of(engine: &Engine, id: InterfaceId) -> MacAddress {
    let mac = engine.interface(id).map(|interface| MacAddress(interface.row().mac));
    let own = mac.filter(|mac| *mac != MacAddress::ZERO);
    own.unwrap_or_else(|| MacAddress::from_u64(0x0200_0000_0000 | u64::from(id.0)))
}

fn calls(engine: &Engine) -> Result<InterfaceAddresses, Refusal> {
    let calls = engine.get::<InterfaceAddresses>().copied();
    calls.ok_or_else(|| Refusal::new("this router has no IP addresses"))
}

/// Let an interface have a client. One that is there stays as it is.
pub(crate) fn add(engine: &mut Engine, id: InterfaceId, ia_type: IaType) -> Result<(), Refusal> {
    (calls(engine)?.serve_client6)(engine, id, true).map_err(Refusal::new)?;
    let client = Client6::new(ia_type, mac_of(engine, id), iaid(&engine.interface_name(id)));
    engine.with(|engine, dhcp: &mut Dhcp| {
        let known = dhcp.clients6.get(&(id, ia_type));
        if known.is_none_or(Client6::is_ending) {
            dhcp.clients6.insert((id, ia_type), client);
        }
        run(engine, dhcp, false);
    });
    Ok(())
}

/// Is a client configured?
pub(crate) fn has(dhcp: &Dhcp, id: InterfaceId, ia_type: IaType) -> bool {
    dhcp.clients6.get(&(id, ia_type)).is_some_and(|client| !client.is_ending())
}

/// Let an interface have no such client any more: it releases what it has.
pub(crate) fn remove(engine: &mut Engine, id: InterfaceId, ia_type: IaType) -> Result<(), Refusal> {
    let is_there = engine.get::<Dhcp>().is_some_and(|dhcp| has(dhcp, id, ia_type));
    if !is_there {
        let name = engine.interface_name(id);
        let (what, show) = match ia_type {
            IaType::Na => ("DHCPv6 client", "show dhcp6 clients"),
            IaType::Pd => ("client of delegated prefixes", "show dhcp6 pd clients"),
        };
        return Err(Refusal::new(format!("{name} has no {what}"))
            .remedy(format!("`{show}` lists the interfaces that have one")));
    }
    let now_ns = engine.now_ns();
    let is_last = engine.with(|engine, dhcp: &mut Dhcp| {
        let Dhcp { clients6, jitter, .. } = &mut *dhcp;
        if let Some(client) = clients6.get_mut(&(id, ia_type)) {
            client.release(now_ns, jitter);
        }
        let tells = clients6.get(&(id, ia_type)).is_some_and(|client| !client.has_ended());
        run(engine, dhcp, false);
        if tells && let Err(stalled) = engine.wait_for_worker(WorkerId(0)) {
            tracing::warn!("{}: the DHCPv6 release: {stalled}", engine.interface_name(id));
        }
        if ia_type == IaType::Pd {
            dhcp.pd_groups.remove(&id);
        }
        ![IaType::Na, IaType::Pd].into_iter().any(|ia_type| has(dhcp, id, ia_type))
    });
    match is_last {
        true => (calls(engine)?.serve_client6)(engine, id, false).map_err(Refusal::new),
        false => Ok(()),
    }
}

/// The address that messages of clients on an interface are sent from.
fn link_local(engine: &Engine, id: InterfaceId) -> Option<Ipv6Addr> {
    let calls = engine.get::<Autoconfiguration>().copied()?;
    (calls.link_local)(engine, id)
}

/// Time passes for all clients. `checks`: look whether interfaces still have the leased addresses.
pub(crate) fn look(engine: &mut Engine, checks: bool) {
    let is_idle = |dhcp: &Dhcp| dhcp.clients6.is_empty() && dhcp.leases6.is_empty();
    if engine.get::<Dhcp>().is_none_or(is_idle) {
        return;
    }
    engine.with(|engine, dhcp: &mut Dhcp| run(engine, dhcp, checks));
}

fn run(engine: &mut Engine, dhcp: &mut Dhcp, checks: bool) {
    let now_ns = engine.now_ns();
    let calls = engine.get::<InterfaceAddresses>().copied();
    let Dhcp { clients6, jitter, outbox, .. } = &mut *dhcp;
    for ((id, _), client) in clients6.iter_mut() {
        let own = link_local(engine, *id);
        client.set_link(own.is_some(), now_ns, jitter);
        if client.is_on_probation(now_ns)
            && let Some(calls) = calls
        {
            let bound = client.bindings.iter().map(|binding| binding.address);
            let claimed: Vec<Ipv6Addr> =
                bound.filter(|at| (calls.is_claimed)(engine, *id, (*at).into())).collect();
            client.decline(&claimed, now_ns, jitter);
        }
        let Some(message) = client.pass_time(now_ns, jitter) else { continue };
        let info = engine.get::<Fib>().and_then(|fib| fib.interface(*id));
        let Some((own, info)) = own.zip(info) else { continue };
        let group = ALL_RELAY_AGENTS_AND_SERVERS;
        let (from, to) = (IpAddr::V6(own), IpAddr::V6(group));
        let Some(bytes) = packet(from, to, (CLIENT_PORT, SERVER_PORT), &message) else { continue };
        let frame = frame(info, MacAddress::for_ip6_multicast(group), &bytes);
        outbox.send(Send::Frame(frame, info.output, *id));
    }
    clients6.retain(|_, client| !client.has_ended());
    publish(dhcp);
    leases6::follow(engine, dhcp, checks);
    dhcp.outbox.flush(engine);
}

/// Let workers know the interfaces that have a client.
fn publish(dhcp: &mut Dhcp) {
    let mut wanted: Vec<InterfaceId> = dhcp.clients6.keys().map(|(id, _)| *id).collect();
    wanted.dedup();
    if wanted != dhcp.published6 {
        dhcp.published6.clone_from(&wanted);
        dhcp.enabled6.publish(wanted);
    }
}

/// An interface has changed.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change == InterfaceChange::Deleted {
        engine.with(|engine, dhcp: &mut Dhcp| {
            dhcp.clients6.retain(|(on, _), _| *on != id);
            dhcp.pd_groups.remove(&id);
            dhcp.group_addresses.retain(|address| address.interface != id);
            dhcp.leases6.forget_interface(id);
            run(engine, dhcp, false);
        });
    } else if change != InterfaceChange::GoingDown {
        look(engine, false);
    }
}

/// Fetch the messages for clients that workers have taken.
pub(crate) fn fetch(engine: &mut Engine, arrivals: &mut Arrivals) {
    if arrivals.is_empty() {
        return;
    }
    engine.with(|engine, dhcp: &mut Dhcp| {
        while let Some(arrival) = arrivals.take() {
            if let Err(why) = hear(engine, dhcp, &arrival) {
                dhcp.outbox.count_client(Family::Ip6, why);
            }
        }
        run(engine, dhcp, false);
    });
}

fn hear(engine: &Engine, dhcp: &mut Dhcp, arrival: &Arrival) -> Result<(), ClientReason> {
    let datagram = Datagram::of(arrival.bytes()).ok_or(ClientReason::NotUdp)?;
    let (IpAddr::V6(from), IpAddr::V6(to)) = (datagram.source, datagram.destination) else {
        return Err(ClientReason::NotUdp);
    };
    // Clients speak from link-local addresses only: so nobody beyond the link can answer.
    if !is_link_local(to) {
        return Err(ClientReason::Other);
    }
    let message = Message::parse(datagram.payload).map_err(|_| ClientReason::Malformed)?;
    let (id, now_ns) = (arrival.rx, engine.now_ns());
    let Dhcp { clients6, jitter, .. } = &mut *dhcp;
    let mut all = clients6.range_mut((id, IaType::Na)..=(id, IaType::Pd)).map(|(_, client)| client);
    let client = all.find(|client| client.transaction() == message.transaction);
    client.ok_or(ClientReason::Other)?.hear(&message, from, now_ns, jitter)
}

#[cfg(test)]
mod tests {
    #[test]
    fn identity_associations_of_interfaces_differ() {
        assert_eq!(super::iaid(""), 0x811c_9dc5);
        assert_eq!(super::iaid("a"), 0xe40c_292c);
        assert_ne!(super::iaid("e0.1"), super::iaid("e0.2"));
    }
}
