//! `nat44-ed-own-errors`: ICMP errors that the router makes about packets that it has translated
//! already (the link behind takes no packets so long). They get to who sent the packet, and quote
//! it as it was sent (RFC 5508 REQ-4 and -5, RFC 4787 REQ-13).

use std::sync::Arc;

use quiver_core::graph::node::{Never, Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::handover::TableIndex;
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::nodes;
use quiver_translation::own_errors::{NAT44_ED, next};

use crate::icmp_error;
use crate::softwires::encapsulate::ENCAPSULATE;
use crate::softwires::{B4Number, b4_of};
use crate::tables::Shared;

/// The node's name.
pub(crate) const OWN_ERRORS: &str = "nat44-ed-own-errors";

struct OwnErrors {
    shared: Arc<Shared>,
    tables: Arc<IpTables>,
    /// Where errors go that are about packets of no session.
    others: NodeId,
    lookup_in_table: NodeId,
    encapsulate: NodeId,
}

impl OwnErrors {
    /// An error about a packet of no session is as it should be.
    fn decide(&self, cx: &Context<'_>, packet: &mut Packet) -> NodeId {
        let Some(sessions) = self.shared.table().filter(|_| self.shared.sessions() > 0) else {
            return self.others;
        };
        let rules = self.shared.rules(cx.pass);
        let received_in = self.tables.interfaces.table4(packet.rx);
        let mut tables = [rules.outside_table, rules.inside_table, received_in].into_iter();
        let table = tables.find_map(|table| icmp_error::translate(packet, table, sessions).ok());
        match table {
            Some(table) => match b4_of(table) {
                Some(number) => {
                    packet.hand_over(B4Number(number));
                    self.encapsulate
                }
                None => {
                    packet.hand_over(TableIndex(table));
                    self.lookup_in_table
                }
            },
            None => self.others,
        }
    }
}

impl Node for OwnErrors {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| Ok::<_, Never>(self.decide(cx, packet)));
    }
}

/// The declaration.
pub(crate) fn spec(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    let help = "Translates ICMP errors of the router about packets that it has translated";
    NodeSpec::new(OWN_ERRORS, help, move |wiring| {
        Box::new(OwnErrors {
            shared: shared.clone(),
            tables: wiring.shared(),
            others: next(wiring, NAT44_ED),
            lookup_in_table: wiring.node(nodes::ip4::LOOKUP_IN_TABLE),
            encapsulate: wiring.node(ENCAPSULATE),
        })
    })
    .describe(|record, names| format!("to {}", names.node(record.next)))
}
