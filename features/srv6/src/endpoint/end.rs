//! End and End.T (RFC 8986 §4.1, §4.3): to the next segment, which is looked up in the SID's own
//! table, or in another one.

use std::sync::Arc;

use quiver_control::{Args, Refusal};
use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::StageContext;
use quiver_core::{Engine, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::NOT_ENABLED;
use quiver_tables::{CountedLines, GroupId};
use quiver_wire::IpProtocol;

use super::inner_packet::parse_inner;
use super::lookup_keys::LookupKey;
use super::lookup_node::{HasLookup, LookupNode};
use super::next_nodes::{Good, NextNodes};
use super::reasons::Bad;
use super::segments;
use super::sid_entry::{SidEntry, SidEntryRef};
use super::slow_path::Matter;
use super::table_references::TableReferences;
use crate::local_sids::{Behavior, Flavors, Held, Kind, Names, Place};

/// The node.
pub(crate) const NODE: &str = "sr-localsid";

/// The control side.
#[derive(Debug)]
struct End {
    /// Of End.T: the operator's number of the table.
    table: Option<u32>,
    flavors: Flavors,
    held: TableReferences,
}

impl Behavior for End {
    fn words(&self, _: &Names<'_>) -> String {
        let flavors = self.flavors.words();
        self.table
            .map_or_else(|| format!("end{flavors}"), |table| format!("end.t {table}{flavors}"))
    }

    fn hold(&mut self, engine: &mut Engine, place: Place) -> Result<Held, Refusal> {
        let node =
            engine.node_id(NODE).ok_or_else(|| Refusal::new("the node of End is not built in"))?;
        let id = self.table.unwrap_or(place.table_id(engine));
        let six = self.held.hold(engine, Family::Ip6, id)?;
        // Inner IPv4 packets are looked up in the IPv4 table of the same number.
        let four = match self.flavors.has(Flavors::USD) {
            true => self.held.hold(engine, Family::Ip4, id).map_err(|no| {
                no.remedy(format!("`usd` needs it for inner IPv4: ip table add {id}"))
            })?,
            false => NOT_ENABLED,
        };
        let entry =
            SidEntry { flavors: self.flavors.bits().into(), six, four, ..SidEntry::default() };
        Ok(Held { node, words: entry.words() })
    }

    fn release(&mut self, engine: &mut Engine) {
        self.held.release(engine);
    }
}

/// `sr-localsid`.
pub type Endpoint = LookupNode<NextSegment, LookupKey>;

/// HasLookup for the next segment.
pub struct NextSegment {
    pub(crate) next_nodes: NextNodes,
}

impl NextSegment {
    pub(crate) fn new(wiring: &Wiring<'_>, lines: &CountedLines) -> NextSegment {
        NextSegment { next_nodes: NextNodes::new(wiring, lines) }
    }

    /// What is asked for the inner packet, which alone is left, if nothing is unusual about either;
    /// else nothing, and nothing happens (USD: RFC 8986 §4.16.3).
    #[inline(never)]
    pub(crate) fn inner(&self, line: SidEntryRef<'_>, packet: &mut Packet) -> LookupKey {
        if !line.flavors().has(Flavors::USD) {
            return LookupKey::default();
        }
        let bytes = packet.length();
        let Some(inner) = parse_inner(packet, (true, true)) else { return LookupKey::default() };
        self.next_nodes.good(line.0, bytes);
        LookupKey::inside(inner, line.four(), line.six()).inner()
    }
}

impl HasLookup<LookupKey> for NextSegment {
    const NODE: &'static str = NODE;
    /// Does it pop, and which table is asked?
    type Sid = (bool, u32);

    #[inline(always)]
    fn next_nodes(&self) -> &NextNodes {
        &self.next_nodes
    }

    #[inline(always)]
    fn sid(&self, line: SidEntryRef<'_>) -> (bool, u32) {
        (line.flavors().has(Flavors::PSP), line.six())
    }

    #[inline(always)]
    fn lookup_key(
        &self,
        line: SidEntryRef<'_>,
        (pops, six): (bool, u32),
        good: &mut Good,
        packet: &mut Packet,
    ) -> LookupKey {
        let bytes = packet.length();
        let segment = segments::step_if_plain(packet, pops);
        if segment == 0 {
            return self.inner(line, packet);
        }
        good.add(bytes);
        LookupKey::six(six, segment)
    }

    #[inline(always)]
    fn on(&self, lookup_key: LookupKey, found: GroupId, packet: &mut Packet) -> Option<NodeId> {
        Some(self.next_nodes.on(lookup_key, found, packet))
    }

    #[inline(always)]
    fn on_together(&self, found: &[GroupId], packets: &mut [Packet]) -> Option<NodeId> {
        self.next_nodes.six_all(found, packets)
    }

    fn slow_path(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad> {
        let (flavors, came) = (line.flavors(), packet.on_wire());
        match self.next_nodes.matter(context, packet)? {
            Matter::Segments { srh, next } => {
                self.next_nodes.advance(line, srh, next, packet);
                let group = self.next_nodes.tables.ip6.table(line.six()).lookup(next);
                Ok(self.next_nodes.six(group, packet))
            }
            Matter::Upper(upper)
                if upper.is_inner(IpProtocol::IPV6) && flavors.has(Flavors::USD) =>
            {
                self.next_nodes.expose6(upper.at, packet)?;
                self.next_nodes.good_on_wire(line.0, came);
                Ok(self.next_nodes.look_up6(line.six(), packet))
            }
            Matter::Upper(upper)
                if upper.is_inner(IpProtocol::IPV4) && flavors.has(Flavors::USD) =>
            {
                self.next_nodes.expose4(upper.at, packet)?;
                self.next_nodes.good_on_wire(line.0, came);
                Ok(self.next_nodes.look_up4(line.four(), packet))
            }
            Matter::Upper(upper) => self.next_nodes.upper(context, line, upper, packet),
        }
    }
}

/// The declaration of the node.
pub(crate) fn spec(lines: &Arc<CountedLines>) -> NodeSpec {
    let lines = lines.clone();
    NodeSpec::look_up("End, End.T: to the next segment", move |wiring| {
        LookupNode::new(NextSegment::new(wiring, &lines))
    })
    .takes_offloads()
    .describe(super::description::record)
}

/// End, or with a table (the operator's number) End.T.
pub(crate) fn end(table: Option<u32>, flavors: Flavors) -> Box<dyn Behavior> {
    Box::new(End { table, flavors, held: TableReferences::default() })
}

/// Of a command's words.
pub(crate) fn make(_: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    Ok(end(args.optional("table")?, Flavors::of(args)))
}

/// What the command knows.
pub(crate) const KINDS: [Kind; 2] = [
    Kind {
        name: "end",
        syntax: "{[psp] [usp] [usd]}",
        help: "to the next segment",
        words: &[
            ("psp", "take the SRH off when the last segment becomes the active one"),
            ("usp", "take an SRH off in which no segments are left"),
            ("usd", "let an inner packet go on by itself when no segments are left"),
        ],
        example: "end psp usd",
        make,
    },
    Kind {
        name: "end.t",
        syntax: "<table:u32> {[psp] [usp] [usd]}",
        help: "to the next segment, which is looked up in this table",
        words: &[("table", "a forwarding table")],
        example: "end.t 0",
        make,
    },
];
