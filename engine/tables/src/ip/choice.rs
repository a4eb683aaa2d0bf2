//! Which path of a next-hop group a packet takes.

use quiver_core::{NodeId, Packet};
use quiver_wire::flow::{self, FlowFields};
use quiver_wire::upper::Upper;
use quiver_wire::{Header, Ip4Header, Ip6Header};

use crate::next_hop_group::{GroupId, GroupWord, Groups};

/// The destination as a number; 0 (which no packet from `ip4-input` has) when there is no header.
#[inline(always)]
pub fn destination4(packet: &Packet) -> u32 {
    Ip4Header::overlay(packet.bytes()).map_or(0, Ip4Header::destination_bits)
}

/// The destination as a number; 0 (which no packet from `ip6-input` has) when there is no header.
#[inline(always)]
pub fn destination6(packet: &Packet) -> u128 {
    Ip6Header::overlay(packet.bytes()).map_or(0, Ip6Header::destination_bits)
}

/// What the group found means for this IPv4 packet: the next node, with the adjacency in
/// [`Packet::index`].
#[inline(always)]
pub fn choose4(groups: &Groups, group: GroupId, packet: &mut Packet) -> NodeId {
    let word = groups.word(group);
    if word.is_single() {
        let hop = word.hop();
        packet.index = hop.index;
        return hop.next;
    }
    let fields = word.flow_fields();
    let hash = if fields.is_default() {
        if packet.hash == 0 {
            packet.hash = hash4(packet);
        }
        packet.hash
    } else {
        hash4_by(fields, packet)
    };
    go(groups, word, hash, packet)
}

/// What the group found means for this IPv6 packet: the next node, with the adjacency in
/// [`Packet::index`].
#[inline(always)]
pub fn choose6(groups: &Groups, group: GroupId, packet: &mut Packet) -> NodeId {
    let word = groups.word(group);
    if word.is_single() {
        let hop = word.hop();
        packet.index = hop.index;
        return hop.next;
    }
    let fields = word.flow_fields();
    let hash = if fields.is_default() {
        if packet.hash == 0 {
            packet.hash = hash6(packet);
        }
        packet.hash
    } else {
        hash6_by(fields, packet)
    };
    go(groups, word, hash, packet)
}

#[inline(always)]
fn go(groups: &Groups, word: GroupWord, hash: u32, packet: &mut Packet) -> NodeId {
    let hop = groups.choose(word, hash);
    packet.index = hop.index;
    hop.next
}

/// The flow's hash: addresses, protocol and ports. A fragment has no ports, unless they are noted beside it.
fn hash4(packet: &Packet) -> u32 {
    let Some((header, behind)) = Ip4Header::split(packet.bytes()) else { return 0 };
    match noted(packet) {
        Some(upper) => flow::hash_ip4_of(FlowFields::DEFAULT, header, &upper),
        None => flow::hash_ip4(header, behind),
    }
}

fn hash6(packet: &Packet) -> u32 {
    let Some((header, behind)) = Ip6Header::split(packet.bytes()) else { return 0 };
    match noted(packet) {
        Some(upper) => flow::hash_ip6_of(FlowFields::DEFAULT, header, &upper),
        None => flow::hash_ip6(header, behind),
    }
}

/// What virtual reassembly has noted of a fragment.
#[inline(always)]
pub fn noted(packet: &Packet) -> Option<Upper> {
    packet.note().map(Upper::from_note)
}

/// The hash of a table's own choice. It is not kept in the packet: another table's may differ.
#[inline(never)]
fn hash4_by(fields: FlowFields, packet: &Packet) -> u32 {
    let Some((header, behind)) = Ip4Header::split(packet.bytes()) else { return 0 };
    match noted(packet) {
        Some(upper) => flow::hash_ip4_of(fields, header, &upper),
        None => flow::hash_ip4_by(fields, header, behind),
    }
}

#[inline(never)]
fn hash6_by(fields: FlowFields, packet: &Packet) -> u32 {
    let Some((header, behind)) = Ip6Header::split(packet.bytes()) else { return 0 };
    match noted(packet) {
        Some(upper) => flow::hash_ip6_of(fields, header, &upper),
        None => flow::hash_ip6_by(fields, header, behind),
    }
}
