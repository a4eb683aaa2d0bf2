//! `vrrp-virtual-address`: packets to the address of a virtual router without accept mode are not
//! taken (RFC 9568 §6.4.3), but for neighbour solicitations, which are answered.

use quiver_core::graph::node::NodeSpec;
use quiver_core::{Context, Frame, Node, NodeId};
use quiver_forwarding::nodes;
use quiver_wire::icmp6::kind::NEIGHBOR_SOLICITATION;
use quiver_wire::{Header, Ip6Header, IpProtocol};

use crate::reasons::NotAccepted;

/// The node's name.
pub const NODE: &str = "vrrp-virtual-address";

struct Guard {
    local6: NodeId,
}

/// Does somebody ask whether the address is still there (RFC 4861 §7.3.1)?
fn is_solicitation(packet: &[u8]) -> bool {
    Ip6Header::split(packet).is_some_and(|(header, behind)| {
        header.version() == 6
            && header.next_header() == IpProtocol::ICMP6
            && behind.first() == Some(&NEIGHBOR_SOLICITATION)
    })
}

impl Node for Guard {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| match is_solicitation(packet.bytes()) {
            true => Ok(self.local6),
            false => Err(NotAccepted::AcceptMode),
        });
    }
}

/// The declaration.
pub fn spec() -> NodeSpec {
    NodeSpec::new(NODE, "Takes no packets to virtual routers but neighbour solicitations", |w| {
        Box::new(Guard { local6: w.node(nodes::ip6::LOCAL) })
    })
    .reasons::<NotAccepted>()
    .describe(|record, names| format!("to {}", names.node(record.next)))
}
