//! Behind the output of a tunnel's interface with features, or of packets that were fragmented for
//! it: the header stack of the adjacency by which they came.

use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec, Wiring};
use quiver_core::graph::stage::StageContext;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::ip::{Ip4, Ip6, IpTables};

use super::encap::TunnelEncap;
use super::protocol::{TunnelProtocol, super_frame_bytes_max, take_super_frames};
use super::reasons::TunnelDrop;
use crate::entries::WorkerEncapEntries;

/// By outer family: the encapsulation of IPv4 and IPv6 packets.
struct BehindOutput<P: TunnelProtocol> {
    tables: Arc<IpTables>,
    entries: Arc<WorkerEncapEntries>,
    in4: (TunnelEncap<P, Ip4, Ip4>, TunnelEncap<P, Ip4, Ip6>),
    in6: (TunnelEncap<P, Ip6, Ip4>, TunnelEncap<P, Ip6, Ip6>),
}

/// The version of an IP packet.
fn version(bytes: &[u8]) -> u8 {
    bytes.first().map_or(0, |first| first >> 4)
}

impl<P: TunnelProtocol> BehindOutput<P> {
    fn decide(&self, context: StageContext<'_>, packet: &mut Packet) -> Result<NodeId, TunnelDrop> {
        let adjacency = self.tables.adjacencies.of(packet);
        if adjacency.tx != packet.tx || adjacency.entry == 0 {
            return Err(TunnelDrop::NoTunnel);
        }
        let outer = version(self.entries.get(adjacency.entry).header());
        match (outer, version(packet.bytes())) {
            (4, 4) => self.in4.0.put(context, packet, false),
            (4, 6) => self.in4.1.put(context, packet, false),
            (6, 4) => self.in6.0.put(context, packet, false),
            (6, 6) => self.in6.1.put(context, packet, false),
            _ => Err(TunnelDrop::NoTunnel),
        }
    }
}

impl<P: TunnelProtocol> Node for BehindOutput<P> {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let context = StageContext::new(cx);
        frame.route(|packet| self.decide(context, packet));
        frame.look_at_rx();
    }
}

/// The declaration.
pub(super) fn spec<P: TunnelProtocol>(entries: &Arc<[Arc<WorkerEncapEntries>]>) -> NodeSpec {
    let entries = entries.clone();
    let help =
        "Puts a tunnel's headers in front of packets that have passed its interface's output";
    let length_max = super_frame_bytes_max::<P, Ip4>().min(super_frame_bytes_max::<P, Ip6>());
    let node = NodeSpec::new(P::NODES.output, help, move |wiring: &Wiring<'_>| {
        Box::new(BehindOutput::<P> {
            tables: wiring.shared(),
            entries: entries[wiring.worker.index() % entries.len()].clone(),
            in4: (TunnelEncap::new(wiring, &entries), TunnelEncap::new(wiring, &entries)),
            in6: (TunnelEncap::new(wiring, &entries), TunnelEncap::new(wiring, &entries)),
        })
    });
    take_super_frames::<P>(node, length_max).reasons::<TunnelDrop>().describe(|record, names| {
        let (tunnel, bytes) = (names.interface(record.tx), record.packet_bytes);
        format!("{bytes} bytes by {tunnel}, to {}", names.node(record.next))
    })
}
