//! `sr-pl-steer-l2`: the policy of the interface that a frame came in by. `sr-pl-rewrite-encaps-l2`: the frame gets
//! an outer IPv6 header with the policy's segments (H.Encaps.L2, H.Encaps.L2.Red: RFC 8986 §5.3, §5.4).

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::epoch::PublishedSlots;
use quiver_core::node::NodeSpec;
use quiver_core::packet::PacketFlags;
use quiver_core::stage::{LookUp, Stage, Tally};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::ip::IpTables;
use quiver_tables::next_hop_group::GroupWord;
use quiver_tables::{CountedLines, GroupId};

use super::Rows;
use super::departure::{About, Departure, Hearer};
use super::reasons::HeadendDrop;
use super::rows::Words;
use super::words;
use crate::carried::{frame_hash, move_offload};
use crate::endpoint::inside::ETHERNET;

/// The nodes.
pub(super) const STEER: &str = "sr-pl-steer-l2";
pub(super) const NODE: &str = "sr-pl-rewrite-encaps-l2";
/// A frame shorter than this has no Ethernet header.
pub(crate) const FRAME_BYTES_MIN: usize = 14;

/// By interface: the group of the policy that its frames are steered into.
pub(super) type Steered = Arc<PublishedSlots<GroupId>>;

/// The flow's hash, kept in the packet.
#[inline(always)]
pub(crate) fn flow(packet: &mut Packet) -> u32 {
    if packet.hash == 0 {
        packet.hash = frame_hash(packet.bytes());
    }
    packet.hash
}

/// `sr-pl-steer-l2`.
pub struct SteerL2 {
    steered: Steered,
    tables: Arc<IpTables>,
    nodes: [NodeId; 2],
}

impl Stage for SteerL2 {
    const NAME: &'static str = STEER;
    const LOOKS_FIRST: bool = true;
    type Reason = HeadendDrop;
    /// The policy's group as it is now.
    type Common = Option<GroupWord>;

    fn common(&self, cx: &Context<'_>, rx: InterfaceId) -> Option<GroupWord> {
        self.steered.read(rx.index(), cx.pass).map(|group| self.tables.groups.word(*group))
    }

    #[inline(always)]
    fn decide(
        &self,
        _: Tally<'_>,
        word: Option<GroupWord>,
        packet: &mut Packet,
    ) -> Result<NodeId, HeadendDrop> {
        let word = word.ok_or(HeadendDrop::NoPolicy)?;
        if packet.segment_length() < FRAME_BYTES_MIN {
            return Err(HeadendDrop::Truncated);
        }
        let hop = match word.is_single() {
            true => word.hop(),
            false => self.tables.groups.choose(word, flow(packet)),
        };
        if !self.nodes.contains(&hop.next) {
            return Err(HeadendDrop::NoPolicy);
        }
        packet.index = hop.index;
        Ok(hop.next)
    }
}

/// `sr-pl-rewrite-encaps-l2`: a look-up, so that the rows of a block of frames are asked for together.
pub struct EncapsL2 {
    departure: Departure,
}

impl EncapsL2 {
    #[cold]
    #[inline(never)]
    fn closer(&self, packet: &mut Packet) -> Result<NodeId, HeadendDrop> {
        let row = self.departure.rows.get(packet.index);
        if row.header_len() == 0 {
            return Err(HeadendDrop::NoPolicy);
        }
        let hash = flow(packet);
        let hop = self.departure.hop(row, hash);
        if Departure::check_length(packet, row)? > self.departure.room(row, hop, hash, None).mtu_bytes {
            return Err(HeadendDrop::FrameTooBig);
        }
        packet.l2_bytes = 0;
        move_offload(packet, row.header_len())?;
        let length = packet.length();
        self.departure.put(row, packet, length, EncapsL2::about(hash))?;
        if self.departure.is_straight(hop) {
            return self.departure.straight(self.departure.adjacency(hop), packet);
        }
        Ok(self.departure.by_node(row, hop, packet, None, Hearer::Headend))
    }

    #[inline(always)]
    fn about(hash: u32) -> About {
        // A frame has no hops: a hop limit that is propagated is that of a packet of the router.
        About { class: 0, hops: 64, hash, protocol: ETHERNET }
    }
}

impl LookUp for EncapsL2 {
    const NAME: &'static str = NODE;
    type Reason = HeadendDrop;
    type Key = u32;
    type Found = u32;
    type Common = ();

    fn common(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn key(&self, (): (), packet: &mut Packet) -> u32 {
        packet.index
    }

    #[inline(always)]
    fn find(&self, _: Variant, (): (), keys: &[u32], _: &mut [u32]) {
        keys.iter().for_each(|row| self.departure.rows.prefetch(*row));
    }

    #[inline(always)]
    fn settle(
        &self,
        _: Tally<'_>,
        (): (),
        row: u32,
        _: u32,
        packet: &mut Packet,
    ) -> Result<NodeId, HeadendDrop> {
        let row = self.departure.rows.get(row);
        let hash = flow(packet);
        let hop = self.departure.hop(row, hash);
        let adjacency = self.departure.adjacency(hop);
        let length = packet.segment_length();
        let plain = packet.has_none(PacketFlags::CHAINED.and(PacketFlags::OFFLOAD))
            & (length + row.header_len() <= adjacency.mtu_bytes.min(Words(row).path_mtu_bytes()).into())
            & self.departure.is_straight(hop)
            & (row.header_len() != 0);
        if !plain {
            return self.closer(packet);
        }
        self.departure.put_straight(row, adjacency, packet, length, EncapsL2::about(hash))
    }
}

/// The declaration of `sr-pl-steer-l2`.
pub(super) fn steer_spec(steered: &Steered) -> NodeSpec {
    let steered = steered.clone();
    NodeSpec::stage("Finds the policy of the interface that frames came in by", move |wiring| SteerL2 {
        steered: steered.clone(),
        tables: wiring.shared(),
        nodes: super::FRAME_NODES.map(|name| wiring.node(name)),
    })
    .describe(|record, names| {
        let from = names.interface(record.rx);
        format!("{} bytes from {from}, to {}", record.packet_bytes, names.node(record.next))
    })
}

/// The declaration of `sr-pl-rewrite-encaps-l2`.
pub(super) fn spec(rows: &Rows, lines: &Arc<CountedLines>) -> NodeSpec {
    let (rows, lines) = (rows.clone(), lines.clone());
    NodeSpec::look_up(
        "Puts an outer IPv6 header with a policy's segments in front of frames",
        move |wiring| EncapsL2 { departure: Departure::new(wiring, &rows, &lines) },
    )
    .detour("ip6-rewrite")
    .describe(words::describe)
}
