//! `sr-pl-spray-…`: a copy of the packet for every segment list of a policy, each to the node that
//! would have had the packet. VPP calls such policies spray.

use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::memory::epoch::PublishedSlots;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_encap::handover::EncapEntryIndex;
use quiver_forwarding::handover::NextHopIndex;

use super::reasons::HeadendDrop;

/// The node for frames.
pub(super) const L2: &str = "sr-pl-spray-l2";

/// By policy: the entries of its lists.
pub(super) type Sprayed = Arc<PublishedSlots<Box<[u32]>>>;

/// The number of a policy whose packets go by all of its lists.
#[derive(Clone, Copy)]
struct SprayedPolicy(u32);

quiver_core::number_handover!(SprayedPolicy from NextHopIndex);

struct Spray {
    sprayed: Sprayed,
    to: NodeId,
}

impl Spray {
    fn decide(&self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, HeadendDrop> {
        let entries = self.sprayed.read(packet.handed_over::<SprayedPolicy>().0 as usize, cx.pass);
        let Some((last, others)) = entries.and_then(|entries| entries.split_last()) else {
            return Err(HeadendDrop::NoPolicy);
        };
        for entry in others {
            let Some(mut copy) = packet.duplicate(cx.buffers) else {
                cx.count(HeadendDrop::NoBuffer, 1);
                continue;
            };
            copy.hand_over(EncapEntryIndex(*entry));
            cx.trace(&copy, self.to);
            cx.count(HeadendDrop::Copied, 1);
            cx.emit(copy, self.to);
        }
        packet.hand_over(EncapEntryIndex(*last));
        Ok(self.to)
    }
}

impl Node for Spray {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

/// The declaration of the node `name`, whose copies go to the node `to`.
pub(super) fn spec(name: &'static str, to: &'static str, sprayed: &Sprayed) -> NodeSpec {
    let sprayed = sprayed.clone();
    NodeSpec::new(name, "Makes a copy for every segment list of a policy", move |wiring| {
        Box::new(Spray { sprayed: sprayed.clone(), to: wiring.node(to) })
    })
    .takes_offloads()
    .reasons::<HeadendDrop>()
    .describe(|record, names| {
        format!("{} bytes, to {}", record.packet_bytes, names.node(record.next))
    })
}
