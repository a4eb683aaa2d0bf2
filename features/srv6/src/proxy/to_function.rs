//! `sr-localsid-as` (End.AS), `sr-localsid-ad` (End.AD): the inner packet goes to a function that
//! knows no segments (draft-ietf-spring-sr-service-programming §6.1, §6.2). End.AD keeps the
//! headers that were around it.

use std::sync::Arc;

use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::decapsulated::{ip4_fast, ip6_fast, take_off};
use quiver_forwarding::ip::{Ip4, Ip6, choose};
use quiver_forwarding::nodes;
use quiver_tables::CountedLines;
use quiver_wire::srh::SrhHeader;
use quiver_wire::{EthernetHeader, Header, Ip6Header, IpProtocol};

use super::cached_header::{CacheWrite, FRONT_WORDS, WORD_BYTES, WORDS, Word, stepped};
use super::flows::{Flow, Flows};
use super::return_interfaces::{Around, Backs, Coming};
use crate::endpoint::inner_packet::{ETHERNET, Inside, parse_inside};
use crate::endpoint::next_nodes::NextNodes;
use crate::endpoint::reasons::{Bad, LocalSidDrop};
use crate::endpoint::segments;
use crate::endpoint::sid_entry::SidEntryRef;
use crate::endpoint::slow_path::{self, Matter, Upper};

/// The nodes.
pub(crate) const STATIC: &str = "sr-localsid-as";
pub(crate) const DYNAMIC: &str = "sr-localsid-ad";

/// The congestion marks of a traffic class (RFC 3168 §5).
const ECN: u8 = 3;

/// The nodes, a packet's part of them; with `KEEPS` for End.AD.
pub struct ToFunction<const KEEPS: bool> {
    next_nodes: NextNodes,
    backs: Backs,
}

/// What the function takes.
#[inline(always)]
fn coming(line: SidEntryRef<'_>) -> Coming {
    match (line.four(), line.six()) {
        (0, 0) => Coming::Frames,
        (0, _) => Coming::Ip6,
        _ => Coming::Ip4,
    }
}

/// What must be inside.
#[inline(always)]
fn wanted(line: SidEntryRef<'_>) -> IpProtocol {
    match coming(line) {
        Coming::Frames => ETHERNET,
        Coming::Ip6 => IpProtocol::IPV6,
        Coming::Ip4 => IpProtocol::IPV4,
    }
}

/// What is inside a packet with segments left, behind nothing but an SRH.
#[inline(always)]
fn inside(packet: &Packet) -> Inside {
    let srh = packet.bytes().get(Ip6Header::LEN..).and_then(SrhHeader::overlay);
    srh.map_or(Inside { protocol: IpProtocol::NO_NEXT_HEADER, at: 0 }, |srh| Inside {
        protocol: srh.next_header(),
        at: Ip6Header::LEN + srh.len_bytes(),
    })
}

/// Keep headers among which the SRH does not stand right behind the IPv6 header, whose first word
/// and destination become others.
#[cold]
#[inline(never)]
fn keep_unusual(
    keep: impl FnOnce([Word; FRONT_WORDS], &[Word]) -> Result<CacheWrite, LocalSidDrop>,
    headers: &[u8],
    srh_at: usize,
    [first, high, low]: [Word; 3],
) -> Result<CacheWrite, LocalSidDrop> {
    let (words, behind) = headers.as_chunks();
    let mut all = [Word::default(); WORDS];
    let Some(own) = all.get_mut(..words.len()) else { return Ok(CacheWrite::TooLong) };
    own.copy_from_slice(words);
    let place = srh_at / WORD_BYTES;
    let (Some(srh), true) =
        (own.get(place).copied(), behind.is_empty() && srh_at.is_multiple_of(WORD_BYTES))
    else {
        return Ok(CacheWrite::TooLong);
    };
    for (place, word) in [(0, first), (3, high), (4, low), (place, stepped(srh))] {
        if let Some(own) = own.get_mut(place) {
            *own = word;
        }
    }
    match own.split_first_chunk() {
        Some((front, rest)) => keep(*front, rest),
        None => Ok(CacheWrite::TooLong),
    }
}

/// Keep the headers of one flow (End.AD.Flow). A call of its own, so that End.AD's packets do not
/// pay for it.
#[inline(never)]
fn keep_of_flow(
    flows: &Flows,
    coming: Coming,
    inner: &[u8],
    now_ns: u64,
    front: [Word; FRONT_WORDS],
    rest: &[Word],
) -> Result<CacheWrite, LocalSidDrop> {
    let flow = Flow::of(coming == Coming::Ip6, inner).ok_or(LocalSidDrop::InnerWrong)?;
    Ok(flows.keep(flow, now_ns, front, rest))
}

impl<const KEEPS: bool> ToFunction<KEEPS> {
    /// Keep the first `at` bytes, which the packet still has as they came, with the next segment as
    /// the active one of the SRH at `srh_at`, for what comes back. What belongs to one packet (its
    /// length, its flow's label, its hop) does not belong to them.
    #[inline(always)]
    fn keep(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        (srh_at, next): (usize, u128),
        at: usize,
        packet: &Packet,
    ) -> Result<(), LocalSidDrop> {
        let back = self.backs.read(InterfaceId(line.argument()), coming(line), context.pass());
        let back = back.ok_or(LocalSidDrop::NotConfigured)?;
        let (headers, inner) =
            packet.bytes().split_at_checked(at).ok_or(LocalSidDrop::Truncated)?;
        let keep = |front, rest: &[Word]| match &back.around {
            Around::CachedHeader(kept) => Ok(kept.keep(front, rest)),
            Around::Flows(flows) => {
                keep_of_flow(flows, coming(line), inner, context.now_ns(), front, rest)
            }
            Around::Fixed(_) | Around::Masked { .. } => Err(LocalSidDrop::NotConfigured),
        };
        let outer = Ip6Header::overlay(headers).ok_or(LocalSidDrop::Truncated)?;
        // Packets have their own class, frames have none.
        let class = if wanted(line) == ETHERNET { outer.traffic_class() & !ECN } else { 0 };
        let hops = outer.hop_limit().saturating_sub(1);
        let first = [0x60 | class >> 4, class << 4, 0, 0, 0, 0, outer.next_header().0, hops];
        let (high, low) = ((next >> 64) as u64, next as u64);
        let ((words, behind), plain) = (headers.as_chunks(), srh_at == Ip6Header::LEN);
        let keeping = match words.split_first_chunk::<FRONT_WORDS>() {
            Some(([_, one, two, _, _, srh], rest)) if plain && behind.is_empty() => {
                let front =
                    [first, *one, *two, high.to_be_bytes(), low.to_be_bytes(), stepped(*srh)];
                keep(front, rest)?
            }
            _ => {
                let words = [first, high.to_be_bytes(), low.to_be_bytes()];
                keep_unusual(keep, headers, srh_at, words)?
            }
        };
        match keeping {
            CacheWrite::Full => Err(LocalSidDrop::FlowsFull),
            CacheWrite::TooLong => Err(LocalSidDrop::TooLongToKeep),
            CacheWrite::Same | CacheWrite::New | CacheWrite::Busy => Ok(()),
        }
    }

    /// The inner packet, which is of the wanted kind, goes to the function.
    fn send(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        at: usize,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad> {
        let (groups, bytes) = (&self.next_nodes.tables.groups, packet.length());
        let next = if line.four() != 0 {
            self.next_nodes.expose4(at, packet)?;
            choose::<Ip4>(groups, line.group4(), packet)
        } else if line.six() != 0 {
            self.next_nodes.expose6(at, packet)?;
            choose::<Ip6>(groups, line.group6(), packet)
        } else {
            return self.send_frame(context, line, at, packet);
        };
        self.next_nodes.good(line.0, bytes);
        Ok(next)
    }

    /// The inner frame goes to the function.
    #[inline(always)]
    fn send_frame(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        at: usize,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad> {
        let bytes = packet.length();
        take_off(packet, at)?;
        if packet.segment_length() < EthernetHeader::LEN {
            return Err(LocalSidDrop::InnerWrong.into());
        }
        let row = context.interface(line.interface()).ok_or(LocalSidDrop::NotConfigured)?;
        if !row.up {
            return Err(LocalSidDrop::InterfaceDown.into());
        }
        packet.tx = line.interface();
        packet.clear(PacketFlags::L2_GROUP);
        self.next_nodes.good(line.0, bytes);
        Ok(row.output)
    }

    /// Packets that are not plain.
    #[cold]
    #[inline(never)]
    fn slow_path(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, LocalSidDrop> {
        let (line, came) = (self.next_nodes.entry(packet), packet.on_wire());
        let outcome = self.slow_path_outcome(context, line, packet);
        self.next_nodes.resolve(context, line.0, outcome, came, packet)
    }

    fn slow_path_outcome(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad> {
        let (upper, path): (Upper, _) = match self.next_nodes.matter(context, packet)? {
            Matter::Upper(upper) => (upper, None),
            Matter::Segments { srh, next } => (slow_path::upper(packet)?, Some((srh, next))),
        };
        if upper.is_fragment {
            return self.next_nodes.upper(context, line, upper, packet);
        }
        let Some((srh, next)) = path else {
            // No segments are left: a static proxy knows a path of its own, a dynamic one has none
            // to keep.
            return match !KEEPS && upper.is_inner(wanted(line)) {
                true => self.send(context, line, upper.at, packet),
                false => self.next_nodes.upper(context, line, upper, packet),
            };
        };
        if !upper.is_inner(wanted(line)) {
            if !line.has_proxy_option() {
                return Err(LocalSidDrop::InnerKind.into());
            }
            context.count(LocalSidDrop::Bypassed, 1);
            self.next_nodes.advance(line, srh, next, packet);
            let table = self.next_nodes.tables.interfaces.table6(packet.rx);
            return Ok(self
                .next_nodes
                .six(self.next_nodes.tables.ip6.table(table).lookup(next), packet));
        }
        if KEEPS {
            self.keep(context, line, (srh.at, next), upper.at, packet)?;
        }
        self.send(context, line, upper.at, packet)
    }
}

impl<const KEEPS: bool> Stage for ToFunction<KEEPS> {
    const NAME: &'static str = if KEEPS { DYNAMIC } else { STATIC };
    type Reason = LocalSidDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    fn ahead(&self, packet: &Packet) {
        self.next_nodes.prefetch_entry(packet);
        packet.prefetch_second();
    }

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, LocalSidDrop> {
        let line = self.next_nodes.entry(packet);
        let next = segments::next_if_plain(packet);
        let Inside { protocol, at } = match next {
            0 if !KEEPS => parse_inside(packet),
            0 => Inside { protocol: IpProtocol::NO_NEXT_HEADER, at: 0 },
            _ => inside(packet),
        };
        if (at == 0) | (protocol != wanted(line)) {
            return self.slow_path(context, packet);
        }
        let (groups, bytes) = (&self.next_nodes.tables.groups, packet.length());
        if KEEPS && self.keep(context, line, (Ip6Header::LEN, next), at, packet).is_err() {
            return self.slow_path(context, packet);
        }
        let next = match coming(line) {
            Coming::Ip4 => ip4_fast::<Ip6>(packet, at).map(|_| {
                packet.set_carried();
                choose::<Ip4>(groups, line.group4(), packet)
            }),
            Coming::Ip6 => ip6_fast::<Ip6>(packet, at).map(|_| {
                packet.set_carried();
                choose::<Ip6>(groups, line.group6(), packet)
            }),
            Coming::Frames => {
                return match self.send_frame(context, line, at, packet) {
                    Ok(next) => Ok(next),
                    bad => self.next_nodes.resolve(context, line.0, bad, (1, bytes as u64), packet),
                };
            }
        };
        let Some(next) = next else { return self.slow_path(context, packet) };
        self.next_nodes.good(line.0, bytes);
        Ok(next)
    }
}

/// The declaration of a node.
pub(super) fn spec<const KEEPS: bool>(lines: &Arc<CountedLines>, backs: &Backs) -> NodeSpec {
    let (lines, backs) = (lines.clone(), backs.clone());
    let help = match KEEPS {
        true => "End.AD: inner packets to a function; their headers are kept for what comes back",
        false => "End.AS: inner packets to a function",
    };
    NodeSpec::stage(help, move |wiring| {
        for name in [nodes::ip4::REWRITE, nodes::ip4::ARP, nodes::ip4::DROP] {
            wiring.node(name); // edges, for `show graph`
        }
        ToFunction::<KEEPS> { next_nodes: NextNodes::new(wiring, &lines), backs: backs.clone() }
    })
    .describe(crate::endpoint::description::record)
}
