//! `sr-proxy-am`: the active segment becomes the destination again of packets that come back from a
//! function behind an End.AM SID (draft-ietf-spring-sr-service-programming §6.4); what has no
//! segments may get kept ones.

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet, WorkerId};
use quiver_forwarding::ip::Ip6;
use quiver_forwarding::nodes;
use quiver_tables::{CountedLines, GroupId};
use quiver_wire::srh::{ROUTING_TYPE, SEGMENT_BYTES, SrhHeader, segment, segment_offset};
use quiver_wire::{Header, Ip6Header, IpProtocol};

use super::inner::Inner;
use super::reasons::{Bad, ProxyDrop};
use super::return_interfaces::{Around, Back, Backs, Coming};
use super::transmit::Transmit;
use super::without_segments;
use crate::endpoint::lookup_keys::LookupKey;
use crate::endpoint::lookup_node::SidKey;
use crate::endpoint::next_nodes::NextNodes;
use crate::endpoint::reasons::parameter_problem;
use crate::endpoint::segments;
use crate::endpoint::slow_path;

/// The node.
pub(super) const NODE: &str = "sr-proxy-am";

/// Where an SRH says how many segments are left.
const SEGMENTS_LEFT_PLACE: usize = 3;

/// `sr-proxy-am`: asks for the active segment.
pub struct Unmask {
    next_nodes: NextNodes,
    backs: Backs,
    /// For packets without segments.
    departure: Transmit,
    worker: WorkerId,
    arc: ArcId,
    lookup: NodeId,
    error: NodeId,
}

/// Where the SRH of a packet stands, if it has one.
fn srh_of(packet: &Packet) -> Option<usize> {
    let mut headers = slow_path::routing_headers(packet).flatten();
    headers.find(|(_, kind, _)| *kind == ROUTING_TYPE).map(|(spot, ..)| spot.at)
}

/// The SRH that stands right behind the IPv6 header, if there is one with segments left.
#[inline(always)]
fn srh_if_plain(packet: &Packet) -> Option<usize> {
    let (header, behind) = Ip6Header::split(packet.bytes())?;
    let srh = SrhHeader::overlay(behind)?;
    let plain = (header.next_header() == IpProtocol::ROUTING)
        & (srh.routing_type() == ROUTING_TYPE)
        & (srh.segments_left() != 0)
        & (srh.len_bytes() <= behind.len());
    plain.then_some(Ip6Header::LEN)
}

/// Let the active segment of the SRH there be the destination; what is wrong is told, and changes
/// nothing. With `nat`, the last segment is the destination that the function gave the packet.
#[inline(always)]
fn unmask(packet: &mut Packet, at: usize, nat: bool) -> Result<u128, Bad> {
    let bytes = packet.bytes_mut();
    let srh = bytes.get(at..).and_then(SrhHeader::overlay).ok_or(ProxyDrop::Truncated)?;
    let left = usize::from(srh.segments_left());
    if !srh.leads_on() || left >= srh.segment_count() {
        return Err(Bad::Complain(
            parameter_problem(0, at + SEGMENTS_LEFT_PLACE),
            ProxyDrop::ListWrong,
        ));
    }
    let active = bytes.get(at..).and_then(|srh| segment(srh, left)).ok_or(ProxyDrop::Truncated)?;
    if left > 0 && !segments::is_plain_segment(active.to_bits()) {
        return Err(ProxyDrop::NextSegment.into());
    }
    let (header, behind) = Ip6Header::split_mut(bytes).ok_or(ProxyDrop::Truncated)?;
    let given = header.destination();
    let last = at + segment_offset(0) - Ip6Header::LEN;
    if nat && let Some(last) = behind.get_mut(last..last + SEGMENT_BYTES) {
        last.copy_from_slice(&given.octets());
    }
    let to = if left == 0 { given } else { active };
    header.set_destination(to);
    Ok(to.to_bits())
}

impl Unmask {
    /// Packets that are not plain.
    #[cold]
    #[inline(never)]
    fn slow_path(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, ProxyDrop> {
        let back = self
            .backs
            .read(packet.rx, Coming::Ip6, context.pass())
            .ok_or(ProxyDrop::NotConfigured)?;
        let Around::Masked { nat, kept } = &back.around else {
            return Err(ProxyDrop::NotConfigured);
        };
        let bytes = packet.length();
        let outcome = match (srh_of(packet), kept) {
            (Some(at), _) => unmask(packet, at, *nat).map(|to| {
                packet.hash = 0;
                self.next_nodes.six(self.next_nodes.tables.ip6.table(back.table).lookup(to), packet)
            }),
            (None, Some(kept)) if !self.stays(context, packet) => {
                without_segments::send(&self.departure, &self.next_nodes, back, kept, packet)
                    .inspect(|_| context.count(ProxyDrop::FromKept, 1))
            }
            (None, _) => {
                context.count(ProxyDrop::PassedBy, 1);
                return Ok(context.next_in_arc(self.arc, packet.rx, packet, self.lookup));
            }
        };
        let bad = match outcome {
            Ok(next) => {
                self.good(back, bytes);
                return Ok(next);
            }
            Err(bad) => bad,
        };
        let counts = back.counts.of(self.worker);
        counts[2].add(1);
        counts[3].add(bytes as u64);
        match bad {
            Bad::Drop(why) => Err(why),
            Bad::Complain(request, why) => {
                context.count(why, 1);
                packet.hand_over(request);
                Ok(self.error)
            }
        }
    }

    /// Is it for the router itself, or for the link?
    fn stays(&self, context: StageContext<'_>, packet: &Packet) -> bool {
        let own = self.next_nodes.tables.interfaces.addresses(packet.rx, context.pass());
        Ip6::stays(own, packet.bytes())
    }

    /// One more has come back, of so many bytes.
    #[inline(always)]
    fn good(&self, back: &Back, bytes: usize) {
        let counts = back.counts.of(self.worker);
        counts[0].add(1);
        counts[1].add(bytes as u64);
    }
}

/// What holds for packets that come back by an interface: the table of their segments, and whether
/// the destination that the function gave them is kept; nothing when it is nobody's return
/// interface.
type Masked = Option<(u32, bool)>;

impl LookUp for Unmask {
    const NAME: &'static str = NODE;
    type Reason = ProxyDrop;
    type Key = LookupKey;
    type Found = GroupId;
    type InterfaceState = Masked;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> Masked {
        match self.backs.read(rx, Coming::Ip6, cx.pass)? {
            Back { around: Around::Masked { nat, .. }, table, .. } => Some((*table, *nat)),
            _ => None,
        }
    }

    #[inline(always)]
    fn key(&self, masked: Masked, packet: &mut Packet) -> LookupKey {
        let (Some((table, nat)), Some(at)) = (masked, srh_if_plain(packet)) else {
            return LookupKey::default();
        };
        match unmask(packet, at, nat) {
            Ok(to) => LookupKey::six(table, to),
            Err(_) => LookupKey::default(),
        }
    }

    #[inline(always)]
    fn find(&self, variant: Variant, _: Masked, keys: &[LookupKey], found: &mut [GroupId]) {
        LookupKey::find(&self.next_nodes.tables, variant, keys, found);
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        _: Masked,
        lookup_key: LookupKey,
        found: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, ProxyDrop> {
        if lookup_key.is_nothing() {
            return self.slow_path(context, packet);
        }
        if let Some(back) = self.backs.read(packet.rx, Coming::Ip6, context.pass()) {
            self.good(back, packet.length());
        }
        packet.hash = 0;
        Ok(self.next_nodes.six(found, packet))
    }
}

/// The declaration; `arc` is `ip6-unicast`.
pub(super) fn spec(arc: ArcId, lines: &Arc<CountedLines>, backs: &Backs) -> NodeSpec {
    let (lines, backs) = (lines.clone(), backs.clone());
    NodeSpec::look_up(
        "Makes the active segment the destination of packets from a masqueraded function",
        move |wiring| Unmask {
            next_nodes: NextNodes::new(wiring, &lines),
            backs: backs.clone(),
            departure: Transmit::new(wiring, &backs, Coming::Ip6),
            worker: wiring.worker,
            arc,
            lookup: wiring.node(nodes::ip6::LOOKUP),
            error: wiring.node(nodes::ip6::ICMP_ERROR),
        },
    )
    .describe(super::description::describe)
}
