//! `ip-input`: packets without a layer 2 header, sorted by their version.

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId};
use quiver_forwarding::nodes;

quiver_core::reasons! {
    /// Why `ip-input` drops.
    pub enum IpDrop {
        /// No bytes.
        Empty = "empty", "a packet without bytes";
        /// Neither 4 nor 6.
        BadVersion = "bad-version", "IP version is neither 4 nor 6";
    }
}

struct IpInput {
    ip4: NodeId,
    ip6: NodeId,
}

impl Node for IpInput {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route_ahead(|packet| match packet.bytes().first().map(|byte| byte >> 4) {
            Some(4) => Ok(self.ip4),
            Some(6) => Ok(self.ip6),
            Some(_) => Err(IpDrop::BadVersion),
            None => Err(IpDrop::Empty),
        });
    }
}

pub(crate) fn spec() -> NodeSpec {
    NodeSpec::new(
        nodes::IP_INPUT,
        "Sorts IP packets without a layer 2 header by version",
        |wiring| {
            Box::new(IpInput {
                ip4: wiring.node(nodes::ip4::INPUT),
                ip6: wiring.node(nodes::ip6::INPUT),
            })
        },
    )
    .takes_offloads()
    .reasons::<IpDrop>()
    .describe(|record, names| {
        format!("{} bytes received on {}", record.packet_bytes, names.interface(record.rx))
    })
}
