//! `ip6-lookup`: the longest prefix that holds the destination says where the packet goes.

use quiver_core::cpu::Variant;
use quiver_core::graph::node::{Never, NodeSpec};
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::GroupId;

use crate::ip::IpTables;
use crate::ip::{Ip6, choose, destination, one_hop, take_hop};

/// `ip6-lookup`: the key is the destination, the answer a next-hop group.
pub struct Ip6Lookup {
    tables: IpTables,
}

impl LookUp for Ip6Lookup {
    const NAME: &'static str = "ip6-lookup";
    type Reason = Never;
    type Key = u128;
    type Found = GroupId;
    /// The number of the interface's table.
    type InterfaceState = u32;

    fn interface_state(&self, _: &Context<'_>, rx: InterfaceId) -> u32 {
        self.tables.interfaces.table6(rx)
    }

    #[inline(always)]
    fn key(&self, _: u32, packet: &mut Packet) -> u128 {
        destination::<Ip6>(packet)
    }

    #[inline(always)]
    fn find(&self, variant: Variant, table: u32, keys: &[u128], found: &mut [GroupId]) {
        self.tables.ip6.table(table).lookup_slice(variant, keys, found);
        self.tables.groups.prefetch_found(found);
    }

    #[inline(always)]
    fn find_uniform(&self, variant: Variant, table: u32, keys: &[u128], found: &mut [GroupId]) {
        self.tables.ip6.table(table).lookup_uniform(variant, keys, found);
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
        _: u128,
        group: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, Never> {
        Ok(choose::<Ip6>(&self.tables.groups, group, packet))
    }
}

/// The declaration.
pub fn spec(tables: &IpTables) -> NodeSpec {
    let (tables, adjacencies) = (tables.clone(), tables.adjacencies.clone());
    NodeSpec::look_up("Finds the longest matching IPv6 prefix", move |wiring| {
        crate::ip6::wire_route_targets(wiring);
        Ip6Lookup { tables: tables.clone() }
    })
    .describe(move |record, names| {
        format!(
            "{} → {}",
            crate::ip6::describe(record.bytes()),
            crate::hop_description::describe(&adjacencies, record, names)
        )
    })
}
