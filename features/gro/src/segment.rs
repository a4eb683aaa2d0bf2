//! A packet as a TCP segment: where its headers lie, and whether it may be coalesced.

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_core::Packet;
use quiver_core::memory::packet::PacketFlags;
use quiver_offload::checksum::add_to_sum;
use quiver_wire::checksum::{self, Sum};
use quiver_wire::tcp::Flags;
use quiver_wire::{Header, Ip4Header, IpProtocol};

/// Bytes of an Ethernet header.
const ETHERNET_BYTES: usize = 14;
/// VLAN tags that are looked through.
const TAGS_MAX: usize = 2;
/// Bytes of an IPv4 header without options.
const IP4_BYTES: usize = 20;
/// Bytes of an IPv6 header.
const IP6_BYTES: usize = 40;
/// Bytes of a TCP header without options.
const TCP_BYTES: usize = 20;
/// Where the checksum of a TCP header stands.
pub(crate) const TCP_CHECKSUM_AT: usize = 16;
/// Flags and fragment offset of an IPv4 header but for "do not fragment" (RFC 791 §3.1).
const NO_DF: u16 = 0xbfff;
/// Flags that a segment inside a super-frame may have; each has ACK (RFC 9293 §3.1).
const FLAGS_ALLOWED: u8 = Flags::ACK.0 | Flags::PSH.0 | Flags::FIN.0 | TCP_ECE;
/// ECN-Echo (RFC 3168 §6.1).
const TCP_ECE: u8 = 0x40;
/// Flags that end a super-frame.
pub(crate) const FLAGS_LAST: u8 = Flags::PSH.0 | Flags::FIN.0;

/// A packet, as far as coalescing is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It belongs to no TCP flow.
    Other,
    /// It may belong to any TCP flow: a fragment, or behind IP options or extension headers.
    Unclear,
    /// It belongs to a TCP flow.
    Tcp(Segment),
}

/// A TCP segment in its frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Where the IP header begins.
    pub ip: usize,
    pub is_ip6: bool,
    /// Where the TCP header begins.
    pub tcp: usize,
    /// Where the payload begins.
    pub payload: usize,
    pub payload_bytes: usize,
    pub sequence: u32,
    pub flags: u8,
    /// Of addresses, ports and the transmit interface.
    pub hash: u8,
    /// May it be part of a super-frame, as far as it alone decides that?
    pub may_coalesce: bool,
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[inline(always)]
fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Addresses, ports and interface as one byte.
fn hash_of(addresses: &[u8], ports: u32, tx: u32) -> u8 {
    let (words, _) = addresses.as_chunks::<8>();
    let mixed = words.iter().fold(u64::from(ports) ^ u64::from(tx) << 32, |mixed, word| {
        (mixed ^ u64::from_ne_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    });
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Seen {
    /// Look at a frame.
    #[inline]
    pub fn of(packet: &Packet) -> Seen {
        Seen::of_headers(packet).unwrap_or(Seen::Other)
    }

    /// As [`of`](Self::of); `None` when the frame ends in front of its transport header.
    #[inline]
    fn of_headers(packet: &Packet) -> Option<Seen> {
        let bytes = packet.bytes();
        let (mut ip, mut ether_type) = (ETHERNET_BYTES, word(bytes, ETHERNET_BYTES - 2)?);
        for _ in 0..TAGS_MAX {
            if !matches!(ether_type, 0x8100 | 0x88a8) {
                break;
            }
            ip += 4;
            ether_type = word(bytes, ip - 2)?;
        }
        match ether_type {
            0x0800 => Seen::of_ip4(packet, ip),
            0x86dd => Seen::of_ip6(packet, ip),
            _ => None,
        }
    }

    #[inline]
    fn of_ip4(packet: &Packet, ip: usize) -> Option<Seen> {
        let bytes = packet.bytes();
        if *bytes.get(ip + 9)? != IpProtocol::TCP.0 {
            return Some(Seen::Other);
        }
        if bytes[ip] != 0x45 || word(bytes, ip + 6)? & NO_DF != 0 {
            return Some(Seen::Unclear);
        }
        let end = ip + usize::from(word(bytes, ip + 2)?);
        Some(Segment::of(packet, (ip, false), ip + IP4_BYTES, end))
    }

    #[inline]
    fn of_ip6(packet: &Packet, ip: usize) -> Option<Seen> {
        let bytes = packet.bytes();
        match IpProtocol(*bytes.get(ip + 6)?) {
            IpProtocol::TCP => {}
            IpProtocol::HOP_BY_HOP
            | IpProtocol::ROUTING
            | IpProtocol::FRAGMENT
            | IpProtocol::DESTINATION_OPTIONS => return Some(Seen::Unclear),
            _ => return Some(Seen::Other),
        }
        let end = ip + IP6_BYTES + usize::from(word(bytes, ip + 4)?);
        Some(Segment::of(packet, (ip, true), ip + IP6_BYTES, end))
    }
}

impl Segment {
    /// A TCP packet whose TCP header begins at `tcp` and whose IP header says that it ends at
    /// `end`.
    #[inline]
    fn of(packet: &Packet, (ip, is_ip6): (usize, bool), tcp: usize, end: usize) -> Seen {
        Segment::in_frame(packet, (ip, is_ip6), tcp, end).map_or(Seen::Unclear, Seen::Tcp)
    }

    #[inline]
    fn in_frame(
        packet: &Packet,
        (ip, is_ip6): (usize, bool),
        tcp: usize,
        end: usize,
    ) -> Option<Segment> {
        let bytes = packet.bytes();
        let header = bytes.get(tcp..tcp + TCP_BYTES)?;
        let (ports, sequence, flags) = (word32(header, 0)?, word32(header, 4)?, header[13]);
        let header_bytes = usize::from(header[12] >> 4) * 4;
        let payload = tcp + header_bytes;
        let addresses = if is_ip6 { ip + 8 } else { ip + 12 };
        let may_coalesce = header_bytes >= TCP_BYTES
            && payload <= bytes.len()
            && payload < end
            && end == packet.length()
            && flags & !FLAGS_ALLOWED == 0
            && flags & Flags::ACK.0 != 0
            && !packet.has(PacketFlags::MIRRORED);
        Some(Segment {
            ip,
            is_ip6,
            tcp,
            payload,
            payload_bytes: end.saturating_sub(payload),
            sequence,
            flags,
            hash: hash_of(&bytes[addresses..tcp], ports, packet.tx.0),
            may_coalesce: may_coalesce && Segment::is_one(packet, end - tcp),
        })
    }

    /// Is it one packet of a wire, whose checksum is complete or its TCP checksum?
    #[inline]
    fn is_one(packet: &Packet, tcp_bytes: usize) -> bool {
        if !packet.has(PacketFlags::OFFLOAD) {
            return true;
        }
        let offload = packet.offload();
        offload.segment_bytes == 0
            && usize::from(offload.checksum_bytes) == tcp_bytes
            && usize::from(offload.checksum_offset) == TCP_CHECKSUM_AT
    }

    /// Is everything the same in both headers that has to be for one super-frame? It is what a
    /// device copies into each segment: all but lengths, identification, sequence number, checksums
    /// and the flags of the last segment.
    pub fn has_headers_of(&self, packet: &Packet, other: &Segment, of: &Packet) -> bool {
        let (ip, tcp) = (self.ip, self.tcp);
        if (ip, tcp, self.payload) != (other.ip, other.tcp, other.payload) || packet.tx != of.tx {
            return false;
        }
        let (a, b) = (packet.bytes(), of.bytes());
        let same = |from: usize, to: usize| a.get(from..to) == b.get(from..to);
        let same_ip = match self.is_ip6 {
            true => same(ip + 6, ip + 40),
            false => same(ip + 6, ip + 10) && same(ip + 12, ip + 20),
        };
        // Addresses and tags, up to the fields that come first in an IP header.
        same(0, ip + if self.is_ip6 { 4 } else { 2 })
            && same_ip
            && same(tcp, tcp + 4)
            && same(tcp + 8, tcp + 13)
            && (self.flags ^ other.flags) & !FLAGS_LAST == 0
            && same(tcp + 14, tcp + 16)
            && same(tcp + 18, self.payload)
    }

    /// The identification of its IPv4 header, and whether it may not be fragmented: then the
    /// identification says nothing (RFC 6864 §4.1).
    pub fn identification(&self, packet: &Packet) -> (u16, bool) {
        let bytes = packet.bytes();
        let is_atomic = bytes[self.ip + 6] & 0x40 != 0;
        (word(bytes, self.ip + 4).unwrap_or(0), is_atomic)
    }

    /// The sum of its pseudo header for `tcp_bytes` bytes of TCP (RFC 9293 §3.1, RFC 8200 §8.1).
    pub fn pseudo_header(&self, bytes: &[u8], tcp_bytes: usize) -> Option<Sum> {
        if self.is_ip6 {
            let address =
                |at| Some(Ipv6Addr::from(*bytes.get(self.ip + at..)?.first_chunk::<16>()?));
            let (source, destination) = (address(8)?, address(24)?);
            return Some(Sum::pseudo6(source, destination, IpProtocol::TCP, tcp_bytes as u32));
        }
        let address = |at| Some(Ipv4Addr::from(*bytes.get(self.ip + at..)?.first_chunk::<4>()?));
        Some(Sum::pseudo4(address(12)?, address(16)?, IpProtocol::TCP, tcp_bytes as u16))
    }

    /// Are its checksums right, or known to be?
    pub fn is_good(&self, packet: &Packet) -> bool {
        let bytes = packet.bytes();
        let good_ip = self.is_ip6
            || bytes
                .get(self.ip..)
                .and_then(Ip4Header::overlay)
                .is_some_and(checksum::header_is_good);
        let known = PacketFlags::L4_CHECKSUM_GOOD.union(PacketFlags::OFFLOAD);
        if !good_ip || !packet.has_none(known) {
            return good_ip;
        }
        let tcp_bytes = self.payload - self.tcp + self.payload_bytes;
        let pseudo = self.pseudo_header(bytes, tcp_bytes);
        let sum = pseudo.and_then(|sum| add_to_sum(sum, packet, self.tcp, tcp_bytes));
        sum.is_some_and(Sum::is_good)
    }
}
