//! End.M.GTP6.E (RFC 9433 §6.5): SRv6 to a local SID, behind which one segment stands, goes on as
//! GTP-U over IPv6 to that one.

use std::net::Ipv6Addr;
use std::sync::Arc;

use quiver_control::{Args, Refusal};
use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::StageContext;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Engine, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{Ip6, choose};
use quiver_offload::checksum::add_to_sum;
use quiver_tables::{CountedLines, GroupId};
use quiver_wire::checksum::Sum;
use quiver_wire::gtpu::Direction;
use quiver_wire::ip6::extension::upper_layer;
use quiver_wire::ip6::{MTU_MIN, address};
use quiver_wire::srh::{FLAG_OAM, ROUTING_TYPE, SrhHeader, segment};
use quiver_wire::{Header, Ip6Header, IpProtocol, UdpHeader};

use super::args::{self, SESSION_BITS, SESSION_PREFIX_MAX, Session};
use super::decapsulate::Came;
use super::encapsulate::{self, Outgoing, source_port};
use super::lookup_keys::LookupKeys;
use super::mtu_check::MtuCheck;
use super::{g_pdu, gtpu_header};
use crate::endpoint::lookup_node::{HasLookup, LookupNode};
use crate::endpoint::next_nodes::{Good, NextNodes};
use crate::endpoint::oam;
use crate::endpoint::reasons::{Bad, LocalSidDrop, TIME_EXCEEDED};
use crate::endpoint::segments::is_plain_segment;
use crate::endpoint::sid_entry::SidEntryRef;
use crate::endpoint::slow_path::{Spot, Upper, left_behind, not_segments, routing_headers};
use crate::endpoint::table_references::TableReferences;
use crate::local_sids::{Behavior, Held, Kind, Names, Place};

/// The node.
pub(crate) const NODE: &str = "sr-localsid-gtp6-e";

/// Parts of a line.
const UPLINK: u8 = 1;
const ZERO_CHECKSUM: u8 = 2;
const SOURCE_FIXED: u8 = 4;

/// The control side.
#[derive(Debug)]
struct EndMGtp6E {
    source: Option<Ipv6Addr>,
    direction: Direction,
    zero_checksum: bool,
    /// The operator's number.
    table: u32,
    tables: TableReferences,
}

impl Behavior for EndMGtp6E {
    fn words(&self, _: &Names<'_>) -> String {
        let mut words = "end.m.gtp6.e".to_owned();
        if let Some(source) = self.source {
            words += &format!(" source {source}");
        }
        if self.table != 0 {
            words += &format!(" fib-table {}", self.table);
        }
        words += super::direction_words(self.direction);
        words + if self.zero_checksum { " zero-checksum" } else { "" }
    }

    fn hold(&mut self, engine: &mut Engine, place: Place) -> Result<Held, Refusal> {
        let node = engine
            .node_id(NODE)
            .ok_or_else(|| Refusal::new("the node of End.M.GTP6.E is not built in"))?;
        super::check_length(place, SESSION_PREFIX_MAX, "Args.Mob.Session")?;
        let table = self.tables.hold(engine, Family::Ip6, self.table)?;
        let mut flags = if self.direction == Direction::Uplink { UPLINK } else { 0 };
        flags |= if self.zero_checksum { ZERO_CHECKSUM } else { 0 };
        flags |= if self.source.is_some() { SOURCE_FIXED } else { 0 };
        let source = self.source.unwrap_or(Ipv6Addr::UNSPECIFIED).to_bits();
        let parts =
            u64::from(table) << 32 | u64::from(u16::from_le_bytes([place.prefix.len(), flags]));
        Ok(Held { node, words: [parts, (source >> 64) as u64, source as u64, 0] })
    }

    fn release(&mut self, engine: &mut Engine) {
        self.tables.release(engine);
    }
}

/// `sr-localsid-gtp6-e`, a packet's part of it.
pub struct SegmentsToMobile6 {
    next_nodes: NextNodes,
    onward: MtuCheck,
}

/// The headers in front of a user's packet: IPv6, UDP and GTP-U.
struct OuterHeaders {
    /// Version, traffic class and flow label.
    first: u32,
    hops: u8,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    behind: gtpu_header::UdpGtpuHeaders,
}

impl OuterHeaders {
    /// How many bytes it has.
    #[inline(always)]
    fn len(&self) -> usize {
        Ip6Header::LEN + self.behind.len()
    }

    /// Fill in the checksum of UDP over a payload.
    #[inline(always)]
    fn sum(&mut self, payload: &[u8]) {
        let length = (self.behind.len() + payload.len()) as u32;
        let sum = Sum::pseudo6(self.source, self.destination, IpProtocol::UDP, length)
            .quad(self.behind.udp)
            .quad(self.behind.gtpu.first)
            .quad(self.behind.gtpu.container.unwrap_or(0))
            .bytes(payload);
        self.behind.udp |= u64::from(sum.udp_checksum());
    }

    /// Write it to the first bytes of a packet, word by word.
    #[inline(always)]
    fn write(&self, packet: &mut [u8]) {
        let length = packet.len().saturating_sub(Ip6Header::LEN) as u64 & 0xffff;
        let rest = length << 16 | u64::from(IpProtocol::UDP.0) << 8 | u64::from(self.hops);
        let Some((place, behind)) =
            packet.split_first_chunk_mut::<{ Ip6Header::LEN + gtpu_header::BYTES_MIN }>()
        else {
            return;
        };
        place[..8].copy_from_slice(&(u64::from(self.first) << 32 | rest).to_be_bytes());
        place[8..24].copy_from_slice(&self.source.octets());
        place[24..40].copy_from_slice(&self.destination.octets());
        if let Some(place) = place.last_chunk_mut() {
            self.behind.write(place, behind);
        }
    }
}

/// What is behind a packet's headers, and the one segment that is left.
struct Behind {
    srh: Option<Spot>,
    upper: Upper,
}

/// One segment must be left (S01 to S03), in a list that has it (RFC 8754 §4.3.1.1).
fn behind(header: &Ip6Header, packet: &Packet) -> Result<Behind, Bad> {
    let (mut srh, mut through) = (None, None);
    for routing in routing_headers(packet) {
        let (spot, kind, left) = routing.map_err(|_| LocalSidDrop::SrhBeyondPacket)?;
        match (kind, left) {
            (ROUTING_TYPE, 1) if srh.is_none() => {
                let fixed = packet.bytes().get(spot.at..).and_then(SrhHeader::overlay);
                if !fixed.is_some_and(SrhHeader::leads_on) {
                    return Err(left_behind(spot, LocalSidDrop::ListWrong));
                }
                srh = Some(spot);
            }
            (ROUTING_TYPE, 0) => through = Some(spot),
            (_, 0) => {}
            (ROUTING_TYPE, _) => return Err(left_behind(spot, LocalSidDrop::SegmentsLeft)),
            _ => return Err(not_segments(spot)),
        }
    }
    if let (None, Some(spot)) = (srh, through) {
        return Err(left_behind(spot, LocalSidDrop::SegmentsLeft));
    }
    let bytes = packet.bytes().get(Ip6Header::LEN..).unwrap_or_default();
    let upper =
        upper_layer(header.next_header(), bytes).map_err(|_| LocalSidDrop::SrhBeyondPacket)?;
    let is_fragment = upper.fragment.is_some_and(|fragment| !fragment.is_atomic());
    Ok(Behind {
        srh,
        upper: Upper { protocol: upper.protocol, at: Ip6Header::LEN + upper.offset, is_fragment },
    })
}

impl SegmentsToMobile6 {
    fn new(wiring: &Wiring<'_>, lines: &CountedLines) -> SegmentsToMobile6 {
        SegmentsToMobile6 {
            next_nodes: NextNodes::new(wiring, lines),
            onward: MtuCheck::new(wiring),
        }
    }

    #[inline(always)]
    fn leave(&self, group: GroupId, fits: bool, packet: &mut Packet) -> NodeId {
        if fits {
            return self.next_nodes.six(group, packet);
        }
        packet.set(PacketFlags::LOCALLY_ORIGINATED);
        choose::<Ip6>(&self.next_nodes.tables.groups, group, packet)
    }
}

/// Put IPv6, UDP and GTP-U in front.
#[inline(always)]
fn put(
    mut outer: Ip6Header,
    out: &Outgoing,
    zero_checksum: bool,
    packet: &mut Packet,
) -> Result<(), LocalSidDrop> {
    let length = u16::try_from(out.datagram_len()).map_err(|_| LocalSidDrop::TooLong)?;
    outer.set_payload_length(length);
    gtpu_header::put(out, Ip6Header::LEN, packet, |place, packet| {
        outer.write(place).map_err(|_| LocalSidDrop::TooLong)?;
        if zero_checksum {
            return Ok(());
        }
        let behind = place.get_mut(Ip6Header::LEN..).unwrap_or_default();
        let pseudo =
            Sum::pseudo6(outer.source(), outer.destination(), IpProtocol::UDP, length.into());
        let sum = add_to_sum(pseudo.bytes(behind), packet, 0, packet.length());
        if let Some(udp) = UdpHeader::overlay_mut(behind) {
            udp.set_checksum(sum.ok_or(LocalSidDrop::Truncated)?.udp_checksum());
        }
        Ok(())
    })
}

/// The source of what a packet becomes.
#[inline(always)]
fn source_of(line: SidEntryRef<'_>, flags: u8, header: &Ip6Header) -> Ipv6Addr {
    match flags & SOURCE_FIXED {
        0 => header.source(),
        _ => Ipv6Addr::from_bits(u128::from(line.0.word(1)) << 64 | u128::from(line.0.word(2))),
    }
}

impl SegmentsToMobile6 {
    /// The keys of a packet; nothing for one that takes the slow path.
    #[inline(always)]
    fn ask(&self, line: SidEntryRef<'_>, packet: &mut Packet) -> Option<LookupKeys> {
        let (header, behind) = Ip6Header::split(packet.bytes())?;
        let srh = SrhHeader::overlay(behind)?;
        let plain = (header.next_header() == IpProtocol::ROUTING)
            & (header.hop_limit() > 1)
            & srh.leads_on()
            & (srh.segments_left() == 1)
            & (srh.flags() & FLAG_OAM == 0)
            & (srh.len_bytes() <= behind.len())
            & encapsulate::is_payload(srh.next_header())
            & packet.has_none(PacketFlags::CHAINED);
        let address = segment(behind, 0)?.to_bits();
        if !(plain & is_plain_segment(address)) {
            return None;
        }
        let [length, _] = (line.0.word(0) as u16).to_le_bytes();
        let session = args::read(header.destination_bits(), length, SESSION_BITS);
        let (table, at) =
            ((line.0.word(0) >> 32) as u32, (Ip6Header::LEN + srh.len_bytes()) as u32);
        Some(LookupKeys { address, session, table, at })
    }
}

impl HasLookup<LookupKeys> for SegmentsToMobile6 {
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
        _: &mut Good,
        packet: &mut Packet,
    ) -> LookupKeys {
        self.ask(line, packet).unwrap_or_default()
    }

    #[inline(always)]
    fn on(&self, asking: LookupKeys, found: GroupId, packet: &mut Packet) -> Option<NodeId> {
        let line = self.next_nodes().entry(packet);
        let [_, flags] = (line.0.word(0) as u16).to_le_bytes();
        let (bytes, at) = (packet.bytes(), asking.at as usize);
        let (header, payload) = (Ip6Header::overlay(bytes)?, bytes.get(at..)?);
        let (length, behind) = (bytes.len(), payload.len());
        let gtpu =
            g_pdu::GtpuWords::new(asking.session, super::direction_of(flags & UPLINK), behind);
        let mut front = OuterHeaders {
            first: bytes.first_chunk().map_or(0, |first| u32::from_be_bytes(*first)),
            hops: header.hop_limit(),
            source: source_of(line, flags, header),
            destination: Ipv6Addr::from_bits(asking.address),
            behind: gtpu_header::UdpGtpuHeaders {
                udp: g_pdu::udp(source_port(0, header.flow_label()), gtpu.len() + behind),
                gtpu,
            },
        };
        let total = front.len() + behind;
        if total > usize::from(u16::MAX)
            || !self.onward.fits_plainly(&self.next_nodes, found, total)
        {
            return None;
        }
        if flags & ZERO_CHECKSUM == 0 {
            front.sum(payload);
        }
        if !gtpu_header::replace(packet, at, front.len()) {
            return None;
        }
        front.write(packet.bytes_mut());
        self.next_nodes.good(line.0, length);
        Some(self.next_nodes.six(found, packet))
    }

    fn slow_path(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad> {
        let header = *Ip6Header::overlay(packet.bytes()).ok_or(LocalSidDrop::Truncated)?;
        let Behind { srh, upper } = behind(&header, packet)?;
        if srh.is_some_and(|srh| oam::is_marked_at(packet, srh)) {
            self.next_nodes.watch(context, packet);
        }
        let is_message = upper.protocol == IpProtocol::NO_NEXT_HEADER;
        if upper.is_fragment || !(is_message || encapsulate::is_payload(upper.protocol)) {
            return self.next_nodes.upper(context, line, upper, packet);
        }
        if header.hop_limit() <= 1 {
            return Err(Bad::Complain(TIME_EXCEEDED, LocalSidDrop::HopLimit));
        }
        let srh = srh.ok_or(LocalSidDrop::NextSegment)?;
        let list = packet.bytes().get(srh.at..).unwrap_or_default();
        let destination = segment(list, 0).ok_or(LocalSidDrop::SrhBeyondPacket)?;
        if !address::is_unicast(destination) || destination.is_loopback() {
            return Err(LocalSidDrop::NextSegment.into());
        }
        let [length, flags] = (line.0.word(0) as u16).to_le_bytes();
        let session =
            Session::from_bits(args::read(header.destination_bits(), length, SESSION_BITS));
        let port = source_port(0, header.flow_label());
        let bytes = packet.length();
        let group = self
            .next_nodes
            .tables
            .ip6
            .table((line.0.word(0) >> 32) as u32)
            .lookup(destination.to_bits());
        let (out, fits) = if is_message {
            context.count(LocalSidDrop::Carried, 1);
            (encapsulate::leave_elements(packet, srh.at, session, port)?, true)
        } else {
            let direction = super::direction_of(flags & UPLINK);
            let payload = bytes.checked_sub(upper.at).ok_or(LocalSidDrop::Truncated)?;
            let out = encapsulate::g_pdu(session, direction, port, payload);
            let total = Ip6Header::LEN + out.datagram_len();
            let came = Came::by_ip6(&header);
            let fits = total <= MTU_MIN
                || self.onward.fits(
                    &self.next_nodes,
                    context,
                    (group, packet.hash),
                    &came,
                    total,
                    packet,
                )?;
            // A checksum that was left to a device is completed before the one around it is made.
            encapsulate::expose(packet, upper.at)?;
            (out, fits)
        };
        let source = source_of(line, flags, &header);
        let hops = if fits { header.hop_limit() } else { header.hop_limit() - 1 };
        let mut outer = Ip6Header::new(source, destination, IpProtocol::UDP, hops, 0);
        outer.set_class_and_flow(header.traffic_class(), header.flow_label());
        put(outer, &out, flags & ZERO_CHECKSUM != 0, packet)?;
        self.next_nodes.good(line.0, bytes);
        Ok(self.leave(group, fits, packet))
    }
}

/// The declaration of the node.
pub(super) fn spec(lines: &Arc<CountedLines>) -> NodeSpec {
    let lines = lines.clone();
    NodeSpec::look_up("End.M.GTP6.E: SRv6 to GTP-U over IPv6", move |wiring| {
        LookupNode::new(SegmentsToMobile6::new(wiring, &lines))
    })
    .describe(crate::endpoint::description::record)
}

fn make(_: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    Ok(Box::new(EndMGtp6E {
        source: args.optional("source")?,
        direction: super::direction(args),
        zero_checksum: args.has("zero-checksum"),
        table: args.or("lookup-table", 0)?,
        tables: TableReferences::default(),
    }))
}

/// What the command knows.
pub(super) const KINDS: [Kind; 1] = [Kind {
    name: "end.m.gtp6.e",
    syntax: "{[source <source:ip6>] [fib-table <lookup-table:u32>] [uplink] [zero-checksum]}",
    help: "SRv6 goes on as GTP-U over IPv6 to the last segment, in the session behind the prefix \
           (RFC 9433 §6.5)",
    words: &[("zero-checksum", "UDP without a checksum, for receivers that take it so (RFC 6935)")],
    example: "end.m.gtp6.e source fc00:0:1::6",
    make,
}];
