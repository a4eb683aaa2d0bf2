//! Encapsulation output: a packet leaves with its header stack in front, in one step by the
//! adjacency that leads to the outer destination, which the FIB has found beforehand, or by the
//! node that the FIB names instead.

use std::sync::Arc;

use quiver_core::graph::node::Wiring;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{InterfaceId, NodeId, Packet};
use quiver_forwarding::handover::TableIndex;
use quiver_forwarding::ip::{IpFamily, IpTables, flow_hash};
use quiver_forwarding::{adjacency::Adjacency, next_hop_group::Hop, requests::FragmentRequest};

use crate::entries::{BLOCK_BYTES, EncapEntry, WorkerEncapEntries};
use crate::entry::EntryView;
use crate::inner::Truncated;
use crate::outer::{HeaderStack, Inside, OuterHeader};

/// Why a packet cannot be encapsulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncapError {
    /// Shorter than its headers.
    Truncated,
    /// Too many headers in front already.
    NoHeadroom,
    /// Longer than the outer length field can say.
    TooLong,
}

impl From<Truncated> for EncapError {
    fn from(Truncated: Truncated) -> EncapError {
        EncapError::Truncated
    }
}

/// Who receives ICMP errors about a packet on its way through the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpRecipient {
    /// This router, which is the source of the outer header, behind the table of the outer
    /// destination.
    Encapsulator,
    /// The packet's sender, behind the interface that it came in by.
    Sender,
}

/// The longest packet that may leave.
#[derive(Clone, Copy, Debug)]
pub struct Mtu {
    /// In bytes, with all headers but that of the link.
    pub mtu_bytes: usize,
    /// Is it the MTU of the link by which the packet leaves, so that the node there fragments?
    at_link: bool,
}

/// The headers of packets that leave in one step: an entry's header stack, and the link header of a
/// resolved hop of its underlay.
#[derive(Clone, Copy)]
pub struct EncapLink<'a> {
    /// The entry.
    pub entry: &'a EncapEntry,
    /// The adjacency of the underlay's hop.
    pub adjacency: &'a Adjacency,
    /// The longest inner packet, in bytes.
    pub length_max: usize,
}

/// Entries, tables and nodes of a node that encapsulates with stacks of one kind.
pub struct EncapOutput<S> {
    /// This worker's entries.
    pub entries: Arc<WorkerEncapEntries>,
    /// Forwarding tables.
    pub tables: Arc<IpTables>,
    rewrite: NodeId,
    adjacency_nodes: [NodeId; 3],
    drop: NodeId,
    look_up: NodeId,
    fragment: Option<NodeId>,
    stack: std::marker::PhantomData<S>,
}

/// As [`push_stack`] for a kind of stack that may be as short as an IPv4 header.
#[inline(always)]
fn push_short_stack(
    entry: &EncapEntry,
    adjacency: &Adjacency,
    packet: &mut Packet,
) -> Result<usize, EncapError> {
    let Some(block) = entry.one_block() else { return push_stack(entry, adjacency, packet) };
    let (link, link_len) = (adjacency.rewrite_field(), adjacency.rewrite_len());
    match packet.push_two(block, entry.header_len(), link, link_len) {
        true => Ok(link_len),
        false => Err(EncapError::NoHeadroom),
    }
}

/// Put an entry's header stack in front of a packet, and before it the link header of a resolved
/// adjacency. Returns the length of the latter.
///
/// # Errors
/// The buffer has no headroom for the headers.
#[inline(always)]
pub fn push_stack(
    entry: &EncapEntry,
    adjacency: &Adjacency,
    packet: &mut Packet,
) -> Result<usize, EncapError> {
    let (link, link_len) = (adjacency.rewrite_field(), adjacency.rewrite_len());
    let done = match entry.few_blocks() {
        Some(blocks) => packet.push_two(blocks, entry.header_len(), link, link_len),
        None => {
            packet.push_blocks(entry.blocks(), entry.header_len())
                && packet.push_block32(link, link_len)
        }
    };
    if done { Ok(link_len) } else { Err(EncapError::NoHeadroom) }
}

/// Put the link header of a resolved adjacency in front of a packet; returns the node by which it
/// leaves.
///
/// # Errors
/// The buffer has no headroom for the header.
#[inline(always)]
pub fn push_link(adjacency: &Adjacency, packet: &mut Packet) -> Result<NodeId, EncapError> {
    let (field, count) = (adjacency.rewrite_field(), adjacency.rewrite_len());
    let done = match field.last_chunk::<16>() {
        Some(block) if count <= 16 => packet.push_block16(block, count),
        _ => packet.push_block32(field, count),
    };
    if !done {
        return Err(EncapError::NoHeadroom);
    }
    packet.tx = adjacency.tx;
    Ok(adjacency.output)
}

/// The node by which a packet that has all its headers leaves.
#[inline(always)]
pub fn leave(adjacency: &Adjacency, packet: &mut Packet) -> NodeId {
    packet.l2_bytes = 0;
    packet.tx = adjacency.tx;
    adjacency.output
}

impl<S: HeaderStack> EncapOutput<S> {
    /// For one worker, whose entries are among these.
    pub fn new(wiring: &Wiring<'_>, entries: &[Arc<WorkerEncapEntries>]) -> EncapOutput<S> {
        EncapOutput {
            entries: entries[wiring.worker.index() % entries.len()].clone(),
            tables: wiring.shared(),
            rewrite: wiring.node(S::Outer::REWRITE),
            adjacency_nodes: S::Outer::ADJACENCY_NODES.map(|name| wiring.node(name)),
            drop: wiring.node(S::Outer::DROP),
            look_up: wiring.node(S::Outer::LOOK_UP),
            fragment: S::Outer::FRAGMENT.map(|name| wiring.node(name)),
            stack: std::marker::PhantomData,
        }
    }

    /// The underlay's hop for a flow.
    #[inline(always)]
    pub fn hop(&self, entry: &EncapEntry, hash: u32) -> Hop {
        self.tables.groups.resolve(EntryView(entry).underlay(), hash)
    }

    /// Prefetch the underlay's next-hop group of the entry that a packet's route has handed over.
    #[inline(always)]
    pub fn prefetch_underlay(&self, packet: &Packet) {
        self.tables.groups.prefetch(EntryView(self.entries.of(packet)).underlay());
    }

    /// As [`hop`](Self::hop), where only the choice among several hops needs the flow's hash.
    #[inline(always)]
    pub fn hop_for<F: IpFamily>(&self, entry: &EncapEntry, packet: &mut Packet) -> Hop {
        let groups = &self.tables.groups;
        let word = groups.word(EntryView(entry).underlay());
        if word.is_single() { word.hop() } else { groups.choose(word, flow_hash::<F>(packet)) }
    }

    /// The hop of all flows, where there is one.
    #[inline(always)]
    pub fn only_hop(&self, entry: &EncapEntry) -> Option<Hop> {
        let word = self.tables.groups.word(EntryView(entry).underlay());
        word.is_single().then(|| word.hop())
    }

    /// The adjacency of a resolved hop. Of others it means nothing.
    #[inline(always)]
    pub fn adjacency(&self, hop: Hop) -> &Adjacency {
        self.tables.adjacencies.get(hop.index)
    }

    /// Does the hop lead to a neighbour whose link header is known?
    #[inline(always)]
    pub fn is_resolved(&self, hop: Hop) -> bool {
        hop.next == self.rewrite
    }

    /// Is the index of a hop an adjacency?
    pub fn has_adjacency(&self, hop: Hop) -> bool {
        self.is_resolved(hop) || self.adjacency_nodes.contains(&hop.next)
    }

    /// The headers of packets that leave by a hop in one step; `None` where they cannot.
    #[inline(always)]
    pub fn link<'a>(&'a self, entry: &'a EncapEntry, hop: Hop) -> Option<EncapLink<'a>> {
        let (adjacency, header_len) = (self.adjacency(hop), entry.header_len());
        let outer_max = usize::from(adjacency.mtu_bytes.min(EntryView(entry).path_mtu_bytes()));
        // No packet has no bytes, so a stack that is longer than the MTU fits none.
        let length_max = outer_max.saturating_sub(header_len);
        let is_ready = self.is_resolved(hop) & (header_len != 0);
        is_ready.then_some(EncapLink { entry, adjacency, length_max })
    }

    /// The longest packet with an entry's stack that may go by this hop. `beyond` follows a hop
    /// that goes on inside of the router to the hop by which the packet leaves, and says how many
    /// bytes shorter it is there.
    pub fn mtu(
        &self,
        entry: &EncapEntry,
        hop: Hop,
        beyond: impl FnOnce() -> Option<(Hop, usize)>,
    ) -> Mtu {
        let max = S::Outer::PACKET_BYTES_MAX.min(usize::from(u16::MAX));
        let has_adjacency = self.has_adjacency(hop);
        let link = match has_adjacency {
            true => usize::from(self.adjacency(hop).mtu_bytes),
            false => beyond().map_or(max, |(hop, removed)| {
                (usize::from(self.adjacency(hop).mtu_bytes) + removed).min(max)
            }),
        };
        let path = usize::from(EntryView(entry).path_mtu_bytes());
        Mtu { mtu_bytes: link.min(path), at_link: has_adjacency && link <= path }
    }

    /// The length of a packet with an entry's stack, as it leaves: that of the longest segment of a
    /// super-frame.
    ///
    /// # Errors
    /// The packet would be longer than the outer header can say.
    pub fn check_length(packet: &Packet, entry: &EncapEntry) -> Result<usize, EncapError> {
        if packet.length() + entry.header_len() > S::Outer::PACKET_BYTES_MAX {
            return Err(EncapError::TooLong);
        }
        Ok(packet.longest_on_wire() + entry.header_len())
    }

    /// Put an entry's stack in front of a packet of `length` bytes, and count it for the entry.
    ///
    /// # Errors
    /// The buffer has no headroom for the stack.
    #[inline(always)]
    pub fn put(
        &self,
        entry: &EncapEntry,
        packet: &mut Packet,
        length: usize,
        inside: Inside,
    ) -> Result<(), EncapError> {
        if !packet.push_blocks(entry.blocks(), entry.header_len()) {
            return Err(EncapError::NoHeadroom);
        }
        let total = length + entry.header_len();
        S::fill(EntryView(entry), packet.bytes_mut(), total, inside)?;
        S::finish(EntryView(entry), packet, 0)?;
        packet.l2_bytes = 0;
        packet.note_encapsulated();
        let (packets, bytes) = packet.on_wire();
        entry.count_all(packets, bytes);
        Ok(())
    }

    /// As [`put`](Self::put), and out by a resolved adjacency, with all headers in one step.
    ///
    /// # Errors
    /// As for [`put`](Self::put).
    #[inline(always)]
    pub fn put_and_leave(
        &self,
        EncapLink { entry, adjacency, .. }: EncapLink<'_>,
        packet: &mut Packet,
        inside: Inside,
    ) -> Result<NodeId, EncapError> {
        let length = packet.segment_length();
        let before = match S::Outer::LEN < BLOCK_BYTES {
            true => push_short_stack(entry, adjacency, packet)?,
            false => push_stack(entry, adjacency, packet)?,
        };
        let total = length + entry.header_len();
        let bytes = packet.bytes_mut().get_mut(before..).ok_or(EncapError::Truncated)?;
        S::fill(EntryView(entry), bytes, total, inside)?;
        S::finish(EntryView(entry), packet, before)?;
        entry.count(total);
        Ok(leave(adjacency, packet))
    }

    /// The node that the hop names. The router has made the header in front: no hop of it is
    /// counted where it leaves. Where the FIB knows no way for a next hop, the outer destination is
    /// looked up as any other: it may be the router's own, or behind another table. `too_long_for`
    /// is the MTU of a packet that is longer.
    pub fn by_node(
        &self,
        entry: &EncapEntry,
        hop: Hop,
        packet: &mut Packet,
        too_long_for: Option<Mtu>,
        recipient: IcmpRecipient,
    ) -> NodeId {
        let cut = too_long_for.filter(|mtu| !mtu.at_link).zip(self.fragment);
        if recipient == IcmpRecipient::Encapsulator && (cut.is_some() || !self.has_adjacency(hop)) {
            self.answer_by_underlay(entry, packet);
        }
        if let Some((mtu, fragment)) = cut {
            let mtu_bytes = u16::try_from(mtu.mtu_bytes).unwrap_or(u16::MAX);
            packet.hand_over(FragmentRequest { mtu_bytes, table: EntryView(entry).table() });
            return fragment;
        }
        if self.has_adjacency(hop) {
            packet.set(PacketFlags::LOCALLY_ORIGINATED);
            return hop.route(packet);
        }
        if hop.next == self.drop {
            packet.hand_over(TableIndex(EntryView(entry).table()));
            return self.look_up;
        }
        hop.route(packet)
    }

    /// ICMP errors about the packet are for those behind the table of the outer destination,
    /// wherever the inner packet came from.
    fn answer_by_underlay(&self, entry: &EncapEntry, packet: &mut Packet) {
        let (interfaces, table) = (&self.tables.interfaces, EntryView(entry).table());
        if S::Outer::table_of(interfaces, packet.rx) != table {
            let icmp_source = interfaces.icmp_source(S::Outer::FAMILY, table);
            if icmp_source != InterfaceId::NONE {
                packet.rx = icmp_source;
            }
        }
    }
}
