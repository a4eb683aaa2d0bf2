//! Decapsulation: the inner packet is left, checked as if it had just been received, with the
//! congestion mark of the outer header (RFC 6040 §4.2). Who receives it says where it came in: on a
//! tunnel's interface, or on none ([`Packet::set_carried`]).

use quiver_core::Packet;
use quiver_core::memory::packet::PacketFlags;
use quiver_forwarding::fib::Family;
use quiver_wire::checksum::update16;
use quiver_wire::{EthernetHeader, Header, Ip4Header, Ip6Header, ip4, ip6};

use crate::ecn;
use crate::flow::packet_in_frame;
use crate::outer::OuterHeader;

/// Why an inner packet does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InnerBad {
    /// Fewer bytes than the outer headers.
    Truncated,
    /// The inner header is wrong, or cut off.
    Wrong,
    /// The outer header says congestion, and the inner one cannot.
    Congestion,
}

/// The destination of an inner packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InnerDestination {
    /// IPv4.
    Ip4(u32),
    /// IPv6.
    Ip6(u128),
}

/// The traffic class of the outer header that the packet begins with; 0 where there is none.
#[inline(always)]
fn outer_class<O: OuterHeader>(packet: &Packet) -> u8 {
    O::traffic_class(packet.bytes()).unwrap_or(0)
}

/// Leave the IPv6 packet that begins `at` bytes from the outer header.
///
/// # Errors
/// The inner packet is truncated or malformed, or its congestion mark does not fit the outer one.
#[inline(always)]
pub fn ip6<O: OuterHeader>(packet: &mut Packet, at: usize) -> Result<(), InnerBad> {
    let outer = outer_class::<O>(packet);
    take_off(packet, at)?;
    let available = packet.segment_length();
    let header = Ip6Header::overlay(packet.bytes()).ok_or(InnerBad::Wrong)?;
    let exact = usize::from(header.payload_length()) + Ip6Header::LEN == available;
    let may_change = ecn::may_change(outer, header.traffic_class());
    if !(ip6::is_plain(header, available) & exact & packet.has_none(PacketFlags::CHAINED)) {
        let available = packet.length();
        let header = ip6::validate(packet.bytes(), available).map_err(|_| InnerBad::Wrong)?;
        let total = usize::from(header.payload_length()) + Ip6Header::LEN;
        packet.trim(total);
    }
    if may_change { merge_class6(packet, outer) } else { Ok(()) }
}

/// Leave the IPv4 packet that begins `at` bytes from the outer header.
///
/// # Errors
/// The inner packet is truncated or malformed, or its congestion mark does not fit the outer one.
#[inline(always)]
pub fn ip4<O: OuterHeader>(packet: &mut Packet, at: usize) -> Result<(), InnerBad> {
    let outer = outer_class::<O>(packet);
    take_off(packet, at)?;
    let available = packet.segment_length();
    let header = Ip4Header::overlay(packet.bytes()).ok_or(InnerBad::Wrong)?;
    let exact = usize::from(header.total_length()) == available;
    let may_change = ecn::may_change(outer, header.traffic_class);
    if !(ip4::is_plain(header, available) & exact & packet.has_none(PacketFlags::CHAINED)) {
        let available = packet.length();
        let header = ip4::validate(packet.bytes(), available).map_err(|_| InnerBad::Wrong)?;
        let total = usize::from(header.total_length());
        packet.trim(total);
    }
    if may_change { merge_class4(packet, outer) } else { Ok(()) }
}

/// Is nothing unusual about the inner IPv6 packet, which begins `at` bytes from the outer header (0
/// for none)? Then it is left as it is when the outer headers are taken off.
#[inline(always)]
pub fn is_plain_ip6<O: OuterHeader>(packet: &Packet, at: usize) -> bool {
    let Some(inner) = packet.bytes().get(at..) else { return false };
    let Some(header) = Ip6Header::overlay(inner) else { return false };
    let is_exact = usize::from(header.payload_length()) + Ip6Header::LEN == inner.len();
    let keeps_class = !ecn::may_change(outer_class::<O>(packet), header.traffic_class());
    let is_whole = packet.has_none(PacketFlags::CHAINED.union(PacketFlags::OFFLOAD));
    (at != 0) & is_whole & ip6::is_plain(header, inner.len()) & is_exact & keeps_class
}

/// As [`is_plain_ip6`] for an inner IPv4 packet.
#[inline(always)]
pub fn is_plain_ip4<O: OuterHeader>(packet: &Packet, at: usize) -> bool {
    let Some(inner) = packet.bytes().get(at..) else { return false };
    let Some(header) = Ip4Header::overlay(inner) else { return false };
    let is_exact = usize::from(header.total_length()) == inner.len();
    let keeps_class = !ecn::may_change(outer_class::<O>(packet), header.traffic_class);
    let is_whole = packet.has_none(PacketFlags::CHAINED.union(PacketFlags::OFFLOAD));
    (at != 0) & is_whole & ip4::is_plain(header, inner.len()) & is_exact & keeps_class
}

/// Is nothing unusual about the inner frame? As [`is_plain_ip4`].
#[inline(always)]
pub fn is_plain_frame<O: OuterHeader>(packet: &Packet, at: usize) -> bool {
    let is_long_enough = packet.segment_length() >= at + EthernetHeader::LEN;
    let keeps_class = outer_class::<O>(packet) & ecn::ECT_1 == 0;
    let is_whole = packet.has_none(PacketFlags::CHAINED.union(PacketFlags::OFFLOAD));
    (at != 0) & is_long_enough & keeps_class & is_whole
}

/// As [`ip6()`], if nothing is unusual about the inner packet ([`is_plain_ip6`]); else nothing
/// happens. Returns its destination.
#[inline(always)]
pub fn ip6_fast<O: OuterHeader>(packet: &mut Packet, at: usize) -> Option<u128> {
    if !is_plain_ip6::<O>(packet, at) {
        return None;
    }
    let destination = Ip6Header::overlay(packet.bytes().get(at..)?)?.destination_bits();
    take_off_plain(packet, at).is_ok().then_some(destination)
}

/// As [`ip4()`], likewise.
#[inline(always)]
pub fn ip4_fast<O: OuterHeader>(packet: &mut Packet, at: usize) -> Option<u32> {
    if !is_plain_ip4::<O>(packet, at) {
        return None;
    }
    let destination = Ip4Header::overlay(packet.bytes().get(at..)?)?.destination_bits();
    take_off_plain(packet, at).is_ok().then_some(destination)
}

/// Take the first `at` bytes off: another packet is left, with a flow of its own.
///
/// # Errors
/// The packet is shorter than that.
#[inline(always)]
pub fn take_off(packet: &mut Packet, at: usize) -> Result<(), InnerBad> {
    packet.note_decapsulated();
    take_off_plain(packet, at)
}

/// As [`take_off`], of a packet that leaves no work to the transmitting device ([`is_plain_ip4`],
/// [`is_plain_ip6`]).
///
/// # Errors
/// The packet is shorter than that.
#[inline(always)]
pub fn take_off_plain(packet: &mut Packet, at: usize) -> Result<(), InnerBad> {
    if !packet.pull(at) {
        return Err(InnerBad::Truncated);
    }
    packet.hash = 0;
    packet.l2_bytes = 0;
    Ok(())
}

/// Merge the congestion mark of an outer traffic class into the IP packet in a frame (RFC 9601 §5).
/// A frame without one is left as it is.
///
/// # Errors
/// The outer header says congestion, and the packet cannot.
#[cold]
#[inline(never)]
pub fn merge_frame(packet: &mut Packet, outer: u8) -> Result<(), InnerBad> {
    let Some((family, at)) = packet_in_frame(packet.bytes()) else { return Ok(()) };
    let inner = packet.bytes_mut().get_mut(at..).unwrap_or_default();
    match family {
        Family::Ip4 => merge_bytes4(inner, outer),
        Family::Ip6 => merge_bytes6(inner, outer),
    }
}

#[cold]
#[inline(never)]
fn merge_class6(packet: &mut Packet, outer: u8) -> Result<(), InnerBad> {
    merge_bytes6(packet.bytes_mut(), outer)
}

fn merge_bytes6(bytes: &mut [u8], outer: u8) -> Result<(), InnerBad> {
    let header = Ip6Header::overlay_mut(bytes).ok_or(InnerBad::Wrong)?;
    let class =
        ecn::decapsulated(outer, header.traffic_class()).map_err(|_| InnerBad::Congestion)?;
    header.set_traffic_class(class);
    Ok(())
}

/// As [`merge_class6`]; the checksum of the inner header follows.
#[cold]
#[inline(never)]
fn merge_class4(packet: &mut Packet, outer: u8) -> Result<(), InnerBad> {
    merge_bytes4(packet.bytes_mut(), outer)
}

fn merge_bytes4(bytes: &mut [u8], outer: u8) -> Result<(), InnerBad> {
    let header = Ip4Header::overlay_mut(bytes).ok_or(InnerBad::Wrong)?;
    let old = header.traffic_class;
    let new = ecn::decapsulated(outer, old).map_err(|_| InnerBad::Congestion)?;
    header.traffic_class = new;
    // The class is the low byte of the header's first word.
    header.set_checksum(update16(header.checksum(), old.into(), new.into()));
    Ok(())
}
