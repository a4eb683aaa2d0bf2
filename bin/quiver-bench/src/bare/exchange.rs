//! The floor of SRv6 functions that change the headers in front of packets: the header is checked
//! and looked up, some bytes go, a ready header comes with the fields that every packet has of its
//! own, and what leaves is looked up.

use quiver_core::Frame;
use quiver_core::cpu::Variant;
use quiver_core::memory::packet::Packet;
use quiver_forwarding::handover::NextHopIndex;
use quiver_forwarding::ip::IpTables;
use quiver_wire::checksum::{self, Sum};
use quiver_wire::{Header, Ip4Header, Ip6Header};

use super::Counted;
pub use super::blocks::Layer;
use super::blocks::{BLOCK, LookUpBlock};

/// The longest front, in blocks: Ethernet, IPv6, an SRH of two segments.
const BLOCKS: usize = 3;
/// What fronts are copied from.
static FRONT: [[u8; 32]; BLOCKS] = [[0; 32]; BLOCKS];
/// What a packet's headers are compared with where they are kept.
static KEPT: [[u8; 8]; 10] = [[0; 8]; 10];
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// What is done with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// What arrives; IPv4 and IPv6 are looked up.
    pub arrives: Layer,
    /// Bytes that go behind the Ethernet header, which goes too unless a frame arrives.
    pub takes: usize,
    /// Bytes that come, an Ethernet header not counted.
    pub puts: usize,
    /// What leaves; IPv4 and IPv6 get an Ethernet header.
    pub leaves: Layer,
    /// Is what leaves looked up?
    pub looks_up: bool,
    /// Sixteen bytes that go from one place behind the arriving Ethernet header to another behind
    /// the leaving one.
    pub carries: Option<(usize, usize)>,
    /// Are the headers that go compared with those that are kept?
    pub keeps: bool,
    /// Is there a checksum over all bytes behind the IPv6 header that arrives?
    pub checks: bool,
    /// Is there one over all bytes behind the IPv6 header that leaves?
    pub sums: bool,
}

impl Exchange {
    /// Nothing goes and nothing comes: a packet is forwarded.
    pub const fn of(arrives: Layer, leaves: Layer) -> Exchange {
        Exchange {
            arrives,
            takes: 0,
            puts: 0,
            leaves,
            looks_up: false,
            carries: None,
            keeps: false,
            checks: false,
            sums: false,
        }
    }
}

/// Are the first bytes those that are kept?
#[inline(always)]
fn differs(bytes: &[u8]) -> u64 {
    let words = bytes.as_chunks::<8>().0.iter().zip(&KEPT);
    words.fold(0, |differ, (word, kept)| {
        differ | (u64::from_ne_bytes(*word) ^ u64::from_ne_bytes(*kept))
    })
}

/// Add up what is behind an IPv6 header. A checksum of UDP is never 0.
#[inline(always)]
fn has_sum(packet: &[u8]) -> bool {
    Sum::new().bytes(packet.get(Ip6Header::LEN..).unwrap_or_default()).udp_checksum() != 0
}

/// One packet's headers.
#[inline(always)]
fn change(exchange: &Exchange, packet: &mut Packet, counted: &mut Counted) {
    let Exchange { arrives, takes, puts, leaves, carries, keeps, checks, sums, .. } = *exchange;
    let carried: Option<[u8; 16]> = carries.and_then(|(from, _)| {
        packet.bytes().get(ETHERNET + from..).and_then(|bytes| bytes.first_chunk()).copied()
    });
    if keeps {
        let headers = packet.bytes().get(ETHERNET..ETHERNET + takes).unwrap_or_default();
        counted.odd += u64::from(differs(headers) == 0);
    }
    if checks {
        counted.odd += u64::from(!has_sum(packet.bytes().get(ETHERNET..).unwrap_or_default()));
    }
    let gone = if arrives == Layer::Frame { takes } else { ETHERNET + takes };
    counted.odd += u64::from(!packet.pull(gone));
    if puts > 0 {
        let blocks = puts.div_ceil(32).min(BLOCKS);
        counted.odd += u64::from(!packet.push_blocks(&FRONT[..blocks], puts));
    }
    let length = packet.segment_length();
    let bytes = packet.bytes_mut();
    if let (Some((_, to)), Some(carried)) = (carries, carried)
        && let Some(place) = bytes.get_mut(to..to + carried.len())
    {
        place.copy_from_slice(&carried);
    }
    match leaves {
        Layer::Frame => {}
        Layer::Ip4 => {
            if let Some(header) = Ip4Header::overlay_mut(bytes) {
                if puts > 0 {
                    header.set_total_length(length as u16);
                    header.set_checksum(checksum::header_checksum(header));
                } else {
                    checksum::decrement_ttl(header);
                }
            }
        }
        Layer::Ip6 => {
            if let Some(header) = Ip6Header::overlay_mut(bytes) {
                header.set_payload_length((length - Ip6Header::LEN) as u16);
                header.set_hop_limit(header.hop_limit().wrapping_sub(1));
            }
        }
    }
    if sums {
        counted.odd += u64::from(!has_sum(bytes));
    }
}

/// All packets of a vector.
#[inline(always)]
pub fn exchange(
    exchange: &Exchange,
    variant: Variant,
    frame: &mut Frame,
    tables: &IpTables,
    counted: &mut Counted,
) {
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
            counted.odd += u64::from(!asked.check(exchange.arrives, i, &packets[at + i]));
        }
        asked.look_up(exchange.arrives, variant, tables, block);
        for (i, packet) in packets[at..at + block].iter_mut().enumerate() {
            packet.hand_over(NextHopIndex(asked.found[i].0));
            change(exchange, packet, counted);
            if exchange.looks_up {
                asked.note(exchange.leaves, i, packet.bytes());
            }
        }
        if exchange.looks_up {
            asked.look_up(exchange.leaves, variant, tables, block);
        }
        for (packet, found) in packets[at..at + block].iter_mut().zip(&asked.found) {
            if exchange.leaves != Layer::Frame {
                let adjacency = tables.adjacencies.get(tables.groups.word(*found).hop().index);
                if let Some(block) = adjacency.rewrite_field().last_chunk::<16>() {
                    let _ = packet.push_block16(block, ETHERNET);
                }
            }
            counted.bytes += packet.segment_length() as u64;
        }
        at += block;
    }
    counted.packets += count as u64;
}
