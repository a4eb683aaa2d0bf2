//! `mpls-lookup`: what the route of the top label says (RFC 3031 §3.10). The table is a plain array
//! of next-hop groups by label and bottom bit.

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::fib::LabelTables;
use quiver_forwarding::ip::{IpTables, one_hop, take_hop};
use quiver_forwarding::mpls::describe;
use quiver_forwarding::nodes;
use quiver_tables::GroupId;
use quiver_wire::mpls::{BOTTOM, ENTRY_BYTES, special};

use crate::flow::kept_hash;
use crate::handover::PoppedInto;
use crate::interfaces::MplsInterfaces;
use crate::reasons::MplsDrop;
use crate::stack::{Entry, entry_at, top, version};

/// What a look-up of labels reads, and where it leads.
pub(crate) struct LabelLookUp {
    labels: Arc<LabelTables>,
    tables: Arc<IpTables>,
    interfaces: Arc<MplsInterfaces>,
    pop_lookup: [NodeId; 2],
    next_label: NodeId,
}

impl LabelLookUp {
    /// Of a node, with edges to all nodes that a label's route can lead to.
    pub fn new(wiring: &quiver_core::graph::node::Wiring<'_>) -> LabelLookUp {
        for name in TARGETS {
            wiring.node(name);
        }
        LabelLookUp {
            labels: wiring.shared(),
            tables: wiring.shared(),
            interfaces: wiring.shared(),
            pop_lookup: [wiring.node(nodes::mpls::POP_IP4), wiring.node(nodes::mpls::POP_IP6)],
            next_label: wiring.node(nodes::mpls::LOOKUP_IN_TABLE),
        }
    }

    /// Where a packet goes by its top label, in a table.
    pub fn look_up(&self, table: u32, packet: &mut Packet) -> Result<NodeId, MplsDrop> {
        let entry = top(packet).ok_or(MplsDrop::Truncated)?;
        let found = self.labels.get(table, LabelTables::place(entry));
        self.go(table, found, packet)
    }

    /// Where a packet goes for whose top label a group was found.
    #[inline(always)]
    fn go(&self, table: u32, found: GroupId, packet: &mut Packet) -> Result<NodeId, MplsDrop> {
        if found == GroupId(0) {
            return self.without_route(table, packet);
        }
        let word = self.tables.groups.word(found);
        let hop = match word.is_single() {
            true => word.hop(),
            false => self.tables.groups.choose(word, kept_hash(packet)),
        };
        Ok(hop.route(packet))
    }

    /// A special-purpose label, a label that only has a route as the last one of a stack in front
    /// of an entropy label, or one without a route.
    #[cold]
    #[inline(never)]
    fn without_route(&self, table: u32, packet: &mut Packet) -> Result<NodeId, MplsDrop> {
        let entry = Entry(top(packet).ok_or(MplsDrop::Truncated)?);
        let label = entry.label();
        if label > special::LAST {
            return self.in_front_of_entropy(table, entry, packet);
        }
        match label {
            special::IP4_EXPLICIT_NULL | special::IP6_EXPLICIT_NULL if entry.is_bottom() => {
                packet.hand_over(PoppedInto::OF_RX);
                Ok(self.pop_lookup[usize::from(label == special::IP6_EXPLICIT_NULL)])
            }
            // It may stand anywhere in a stack (RFC 4182 §3).
            special::IP4_EXPLICIT_NULL | special::IP6_EXPLICIT_NULL => {
                packet.hand_over(PoppedInto::labels(table));
                Ok(self.next_label)
            }
            special::ROUTER_ALERT => Err(MplsDrop::RouterAlert),
            special::ENTROPY_INDICATOR => self.entropy(table, packet),
            _ => Err(MplsDrop::SpecialLabel),
        }
    }

    /// The indicator is on top: it goes with its label (RFC 6790 §4.2).
    fn entropy(&self, table: u32, packet: &mut Packet) -> Result<NodeId, MplsDrop> {
        let entropy = Entry(entry_at(packet.bytes(), 1).ok_or(MplsDrop::Truncated)?);
        let indicator = Entry(top(packet).ok_or(MplsDrop::Truncated)?);
        if indicator.is_bottom() {
            return Err(MplsDrop::SpecialLabel);
        }
        // The entropy label is the last one to be taken off: as an explicit null.
        if !packet.pull(ENTRY_BYTES) {
            return Err(MplsDrop::Truncated);
        }
        if !entropy.is_bottom() {
            packet.hand_over(PoppedInto::labels(table));
            return Ok(self.next_label);
        }
        packet.hand_over(PoppedInto::OF_RX);
        match version(packet.bytes().get(ENTRY_BYTES..).unwrap_or_default()) {
            4 => Ok(self.pop_lookup[0]),
            6 => Ok(self.pop_lookup[1]),
            _ => Err(MplsDrop::UnknownPayload),
        }
    }

    /// A label has a route only as the last one, and an entropy label is all that is behind it:
    /// both go, and the label is the last one (RFC 6790 §4.2).
    fn in_front_of_entropy(
        &self,
        table: u32,
        entry: Entry,
        packet: &mut Packet,
    ) -> Result<NodeId, MplsDrop> {
        let second = entry_at(packet.bytes(), 1).map(Entry);
        let third = entry_at(packet.bytes(), 2).map(Entry);
        let is_entropy = second.is_some_and(|second| {
            second.label() == special::ENTROPY_INDICATOR && !second.is_bottom()
        });
        if entry.is_bottom() || !is_entropy || !third.is_some_and(Entry::is_bottom) {
            return Err(MplsDrop::NoRoute);
        }
        let last = entry.0 | BOTTOM;
        let found = self.labels.get(table, LabelTables::place(last));
        if found == GroupId(0) {
            return Err(MplsDrop::NoRoute);
        }
        let flow = kept_hash(packet);
        if !packet.pull(2 * ENTRY_BYTES) || !crate::stack::write_at(packet, 0, last) {
            return Err(MplsDrop::Truncated);
        }
        packet.hash = flow;
        self.go(table, found, packet)
    }
}

/// The nodes that a label's route can lead to.
const TARGETS: [&str; 11] = [
    nodes::mpls::SWAP,
    nodes::mpls::POP,
    nodes::mpls::POP_IP4,
    nodes::mpls::POP_IP6,
    nodes::mpls::LOOKUP_IN_TABLE,
    nodes::mpls::INTERFACE_RX,
    nodes::mpls::FRAME_RX,
    nodes::mpls::DROP,
    nodes::mpls::CONFIRM_NEIGHBOR,
    nodes::mpls::ADJACENCY_COUNTER,
    nodes::mpls::OUTPUT,
];

/// `mpls-lookup`.
struct MplsLookup(LabelLookUp);

impl LookUp for MplsLookup {
    const NAME: &'static str = nodes::mpls::LOOKUP;
    type Reason = MplsDrop;
    /// The place of the label in a table.
    type Key = u32;
    type Found = GroupId;
    /// The interface's label table.
    type InterfaceState = u32;

    fn interface_state(&self, _: &Context<'_>, rx: InterfaceId) -> u32 {
        self.0.interfaces.table(rx)
    }

    #[inline(always)]
    fn key(&self, _: u32, packet: &mut Packet) -> u32 {
        LabelTables::place(top(packet).unwrap_or(0))
    }

    #[inline(always)]
    fn find(&self, _: Variant, table: u32, keys: &[u32], found: &mut [GroupId]) {
        for (key, found) in keys.iter().zip(found.iter_mut()) {
            *found = self.0.labels.get(table, *key);
        }
        self.0.tables.groups.prefetch_found(found);
    }

    #[inline(always)]
    fn resolve_all(
        &self,
        _: StageContext<'_>,
        _: u32,
        found: &[GroupId],
        packets: &mut [Packet],
    ) -> Option<NodeId> {
        if found.first() == Some(&GroupId(0)) {
            return None;
        }
        one_hop(&self.0.tables.groups, found).map(|hop| take_hop(hop, packets))
    }

    #[inline(always)]
    fn resolve(
        &self,
        _: StageContext<'_>,
        table: u32,
        _: u32,
        found: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, MplsDrop> {
        self.0.go(table, found, packet)
    }
}

/// The declaration.
pub(crate) fn spec() -> NodeSpec {
    NodeSpec::look_up("Finds the route of the top label", |wiring| {
        MplsLookup(LabelLookUp::new(wiring))
    })
    .describe(|record, names| format!("{} → {}", describe(record.bytes()), names.node(record.next)))
}
