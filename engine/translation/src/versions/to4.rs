//! An IPv6 packet becomes one of IPv4 where it lies (RFC 7915 §5): the headers of IPv6 go, one of
//! IPv4 comes in front of the upper layer.

use quiver_core::Packet;
use quiver_wire::checksum::header_checksum;
use quiver_wire::{Header, Ip4Header, IpProtocol};

use super::Refused;
use super::ends::{Delta, Ends4, protocol4};
use super::icmp::echo_to4;
use super::read::{Kind, Read6};
use crate::checksum::{adjust, checksum_at};

/// Packets up to this length may be cut on their way: with IPv6's header they have 1280 bytes, and
/// no router would tell their sender of an MTU below that (RFC 7915 §5.1).
pub const MAY_BE_CUT_BYTES: usize = 1260;
pub(super) const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;

/// Translate a packet. `delta` is what [`delta_to4`](super::ends::delta_to4) says, and
/// `identification` is for a packet without a fragment header.
///
/// # Errors
/// Its kind has no counterpart; the packet is as it was.
#[inline(always)]
pub fn packet(
    packet: &mut Packet,
    read: &Read6,
    ends: &Ends4,
    delta: u16,
    identification: u16,
) -> Result<(), Refused> {
    check(read)?;
    let header = header(read, (ends.source, ends.destination), identification)?;
    let front = read.upper - Ip4Header::LEN;
    if read.upper > packet.segment_length() {
        return Err(Refused::Truncated);
    }
    packet.trim(read.length());
    if !read.is_later_fragment()
        && let Some(upper) = packet.bytes_mut().get_mut(read.upper..)
    {
        translate_upper(upper, read, ends, delta);
    }
    if !packet.pull(front) {
        return Err(Refused::Truncated);
    }
    header.write(packet.bytes_mut()).map_err(|_| Refused::Truncated)?;
    packet.l2_bytes = 0;
    packet.set_carried();
    Ok(())
}

/// May it be translated as it is?
#[inline(always)]
fn check(read: &Read6) -> Result<(), Refused> {
    let is_icmp = matches!(read.protocol, IpProtocol::ICMP6 | IpProtocol::ICMP);
    match read.kind {
        Kind::LostFragment | Kind::OtherIcmp | Kind::Query | Kind::Answer
            if is_icmp && read.is_fragment() =>
        {
            Err(Refused::FragmentedIcmp)
        }
        // ICMP of the other version means nothing here.
        _ if read.protocol == IpProtocol::ICMP => Err(Refused::NoCounterpart),
        Kind::OtherIcmp | Kind::Error => Err(Refused::NoCounterpart),
        Kind::Query | Kind::Answer | Kind::Data { .. } | Kind::LostFragment => Ok(()),
    }
}

/// The header of IPv4 (RFC 7915 §5.1, §5.1.1).
#[inline(always)]
pub(super) fn header(
    read: &Read6,
    (source, destination): (u32, u32),
    identification: u16,
) -> Result<Ip4Header, Refused> {
    let length = Ip4Header::LEN + read.upper_len;
    let total = u16::try_from(length).map_err(|_| Refused::Truncated)?;
    let (identification, flags_offset) = match read.fragment {
        Some(fragment) => {
            let more = if fragment.more { MORE_FRAGMENTS } else { 0 };
            (fragment.identification as u16, more | fragment.offset)
        }
        None if length <= MAY_BE_CUT_BYTES => (identification, 0),
        None => (identification, DONT_FRAGMENT),
    };
    let mut bytes = [0; Ip4Header::LEN];
    (bytes[0], bytes[1]) = (0x45, read.traffic_class);
    bytes[2..4].copy_from_slice(&total.to_be_bytes());
    bytes[4..6].copy_from_slice(&identification.to_be_bytes());
    bytes[6..8].copy_from_slice(&flags_offset.to_be_bytes());
    (bytes[8], bytes[9]) = (read.hop_limit, protocol4(read.protocol).0);
    bytes[12..16].copy_from_slice(&source.to_be_bytes());
    bytes[16..20].copy_from_slice(&destination.to_be_bytes());
    let mut header = *Ip4Header::overlay(&bytes).ok_or(Refused::Truncated)?;
    header.set_checksum(header_checksum(&header));
    Ok(header)
}

/// The upper layer of a packet, from its first byte on. What is cut off stays so.
#[inline(always)]
pub(super) fn translate_upper(upper: &mut [u8], read: &Read6, ends: &Ends4, delta: u16) {
    match read.protocol {
        IpProtocol::TCP | IpProtocol::UDP => {
            let [a, b] = ends.ports.source.to_be_bytes();
            let [c, d] = ends.ports.destination.to_be_bytes();
            if let Some(ports) = upper.first_chunk_mut::<4>() {
                *ports = [a, b, c, d];
            }
            let is_udp = read.protocol == IpProtocol::UDP;
            adjust(upper, if is_udp { 6 } else { 16 }, delta, is_udp);
        }
        IpProtocol::ICMP6 => {
            let Some([kind, code, high, low, identifier @ ..]) = upper.first_chunk_mut::<6>()
            else {
                return;
            };
            let new = echo_to4(*kind);
            // The pseudo header goes: length and next header (RFC 8200 §8.1).
            let delta = Delta::new()
                .add(delta)
                .sub(u16::from_be_bytes([*kind, *code]))
                .add(u16::from_be_bytes([new, *code]))
                .sub32(read.upper_len as u32)
                .sub(IpProtocol::ICMP6.0.into());
            *kind = new;
            *identifier = ends.ports.source.to_be_bytes();
            let sum = crate::checksum::adjusted(u16::from_be_bytes([*high, *low]), delta.fold());
            [*high, *low] = sum.to_be_bytes();
        }
        protocol => {
            if let Some(at) = checksum_at(protocol.0) {
                adjust(upper, at, delta, false);
            }
        }
    }
}
