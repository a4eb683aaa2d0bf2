//! Packets of IPv4 in packets of IPv6 to ends that no tunnel's configuration names (RFC 2473):
//! MAP-E, lightweight 4over6 and DS-Lite. The header in front, and errors about such packets.

use quiver_core::Packet;
use quiver_core::memory::packet::PacketFlags;
use quiver_wire::icmp6::{self, Icmp6Header};
use quiver_wire::ip6::extension::upper_layer;
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol};

use crate::ecn;
use crate::relay::UnderlayError;

/// The hop limit of packets that this router makes (RFC 2473 §6.3).
const HOP_LIMIT: u8 = 64;

/// What is read of a packet of IPv4 before a header is put in front.
#[derive(Clone, Copy, Debug)]
pub struct Ip4Inside {
    /// Bytes, of the header and behind it.
    pub length: usize,
    /// Its destination.
    pub destination: u32,
    /// Its time to live.
    pub ttl: u8,
    /// Its traffic class.
    pub traffic_class: u8,
    /// Does its sender allow fragments?
    pub may_be_cut: bool,
}

impl Ip4Inside {
    /// Of a packet that begins with its header; `None` when it is shorter than that says.
    #[inline(always)]
    pub fn of(packet: &Packet) -> Option<Ip4Inside> {
        let header = Ip4Header::overlay(packet.bytes())?;
        let inside = Ip4Inside {
            length: usize::from(header.total_length()),
            destination: header.destination_bits(),
            ttl: header.ttl(),
            traffic_class: header.traffic_class,
            may_be_cut: !header.dont_fragment(),
        };
        (Ip4Header::LEN..=packet.length()).contains(&inside.length).then_some(inside)
    }

    /// Bytes with the header of IPv6.
    #[inline(always)]
    pub fn outer_length(&self) -> usize {
        self.length + Ip6Header::LEN
    }

    /// The words of the header in front. The traffic class is that of the packet, but for its
    /// notification of congestion where another one is given (RFC 6040 §4.1).
    #[inline(always)]
    fn header(&self, (source, destination): (u128, u128), class: Option<u8>) -> [u64; 5] {
        let class = match class {
            None => self.traffic_class,
            Some(class) => class & !ecn::MASK | self.traffic_class & ecn::MASK,
        };
        let first = u64::from(6u8) << 60
            | u64::from(class) << 52
            | (self.length as u64 & 0xffff) << 16
            | u64::from(IpProtocol::IPV4.0) << 8
            | u64::from(HOP_LIMIT);
        let high = |address: u128| (address >> 64) as u64;
        [first, high(source), source as u64, high(destination), destination as u64]
    }

    /// Put a header of IPv6 from the first to the second of `ends` in front. False when the buffer
    /// has no room for it.
    #[inline(always)]
    #[must_use]
    pub fn encapsulate(&self, packet: &mut Packet, ends: (u128, u128), class: Option<u8>) -> bool {
        if packet.length() > self.length {
            packet.trim(self.length);
        }
        if !packet.push(Ip6Header::LEN) {
            return false;
        }
        let Some(place) = packet.bytes_mut().first_chunk_mut::<{ Ip6Header::LEN }>() else {
            return false;
        };
        // Word by word where they lie: an array of bytes would go by the stack, and be waited for.
        for (place, word) in place.as_chunks_mut().0.iter_mut().zip(self.header(ends, class)) {
            *place = word.to_be_bytes();
        }
        packet.l2_bytes = 0;
        packet.clear(PacketFlags::NOTED);
        // An error about it comes from the interface by which it leaves.
        packet.set_carried();
        true
    }
}

/// Let a packet of IPv6 be cut for the link by which it leaves, as the router's own are (RFC 2473
/// §7.2).
#[cold]
pub fn cut_for_link(packet: &mut Packet) {
    if packet.has(PacketFlags::LOCALLY_ORIGINATED) {
        return;
    }
    packet.set(PacketFlags::LOCALLY_ORIGINATED);
    // No hop is counted where the router's own packets leave.
    if let Some(header) = Ip6Header::overlay_mut(packet.bytes_mut()) {
        header.decrement_hop_limit();
    }
}

/// The packet of IPv4 in one of IPv6 that an ICMPv6 error is about.
#[derive(Clone, Copy, Debug)]
pub struct Quoted {
    /// What the error says.
    pub error: UnderlayError,
    /// Where the packet of IPv4 begins, from the error's header of IPv6 on.
    pub at: usize,
    /// Bytes of the headers around it.
    pub around: u16,
    /// The outer source.
    pub source: u128,
    /// The outer destination.
    pub destination: u128,
}

impl Quoted {
    /// Of the ICMPv6 error that `bytes` begin with; `None` for everything else. Its checksum is not
    /// looked at ([`has_good_checksum`]).
    pub fn of(bytes: &[u8]) -> Option<Quoted> {
        let (header, message) = icmp6::within(bytes)?;
        let (icmp, quoted) = Icmp6Header::split(message)?;
        let is_error = (icmp6::kind::DESTINATION_UNREACHABLE..=icmp6::kind::PARAMETER_PROBLEM)
            .contains(&icmp.kind);
        let (outer, behind) = Ip6Header::split(quoted)?;
        let upper = upper_layer(outer.next_header(), behind).ok()?;
        let is_first = upper.fragment.is_none_or(|fragment| fragment.offset == 0);
        if !(is_error && is_first && upper.protocol == IpProtocol::IPV4) {
            return None;
        }
        let around = Ip6Header::LEN + upper.offset;
        let end = Ip6Header::LEN + usize::from(header.payload_length());
        Some(Quoted {
            error: UnderlayError::of_icmp6(icmp),
            at: end.checked_sub(quoted.len())? + around,
            around: u16::try_from(around).ok()?,
            source: outer.source_bits(),
            destination: outer.destination_bits(),
        })
    }
}

/// Is the checksum of an ICMPv6 message right? `None` when it is not whole.
pub fn has_good_checksum(bytes: &[u8]) -> Option<bool> {
    let (header, message) = icmp6::within(bytes)?;
    Some(icmp6::is_good(header.source(), header.destination(), message))
}
