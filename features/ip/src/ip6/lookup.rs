//! `ip6-lookup`: the longest prefix that holds the destination says where the packet goes.

use quiver_core::cpu::Variant;
use quiver_core::node::NodeSpec;
use quiver_core::stage::LookUp;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::next_hop_group::{GroupId, Groups};
use quiver_wire::ip6::Ip6Header;
use quiver_wire::{Header, flow};

use crate::tables::IpTables;

/// `ip6-lookup`: the key is the destination, the answer a next-hop group.
pub struct Ip6Lookup {
    tables: IpTables,
}

impl LookUp for Ip6Lookup {
    const NAME: &'static str = "ip6-lookup";
    type Key = u128;
    type Found = GroupId;
    /// The number of the interface's table.
    type Common = u32;

    fn common(&self, _: &Context<'_>, rx: InterfaceId) -> u32 {
        self.tables.interfaces.table6(rx)
    }

    #[inline(always)]
    fn key(&self, packet: &Packet) -> u128 {
        destination(packet)
    }

    #[inline(always)]
    fn find(&self, variant: Variant, table: u32, keys: &[u128], found: &mut [GroupId]) {
        self.tables.ip6.table(table).lookup_slice(variant, keys, found);
    }

    #[inline(always)]
    fn settle(&self, group: GroupId, packet: &mut Packet) -> NodeId {
        resolve(&self.tables.groups, group, packet)
    }
}

/// The destination as a number; 0 (which no packet from `ip6-input` has) when there is no header.
#[inline(always)]
pub(crate) fn destination(packet: &Packet) -> u128 {
    Ip6Header::overlay(packet.bytes()).map_or(0, Ip6Header::destination_bits)
}

/// What the group found means for this packet: the next node, with the adjacency in
/// [`Packet::index`].
#[inline(always)]
pub(crate) fn resolve(groups: &Groups, group: GroupId, packet: &mut Packet) -> NodeId {
    let word = groups.word(group);
    if word.is_single() {
        let hop = word.hop();
        packet.index = hop.index;
        return hop.next;
    }
    if packet.hash == 0 {
        packet.hash = flow_hash(packet);
    }
    let hop = groups.choose(word, packet.hash);
    packet.index = hop.index;
    hop.next
}

/// The flow's hash: addresses, protocol and ports (none in a fragment).
fn flow_hash(packet: &Packet) -> u32 {
    let Some((header, behind)) = Ip6Header::split(packet.bytes()) else { return 0 };
    flow::hash_ip6(header, behind)
}

/// The declaration.
pub(crate) fn spec(tables: &IpTables) -> NodeSpec {
    let (tables, adjacencies) = (tables.clone(), tables.adjacencies.clone());
    NodeSpec::look_up("Finds the longest matching IPv6 prefix", move |wiring| {
        super::wire_route_targets(wiring);
        Ip6Lookup { tables: tables.clone() }
    })
    .describe(move |record, names| {
        format!("{} → {}", super::words(record.bytes()), crate::way::words(&adjacencies, record, names))
    })
}
