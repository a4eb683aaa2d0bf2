//! `det44-own-errors`: ICMP errors that the router makes about packets that it has translated
//! already. They get to who sent the packet, and quote it as it was sent (RFC 5508 REQ-4 and -5).

use std::sync::Arc;

use quiver_core::graph::arc::ArcId;
use quiver_core::graph::node::{Never, Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::handover::TableIndex;
use quiver_forwarding::nodes;
use quiver_translation::own_errors::{DET44, next};

use crate::tables::Shared;
use crate::translator::Translator;

/// The node's name.
pub(crate) const OWN_ERRORS: &str = "det44-own-errors";

struct OwnErrors {
    translator: Translator,
    own: NodeId,
    /// Where errors go that are about packets of no session.
    others: NodeId,
    lookup_in_table: NodeId,
}

impl OwnErrors {
    fn decide(&self, cx: &Context<'_>, packet: &mut Packet) -> NodeId {
        let Some(slots) = self.translator.shared.slots() else { return self.others };
        let state = self.translator.interface_state(cx, packet.rx, self.own);
        let around = (self.translator.shared.rules(cx.pass), &state);
        let table = self
            .translator
            .error_from_outside(packet, around, slots)
            .or_else(|_| self.translator.error_about_inside(packet, around, slots));
        match table {
            Ok(table) => {
                packet.hand_over(TableIndex(table));
                self.lookup_in_table
            }
            Err(_) => self.others,
        }
    }
}

impl Node for OwnErrors {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| Ok::<_, Never>(self.decide(cx, packet)));
    }
}

/// The declaration.
pub(crate) fn spec(arc: ArcId, shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    let help = "Translates ICMP errors of the router about packets that DET44 has translated";
    NodeSpec::new(OWN_ERRORS, help, move |wiring| {
        Box::new(OwnErrors {
            translator: Translator::new(&shared, arc, wiring),
            own: wiring.id,
            others: next(wiring, DET44),
            lookup_in_table: wiring.node(nodes::ip4::LOOKUP_IN_TABLE),
        })
    })
    .describe(|record, names| format!("to {}", names.node(record.next)))
}
