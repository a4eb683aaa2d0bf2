//! How a packet leaves the headend with its segments in front: straight by the adjacency that leads to the first
//! one, which the FIB has found beforehand, or by the node that the FIB names instead.

use std::net::Ipv6Addr;
use std::sync::Arc;

use quiver_core::node::Wiring;
use quiver_core::packet::PacketFlags;
use quiver_core::{InterfaceId, NodeId, Packet};
use quiver_tables::fib::Family;
use quiver_tables::ip::{IpFamily, IpTables, flow_hash};
use quiver_tables::{Adjacency, CountedLines, FragmentRequest, HeaderRow, Hop, WorkerHeaderRows};
use quiver_wire::{Header, Ip6Header, IpProtocol};

use super::reasons::HeadendDrop;
use super::rows::{SRH_PLACE, Words};
use super::way_out::WayOut;
use crate::carried::flow_label;
use crate::endpoint::segments::NEXT_HEADER_PLACE;

/// The longest payload of an IPv6 packet, in bytes.
const PAYLOAD_BYTES_MAX: usize = u16::MAX as usize;

/// Rows, tables and nodes that the headend's nodes have.
pub(super) struct Departure {
    pub rows: Arc<WorkerHeaderRows>,
    pub tables: Arc<IpTables>,
    rewrite: NodeId,
    /// Nodes whose index is an adjacency, too: a neighbour that is to be confirmed, or asked.
    leaving: [NodeId; 3],
    drop: NodeId,
    look_up: NodeId,
    /// Cuts packets that are longer than the path takes.
    fragment: NodeId,
    way_out: WayOut,
}

/// Who hears when something becomes of a packet that goes on inside of the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hearer {
    /// The headend, which is the source of the outer header, behind the table of the segments.
    Headend,
    /// The packet's sender, behind the interface that it came in by.
    Sender,
}

/// How long packets may be.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// In bytes, with all headers.
    pub mtu_bytes: usize,
    /// Is it the link by which they leave that takes no more, so that the node there cuts what is longer?
    at_way: bool,
}

/// What the outer header says of the inner packet.
#[derive(Clone, Copy)]
pub(super) struct About {
    pub class: u8,
    pub hops: u8,
    pub hash: u32,
    pub protocol: IpProtocol,
}

/// Put a row's header in front of a packet, and before it that of the link by which an adjacency leads straight out.
/// Returns how long the latter is.
#[inline(always)]
pub(super) fn push(
    row: &HeaderRow,
    adjacency: &Adjacency,
    packet: &mut Packet,
) -> Result<usize, HeadendDrop> {
    let (outer, before) = (adjacency.rewrite_field(), adjacency.rewrite_len());
    let done = match row.few_blocks() {
        Some(blocks) => packet.push_two(blocks, row.header_len(), outer, before),
        None => packet.push_blocks(row.blocks(), row.header_len()) && packet.push_block32(outer, before),
    };
    if !done {
        return Err(HeadendDrop::NoHeadroom);
    }
    Ok(before)
}

/// A packet that has all its headers leaves by an adjacency.
#[inline(always)]
pub(super) fn leave(adjacency: &Adjacency, packet: &mut Packet) -> NodeId {
    packet.l2_bytes = 0;
    packet.tx = adjacency.tx;
    adjacency.output
}

/// Bytes of an IPv6 header and of what is behind it at least: an SRH, or a packet without one in front.
const FRONT_BYTES: usize = Ip6Header::LEN + 8;

/// Write what a row's header says of a packet, which is `total` bytes long with it.
#[inline(always)]
fn fill(words: Words<'_>, bytes: &mut [u8], total: usize, about: About) -> Result<(), HeadendDrop> {
    let bytes: &mut [u8; FRONT_BYTES] = bytes.first_chunk_mut().ok_or(HeadendDrop::Truncated)?;
    bytes[if words.has_srh() { SRH_PLACE } else { NEXT_HEADER_PLACE }] = about.protocol.0;
    let header = Ip6Header::overlay_mut(bytes).ok_or(HeadendDrop::Truncated)?;
    header.set_class_and_flow(about.class, flow_label(about.hash));
    header.set_payload_length((total - Ip6Header::LEN) as u16);
    if words.propagates_hop_limit() {
        header.set_hop_limit(about.hops);
    }
    Ok(())
}

impl Departure {
    pub fn new(wiring: &Wiring<'_>, rows: &[Arc<WorkerHeaderRows>], lines: &CountedLines) -> Departure {
        Departure {
            rows: rows[wiring.worker.index() % rows.len()].clone(),
            tables: wiring.shared(),
            rewrite: wiring.node("ip6-rewrite"),
            leaving: ["ip6-confirm-neighbor", "ip6-discover-neighbor", "ip6-adjacency-counter"]
                .map(|name| wiring.node(name)),
            drop: wiring.node("ip6-drop"),
            look_up: wiring.node("ip6-lookup-in-table"),
            fragment: wiring.node("ip6-frag-in-table"),
            way_out: WayOut::new(wiring, lines),
        }
    }

    /// The way to the first segment for a flow.
    #[inline(always)]
    pub fn hop(&self, row: &HeaderRow, hash: u32) -> Hop {
        self.tables.groups.resolve(Words(row).group(), hash)
    }

    /// Ask for the way that the row at `index` names.
    #[inline(always)]
    pub fn prefetch_way(&self, index: u32) {
        self.tables.groups.prefetch(Words(self.rows.get(index)).group());
    }

    /// The same, where nothing but the choice of the way needs the flow's hash.
    #[inline(always)]
    pub fn hop_for<F: IpFamily>(&self, row: &HeaderRow, packet: &mut Packet) -> Hop {
        let groups = &self.tables.groups;
        let word = groups.word(Words(row).group());
        if word.is_single() { word.hop() } else { groups.choose(word, flow_hash::<F>(packet)) }
    }

    /// The adjacency of a hop that leads straight out. Of others it means nothing.
    #[inline(always)]
    pub fn adjacency(&self, hop: Hop) -> &Adjacency {
        self.tables.adjacencies.get(hop.index)
    }

    /// Does the hop lead straight out?
    #[inline(always)]
    pub fn is_straight(&self, hop: Hop) -> bool {
        hop.next == self.rewrite
    }

    /// Does the index of a hop mean an adjacency?
    fn leaves(&self, hop: Hop) -> bool {
        self.is_straight(hop) || self.leaving.contains(&hop.next)
    }

    /// The longest packet with a row's header that may go by this hop, in bytes. `last` is the packet's last segment,
    /// where that is its own.
    pub fn room(&self, row: &HeaderRow, hop: Hop, hash: u32, last: Option<Ipv6Addr>) -> Room {
        let leaves = self.leaves(hop);
        let way = match leaves {
            true => usize::from(self.adjacency(hop).mtu_bytes),
            false => {
                let found = self.way_out.find(&self.tables, row, last, hop, hash, |hop| self.leaves(hop));
                found.map_or(PAYLOAD_BYTES_MAX, |(hop, gone)| {
                    (usize::from(self.adjacency(hop).mtu_bytes) + gone).min(PAYLOAD_BYTES_MAX)
                })
            }
        };
        let path = usize::from(Words(row).path_mtu_bytes());
        Room { mtu_bytes: way.min(path), at_way: leaves && way <= path }
    }

    /// The room that a row leaves in a packet of `mtu_bytes`; refused are packets that would be too long for
    /// their length field.
    pub fn check_length(packet: &Packet, row: &HeaderRow) -> Result<usize, HeadendDrop> {
        let total = packet.length() + row.header_len();
        if total - Ip6Header::LEN > PAYLOAD_BYTES_MAX { Err(HeadendDrop::TooLong) } else { Ok(total) }
    }

    /// Put a row's header in front of a packet of so many bytes, and count it for the row.
    #[inline(always)]
    pub fn put(
        &self,
        row: &HeaderRow,
        packet: &mut Packet,
        length: usize,
        about: About,
    ) -> Result<(), HeadendDrop> {
        if !packet.push_blocks(row.blocks(), row.header_len()) {
            return Err(HeadendDrop::NoHeadroom);
        }
        let total = length + row.header_len();
        fill(Words(row), packet.bytes_mut(), total, about)?;
        packet.l2_bytes = 0;
        row.count(total);
        Ok(())
    }

    /// Put a row's header in front of a packet of so many bytes, count it for the row, and send it out by an
    /// adjacency that leads straight.
    #[inline(always)]
    pub fn put_straight(
        &self,
        row: &HeaderRow,
        adjacency: &Adjacency,
        packet: &mut Packet,
        length: usize,
        about: About,
    ) -> Result<NodeId, HeadendDrop> {
        let before = push(row, adjacency, packet)?;
        let total = length + row.header_len();
        let bytes = packet.bytes_mut().get_mut(before..).ok_or(HeadendDrop::Truncated)?;
        fill(Words(row), bytes, total, about)?;
        row.count(total);
        Ok(leave(adjacency, packet))
    }

    /// Out by an adjacency that leads straight.
    #[inline(always)]
    pub fn straight(&self, adjacency: &Adjacency, packet: &mut Packet) -> Result<NodeId, HeadendDrop> {
        let (field, count) = (adjacency.rewrite_field(), adjacency.rewrite_len());
        let done = match field.last_chunk::<16>() {
            Some(block) if count <= 16 => packet.push_block16(block, count),
            _ => packet.push_block32(field, count),
        };
        if !done {
            return Err(HeadendDrop::NoHeadroom);
        }
        packet.tx = adjacency.tx;
        Ok(adjacency.output)
    }

    /// By the node that the hop names. The router has made the header in front: no hop of it is counted where it
    /// leaves. Where the FIB knows no way for a next hop, the segment is looked up as a destination: it may be the
    /// router's own, or behind another table. `cut` is the room there is for a packet that is longer.
    pub fn by_node(
        &self,
        row: &HeaderRow,
        hop: Hop,
        packet: &mut Packet,
        cut: Option<Room>,
        hearer: Hearer,
    ) -> NodeId {
        let cut = cut.filter(|room| !room.at_way);
        if hearer == Hearer::Headend && (cut.is_some() || !self.leaves(hop)) {
            self.speak(row, packet);
        }
        if let Some(room) = cut {
            let mtu_bytes = u16::try_from(room.mtu_bytes).unwrap_or(u16::MAX);
            packet.index = FragmentRequest { mtu_bytes, table: Words(row).table() }.to_index();
            return self.fragment;
        }
        if self.leaves(hop) {
            packet.set(PacketFlags::OWN);
            packet.index = hop.index;
            return hop.next;
        }
        if hop.next == self.drop {
            packet.index = Words(row).table();
            return self.look_up;
        }
        packet.index = hop.index;
        hop.next
    }

    /// Whoever has to complain about a packet complains to those behind the table of the segments, wherever the packet
    /// inside came from.
    fn speak(&self, row: &HeaderRow, packet: &mut Packet) {
        let (interfaces, table) = (&self.tables.interfaces, Words(row).table());
        if interfaces.table6(packet.rx) != table {
            let speaker = interfaces.speaker(Family::Ip6, table);
            if speaker != InterfaceId::NONE {
                packet.rx = speaker;
            }
        }
    }
}
