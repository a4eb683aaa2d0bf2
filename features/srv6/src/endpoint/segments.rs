//! To the next segment (RFC 8986 §4.1, RFC 8754 §4.3.1.1): the plain case in one test and a few
//! stores.

use quiver_core::Packet;
use quiver_core::memory::packet::PacketFlags;
use quiver_wire::ip6::Ip6Header;
use quiver_wire::srh::{SEGMENT_BYTES, SrhHeader, segment_offset};
use quiver_wire::{Header, IpProtocol};

/// Where the fixed header names what follows.
pub(crate) const NEXT_HEADER_PLACE: usize = 6;

/// The next segment of a packet with an SRH directly behind the IPv6 header, and its offset behind
/// that header. `None` for a packet that takes the slow path.
#[inline(always)]
fn next_behind(header: &Ip6Header, behind: &[u8]) -> Option<(usize, [u8; SEGMENT_BYTES])> {
    let place = SrhHeader::overlay(behind)?.next_segment_if_plain(behind.len())?;
    let segment = *behind.get(place..)?.first_chunk::<SEGMENT_BYTES>()?;
    let plain = (header.next_header() == IpProtocol::ROUTING)
        & (header.hop_limit() > 1)
        & is_plain_segment(u128::from_be_bytes(segment));
    plain.then_some((place, segment))
}

/// The next segment of a packet about which nothing is unusual; 0 otherwise, which is no segment.
#[inline(always)]
pub(crate) fn next_if_plain(packet: &Packet) -> u128 {
    let next =
        Ip6Header::split(packet.bytes()).and_then(|(header, behind)| next_behind(header, behind));
    match next {
        Some((_, segment)) if !packet.has(PacketFlags::OFFLOAD) => u128::from_be_bytes(segment),
        _ => 0,
    }
}

/// Make the next segment the active one when nothing is unusual about the packet, and say which it
/// is; 0 otherwise, which is no segment: then nothing has happened. With `pops` (PSP) the SRH is
/// taken out when no segments are left.
#[inline(always)]
pub(crate) fn step_if_plain(packet: &mut Packet, pops: bool) -> u128 {
    if packet.has(PacketFlags::OFFLOAD) {
        return 0;
    }
    let Some((header, behind)) = Ip6Header::split_mut(packet.bytes_mut()) else { return 0 };
    let Some((place, segment)) = next_behind(header, behind) else { return 0 };
    if pops && place == segment_offset(0) {
        pop(packet, Ip6Header::LEN, NEXT_HEADER_PLACE);
        set_destination(packet, u128::from_be_bytes(segment));
    } else {
        header.set_destination(segment.into());
        if let Some(srh) = SrhHeader::overlay_mut(behind) {
            srh.set_segments_left(srh.segments_left().wrapping_sub(1));
        }
    }
    u128::from_be_bytes(segment)
}

/// No group, and not in ::/64, where the unspecified and the loopback address are.
#[inline(always)]
pub(crate) fn is_plain_segment(segment: u128) -> bool {
    ((segment >> 64) as u64).wrapping_sub(1) < (0xff << 56) - 1
}

/// Make `segment` the active one: one segment less is left in the SRH that stands `at` bytes from
/// the IPv6 header. Returns how many are left now. The SRH was checked.
#[inline(always)]
pub(crate) fn advance(packet: &mut Packet, at: usize, segment: u128) -> u8 {
    let bytes = packet.bytes_mut();
    let mut left = 0;
    if let Some(srh) = bytes.get_mut(at..).and_then(SrhHeader::overlay_mut) {
        left = srh.segments_left().wrapping_sub(1);
        srh.set_segments_left(left);
    }
    if let Some(header) = Ip6Header::overlay_mut(bytes) {
        header.set_destination(segment.into());
    }
    left
}

/// The next segment is where the packet goes.
#[inline(always)]
pub(crate) fn set_destination(packet: &mut Packet, segment: u128) {
    if let Some(header) = Ip6Header::overlay_mut(packet.bytes_mut()) {
        header.set_destination(segment.into());
    }
}

/// Take out the SRH that stands `at` bytes from the IPv6 header, and is named in the byte at
/// `named_at` (RFC 8986 §4.16.1, S14.2 to S14.4). The SRH was checked. Headers are moved before
/// anything is written to them: a wide load of what was just stored in parts would wait for the
/// stores.
#[inline(always)]
pub(crate) fn pop(packet: &mut Packet, at: usize, named_at: usize) {
    let bytes = packet.bytes();
    let Some(srh) = bytes.get(at..).and_then(SrhHeader::overlay) else { return };
    let (next, length) = (srh.next_header(), srh.len_bytes());
    if !packet.remove(at, length) {
        return;
    }
    packet.l2_bytes = 0;
    let bytes = packet.bytes_mut();
    if let Some(named) = bytes.get_mut(named_at) {
        *named = next.0;
    }
    if let Some(header) = Ip6Header::overlay_mut(bytes) {
        header.set_payload_length(header.payload_length().wrapping_sub(length as u16));
    }
}
