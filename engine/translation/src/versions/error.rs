//! ICMP errors as those of the other version (RFC 7915 §4.2, §4.3, §5.2, §5.3): the message, and
//! the packet that it quotes with its upper layer. An error is put together anew, and its checksum
//! is summed up whole.

use std::net::Ipv6Addr;

use quiver_core::Packet;
use quiver_wire::checksum::{self, Sum};
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol};

use super::ends::{Ends4, Ends6, delta_to4, delta_to6};
use super::icmp::{ErrorHead, error_to4, error_to6};
use super::read::{Kind, Read4, Read6, quoted4, quoted6, read4, read6};
use super::{IP6_MTU_MIN, Refused, to4, to6};

/// Bytes of the ICMP header in front of the packet inside.
const ICMP_BYTES: usize = 8;
/// Bytes of a packet inside that extensions stand behind, at least (RFC 4884 §3).
const PADDED_BYTES_MIN: usize = 128;
/// The identification of headers that nobody cuts.
const IDENTIFICATION_NONE: u16 = 0;

/// An ICMPv6 error.
#[derive(Clone, Copy, Debug)]
pub struct Error6 {
    /// Of the error itself.
    pub outer: Read6,
    /// Of the packet that it quotes.
    pub inner: Read6,
    head: ErrorHead,
    /// What RFC 4884 has in the header, bytes.
    quoted_len: usize,
}

/// An ICMP error.
#[derive(Clone, Copy, Debug)]
pub struct Error4 {
    /// Of the error itself.
    pub outer: Read4,
    /// Of the packet that it quotes.
    pub inner: Read4,
    head: ErrorHead,
    /// What RFC 4884 has in the header, bytes.
    quoted_len: usize,
}

/// Errors about ICMP that is no echo have no counterpart.
fn check_inner(kind: Kind) -> Result<(), Refused> {
    match kind {
        Kind::Data { .. } | Kind::Query | Kind::Answer | Kind::LostFragment => Ok(()),
        Kind::Error | Kind::OtherIcmp => Err(Refused::NoCounterpart),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |word| u32::from_be_bytes(*word))
}

/// Read an ICMPv6 error, whose checksum must be right.
///
/// # Errors
/// It is no error, not whole, or the packet inside has no counterpart.
pub fn read_error6(packet: &Packet) -> Result<Error6, Refused> {
    let outer = read6(packet)?;
    if outer.kind != Kind::Error || outer.protocol != IpProtocol::ICMP6 {
        return Err(Refused::NoCounterpart);
    }
    if outer.is_fragment() {
        return Err(Refused::FragmentedIcmp);
    }
    let message = packet.bytes().get(outer.upper..outer.length()).ok_or(Refused::Truncated)?;
    let sum = Sum::pseudo6(
        Ipv6Addr::from_bits(outer.source),
        Ipv6Addr::from_bits(outer.destination),
        IpProtocol::ICMP6,
        outer.upper_len as u32,
    );
    if !sum.bytes(message).is_good() {
        return Err(Refused::Truncated);
    }
    let inside = message.get(ICMP_BYTES..).ok_or(Refused::Truncated)?;
    let inner = quoted6(inside).map_err(|_| Refused::Truncated)?;
    check_inner(inner.kind)?;
    let (kind, code, mut rest) = (message[0], message[1], word(message, 4));
    let mut quoted_len = 0;
    if matches!(kind, 1 | 3) {
        (quoted_len, rest) = ((rest >> 24) as usize * 8, 0);
    }
    Ok(Error6 { outer, inner, head: ErrorHead { kind, code, rest }, quoted_len })
}

/// Read an ICMP error, whose checksum must be right.
///
/// # Errors
/// It is no error, not whole, or the packet inside has no counterpart.
pub fn read_error4(packet: &Packet) -> Result<Error4, Refused> {
    let outer = read4(packet)?;
    if outer.kind != Kind::Error || outer.protocol != IpProtocol::ICMP {
        return Err(Refused::NoCounterpart);
    }
    if outer.is_fragment() {
        return Err(Refused::FragmentedIcmp);
    }
    let message = packet.bytes().get(outer.upper..outer.length()).ok_or(Refused::Truncated)?;
    if checksum::of(message) != 0 {
        return Err(Refused::Truncated);
    }
    let inside = message.get(ICMP_BYTES..).ok_or(Refused::Truncated)?;
    let inner = quoted4(inside).map_err(|_| Refused::Truncated)?;
    let header = inside.get(..inner.upper).ok_or(Refused::Truncated)?;
    if checksum::of(header) != 0 {
        return Err(Refused::Truncated);
    }
    check_inner(inner.kind)?;
    let (kind, code, mut rest) = (message[0], message[1], word(message, 4));
    let mut quoted_len = 0;
    if matches!(kind, 3 | 11 | 12) {
        quoted_len = (rest >> 16 & 0xff) as usize * 4;
        rest &= if kind == 12 { 0xff00_0000 } else { 0xffff };
    }
    Ok(Error4 { outer, inner, head: ErrorHead { kind, code, rest }, quoted_len })
}

/// A message that is put together.
struct Message {
    bytes: [u8; IP6_MTU_MIN],
    length: usize,
}

impl Message {
    /// `front` bytes that are filled in later.
    fn new(front: usize) -> Message {
        Message { bytes: [0; IP6_MTU_MIN], length: front }
    }

    /// Append as many of the bytes as there is room for; where they begin, and were they all?
    fn append(&mut self, bytes: &[u8], max: usize) -> (usize, bool) {
        let at = self.length;
        let taken = bytes.len().min(max.saturating_sub(at));
        if let Some(place) = self.bytes.get_mut(at..at + taken)
            && let Some(bytes) = bytes.get(..taken)
        {
            place.copy_from_slice(bytes);
            self.length += taken;
        }
        (at, taken == bytes.len())
    }

    fn from(&mut self, at: usize) -> &mut [u8] {
        self.bytes.get_mut(at..self.length).unwrap_or_default()
    }

    /// Let the packet be this message.
    fn take_the_place_of(&self, packet: &mut Packet) -> Result<(), Refused> {
        let old = packet.segment_length();
        let fits = match self.length >= old {
            true => packet.push(self.length - old),
            false => packet.pull(old - self.length),
        };
        let bytes = self.bytes.get(..self.length).filter(|_| fits).ok_or(Refused::NoHeadroom)?;
        packet.bytes_mut().copy_from_slice(bytes);
        packet.l2_bytes = 0;
        Ok(())
    }
}

/// The quoted packet and the extensions behind it (RFC 4884 §5.5).
fn split_extensions(inside: &[u8], quoted_len: usize) -> (&[u8], &[u8]) {
    match quoted_len {
        0 => (inside, &[]),
        length => inside.split_at_checked(length).unwrap_or((inside, &[])),
    }
}

/// Pad the quoted packet that begins at `from` to a multiple of `unit` bytes and put extensions
/// behind it; the length for the header, in units.
fn append_extensions(
    message: &mut Message,
    from: usize,
    unit: usize,
    extensions: &[u8],
    max: usize,
) -> u8 {
    if extensions.is_empty() {
        return 0;
    }
    let before = message.length;
    let quoted = (before - from).max(PADDED_BYTES_MIN).next_multiple_of(unit);
    let padding = [0; PADDED_BYTES_MIN];
    let wanted = quoted - (before - from);
    let (_, padded) = message.append(padding.get(..wanted).unwrap_or_default(), max);
    let (_, whole) = message.append(extensions, max);
    let units = u8::try_from(quoted / unit).ok().filter(|_| padded && whole);
    if units.is_none() {
        message.length = before;
    }
    units.unwrap_or(0)
}

/// Make an ICMPv6 error one of IPv4, from and to these addresses; `inner` are the ends that the
/// packet inside gets.
///
/// # Errors
/// The error has no counterpart, or there is no room; the packet is as it was.
pub fn to4(
    packet: &mut Packet,
    error: &Error6,
    (source, destination): (u32, u32),
    inner: &Ends4,
) -> Result<(), Refused> {
    let head = error_to4(error.head).ok_or(Refused::NoCounterpart)?;
    if packet.is_chained() {
        return Err(Refused::Truncated);
    }
    let inside = packet.bytes().get(error.outer.upper + ICMP_BYTES..error.outer.length());
    let (quoted, extensions) =
        split_extensions(inside.ok_or(Refused::Truncated)?, error.quoted_len);
    let read = &error.inner;
    let from = Ends6 { source: read.source, destination: read.destination, ports: read.ports };
    let ends = (inner.source, inner.destination);
    let header = to4::header(read, ends, IDENTIFICATION_NONE)?;
    let mut inner_header = [0; Ip4Header::LEN];
    header.write(&mut inner_header).map_err(|_| Refused::Truncated)?;
    const MAX: usize = IP6_MTU_MIN;
    let front = Ip4Header::LEN + ICMP_BYTES;
    let mut message = Message::new(front);
    message.append(&inner_header, MAX);
    let behind = quoted.get(read.upper..).unwrap_or_default();
    let (upper, _) = message.append(behind, MAX);
    if !read.is_later_fragment() {
        let delta = delta_to4(read.protocol, &from, inner);
        to4::translate_upper(message.from(upper), read, inner, delta);
    }
    let length = append_extensions(&mut message, front, 4, extensions, MAX);
    let total = message.length;
    let icmp = message.from(Ip4Header::LEN);
    if let Some(bytes) = icmp.first_chunk_mut::<ICMP_BYTES>() {
        (bytes[0], bytes[1]) = (head.kind, head.code);
        bytes[4..8].copy_from_slice(&(head.rest | u32::from(length) << 16).to_be_bytes());
    }
    let sum = checksum::of(icmp);
    if let Some(place) = icmp.get_mut(2..4) {
        place.copy_from_slice(&sum.to_be_bytes());
    }
    let outer = Read6 { upper_len: total - Ip4Header::LEN, fragment: None, ..error.outer };
    let outer = to4::header(&outer, (source, destination), IDENTIFICATION_NONE)?;
    outer.write(&mut message.bytes).map_err(|_| Refused::Truncated)?;
    message.take_the_place_of(packet)
}

/// Make an ICMP error one of IPv6, from and to these addresses; `inner` are the ends that the
/// packet inside gets.
///
/// # Errors
/// The error has no counterpart, or there is no room; the packet is as it was.
pub fn to6(
    packet: &mut Packet,
    error: &Error4,
    (source, destination): (u128, u128),
    inner: &Ends6,
) -> Result<(), Refused> {
    let read = &error.inner;
    let packet_bytes = u16::try_from(read.length()).unwrap_or(u16::MAX);
    let head = error_to6(error.head, packet_bytes).ok_or(Refused::NoCounterpart)?;
    if packet.is_chained() {
        return Err(Refused::Truncated);
    }
    let inside = packet.bytes().get(error.outer.upper + ICMP_BYTES..error.outer.length());
    let (quoted, extensions) =
        split_extensions(inside.ok_or(Refused::Truncated)?, error.quoted_len);
    let from = Ends4 { source: read.source, destination: read.destination, ports: read.ports };
    // A packet inside is as its sender knows it: it has a fragment header only as a fragment.
    let whole = Read4 { dont_fragment: true, ..*read };
    let headers = to6::headers(&whole, (inner.source, inner.destination), u16::MAX)?;
    let front = Ip6Header::LEN + ICMP_BYTES;
    let mut message = Message::new(front);
    message.append(headers.bytes(), IP6_MTU_MIN);
    let behind = quoted.get(read.upper..).unwrap_or_default();
    let (upper, _) = message.append(behind, IP6_MTU_MIN);
    if read.fragment_offset == 0 {
        let delta = delta_to6(read.protocol, &from, inner);
        to6::translate_upper(message.from(upper), read, inner, delta);
    }
    let length = match head.kind {
        1 | 3 => append_extensions(&mut message, front, 8, extensions, IP6_MTU_MIN),
        _ => 0,
    };
    let total = message.length;
    let outer = Read4 {
        upper_len: total - Ip6Header::LEN,
        more_fragments: false,
        dont_fragment: true,
        ..error.outer
    };
    let outer = to6::headers(&outer, (source, destination), u16::MAX)?;
    let icmp = message.from(Ip6Header::LEN);
    if let Some(bytes) = icmp.first_chunk_mut::<ICMP_BYTES>() {
        (bytes[0], bytes[1]) = (head.kind, head.code);
        bytes[4..8].copy_from_slice(&(head.rest | u32::from(length) << 24).to_be_bytes());
    }
    let sum = Sum::pseudo6(
        Ipv6Addr::from_bits(source),
        Ipv6Addr::from_bits(destination),
        IpProtocol::ICMP6,
        icmp.len() as u32,
    );
    let sum = sum.bytes(icmp).checksum();
    if let Some(place) = icmp.get_mut(2..4) {
        place.copy_from_slice(&sum.to_be_bytes());
    }
    if let Some(place) = message.bytes.get_mut(..Ip6Header::LEN) {
        place.copy_from_slice(outer.bytes());
    }
    message.take_the_place_of(packet)
}
