//! What workers read: the forwarding tables, and per interface its tables.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use quiver_core::InterfaceId;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::memory::epoch::{Epochs, Pass, PublishedSlots};
use quiver_tables::ip4_lpm::Ip4Tables;
use quiver_tables::ip6_lpm::Ip6Tables;
use quiver_tables::lpm::TABLES_MAX;
use quiver_wire::MacAddress;

use super::{Addresses, NeighbourCounts, UdpPorts};
use crate::fib::Family;
use crate::neighbour::generations::NeighbourGenerations;
use crate::{adjacency::Adjacencies, next_hop_group::Groups};

/// The table of an interface that does not speak the protocol. Every look-up in it misses.
pub const NOT_ENABLED: u32 = u32::MAX;

/// Handles on everything that IP nodes read.
#[derive(Clone)]
pub struct IpTables {
    /// IPv4 prefix match, all tables.
    pub ip4: Arc<Ip4Tables>,
    /// IPv6 prefix match, all tables.
    pub ip6: Arc<Ip6Tables>,
    /// What a prefix leads to.
    pub groups: Arc<Groups>,
    /// What a group leads to.
    pub adjacencies: Arc<Adjacencies>,
    /// How often neighbours were forgotten or replaced.
    pub neighbours: Arc<NeighbourGenerations>,
    /// Messages of ARP and neighbour discovery by interface.
    pub messages: Arc<NeighbourCounts>,
    /// What is known of interfaces.
    pub interfaces: Arc<IpInterfaces>,
    /// Who takes UDP datagrams for the router itself.
    pub udp_ports: Arc<UdpPorts>,
}

/// Per interface: the small numbers of its tables, its addresses, and the groups that were joined.
pub struct IpInterfaces {
    table4: Box<[AtomicU32]>,
    table6: Box<[AtomicU32]>,
    link_local: Box<[AtomicU32]>,
    /// By table of each family: an interface with which the router speaks to those behind it.
    icmp_sources: [Box<[AtomicU32]>; 2],
    addresses: PublishedSlots<Addresses>,
    groups: PublishedSlots<Vec<IpAddr>>,
    /// Groups that protocols of the router itself listen to, by [`Listener`].
    protocol_groups: [PublishedSlots<Vec<IpAddr>>; 2],
    /// Addresses that the router answers for with another MAC address than the interface's.
    virtual_addresses: PublishedSlots<Vec<(IpAddr, MacAddress)>>,
    /// The same by who published them; only the control thread looks.
    virtual_owners: Mutex<VirtualAddresses>,
}

/// A protocol of the router itself that listens to groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// VRRP.
    VirtualRouter = 0,
    /// A DHCP relay agent.
    RelayAgent = 1,
}

/// Addresses with MAC addresses of their own, by interface and owner.
type VirtualAddresses = BTreeMap<(InterfaceId, &'static str), Vec<(IpAddr, MacAddress)>>;

fn column(length: usize) -> Box<[AtomicU32]> {
    (0..length).map(|_| AtomicU32::new(NOT_ENABLED)).collect()
}

/// A packet that the router made itself and that names no interface is looked up in table 0.
#[inline(always)]
fn table_of(column: &[AtomicU32], interface: InterfaceId) -> u32 {
    column.get(interface.index()).map_or(0, |table| table.load(Ordering::Relaxed))
}

impl IpInterfaces {
    /// No interface speaks IP yet.
    pub fn new(epochs: &Arc<Epochs>) -> IpInterfaces {
        IpInterfaces {
            table4: column(INTERFACES_MAX),
            table6: column(INTERFACES_MAX),
            link_local: column(INTERFACES_MAX),
            icmp_sources: [column(TABLES_MAX), column(TABLES_MAX)],
            addresses: PublishedSlots::new(epochs, INTERFACES_MAX),
            groups: PublishedSlots::new(epochs, INTERFACES_MAX),
            protocol_groups: [0; 2].map(|_| PublishedSlots::new(epochs, INTERFACES_MAX)),
            virtual_addresses: PublishedSlots::new(epochs, INTERFACES_MAX),
            virtual_owners: Mutex::default(),
        }
    }

    /// The IPv4 table that packets received on `interface` are looked up in; [`NOT_ENABLED`] when
    /// it has no IPv4 address.
    #[inline(always)]
    pub fn table4(&self, interface: InterfaceId) -> u32 {
        table_of(&self.table4, interface)
    }

    /// The IPv6 table that packets received on `interface` are looked up in; [`NOT_ENABLED`] when
    /// it has no IPv6 address.
    #[inline(always)]
    pub fn table6(&self, interface: InterfaceId) -> u32 {
        table_of(&self.table6, interface)
    }

    /// The table of link-local addresses behind `interface`.
    #[inline]
    pub fn link_local_table(&self, interface: InterfaceId) -> u32 {
        self.link_local
            .get(interface.index())
            .map_or(NOT_ENABLED, |table| table.load(Ordering::Relaxed))
    }

    /// An interface whose addresses the router speaks with to those behind a table (a small
    /// number), when a packet of that table has come in by no interface of it (RFC 1812 §4.3.2.4);
    /// [`InterfaceId::NONE`] when the table has no interface with addresses.
    #[inline]
    pub fn icmp_source(&self, family: Family, table: u32) -> InterfaceId {
        let place = self.icmp_sources[family as usize].get(table as usize);
        place.map_or(InterfaceId::NONE, |icmp_source| {
            InterfaceId(icmp_source.load(Ordering::Relaxed))
        })
    }

    /// Set the interface that speaks for a table (control thread).
    pub fn set_icmp_source(&self, family: Family, table: u32, icmp_source: Option<InterfaceId>) {
        if let Some(place) = self.icmp_sources[family as usize].get(table as usize) {
            place.store(icmp_source.unwrap_or(InterfaceId::NONE).0, Ordering::Relaxed);
        }
    }

    /// The addresses of `interface`, if it has any.
    #[inline]
    pub fn addresses<'p>(&self, interface: InterfaceId, pass: Pass<'p>) -> Option<&'p Addresses> {
        self.addresses.read(interface.index(), pass)
    }

    /// Has somebody in the router joined `group` on `interface`? Groups that an interface listens
    /// to by itself are not meant ([`Addresses::listens_to`]).
    #[inline]
    pub fn joined(&self, interface: InterfaceId, group: IpAddr, pass: Pass<'_>) -> bool {
        let has = |groups: &PublishedSlots<Vec<IpAddr>>| {
            let groups = groups.read(interface.index(), pass);
            groups.is_some_and(|groups| groups.binary_search(&group).is_ok())
        };
        has(&self.groups) || self.protocol_groups.iter().any(has)
    }

    /// The MAC address of a virtual router that has `address` on `interface`, while this router is
    /// the active one.
    #[inline]
    pub fn virtual_mac(
        &self,
        interface: InterfaceId,
        address: IpAddr,
        pass: Pass<'_>,
    ) -> Option<MacAddress> {
        let all = self.virtual_addresses.read(interface.index(), pass)?;
        let place = all.binary_search_by_key(&address, |(address, _)| *address).ok()?;
        Some(all[place].1)
    }

    /// Set the groups that a protocol of the router itself listens to on an interface, in order
    /// (control thread).
    pub fn publish_protocol_groups(
        &self,
        interface: InterfaceId,
        listener: Listener,
        groups: Vec<IpAddr>,
    ) {
        let groups = Some(groups).filter(|groups| !groups.is_empty());
        self.protocol_groups[listener as usize].publish(interface.index(), groups);
    }

    /// Set the addresses of active virtual routers on an interface that `owner` knows (control
    /// thread). Those of other owners stay; of two with one address the first owner's counts, in
    /// the order of their names.
    pub fn publish_virtual(
        &self,
        interface: InterfaceId,
        owner: &'static str,
        all: Vec<(IpAddr, MacAddress)>,
    ) {
        let mut owners = self.virtual_owners.lock().unwrap_or_else(PoisonError::into_inner);
        match all.is_empty() {
            true => owners.remove(&(interface, owner)),
            false => owners.insert((interface, owner), all),
        };
        let of_interface = owners.iter().filter(|((on, _), _)| *on == interface);
        let mut all: Vec<_> = of_interface.flat_map(|(_, all)| all).copied().collect();
        all.sort_by_key(|(address, _)| *address);
        all.dedup_by_key(|(address, _)| *address);
        self.virtual_addresses.publish(interface.index(), Some(all).filter(|all| !all.is_empty()));
    }

    /// Set the groups that were joined on an interface, in order (control thread).
    pub fn publish_groups(&self, interface: InterfaceId, groups: Vec<IpAddr>) {
        self.groups.publish(interface.index(), Some(groups).filter(|groups| !groups.is_empty()));
    }

    /// Set the tables of an interface (control thread).
    pub fn set_tables(&self, interface: InterfaceId, table4: u32, table6: u32, link_local: u32) {
        let columns =
            [(&self.table4, table4), (&self.table6, table6), (&self.link_local, link_local)];
        for (column, table) in columns {
            if let Some(place) = column.get(interface.index()) {
                place.store(table, Ordering::Release);
            }
        }
    }

    /// Set the addresses of an interface (control thread).
    pub fn publish(&self, interface: InterfaceId, addresses: Option<Addresses>) {
        self.addresses.publish(interface.index(), addresses);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_of_virtual_addresses_leave_each_other_alone() {
        let epochs = Epochs::new(1);
        let interfaces = IpInterfaces::new(&epochs);
        let reader = epochs.reader(0);
        let (on, pass) = (InterfaceId(3), reader.pass());
        let (one, two) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let mac = |last| MacAddress([0, 0, 0x5e, 0, 1, last]);
        interfaces.publish_virtual(on, "a", vec![(two, mac(1))]);
        interfaces.publish_virtual(on, "b", vec![(one, mac(2)), (two, mac(2))]);
        assert_eq!(interfaces.virtual_mac(on, one, pass), Some(mac(2)));
        assert_eq!(interfaces.virtual_mac(on, two, pass), Some(mac(1)));
        interfaces.publish_virtual(on, "a", Vec::new());
        assert_eq!(interfaces.virtual_mac(on, two, pass), Some(mac(2)));
    }

    #[test]
    fn an_interface_without_addresses_is_looked_up_in_no_table() {
        let interfaces = IpInterfaces::new(&Epochs::new(1));
        assert_eq!(interfaces.table4(InterfaceId(3)), NOT_ENABLED);
        assert_eq!(interfaces.table4(InterfaceId::NONE), 0);
        interfaces.set_tables(InterfaceId(3), 7, 8, 9);
        assert_eq!((interfaces.table4(InterfaceId(3)), interfaces.table6(InterfaceId(3))), (7, 8));
    }
}
