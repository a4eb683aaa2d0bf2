//! `sr-proxy-l2`: Ethernet frames that come back from a function get the headers of their path in front again
//! (draft-ietf-spring-sr-service-programming §6.1.1, §6.2; RFC 8986 §5.3 says how). It is the input node of the return
//! interface, whose frames are all the function's.

use quiver_core::node::{Node, NodeSpec};
use quiver_core::packet::PacketFlags;
use quiver_core::{Context, Frame, NodeId, Packet, WorkerId};
use quiver_tables::ip::{Ip4, Ip6, IpFamily};
use quiver_wire::{EtherType, EthernetHeader, Header};

use super::back::{Backs, Coming};
use super::departure::{Departure, Ready};
use super::reasons::{Bad, ProxyDrop};

/// The node.
pub(super) const NODE: &str = "sr-proxy-l2";

/// Bytes of a VLAN tag, and how many are looked behind.
const TAG_BYTES: usize = 4;
const TAGS_MAX: usize = 2;

struct FromFunctionL2 {
    departure: Departure,
    worker: WorkerId,
}

/// The hash of a frame's flow: of the packet in it, behind up to two VLAN tags, or of its addresses.
fn frame_hash(frame: &[u8]) -> u32 {
    for at in (0..=TAGS_MAX).map(|tags| 12 + tags * TAG_BYTES) {
        let Some(kind) = frame.get(at..).and_then(|rest| rest.first_chunk::<2>()) else { break };
        let behind = frame.get(at + 2..).unwrap_or_default();
        match EtherType(u16::from_be_bytes(*kind)) {
            EtherType::VLAN | EtherType::SERVICE_VLAN => {}
            EtherType::IPV4 => return Ip4::flow_hash(behind).unwrap_or(1),
            EtherType::IPV6 => return Ip6::flow_hash(behind).unwrap_or(1),
            _ => break,
        }
    }
    let words = frame.get(..12).unwrap_or_default().as_chunks::<4>().0;
    let mixed = words.iter().fold(0u64, |hash, word| {
        (hash ^ u64::from(u32::from_be_bytes(*word))).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    });
    (mixed ^ mixed >> 32) as u32
}

impl FromFunctionL2 {
    fn decide(&self, ready: Option<Ready<'_>>, packet: &mut Packet) -> Result<NodeId, ProxyDrop> {
        let ready = ready.ok_or(ProxyDrop::NotConfigured)?;
        let bytes = packet.length() as u64;
        let counts = ready.back.counts.of(self.worker);
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
    fn around(&self, ready: Ready<'_>, packet: &mut Packet) -> Result<NodeId, Bad> {
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
        self.departure.go(hop, true, self.departure.front().class(), hash, packet)
    }
}

impl Node for FromFunctionL2 {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let Some(rx) = frame.packets().first().map(|packet| packet.rx) else { return };
        if frame.is_same_rx() {
            let ready = self.departure.ready(cx, rx);
            frame.route_ahead(|packet| self.decide(ready, packet));
        } else {
            frame.route_ahead(|packet| {
                let ready = self.departure.ready(cx, packet.rx);
                self.decide(ready, packet)
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
                departure: Departure::new(wiring, &backs, Coming::Frames),
                worker: wiring.worker,
            })
        },
    )
    .reasons::<ProxyDrop>()
    .describe(super::words::describe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_frame_panics(frame in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = frame_hash(&frame);
        }
    }
}
