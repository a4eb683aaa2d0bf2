//! `sr-pl-rewrite-insert`: an IPv6 packet gets an SRH of its own behind its header (H.Insert,
//! H.Insert.Red: draft-filsfils-spring-srv6-net-pgm-insertion §3). The last segment is the
//! destination that it had.

use std::sync::Arc;

use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::entries::HEADER_BYTES_MAX;
use quiver_encap::inner::packet_too_big;
use quiver_encap::output::{leave, push_link, push_stack};
use quiver_encap::{EncapEntry, EncapOutput, EntryView, IcmpRecipient, InnerPacket};
use quiver_forwarding::ip::{Ip6, flow_hash};
use quiver_forwarding::nodes;
use quiver_tables::CountedLines;
use quiver_wire::{Header, Ip6Header, IpProtocol};

use super::Entries;
use super::description;
use super::encaps::Hop;
use super::keys::{self, KeyTable};
use super::path_mtu_of_policy::PolicyPathMtu;
use super::reasons::HeadendDrop;
use super::stack::{LAST_SEGMENT, SRH_PLACE, SUPER_FRAME_BYTES_MAX, SegmentStack, has_srh, signs};
use crate::srh_place::SrhPlace;

/// The node.
pub(super) const NODE: &str = "sr-pl-rewrite-insert";

/// Where the SRH leads in the end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    /// To the destination that the packet had.
    Destination,
    /// To the policy's own last segment: the packet goes on by the SRH that it has.
    Own,
}

/// `sr-pl-rewrite-insert`. The number of the list's entry is in the packet's index.
pub struct Insert {
    output: EncapOutput<SegmentStack>,
    way_out: PolicyPathMtu,
    error: NodeId,
    keys: Arc<KeyTable>,
}

impl Insert {
    pub(super) fn new(
        wiring: &Wiring<'_>,
        entries: &Entries,
        lines: &CountedLines,
        keys: &Arc<KeyTable>,
    ) -> Insert {
        Insert {
            output: EncapOutput::new(wiring, entries),
            way_out: PolicyPathMtu::new(wiring, lines),
            error: wiring.node(Ip6::ERROR_NODE),
            keys: keys.clone(),
        }
    }

    /// Put the SRH behind the IPv6 header and hop-by-hop options, with a place for the destination
    /// or without one; or another destination alone.
    fn put_anywhere(
        &self,
        context: StageContext<'_>,
        entry: &EncapEntry,
        packet: &mut Packet,
        last: Last,
    ) -> Result<(), HeadendDrop> {
        let old = *Ip6Header::overlay(packet.bytes()).ok_or(HeadendDrop::Truncated)?;
        let place = SrhPlace::of(packet.bytes()).ok_or(HeadendDrop::Truncated)?;
        let mut copy = [0; HEADER_BYTES_MAX];
        let mine = copy.get_mut(..entry.header_len()).ok_or(HeadendDrop::NoPolicy)?;
        mine.copy_from_slice(entry.header());
        let to = Ip6Header::overlay(mine).ok_or(HeadendDrop::NoPolicy)?.destination();
        if let Some(place) = mine.get_mut(LAST_SEGMENT).filter(|_| last == Last::Destination) {
            place.copy_from_slice(&old.destination().octets());
        }
        let srh = mine.get_mut(SRH_PLACE..).unwrap_or_default();
        if let Some(named) = srh.first_mut() {
            *named = place.next;
        }
        let keys = || self.keys.read(context.pass());
        if signs(EntryView(entry)) && !keys::sign_by(keys(), old.source(), srh) {
            return Err(HeadendDrop::NoPolicy);
        }
        if !place.put(packet, srh, to) {
            return Err(HeadendDrop::NoHeadroom);
        }
        let (packets, bytes) = packet.on_wire();
        entry.count_all(packets, bytes);
        Ok(())
    }

    /// Into a packet about which nothing is unusual, and out; with others happens what `otherwise`
    /// says.
    #[inline(always)]
    pub(super) fn put(
        &self,
        packet: &mut Packet,
        last: Last,
        otherwise: impl FnOnce(&mut Packet) -> Result<NodeId, HeadendDrop>,
    ) -> Result<NodeId, HeadendDrop> {
        let entry = self.output.entries.of(packet);
        let hop = self.output.hop_for::<Ip6>(entry, packet);
        let adjacency = self.output.adjacency(hop);
        let length = packet.segment_length();
        let unusual =
            PacketFlags::LOCALLY_ORIGINATED.union(PacketFlags::CHAINED).union(PacketFlags::OFFLOAD);
        let total = (length + entry.header_len()).wrapping_sub(Ip6Header::LEN);
        let plain = packet.has_none(unusual)
            & (total <= usize::from(adjacency.mtu_bytes))
            & self.output.is_resolved(hop)
            & has_srh(EntryView(entry))
            & !signs(EntryView(entry))
            & (entry.header_len() != 0);
        let fixed = Fixed::of(packet.bytes()).ok_or(HeadendDrop::Truncated)?;
        if !(plain & fixed.is_plain()) {
            return otherwise(packet);
        }
        if !packet.pull(Ip6Header::LEN) {
            return Err(HeadendDrop::Truncated);
        }
        let before = push_stack(entry, adjacency, packet)?;
        let bytes = packet.bytes_mut().get_mut(before..).ok_or(HeadendDrop::Truncated)?;
        fixed.put(bytes, total, last)?;
        entry.count(total);
        Ok(leave(adjacency, packet))
    }

    /// What is unusual about a packet, step by step.
    #[cold]
    #[inline(never)]
    pub(super) fn slow_path(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
        hop_of: Hop,
        last: Last,
    ) -> Result<NodeId, HeadendDrop> {
        let entry = self.output.entries.of(packet);
        if entry.header_len() == 0 {
            return Err(HeadendDrop::NoPolicy);
        }
        let own = packet.has(PacketFlags::LOCALLY_ORIGINATED);
        if hop_of == Hop::ToCount
            && !own
            && let Some((request, why)) = Ip6::refusal(packet.bytes())?
        {
            context.count(HeadendDrop::from(why), 1);
            packet.hand_over(request);
            return Ok(self.error);
        }
        let hash = flow_hash::<Ip6>(packet);
        let (hop, added) = (self.output.hop(entry, hash), entry.header_len() - Ip6Header::LEN);
        let to = Ip6Header::overlay(packet.bytes()).map(Ip6Header::destination);
        let to = to.filter(|_| last == Last::Destination);
        let mtu = self.way_out.mtu(&self.output, entry, hop, hash, to);
        let total = EncapOutput::<SegmentStack>::check_length(packet, entry)? - Ip6Header::LEN;
        let fits = total <= mtu.mtu_bytes;
        if !fits && !own {
            // The router may not fragment another's packet (RFC 8200 §4.5).
            context.count(HeadendDrop::TooBig, 1);
            let mtu_bytes = mtu.mtu_bytes.saturating_sub(added);
            let request =
                Ip6::too_big(packet, mtu_bytes).unwrap_or_else(|| packet_too_big(mtu_bytes));
            packet.hand_over(request);
            return Ok(self.error);
        }
        self.put_anywhere(context, entry, packet, last)?;
        if fits && self.output.is_resolved(hop) {
            if hop_of == Hop::ToCount && !own {
                Ip6::decrement_hop_limit(packet.bytes_mut());
            }
            return Ok(push_link(self.output.adjacency(hop), packet)?);
        }
        // The node that forwards the packet decrements its hop limit.
        let was_own = packet.has(PacketFlags::LOCALLY_ORIGINATED);
        let too_long_for = (!fits).then_some(mtu);
        let next = self.output.by_node(entry, hop, packet, too_long_for, IcmpRecipient::Sender);
        if !was_own && hop_of == Hop::ToCount {
            packet.clear(PacketFlags::LOCALLY_ORIGINATED);
        }
        Ok(next)
    }
}

/// The IPv6 header of a packet in pieces that are read at once and written at once: no piece is
/// read of what has just been written in others, which a processor would wait for.
struct Fixed {
    /// Version, class, label, length, next header, hop limit.
    word: u64,
    source: [u8; 16],
    destination: [u8; 16],
}

/// Where they stand.
const SOURCE_PLACE: usize = 8;
const DESTINATION_PLACE: usize = 24;

impl Fixed {
    #[inline(always)]
    fn of(bytes: &[u8]) -> Option<Fixed> {
        let header: &[u8; Ip6Header::LEN] = bytes.first_chunk()?;
        Some(Fixed {
            word: u64::from_be_bytes(*header.first_chunk()?),
            source: *header.get(SOURCE_PLACE..)?.first_chunk()?,
            destination: *header.get(DESTINATION_PLACE..)?.first_chunk()?,
        })
    }

    #[inline(always)]
    fn next_header(&self) -> u8 {
        (self.word >> 8) as u8
    }

    /// May it be forwarded on the fast path, with its SRH first behind it?
    #[inline(always)]
    fn is_plain(&self) -> bool {
        let is_local = u16::from_be_bytes([self.source[0], self.source[1]]) >> 6 == 0xfe80 >> 6;
        (self.word as u8 > 1) & (self.next_header() != IpProtocol::HOP_BY_HOP.0) & !is_local
    }

    /// Write it, with a hop less to live, over the header that a entry's SRH lends, whose
    /// destination is the first segment; the SRH behind gets its next header, and its destination
    /// as the last segment if that leads there. `total` is how long the packet is now.
    #[inline(always)]
    fn put(&self, bytes: &mut [u8], total: usize, last: Last) -> Result<(), HeadendDrop> {
        let (header, srh) =
            bytes.split_first_chunk_mut::<{ Ip6Header::LEN }>().ok_or(HeadendDrop::Truncated)?;
        let srh = srh
            .first_chunk_mut::<{ LAST_SEGMENT.end - SRH_PLACE }>()
            .ok_or(HeadendDrop::Truncated)?;
        let length = u64::from((total - Ip6Header::LEN) as u16);
        let next = u64::from(IpProtocol::ROUTING.0);
        let word =
            self.word >> 32 << 32 | length << 16 | next << 8 | u64::from(self.word as u8 - 1);
        let (first, second) = header.split_at_mut(SOURCE_PLACE);
        first.copy_from_slice(&word.to_be_bytes());
        if let Some(source) = second.first_chunk_mut() {
            *source = self.source;
        }
        srh[0] = self.next_header();
        if last == Last::Destination
            && let Some(place) = srh.last_chunk_mut()
        {
            *place = self.destination;
        }
        Ok(())
    }
}

impl Stage for Insert {
    const NAME: &'static str = NODE;
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
        self.put(packet, Last::Destination, |packet| {
            self.slow_path(context, packet, Hop::ToCount, Last::Destination)
        })
    }
}

/// The declaration.
pub(super) fn spec(entries: &Entries, lines: &Arc<CountedLines>, keys: &Arc<KeyTable>) -> NodeSpec {
    let (entries, lines, keys) = (entries.clone(), lines.clone(), keys.clone());
    NodeSpec::stage("Puts an SRH with a policy's segments behind the IPv6 header", move |wiring| {
        Insert::new(wiring, &entries, &lines, &keys)
    })
    .detour(nodes::ip6::REWRITE)
    .takes_offloads_up_to(SUPER_FRAME_BYTES_MAX)
    .describe(description::describe)
}
