//! A node that cuts translated packets for links of 1280 bytes (RFC 7915 §4): those of IPv4 senders
//! that let routers cut them. They have a fragment header behind the IPv6 header, as
//! [`to6`](super::to6) puts it there, which keeps IPv4's identification.

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::handover::TableIndex;
use quiver_forwarding::nodes;
use quiver_forwarding::requests::FragmentRequest;
use quiver_forwarding::segments::fragment;
use quiver_wire::{Header, Ip6Header, IpProtocol};

use super::to6::FRAGMENT_BYTES;

/// Bytes in front of what is cut.
const FRONT_BYTES: usize = Ip6Header::LEN + FRAGMENT_BYTES;

quiver_core::reasons! {
    /// What becomes of packets that are to be cut.
    pub enum CutDrop {
        /// Not as the translator leaves it.
        Truncated = "truncated", "a packet without whole IPv6 and fragment headers";
        /// None left.
        NoBuffer = "no-buffer", "no buffer for a fragment; `show buffers`";
        /// Done.
        Fragmented = info "fragmented", "translated packets cut into fragments";
        /// Made.
        Made = info "fragments", "fragments made";
    }
}

struct Cut {
    lookup: NodeId,
    done: NodeId,
}

impl Cut {
    fn cut(&self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, CutDrop> {
        let FragmentRequest { mtu_bytes, table } = packet.handed_over();
        packet.hand_over(TableIndex(table));
        let mut front = *packet.bytes().first_chunk::<FRONT_BYTES>().ok_or(CutDrop::Truncated)?;
        if front[6] != IpProtocol::FRAGMENT.0 {
            return Err(CutDrop::Truncated);
        }
        let place = u16::from_be_bytes([front[42], front[43]]);
        let (first, more) = (usize::from(place >> 3), place & 1 != 0);
        let step = usize::from(mtu_bytes).saturating_sub(FRONT_BYTES) & !7;
        let total = packet.length().checked_sub(FRONT_BYTES).ok_or(CutDrop::Truncated)?;
        if step == 0 || total == 0 || first * 8 + total > usize::from(u16::MAX) + 8 {
            return Err(CutDrop::Truncated);
        }
        let mut at = 0;
        while at < total {
            let length = step.min(total - at);
            let payload = (FRAGMENT_BYTES + length) as u16;
            let place = ((first + at / 8) as u16) << 3 | u16::from(more || at + length < total);
            front[4..6].copy_from_slice(&payload.to_be_bytes());
            front[42..44].copy_from_slice(&place.to_be_bytes());
            let piece = fragment(cx, packet, &front, FRONT_BYTES + at, length);
            let piece = piece.ok_or(CutDrop::NoBuffer)?;
            cx.count(CutDrop::Made, 1);
            cx.emit(piece, self.lookup);
            at += length;
        }
        cx.count(CutDrop::Fragmented, 1);
        Ok(self.done)
    }
}

impl Node for Cut {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.cut(cx, packet));
    }
}

/// The declaration of such a node under a translator's own name; a [`FragmentRequest`] is handed
/// over to it.
pub fn spec(name: &str) -> NodeSpec {
    let help = "Cuts translated packets into fragments that every IPv6 link takes";
    NodeSpec::new(name, help, move |wiring| {
        Box::new(Cut {
            lookup: wiring.node(nodes::ip6::LOOKUP_IN_TABLE),
            done: wiring.node(nodes::IP_DONE),
        })
    })
    .slow_path()
    .reasons::<CutDrop>()
    .describe(|record, names| {
        format!(
            "{}, to {}",
            quiver_forwarding::ip6::describe(record.bytes()),
            names.node(record.next)
        )
    })
}
