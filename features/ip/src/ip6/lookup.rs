//! `ip6-lookup`: the longest prefix that holds the destination says where the packet goes.

use quiver_core::cpu::Variant;
use quiver_core::frame::FRAME_PACKETS_MAX;
use quiver_core::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_tables::next_hop_group::{GroupId, Groups};
use quiver_wire::ip6::Ip6Header;
use quiver_wire::{Header, flow};

use crate::tables::IpTables;

struct Ip6Lookup {
    tables: IpTables,
    /// Kept here, not on the stack: a vector's worth each.
    destinations: Box<[u128; FRAME_PACKETS_MAX]>,
    groups: Box<[GroupId; FRAME_PACKETS_MAX]>,
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

impl Node for Ip6Lookup {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        let (tables, interfaces) = (&self.tables.ip6, &self.tables.interfaces);
        let first = frame.packets().first().map(|p| p.rx);
        let Some(first) = first.filter(|_| frame.is_same_rx()) else {
            let (packets, next) = frame.split_mut();
            for (packet, next) in packets.iter_mut().zip(next) {
                let group = tables.table(interfaces.table6(packet.rx)).lookup(destination(packet));
                *next = resolve(&self.tables.groups, group, packet);
            }
            return;
        };
        let (packets, next) = frame.split_mut();
        let count = packets.len();
        for (packet, place) in packets.iter().zip(self.destinations.iter_mut()) {
            *place = destination(packet);
        }
        let table = tables.table(interfaces.table6(first));
        table.lookup_slice(Variant::best(), &self.destinations[..count], &mut self.groups[..count]);
        for ((packet, next), group) in packets.iter_mut().zip(next).zip(self.groups.iter()) {
            *next = resolve(&self.tables.groups, *group, packet);
        }
    }
}

/// The declaration.
pub(crate) fn spec(tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    let adjacencies = tables.adjacencies.clone();
    NodeSpec::new("ip6-lookup", "Finds the longest matching IPv6 prefix", move |wiring| {
        super::wire_route_targets(wiring);
        Box::new(Ip6Lookup {
            tables: tables.clone(),
            destinations: Box::new([0; FRAME_PACKETS_MAX]),
            groups: Box::new([GroupId(0); FRAME_PACKETS_MAX]),
        })
    })
    .describe(move |record, names| {
        format!("{} → {}", super::words(record.bytes()), crate::way::words(&adjacencies, record, names))
    })
}
