//! Which path of a next-hop group a packet takes.

use quiver_core::memory::packet::PacketFlags;
use quiver_core::{NodeId, Packet};
use quiver_tables::GroupId;
use quiver_wire::flow::{self, FlowFields};
use quiver_wire::upper::Upper;

use super::family::IpFamily;
use crate::next_hop_group::{Groups, Hop};

/// The destination as a number; 0 (which no packet has that was checked) when there is no header.
#[inline(always)]
pub fn destination<F: IpFamily>(packet: &Packet) -> F::Address {
    F::destination(packet.bytes()).unwrap_or_default()
}

/// What the group found means for this packet: the next node, with the adjacency in
/// the packet's index.
#[inline(always)]
pub fn choose<F: IpFamily>(groups: &Groups, group: GroupId, packet: &mut Packet) -> NodeId {
    let word = groups.word(group);
    let hop = if word.is_single() {
        word.hop()
    } else {
        let fields = word.flow_fields();
        let hash = match fields.is_default() {
            true => kept_hash::<F>(packet),
            false => hash_by::<F>(groups, fields, packet),
        };
        groups.choose(word, hash)
    };
    hop.route(packet)
}

/// The hop of all packets for which these groups were found, if they are one group of one path.
#[inline(always)]
pub fn one_hop(groups: &Groups, found: &[GroupId]) -> Option<Hop> {
    let first = *found.first()?;
    let mut differ = 0;
    for group in found {
        differ |= group.0 ^ first.0;
    }
    let word = groups.word(first);
    (differ == 0 && word.is_single()).then(|| word.hop())
}

/// As [`choose`] for packets that all take one hop.
#[inline(always)]
pub fn take_hop(hop: Hop, packets: &mut [Packet]) -> NodeId {
    for packet in packets {
        hop.route(packet);
    }
    hop.next
}

/// As [`flow_hash`], where it is seldom needed.
#[inline(never)]
fn kept_hash<F: IpFamily>(packet: &mut Packet) -> u32 {
    flow_hash::<F>(packet)
}

/// The hash of the packet's flow, computed once and kept in [`Packet::hash`].
#[inline(always)]
pub fn flow_hash<F: IpFamily>(packet: &mut Packet) -> u32 {
    if packet.hash == 0 {
        packet.hash = hash::<F>(packet);
    }
    packet.hash
}

/// The flow's hash: addresses, protocol and ports. A fragment has no ports, unless they are noted
/// beside it.
#[inline(always)]
fn hash<F: IpFamily>(packet: &Packet) -> u32 {
    let hash = match packet.has(PacketFlags::NOTED) {
        true => hash_noted::<F>(packet),
        false => F::flow_hash(packet.bytes()),
    };
    hash.unwrap_or(0)
}

#[cold]
#[inline(never)]
fn hash_noted<F: IpFamily>(packet: &Packet) -> Option<u32> {
    let upper = noted(packet)?;
    F::flow_hash_of(FlowFields::DEFAULT, packet.bytes(), &upper)
}

/// What virtual reassembly has noted of a fragment.
#[inline(always)]
pub fn noted(packet: &Packet) -> Option<Upper> {
    packet.note().map(Upper::from_note)
}

/// The hash of a table's own choice, with the router's seed. It is not kept in the packet: another
/// table's may differ.
#[inline(never)]
fn hash_by<F: IpFamily>(groups: &Groups, fields: FlowFields, packet: &mut Packet) -> u32 {
    let chosen = fields.unseeded();
    let hash = match noted(packet) {
        _ if chosen.is_default() => flow_hash::<F>(packet),
        Some(upper) => F::flow_hash_of(chosen, packet.bytes(), &upper).unwrap_or(0),
        None => F::flow_hash_by(chosen, packet.bytes()).unwrap_or(0),
    };
    if fields.has(FlowFields::SEEDED) { flow::with_seed(hash, groups.seed()) } else { hash }
}
