//! `ip4-drop`, `ip6-drop`: what no route takes. A destination without a route is answered with "net
//! unreachable" (IPv6: "no route"), one whose route says `unreachable` with "host unreachable"
//! ("reject route"), one whose route says `prohibit` with "communication administratively
//! prohibited"; `via drop` is silent (RFC 792, RFC 1812 §5.2.7.1, RFC 4443 §3.1).

use std::marker::PhantomData;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId};
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily, IpTables, NOT_ENABLED};
use quiver_forwarding::nodes;
use quiver_forwarding::requests::IcmpErrorRequest;
use quiver_forwarding::route_end::RouteEnd;
use quiver_wire::{icmp4, icmp6};

/// The node of a family, and the ICMP errors that it asks for.
pub(crate) trait Unreachable: IpFamily {
    /// The node.
    const NODE: &'static str;
    /// The node that sends ICMP errors.
    const ERROR_NODE: &'static str;
    /// Destination unreachable.
    const KIND: u8;

    /// The code for the sender of a packet without a usable route; none where the route says drop.
    fn code(end: RouteEnd) -> Option<u8>;
}

impl Unreachable for Ip4 {
    const NODE: &'static str = nodes::ip4::DROP;
    const ERROR_NODE: &'static str = nodes::ip4::ICMP_ERROR;
    const KIND: u8 = icmp4::kind::DESTINATION_UNREACHABLE;

    fn code(end: RouteEnd) -> Option<u8> {
        match end {
            RouteEnd::NoRoute => Some(icmp4::unreachable::NETWORK),
            RouteEnd::Unreachable => Some(icmp4::unreachable::HOST),
            RouteEnd::Prohibited => Some(icmp4::unreachable::PROHIBITED),
            RouteEnd::Dropped | RouteEnd::NotEnabled => None,
        }
    }
}

impl Unreachable for Ip6 {
    const NODE: &'static str = nodes::ip6::DROP;
    const ERROR_NODE: &'static str = nodes::ip6::ICMP_ERROR;
    const KIND: u8 = icmp6::kind::DESTINATION_UNREACHABLE;

    fn code(end: RouteEnd) -> Option<u8> {
        match end {
            RouteEnd::NoRoute => Some(icmp6::unreachable::NO_ROUTE),
            RouteEnd::Unreachable => Some(icmp6::unreachable::REJECT),
            RouteEnd::Prohibited => Some(icmp6::unreachable::PROHIBITED),
            RouteEnd::Dropped | RouteEnd::NotEnabled => None,
        }
    }
}

struct RouteDrop<F> {
    tables: IpTables,
    error: NodeId,
    family: PhantomData<F>,
}

impl<F: Unreachable> Node for RouteDrop<F> {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| {
            if F::table_of(&self.tables.interfaces, packet.rx) == NOT_ENABLED {
                return Err(RouteEnd::NotEnabled);
            }
            let end = packet.handed_over::<RouteEnd>();
            let code = F::code(end).ok_or(end)?;
            cx.count(end, 1);
            packet.hand_over(IcmpErrorRequest { kind: F::KIND, code, detail: 0 });
            Ok(self.error)
        });
    }
}

/// The declaration.
pub(crate) fn spec<F: Unreachable>(tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::new(F::NODE, "Drops what no route takes", move |wiring| {
        Box::new(RouteDrop::<F> {
            tables: tables.clone(),
            error: wiring.node(F::ERROR_NODE),
            family: PhantomData,
        })
    })
    .reasons::<RouteEnd>()
    .describe(|record, names| {
        format!("{}, to {}", F::describe(record.bytes()), names.node(record.next))
    })
}
