//! Tunnels made, changed and forgotten: their interfaces, ports, groups and next hops.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use quiver_control::modes;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::control::tunnel_interface::TunnelInterfaceSpec;
use quiver_core::worker::event::Event;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib};
use quiver_forwarding::ip::{GroupMembership, IpTables, OpenPort};
use quiver_tables::mac::CORE_GROUP;

use super::super::errors::PathReport;
use super::super::far_ends;
use super::super::protocol::TunnelProtocol;
use super::super::table::{End, Key, bits, key};
use super::super::teib::{NextHop, Teib};
use super::*;

/// Check the addresses of a tunnel.
fn check<P: TunnelProtocol>(config: &TunnelConfig<P::Extra>) -> Result<(), TunnelError> {
    let group = config.group_address();
    if let Some(group) = group.filter(|group| !group.is_multicast()) {
        return Err(TunnelError::NoGroup(group));
    }
    let source = Some(config.source).filter(|_| !P::HAS_SOURCES);
    for address in [source, config.destination].into_iter().flatten() {
        if !is_host(address) && Some(address) != group {
            return Err(TunnelError::Address(address));
        }
    }
    match config.destination {
        Some(destination) if Family::of(destination) != Family::of(config.source) => {
            Err(TunnelError::Families(config.source, destination))
        }
        None if config.carries_frames && P::FAR_ENDS.is_none() => {
            Err(TunnelError::MultipointFrames)
        }
        _ => Ok(()),
    }
}

/// Make a tunnel; returns its interface.
///
/// # Errors
/// The endpoints do not fit together or are taken, the instance or the table is not free or
/// missing, or a table is full.
pub fn create<P: TunnelProtocol>(
    engine: &mut Engine,
    mut config: TunnelConfig<P::Extra>,
) -> Result<InterfaceId, TunnelError> {
    check::<P>(&config)?;
    let instance = free_instance::<P>(engine, config.instance)?;
    config.instance = Some(instance);
    let via = config.udp.as_mut().and_then(|udp| udp.group_interface.take());
    let family = Family::of(config.source);
    let no_table = TunnelError::NoTable { family, table: config.table };
    let table = fib(engine)?.table_index(family, config.table).ok_or(no_table)?;
    let mut tunnel = Tunnel::<P> { config, table, peers: BTreeMap::new(), alias: None };
    let own_key = tunnel.own_key();
    if engine.get::<Tunnels<P>>().is_some_and(|tunnels| tunnels.ends.has(&own_key)) {
        return Err(TunnelError::Ends(other_with::<P>(engine, &own_key)));
    }
    listen::<P>(engine, &config)?;
    let id = match create_interface::<P>(engine, instance, &config) {
        Ok(id) => id,
        Err(error) => {
            stop_listening::<P>(engine, &config);
            return Err(error);
        }
    };
    let made = engine.with(|engine, tunnels: &mut Tunnels<P>| -> Result<(), TunnelError> {
        let mut end = end::<P>(id, &config);
        let far_end = config.destination.filter(|_| config.group_address().is_none());
        let Some(destination) = far_end else {
            match config.group_address() {
                Some(_) => tunnels.ends.insert(own_key, end)?,
                None => tunnel.keys_of_any().try_for_each(|key| tunnels.ends.insert(key, end))?,
            }
            let fib = fib(engine)?;
            fib.hold_table(family, table, HOLDER);
            if config.has_far_ends() {
                tunnels.far_tables.set_key(id, config.key.unwrap_or(0));
            } else if config.destination.is_none() {
                fib.set_multipoint(id);
            }
            // Members of the group also send to this end alone (RFC 7348 §4.1).
            if config.group_address().is_some() {
                let to = bits(config.source);
                let to_us = key(0, to, table, config.local_port(), config.key);
                let is_free = !tunnels.ends.has(&to_us);
                if is_free && tunnels.ends.insert(to_us, end).is_ok() {
                    tunnel.alias = Some(to_us);
                }
            }
            tunnels.by_interface.insert(id, tunnel);
            tunnels.follow_groups(id);
            return Ok(());
        };
        let peer = tunnels.add_peer(fib(engine)?, &config, destination, table)?;
        end.entry = peer.entry;
        let hop = match config.carries_frames {
            true => Ok(None),
            false => stacked_hop::<P>(engine, family, peer).map(Some),
        };
        let inserted = hop.and_then(|hop| tunnels.insert_end(&peer, end).map(|()| hop));
        match inserted {
            Ok(hop) => {
                match hop {
                    Some(_) => fib(engine)?.set_stack(id, hop),
                    None => tunnels.frames.set(id, peer.entry),
                }
                tunnel.peers.insert(None, peer);
                tunnels.by_interface.insert(id, tunnel);
                tunnels.follow_groups(id);
                Ok(())
            }
            Err(error) => {
                tunnels.remove_peer(fib(engine)?, peer);
                Err(error)
            }
        }
    });
    if let Err(error) = made {
        stop_listening::<P>(engine, &config);
        engine.delete_interface(id)?;
        return Err(error);
    }
    if let Some(node) = config.udp.and_then(|udp| udp.input) {
        engine.set_input_node(id, node)?;
    }
    if let Some(via) = via
        && let Err(error) = set_group_interface::<P>(engine, id, Some(via))
    {
        engine.delete_interface(id)?;
        return Err(error);
    }
    if config.has_far_ends() {
        modes::set_group(engine, id, CORE_GROUP);
        modes::set_unlearned(engine, id);
    } else if config.destination.is_none() && P::FOLLOWS_TEIB {
        follow_next_hops::<P>(engine, id)?;
    }
    Ok(id)
}

/// Let a tunnel to a group send by an interface, and listen there, or neither.
///
/// # Errors
/// The tunnel is for no group, or the interface cannot send to it.
pub fn set_group_interface<P: TunnelProtocol>(
    engine: &mut Engine,
    id: InterfaceId,
    via: Option<InterfaceId>,
) -> Result<(), TunnelError> {
    let membership = engine.get::<GroupMembership>().copied();
    let membership = membership.ok_or(TunnelError::NoMembership)?;
    let tunnel = engine.get::<Tunnels<P>>().and_then(|tunnels| tunnels.get(id));
    let tunnel = tunnel.ok_or(TunnelError::NoGroupTunnel)?;
    let (old, table) = (tunnel.config, tunnel.table);
    let group = old.group_address().ok_or(TunnelError::NoGroupTunnel)?;
    let udp = old.udp.map(|udp| UdpConfig { group_interface: via, ..udp });
    let new = TunnelConfig { udp, ..old };
    engine.with(|engine, tunnels: &mut Tunnels<P>| -> Result<(), TunnelError> {
        let fib = fib(engine)?;
        let peer = match via {
            Some(_) => Some(tunnels.add_peer(fib, &new, group, table)?),
            None => None,
        };
        let entry = peer.map_or(0, |peer| peer.entry);
        let Some(tunnel) = tunnels.by_interface.get_mut(&id) else { return Ok(()) };
        tunnel.config = new;
        let gone = match peer {
            Some(peer) => tunnel.peers.insert(None, peer),
            None => tunnel.peers.remove(&None),
        };
        let keys = [Some(tunnel.own_key()), tunnel.alias];
        tunnels.frames.set(id, entry);
        for key in keys.into_iter().flatten() {
            tunnels.ends.insert(key, End { entry, ..end::<P>(id, &new) })?;
        }
        if let Some(gone) = gone {
            tunnels.remove_peer(fib, gone);
        }
        Ok(())
    })?;
    if let Some((group, interface)) = new.group() {
        (membership.join)(engine, interface, group);
    }
    if let Some((group, interface)) = old.group() {
        (membership.leave)(engine, interface, group);
    }
    Ok(())
}

/// Take packets at the tunnel's UDP port.
fn listen<P: TunnelProtocol>(
    engine: &mut Engine,
    config: &TunnelConfig<P::Extra>,
) -> Result<(), TunnelError> {
    let Some(udp) = config.udp.filter(|udp| udp.local_port != 0) else { return Ok(()) };
    let tables = engine.shared::<IpTables>().ok_or(TunnelError::NotBuiltIn("IP forwarding"))?;
    for (opened, family) in families::<P>(config).iter().enumerate() {
        let name = P::NODES.input[*family as usize];
        let node = engine.node_id(name).ok_or(TunnelError::NotBuiltIn(name))?;
        let errors = engine.node_id(P::NODES.errors[*family as usize]);
        let open = OpenPort { node, takes_zero_checksum: true, errors };
        if !tables.udp_ports.open(*family, udp.local_port, open) {
            let before = families::<P>(config).iter().take(opened);
            before.for_each(|family| tables.udp_ports.close(*family, udp.local_port));
            return Err(TunnelError::Port(udp.local_port));
        }
    }
    Ok(())
}

/// The families of outer headers that a tunnel receives.
fn families<P: TunnelProtocol>(config: &TunnelConfig<P::Extra>) -> &'static [Family] {
    match (P::HAS_SOURCES, Family::of(config.source)) {
        (true, _) => &[Family::Ip4, Family::Ip6],
        (false, Family::Ip4) => &[Family::Ip4],
        (false, Family::Ip6) => &[Family::Ip6],
    }
}

/// Undo [`listen`], and leave the tunnel's group.
fn stop_listening<P: TunnelProtocol>(engine: &mut Engine, config: &TunnelConfig<P::Extra>) {
    let Some(udp) = config.udp.filter(|udp| udp.local_port != 0) else { return };
    if let Some(tables) = engine.shared::<IpTables>() {
        for family in families::<P>(config) {
            tables.udp_ports.close(*family, udp.local_port);
        }
    }
    if let Some((group, interface)) = config.group()
        && let Some(membership) = engine.get::<GroupMembership>().copied()
    {
        (membership.leave)(engine, interface, group);
    }
}

/// Give a tunnel another configuration, a point-to-point one with the same ends, table and key: its
/// next packets have the new header. Nothing changes when it is refused, but that a multipoint
/// tunnel loses the next hops that it cannot reach any more.
///
/// # Errors
/// The interface is no such tunnel, or a table is full.
pub fn reconfigure<P: TunnelProtocol>(
    engine: &mut Engine,
    id: InterfaceId,
    extra: P::Extra,
) -> Result<(), TunnelError> {
    engine.with(|engine, tunnels: &mut Tunnels<P>| {
        let Some(mut tunnel) = tunnels.by_interface.remove(&id) else {
            return Err(TunnelError::NotBuiltIn(P::WORDS));
        };
        let changed = change_peer::<P>(engine, tunnels, &mut tunnel, id, extra);
        tunnels.by_interface.insert(id, tunnel);
        changed
    })
}

fn change_peer<P: TunnelProtocol>(
    engine: &mut Engine,
    tunnels: &mut Tunnels<P>,
    tunnel: &mut Tunnel<P>,
    id: InterfaceId,
    extra: P::Extra,
) -> Result<(), TunnelError> {
    let config = TunnelConfig { extra, ..tunnel.config };
    if config.destination.is_none() {
        tunnel.keys_of_any().for_each(|key| tunnels.ends.remove(&key));
        tunnel.config = config;
        for key in tunnel.keys_of_any() {
            tunnels.ends.insert(key, end::<P>(id, &config))?;
        }
        let known: Vec<(IpAddr, Peer)> =
            tunnel.peers.iter().filter_map(|(hop, peer)| Some(((*hop)?, *peer))).collect();
        for (next_hop, peer) in known {
            let address = unmapped(peer.key);
            let table = fib(engine)?.table_id(peer.family, peer.table).unwrap_or(0);
            remove_next_hop(engine, tunnels, tunnel, id, next_hop);
            let to = NextHop { address, table };
            let _ = add_next_hop(engine, tunnels, tunnel, id, (next_hop, to));
        }
        return Ok(());
    }
    if let (Some(destination), Some(old)) = (config.destination, tunnel.peers.get(&None).copied()) {
        let peer = tunnels.add_peer(fib(engine)?, &config, destination, tunnel.table)?;
        let hop = match config.carries_frames {
            true => None,
            false => Some(stacked_hop::<P>(engine, tunnel.family(), peer)?),
        };
        let end = End { entry: peer.entry, ..end::<P>(id, &config) };
        if let Err(error) = tunnels.insert_end(&peer, end) {
            tunnels.remove_peer(fib(engine)?, peer);
            return Err(error);
        }
        match hop {
            Some(_) => fib(engine)?.set_stack(id, hop),
            None => tunnels.frames.set(id, peer.entry),
        }
        tunnels.remove_peer(fib(engine)?, old);
        tunnel.peers.insert(None, peer);
    }
    tunnel.config = config;
    Ok(())
}

/// The remote address of a key.
fn unmapped([high, low, ..]: Key) -> IpAddr {
    let address = Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low));
    address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4)
}

/// Say behind which outer address a next hop of a multipoint tunnel is, of a protocol that does not
/// follow the TEIB, or that it is nowhere (`None`).
///
/// # Errors
/// The tunnel has no source of that family, its table does not exist, or a table is full.
pub fn set_peer<P: TunnelProtocol>(
    engine: &mut Engine,
    id: InterfaceId,
    next_hop: IpAddr,
    to: Option<NextHop>,
) -> Result<(), TunnelError> {
    engine.with(|engine, tunnels: &mut Tunnels<P>| {
        let Some(mut tunnel) = tunnels.by_interface.remove(&id) else {
            return Err(TunnelError::NotBuiltIn(P::WORDS));
        };
        remove_next_hop(engine, tunnels, &mut tunnel, id, next_hop);
        let done = match to {
            Some(to) => add_next_hop(engine, tunnels, &mut tunnel, id, (next_hop, to)),
            None => Ok(()),
        };
        tunnels.by_interface.insert(id, tunnel);
        done
    })
}

/// The name of the tunnel with this key of ends.
fn other_with<P: TunnelProtocol>(engine: &Engine, key: &Key) -> String {
    let found = engine.get::<Tunnels<P>>().and_then(|tunnels| tunnels.table().find(key));
    found.map_or_else(|| P::WORDS.to_owned(), |end| engine.interface_name(end.interface))
}

fn create_interface<P: TunnelProtocol>(
    engine: &mut Engine,
    instance: u32,
    config: &TunnelConfig<P::Extra>,
) -> Result<InterfaceId, TunnelError> {
    let outer = Family::of(config.source) as usize;
    let next = match P::FAR_ENDS.filter(|_| config.has_far_ends()) {
        Some(nodes) => nodes.encap[outer],
        None if config.carries_frames => P::frame_nodes(config)[outer],
        None => P::NODES.output,
    };
    let node = engine.node_id(next).ok_or(TunnelError::NotBuiltIn(next))?;
    // Numbered frames are cut before. Who cuts others knows tunnels in UDP by their usual port.
    let is_usual = config.udp.is_none_or(|udp| Some(udp.remote_port) == P::UDP_PORT);
    let takes_offloads = is_usual && !P::NUMBERED_NODES.contains(&next);
    let id = engine.create_tunnel_interface(TunnelInterfaceSpec {
        name: name::<P>(instance),
        device: Box::new(TunnelDevice(P::NAME)),
        mac: if config.carries_frames { made_up_mac() } else { [0; 6] },
        mtu_bytes: MTU_BYTES,
        input: if config.carries_frames { "ethernet-input" } else { "error-drop" }.to_owned(),
        encap: node,
        takes_offloads,
    })?;
    Ok(id)
}

/// Locally administered, different each time (RFC 9542 §2.1): both ends of a tunnel are ports of
/// one bridge.
fn made_up_mac() -> [u8; 6] {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let [a, b, c, d, ..] = RandomState::new().build_hasher().finish().to_ne_bytes();
    [0x02, 0xfe, a, b, c, d]
}

/// An interface is gone: its tunnel, too.
fn forget<P: TunnelProtocol>(engine: &mut Engine, id: InterfaceId) {
    far_ends::forget::<P>(engine, id);
    engine.with(|engine, tunnels: &mut Tunnels<P>| {
        let Some(tunnel) = tunnels.by_interface.remove(&id) else { return };
        stop_listening::<P>(engine, &tunnel.config);
        tunnels.frames.set(id, 0);
        match tunnel.config.destination {
            Some(_) => tunnels.ends.remove(&tunnel.own_key()),
            None => tunnel.keys_of_any().for_each(|key| tunnels.ends.remove(&key)),
        }
        if let Some(alias) = &tunnel.alias {
            tunnels.ends.remove(alias);
        }
        if tunnel.config.group_address().is_some() {
            let mut others = tunnels.by_interface.iter();
            let other = others.find(|(_, other)| other.has_number_of(&tunnel)).map(|(id, _)| *id);
            other.into_iter().for_each(|id| tunnels.follow_groups(id));
        }
        tunnel.peers.values().for_each(|peer| tunnels.remove_end(peer));
        let Some(fib) = engine.get_mut::<Fib>() else { return };
        fib.set_stack(id, None);
        if tunnel.config.destination.is_none() || tunnel.config.group_address().is_some() {
            fib.release_table(tunnel.family(), tunnel.table, HOLDER);
        }
        for peer in tunnel.peers.into_values() {
            tunnels.remove_peer(fib, peer);
        }
    });
}

/// Let the peers of a multipoint tunnel be those that the TEIB says.
fn follow_next_hops<P: TunnelProtocol>(
    engine: &mut Engine,
    id: InterfaceId,
) -> Result<(), TunnelError> {
    let wanted = engine
        .get::<Teib>()
        .map(|teib| teib.on(id).collect::<BTreeMap<_, _>>())
        .unwrap_or_default();
    engine.with(|engine, tunnels: &mut Tunnels<P>| {
        let Some(mut tunnel) = tunnels.by_interface.remove(&id) else { return Ok(()) };
        let mut done = Ok(());
        if tunnel.config.destination.is_none() && !tunnel.has_far_ends() {
            let known: Vec<IpAddr> = tunnel.peers.keys().flatten().copied().collect();
            for next_hop in known.into_iter().filter(|next_hop| !wanted.contains_key(next_hop)) {
                remove_next_hop(engine, tunnels, &mut tunnel, id, next_hop);
            }
            for (next_hop, to) in wanted {
                let key = |peer: &Peer| peer.key[..2] == key(bits(to.address), 0, 0, 0, None)[..2];
                if tunnel.peers.get(&Some(next_hop)).is_some_and(key) {
                    continue;
                }
                remove_next_hop(engine, tunnels, &mut tunnel, id, next_hop);
                done = done.and(add_next_hop(engine, tunnels, &mut tunnel, id, (next_hop, to)));
            }
        }
        tunnels.by_interface.insert(id, tunnel);
        done
    })
}

fn add_next_hop<P: TunnelProtocol>(
    engine: &mut Engine,
    tunnels: &mut Tunnels<P>,
    tunnel: &mut Tunnel<P>,
    id: InterfaceId,
    (next_hop, to): (IpAddr, NextHop),
) -> Result<(), TunnelError> {
    let family = Family::of(to.address);
    let no_table = TunnelError::NoTable { family, table: to.table };
    let fib = fib(engine)?;
    let table = fib.table_index(family, to.table).ok_or(no_table)?;
    let peer = tunnels.add_peer(fib, &tunnel.config, to.address, table)?;
    let hop = stacked_hop::<P>(engine, family, peer)?;
    // Two next hops may be behind one peer; a point-to-point tunnel to it comes before.
    if !tunnels.ends.has(&peer.key) {
        let end = End { entry: peer.entry, ..end::<P>(id, &tunnel.config) };
        tunnels.insert_end(&peer, end)?;
    }
    if let Some(fib) = engine.get_mut::<Fib>() {
        fib.set_stack_to(id, next_hop, Some(hop));
    }
    tunnel.peers.insert(Some(next_hop), peer);
    Ok(())
}

fn remove_next_hop<P: TunnelProtocol>(
    engine: &mut Engine,
    tunnels: &mut Tunnels<P>,
    tunnel: &mut Tunnel<P>,
    id: InterfaceId,
    next_hop: IpAddr,
) {
    let Some(peer) = tunnel.peers.remove(&Some(next_hop)) else { return };
    let is_own = |end: End| end.interface == id && end.entry == peer.entry;
    if tunnels.table().find(&peer.key).is_some_and(is_own) {
        tunnels.remove_end(&peer);
    }
    if let Some(fib) = engine.get_mut::<Fib>() {
        fib.set_stack_to(id, next_hop, None);
        tunnels.remove_peer(fib, peer);
    }
}

/// Keep the tunnels of a protocol, and follow their interfaces, the TEIB and reports of path MTUs.
pub(in crate::tunnel) fn start<P: TunnelProtocol>(engine: &mut Engine, tunnels: Tunnels<P>) {
    engine.insert(tunnels);
    engine.on_interface_change(|engine, id, change| {
        if change == InterfaceChange::Deleted {
            forget::<P>(engine, id);
            let all = engine.get::<Tunnels<P>>().into_iter().flat_map(Tunnels::iter);
            let by_it =
                all.filter(|(_, tunnel)| tunnel.config.group().map(|(_, by)| by) == Some(id));
            let by_it: Vec<InterfaceId> = by_it.map(|(tunnel, _)| tunnel).collect();
            for tunnel in by_it {
                let _ = set_group_interface::<P>(engine, tunnel, None); // to end is not refused
            }
        }
    });
    if P::FOLLOWS_TEIB {
        Teib::follow(engine, follow_next_hops::<P>);
    }
    for node in P::NODES.errors.into_iter().filter(|_| P::TAKES_ERRORS) {
        engine.on_event(node, |engine: &mut Engine, event: &Event| {
            let now_ns = engine.now_ns();
            if let (Some(report), Some(tunnels)) =
                (PathReport::read(event.bytes()), engine.get_mut::<Tunnels<P>>())
            {
                tunnels.learn(report, now_ns);
            }
        });
    }
    engine.every(SWEEP_NS, |engine| {
        let now_ns = engine.now_ns();
        if let Some(tunnels) = engine.get_mut::<Tunnels<P>>() {
            tunnels.path_mtus.expire(&tunnels.entries, now_ns);
        }
    });
}
