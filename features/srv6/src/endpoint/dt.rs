//! End.DT4, End.DT6 and End.DT46 (RFC 8986 §4.6 to §4.8): the inner packet is looked up in a table
//! that the SID names.

use std::sync::Arc;

use quiver_control::{Args, Refusal};
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::StageContext;
use quiver_core::{Engine, InterfaceId, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{NOT_ENABLED, take_hop};
use quiver_forwarding::nodes;
use quiver_tables::{CountedLines, GroupId};
use quiver_wire::IpProtocol;

use super::inner_packet::parse_inner;
use super::lookup_keys::{self, LookupKey};
use super::lookup_node::{HasLookup, LookupNode};
use super::next_nodes::{Good, NextNodes};
use super::reasons::Bad;
use super::sid_entry::{SidEntry, SidEntryRef};
use super::table_references::TableReferences;
use crate::local_sids::{Behavior, Held, Kind, Names, Place};

/// The node.
pub(crate) const NODE: &str = "sr-localsid-dt";

/// The control side.
#[derive(Debug)]
struct EndDt {
    name: &'static str,
    families: &'static [Family],
    /// The operator's number.
    table: u32,
    held: TableReferences,
}

impl Behavior for EndDt {
    fn words(&self, _: &Names<'_>) -> String {
        format!("{} {}", self.name, self.table)
    }

    fn hold(&mut self, engine: &mut Engine, _: Place) -> Result<Held, Refusal> {
        let node = engine
            .node_id(NODE)
            .ok_or_else(|| Refusal::new("the node of End.DT4 is not built in"))?;
        let mut entry = SidEntry { six: NOT_ENABLED, four: NOT_ENABLED, ..SidEntry::default() };
        for family in self.families {
            let table = self.held.hold(engine, *family, self.table)?;
            match family {
                Family::Ip4 => entry.four = table,
                Family::Ip6 => entry.six = table,
            }
        }
        Ok(Held { node, words: entry.words() })
    }

    fn release(&mut self, engine: &mut Engine) {
        self.held.release(engine);
    }
}

/// `sr-localsid-dt`.
pub type DecapsulateLookUp = LookupNode<InnerDestination, LookupKey>;

/// HasLookup for the inner destination.
pub struct InnerDestination {
    next_nodes: NextNodes,
    /// The nodes by which packets leave the router straight.
    leaving: [NodeId; 2],
}

impl InnerDestination {
    /// The inner packet goes on. If it does not leave straight, the router itself may have to
    /// answer its sender, who is behind the table: then it came in by an interface of that table.
    #[inline(always)]
    fn go(&self, next: NodeId, family: Family, table: u32, packet: &mut Packet) -> NodeId {
        if !self.leaving.contains(&next) {
            self.say_by(family, table, packet);
        }
        next
    }

    #[cold]
    #[inline(never)]
    fn say_by(&self, family: Family, table: u32, packet: &mut Packet) {
        let icmp_source = self.next_nodes.tables.interfaces.icmp_source(family, table);
        if icmp_source != InterfaceId::NONE {
            let _ = packet.take_carried();
            packet.rx = icmp_source;
        }
    }
}

impl HasLookup<LookupKey> for InnerDestination {
    const NODE: &'static str = NODE;
    const SORTS: bool = true;
    /// The tables of the two families.
    type Sid = (u32, u32);

    #[inline(always)]
    fn next_nodes(&self) -> &NextNodes {
        &self.next_nodes
    }

    #[inline(always)]
    fn sid(&self, line: SidEntryRef<'_>) -> (u32, u32) {
        (line.four(), line.six())
    }

    #[inline(always)]
    fn lookup_key(
        &self,
        _: SidEntryRef<'_>,
        (four, six): (u32, u32),
        good: &mut Good,
        packet: &mut Packet,
    ) -> LookupKey {
        let bytes = packet.length();
        let taken = (four != NOT_ENABLED, six != NOT_ENABLED);
        let Some(inner) = parse_inner(packet, taken) else { return LookupKey::default() };
        good.add(bytes);
        LookupKey::inside(inner, four, six)
    }

    #[inline(always)]
    fn on(&self, lookup_key: LookupKey, found: GroupId, packet: &mut Packet) -> Option<NodeId> {
        let next = lookup_key.choose(&self.next_nodes.tables, found, packet);
        Some(self.go(next, lookup_key.family(), lookup_key.table(), packet))
    }

    #[inline(always)]
    fn on_together(&self, found: &[GroupId], packets: &mut [Packet]) -> Option<NodeId> {
        let hop = lookup_keys::one_hop(&self.next_nodes.tables, found)
            .filter(|hop| self.leaving.contains(&hop.next))?;
        Some(take_hop(hop, packets))
    }

    fn slow_path(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad> {
        let (upper, came) = (self.next_nodes.last(context, packet)?, packet.on_wire());
        if upper.is_inner(IpProtocol::IPV4) && line.four() != NOT_ENABLED {
            self.next_nodes.expose4(upper.at, packet)?;
            self.next_nodes.good_on_wire(line.0, came);
            let next = self.next_nodes.look_up4(line.four(), packet);
            return Ok(self.go(next, Family::Ip4, line.four(), packet));
        }
        if upper.is_inner(IpProtocol::IPV6) && line.six() != NOT_ENABLED {
            self.next_nodes.expose6(upper.at, packet)?;
            self.next_nodes.good_on_wire(line.0, came);
            let next = self.next_nodes.look_up6(line.six(), packet);
            return Ok(self.go(next, Family::Ip6, line.six(), packet));
        }
        self.next_nodes.upper(context, line, upper, packet)
    }
}

/// The declaration of the node.
pub(crate) fn spec(lines: &Arc<CountedLines>) -> NodeSpec {
    let lines = lines.clone();
    NodeSpec::look_up("End.DT4, End.DT6, End.DT46: inner packets by a table", move |wiring| {
        for name in [
            nodes::ip4::REWRITE,
            nodes::ip4::ARP,
            nodes::ip4::GLEAN,
            nodes::ip4::LOCAL,
            nodes::ip4::DROP,
            nodes::ip6::GLEAN,
        ] {
            wiring.node(name);
        }
        let leaving = [wiring.node(nodes::ip4::REWRITE), wiring.node(nodes::ip6::REWRITE)];
        LookupNode::new(InnerDestination { next_nodes: NextNodes::new(wiring, &lines), leaving })
    })
    .takes_offloads()
    .describe(super::description::record)
}

/// End.DT4, End.DT6 or End.DT46 by the tables of a number.
pub(crate) fn dt(name: &'static str, families: &'static [Family], table: u32) -> Box<dyn Behavior> {
    Box::new(EndDt { name, families, table, held: TableReferences::default() })
}

fn make(
    args: &Args<'_>,
    name: &'static str,
    families: &'static [Family],
) -> Result<Box<dyn Behavior>, Refusal> {
    Ok(dt(name, families, args.get("table")?))
}

fn make4(_: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    make(args, "end.dt4", &[Family::Ip4])
}

fn make6(_: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    make(args, "end.dt6", &[Family::Ip6])
}

fn make46(_: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    make(args, "end.dt46", &[Family::Ip4, Family::Ip6])
}

/// What the command knows.
pub(crate) const KINDS: [Kind; 3] = [
    Kind {
        name: "end.dt4",
        syntax: "<table:u32>",
        help: "inner IPv4 packets by the routes of this table",
        words: &[],
        example: "end.dt4 0",
        make: make4,
    },
    Kind {
        name: "end.dt6",
        syntax: "<table:u32>",
        help: "inner IPv6 packets by the routes of this table",
        words: &[],
        example: "end.dt6 0",
        make: make6,
    },
    Kind {
        name: "end.dt46",
        syntax: "<table:u32>",
        help: "inner IPv4 and IPv6 packets by the routes of the tables of this number",
        words: &[],
        example: "end.dt46 0",
        make: make46,
    },
];
