//! What the relay agent does with packets that workers have taken: who they are from, where they
//! go.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib, InterfaceInfo};
use quiver_wire::dhcp4::{CLIENT_PORT, Message, REPLY, SERVER_PORT};
use quiver_wire::ip6::address::is_link_local;
use quiver_wire::{EtherType, MacAddress, dhcp6};

use crate::config::{Dhcp, Server, addresses_of, holder, is_up, own4, own6, tables_of};
use crate::datagram::{Datagram, packet};
use crate::input::{Arrival, Arrivals};
use crate::option82::{InterfaceOptions, Said};
use crate::outbox::Send;
use crate::reasons::RelayReason;
use crate::{relay4, relay6};

/// Fetch what workers have taken, on every turn of the control loop.
pub(crate) fn fetch(engine: &mut Engine, family: Family, arrivals: &mut Arrivals) {
    if arrivals.is_empty() {
        return;
    }
    engine.with(|engine, dhcp: &mut Dhcp| {
        while let Some(arrival) = arrivals.take() {
            let done = match family {
                Family::Ip4 => hear4(engine, dhcp, &arrival),
                Family::Ip6 => hear6(engine, dhcp, &arrival),
            };
            dhcp.outbox.count(family, done.unwrap_or_else(|why| why));
        }
        dhcp.prefixes.follow(engine);
        dhcp.outbox.flush(engine);
    });
}

/// An Ethernet frame with an IP packet; the packet alone where frames have no Ethernet header.
pub(crate) fn frame(info: &InterfaceInfo, to: MacAddress, packet: &[u8]) -> Vec<u8> {
    match info.mac {
        Some(own) => {
            let is_ip4 = packet.first().is_some_and(|byte| byte >> 4 == 4);
            let kind = if is_ip4 { EtherType::IPV4 } else { EtherType::IPV6 }.0.to_be_bytes();
            [&to.0[..], &own.0[..], &info.vlan_tags[..], &kind[..], packet].concat()
        }
        None => packet.to_vec(),
    }
}

/// Send a message to a server by the routes of its table.
fn send_to_server(
    engine: &Engine,
    dhcp: &mut Dhcp,
    server: &Server,
    from: IpAddr,
    ports: (u16, u16),
    message: &[u8],
) -> Result<(), RelayReason> {
    let fib = engine.get::<Fib>().ok_or(RelayReason::NoAddress)?;
    let table = fib.table_index(Family::of(server.address), server.table);
    let table = table.ok_or(RelayReason::NotConfigured)?;
    let bytes = packet(from, server.address, ports, message).ok_or(RelayReason::TooLong)?;
    dhcp.outbox.send(Send::Routed(bytes, table));
    Ok(())
}

fn hear4(
    engine: &mut Engine,
    dhcp: &mut Dhcp,
    arrival: &Arrival,
) -> Result<RelayReason, RelayReason> {
    let datagram = Datagram::of(arrival.bytes()).ok_or(RelayReason::NotUdp)?;
    let message = Message::parse(datagram.payload)?;
    if message.header.op == REPLY {
        return reply4(engine, dhcp, arrival.rx, &datagram, &message);
    }
    request4(engine, dhcp, arrival.rx, &datagram, &message)
}

fn request4(
    engine: &mut Engine,
    dhcp: &mut Dhcp,
    rx: InterfaceId,
    datagram: &Datagram<'_>,
    message: &Message<'_>,
) -> Result<RelayReason, RelayReason> {
    let [table, _] = tables_of(engine, rx);
    let servers = dhcp.ip4.servers.get(&table).ok_or(RelayReason::NotConfigured)?.clone();
    let own = own4(engine, rx);
    let circuit_id = dhcp.circuit_id(engine, rx);
    let options = dhcp.options.get(&rx).cloned().unwrap_or_default();
    let vss = dhcp.ip4.vss.get(&table).cloned();
    let is_unicast = datagram.destination != IpAddr::V4(Ipv4Addr::BROADCAST);
    let mut done = Err(RelayReason::NoAddress);
    for server in &servers {
        let source = match server.source {
            Some(IpAddr::V4(source)) => Some(source),
            _ => own,
        };
        let Some(giaddr) = source else { continue };
        let InterfaceOptions { disabled, remote_id, server_override, policy, .. } = &options;
        let said = Said {
            circuit_id: circuit_id.as_bytes(),
            remote_id: remote_id.as_ref().map(String::as_bytes),
            link: own.filter(|own| *own != giaddr),
            server_override: own.filter(|_| *server_override).map(|own| (own, is_unicast)),
            vss: vss.as_ref(),
        };
        let from =
            relay4::FromClient { giaddr, policy: *policy, said: (!disabled).then_some(said) };
        let is_ours =
            |address: Ipv4Addr| address == giaddr || holder(engine, address.into()).is_some();
        let relayed = relay4::to_server(datagram.payload, message, from, is_ours)?;
        if relayed.without_option {
            dhcp.outbox.count(Family::Ip4, RelayReason::NoRoom);
        }
        let ports = (SERVER_PORT, SERVER_PORT);
        let sent = send_to_server(engine, dhcp, server, giaddr.into(), ports, &relayed.bytes);
        match sent {
            Ok(()) => done = Ok(RelayReason::ToServer),
            Err(why) => done = done.or(Err(why)),
        }
    }
    done
}

/// The interface that a reply is for: the one that our option 82 names, or that has `giaddr`.
fn interface_of_reply(
    engine: &Engine,
    dhcp: &Dhcp,
    message: &Message<'_>,
) -> Result<InterfaceId, RelayReason> {
    let giaddr = message.header.giaddr();
    let is_source = |server: &Server| server.source == Some(giaddr.into());
    let is_shared = dhcp.ip4.servers.values().flatten().any(is_source);
    let holder = holder(engine, giaddr.into());
    if giaddr.is_unspecified() || !is_shared && holder.is_none() {
        return Err(RelayReason::Unmatched);
    }
    // An address that interfaces share says nothing of them.
    let holder = holder.filter(|_| !is_shared);
    let relays = |id: &InterfaceId| dhcp.ip4.servers.contains_key(&tables_of(engine, *id)[0]);
    let circuits = relay4::circuits(message);
    // An identifier that two interfaces share says less than the address.
    let shares = |id: &InterfaceId| {
        let own = dhcp.circuit_id(engine, *id);
        circuits.contains(&own.as_bytes())
    };
    let named = circuits.iter().find_map(|circuit| dhcp.circuit(engine, circuit));
    holder.filter(|id| shares(id)).or(named).or(holder).filter(relays).ok_or(RelayReason::Unmatched)
}

fn reply4(
    engine: &mut Engine,
    dhcp: &mut Dhcp,
    rx: InterfaceId,
    datagram: &Datagram<'_>,
    message: &Message<'_>,
) -> Result<RelayReason, RelayReason> {
    let [table, _] = tables_of(engine, rx);
    if !dhcp.ip4.is_server(datagram.source, table) {
        return Err(RelayReason::NotAServer);
    }
    let id = interface_of_reply(engine, dhcp, message)?;
    let own = own4(engine, id).unwrap_or(message.header.giaddr());
    let circuit_id = dhcp.circuit_id(engine, id);
    let bytes = relay4::to_client(datagram.payload, message, circuit_id.as_bytes())?;
    let to = relay4::destination(message.header);
    let ports = (SERVER_PORT, CLIENT_PORT);
    let packet =
        packet(own.into(), to.address.into(), ports, &bytes).ok_or(RelayReason::TooLong)?;
    let info = engine.get::<Fib>().and_then(|fib| fib.interface(id)).filter(|_| is_up(engine, id));
    let info = info.ok_or(RelayReason::Down)?;
    let frame = frame(info, to.mac, &packet);
    dhcp.outbox.send(Send::Frame(frame, info.output, id));
    Ok(RelayReason::ToClient)
}

fn hear6(
    engine: &mut Engine,
    dhcp: &mut Dhcp,
    arrival: &Arrival,
) -> Result<RelayReason, RelayReason> {
    let datagram = Datagram::of(arrival.bytes()).ok_or(RelayReason::NotUdp)?;
    let IpAddr::V6(source) = datagram.source else { return Err(RelayReason::NotUdp) };
    if datagram.payload.first() == Some(&dhcp6::message::RELAY_REPLY) {
        return reply6(engine, dhcp, arrival.rx, source, datagram.payload);
    }
    let mac = MacAddress::from_u64(arrival.note);
    request6(engine, dhcp, (arrival.rx, source, mac), datagram.payload)
}

fn request6(
    engine: &mut Engine,
    dhcp: &mut Dhcp,
    (rx, peer, mac): (InterfaceId, Ipv6Addr, MacAddress),
    payload: &[u8],
) -> Result<RelayReason, RelayReason> {
    let [_, table] = tables_of(engine, rx);
    let servers = dhcp.ip6.servers.get(&table).ok_or(RelayReason::NotConfigured)?.clone();
    let own = own6(engine, rx, false);
    let name = engine.interface_name(rx);
    let vss = dhcp.ip6.vss.get(&table).cloned();
    let options = dhcp.options6.get(&rx).cloned().unwrap_or_default();
    let remote_id = options.remote_id_bytes();
    let from = relay6::FromClient {
        link: own,
        interface_id: name.as_bytes(),
        vss: vss.as_ref(),
        remote_id: remote_id.as_deref(),
        mac: Some(mac).filter(|mac| options.link_layer_address && *mac != MacAddress::ZERO),
    };
    let relayed = relay6::to_server(payload, peer, from)?;
    let mut done = Err(RelayReason::NoAddress);
    for server in &servers {
        let Some(source) = server.source.or(own.map(IpAddr::V6)) else { continue };
        let ports = (dhcp6::SERVER_PORT, dhcp6::SERVER_PORT);
        match send_to_server(engine, dhcp, server, source, ports, &relayed) {
            Ok(()) => done = Ok(RelayReason::ToServer),
            Err(why) => done = done.or(Err(why)),
        }
    }
    if done.is_ok() {
        dhcp.prefixes.hear_client((rx, peer), payload);
    }
    done
}

fn reply6(
    engine: &mut Engine,
    dhcp: &mut Dhcp,
    rx: InterfaceId,
    source: Ipv6Addr,
    payload: &[u8],
) -> Result<RelayReason, RelayReason> {
    let [_, table] = tables_of(engine, rx);
    if !dhcp.ip6.is_server(source.into(), table) {
        return Err(RelayReason::NotAServer);
    }
    let said = relay6::from_server(payload)?;
    let name = said.interface_id.and_then(|id| str::from_utf8(id).ok());
    let named = name.and_then(|name| engine.interface_id(name));
    let id = named.or_else(|| holder(engine, said.link.into()));
    let relays = |id: &InterfaceId| dhcp.ip6.servers.contains_key(&tables_of(engine, *id)[1]);
    let id = id.filter(relays).ok_or(RelayReason::Unmatched)?;
    let near = is_link_local(said.peer);
    let own = own6(engine, id, near).or_else(|| own6(engine, id, true));
    let own = own.filter(|_| is_up(engine, id)).ok_or(RelayReason::Down)?;
    if addresses_of(engine, id).contains(&said.peer.into()) {
        return Err(RelayReason::BadPeer);
    }
    let port = if said.is_for_relay { dhcp6::SERVER_PORT } else { dhcp6::CLIENT_PORT };
    let ports = (dhcp6::SERVER_PORT, port);
    let bytes = packet(own.into(), said.peer.into(), ports, said.message);
    dhcp.outbox.send(Send::Behind(bytes.ok_or(RelayReason::TooLong)?, id));
    if near && !said.is_for_relay {
        let now_ns = engine.now_ns();
        for why in dhcp.prefixes.hear_server((id, said.peer), said.message, now_ns) {
            dhcp.outbox.count(Family::Ip6, why);
        }
    }
    Ok(RelayReason::ToClient)
}
