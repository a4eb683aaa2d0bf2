//! `mpls-lookup-in-table`: the top label goes, and the next one is looked up in the table that the
//! route names.

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::mpls::describe;
use quiver_forwarding::nodes;
use quiver_wire::mpls::ENTRY_BYTES;

use crate::handover::PoppedInto;
use crate::lookup::LabelLookUp;
use crate::reasons::MplsDrop;
use crate::stack::{Entry, top, write_into_next};

struct LookupInTable(LabelLookUp);

impl LookupInTable {
    fn decide(&self, packet: &mut Packet) -> Result<NodeId, MplsDrop> {
        if !packet.turn() {
            return Err(MplsDrop::Loop);
        }
        let PoppedInto { table, is_uniform } = packet.handed_over();
        let entry = Entry(top(packet).ok_or(MplsDrop::Truncated)?);
        if entry.is_bottom() {
            return Err(MplsDrop::UnknownPayload);
        }
        if !packet.pull(ENTRY_BYTES) {
            return Err(MplsDrop::Truncated);
        }
        packet.l2_bytes = 0;
        let next = Entry(top(packet).ok_or(MplsDrop::Truncated)?);
        if next.ttl() <= 1 {
            return Err(MplsDrop::TtlExpired);
        }
        if is_uniform {
            write_into_next(entry, next, packet);
        }
        let table = table.ok_or(MplsDrop::NoRoute)?;
        self.0.look_up(table, packet)
    }
}

impl Node for LookupInTable {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(packet));
    }
}

/// The declaration.
pub(crate) fn spec() -> NodeSpec {
    NodeSpec::new(
        nodes::mpls::LOOKUP_IN_TABLE,
        "Takes the top label off, and looks the next one up in another table",
        |wiring| Box::new(LookupInTable(LabelLookUp::new(wiring))),
    )
    .reasons::<MplsDrop>()
    .describe(|record, names| format!("{} → {}", describe(record.bytes()), names.node(record.next)))
}
