//! Where destinations lead: packets are translated when they are routed out of an outside
//! interface.

use std::marker::PhantomData;
use std::sync::Arc;

use quiver_core::graph::node::Wiring;
use quiver_core::{InterfaceId, NodeId};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{Ip4, IpFamily, IpTables};
use quiver_forwarding::nodes;

/// Nodes that routes to further tables lead to, one behind another, that are looked through.
const TABLES_MAX: usize = 4;

/// The routes of a family.
pub struct Routing<F: IpFamily = Ip4> {
    tables: Arc<IpTables>,
    lookup_in_table: NodeId,
    local: NodeId,
    /// Nodes that routes lead to whose hop names no adjacency.
    ends: [NodeId; 3],
    family: PhantomData<fn() -> F>,
}

impl<F: IpFamily> Routing<F> {
    /// For a node that is being built.
    pub fn new(wiring: &Wiring<'_>) -> Routing<F> {
        let (lookup_in_table, ends) = match F::FAMILY {
            Family::Ip4 => (
                nodes::ip4::LOOKUP_IN_TABLE,
                [nodes::ip4::LOCAL, nodes::ip4::DROP, nodes::ip4::PUNT],
            ),
            Family::Ip6 => (
                nodes::ip6::LOOKUP_IN_TABLE,
                [nodes::ip6::LOCAL, nodes::ip6::DROP, nodes::ip6::PUNT],
            ),
        };
        let ends = ends.map(|name| wiring.node(name));
        Routing {
            tables: wiring.shared(),
            lookup_in_table: wiring.node(lookup_in_table),
            local: ends[0],
            ends,
            family: PhantomData,
        }
    }

    /// Does the router have this destination itself? `table` is the small number of a table.
    pub fn is_local(&self, table: u32, destination: F::Address) -> bool {
        let group = F::table(&self.tables, table).lookup(destination);
        self.tables.groups.resolve(group, 0).next == self.local
    }

    /// Does a destination lead out of an interface for which `is_outside` holds?
    pub fn leads_outside(
        &self,
        mut table: u32,
        destination: F::Address,
        is_outside: impl Fn(InterfaceId) -> bool,
    ) -> bool {
        for _ in 0..TABLES_MAX {
            let group = F::table(&self.tables, table).lookup(destination);
            let hop = self.tables.groups.resolve(group, 0);
            if hop.next == self.lookup_in_table {
                table = hop.index;
                continue;
            }
            return self.tables.groups.each_hop(group).any(|hop| {
                !self.ends.contains(&hop.next)
                    && is_outside(self.tables.adjacencies.get(hop.index).tx)
            });
        }
        false
    }
}
