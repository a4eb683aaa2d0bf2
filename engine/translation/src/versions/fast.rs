//! The fast path: TCP and UDP in packets that are whole, with hops left, without options and
//! extension headers. Their headers are read in words of 64 bits and written where they lie, the
//! payload stays, and the upper layer's checksum gets what its pseudo header changes by (RFC 1624).
//!
//! Other packets go by [`read`](super::read), [`to4`](super::to4) and [`to6`](super::to6), which
//! make the same of a packet as the functions here do; `tests/fast.rs` compares both.

use quiver_core::Packet;
use quiver_core::memory::packet::PacketFlags;
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol};

use super::HEADER_DIFFERENCE;
pub use super::embedding::Embedding;
use super::ends::{Delta, Ends4, Ends6, Ports};
use super::to4::{DONT_FRAGMENT, MAY_BE_CUT_BYTES};

/// What the general path is for: bytes in several buffers, work left to the device, and packets of
/// the router's own, whose hops do not count.
const UNUSUAL: PacketFlags =
    PacketFlags::CHAINED.union(PacketFlags::OFFLOAD).union(PacketFlags::LOCALLY_ORIGINATED);
/// The first octet of an IPv4 header without options.
const VERSION_4: u32 = 0x45;
/// More fragments, and the place of this one, in the first 64 bits of an IPv4 header.
const FRAGMENT: u64 = 0x3fff;
/// Don't fragment, there.
const WHOLE_ONLY: u64 = DONT_FRAGMENT as u64;
/// Where TCP has its flags and its checksum, and UDP its checksum, in bytes.
const TCP_FLAGS: usize = 13;
const TCP_CHECKSUM: usize = 16;
const UDP_CHECKSUM: usize = 6;
/// Bytes of the headers of TCP and of UDP.
const TCP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
const SYN: u8 = 2;

/// The bytes of the upper layer's header that must be there; nothing for protocols that have no
/// ports.
#[inline(always)]
fn upper_bytes(protocol: IpProtocol) -> Option<usize> {
    match protocol {
        IpProtocol::TCP => Some(TCP_BYTES),
        IpProtocol::UDP => Some(UDP_BYTES),
        _ => None,
    }
}

/// The flags of a segment of TCP, whose header begins at `upper`; a datagram has none.
#[inline(always)]
fn tcp_flags(packet: &Packet, protocol: IpProtocol, upper: usize) -> Option<u8> {
    if protocol != IpProtocol::TCP {
        return None;
    }
    packet.bytes().get(upper + TCP_FLAGS).copied()
}

/// Does a segment of TCP, whose header begins at `upper`, open a connection? No datagram does.
#[inline(always)]
fn opens(packet: &Packet, protocol: IpProtocol, upper: usize) -> bool {
    tcp_flags(packet, protocol, upper).is_some_and(|flags| flags & SYN != 0)
}

/// What the header of the upper layer gets.
#[derive(Clone, Copy)]
struct Change {
    /// Other ports; the packet keeps its own where there are none.
    ports: Option<Ports>,
    /// What the checksum gets.
    delta: Delta,
}

impl Change {
    /// The ports stay. `delta` begins with [`Delta::NEUTRAL`].
    #[inline(always)]
    fn of_addresses(delta: Delta) -> Change {
        Change { ports: None, delta }
    }

    /// Other ports, and a `delta` that was folded: what is added to a checksum then is the same
    /// as on the general path.
    #[inline(always)]
    fn of_ends(ports: Ports, delta: u16) -> Change {
        Change { ports: Some(ports), delta: Delta::new().add(delta) }
    }
}

/// Change the header of the upper layer, which begins `upper`. False, and nothing changes, for UDP
/// without checksum.
#[inline(always)]
#[must_use]
fn adjust(upper: &mut [u8], protocol: IpProtocol, Change { ports, delta }: Change) -> bool {
    let is_udp = protocol == IpProtocol::UDP;
    let at = if is_udp { UDP_CHECKSUM } else { TCP_CHECKSUM };
    let Some(place) = upper.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<2>()) else {
        return false;
    };
    let old = u16::from_be_bytes(*place);
    if is_udp & (old == 0) {
        return false;
    }
    let new = !delta.sub(old).fold();
    // Zero would be no checksum (RFC 768).
    let new = if is_udp & (new == 0) { 0xffff } else { new };
    *place = new.to_be_bytes();
    if let (Some(ports), Some(place)) = (ports, upper.first_chunk_mut()) {
        let both = u32::from(ports.source) << 16 | u32::from(ports.destination);
        *place = both.to_be_bytes();
    }
    true
}

/// A packet of IPv4 on the fast path: 24 bytes of it, as they are.
#[derive(Clone, Copy, Debug)]
pub struct Fast4 {
    /// Version, class, length, identification, flags and place.
    first: u64,
    /// Hops, protocol, checksum, source.
    second: u64,
    /// Destination and ports.
    third: u64,
}

impl Fast4 {
    /// Of a packet that begins with its header; `None` for those of the general path.
    #[inline(always)]
    pub fn of(packet: &Packet) -> Option<Fast4> {
        let bytes = packet.bytes();
        // Each word by itself: as an array they would become a vector, and go by the stack.
        let [first, second, third] = bytes.as_chunks().0.first_chunk()?;
        let word = |bytes: &[u8; 8]| u64::from_be_bytes(*bytes);
        let read = Fast4 { first: word(first), second: word(second), third: word(third) };
        let first = read.first;
        let upper = upper_bytes(read.protocol())?;
        let is_fast = (first >> 56 == u64::from(VERSION_4))
            & (first & FRAGMENT == 0)
            & (read.ttl() > 1)
            & (Ip4Header::LEN + upper..=bytes.len()).contains(&read.length())
            & packet.has_none(UNUSUAL);
        is_fast.then_some(read)
    }

    /// Bytes of the packet.
    #[inline(always)]
    pub fn length(self) -> usize {
        (self.first >> 32 & 0xffff) as usize
    }

    /// Differentiated services and congestion notification.
    #[inline(always)]
    pub fn traffic_class(self) -> u8 {
        (self.first >> 48) as u8
    }

    /// Routers must not cut it.
    #[inline(always)]
    pub fn dont_fragment(self) -> bool {
        self.first & WHOLE_ONLY != 0
    }

    /// Hops that it may still take, two at least.
    #[inline(always)]
    pub fn ttl(self) -> u8 {
        (self.second >> 56) as u8
    }

    /// TCP or UDP.
    #[inline(always)]
    fn protocol(self) -> IpProtocol {
        IpProtocol((self.second >> 48) as u8)
    }

    /// Who sends.
    #[inline(always)]
    pub fn source(self) -> u32 {
        self.second as u32
    }

    /// Who receives.
    #[inline(always)]
    pub fn destination(self) -> u32 {
        (self.third >> 32) as u32
    }

    /// The port of who receives.
    #[inline(always)]
    pub fn destination_port(self) -> u16 {
        self.third as u16
    }

    /// Does it open a connection of TCP?
    #[inline(always)]
    pub fn opens(self, packet: &Packet) -> bool {
        opens(packet, self.protocol(), Ip4Header::LEN)
    }

    /// The flags of TCP; a datagram has none.
    #[inline(always)]
    pub fn tcp_flags(self, packet: &Packet) -> Option<u8> {
        tcp_flags(packet, self.protocol(), Ip4Header::LEN)
    }

    /// Does it become one packet of IPv6: is that at most so many bytes long, or may it not be cut
    /// (RFC 7915 §4)?
    #[inline(always)]
    pub fn fits6(self, mtu_bytes: u16) -> bool {
        self.dont_fragment() | (self.length() + HEADER_DIFFERENCE <= usize::from(mtu_bytes))
    }

    /// Make it a packet of IPv6 from the first to the second of `ends`. `delta` is what its
    /// addresses change by, beginning with [`Delta::NEUTRAL`]. False, and the packet is as it was,
    /// where there is no room in front of it, or for UDP without checksum.
    #[inline(always)]
    #[must_use]
    pub fn to6(self, packet: &mut Packet, ends: (u128, u128), delta: Delta) -> bool {
        self.rewrite6(packet, ends, Change::of_addresses(delta))
    }

    /// As [`to6`](Self::to6), with other ports, too. `delta` is what
    /// [`delta_to6`](super::ends::delta_to6) says.
    #[inline(always)]
    #[must_use]
    pub fn to6_ends(self, packet: &mut Packet, ends: &Ends6, delta: u16) -> bool {
        let change = Change::of_ends(ends.ports, delta);
        self.rewrite6(packet, (ends.source, ends.destination), change)
    }

    #[inline(always)]
    fn rewrite6(self, packet: &mut Packet, ends: (u128, u128), change: Change) -> bool {
        if !packet.push(HEADER_DIFFERENCE) {
            return false;
        }
        let bytes = packet.bytes_mut().split_first_chunk_mut::<{ Ip6Header::LEN }>();
        let Some((header, upper)) = bytes else { return !packet.pull(HEADER_DIFFERENCE) };
        if !adjust(upper, self.protocol(), change) {
            return !packet.pull(HEADER_DIFFERENCE);
        }
        let payload = (self.length() - Ip4Header::LEN) as u64;
        let class_flow = 6 << 28 | u64::from(self.traffic_class()) << 20;
        let last = u64::from(self.protocol().0) << 8 | u64::from(self.ttl());
        let high = |address: u128| (address >> 64) as u64;
        let first = class_flow << 32 | payload << 16 | last;
        let words = [first, high(ends.0), ends.0 as u64, high(ends.1), ends.1 as u64];
        for (place, word) in header.as_chunks_mut().0.iter_mut().zip(words) {
            *place = word.to_be_bytes();
        }
        finish(packet, self.length() + HEADER_DIFFERENCE);
        true
    }
}

/// A packet of IPv6 on the fast path: 44 bytes of it, as they are.
#[derive(Clone, Copy, Debug)]
pub struct Fast6 {
    /// Version, class, flow, length, next header, hops.
    first: u64,
    source: u128,
    destination: u128,
    source_port: u16,
}

impl Fast6 {
    /// Of a packet that begins with its header; `None` for those of the general path.
    #[inline(always)]
    pub fn of(packet: &Packet) -> Option<Fast6> {
        let bytes = packet.bytes();
        let (header, behind) = bytes.split_first_chunk::<{ Ip6Header::LEN }>()?;
        let [first, a, b, c, d] = header.as_chunks::<8>().0.first_chunk()?;
        let word = |bytes: &[u8; 8]| u64::from_be_bytes(*bytes);
        let address = |high, low| u128::from(word(high)) << 64 | u128::from(word(low));
        let first = word(first);
        let read = Fast6 {
            first,
            source: address(a, b),
            destination: address(c, d),
            source_port: u16::from_be_bytes(*behind.first_chunk()?),
        };
        let upper = upper_bytes(read.protocol())?;
        let is_fast = (first >> 60 == 6)
            & (read.hop_limit() > 1)
            & (upper..=behind.len()).contains(&read.payload())
            & packet.has_none(UNUSUAL);
        is_fast.then_some(read)
    }

    #[inline(always)]
    fn payload(self) -> usize {
        (self.first >> 16 & 0xffff) as usize
    }

    #[inline(always)]
    fn hop_limit(self) -> u8 {
        self.first as u8
    }

    #[inline(always)]
    fn protocol(self) -> IpProtocol {
        IpProtocol((self.first >> 8) as u8)
    }

    /// Who sends.
    #[inline(always)]
    pub fn source(self) -> u128 {
        self.source
    }

    /// Who receives.
    #[inline(always)]
    pub fn destination(self) -> u128 {
        self.destination
    }

    /// The port of who sends.
    #[inline(always)]
    pub fn source_port(self) -> u16 {
        self.source_port
    }

    /// Bytes of the packet of IPv4 that it becomes.
    #[inline(always)]
    pub fn length4(self) -> usize {
        self.payload() + Ip4Header::LEN
    }

    /// Does it open a connection of TCP?
    #[inline(always)]
    pub fn opens(self, packet: &Packet) -> bool {
        opens(packet, self.protocol(), Ip6Header::LEN)
    }

    /// The flags of TCP; a datagram has none.
    #[inline(always)]
    pub fn tcp_flags(self, packet: &Packet) -> Option<u8> {
        tcp_flags(packet, self.protocol(), Ip6Header::LEN)
    }

    /// Make it a packet of IPv4 from the first to the second of `ends`. `delta` is what its
    /// addresses change by, beginning with [`Delta::NEUTRAL`]. False, and the packet is as it was,
    /// for UDP without checksum.
    #[inline(always)]
    #[must_use]
    pub fn to4(
        self,
        packet: &mut Packet,
        ends: (u32, u32),
        delta: Delta,
        identification: u16,
    ) -> bool {
        self.rewrite4(packet, ends, Change::of_addresses(delta), identification)
    }

    /// As [`to4`](Self::to4), with other ports, too. `delta` is what
    /// [`delta_to4`](super::ends::delta_to4) says.
    #[inline(always)]
    #[must_use]
    pub fn to4_ends(
        self,
        packet: &mut Packet,
        ends: &Ends4,
        delta: u16,
        identification: u16,
    ) -> bool {
        let change = Change::of_ends(ends.ports, delta);
        self.rewrite4(packet, (ends.source, ends.destination), change, identification)
    }

    #[inline(always)]
    fn rewrite4(
        self,
        packet: &mut Packet,
        ends: (u32, u32),
        change: Change,
        identification: u16,
    ) -> bool {
        let bytes = packet.bytes_mut().split_first_chunk_mut::<{ Ip6Header::LEN }>();
        let Some((header, upper)) = bytes else { return false };
        if !adjust(upper, self.protocol(), change) {
            return false;
        }
        let total = self.length4();
        let flags = if total <= MAY_BE_CUT_BYTES { 0 } else { DONT_FRAGMENT };
        let class = (self.first >> 52) as u32 & 0xff;
        let first = VERSION_4 << 24 | class << 16 | total as u32;
        let second = u32::from(identification) << 16 | u32::from(flags);
        let hops = u32::from(self.hop_limit()) << 24 | u32::from(self.protocol().0) << 16;
        let sum = Delta::new().add32(first).add32(second).add32(hops).add32(ends.0).add32(ends.1);
        let words = [first, second, hops | u32::from(!sum.fold()), ends.0, ends.1];
        let places = header[HEADER_DIFFERENCE..].as_chunks_mut().0;
        for (place, word) in places.iter_mut().zip(words) {
            *place = word.to_be_bytes();
        }
        let is_done = packet.pull(HEADER_DIFFERENCE);
        finish(packet, total);
        is_done
    }
}

/// What holds for all translated packets. Padding of a frame is cut off.
#[inline(always)]
fn finish(packet: &mut Packet, length: usize) {
    if packet.segment_length() != length {
        packet.trim(length);
    }
    packet.l2_bytes = 0;
    packet.set_carried();
}
