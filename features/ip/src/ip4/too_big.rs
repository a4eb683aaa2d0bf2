//! `ip4-too-big`: the packet is longer than the MTU of its way out. May it be fragmented
//! (RFC 791 §2.3), or must its sender be told (RFC 1191 §4)?

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::nodes;
use quiver_forwarding::requests::IcmpErrorRequest;
use quiver_wire::icmp4::{kind, unreachable};
use quiver_wire::{Header, Ip4Header};

quiver_core::reasons! {
    /// What becomes of packets that are too big.
    pub enum Ip4TooBig {
        /// No header.
        Truncated = "truncated", "fewer bytes than an IPv4 header";
        /// The sender hears of it.
        DontFragment = "dont-fragment", "packets longer than the outgoing MTU that must not be \
            fragmented";
        /// Cut.
        Fragment = info "to-fragment", "packets longer than the outgoing MTU, to be fragmented";
    }
}

struct TooBig {
    tables: IpTables,
    fragment: NodeId,
    error: NodeId,
}

impl TooBig {
    fn decide(&self, cx: &Context<'_>, packet: &mut Packet) -> Result<NodeId, Ip4TooBig> {
        let header = *Ip4Header::overlay(packet.bytes()).ok_or(Ip4TooBig::Truncated)?;
        let adjacency = self.tables.adjacencies.of(packet);
        if !header.dont_fragment() {
            cx.count(Ip4TooBig::Fragment, 1);
            return Ok(self.fragment);
        }
        cx.count(Ip4TooBig::DontFragment, 1);
        packet.tx = adjacency.tx;
        let detail = adjacency.mtu_bytes;
        let code = unreachable::FRAGMENTATION_NEEDED;
        packet.hand_over(IcmpErrorRequest { kind: kind::DESTINATION_UNREACHABLE, code, detail });
        Ok(self.error)
    }
}

impl Node for TooBig {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

/// The declaration.
pub(crate) fn spec(tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::new(
        nodes::ip4::TOO_BIG,
        "Decides between fragments and an ICMP error",
        move |wiring| {
            Box::new(TooBig {
                tables: tables.clone(),
                fragment: wiring.node(nodes::ip4::FRAG),
                error: wiring.node(nodes::ip4::ICMP_ERROR),
            })
        },
    )
    .takes_offloads()
    .slow_path()
    .reasons::<Ip4TooBig>()
    .describe(|record, names| {
        format!(
            "{}, to {}",
            quiver_forwarding::ip4::describe(record.bytes()),
            names.node(record.next)
        )
    })
}
