//! `ip4-drop`: what no route takes. A destination without a route is answered with "net
//! unreachable", one whose route says `unreachable` with "host unreachable" (RFC 792), one whose
//! route says `prohibit` with "communication administratively prohibited" (RFC 1812 §5.2.7.1); `via
//! drop` is silent.

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId};
use quiver_forwarding::ip::{IpTables, NOT_ENABLED};
use quiver_forwarding::nodes;
use quiver_forwarding::requests::IcmpErrorRequest;
use quiver_forwarding::route_end::RouteEnd;
use quiver_wire::icmp4::{kind, unreachable};

/// What the sender of a packet without a usable route is told; nothing where the route says drop.
fn answer(end: RouteEnd) -> Option<IcmpErrorRequest> {
    let code = match end {
        RouteEnd::NoRoute => unreachable::NETWORK,
        RouteEnd::Unreachable => unreachable::HOST,
        RouteEnd::Prohibited => unreachable::PROHIBITED,
        RouteEnd::Dropped | RouteEnd::NotEnabled => return None,
    };
    Some(IcmpErrorRequest { kind: kind::DESTINATION_UNREACHABLE, code, detail: 0 })
}

struct Ip4Drop {
    tables: IpTables,
    error: NodeId,
}

impl Node for Ip4Drop {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| {
            if self.tables.interfaces.table4(packet.rx) == NOT_ENABLED {
                return Err(RouteEnd::NotEnabled);
            }
            let end = packet.handed_over::<RouteEnd>();
            let answer = answer(end).ok_or(end)?;
            cx.count(end, 1);
            packet.hand_over(answer);
            Ok(self.error)
        });
    }
}

/// The declaration.
pub(crate) fn spec(tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::new(nodes::ip4::DROP, "Drops what no route takes", move |wiring| {
        Box::new(Ip4Drop { tables: tables.clone(), error: wiring.node(nodes::ip4::ICMP_ERROR) })
    })
    .reasons::<RouteEnd>()
    .describe(|record, names| {
        format!(
            "{}, to {}",
            quiver_forwarding::ip4::describe(record.bytes()),
            names.node(record.next)
        )
    })
}
