//! The layers of a description, from their words to bytes.

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_control::types;

use super::words::{Tokens, Word, number};
use super::{Description, Field, TextError};
use crate::edit::Order;

/// Headers in one packet.
const LAYERS_MAX: usize = 16;

/// Which protocol carries a checksum with a pseudo header, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upper {
    Udp,
    Tcp,
    Icmp4,
    Icmp6,
}

impl Upper {
    /// Where its checksum is, counted from its own first byte (RFC 768, 9293, 792, 4443).
    pub(super) fn checksum_at(self) -> usize {
        match self {
            Upper::Udp => 6,
            Upper::Tcp => 16,
            Upper::Icmp4 | Upper::Icmp6 => 2,
        }
    }
}

/// A length or checksum that is filled in once the rest stands. What the user gave stays as given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fix {
    Ip4 { start: usize, length: bool, checksum: bool },
    Ip6 { start: usize, length: bool },
    Upper { start: usize, kind: Upper, ip: Option<Ip>, length: bool, checksum: bool },
}

/// The IP header that a layer lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ip {
    pub(super) start: usize,
    pub(super) is_ip6: bool,
    protocol: u8,
}

/// What the layer before says comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Anything,
    EtherType(u16),
    Protocol(Ip),
    Payload,
}

const ETHER_TYPES: [(&str, u16); 7] = [
    ("IP4", 0x0800),
    ("IP6", 0x86dd),
    ("ARP", 0x0806),
    ("MPLS", 0x8847),
    ("MPLS_UNICAST", 0x8847),
    ("LLDP", 0x88cc),
    ("LOOPBACK", 0x9000),
];

const PROTOCOLS: [(&str, u8); 14] = [
    ("ICMP", 1),
    ("ICMP4", 1),
    ("IGMP", 2),
    ("IP4", 4),
    ("IP_IN_IP", 4),
    ("TCP", 6),
    ("UDP", 17),
    ("IP6", 41),
    ("IPV6", 41),
    ("GRE", 47),
    ("IPSEC_ESP", 50),
    ("ESP", 50),
    ("ICMP6", 58),
    ("SCTP", 132),
];

const ICMP4_TYPES: [(&str, u8); 5] = [
    ("echo_reply", 0),
    ("destination_unreachable", 3),
    ("redirect", 5),
    ("echo_request", 8),
    ("time_exceeded", 11),
];

const ICMP6_TYPES: [(&str, u8); 9] = [
    ("destination_unreachable", 1),
    ("packet_too_big", 2),
    ("time_exceeded", 3),
    ("echo_request", 128),
    ("echo_reply", 129),
    ("router_solicitation", 133),
    ("router_advertisement", 134),
    ("neighbor_solicitation", 135),
    ("neighbor_advertisement", 136),
];

const TCP_FLAGS: [(&str, u8); 6] =
    [("fin", 0x01), ("syn", 0x02), ("rst", 0x04), ("psh", 0x08), ("ack", 0x10), ("urg", 0x20)];

/// Read all layers, up to the payload.
pub(super) fn parse(words: &mut Tokens<'_>, packet: &mut Description) -> Result<(), TextError> {
    let mut expect = Expect::Anything;
    let mut count = 0;
    while let Some(word) = words.peek() {
        let Some(next) = layer(words, word, packet, expect)? else { return Ok(()) };
        expect = next;
        count += 1;
        if count > LAYERS_MAX {
            return Err(word.wrong(format!("a packet has at most {LAYERS_MAX} layers")));
        }
    }
    Ok(())
}

/// Read one layer; `None` when the word begins none.
fn layer(
    words: &mut Tokens<'_>,
    word: Word<'_>,
    packet: &mut Description,
    expect: Expect,
) -> Result<Option<Expect>, TextError> {
    let name = word.text.strip_suffix(':').unwrap_or(word.text);
    let icmp = ["ICMP", "ICMP4", "ICMP6"].iter().any(|n| name.eq_ignore_ascii_case(n));
    if let Expect::Protocol(ip) = expect
        && icmp
        && matches!(ip.protocol, 1 | 58)
    {
        words.next();
        return icmp_layer(words, word, name, packet, ip).map(Some);
    }
    if !word.text.ends_with(':') {
        return Ok(None);
    }
    words.next();
    let first = words.need("what the layer goes from")?;
    let kind = first.text.split(['-', '+']).next().unwrap_or("");
    if types::mac(kind).is_some() || types::mac(first.text).is_some() || dotted_mac(kind).is_some()
    {
        return ethernet(words, word, name, first, packet, expect).map(Some);
    }
    if let Ok(source) = kind.parse::<Ipv4Addr>() {
        check(word, expect, 0x0800, 4)?;
        return ip4(words, word, name, (first, source), packet).map(Some);
    }
    if kind.parse::<Ipv6Addr>().is_ok() {
        check(word, expect, 0x86dd, 41)?;
        return ip6(words, word, name, first, packet).map(Some);
    }
    if number(kind).is_some() {
        return ports(words, word, name, first, packet, expect).map(Some);
    }
    Err(first.wrong("a MAC address, an IP address or a port belongs here"))
}

/// Does the layer before announce what now comes?
fn check(word: Word<'_>, expect: Expect, ether_type: u16, protocol: u8) -> Result<(), TextError> {
    match expect {
        Expect::Anything => Ok(()),
        Expect::EtherType(announced) if announced == ether_type => Ok(()),
        Expect::Protocol(ip) if ip.protocol == protocol => Ok(()),
        _ => {
            Err(word.wrong("the layer before announces another protocol than the one that follows"))
        }
    }
}

/// Put a field's lowest value into the headers, and note when it has more values.
fn put(packet: &mut Description, width: usize, range: Range) {
    let offset = packet.headers.len();
    packet.headers.extend_from_slice(&range.low.to_be_bytes()[16 - width..]);
    if range.count > 1 {
        packet.fields.push(Field {
            offset,
            width,
            low: range.low,
            count: range.count,
            order: range.order,
        });
    }
}

#[derive(Clone, Copy)]
struct Range {
    low: u128,
    count: u64,
    order: Order,
}

/// `A`, `A - B` (in turn) or `A + B` (at random), also without the spaces.
fn range(
    words: &mut Tokens<'_>,
    first: Word<'_>,
    what: &str,
    read: impl Fn(&str) -> Option<u128>,
) -> Result<Range, TextError> {
    let wrong = |word: Word<'_>| word.wrong(format!("{what} belongs here"));
    let (low, order, high, last) = if let Some(low) = read(first.text) {
        let order = match words.peek() {
            Some(w) if w.text == "-" => Order::Increment,
            Some(w) if w.text == "+" => Order::Random,
            _ => return Ok(Range { low, count: 1, order: Order::Increment }),
        };
        words.next();
        let last = words.need("the end of the range")?;
        (low, order, read(last.text).ok_or_else(|| wrong(last))?, last)
    } else {
        let at = first.text.find(['-', '+']).ok_or_else(|| wrong(first))?;
        let order =
            if first.text.as_bytes()[at] == b'-' { Order::Increment } else { Order::Random };
        let low = read(&first.text[..at]).ok_or_else(|| wrong(first))?;
        (low, order, read(&first.text[at + 1..]).ok_or_else(|| wrong(first))?, first)
    };
    let count = high
        .checked_sub(low)
        .ok_or_else(|| last.wrong("a range goes from the lower to the higher"))?;
    let count = u64::try_from(count).ok().and_then(|c| c.checked_add(1));
    let count = count.ok_or_else(|| last.wrong("a range has less than 2^64 values"))?;
    Ok(Range { low, count, order })
}

/// Both sides of `A -> B`.
fn pair(
    words: &mut Tokens<'_>,
    first: Word<'_>,
    what: &str,
    read: impl Fn(&str) -> Option<u128> + Copy,
) -> Result<(Range, Range), TextError> {
    let from = range(words, first, what, read)?;
    let arrow = words.need("`->`")?;
    if arrow.text != "->" {
        return Err(arrow.wrong("`->` belongs here"));
    }
    let second = words.need("what the layer goes to")?;
    Ok((from, range(words, second, what, read)?))
}

/// Three groups of up to four hexadecimal digits with dots: `1.2.3`.
fn dotted_mac(text: &str) -> Option<u128> {
    let mut groups = text.split('.');
    let mut mac = 0;
    for _ in 0..3 {
        let group = groups.next().filter(|g| (1..=4).contains(&g.len()))?;
        if !group.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        mac = mac << 16 | u128::from(u16::from_str_radix(group, 16).ok()?);
    }
    groups.next().is_none().then_some(mac)
}

fn read_mac(text: &str) -> Option<u128> {
    dotted_mac(text)
        .or_else(|| types::mac(text).map(|m| m.iter().fold(0, |all, b| all << 8 | u128::from(*b))))
}

/// `IP4: MAC -> MAC [vlan N]… [dot1ad N]…`.
fn ethernet(
    words: &mut Tokens<'_>,
    word: Word<'_>,
    name: &str,
    first: Word<'_>,
    packet: &mut Description,
    expect: Expect,
) -> Result<Expect, TextError> {
    if expect != Expect::Anything {
        return Err(word.wrong("a layer of MAC addresses comes first"));
    }
    let known = ETHER_TYPES.iter().find(|(n, _)| name.eq_ignore_ascii_case(n)).map(|(_, t)| *t);
    let ether_type = known.or_else(|| number(name).and_then(|n| u16::try_from(n).ok()));
    let ether_type = ether_type.ok_or_else(|| {
        word.wrong(
            "the kind of the frame is IP4, IP6, ARP, MPLS, LLDP, LOOPBACK or a number such as \
             0x88b5",
        )
    })?;
    let (source, destination) =
        pair(words, first, "a MAC address such as 02:fe:00:00:00:01 or 1.2.3", read_mac)?;
    put(packet, 6, destination);
    put(packet, 6, source);
    loop {
        let tag: u16 = match words.peek() {
            Some(w) if w.is("vlan") || w.is("dot1q") => 0x8100,
            Some(w) if w.is("dot1ad") => 0x88a8,
            _ => break,
        };
        words.next();
        packet.headers.extend_from_slice(&tag.to_be_bytes());
        let first = words.need("the VLAN")?;
        let vlan = range(words, first, "a VLAN from 0 to 4095", |t| {
            number(t).filter(|n| *n < 4096).map(u128::from)
        })?;
        put(packet, 2, vlan);
    }
    packet.headers.extend_from_slice(&ether_type.to_be_bytes());
    Ok(Expect::EtherType(ether_type))
}

fn protocol(word: Word<'_>, name: &str) -> Result<u8, TextError> {
    let known = PROTOCOLS.iter().find(|(n, _)| name.eq_ignore_ascii_case(n)).map(|(_, p)| *p);
    known.or_else(|| number(name).and_then(|n| u8::try_from(n).ok())).ok_or_else(|| {
        word.wrong(
            "the protocol is UDP, TCP, ICMP, ICMP6, IP4, IP6, GRE, ESP, SCTP, IGMP or a number",
        )
    })
}

/// `PROTOCOL: ADDRESS -> ADDRESS [ttl N] [tos N] [fragment-id N] [offset N] [df] [mf] [length N]
/// [checksum N]` (RFC 791 §3.1).
fn ip4(
    words: &mut Tokens<'_>,
    word: Word<'_>,
    name: &str,
    first: (Word<'_>, Ipv4Addr),
    packet: &mut Description,
) -> Result<Expect, TextError> {
    let protocol = protocol(word, name)?;
    let start = packet.headers.len();
    packet.headers.extend_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0]);
    let read = |t: &str| t.parse::<Ipv4Addr>().ok().map(|a| u128::from(a.to_bits()));
    let (source, destination) = pair(words, first.0, "an IPv4 address", read)?;
    put(packet, 4, source);
    put(packet, 4, destination);
    let (mut length, mut checksum) = (true, true);
    let header = |packet: &mut Description, at: usize, bytes: &[u8]| {
        packet.headers[start + at..start + at + bytes.len()].copy_from_slice(bytes);
    };
    loop {
        if words.take("ttl") {
            header(packet, 8, &[words.number("the TTL", 255)? as u8]);
        } else if words.take("tos") {
            header(packet, 1, &[words.number("the type of service", 255)? as u8]);
        } else if words.take("version") {
            packet.headers[start] = (words.number("the version", 15)? as u8) << 4 | 5;
        } else if words.take("fragment-id") {
            header(packet, 4, &(words.number("the identification", 65_535)? as u16).to_be_bytes());
        } else if words.take("offset") {
            let [high, low] =
                (words.number("the fragment offset (in 8 bytes)", 8191)? as u16).to_be_bytes();
            packet.headers[start + 6] |= high;
            packet.headers[start + 7] = low;
        } else if words.take("df") {
            packet.headers[start + 6] |= 0x40;
        } else if words.take("mf") {
            packet.headers[start + 6] |= 0x20;
        } else if words.take("length") {
            header(packet, 2, &(words.number("the total length", 65_535)? as u16).to_be_bytes());
            length = false;
        } else if words.take("checksum") {
            header(packet, 10, &(words.number("the checksum", 65_535)? as u16).to_be_bytes());
            checksum = false;
        } else {
            break;
        }
    }
    packet.fixes.push(Fix::Ip4 { start, length, checksum });
    Ok(Expect::Protocol(Ip { start, is_ip6: false, protocol }))
}

/// `PROTOCOL: ADDRESS -> ADDRESS [hop-limit N] [traffic-class N] [flow-label N] [length N]`
/// (RFC 8200 §3).
fn ip6(
    words: &mut Tokens<'_>,
    word: Word<'_>,
    name: &str,
    first: Word<'_>,
    packet: &mut Description,
) -> Result<Expect, TextError> {
    let protocol = protocol(word, name)?;
    let start = packet.headers.len();
    packet.headers.extend_from_slice(&[0x60, 0, 0, 0, 0, 0, protocol, 64]);
    let read = |t: &str| t.parse::<Ipv6Addr>().ok().map(|a| a.to_bits());
    let (source, destination) = pair(words, first, "an IPv6 address", read)?;
    put(packet, 16, source);
    put(packet, 16, destination);
    let mut length = true;
    loop {
        if words.take("hop-limit") || words.take("ttl") {
            packet.headers[start + 7] = words.number("the hop limit", 255)? as u8;
        } else if words.take("traffic-class") {
            let class = words.number("the traffic class", 255)? as u8;
            packet.headers[start] |= class >> 4;
            packet.headers[start + 1] |= class << 4;
        } else if words.take("flow-label") {
            let label = (words.number("the flow label", 0xf_ffff)? as u32).to_be_bytes();
            packet.headers[start + 1] |= label[1];
            packet.headers[start + 2..start + 4].copy_from_slice(&label[2..]);
        } else if words.take("length") {
            let bytes = (words.number("the payload length", 65_535)? as u16).to_be_bytes();
            packet.headers[start + 4..start + 6].copy_from_slice(&bytes);
            length = false;
        } else {
            break;
        }
    }
    packet.fixes.push(Fix::Ip6 { start, length });
    Ok(Expect::Protocol(Ip { start, is_ip6: true, protocol }))
}

/// `UDP: PORT -> PORT [length N] [checksum N]` (RFC 768), or `TCP: PORT -> PORT [seq N] [ack-number
/// N] [window N] [FLAG]… [checksum N]` (RFC 9293 §3.1).
fn ports(
    words: &mut Tokens<'_>,
    word: Word<'_>,
    name: &str,
    first: Word<'_>,
    packet: &mut Description,
    expect: Expect,
) -> Result<Expect, TextError> {
    let kind = match name {
        n if n.eq_ignore_ascii_case("UDP") => Upper::Udp,
        n if n.eq_ignore_ascii_case("TCP") => Upper::Tcp,
        _ => return Err(word.wrong("only UDP and TCP go from port to port")),
    };
    let ip = match expect {
        Expect::Protocol(ip) if ip.protocol == if kind == Upper::Udp { 17 } else { 6 } => Some(ip),
        Expect::Anything => None,
        _ => {
            return Err(
                word.wrong("the layer before announces another protocol than the one that follows")
            );
        }
    };
    let start = packet.headers.len();
    let read = |t: &str| number(t).filter(|n| *n <= 65_535).map(u128::from);
    let (source, destination) = pair(words, first, "a port from 0 to 65535", read)?;
    put(packet, 2, source);
    put(packet, 2, destination);
    let (mut length, mut checksum) = (kind == Upper::Udp, ip.is_some());
    match kind {
        Upper::Udp => packet.headers.extend_from_slice(&[0; 4]),
        _ => packet
            .headers
            .extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0xff, 0xff, 0, 0, 0, 0]),
    }
    let tcp = kind == Upper::Tcp;
    let header = |packet: &mut Description, at: usize, bytes: &[u8]| {
        packet.headers[start + at..start + at + bytes.len()].copy_from_slice(bytes);
    };
    loop {
        let flag = words.peek().and_then(|w| TCP_FLAGS.iter().find(|(n, _)| w.is(n)));
        if words.take("checksum") {
            let value = words.number("the checksum", 65_535)? as u16;
            header(packet, kind.checksum_at(), &value.to_be_bytes());
            checksum = false;
        } else if !tcp && words.take("length") {
            header(packet, 4, &(words.number("the length", 65_535)? as u16).to_be_bytes());
            length = false;
        } else if tcp && words.take("seq") {
            header(
                packet,
                4,
                &(words.number("the sequence number", u32::MAX.into())? as u32).to_be_bytes(),
            );
        } else if tcp && words.take("ack-number") {
            header(
                packet,
                8,
                &(words.number("the acknowledgement", u32::MAX.into())? as u32).to_be_bytes(),
            );
        } else if tcp && words.take("window") {
            header(packet, 14, &(words.number("the window", 65_535)? as u16).to_be_bytes());
        } else if let (true, Some((_, bit))) = (tcp, flag) {
            words.next();
            packet.headers[start + 13] |= bit;
        } else {
            break;
        }
    }
    packet.fixes.push(Fix::Upper { start, kind, ip, length, checksum });
    Ok(Expect::Payload)
}

/// `ICMP [TYPE|N] [code N] [id N] [seq N] [checksum N]`, for ICMPv6 as well (RFC 792, RFC 4443).
fn icmp_layer(
    words: &mut Tokens<'_>,
    word: Word<'_>,
    name: &str,
    packet: &mut Description,
    ip: Ip,
) -> Result<Expect, TextError> {
    let is_icmp6 = ip.protocol == 58;
    if name.eq_ignore_ascii_case("ICMP6") != is_icmp6 && !name.eq_ignore_ascii_case("ICMP") {
        return Err(
            word.wrong("the layer before announces another protocol than the one that follows")
        );
    }
    let types: &[(&str, u8)] = if is_icmp6 { &ICMP6_TYPES } else { &ICMP4_TYPES };
    let first = words.need("the type of the ICMP message")?;
    let known = types.iter().find(|(n, _)| first.is(n)).map(|(_, t)| *t);
    let message = known
        .or_else(|| number(first.text).and_then(|n| u8::try_from(n).ok()))
        .ok_or_else(|| {
            let names: Vec<&str> = types.iter().map(|(n, _)| *n).collect();
            first.wrong(format!("the type is {} or a number from 0 to 255", names.join(", ")))
        })?;
    let start = packet.headers.len();
    packet.headers.extend_from_slice(&[message, 0, 0, 0, 0, 0, 0, 0]);
    let mut checksum = true;
    let mut header = |at: usize, value: u64| {
        packet.headers[start + at..start + at + 2].copy_from_slice(&(value as u16).to_be_bytes());
    };
    loop {
        if words.take("checksum") {
            header(2, words.number("the checksum", 65_535)?);
            checksum = false;
        } else if words.take("id") {
            header(4, words.number("the identifier", 65_535)?);
        } else if words.take("seq") {
            header(6, words.number("the sequence number", 65_535)?);
        } else if words.take("code") {
            header(0, u64::from(message) << 8 | words.number("the code", 255)?);
        } else {
            break;
        }
    }
    let kind = if is_icmp6 { Upper::Icmp6 } else { Upper::Icmp4 };
    packet.fixes.push(Fix::Upper { start, kind, ip: Some(ip), length: false, checksum });
    Ok(Expect::Payload)
}
