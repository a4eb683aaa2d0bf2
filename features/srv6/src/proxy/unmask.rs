//! `sr-proxy-am`: the active segment becomes the destination again of packets that come back from a function behind an
//! End.AM SID (draft-ietf-spring-sr-service-programming §6.4).

use std::sync::Arc;

use quiver_core::arc::ArcId;
use quiver_core::node::{Node, NodeSpec};
use quiver_core::stage::Tally;
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet, WorkerId};
use quiver_tables::CountedLines;
use quiver_wire::srh::{ROUTING_TYPE, SEGMENT_BYTES, SrhHeader, segment, segment_offset};
use quiver_wire::{Header, Ip6Header};

use super::back::{Around, Back, Backs, Coming};
use super::reasons::{Bad, ProxyDrop};
use crate::endpoint::closer;
use crate::endpoint::reasons::parameter_problem;
use crate::endpoint::segments;
use crate::endpoint::ways::Ways;

/// The node.
pub(super) const NODE: &str = "sr-proxy-am";

/// Where an SRH says how many segments are left.
const SEGMENTS_LEFT_PLACE: usize = 3;

struct Unmask {
    ways: Ways,
    backs: Backs,
    worker: WorkerId,
    arc: ArcId,
    lookup: NodeId,
    error: NodeId,
}

/// Where the SRH of a packet stands, if it has one.
fn srh_of(packet: &Packet) -> Option<usize> {
    let mut headers = closer::routing_headers(packet).flatten();
    headers.find(|(_, kind, _)| *kind == ROUTING_TYPE).map(|(spot, ..)| spot.at)
}

/// Let the active segment of the SRH there be the destination. With `nat`, the last segment is the destination that
/// the function gave the packet.
fn unmask(packet: &mut Packet, at: usize, nat: bool) -> Result<u128, Bad> {
    let bytes = packet.bytes_mut();
    let srh = bytes.get(at..).and_then(SrhHeader::overlay).ok_or(ProxyDrop::Truncated)?;
    let left = usize::from(srh.segments_left());
    if !srh.leads_on() || left >= srh.segment_count() {
        return Err(Bad::Complain(parameter_problem(0, at + SEGMENTS_LEFT_PLACE), ProxyDrop::ListWrong));
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
    fn decide(
        &self,
        tally: Tally<'_>,
        back: Option<&Back>,
        packet: &mut Packet,
    ) -> Result<NodeId, ProxyDrop> {
        let back = back.ok_or(ProxyDrop::NotConfigured)?;
        let Around::Masked { nat } = back.around else { return Err(ProxyDrop::NotConfigured) };
        let Some(at) = srh_of(packet) else {
            tally.count(ProxyDrop::PassedBy, 1);
            return Ok(tally.next_in_arc(self.arc, packet.rx, packet, self.lookup));
        };
        let (bytes, counts) = (packet.length() as u64, back.counts.of(self.worker));
        let bad = match unmask(packet, at, nat) {
            Ok(to) => {
                counts[0].add(1);
                counts[1].add(bytes);
                packet.hash = 0;
                return Ok(self.ways.six(self.ways.tables.ip6.table(back.table).lookup(to), packet));
            }
            Err(bad) => bad,
        };
        counts[2].add(1);
        counts[3].add(bytes);
        match bad {
            Bad::Drop(why) => Err(why),
            Bad::Complain(request, why) => {
                tally.count(why, 1);
                packet.index = request.to_index();
                Ok(self.error)
            }
        }
    }
}

impl Node for Unmask {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let Some(rx) = frame.packets().first().map(|packet| packet.rx) else { return };
        let (tally, this) = (Tally::new(cx), &*self);
        let back = |rx: InterfaceId| this.backs.read(rx, Coming::Ip6, cx.pass);
        if frame.is_same_rx() {
            let back = back(rx);
            frame.route(|packet| this.decide(tally, back, packet));
        } else {
            frame.route(|packet| this.decide(tally, back(packet.rx), packet));
        }
    }
}

/// The declaration; `arc` is `ip6-unicast`.
pub(super) fn spec(arc: ArcId, lines: &Arc<CountedLines>, backs: &Backs) -> NodeSpec {
    let (lines, backs) = (lines.clone(), backs.clone());
    NodeSpec::new(
        NODE,
        "Makes the active segment the destination of packets from a masqueraded function",
        move |wiring| {
            Box::new(Unmask {
                ways: Ways::new(wiring, &lines),
                backs: backs.clone(),
                worker: wiring.worker,
                arc,
                lookup: wiring.node("ip6-lookup"),
                error: wiring.node("ip6-icmp-error"),
            })
        },
    )
    .reasons::<ProxyDrop>()
    .describe(super::words::describe)
}
