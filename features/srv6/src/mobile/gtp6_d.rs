//! End.M.GTP6.D and End.M.GTP6.D.Di (RFC 9433 §6.3, §6.4): GTP-U over IPv6 to a local SID goes on
//! as SRv6.

use std::net::Ipv6Addr;
use std::sync::Arc;

use quiver_control::{Args, IpPrefix as Written, Refusal};
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::StageContext;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Engine, NodeId, Packet};
use quiver_encap::WorkerEncapEntries;
use quiver_forwarding::fib::Family;
use quiver_tables::{CountedLines, GroupId};
use quiver_wire::checksum::Sum;
use quiver_wire::ip6::address::{is_link_local, is_unicast};
use quiver_wire::{Header, Ip6Header, IpProtocol};

use super::args::SESSION_PREFIX_MAX;
use super::decapsulate::{Came, Decapsulation};
use super::encap_template::{self, EncapTemplate, Payload, SEGMENTS_MAX, Source};
use super::gateway_entries::{self, GatewayEntries};
use super::lookup_keys::LookupKeys;
use super::prefix_of;
use super::{g_pdu, gtpu_message};
use crate::endpoint::lookup_node::{HasLookup, LookupNode};
use crate::endpoint::next_nodes::{Good, NextNodes};
use crate::endpoint::reasons::{Bad, LocalSidDrop};
use crate::endpoint::sid_entry::SidEntryRef;
use crate::endpoint::slow_path::Upper;
use crate::endpoint::table_references::TableReferences;
use crate::local_sids::{Behavior, Held, Kind, Names, Place};

/// The node.
pub(crate) const NODE: &str = "sr-localsid-gtp6-d";
/// Where the addresses of an IPv6 header begin.
const ADDRESSES_AT: usize = 8;

/// The control side.
#[derive(Debug)]
struct EndMGtp6D {
    recipe: EncapTemplate,
    /// The operator's number.
    table: u32,
    tables: TableReferences,
    rows: Option<GatewayEntries>,
}

impl Behavior for EndMGtp6D {
    fn words(&self, _: &Names<'_>) -> String {
        let name = if self.recipe.drop_in { "end.m.gtp6.d.di" } else { "end.m.gtp6.d" };
        let (sid, payload) = (self.recipe.sid, self.recipe.payload.words());
        let mut words =
            format!("{name} {}/{}{payload}", Ipv6Addr::from_bits(sid.first()), sid.len());
        if let Source::Fixed(source) = self.recipe.source {
            words += &format!(" source {source}");
        }
        if self.table != 0 {
            words += &format!(" fib-table {}", self.table);
        }
        self.recipe.path.iter().fold(words, |words, segment| words + &format!(" next {segment}"))
    }

    fn hold(&mut self, engine: &mut Engine, _: Place) -> Result<Held, Refusal> {
        let node = engine
            .node_id(NODE)
            .ok_or_else(|| Refusal::new("the node of End.M.GTP6.D is not built in"))?;
        let table = self.tables.hold(engine, Family::Ip6, self.table)?;
        match gateway_entries::add(engine, &self.recipe, table) {
            Ok(rows) => {
                self.rows = Some(rows);
                Ok(Held { node, words: [rows.packets.into(), 0, 0, 0] })
            }
            Err(refused) => {
                self.tables.release(engine);
                Err(refused)
            }
        }
    }

    fn release(&mut self, engine: &mut Engine) {
        if let Some(rows) = self.rows.take() {
            gateway_entries::retire(engine, rows);
        }
        self.tables.release(engine);
    }
}

/// `sr-localsid-gtp6-d`, a packet's part of it.
pub struct MobileToSegments6 {
    decapsulation: Decapsulation,
}

impl MobileToSegments6 {
    /// The keys of a packet; nothing for one that takes the slow path.
    #[inline(always)]
    fn ask(&self, line: SidEntryRef<'_>, packet: &mut Packet) -> Option<LookupKeys> {
        let bytes = packet.bytes();
        let header = Ip6Header::overlay(bytes)?;
        let plain =
            (header.next_header() == IpProtocol::UDP) & packet.has_none(PacketFlags::CHAINED);
        if !plain {
            return None;
        }
        let is_checked = packet.has(PacketFlags::L4_CHECKSUM_GOOD);
        let read = g_pdu::read(bytes, ADDRESSES_AT, Ip6Header::LEN, is_checked)?;
        self.decapsulation.ask(line.0.word(0) as u32, header.hop_limit(), None, read)
    }
}

impl HasLookup<LookupKeys> for MobileToSegments6 {
    const NODE: &'static str = NODE;
    type Sid = ();

    fn next_nodes(&self) -> &NextNodes {
        &self.decapsulation.next_nodes
    }

    #[inline(always)]
    fn sid(&self, _: SidEntryRef<'_>) {}

    #[inline(always)]
    fn lookup_key(
        &self,
        line: SidEntryRef<'_>,
        (): (),
        _: &mut Good,
        packet: &mut Packet,
    ) -> LookupKeys {
        self.ask(line, packet).unwrap_or_default()
    }

    #[inline(always)]
    fn on(&self, asking: LookupKeys, found: GroupId, packet: &mut Packet) -> Option<NodeId> {
        let line = self.next_nodes().entry(packet);
        let bytes = packet.bytes();
        let came = Came::by_ip6(Ip6Header::overlay(bytes)?);
        let (length, port) = (bytes.len(), g_pdu::source_port(bytes, Ip6Header::LEN));
        let row = line.0.word(0) as u32;
        let next = self.decapsulation.go(row, (came, port), asking, found, packet)?;
        self.decapsulation.next_nodes.good(line.0, length);
        Some(next)
    }

    fn slow_path(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad> {
        let header = *Ip6Header::overlay(packet.bytes()).ok_or(LocalSidDrop::Truncated)?;
        let upper = match header.next_header() {
            protocol @ IpProtocol::UDP => {
                Upper { protocol, at: Ip6Header::LEN, is_fragment: false }
            }
            _ => self.decapsulation.next_nodes.last(context, packet)?,
        };
        if !upper.is_inner(IpProtocol::UDP) || !gtpu_message::is_to_gtpu(packet, upper.at) {
            return self.decapsulation.next_nodes.upper(context, line, upper, packet);
        }
        let bytes = packet.length();
        let pseudo = |length: u16| {
            Sum::pseudo6(header.source(), header.destination(), IpProtocol::UDP, length.into())
        };
        let arrived = gtpu_message::read(packet, upper.at, pseudo)?;
        let row = line.0.word(0) as u32;
        let next =
            self.decapsulation.send(context, row, &Came::by_ip6(&header), &arrived, packet)?;
        self.decapsulation.next_nodes.good(line.0, bytes);
        Ok(next)
    }
}

/// The declaration of the node.
pub(super) fn spec(lines: &Arc<CountedLines>, rows: &Arc<[Arc<WorkerEncapEntries>]>) -> NodeSpec {
    let (lines, rows) = (lines.clone(), rows.clone());
    NodeSpec::look_up("End.M.GTP6.D: GTP-U over IPv6 to SRv6", move |wiring| {
        LookupNode::new(MobileToSegments6 {
            decapsulation: Decapsulation::new(wiring, &lines, &rows),
        })
    })
    .describe(crate::endpoint::description::record)
}

/// The segments behind the words `next`.
pub(super) fn path_of(args: &Args<'_>) -> Result<Vec<Ipv6Addr>, Refusal> {
    let path = args.groups("next").map(|next| {
        let segment: Ipv6Addr = next.get("segment")?;
        if is_unicast(segment) && !is_link_local(segment) {
            return Ok(segment);
        }
        Err(next.refuse(
            "segment",
            format!("{segment} cannot be a segment: it is no unicast address that is routed"),
        ))
    });
    let path = path.collect::<Result<Vec<_>, Refusal>>()?;
    if path.len() > SEGMENTS_MAX {
        let what =
            format!("{} segments are too many: {SEGMENTS_MAX} can stand in front", path.len());
        return Err(Refusal::new(what).remedy("an SR policy's binding SID for some of them"));
    }
    Ok(path)
}

fn make(_: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    let written = args.get::<Written>("sr-prefix")?;
    let sid = prefix_of(args, "sr-prefix", written, SESSION_PREFIX_MAX, "Args.Mob.Session")?;
    let path = path_of(args)?;
    let recipe = EncapTemplate {
        sid,
        path,
        source: args.optional("source")?.map_or(Source::AsCame, Source::Fixed),
        payload: Payload::of(args)?,
        drop_in: args.get::<&str>("behavior")? == "end.m.gtp6.d.di" || args.has("drop-in"),
        has_ip4: false,
    };
    let table = args.or("lookup-table", 0)?;
    Ok(Box::new(EndMGtp6D { recipe, table, tables: TableReferences::default(), rows: None }))
}

/// What the command knows.
pub(super) fn kinds() -> [Kind; 2] {
    let words = format!(
        "<sr-prefix:prefix6> {{{} [source <source:ip6>] [fib-table <lookup-table:u32>] [drop-in]}} \
         [(next <segment:ip6>)...]",
        encap_template::SYNTAX
    );
    let syntax: &'static str = words.leak();
    [
        Kind {
            name: "end.m.gtp6.d",
            syntax,
            help: "GTP-U over IPv6 goes on as SRv6, the session in the SID behind this prefix (RFC \
                   9433 §6.3)",
            words: &[
                ("nhtype", "what users' packets are; without it, what the first bits of each say"),
                ("source", "the outer source; without it, packets keep theirs"),
                ("drop-in", "GTP-U goes on behind SRv6: as end.m.gtp6.d.di"),
                ("next", "a segment before the SID"),
            ],
            example: "end.m.gtp6.d fc00:0:2::/48 nhtype ipv4",
            make,
        },
        Kind {
            name: "end.m.gtp6.d.di",
            syntax,
            help: "as end.m.gtp6.d, and the destination stands behind the SID (RFC 9433 §6.4)",
            words: &[],
            example: "end.m.gtp6.d.di fc00:0:2::/48 source fc00:0:1::1 next fc00:0:3::1",
            make,
        },
    ]
}
