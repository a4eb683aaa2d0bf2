//! DHCP as the control thread holds it: servers by table, options of interfaces, clients.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::jitter::Jitter;
use quiver_core::memory::epoch::Epochs;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib, Path};
use quiver_forwarding::ip::{InterfaceAddresses, IpTables, Listener};
use quiver_wire::dhcp6::ALL_RELAY_AGENTS_AND_SERVERS;
use quiver_wire::ip6::address::is_link_local;

use crate::client::Client;
use crate::clients6::{Clients6, LOOK6_NS};
use crate::input::Tables;
use crate::input6::Interfaces;
use crate::leases6::{GroupAddress, Leases6};
use crate::option82::{InterfaceOptions, Vss};
use crate::outbox::Outbox;
use crate::prefixes::Prefixes;
use crate::relay6::Interface6Options;

/// Servers of one table at most: each gets a copy of every message.
pub const SERVERS_MAX: usize = 16;
/// How often lifetimes, tables and addresses are looked at.
const LOOK_NS: u64 = 1_000_000_000;

/// A server that clients of a table are relayed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its address.
    pub address: IpAddr,
    /// The number of the table in which it is.
    pub table: u32,
    /// What it gets messages from; the address of the receiving interface unless given.
    pub source: Option<IpAddr>,
}

/// What holds for one address family.
pub struct Proxies {
    /// Servers by the number of the table in which their clients are.
    pub servers: BTreeMap<u32, Vec<Server>>,
    /// VPNs by the number of the table.
    pub vss: BTreeMap<u32, Vss>,
    /// What workers see.
    pub enabled: Arc<Tables>,
    published: Vec<u32>,
}

impl Proxies {
    fn new(epochs: &Arc<Epochs>) -> Proxies {
        Proxies {
            servers: BTreeMap::new(),
            vss: BTreeMap::new(),
            enabled: Arc::new(Tables::new(epochs, Vec::new())),
            published: Vec::new(),
        }
    }

    /// Is it a server's address, in this table?
    pub fn is_server(&self, address: IpAddr, table: u32) -> bool {
        let mut all = self.servers.values().flatten();
        all.any(|server| (server.address, server.table) == (address, table))
    }

    /// Let workers know the tables in which clients and servers are.
    fn publish(&mut self, fib: &Fib, family: Family) {
        let rx = self.servers.keys().copied();
        let behind = self.servers.values().flatten().map(|server| server.table);
        let tables: BTreeSet<u32> =
            rx.chain(behind).filter_map(|id| fib.table_index(family, id)).collect();
        let tables: Vec<u32> = tables.into_iter().collect();
        if tables != self.published {
            self.published.clone_from(&tables);
            self.enabled.publish(tables);
        }
    }
}

/// DHCP.
pub struct Dhcp {
    /// Relaying over IPv4.
    pub ip4: Proxies,
    /// Relaying over IPv6.
    pub ip6: Proxies,
    /// What was said of interfaces.
    pub options: BTreeMap<InterfaceId, InterfaceOptions>,
    /// What IPv6 servers are told of interfaces.
    pub options6: BTreeMap<InterfaceId, Interface6Options>,
    /// Delegated prefixes.
    pub prefixes: Prefixes,
    /// Clients of the router.
    pub clients: BTreeMap<InterfaceId, Client>,
    /// DHCPv6 clients of the router.
    pub clients6: Clients6,
    /// The prefix groups of clients of delegated prefixes.
    pub pd_groups: BTreeMap<InterfaceId, String>,
    /// Addresses that are made of delegated prefixes.
    pub group_addresses: BTreeSet<GroupAddress>,
    /// What was made of leases of DHCPv6 clients.
    pub leases6: Leases6,
    /// The interfaces of DHCPv6 clients as workers see them.
    pub enabled6: Arc<Interfaces>,
    pub(crate) published6: Vec<InterfaceId>,
    /// Default routes of leases that are in the tables (small numbers).
    pub(crate) default_routes: BTreeMap<u32, Vec<Path>>,
    /// What is to be sent and counted.
    pub outbox: Outbox,
    pub(crate) jitter: Jitter,
    /// Interfaces that listen to the group of relay agents.
    listening: BTreeSet<InterfaceId>,
}

impl Dhcp {
    pub(crate) fn new(epochs: &Arc<Epochs>) -> Dhcp {
        Dhcp {
            ip4: Proxies::new(epochs),
            ip6: Proxies::new(epochs),
            options: BTreeMap::new(),
            options6: BTreeMap::new(),
            prefixes: Prefixes::default(),
            clients: BTreeMap::new(),
            clients6: Clients6::new(),
            pd_groups: BTreeMap::new(),
            group_addresses: BTreeSet::new(),
            leases6: Leases6::default(),
            enabled6: Arc::new(Interfaces::new(epochs, Vec::new())),
            published6: Vec::new(),
            default_routes: BTreeMap::new(),
            outbox: Outbox::default(),
            jitter: Jitter::random(),
            listening: BTreeSet::new(),
        }
    }

    /// What holds for a family.
    pub fn proxies(&self, family: Family) -> &Proxies {
        match family {
            Family::Ip4 => &self.ip4,
            Family::Ip6 => &self.ip6,
        }
    }

    /// The same, to be changed.
    pub fn proxies_mut(&mut self, family: Family) -> &mut Proxies {
        match family {
            Family::Ip4 => &mut self.ip4,
            Family::Ip6 => &mut self.ip6,
        }
    }

    /// The identifier of an interface's circuit.
    pub fn circuit_id(&self, engine: &Engine, id: InterfaceId) -> String {
        let given = self.options.get(&id).and_then(|options| options.circuit_id.clone());
        given.unwrap_or_else(|| engine.interface_name(id))
    }

    /// The interface of a circuit.
    pub fn circuit(&self, engine: &Engine, circuit_id: &[u8]) -> Option<InterfaceId> {
        let is_it = |options: &InterfaceOptions| {
            options.circuit_id.as_ref().is_some_and(|given| given.as_bytes() == circuit_id)
        };
        let given = self.options.iter().find(|(_, options)| is_it(options)).map(|(id, _)| *id);
        let named = || {
            let id = engine.interface_id(str::from_utf8(circuit_id).ok()?)?;
            let is_named = |options: &InterfaceOptions| options.circuit_id.is_none();
            self.options.get(&id).is_none_or(is_named).then_some(id)
        };
        given.or_else(named)
    }
}

/// Let time pass, and follow interfaces.
pub(crate) fn start(engine: &mut Engine, dhcp: Dhcp) {
    engine.insert(dhcp);
    engine.on_interface_change(follow_interface);
    engine.every(LOOK_NS, |engine| {
        engine.with(|engine, dhcp: &mut Dhcp| {
            dhcp.prefixes.age(engine.now_ns());
            follow(engine, dhcp);
        });
        crate::clients::look(engine);
        crate::clients6::look(engine, true);
    });
    engine.every(LOOK6_NS, |engine| crate::clients6::look(engine, false));
}

/// The numbers of an interface's IPv4 and IPv6 tables.
pub(crate) fn tables_of(engine: &Engine, id: InterfaceId) -> [u32; 2] {
    let calls = engine.get::<InterfaceAddresses>().copied();
    calls.map_or([0; 2], |calls| (calls.tables)(engine, id))
}

/// The addresses of an interface that are used, in the order given; link-local ones last.
pub(crate) fn addresses_of(engine: &Engine, id: InterfaceId) -> Vec<IpAddr> {
    let Some(fib) = engine.get::<Fib>() else { return Vec::new() };
    let used: Vec<IpAddr> = fib.addresses(id).map(|(address, _)| address).collect();
    let calls = engine.get::<InterfaceAddresses>().copied();
    let given = calls.map_or_else(Vec::new, |calls| (calls.of)(engine, id));
    let mut all: Vec<IpAddr> = given.into_iter().map(|(address, _)| address).collect();
    all.retain(|address| used.contains(address));
    let others: Vec<IpAddr> = used.into_iter().filter(|address| !all.contains(address)).collect();
    all.extend(others);
    all
}

/// The first IPv4 address of an interface.
pub(crate) fn own4(engine: &Engine, id: InterfaceId) -> Option<Ipv4Addr> {
    addresses_of(engine, id).into_iter().find_map(|address| match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    })
}

/// The first IPv6 address of an interface, link-local or not.
pub(crate) fn own6(engine: &Engine, id: InterfaceId, link_local: bool) -> Option<Ipv6Addr> {
    addresses_of(engine, id).into_iter().find_map(|address| match address {
        IpAddr::V6(address) if is_link_local(address) == link_local => Some(address),
        _ => None,
    })
}

/// Is an interface up? The engine says so before the FIB does.
pub(crate) fn is_up(engine: &Engine, id: InterfaceId) -> bool {
    engine.interface(id).is_some_and(|interface| interface.row().up)
}

/// The interface that has an address.
pub(crate) fn holder(engine: &Engine, address: IpAddr) -> Option<InterfaceId> {
    let fib = engine.get::<Fib>()?;
    let has = |id| fib.addresses(id).any(|(own, _)| own == address);
    engine.all_interfaces().map(|interface| interface.id).find(|id| has(*id))
}

/// Let workers and routes follow tables, interfaces and lifetimes.
pub(crate) fn follow(engine: &mut Engine, dhcp: &mut Dhcp) {
    if let Some(fib) = engine.get::<Fib>() {
        dhcp.ip4.publish(fib, Family::Ip4);
        dhcp.ip6.publish(fib, Family::Ip6);
    }
    dhcp.prefixes.follow_all(engine);
    listen(engine, dhcp);
}

/// Listen to the group of relay agents where clients are (RFC 8415 §19.1).
fn listen(engine: &Engine, dhcp: &mut Dhcp) {
    if dhcp.ip6.servers.is_empty() && dhcp.listening.is_empty() {
        return;
    }
    let Some(tables) = engine.shared::<IpTables>() else { return };
    let all = engine.all_interfaces().map(|interface| interface.id);
    let is_concerned = |id: &InterfaceId| dhcp.ip6.servers.contains_key(&tables_of(engine, *id)[1]);
    let wanted: BTreeSet<InterfaceId> = all.filter(is_concerned).collect();
    for id in wanted.symmetric_difference(&dhcp.listening) {
        let group = wanted.contains(id).then_some(IpAddr::V6(ALL_RELAY_AGENTS_AND_SERVERS));
        let groups = group.into_iter().collect();
        tables.interfaces.publish_protocol_groups(*id, Listener::RelayAgent, groups);
    }
    dhcp.listening = wanted;
}

fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    crate::clients::follow_interface(engine, id, change);
    crate::clients6::follow_interface(engine, id, change);
    engine.with(|engine, dhcp: &mut Dhcp| {
        if change == InterfaceChange::Deleted {
            dhcp.options.remove(&id);
            dhcp.options6.remove(&id);
            dhcp.prefixes.forget_interface(id);
            if dhcp.listening.remove(&id)
                && let Some(tables) = engine.shared::<IpTables>()
            {
                let none = Vec::new();
                tables.interfaces.publish_protocol_groups(id, Listener::RelayAgent, none);
            }
            dhcp.prefixes.follow(engine);
            return;
        }
        follow(engine, dhcp);
    });
}

/// Relay clients of a table to a server.
pub(crate) fn add_server(
    engine: &mut Engine,
    rx_table: u32,
    server: Server,
) -> Result<(), Refusal> {
    let family = Family::of(server.address);
    engine.with(|engine, dhcp: &mut Dhcp| {
        let servers = dhcp.proxies_mut(family).servers.entry(rx_table).or_default();
        let same = |known: &Server| (known.address, known.table) == (server.address, server.table);
        match servers.iter().position(same) {
            Some(place) => servers[place] = server,
            None if servers.len() >= SERVERS_MAX => {
                return Err(Refusal::new(format!(
                    "clients of table {rx_table} have {SERVERS_MAX} servers already"
                ))
                .remedy("delete one of `show dhcp proxy` first"));
            }
            None => servers.push(server),
        }
        follow(engine, dhcp);
        Ok(())
    })
}

/// Relay clients of a table to a server no more.
pub(crate) fn remove_server(
    engine: &mut Engine,
    rx_table: u32,
    address: IpAddr,
    table: u32,
) -> Result<(), Refusal> {
    let family = Family::of(address);
    engine.with(|engine, dhcp: &mut Dhcp| {
        let all = &mut dhcp.proxies_mut(family).servers;
        let is_it = |server: &Server| (server.address, server.table) == (address, table);
        let servers = all.get_mut(&rx_table).filter(|servers| servers.iter().any(is_it));
        let Some(servers) = servers else {
            return Err(Refusal::new(format!(
                "clients of table {rx_table} have no server {address} in table {table}"
            ))
            .remedy("`show dhcp proxy` and `show dhcpv6 proxy` list what is"));
        };
        servers.retain(|server| !is_it(server));
        if servers.is_empty() {
            all.remove(&rx_table);
        }
        follow(engine, dhcp);
        Ok(())
    })
}
