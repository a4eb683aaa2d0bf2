//! An IPv4 packet becomes one of IPv6 where it lies (RFC 7915 §4): the header of IPv4 goes, one of
//! IPv6 comes in front of the upper layer, with a fragment header where one is needed.

use std::net::Ipv6Addr;

use quiver_core::Packet;
use quiver_wire::checksum::Sum;
use quiver_wire::{Header, Ip6Header, IpProtocol};

use super::Refused;
use super::ends::{Delta, Ends6, protocol6};
use super::icmp::echo_to6;
use super::read::{Kind, Read4};
use crate::checksum::{adjust, checksum_at};

/// Bytes of a fragment header.
pub(super) const FRAGMENT_BYTES: usize = 8;
/// Bytes in front of the upper layer at most.
const HEADERS_BYTES_MAX: usize = Ip6Header::LEN + FRAGMENT_BYTES;
/// Where UDP has its checksum.
const UDP_CHECKSUM: usize = 6;

/// What is left to do with a translated packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// Nothing.
    Whole,
    /// Its sender lets routers cut it, and it is longer than the MTU: it has a fragment header, and
    /// [`fragment`](super::fragment) cuts it (RFC 7915 §4).
    ToCut,
}

/// The headers of IPv6.
pub(super) struct Headers {
    bytes: [u8; HEADERS_BYTES_MAX],
    length: usize,
}

impl Headers {
    /// Their bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Write them to a place that is as long. Most are one header, whose length is known here.
    #[inline(always)]
    fn write(&self, place: &mut [u8]) {
        match (<&mut [u8; Ip6Header::LEN]>::try_from(&mut *place), self.bytes.first_chunk()) {
            (Ok(place), Some(header)) => *place = *header,
            _ => place.copy_from_slice(self.bytes()),
        }
    }
}

/// Translate a packet. `delta` is what [`delta_to6`](super::ends::delta_to6) says; packets that may
/// be cut are when they are longer than `mtu_bytes`.
///
/// # Errors
/// Its kind has no counterpart, or there is no room in front of it; the packet is as it was.
#[inline(always)]
pub fn packet(
    packet: &mut Packet,
    read: &Read4,
    ends: &Ends6,
    delta: u16,
    mtu_bytes: u16,
) -> Result<Done, Refused> {
    check(read)?;
    let headers = headers(read, (ends.source, ends.destination), mtu_bytes)?;
    let bytes = packet.bytes();
    if read.upper > bytes.len() {
        return Err(Refused::Truncated);
    }
    let is_later = read.fragment_offset != 0;
    let has_no_sum = read.protocol == IpProtocol::UDP
        && !is_later
        && bytes.get(read.upper + UDP_CHECKSUM..).and_then(|b| b.first_chunk()) == Some(&[0, 0]);
    if has_no_sum && read.is_fragment() {
        return Err(Refused::NoChecksum);
    }
    let grows = headers.length.saturating_sub(read.upper);
    if grows > packet.headroom() {
        return Err(Refused::NoHeadroom);
    }
    packet.trim(read.length());
    if !is_later && let Some(upper) = packet.bytes_mut().get_mut(read.upper..) {
        translate_upper(upper, read, ends, delta);
        if has_no_sum {
            sum_udp(packet, read, ends);
        }
    }
    let fits = match headers.length >= read.upper {
        true => packet.push(grows),
        false => packet.pull(read.upper - headers.length),
    };
    let place = packet.bytes_mut().get_mut(..headers.length).filter(|_| fits);
    headers.write(place.ok_or(Refused::NoHeadroom)?);
    packet.l2_bytes = 0;
    packet.set_carried();
    let is_cut = !read.dont_fragment && packet.length() > usize::from(mtu_bytes);
    Ok(if is_cut { Done::ToCut } else { Done::Whole })
}

/// May it be translated as it is?
#[inline(always)]
fn check(read: &Read4) -> Result<(), Refused> {
    let is_icmp = matches!(read.protocol, IpProtocol::ICMP | IpProtocol::ICMP6);
    match read.kind {
        Kind::LostFragment | Kind::OtherIcmp | Kind::Query | Kind::Answer
            if is_icmp && read.is_fragment() =>
        {
            Err(Refused::FragmentedIcmp)
        }
        // ICMP of the other version means nothing here.
        _ if read.protocol == IpProtocol::ICMP6 => Err(Refused::NoCounterpart),
        _ if read.protocol == IpProtocol::IGMP => Err(Refused::NoCounterpart),
        Kind::OtherIcmp | Kind::Error => Err(Refused::NoCounterpart),
        Kind::Query | Kind::Answer | Kind::Data { .. } | Kind::LostFragment => Ok(()),
    }
}

/// The headers (RFC 7915 §4.1). A packet that its sender lets routers cut and that needs it has a
/// fragment header, as a fragment has.
#[inline(always)]
pub(super) fn headers(
    read: &Read4,
    (source, destination): (u128, u128),
    mtu_bytes: u16,
) -> Result<Headers, Refused> {
    let length = Ip6Header::LEN + read.upper_len;
    let is_cut = !read.dont_fragment && length > usize::from(mtu_bytes);
    let has_fragment = read.is_fragment() || is_cut;
    let extra = if has_fragment { FRAGMENT_BYTES } else { 0 };
    let payload = u16::try_from(extra + read.upper_len).map_err(|_| Refused::Truncated)?;
    let protocol = protocol6(read.protocol);
    let first = if has_fragment { IpProtocol::FRAGMENT } else { protocol };
    let mut bytes = [0; HEADERS_BYTES_MAX];
    let class_flow = 6 << 28 | u32::from(read.traffic_class) << 20;
    bytes[..4].copy_from_slice(&class_flow.to_be_bytes());
    bytes[4..6].copy_from_slice(&payload.to_be_bytes());
    (bytes[6], bytes[7]) = (first.0, read.ttl);
    bytes[8..24].copy_from_slice(&source.to_be_bytes());
    bytes[24..40].copy_from_slice(&destination.to_be_bytes());
    if has_fragment {
        let place = read.fragment_offset << 3 | u16::from(read.more_fragments);
        bytes[40] = protocol.0;
        bytes[42..44].copy_from_slice(&place.to_be_bytes());
        bytes[46..48].copy_from_slice(&read.identification.to_be_bytes());
    }
    Ok(Headers { bytes, length: Ip6Header::LEN + extra })
}

/// The upper layer of a packet, from its first byte on. What is cut off stays so.
#[inline(always)]
pub(super) fn translate_upper(upper: &mut [u8], read: &Read4, ends: &Ends6, delta: u16) {
    match read.protocol {
        IpProtocol::TCP | IpProtocol::UDP => {
            let [a, b] = ends.ports.source.to_be_bytes();
            let [c, d] = ends.ports.destination.to_be_bytes();
            if let Some(ports) = upper.first_chunk_mut::<4>() {
                *ports = [a, b, c, d];
            }
            let is_udp = read.protocol == IpProtocol::UDP;
            adjust(upper, if is_udp { UDP_CHECKSUM } else { 16 }, delta, is_udp);
        }
        IpProtocol::ICMP => {
            let Some([kind, code, high, low, identifier @ ..]) = upper.first_chunk_mut::<6>()
            else {
                return;
            };
            let new = echo_to6(*kind);
            // A pseudo header comes: length and next header (RFC 8200 §8.1).
            let delta = Delta::new()
                .add(delta)
                .sub(u16::from_be_bytes([*kind, *code]))
                .add(u16::from_be_bytes([new, *code]))
                .add32(read.upper_len as u32)
                .add(IpProtocol::ICMP6.0.into());
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

/// UDP without checksum gets one: IPv6 does not go without (RFC 7915 §4.5).
#[cold]
fn sum_udp(packet: &mut Packet, read: &Read4, ends: &Ends6) {
    let (source, destination) =
        (Ipv6Addr::from_bits(ends.source), Ipv6Addr::from_bits(ends.destination));
    let length = read.upper_len as u32;
    let mut sum = Sum::pseudo6(source, destination, IpProtocol::UDP, length);
    let mut skipped = read.upper;
    for segment in packet.segments() {
        let from = skipped.min(segment.len());
        skipped -= from;
        sum = sum.bytes(segment.get(from..).unwrap_or_default());
    }
    let place = packet.bytes_mut().get_mut(read.upper + UDP_CHECKSUM..);
    if let Some(place) = place.and_then(|bytes| bytes.first_chunk_mut::<2>()) {
        *place = sum.udp_checksum().to_be_bytes();
    }
}
