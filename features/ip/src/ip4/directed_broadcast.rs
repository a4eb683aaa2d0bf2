//! `ip4-directed-broadcast`: a packet to all hosts of one of the router's subnets. Broadcast on the
//! subnet itself, it is for the router, too (RFC 1122 §3.2.1.3); coming from elsewhere, it is
//! forwarded only where that was asked for (RFC 2644).

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::adjacency::AdjacencyKind;
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::nodes;

quiver_core::reasons! {
    /// What becomes of broadcasts to a subnet.
    pub enum BroadcastDrop {
        /// RFC 2644 §4.
        NotForwarded = "not-forwarded", "a broadcast into a subnet from elsewhere (`set interface \
            ip directed-broadcast IF enable`)";
        /// Forwarded.
        Forwarded = info "forwarded", "broadcasts forwarded into a subnet";
    }
}

struct DirectedBroadcast {
    tables: IpTables,
    local: NodeId,
    rewrite: NodeId,
}

impl DirectedBroadcast {
    fn decide(&self, cx: &Context<'_>, packet: &mut Packet) -> Result<NodeId, BroadcastDrop> {
        let adjacency = self.tables.adjacencies.of(packet);
        let own = packet.has(PacketFlags::LOCALLY_ORIGINATED);
        if !own && packet.rx == adjacency.tx {
            // nothing is answered with this address as its source
            packet.set(PacketFlags::L2_GROUP);
            return Ok(self.local);
        }
        if adjacency.kind != AdjacencyKind::Complete {
            return Err(BroadcastDrop::NotForwarded);
        }
        cx.count(BroadcastDrop::Forwarded, 1);
        Ok(self.rewrite)
    }
}

impl Node for DirectedBroadcast {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

/// The declaration.
pub(crate) fn spec(tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::new(
        nodes::ip4::DIRECTED_BROADCAST,
        "Packets to all hosts of a subnet",
        move |wiring| {
            Box::new(DirectedBroadcast {
                tables: tables.clone(),
                local: wiring.node(nodes::ip4::LOCAL),
                rewrite: wiring.node(nodes::ip4::REWRITE),
            })
        },
    )
    .reasons::<BroadcastDrop>()
    .describe(|record, names| {
        let (words, rx) =
            (quiver_forwarding::ip4::describe(record.bytes()), names.interface(record.rx));
        format!("{words}, to all of a subnet, came by {rx}, to {}", names.node(record.next))
    })
}
