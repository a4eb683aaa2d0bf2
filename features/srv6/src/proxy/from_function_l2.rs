//! `sr-proxy-l2`: Ethernet frames that come back from a function get the headers of their path in
//! front again (draft-ietf-spring-sr-service-programming §6.1.1, §6.2; RFC 8986 §5.3 says how). It
//! is the input node of the return interface, whose frames are all the function's.

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::memory::epoch::Pass;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Frame, NodeId, Packet, WorkerId};
use quiver_encap::flow::frame_hash;
use quiver_wire::{EthernetHeader, Header};

use super::reasons::{Bad, ProxyDrop};
use super::return_interfaces::{Backs, Coming};
use super::transmit::{Ready, Transmit};

/// The node.
pub(super) const NODE: &str = "sr-proxy-l2";

struct FromFunctionL2 {
    departure: Transmit,
    worker: WorkerId,
}

impl FromFunctionL2 {
    #[inline(always)]
    fn decide(
        &self,
        pass: Pass<'_>,
        ready: Option<Ready>,
        packet: &mut Packet,
    ) -> Result<NodeId, ProxyDrop> {
        let (ready, back) =
            ready.zip(self.departure.back(packet.rx, pass)).ok_or(ProxyDrop::NotConfigured)?;
        let bytes = packet.length() as u64;
        let counts = back.counts.of(self.worker);
        match self.around(ready, packet) {
            Ok(next) => {
                counts[0].add(1);
                counts[1].add(bytes);
                Ok(next)
            }
            Err(Bad::Drop(why) | Bad::Complain(_, why)) => {
                counts[2].add(1);
                counts[3].add(bytes);
                Err(why)
            }
        }
    }

    #[inline(always)]
    fn around(&self, ready: Ready, packet: &mut Packet) -> Result<NodeId, Bad> {
        if packet.segment_length() < EthernetHeader::LEN {
            return Err(ProxyDrop::Truncated.into());
        }
        packet.l2_bytes = 0;
        packet.clear(PacketFlags::L2_GROUP);
        packet.hash = frame_hash(packet.bytes());
        let hash = packet.hash;
        let hop = self.departure.hop(ready, hash)?;
        if self.departure.total(packet)? > self.departure.mtu_bytes(hop) {
            return Err(ProxyDrop::FrameTooBig.into());
        }
        let class = self.departure.front().class();
        self.departure.go(hop, true, class, hash, packet)
    }
}

impl Node for FromFunctionL2 {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let Some(rx) = frame.packets().first().map(|packet| packet.rx) else { return };
        if frame.is_same_rx() {
            let ready = self.departure.ready(cx, rx);
            frame.route_ahead(|packet| self.decide(cx.pass, ready, packet));
        } else {
            frame.route_ahead(|packet| {
                let ready = self.departure.ready(cx, packet.rx);
                self.decide(cx.pass, ready, packet)
            });
        }
    }
}

/// The declaration.
pub(super) fn spec(backs: &Backs) -> NodeSpec {
    let backs = backs.clone();
    NodeSpec::new(
        NODE,
        "Puts the headers of their path in front of frames from a proxied function",
        move |wiring| {
            Box::new(FromFunctionL2 {
                departure: Transmit::new(wiring, &backs, Coming::Frames),
                worker: wiring.worker,
            })
        },
    )
    .reasons::<ProxyDrop>()
    .describe(super::description::describe)
}
