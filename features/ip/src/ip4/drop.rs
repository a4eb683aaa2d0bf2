//! `ip4-drop`: what no route takes. A destination without a route is answered with "net
//! unreachable"; a route that says `via drop` is silent.

use quiver_core::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId};
use quiver_wire::icmp4::{kind, unreachable};

use crate::error_request::IcmpErrorRequest;
use crate::route_end::RouteEnd;
use crate::tables::{IpTables, NOT_ENABLED};

const NO_ROUTE: IcmpErrorRequest =
    IcmpErrorRequest { kind: kind::DESTINATION_UNREACHABLE, code: unreachable::NETWORK, detail: 0 };

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
            let end = RouteEnd::of(packet.index);
            if end != RouteEnd::NoRoute {
                return Err(end);
            }
            cx.count(RouteEnd::NoRoute, 1);
            packet.index = NO_ROUTE.to_index();
            Ok(self.error)
        });
    }
}

/// The declaration.
pub(crate) fn spec(tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::new("ip4-drop", "Drops what no route takes", move |wiring| {
        Box::new(Ip4Drop { tables: tables.clone(), error: wiring.node("ip4-icmp-error") })
    })
    .reasons::<RouteEnd>()
    .describe(|record, names| format!("{}, to {}", super::words(record.bytes()), names.node(record.next)))
}
