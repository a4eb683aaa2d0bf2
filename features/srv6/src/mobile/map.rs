//! End.MAP (RFC 9433 §6.2): the destination becomes another SID, which is looked up.

use std::net::Ipv6Addr;
use std::sync::Arc;

use quiver_control::{Args, IpPrefix as Written, Refusal};
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::StageContext;
use quiver_core::{Engine, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_tables::prefix::Ip6Prefix;
use quiver_tables::{CountedLines, GroupId};
use quiver_wire::{Header, Ip6Header};

use super::lookup_keys::LookupKeys;
use super::prefix_of;
use crate::endpoint::lookup_node::{HasLookup, LookupNode};
use crate::endpoint::next_nodes::{Good, NextNodes};
use crate::endpoint::reasons::{Bad, LocalSidDrop, TIME_EXCEEDED};
use crate::endpoint::sid_entry::SidEntryRef;
use crate::endpoint::table_references::TableReferences;
use crate::local_sids::{Behavior, Held, Kind, Names, Place};

/// The node.
pub(crate) const NODE: &str = "sr-localsid-map";

/// The control side.
#[derive(Debug)]
struct EndMap {
    /// What packets' destinations begin with afterwards; the bits behind stay: arguments.
    to: Ip6Prefix,
    /// The operator's number.
    table: u32,
    tables: TableReferences,
}

impl Behavior for EndMap {
    fn words(&self, _: &Names<'_>) -> String {
        let to = Ipv6Addr::from_bits(self.to.first());
        let to =
            if self.to.len() == 128 { to.to_string() } else { format!("{to}/{}", self.to.len()) };
        match self.table {
            0 => format!("end.map {to}"),
            table => format!("end.map {to} fib-table {table}"),
        }
    }

    fn hold(&mut self, engine: &mut Engine, _: Place) -> Result<Held, Refusal> {
        let node = engine
            .node_id(NODE)
            .ok_or_else(|| Refusal::new("the node of End.MAP is not built in"))?;
        let table = self.tables.hold(engine, Family::Ip6, self.table)?;
        let to = self.to.first();
        let parts = u64::from(table) << 8 | u64::from(self.to.len());
        Ok(Held { node, words: [(to >> 64) as u64, to as u64, parts, 0] })
    }

    fn release(&mut self, engine: &mut Engine) {
        self.tables.release(engine);
    }
}

/// `sr-localsid-map`, a packet's part of it.
pub struct MapSegment {
    next_nodes: NextNodes,
}

impl MapSegment {
    /// The keys of a packet; nothing for one that takes the slow path.
    #[inline(always)]
    fn ask(
        &self,
        line: SidEntryRef<'_>,
        good: &mut Good,
        packet: &mut Packet,
    ) -> Option<LookupKeys> {
        let bytes = packet.length();
        let header =
            Ip6Header::overlay_mut(packet.bytes_mut()).filter(|header| header.hop_limit() > 1)?;
        let to = u128::from(line.0.word(0)) << 64 | u128::from(line.0.word(1));
        let parts = line.0.word(2);
        let kept = u128::MAX.checked_shr((parts & 0xff) as u32).unwrap_or(0);
        let address = to | header.destination_bits() & kept;
        header.set_destination(Ipv6Addr::from_bits(address));
        packet.hash = 0;
        good.add(bytes);
        Some(LookupKeys {
            address,
            session: 0,
            table: (parts >> 8) as u32,
            at: Ip6Header::LEN as u32,
        })
    }
}

impl HasLookup<LookupKeys> for MapSegment {
    const NODE: &'static str = NODE;
    type Sid = ();

    fn next_nodes(&self) -> &NextNodes {
        &self.next_nodes
    }

    #[inline(always)]
    fn sid(&self, _: SidEntryRef<'_>) {}

    #[inline(always)]
    fn lookup_key(
        &self,
        line: SidEntryRef<'_>,
        (): (),
        good: &mut Good,
        packet: &mut Packet,
    ) -> LookupKeys {
        self.ask(line, good, packet).unwrap_or_default()
    }

    #[inline(always)]
    fn on(&self, _: LookupKeys, found: GroupId, packet: &mut Packet) -> Option<NodeId> {
        Some(self.next_nodes.six(found, packet))
    }

    fn slow_path(
        &self,
        _: StageContext<'_>,
        line: SidEntryRef<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad> {
        if packet.segment_length() < Ip6Header::LEN {
            return Err(LocalSidDrop::Truncated.into());
        }
        let late = Bad::Complain(TIME_EXCEEDED, LocalSidDrop::HopLimit);
        let mut good = Good::default();
        let LookupKeys { address, table, .. } = self.ask(line, &mut good, packet).ok_or(late)?;
        good.count(line.0);
        Ok(self.next_nodes.six(self.next_nodes.tables.ip6.table(table).lookup(address), packet))
    }
}

/// The declaration of the node.
pub(super) fn spec(lines: &Arc<CountedLines>) -> NodeSpec {
    let lines = lines.clone();
    NodeSpec::look_up("End.MAP: to the SID that a SID stands for", move |wiring| {
        LookupNode::new(MapSegment { next_nodes: NextNodes::new(wiring, &lines) })
    })
    .describe(crate::endpoint::description::record)
}

fn make(_: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    let (name, written) = match args.optional::<Ipv6Addr>("mapped")? {
        Some(address) => ("mapped", Written { address: address.into(), length: 128 }),
        None => ("mapped-prefix", args.get::<Written>("mapped-prefix")?),
    };
    let to = prefix_of(args, name, written, 128, "more")?;
    let table = args.or("lookup-table", 0)?;
    Ok(Box::new(EndMap { to, table, tables: TableReferences::default() }))
}

/// What the command knows.
pub(super) const KINDS: [Kind; 1] = [Kind {
    name: "end.map",
    syntax: "(<mapped:ip6>|<mapped-prefix:prefix6>) [fib-table <lookup-table:u32>]",
    help: "the destination becomes this SID; of a prefix, what stands behind it stays (RFC 9433 \
           §6.2)",
    words: &[("fib-table", "the table that what comes of it is looked up in")],
    example: "end.map fc00:0:2::1",
    make,
}];
