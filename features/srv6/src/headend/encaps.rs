//! `sr-pl-rewrite-encaps`, `sr-pl-rewrite-encaps-v4`: an IPv6 or IPv4 packet gets an outer IPv6
//! header with the policy's segments (H.Encaps, H.Encaps.Red: RFC 8986 §5.1, §5.2).

use std::sync::Arc;

use quiver_core::graph::frame::next_or_drop;
use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::{
    EncapLink, EncapOutput, IcmpRecipient, InnerFields, InnerPacket, Inside, output,
};
use quiver_forwarding::ip::{Ip4, Ip6, flow_hash};
use quiver_forwarding::nodes;
use quiver_tables::CountedLines;

use super::Entries;
use super::description;
use super::path_mtu_of_policy::PolicyPathMtu;
use super::reasons::HeadendDrop;
use super::stack::{SUPER_FRAME_BYTES_MAX, SegmentStack};

/// IPv4 or IPv6 inside.
pub trait Encapsulated: InnerPacket {
    /// The node that encapsulates it.
    const NODE: &'static str;
}

impl Encapsulated for Ip6 {
    const NODE: &'static str = "sr-pl-rewrite-encaps";
}

impl Encapsulated for Ip4 {
    const NODE: &'static str = "sr-pl-rewrite-encaps-v4";
}

/// The node for packets of a family. The number of the list's entry is in the packet's index.
pub struct Encaps<F> {
    output: EncapOutput<SegmentStack>,
    way_out: PolicyPathMtu,
    error: NodeId,
    family: std::marker::PhantomData<F>,
}

/// What of the inner packet has been done before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Hop {
    /// It may be dead, and one is counted.
    ToCount,
    /// It was counted by what led here.
    Counted,
}

impl<F: Encapsulated> Encaps<F> {
    pub(super) fn new(wiring: &Wiring<'_>, entries: &Entries, lines: &CountedLines) -> Encaps<F> {
        Encaps {
            output: EncapOutput::new(wiring, entries),
            way_out: PolicyPathMtu::new(wiring, lines),
            error: wiring.node(F::ERROR_NODE),
            family: std::marker::PhantomData,
        }
    }

    /// What is unusual about a packet, step by step; `before` changes it once it is sure to go on.
    #[cold]
    #[inline(never)]
    pub(super) fn slow_path(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
        hop_of: Hop,
        before: impl FnOnce(&mut Packet),
    ) -> Result<NodeId, HeadendDrop> {
        let entry = self.output.entries.of(packet);
        if entry.header_len() == 0 {
            return Err(HeadendDrop::NoPolicy);
        }
        let own = packet.has(PacketFlags::LOCALLY_ORIGINATED);
        let counts = hop_of == Hop::ToCount && !own;
        if counts && let Some((request, why)) = F::refusal(packet.bytes())? {
            context.count(HeadendDrop::from(why), 1);
            packet.hand_over(request);
            return Ok(self.error);
        }
        let hash = flow_hash::<F>(packet);
        let hop = self.output.hop(entry, hash);
        let total = EncapOutput::<SegmentStack>::check_length(packet, entry)?;
        let mtu = self.way_out.mtu(&self.output, entry, hop, hash, None);
        let fits = total <= mtu.mtu_bytes;
        if !fits && !own {
            if let Some(request) =
                F::too_big(packet, mtu.mtu_bytes.saturating_sub(entry.header_len()))
            {
                context.count(HeadendDrop::TooBig, 1);
                packet.hand_over(request);
                return Ok(self.error);
            }
            context.count(HeadendDrop::Fragmented, 1);
        }
        before(packet);
        if counts {
            F::decrement_hop_limit(packet.bytes_mut());
        }
        let InnerFields { traffic_class, hop_limit, .. } =
            F::fields(packet.bytes()).ok_or(HeadendDrop::Truncated)?;
        let length = packet.length();
        let inside = Inside {
            traffic_class,
            hop_limit,
            hash,
            protocol: F::PROTOCOL,
            dont_fragment: false,
            key: 0,
        };
        self.output.put(entry, packet, length, inside)?;
        if fits && self.output.is_resolved(hop) {
            return Ok(output::push_link(self.output.adjacency(hop), packet)?);
        }
        let too_long_for = (!fits).then_some(mtu);
        Ok(self.output.by_node(entry, hop, packet, too_long_for, IcmpRecipient::Encapsulator))
    }

    /// Around a packet about which nothing is unusual, and out; with others happens what
    /// `otherwise` says. `step` says whether it may go, counts its hop, and tells the traffic class
    /// and the hops left.
    #[inline(always)]
    pub(super) fn put(
        &self,
        packet: &mut Packet,
        step: impl FnOnce(&mut Packet) -> Option<(u8, u8)>,
        otherwise: impl FnOnce(&mut Packet) -> Result<NodeId, HeadendDrop>,
    ) -> Result<NodeId, HeadendDrop> {
        let entry = self.output.entries.of(packet);
        let hop = self.output.hop(entry, flow_hash::<F>(packet));
        let sent = self.output.link(entry, hop).and_then(|link| self.send(link, packet, step));
        sent.unwrap_or_else(|| otherwise(packet))
    }

    /// Send a packet in one step; `None`, and nothing changes, where something is unusual about it.
    #[inline(always)]
    fn send(
        &self,
        link: EncapLink<'_>,
        packet: &mut Packet,
        step: impl FnOnce(&mut Packet) -> Option<(u8, u8)>,
    ) -> Option<Result<NodeId, HeadendDrop>> {
        let unusual =
            PacketFlags::LOCALLY_ORIGINATED.union(PacketFlags::CHAINED).union(PacketFlags::OFFLOAD);
        if !(packet.has_none(unusual) & (packet.segment_length() <= link.length_max)) {
            return None;
        }
        let hash = flow_hash::<F>(packet);
        let (traffic_class, hop_limit) = step(packet)?;
        let inside = Inside {
            traffic_class,
            hop_limit,
            hash,
            protocol: F::PROTOCOL,
            dont_fragment: false,
            key: 0,
        };
        Some(self.output.put_and_leave(link, packet, inside).map_err(HeadendDrop::from))
    }
}

impl<F: Encapsulated> Stage for Encaps<F> {
    const NAME: &'static str = F::NODE;
    const SENDS: bool = true;
    type Reason = HeadendDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn ahead(&self, packet: &Packet) {
        self.output.entries.prefetch_of(packet);
    }

    #[inline(always)]
    fn soon(&self, _: StageContext<'_>, packet: &Packet) {
        self.output.prefetch_underlay(packet);
    }

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, HeadendDrop> {
        let otherwise = |packet: &mut Packet| self.slow_path(context, packet, Hop::ToCount, |_| ());
        self.put(packet, |packet| F::forward(packet.bytes_mut()), otherwise)
    }

    /// Packets of one entry whose underlay has one path.
    #[inline(always)]
    fn decide_all(
        &self,
        context: StageContext<'_>,
        (): (),
        packets: &mut [Packet],
        mut decided: impl FnMut(&Packet, NodeId),
    ) -> bool {
        let Some(first) = packets.first() else { return false };
        let entry = self.output.entries.of(first);
        let link = self.output.only_hop(entry).and_then(|hop| self.output.link(entry, hop));
        let Some(link) = link else { return false };
        for packet in packets {
            let sent = self.send(link, packet, |packet| F::forward(packet.bytes_mut()));
            let decision =
                sent.unwrap_or_else(|| self.slow_path(context, packet, Hop::ToCount, |_| ()));
            let next = next_or_drop(decision, packet);
            decided(packet, next);
        }
        true
    }
}

/// The declaration.
pub(super) fn spec<F: Encapsulated>(entries: &Entries, lines: &Arc<CountedLines>) -> NodeSpec {
    let (entries, lines) = (entries.clone(), lines.clone());
    NodeSpec::stage("Puts an outer IPv6 header with a policy's segments in front", move |wiring| {
        Encaps::<F>::new(wiring, &entries, &lines)
    })
    .detour(nodes::ip6::REWRITE)
    .takes_offloads_up_to(SUPER_FRAME_BYTES_MAX)
    .describe(description::describe)
}
