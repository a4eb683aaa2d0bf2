//! `ip4-lookup`: the longest prefix that holds the destination says where the packet goes.

use quiver_core::cpu::Variant;
use quiver_core::graph::node::{Never, NodeSpec};
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::GroupId;

use crate::ip::IpTables;
use crate::ip::{Ip4, choose, destination, one_hop, take_hop};

/// `ip4-lookup`: the key is the destination, the answer a next-hop group.
pub struct Ip4Lookup {
    tables: IpTables,
}

impl LookUp for Ip4Lookup {
    const NAME: &'static str = "ip4-lookup";
    type Reason = Never;
    type Key = u32;
    type Found = GroupId;
    /// The number of the interface's table.
    type InterfaceState = u32;

    fn interface_state(&self, _: &Context<'_>, rx: InterfaceId) -> u32 {
        self.tables.interfaces.table4(rx)
    }

    #[inline(always)]
    fn key(&self, _: u32, packet: &mut Packet) -> u32 {
        destination::<Ip4>(packet)
    }

    #[inline(always)]
    fn find(&self, variant: Variant, table: u32, keys: &[u32], found: &mut [GroupId]) {
        self.tables.ip4.table(table).lookup_slice(variant, keys, found);
        self.tables.groups.prefetch_found(found);
    }

    #[inline(always)]
    fn find_uniform(&self, variant: Variant, table: u32, keys: &[u32], found: &mut [GroupId]) {
        self.tables.ip4.table(table).lookup_uniform(variant, keys, found);
        self.tables.groups.prefetch_found(found);
    }

    #[inline(always)]
    fn resolve_all(&self, _: u32, found: &[GroupId], packets: &mut [Packet]) -> Option<NodeId> {
        one_hop(&self.tables.groups, found).map(|hop| take_hop(hop, packets))
    }

    #[inline(always)]
    fn resolve(
        &self,
        _: StageContext<'_>,
        _: u32,
        _: u32,
        group: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, Never> {
        Ok(choose::<Ip4>(&self.tables.groups, group, packet))
    }
}

/// The declaration.
pub fn spec(tables: &IpTables) -> NodeSpec {
    let (tables, adjacencies) = (tables.clone(), tables.adjacencies.clone());
    NodeSpec::look_up("Finds the longest matching IPv4 prefix", move |wiring| {
        crate::ip4::wire_route_targets(wiring);
        Ip4Lookup { tables: tables.clone() }
    })
    .describe(move |record, names| {
        format!(
            "{} → {}",
            crate::ip4::describe(record.bytes()),
            crate::hop_description::describe(&adjacencies, record, names)
        )
    })
}
