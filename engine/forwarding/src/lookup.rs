//! `ip4-lookup`, `ip6-lookup`: the next hops of the longest prefix that holds the destination.

use std::marker::PhantomData;

use quiver_core::cpu::Variant;
use quiver_core::graph::node::{Never, NodeSpec};
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::GroupId;

use crate::fib::Family;
use crate::ip::{IpFamily, IpTables, choose, destination, one_hop, take_hop};
use crate::nodes;

/// The look-up of one family: the key is the destination, the answer a next-hop group.
struct Lookup<F> {
    tables: IpTables,
    family: PhantomData<fn() -> F>,
}

impl<F: IpFamily> LookUp for Lookup<F> {
    const NAME: &'static str = match F::FAMILY {
        Family::Ip4 => nodes::ip4::LOOKUP,
        Family::Ip6 => nodes::ip6::LOOKUP,
    };
    type Reason = Never;
    type Key = F::Address;
    type Found = GroupId;
    /// The number of the interface's table.
    type InterfaceState = u32;

    fn interface_state(&self, _: &Context<'_>, rx: InterfaceId) -> u32 {
        F::table_of(&self.tables.interfaces, rx)
    }

    #[inline(always)]
    fn key(&self, _: u32, packet: &mut Packet) -> F::Address {
        destination::<F>(packet)
    }

    #[inline(always)]
    fn find(&self, variant: Variant, table: u32, keys: &[F::Address], found: &mut [GroupId]) {
        F::table(&self.tables, table).lookup_slice(variant, keys, found);
        self.tables.groups.prefetch_found(found);
    }

    #[inline(always)]
    fn find_uniform(
        &self,
        variant: Variant,
        table: u32,
        keys: &[F::Address],
        found: &mut [GroupId],
    ) {
        F::table(&self.tables, table).lookup_uniform(variant, keys, found);
        self.tables.groups.prefetch_found(found);
    }

    #[inline(always)]
    fn resolve_all(
        &self,
        _: StageContext<'_>,
        _: u32,
        found: &[GroupId],
        packets: &mut [Packet],
    ) -> Option<NodeId> {
        one_hop(&self.tables.groups, found).map(|hop| take_hop(hop, packets))
    }

    #[inline(always)]
    fn resolve(
        &self,
        _: StageContext<'_>,
        _: u32,
        _: F::Address,
        group: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, Never> {
        Ok(choose::<F>(&self.tables.groups, group, packet))
    }
}

/// The declaration of one of the two.
pub fn spec<F: IpFamily>(tables: &IpTables) -> NodeSpec {
    let (tables, adjacencies) = (tables.clone(), tables.adjacencies.clone());
    let help = match F::FAMILY {
        Family::Ip4 => "Finds the longest matching IPv4 prefix",
        Family::Ip6 => "Finds the longest matching IPv6 prefix",
    };
    NodeSpec::look_up(help, move |wiring| {
        F::wire_route_targets(wiring);
        Lookup::<F> { tables: tables.clone(), family: PhantomData }
    })
    .takes_offloads()
    .describe(move |record, names| {
        let hop = crate::hop_description::describe(&adjacencies, record, names);
        format!("{} → {hop}", F::describe(record.bytes()))
    })
}
