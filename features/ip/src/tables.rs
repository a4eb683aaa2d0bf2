//! What workers read: the forwarding tables, and per interface its tables and addresses.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quiver_core::InterfaceId;
use quiver_core::counters::INTERFACES_MAX;
use quiver_core::epoch::{Epochs, Pass, Published};
use quiver_tables::ip4_lpm::Ip4Tables;
use quiver_tables::ip6_lpm::Ip6Tables;
use quiver_tables::{Adjacencies, Groups};
use quiver_wire::ip6::address;
use quiver_wire::{Ip4InterfaceAddress, Ip6InterfaceAddress};

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
    /// What is known of interfaces.
    pub interfaces: Arc<IpInterfaces>,
}

/// Per interface: the small numbers of its tables, and its addresses.
pub struct IpInterfaces {
    table4: Box<[AtomicU32]>,
    table6: Box<[AtomicU32]>,
    link_local: Box<[AtomicU32]>,
    addresses: Published<Vec<Option<Arc<Addresses>>>>,
}

fn column() -> Box<[AtomicU32]> {
    (0..INTERFACES_MAX).map(|_| AtomicU32::new(NOT_ENABLED)).collect()
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
            table4: column(),
            table6: column(),
            link_local: column(),
            addresses: Published::new(epochs, Vec::new()),
        }
    }

    /// The IPv4 table that packets received on `interface` are looked up in; [`NOT_ENABLED`] when it
    /// has no IPv4 address.
    #[inline(always)]
    pub fn table4(&self, interface: InterfaceId) -> u32 {
        table_of(&self.table4, interface)
    }

    /// The IPv6 table that packets received on `interface` are looked up in; [`NOT_ENABLED`] when it
    /// has no IPv6 address.
    #[inline(always)]
    pub fn table6(&self, interface: InterfaceId) -> u32 {
        table_of(&self.table6, interface)
    }

    /// The table of link-local addresses behind `interface`.
    #[inline]
    pub fn link_local_table(&self, interface: InterfaceId) -> u32 {
        self.link_local.get(interface.index()).map_or(NOT_ENABLED, |table| table.load(Ordering::Relaxed))
    }

    /// The addresses of `interface`, if it has any.
    #[inline]
    pub fn addresses<'p>(&self, interface: InterfaceId, pass: Pass<'p>) -> Option<&'p Addresses> {
        self.addresses.read(pass).get(interface.index())?.as_deref()
    }

    /// Set the tables of an interface (control thread).
    pub(crate) fn set_tables(&self, interface: InterfaceId, table4: u32, table6: u32, link_local: u32) {
        let columns = [(&self.table4, table4), (&self.table6, table6), (&self.link_local, link_local)];
        for (column, table) in columns {
            if let Some(place) = column.get(interface.index()) {
                place.store(table, Ordering::Release);
            }
        }
    }

    /// Set the addresses of all interfaces, by number (control thread).
    pub(crate) fn publish(&self, addresses: Vec<Option<Arc<Addresses>>>) {
        self.addresses.publish(addresses);
    }
}

/// The addresses of one interface, in the order in which they were given to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4.
    pub ip4: Vec<Ip4InterfaceAddress>,
    /// IPv6, without the link-local address.
    pub ip6: Vec<Ip6InterfaceAddress>,
    /// The link-local address, when the interface speaks IPv6.
    pub link_local: Option<Ipv6Addr>,
}

impl Addresses {
    /// Is this one of the interface's own?
    pub fn has4(&self, address: Ipv4Addr) -> bool {
        self.ip4.iter().any(|own| own.address() == address)
    }

    /// The own address whose subnet `address` is in.
    pub fn on_link4(&self, address: Ipv4Addr) -> Option<Ip4InterfaceAddress> {
        self.ip4.iter().copied().filter(|own| own.prefix().contains(address)).max_by_key(|own| own.length())
    }

    /// With which address to speak to `to`: one of the same subnet, or else the first.
    pub fn source4(&self, to: Ipv4Addr) -> Option<Ipv4Addr> {
        self.on_link4(to).or(self.ip4.first().copied()).map(|own| own.address())
    }

    /// Is this one of the interface's own?
    pub fn has6(&self, address: Ipv6Addr) -> bool {
        self.link_local == Some(address) || self.ip6.iter().any(|own| own.address() == address)
    }

    /// Is `address` in a subnet of this interface? Link-local ones always are.
    pub fn is_on_link6(&self, address: Ipv6Addr) -> bool {
        (address::is_link_local(address) && self.link_local.is_some())
            || self.ip6.iter().any(|own| own.prefix().contains(address))
    }

    /// With which address to speak to `to` (a simple form of RFC 6724 §5): link-local to link-local,
    /// then one of the same subnet, then the first, then link-local.
    pub fn source6(&self, to: Ipv6Addr) -> Option<Ipv6Addr> {
        if address::is_link_local(to) || address::is_multicast(to) && address::multicast_scope(to) <= 2 {
            return self.link_local;
        }
        let near = self.ip6.iter().filter(|own| own.prefix().contains(to)).max_by_key(|own| own.length());
        near.or(self.ip6.first()).map(|own| own.address()).or(self.link_local)
    }

    /// Does the interface listen to this group of the link: all nodes, all routers, the
    /// solicited-node groups of its addresses (RFC 4291 §2.8)?
    pub fn listens_to(&self, group: Ipv6Addr) -> bool {
        let solicits = |own: Ipv6Addr| address::solicited_node(own) == group;
        self.link_local.is_some() && (group == address::ALL_NODES || group == address::ALL_ROUTERS)
            || self.link_local.is_some_and(solicits)
            || self.ip6.iter().any(|own| solicits(own.address()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> Addresses {
        Addresses {
            ip4: vec!["10.0.0.1/24".parse().unwrap(), "10.0.0.129/25".parse().unwrap()],
            ip6: vec!["2001:db8:1::1/64".parse().unwrap(), "2001:db8:2::1/64".parse().unwrap()],
            link_local: Some("fe80::1".parse().unwrap()),
        }
    }

    #[test]
    fn the_source_is_of_the_longest_subnet_that_the_destination_is_in() {
        let own = addresses();
        assert_eq!(own.source4([10, 0, 0, 200].into()), Some([10, 0, 0, 129].into()));
        assert_eq!(own.source4([10, 0, 0, 20].into()), Some([10, 0, 0, 1].into()));
        assert_eq!(own.source4([192, 0, 2, 1].into()), Some([10, 0, 0, 1].into()));
        assert_eq!(own.source6("2001:db8:2::9".parse().unwrap()), "2001:db8:2::1".parse().ok());
        assert_eq!(own.source6("fe80::9".parse().unwrap()), "fe80::1".parse().ok());
    }

    #[test]
    fn an_interface_listens_to_the_groups_of_its_addresses() {
        let own = addresses();
        for (group, listens) in [("ff02::1", true), ("ff02::1:ff00:1", true), ("ff02::1:ff00:2", false)] {
            assert_eq!(own.listens_to(group.parse().unwrap()), listens, "{group}");
        }
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
