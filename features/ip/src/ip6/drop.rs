//! `ip6-drop`: what no route takes. A destination without a route is answered with "no route", one
//! whose route says `unreachable` with "reject route", one whose route says `prohibit` with
//! "communication administratively prohibited" (RFC 4443 §3.1); `via drop` is silent.

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId};
use quiver_forwarding::ip::{IpTables, NOT_ENABLED};
use quiver_forwarding::nodes;
use quiver_forwarding::requests::IcmpErrorRequest;
use quiver_forwarding::route_end::RouteEnd;
use quiver_wire::icmp6::{kind, unreachable};

/// What the sender of a packet without a usable route is told; nothing where the route says drop.
fn answer(end: RouteEnd) -> Option<IcmpErrorRequest> {
    let code = match end {
        RouteEnd::NoRoute => unreachable::NO_ROUTE,
        RouteEnd::Unreachable => unreachable::REJECT,
        RouteEnd::Prohibited => unreachable::PROHIBITED,
        RouteEnd::Dropped | RouteEnd::NotEnabled => return None,
    };
    Some(IcmpErrorRequest { kind: kind::DESTINATION_UNREACHABLE, code, detail: 0 })
}

struct Ip6Drop {
    tables: IpTables,
    error: NodeId,
}

impl Node for Ip6Drop {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| {
            if self.tables.interfaces.table6(packet.rx) == NOT_ENABLED {
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
    NodeSpec::new(nodes::ip6::DROP, "Drops what no route takes", move |wiring| {
        Box::new(Ip6Drop { tables: tables.clone(), error: wiring.node(nodes::ip6::ICMP_ERROR) })
    })
    .reasons::<RouteEnd>()
    .describe(|record, names| {
        format!(
            "{}, to {}",
            quiver_forwarding::ip6::describe(record.bytes()),
            names.node(record.next)
        )
    })
}
