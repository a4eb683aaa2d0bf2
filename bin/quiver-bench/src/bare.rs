//! The floor to compare with: the same work on the same packets and tables, in one hand-written
//! loop without nodes, vectors handed over, counters per node or anything else that a router needs.

mod blocks;
pub mod exchange;
mod segments;

use quiver_core::Frame;
use quiver_core::cpu::{Body, Variant};
use quiver_core::memory::packet::Packet;
use quiver_forwarding::adjacency::Adjacencies;
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::next_hop_group::Groups;
use quiver_tables::GroupId;
use quiver_tables::ip4_lpm::Ip4Lpm;
use quiver_tables::mac::{DomainIndex, MacEntry, MacKey, MacTable, Seen};
use quiver_wire::ethernet::EthernetHeader;
use quiver_wire::ip4::{self, Ip4Header};
use quiver_wire::ip6::Ip6Header;
use quiver_wire::{EtherType, Header, checksum};

use self::blocks::{BLOCK, Layer, LookUpBlock};
use crate::paths::{Tagging, Work};
use crate::population::OUR_MAC;

/// What the loop counts, so that nothing can be left out.
#[derive(Default)]
pub struct Counted {
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets that were not plain.
    pub odd: u64,
    /// Frames whose source a bridge would stamp or learn.
    pub unsettled: u64,
}

/// One vector through the loop; compiled in the form that it runs in.
pub struct Loop<'a> {
    /// Which.
    pub work: Work,
    /// The tags of frames.
    pub tagging: Tagging,
    /// The form of loops and look-ups.
    pub variant: Variant,
    /// The packets.
    pub frame: &'a mut Frame,
    /// The router's tables.
    pub tables: &'a IpTables,
    /// Its MAC table, where the path has one.
    pub bridge: Option<&'a Bridge>,
    /// What the loop counts.
    pub counted: &'a mut Counted,
}

impl Body for Loop<'_> {
    type Answer = ();

    #[inline(always)]
    fn run(self) {
        let Loop { work, tagging, variant, frame, tables, bridge, counted } = self;
        let (groups, adjacencies) = (&*tables.groups, &*tables.adjacencies);
        match work {
            Work::Exchange(exchange) => {
                exchange::exchange(&exchange, variant, frame, tables, counted);
            }
            Work::Cross => match tagging {
                Tagging::Untagged => cross(frame, counted),
                Tagging::Dot1q | Tagging::Dot1ad => cross_tagged(frame, counted),
            },
            Work::Ip4 => {
                let table = tables.ip4.table(0);
                match tagging {
                    Tagging::Untagged => {
                        ip4::<0>(variant, frame, table, groups, adjacencies, counted)
                    }
                    Tagging::Dot1q => ip4::<1>(variant, frame, table, groups, adjacencies, counted),
                    Tagging::Dot1ad => {
                        ip4::<2>(variant, frame, table, groups, adjacencies, counted)
                    }
                }
            }
            Work::Encapsulate6 => {
                segments::encapsulate(Layer::Ip6, variant, frame, tables, counted)
            }
            Work::Encapsulate4 => {
                segments::encapsulate(Layer::Ip4, variant, frame, tables, counted)
            }
            Work::EncapsulateFrames => {
                segments::encapsulate(Layer::Frame, variant, frame, tables, counted);
            }
            Work::Ip6 => ip6(variant, frame, tables, counted),
            Work::Bridge | Work::BridgeNoLearn | Work::BridgeIp4 | Work::Ip4Bridge => {
                let Some(bridge) = bridge else { return };
                let lpm = tables.ip4.table(0);
                if work == Work::Ip4Bridge {
                    ip4::<0>(variant, frame, lpm, groups, adjacencies, counted);
                }
                match work {
                    Work::BridgeNoLearn => bridge_frames::<false>(variant, frame, bridge, counted),
                    _ => bridge_frames::<true>(variant, frame, bridge, counted),
                }
                if work == Work::BridgeIp4 {
                    ip4::<0>(variant, frame, lpm, groups, adjacencies, counted);
                }
            }
        }
    }
}

/// The MAC table, and where frames come in.
pub struct Bridge {
    /// The table.
    pub table: MacTable,
    /// The domain.
    pub domain: DomainIndex,
    /// What a known source looks like.
    pub seen: Seen,
}

/// Bridge: look at both addresses, look them up together, compare the source with where it should
/// be, see that the destination holds, count.
#[inline(always)]
fn bridge_frames<const LEARN: bool>(
    variant: Variant,
    frame: &mut Frame,
    bridge: &Bridge,
    counted: &mut Counted,
) {
    let packets = frame.packets_mut();
    packets.iter().take(8).for_each(Packet::prefetch);
    let count = packets.len();
    let mut keys = [0u64; 2 * BLOCK];
    let mut found = [MacEntry::NONE; 2 * BLOCK];
    let (ports, rx) = (bridge.table.ports(), bridge.seen.entry().port());
    let mut at = 0;
    while at < count {
        let block = (count - at).min(BLOCK);
        for i in 0..block {
            if let Some(ahead) = packets.get(at + i + 8) {
                ahead.prefetch();
            }
            let Some(header) = packets[at + i].bytes().first_chunk::<14>() else { continue };
            let word = |from: usize| {
                header[from..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
            };
            let (to, from) = (word(0), word(6));
            counted.odd += (to | from) & 1;
            keys[i] = MacKey::from_wire(bridge.domain, to).word();
            if LEARN {
                keys[block + i] = MacKey::from_wire(bridge.domain, from).word();
            }
        }
        let asked = if LEARN { 2 * block } else { block };
        bridge.table.lookup_slice(variant, &keys[..asked], &mut found[..asked]);
        for i in 0..block {
            let (to, packet) = (found[i], &mut packets[at + i]);
            let port = ports.word(to.port());
            let good = to.holds(port) & !to.is_filter() & (to.port() != rx);
            counted.odd += u64::from(!good);
            counted.unsettled += u64::from(LEARN && !found[block + i].is_current(bridge.seen));
            packet.tx = to.port();
            counted.bytes += packet.segment_length() as u64;
        }
        at += block;
    }
    counted.packets += count as u64;
}

/// The tags of frames on the paths that have some, with the type behind them: what is compared, and
/// what it is.
const TAGGED: [([u8; 8], u64); 3] = [
    ([0; 8], 0),
    ([0x81, 0, 0, 100, 8, 0, 0, 0], u64::from_be_bytes([0xff, 0xff, 0x0f, 0xff, 0xff, 0xff, 0, 0])),
    (
        [0x88, 0xa8, 0, 100, 0x81, 0, 0, 200],
        u64::from_be_bytes([0xff, 0xff, 0x0f, 0xff, 0xff, 0xff, 0x0f, 0xff]),
    ),
];

/// Are the frame's tags those of the path?
#[inline(always)]
fn has_tags<const TAGS: usize>(frame: &[u8]) -> bool {
    let (tags, mask) = TAGGED[TAGS];
    let found = frame.get(12..).and_then(|bytes| bytes.first_chunk());
    let ip4 = TAGS < 2 || frame.get(20..22).is_some_and(|bytes| bytes == [8, 0]);
    ip4 & found
        .is_some_and(|found| (u64::from_be_bytes(*found) ^ u64::from_be_bytes(tags)) & mask == 0)
}

/// Forward IPv4: check the frame, its `TAGS` tags and the header, look up, count the hop, write the
/// frame's header, count, free.
#[inline(always)]
pub fn ip4<const TAGS: usize>(
    variant: Variant,
    frame: &mut Frame,
    lpm: &Ip4Lpm,
    groups: &Groups,
    adjacencies: &Adjacencies,
    counted: &mut Counted,
) {
    let packets = frame.packets_mut();
    packets.iter().take(8).for_each(Packet::prefetch);
    let count = packets.len();
    let mut destinations = [0u32; BLOCK];
    let mut found = [GroupId(0); BLOCK];
    let mut at = 0;
    while at < count {
        let block = (count - at).min(BLOCK);
        for i in 0..block {
            if let Some(ahead) = packets.get(at + i + 8) {
                ahead.prefetch();
            }
            let packet = &mut packets[at + i];
            let bytes = packet.bytes();
            let header_bytes = 14 + 4 * TAGS;
            let good = match (
                EthernetHeader::overlay(bytes),
                bytes.get(header_bytes..).and_then(Ip4Header::overlay),
            ) {
                (Some(ethernet), Some(header)) => {
                    destinations[i] = header.destination_bits();
                    (if TAGS == 0 {
                        ethernet.ether_type() == EtherType::IPV4
                    } else {
                        has_tags::<TAGS>(bytes)
                    }) & (ethernet.destination.0 == OUR_MAC)
                        & ip4::is_plain(header, bytes.len() - header_bytes)
                        & (header.ttl() > 1)
                }
                _ => false,
            };
            counted.odd += u64::from(!good);
        }
        lpm.lookup_slice(variant, &destinations[..block], &mut found[..block]);
        for i in 0..block {
            let packet = &mut packets[at + i];
            let hop = groups.word(found[i]).hop();
            let adjacency = adjacencies.get(hop.index);
            let bytes = packet.bytes_mut();
            if let Some(header) = bytes.get_mut(14 + 4 * TAGS..).and_then(Ip4Header::overlay_mut) {
                checksum::decrement_ttl(header);
            }
            let length = packet.segment_length();
            counted.odd += u64::from(length > usize::from(adjacency.mtu_bytes) + 14 + 4 * TAGS);
            let field = adjacency.rewrite_field();
            if let (Some(block), true) = (field.last_chunk::<16>(), packet.pull(14 + 4 * TAGS)) {
                let _ = match TAGS {
                    0 => packet.push_block16(block, 14),
                    _ => packet.push_block32(field, 14 + 4 * TAGS),
                };
            }
            counted.bytes += length as u64;
        }
        at += block;
    }
    counted.packets += count as u64;
}

/// Pass frames on: look at the length, count.
#[inline(always)]
fn cross(frame: &mut Frame, counted: &mut Counted) {
    for packet in frame.packets() {
        let length = packet.segment_length();
        counted.odd += u64::from(length < 14);
        counted.bytes += length as u64;
    }
    counted.packets += frame.len() as u64;
}

/// Pass frames of a VLAN on: look at the tag and the length, count.
#[inline(always)]
fn cross_tagged(frame: &mut Frame, counted: &mut Counted) {
    let packets = frame.packets();
    packets.iter().take(8).for_each(Packet::prefetch);
    for (at, packet) in packets.iter().enumerate() {
        if let Some(ahead) = packets.get(at + 8) {
            ahead.prefetch();
        }
        let bytes = packet.bytes();
        let tag = bytes.get(12..).and_then(|bytes| bytes.first_chunk());
        let good = tag.is_some_and(|tag| u32::from_be_bytes(*tag) & 0xffff_0fff == 0x8100_0064);
        counted.odd += u64::from(!good);
        counted.bytes += bytes.len() as u64;
    }
    counted.packets += frame.len() as u64;
}

/// Forward IPv6: as [`ip4()`], with a hop limit and no checksum.
#[inline(always)]
fn ip6(variant: Variant, frame: &mut Frame, tables: &IpTables, counted: &mut Counted) {
    let packets = frame.packets_mut();
    packets.iter().take(8).for_each(Packet::prefetch);
    let count = packets.len();
    let mut asked = LookUpBlock::new();
    let mut at = 0;
    while at < count {
        let block = (count - at).min(BLOCK);
        for i in 0..block {
            if let Some(ahead) = packets.get(at + i + 8) {
                ahead.prefetch();
            }
            counted.odd += u64::from(!asked.check(Layer::Ip6, i, &packets[at + i]));
        }
        asked.look_up(Layer::Ip6, variant, tables, block);
        for (packet, found) in packets[at..at + block].iter_mut().zip(&asked.found) {
            let adjacency = tables.adjacencies.get(tables.groups.word(*found).hop().index);
            if let Some(header) = packet.bytes_mut().get_mut(14..).and_then(Ip6Header::overlay_mut)
            {
                header.set_hop_limit(header.hop_limit() - 1);
            }
            let length = packet.segment_length();
            counted.odd += u64::from(length > usize::from(adjacency.mtu_bytes) + 14);
            if let (Some(block), true) =
                (adjacency.rewrite_field().last_chunk::<16>(), packet.pull(14))
            {
                let _ = packet.push_block16(block, 14);
            }
            counted.bytes += length as u64;
        }
        at += block;
    }
    counted.packets += count as u64;
}
