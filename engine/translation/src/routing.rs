//! Where destinations lead: packets are translated when they are routed out of an outside
//! interface.

use std::sync::Arc;

use quiver_core::graph::node::Wiring;
use quiver_core::{InterfaceId, NodeId};
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::nodes;

/// Nodes that routes to further tables lead to, one behind another, that are looked through.
const TABLES_MAX: usize = 4;

/// The routes of IPv4.
pub struct Routing {
    tables: Arc<IpTables>,
    lookup_in_table: NodeId,
    local: NodeId,
    /// Nodes that routes lead to whose hop names no adjacency.
    ends: [NodeId; 3],
}

impl Routing {
    /// For a node that is being built.
    pub fn new(wiring: &Wiring<'_>) -> Routing {
        let ends = [nodes::ip4::LOCAL, nodes::ip4::DROP, nodes::ip4::PUNT];
        Routing {
            tables: wiring.shared(),
            lookup_in_table: wiring.node(nodes::ip4::LOOKUP_IN_TABLE),
            local: wiring.node(nodes::ip4::LOCAL),
            ends: ends.map(|name| wiring.node(name)),
        }
    }

    /// Does the router have this destination itself? `table` is the small number of a table.
    pub fn is_local(&self, table: u32, destination: u32) -> bool {
        let group = self.tables.ip4.table(table).lookup(destination);
        self.tables.groups.resolve(group, 0).next == self.local
    }

    /// Does a destination lead out of an interface for which `is_outside` holds?
    pub fn leads_outside(
        &self,
        mut table: u32,
        destination: u32,
        is_outside: impl Fn(InterfaceId) -> bool,
    ) -> bool {
        for _ in 0..TABLES_MAX {
            let group = self.tables.ip4.table(table).lookup(destination);
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
