//! End.M.GTP4.E (RFC 9433 §6.6): SRv6 to a local SID goes on as GTP-U over IPv4. The SID says to
//! whom and in which tunnel, the source address says from whom.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use quiver_control::{Args, Refusal};
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::StageContext;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Engine, NodeId, Packet, WorkerId};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{Ip4, choose};
use quiver_tables::counted_lines::CountedLine;
use quiver_tables::{CountedLines, GroupId};
use quiver_wire::checksum::Sum;
use quiver_wire::gtpu::Direction;
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol, checksum, ip4};

use super::args::{
    self, IP4_BITS, IP4_PREFIX_MAX, IP4_SESSION_PREFIX_MAX, PORT_BITS, SESSION_BITS, Session,
};
use super::encapsulate::{self, Outgoing, source_port};
use super::lookup_keys::LookupKeys;
use super::{g_pdu, gtpu_header};
use crate::endpoint::inner_packet::parse_inside;
use crate::endpoint::lookup_node::{HasLookup, LookupNode};
use crate::endpoint::next_nodes::{Good, NextNodes};
use crate::endpoint::reasons::{Bad, LocalSidDrop, TIME_EXCEEDED};
use crate::endpoint::sid_entry::SidEntryRef;
use crate::endpoint::slow_path::Upper;
use crate::endpoint::table_references::TableReferences;
use crate::local_sids::{Behavior, Held, Kind, Names, Place};

/// The node.
pub(crate) const NODE: &str = "sr-localsid-gtp4-e";
/// In place of a position: the IPv4 source is a fixed one.
const SOURCE_FIXED: u8 = 0xff;

/// Where the IPv4 source comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// From this bit of the IPv6 source.
    At(u8),
    /// This one.
    Fixed(Ipv4Addr),
}

/// The control side.
#[derive(Debug)]
struct EndMGtp4E {
    source: Source,
    direction: Direction,
    /// The operator's number.
    table: u32,
    tables: TableReferences,
}

impl Behavior for EndMGtp4E {
    fn words(&self, _: &Names<'_>) -> String {
        let mut words = match self.source {
            Source::At(bit) => format!("end.m.gtp4.e v4src_position {bit}"),
            Source::Fixed(source) => format!("end.m.gtp4.e v4src_addr {source}"),
        };
        if self.table != 0 {
            words += &format!(" fib-table {}", self.table);
        }
        words + super::direction_words(self.direction)
    }

    fn hold(&mut self, engine: &mut Engine, place: Place) -> Result<Held, Refusal> {
        let node = engine
            .node_id(NODE)
            .ok_or_else(|| Refusal::new("the node of End.M.GTP4.E is not built in"))?;
        super::check_length(place, IP4_SESSION_PREFIX_MAX, "an IPv4 address and Args.Mob.Session")?;
        let table = self.tables.hold(engine, Family::Ip4, self.table)?;
        let (position, source) = match self.source {
            Source::At(bit) => (bit, 0),
            Source::Fixed(source) => (SOURCE_FIXED, source.to_bits()),
        };
        let is_uplink = u8::from(self.direction == Direction::Uplink);
        let parts = u32::from_le_bytes([place.prefix.len(), position, is_uplink, 0]);
        let two = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        Ok(Held { node, words: [two(table, parts), source.into(), 0, 0] })
    }

    fn release(&mut self, engine: &mut Engine) {
        self.tables.release(engine);
    }
}

/// What tells fragments of different packets apart (RFC 6864 §4.2): one number for each worker,
/// whether the node runs by itself or in the block driver. Workers begin far apart.
#[derive(Clone)]
struct Identification(Arc<[OfWorker]>, usize);

/// Lines of their own.
#[derive(Default)]
#[repr(align(64))]
struct OfWorker(AtomicU16);

impl Identification {
    /// For all workers.
    fn new(workers: usize) -> Identification {
        let first = |worker: usize| OfWorker(AtomicU16::new((worker as u16).wrapping_mul(0x1000)));
        Identification((0..workers.max(1)).map(first).collect(), 0)
    }

    /// As a worker has it.
    fn of(&self, worker: WorkerId) -> Identification {
        Identification(self.0.clone(), worker.index() % self.0.len())
    }

    /// The next one; only the worker whose it is may ask.
    #[inline(always)]
    fn next(&self) -> u16 {
        let Some(OfWorker(own)) = self.0.get(self.1) else { return 0 };
        let identification = own.load(Ordering::Relaxed);
        own.store(identification.wrapping_add(1), Ordering::Relaxed);
        identification
    }
}

/// `sr-localsid-gtp4-e`, a packet's part of it.
pub struct SegmentsToMobile4 {
    next_nodes: NextNodes,
    /// Where GTP-U becomes SRv6 again.
    gateway: NodeId,
    identification: Identification,
}

/// Arguments in the IPv6 addresses of a packet to a SID: IPv4 addresses, session, UDP port.
struct Arguments {
    source: u32,
    destination: u32,
    session: Session,
    source_port: u16,
}

impl Arguments {
    /// `None` when an IPv4 address is not unicast.
    #[inline(always)]
    fn of(line: CountedLine<'_>, header: &Ip6Header) -> Option<Arguments> {
        let [length, position, ..] = (line.word(0) as u32).to_le_bytes();
        let (from, to) = (header.source_bits(), header.destination_bits());
        let behind = length.saturating_add(IP4_BITS as u8);
        let (source, port) = match position {
            SOURCE_FIXED => (line.word(1) as u32, 0),
            _ => {
                let behind = position.saturating_add(IP4_BITS as u8);
                let has_port = u32::from(behind) + PORT_BITS <= 128;
                let port = if has_port { args::read(from, behind, PORT_BITS) as u16 } else { 0 };
                (args::read(from, position, IP4_BITS) as u32, port)
            }
        };
        let arguments = Arguments {
            source,
            destination: args::read(to, length, IP4_BITS) as u32,
            session: Session::from_bits(args::read(to, behind, SESSION_BITS)),
            source_port: source_port(port, header.flow_label()),
        };
        let is_host = |address: u32| ip4::address::is_unicast(Ipv4Addr::from_bits(address));
        (is_host(arguments.source) && is_host(arguments.destination)).then_some(arguments)
    }
}

/// The headers in front of a user's packet: IPv4, UDP and GTP-U.
struct OuterHeaders {
    class: u8,
    hops: u8,
    source: u32,
    destination: u32,
    behind: gtpu_header::UdpGtpuHeaders,
}

impl OuterHeaders {
    /// How many bytes it has.
    #[inline(always)]
    fn len(&self) -> usize {
        Ip4Header::LEN + self.behind.len()
    }

    /// Write it to the first bytes of a packet, word by word. The identification is yet to come.
    #[inline(always)]
    fn write(&self, packet: &mut [u8]) {
        let length = packet.len() as u64 & 0xffff;
        let first = 0x45 << 56 | u64::from(self.class) << 48 | length << 32;
        let second = u64::from(self.hops) << 56
            | u64::from(IpProtocol::UDP.0) << 48
            | u64::from(self.source);
        let sum = Sum::new().quad(first).quad(second).quad(self.destination.into());
        let second = second | u64::from(sum.checksum()) << 32;
        let Some((place, rest)) =
            packet.split_first_chunk_mut::<{ Ip4Header::LEN + gtpu_header::BYTES_MIN }>()
        else {
            return;
        };
        place[..8].copy_from_slice(&first.to_be_bytes());
        place[8..16].copy_from_slice(&second.to_be_bytes());
        place[16..20].copy_from_slice(&self.destination.to_be_bytes());
        if let Some(place) = place.last_chunk_mut() {
            self.behind.write(place, rest);
        }
    }
}

impl SegmentsToMobile4 {
    /// A packet that stays in the router has taken a hop all the same.
    #[inline(always)]
    fn on(&self, next: NodeId, packet: &mut Packet) -> NodeId {
        if next == self.gateway
            && let Some(header) = Ip4Header::overlay_mut(packet.bytes_mut())
        {
            checksum::decrement_ttl(header);
        }
        next
    }

    /// Put IPv4, UDP and GTP-U in front. UDP has no checksum: over IPv4 it needs none (RFC 768).
    #[inline(always)]
    fn put(
        &self,
        arguments: &Arguments,
        out: &Outgoing,
        class: u8,
        hops: u8,
        packet: &mut Packet,
    ) -> Result<(), LocalSidDrop> {
        let (source, destination) =
            (Ipv4Addr::from_bits(arguments.source), Ipv4Addr::from_bits(arguments.destination));
        let header = Ip4Header::new(source, destination, IpProtocol::UDP, hops, out.datagram_len());
        let mut header = header.ok_or(LocalSidDrop::TooLong)?;
        header.traffic_class = class;
        header.set_identification(self.identification.next());
        header.set_checksum(checksum::header_checksum(&header));
        gtpu_header::put(out, Ip4Header::LEN, packet, |place, _| {
            header.write(place).map(|_| ()).map_err(|_| LocalSidDrop::TooLong)
        })
    }
}

impl SegmentsToMobile4 {
    /// The keys of a packet; nothing for one that takes the slow path.
    /// The packet is changed at once: hardly anything depends on where it goes.
    #[inline(always)]
    fn ask(
        &self,
        line: SidEntryRef<'_>,
        good: &mut Good,
        packet: &mut Packet,
    ) -> Option<LookupKeys<true>> {
        let inside = parse_inside(packet);
        let bytes = packet.bytes();
        let header = Ip6Header::overlay(bytes)?;
        let plain = (inside.at != 0)
            & encapsulate::is_payload(inside.protocol)
            & (header.hop_limit() > 1)
            & packet.has_none(PacketFlags::CHAINED);
        if !plain {
            return None;
        }
        let arguments = Arguments::of(line.0, header)?;
        let (length, payload) = (bytes.len(), bytes.len().checked_sub(inside.at)?);
        let session = arguments.session.bits();
        let direction = super::direction_of((line.0.word(0) >> 16) as u8);
        let gtpu = g_pdu::GtpuWords::new(session, direction, payload);
        let front = OuterHeaders {
            class: header.traffic_class(),
            hops: header.hop_limit(),
            source: arguments.source,
            destination: arguments.destination,
            behind: gtpu_header::UdpGtpuHeaders {
                udp: g_pdu::udp(arguments.source_port, gtpu.len() + payload),
                gtpu,
            },
        };
        let is_short = payload + front.len() <= usize::from(u16::MAX);
        if !(is_short && gtpu_header::replace(packet, inside.at, front.len())) {
            return None;
        }
        front.write(packet.bytes_mut());
        good.add(length);
        let (address, table) = (arguments.destination.into(), (line.0.word(0) >> 32) as u32);
        Some(LookupKeys { address, session, table, at: inside.at as u32 })
    }
}

impl HasLookup<LookupKeys<true>> for SegmentsToMobile4 {
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
    ) -> LookupKeys<true> {
        self.ask(line, good, packet).unwrap_or_default()
    }

    #[inline(always)]
    fn on(&self, _: LookupKeys<true>, found: GroupId, packet: &mut Packet) -> Option<NodeId> {
        if let Some(header) = Ip4Header::overlay_mut(packet.bytes_mut()) {
            let identification = self.identification.next();
            header.set_identification(identification);
            header.set_checksum(checksum::update16(header.checksum(), 0, identification));
        }
        let next = choose::<Ip4>(&self.next_nodes.tables.groups, found, packet);
        Some(self.on(next, packet))
    }

    fn slow_path(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad> {
        let header = *Ip6Header::overlay(packet.bytes()).ok_or(LocalSidDrop::Truncated)?;
        let inside = parse_inside(packet);
        let upper = match encapsulate::is_payload(inside.protocol) && inside.at != 0 {
            true => Upper { protocol: inside.protocol, at: inside.at, is_fragment: false },
            false => self.next_nodes.last(context, packet)?,
        };
        let is_message = upper.protocol == IpProtocol::NO_NEXT_HEADER;
        if upper.is_fragment || !(is_message || encapsulate::is_payload(upper.protocol)) {
            return self.next_nodes.upper(context, line, upper, packet);
        }
        if header.hop_limit() <= 1 {
            return Err(Bad::Complain(TIME_EXCEEDED, LocalSidDrop::HopLimit));
        }
        let arguments = Arguments::of(line.0, &header).ok_or(LocalSidDrop::AddressWrong)?;
        let bytes = packet.length();
        let out = if is_message {
            let srh = encapsulate::srh_of(packet)?;
            context.count(LocalSidDrop::Carried, 1);
            encapsulate::leave_elements(packet, srh, arguments.session, arguments.source_port)?
        } else {
            let direction = super::direction_of((line.0.word(0) >> 16) as u8);
            let payload = bytes.checked_sub(upper.at).ok_or(LocalSidDrop::Truncated)?;
            let out =
                encapsulate::g_pdu(arguments.session, direction, arguments.source_port, payload);
            encapsulate::expose(packet, upper.at)?;
            out
        };
        self.put(&arguments, &out, header.traffic_class(), header.hop_limit(), packet)?;
        self.next_nodes.good(line.0, bytes);
        let next = self.next_nodes.look_up4((line.0.word(0) >> 32) as u32, packet);
        Ok(self.on(next, packet))
    }
}

/// The declaration of the node.
pub(super) fn spec(lines: &Arc<CountedLines>, workers: usize) -> NodeSpec {
    let (lines, identification) = (lines.clone(), Identification::new(workers));
    NodeSpec::look_up("End.M.GTP4.E: SRv6 to GTP-U over IPv4", move |wiring| {
        LookupNode::new(SegmentsToMobile4 {
            next_nodes: NextNodes::new(wiring, &lines),
            gateway: wiring.node(super::gtp4_d::NODE),
            identification: identification.of(wiring.worker),
        })
    })
    .describe(crate::endpoint::description::record)
}

fn make(_: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    let source = match (args.optional::<u8>("position")?, args.optional("v4src")?) {
        (Some(bit), _) if bit > IP4_PREFIX_MAX => {
            let what = format!("from bit {bit} on there is no room for an IPv4 address");
            return Err(args.refuse("position", what).remedy(format!("{IP4_PREFIX_MAX} at most")));
        }
        (Some(bit), _) => Source::At(bit),
        (None, Some(source)) => Source::Fixed(source),
        (None, None) => Source::At(64),
    };
    let table = args.or("lookup-table", 0)?;
    Ok(Box::new(EndMGtp4E {
        source,
        direction: super::direction(args),
        table,
        tables: TableReferences::default(),
    }))
}

/// What the command knows.
pub(super) const KINDS: [Kind; 1] = [Kind {
    name: "end.m.gtp4.e",
    syntax: "{[v4src_position <position:u8> | v4src_addr <v4src:ip4>] [fib-table \
             <lookup-table:u32>] [uplink]}",
    help: "SRv6 goes on as GTP-U over IPv4, to the address and the session behind the prefix (RFC \
           9433 §6.6)",
    words: &[
        ("v4src_position", "the bit of the IPv6 source where the IPv4 source begins; 64"),
        ("v4src_addr", "the IPv4 source of all packets"),
        (
            "uplink",
            "the QoS flow is told as in packets from users; without it, as in those to users",
        ),
    ],
    example: "end.m.gtp4.e v4src_position 64",
    make,
}];
