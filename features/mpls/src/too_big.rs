//! `mpls-too-big`: a labelled packet is longer than the MTU of its path out. The IPv4 packet behind
//! the labels is fragmented if it may be, and each fragment gets the labels; other senders are told
//! (RFC 3032 §3.4, §3.5).

use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::fib::Link;
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::mpls::{LabelledRewrites, describe};
use quiver_forwarding::nodes;
use quiver_forwarding::segments::fragment;
use quiver_wire::ip4::Repr;
use quiver_wire::mpls::ENTRY_BYTES;
use quiver_wire::{Header, Ip4Header};

use crate::icmp_error::{self, LabelError};
use crate::stack::{STACK_ENTRIES_MAX, stack_bytes, version};

/// The node.
pub(crate) const NODE: &str = "mpls-too-big";
/// Labels and the header of a fragment.
const FRONT_BYTES_MAX: usize = STACK_ENTRIES_MAX * ENTRY_BYTES + Ip4Header::LEN;

quiver_core::reasons! {
    /// What becomes of labelled packets that are too big.
    pub enum LabelledTooBig {
        /// Not a whole packet.
        Truncated = "truncated", "the packet behind the labels is shorter than its header says";
        /// Labels without end.
        StackTooDeep = "stack-too-deep", "more labels in front of the packet than are looked at";
        /// Neither IPv4 nor IPv6.
        NotIp = "not-ip", "longer than the outgoing MTU, and neither IPv4 nor IPv6";
        /// Nothing fits.
        MtuTooSmall = "mtu-too-small", "the outgoing MTU leaves no room for a fragment behind its \
            labels";
        /// RFC 791 §3.1.
        Options = "ip-options", "longer than the outgoing MTU, and the IPv4 header has options";
        /// None left.
        NoBuffer = "no-buffer", "no buffer for a fragment; `show buffers`";
        /// Done.
        Fragmented = info "fragmented", "labelled packets cut into fragments";
        /// Made.
        Made = info "fragments", "fragments made";
    }
}

struct TooBig {
    tables: Arc<IpTables>,
    rewrites: LabelledRewrites,
    error: NodeId,
    done: NodeId,
}

impl TooBig {
    fn decide(&self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, LabelledTooBig> {
        let adjacency = *self.tables.adjacencies.of(packet);
        let stack = stack_bytes(packet.bytes()).ok_or(LabelledTooBig::StackTooDeep)?;
        // A label that the adjacency takes off does not count.
        let popped = if adjacency.link() == Link::Mpls { 0 } else { ENTRY_BYTES };
        let longest = usize::from(adjacency.mtu_bytes) + popped;
        let mtu = longest.checked_sub(stack).ok_or(LabelledTooBig::MtuTooSmall)?;
        let behind = packet.bytes().get(stack..).ok_or(LabelledTooBig::Truncated)?;
        let header = match version(behind) {
            4 => Ip4Header::overlay(behind).copied().filter(|header| !header.dont_fragment()),
            6 => None,
            _ => return Err(LabelledTooBig::NotIp),
        };
        let Some(header) = header else {
            packet.tx = adjacency.tx;
            packet.hand_over(LabelError(mtu as u32));
            return Ok(self.error);
        };
        self.cut(cx, packet, (stack, mtu), &header, self.rewrites.of(&adjacency))?;
        cx.count(LabelledTooBig::Fragmented, 1);
        Ok(self.done)
    }

    /// Send fragments of at most `mtu` bytes behind the stack.
    fn cut(
        &self,
        cx: &mut Context<'_>,
        packet: &Packet,
        (stack, mtu): (usize, usize),
        header: &Ip4Header,
        next: NodeId,
    ) -> Result<(), LabelledTooBig> {
        let total = usize::from(header.total_length());
        if header.header_len() != Ip4Header::LEN {
            return Err(LabelledTooBig::Options);
        }
        if total < Ip4Header::LEN || stack + total > packet.length() {
            return Err(LabelledTooBig::Truncated);
        }
        let step = mtu.saturating_sub(Ip4Header::LEN) & !7;
        if step == 0 {
            return Err(LabelledTooBig::MtuTooSmall);
        }
        let payload = total - Ip4Header::LEN;
        let mut at = 0;
        while at < payload {
            let length = step.min(payload - at);
            let repr = Repr {
                traffic_class: header.traffic_class,
                identification: header.identification(),
                dont_fragment: false,
                more_fragments: at + length < payload || header.more_fragments(),
                fragment_offset: header.fragment_offset() + (at / 8) as u16,
                ttl: header.ttl(),
                protocol: header.protocol(),
                source: header.source(),
                destination: header.destination(),
                options: &[],
                payload_len: length,
            };
            let mut front = [0; FRONT_BYTES_MAX];
            let labels = packet.bytes().get(..stack).ok_or(LabelledTooBig::Truncated)?;
            let (to, rest) =
                front.split_at_mut_checked(stack).ok_or(LabelledTooBig::StackTooDeep)?;
            to.copy_from_slice(labels);
            repr.emit(rest).map_err(|_| LabelledTooBig::Truncated)?;
            let front = front.get(..stack + Ip4Header::LEN).unwrap_or_default();
            let made = fragment(cx, packet, front, stack + Ip4Header::LEN + at, length);
            cx.count(LabelledTooBig::Made, 1);
            cx.emit(made.ok_or(LabelledTooBig::NoBuffer)?, next);
            at += length;
        }
        Ok(())
    }
}

impl Node for TooBig {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

/// The declaration.
pub(crate) fn spec() -> NodeSpec {
    NodeSpec::new(NODE, "Cuts labelled packets into fragments, or has senders told", |wiring| {
        Box::new(TooBig {
            tables: wiring.shared(),
            rewrites: LabelledRewrites::new(wiring),
            error: wiring.node(icmp_error::NODE),
            done: wiring.node(nodes::IP_DONE),
        })
    })
    .slow_path()
    .reasons::<LabelledTooBig>()
    .describe(|record, names| {
        format!("{}, to {}", describe(record.bytes()), names.node(record.next))
    })
}
