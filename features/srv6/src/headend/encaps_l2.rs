//! `sr-pl-steer-l2`: the policy of the interface that a frame came in by.
//! `sr-pl-rewrite-encaps-l2`: the frame gets an outer IPv6 header with the policy's segments
//! (H.Encaps.L2, H.Encaps.L2.Red: RFC 8986 §5.3, §5.4).

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, Stage, StageContext};
use quiver_core::memory::epoch::PublishedSlots;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::flow::kept_frame_hash as flow;
use quiver_encap::handover::EncapEntryIndex;
use quiver_encap::{EncapOutput, IcmpRecipient, Inside, output};
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::next_hop_group::GroupWord;
use quiver_forwarding::nodes;
use quiver_tables::{CountedLines, GroupId};

use super::Entries;
use super::description;
use super::path_mtu_of_policy::PolicyPathMtu;
use super::reasons::HeadendDrop;
use super::stack::{SUPER_FRAME_BYTES_MAX, SegmentStack};
use crate::endpoint::inner_packet::ETHERNET;

/// The nodes.
pub(super) const STEER: &str = "sr-pl-steer-l2";
pub(super) const NODE: &str = "sr-pl-rewrite-encaps-l2";
/// A frame shorter than this has no Ethernet header.
pub(crate) const FRAME_BYTES_MIN: usize = 14;

/// By interface: the group of the policy that its frames are steered into.
pub(super) type Steered = Arc<PublishedSlots<GroupId>>;

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
    type InterfaceState = Option<GroupWord>;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> Option<GroupWord> {
        self.steered.read(rx.index(), cx.pass).map(|group| self.tables.groups.word(*group))
    }

    #[inline(always)]
    fn decide(
        &self,
        _: StageContext<'_>,
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
        Ok(hop.route(packet))
    }
}

/// `sr-pl-rewrite-encaps-l2`: a look-up, so that the entries of a block of frames are prefetched
/// together.
pub struct EncapsL2 {
    output: EncapOutput<SegmentStack>,
    way_out: PolicyPathMtu,
}

impl EncapsL2 {
    #[cold]
    #[inline(never)]
    fn slow_path(&self, packet: &mut Packet) -> Result<NodeId, HeadendDrop> {
        let entry = self.output.entries.of(packet);
        if entry.header_len() == 0 {
            return Err(HeadendDrop::NoPolicy);
        }
        let hash = flow(packet);
        let hop = self.output.hop(entry, hash);
        let mtu = self.way_out.mtu(&self.output, entry, hop, hash, None);
        if EncapOutput::<SegmentStack>::check_length(packet, entry)? > mtu.mtu_bytes {
            return Err(HeadendDrop::FrameTooBig);
        }
        packet.l2_bytes = 0;
        let length = packet.length();
        self.output.put(entry, packet, length, EncapsL2::inside(hash))?;
        if self.output.is_resolved(hop) {
            return Ok(output::push_link(self.output.adjacency(hop), packet)?);
        }
        Ok(self.output.by_node(entry, hop, packet, None, IcmpRecipient::Encapsulator))
    }

    #[inline(always)]
    fn inside(hash: u32) -> Inside {
        // A frame has no hops: a hop limit that is propagated is that of a packet of the router.
        Inside {
            traffic_class: 0,
            hop_limit: 64,
            hash,
            protocol: ETHERNET,
            dont_fragment: false,
            key: 0,
        }
    }
}

impl LookUp for EncapsL2 {
    const NAME: &'static str = NODE;
    type Reason = HeadendDrop;
    type Key = u32;
    type Found = u32;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn key(&self, (): (), packet: &mut Packet) -> u32 {
        packet.handed_over::<EncapEntryIndex>().0
    }

    #[inline(always)]
    fn find(&self, _: Variant, (): (), keys: &[u32], _: &mut [u32]) {
        keys.iter().for_each(|entry| self.output.entries.prefetch(*entry));
    }

    #[inline(always)]
    fn resolve(
        &self,
        _: StageContext<'_>,
        (): (),
        entry: u32,
        _: u32,
        packet: &mut Packet,
    ) -> Result<NodeId, HeadendDrop> {
        let entry = self.output.entries.get(entry);
        let hash = flow(packet);
        let link = self.output.link(entry, self.output.hop(entry, hash));
        let is_usual = packet.has_none(PacketFlags::CHAINED.union(PacketFlags::OFFLOAD));
        match link.filter(|link| is_usual & (packet.segment_length() <= link.length_max)) {
            Some(link) => Ok(self.output.put_and_leave(link, packet, EncapsL2::inside(hash))?),
            None => self.slow_path(packet),
        }
    }
}

/// The declaration of `sr-pl-steer-l2`.
pub(super) fn steer_spec(steered: &Steered) -> NodeSpec {
    let steered = steered.clone();
    NodeSpec::stage("Finds the policy of the interface that frames came in by", move |wiring| {
        SteerL2 {
            steered: steered.clone(),
            tables: wiring.shared(),
            nodes: super::FRAME_NODES.map(|name| wiring.node(name)),
        }
    })
    .takes_offloads()
    .describe(|record, names| {
        let from = names.interface(record.rx);
        format!("{} bytes from {from}, to {}", record.packet_bytes, names.node(record.next))
    })
}

/// The declaration of `sr-pl-rewrite-encaps-l2`.
pub(super) fn spec(entries: &Entries, lines: &Arc<CountedLines>) -> NodeSpec {
    let (entries, lines) = (entries.clone(), lines.clone());
    NodeSpec::look_up(
        "Puts an outer IPv6 header with a policy's segments in front of frames",
        move |wiring| EncapsL2 {
            output: EncapOutput::new(wiring, &entries),
            way_out: PolicyPathMtu::new(wiring, &lines),
        },
    )
    .detour(nodes::ip6::REWRITE)
    .takes_offloads_up_to(SUPER_FRAME_BYTES_MAX)
    .describe(description::describe)
}
