//! What the forwarding table says of an address that ARP or neighbour discovery names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_core::{InterfaceId, NodeId};
use quiver_forwarding::fib::{FamilyNodes, FibNodes, LOCAL_ROUTE_INDEX};
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::next_hop_group::Hop;
use quiver_tables::GroupId;

/// Looks addresses up in the table of the interface that received a message about them.
#[derive(Clone)]
pub(crate) struct AddressRoutes {
    tables: IpTables,
    nodes: FibNodes,
}

impl AddressRoutes {
    /// With the tables to look at, and the nodes that their hops name.
    pub fn new(tables: &IpTables, nodes: FibNodes) -> AddressRoutes {
        AddressRoutes { tables: tables.clone(), nodes }
    }

    fn find(&self, on: InterfaceId, address: IpAddr) -> (&FamilyNodes, GroupId) {
        let interfaces = &self.tables.interfaces;
        match address {
            IpAddr::V4(address) => {
                let table = self.tables.ip4.table(interfaces.table4(on));
                (&self.nodes.ip4, table.lookup(address.to_bits()))
            }
            IpAddr::V6(address) => {
                let table = self.tables.ip6.table(interfaces.table6(on));
                (&self.nodes.ip6, table.lookup(address.to_bits()))
            }
        }
    }

    /// Does the route to `address` lead out of another interface than `asked_on`? Who is on the
    /// asker's own link answers itself, and nobody answers for who cannot be reached (RFC 1027
    /// §2.4).
    pub fn leads_elsewhere(&self, asked_on: InterfaceId, address: impl Into<IpAddr>) -> bool {
        let (nodes, group) = self.find(asked_on, address.into());
        let hop = self.tables.groups.resolve(group, 0);
        if to_neighbours(nodes).contains(&hop.next) {
            return self.tables.adjacencies.get(hop.index).tx != asked_on;
        }
        hop.next != nodes.drop
    }

    /// Is `address` a host of `on` by its route: is the route attached there, or the host's own?
    pub fn is_attached4(&self, on: InterfaceId, address: Ipv4Addr) -> bool {
        self.is_attached(on, address.into())
    }

    /// [`is_attached4`](Self::is_attached4) for IPv6.
    pub fn is_attached6(&self, on: InterfaceId, address: Ipv6Addr) -> bool {
        self.is_attached(on, address.into())
    }

    fn is_attached(&self, on: InterfaceId, address: IpAddr) -> bool {
        let (nodes, group) = self.find(on, address);
        let leads = |hop: Hop| {
            if !to_neighbours(nodes).contains(&hop.next) {
                return false;
            }
            let adjacency = self.tables.adjacencies.get(hop.index);
            adjacency.tx == on && (hop.next == nodes.glean || adjacency.next_hop() == address)
        };
        self.tables.groups.each_hop(group).any(leads)
    }

    /// Has the operator or a feature made `address` the router's own by a route? An interface's own
    /// address is another matter: only that interface answers for it.
    pub fn is_local(&self, asked_on: InterfaceId, address: impl Into<IpAddr>) -> bool {
        let (nodes, group) = self.find(asked_on, address.into());
        self.tables.groups.resolve(group, 0) == Hop { next: nodes.local, index: LOCAL_ROUTE_INDEX }
    }
}

fn to_neighbours(nodes: &FamilyNodes) -> [NodeId; 5] {
    [nodes.rewrite, nodes.count, nodes.confirm, nodes.incomplete, nodes.glean]
}
