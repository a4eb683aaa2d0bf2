//! An inner packet without what was around it (RFC 8986 §4.4 to §4.8: "remove the outer IPv6 header with all its
//! extension headers"), checked as if it had just come in.

use quiver_core::Packet;
use quiver_core::packet::PacketFlags;
use quiver_wire::checksum::update16;
use quiver_wire::ip6::Ip6Header;
use quiver_wire::{Header, Ip4Header, IpProtocol, ip4, ip6};

use super::inside::{Inside, inside_if_plain};
use super::reasons::LocalSidDrop;
use super::segments::moved;

/// Congestion experienced (RFC 3168 §5), and the field that says so.
const CE: u8 = 3;

/// Is the congestion mark of the outer header set? Seldom.
#[inline(always)]
fn is_congested(packet: &Packet) -> bool {
    Ip6Header::overlay(packet.bytes()).is_some_and(|outer| outer.traffic_class() & CE == CE)
}

/// Leave the IPv6 packet that begins `at` bytes from the outer header.
#[inline(always)]
pub(crate) fn ip6(packet: &mut Packet, at: usize) -> Result<(), LocalSidDrop> {
    let congested = is_congested(packet);
    take_off(packet, at)?;
    packet.set_carried();
    let available = packet.segment_length();
    let header = Ip6Header::overlay(packet.bytes()).ok_or(LocalSidDrop::InnerWrong)?;
    let exact = usize::from(header.payload_length()) + Ip6Header::LEN == available;
    if !(ip6::is_plain(header, available) & exact & packet.has_none(PacketFlags::CHAINED)) {
        let available = packet.length();
        let header = ip6::validate(packet.bytes(), available).map_err(|_| LocalSidDrop::InnerWrong)?;
        let total = usize::from(header.payload_length()) + Ip6Header::LEN;
        packet.trim(total);
    }
    if congested { carry_on6(packet) } else { Ok(()) }
}

/// Leave the IPv4 packet that begins `at` bytes from the outer header.
#[inline(always)]
pub(crate) fn ip4(packet: &mut Packet, at: usize) -> Result<(), LocalSidDrop> {
    let congested = is_congested(packet);
    take_off(packet, at)?;
    packet.set_carried();
    let available = packet.segment_length();
    let header = Ip4Header::overlay(packet.bytes()).ok_or(LocalSidDrop::InnerWrong)?;
    let exact = usize::from(header.total_length()) == available;
    if !(ip4::is_plain(header, available) & exact & packet.has_none(PacketFlags::CHAINED)) {
        let available = packet.length();
        let header = ip4::validate(packet.bytes(), available).map_err(|_| LocalSidDrop::InnerWrong)?;
        let total = usize::from(header.total_length());
        packet.trim(total);
    }
    if congested { carry_on4(packet) } else { Ok(()) }
}

/// The destination of an inner packet.
#[derive(Clone, Copy)]
pub(crate) enum Inner {
    /// IPv4.
    Four(u32),
    /// IPv6.
    Six(u128),
}

/// As [`ip4()`] and [`ip6()`], if nothing is unusual about the packet and what is inside is of a family that is `taken`
/// (IPv4, IPv6); else nothing happens.
#[inline(always)]
pub(crate) fn inner_if_plain(packet: &mut Packet, taken: (bool, bool)) -> Option<Inner> {
    let Inside { protocol, at } = inside_if_plain(packet);
    match protocol {
        IpProtocol::IPV4 if taken.0 => ip4_if_plain(packet, at).map(Inner::Four),
        IpProtocol::IPV6 if taken.1 => ip6_if_plain(packet, at).map(Inner::Six),
        _ => None,
    }
}

/// As [`ip6()`], if nothing is unusual about the packet there; else nothing happens. Returns its destination. There is
/// none at 0, where a packet that is not plain has what is inside.
#[inline(always)]
pub(crate) fn ip6_if_plain(packet: &mut Packet, at: usize) -> Option<u128> {
    if at == 0 || !packet.has_none(PacketFlags::CHAINED.and(PacketFlags::OFFLOAD)) {
        return None;
    }
    let (inner, congested) = (packet.bytes().get(at..)?, is_congested(packet));
    let header = Ip6Header::overlay(inner)?;
    let exact = usize::from(header.payload_length()) + Ip6Header::LEN == inner.len();
    let destination = header.destination_bits();
    if !(ip6::is_plain(header, inner.len()) & exact & !congested) || take_off(packet, at).is_err() {
        return None;
    }
    packet.set_carried();
    Some(destination)
}

/// As [`ip4()`], likewise.
#[inline(always)]
pub(crate) fn ip4_if_plain(packet: &mut Packet, at: usize) -> Option<u32> {
    if at == 0 || !packet.has_none(PacketFlags::CHAINED.and(PacketFlags::OFFLOAD)) {
        return None;
    }
    let (inner, congested) = (packet.bytes().get(at..)?, is_congested(packet));
    let header = Ip4Header::overlay(inner)?;
    let exact = usize::from(header.total_length()) == inner.len();
    let destination = header.destination_bits();
    if !(ip4::is_plain(header, inner.len()) & exact & !congested) || take_off(packet, at).is_err() {
        return None;
    }
    packet.set_carried();
    Some(destination)
}

/// Take the first `at` bytes off: another packet is left, with a flow of its own.
#[inline(always)]
pub(crate) fn take_off(packet: &mut Packet, at: usize) -> Result<(), LocalSidDrop> {
    if !packet.pull(at) {
        return Err(LocalSidDrop::Truncated);
    }
    packet.hash = 0;
    moved(packet, at);
    Ok(())
}

/// The outer header says congestion: the inner one must say so too, or the packet dies (RFC 6040 §4.2).
#[cold]
#[inline(never)]
fn carry_on6(packet: &mut Packet) -> Result<(), LocalSidDrop> {
    let header = Ip6Header::overlay_mut(packet.bytes_mut()).ok_or(LocalSidDrop::InnerWrong)?;
    if header.traffic_class() & CE == 0 {
        return Err(LocalSidDrop::Congestion);
    }
    header.set_traffic_class(header.traffic_class() | CE);
    Ok(())
}

/// As [`carry_on6`]; the checksum of the inner header follows.
#[cold]
#[inline(never)]
fn carry_on4(packet: &mut Packet) -> Result<(), LocalSidDrop> {
    let header = Ip4Header::overlay_mut(packet.bytes_mut()).ok_or(LocalSidDrop::InnerWrong)?;
    let (old, new) = (header.traffic_class, header.traffic_class | CE);
    if old & CE == 0 {
        return Err(LocalSidDrop::Congestion);
    }
    header.traffic_class = new;
    header.set_checksum(update16(header.checksum(), old.into(), new.into()));
    Ok(())
}
