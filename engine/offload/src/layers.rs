//! Where the IP headers of a frame lie, behind one another where packets are carried in packets,
//! and the transport header behind the last one. Looked through are VLAN tags, extension headers,
//! packets in packets (RFC 2003, RFC 2473), packets and frames behind GRE headers (RFC 2784, RFC
//! 2890) without a sequence number, packets and frames in UDP (VXLAN, RFC 7348; VXLAN-GPE; Geneve,
//! RFC 8926), and packets and frames behind segments (RFC 8986 §10.1).

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_wire::checksum::Sum;
use quiver_wire::gre::{self, TRANSPARENT_ETHERNET};
use quiver_wire::vxlan::{self, VxlanHeader};
use quiver_wire::{EtherType, Header, IpProtocol, UdpHeader};

/// IP headers that are looked through.
pub(crate) const IP_HEADERS_MAX: usize = 4;
/// VLAN tags in front of each that are looked through.
const TAGS_MAX: usize = 2;
/// Extension headers of each that are looked through.
const EXTENSIONS_MAX: usize = 8;
/// An Ethernet frame behind an IPv6 header (RFC 8986 §10.1).
const ETHERNET: IpProtocol = IpProtocol(143);
/// The UDP port of Geneve, bytes of its header without options, the bits of its first byte that
/// count options in units of 4 bytes, and where it names what follows (RFC 8926 §3.4).
const GENEVE_PORT: u16 = 6081;
const GENEVE_BYTES: usize = 8;
const GENEVE_OPTIONS: u8 = 0x3f;
const GENEVE_PROTOCOL: usize = 2;
/// Bytes of an IPv6 header.
const IP6_BYTES: usize = 40;
/// Where the addresses stand in IP headers.
const SOURCE4: usize = 12;
const DESTINATION4: usize = 16;
const SOURCE6: usize = 8;
const DESTINATION6: usize = 24;

/// An IP header: where it begins, and where its options or extension headers end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IpAt {
    pub at: usize,
    pub end: usize,
    pub is_ip6: bool,
    /// Does a GRE header with a checksum follow?
    pub has_gre_checksum: bool,
    /// Does the UDP header of a tunnel follow?
    pub has_udp: bool,
}

/// Where the headers of a frame lie, bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layers {
    ips: [IpAt; IP_HEADERS_MAX],
    count: usize,
    /// The transport header.
    pub upper: usize,
    pub protocol: IpProtocol,
    /// Where the destination stands for which the transport checksum is made: that of the last IP
    /// header, or the end of its segments (RFC 8200 §8.1).
    destination: usize,
}

/// A big-endian word.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// Where IP begins behind an Ethernet header and its tags, and whether it is IPv6.
fn behind_ethernet(frame: &[u8], at: usize) -> Option<(usize, bool)> {
    let mut at = at + 12;
    let mut ether_type = word(frame, at)?;
    for _ in 0..TAGS_MAX {
        if !matches!(ether_type, 0x8100 | 0x88a8 | 0x9100) {
            break;
        }
        at += 4;
        ether_type = word(frame, at)?;
    }
    match ether_type {
        0x0800 => Some((at + 2, false)),
        0x86dd => Some((at + 2, true)),
        _ => None,
    }
}

/// Where the last address of a routing header's list stands, if the packet is still on its way
/// there: the first one of an SRH (RFC 8754 §2) and of type 2 (RFC 6275 §6.4), the last one of type
/// 0.
fn end_of_list(frame: &[u8], at: usize) -> Option<usize> {
    let bytes = usize::from(*frame.get(at + 1)?) * 8;
    let (kind, left) = (*frame.get(at + 2)?, *frame.get(at + 3)?);
    match kind {
        _ if left == 0 || bytes < 16 => None,
        0 => Some(at + bytes - 8),
        2 | 4 => Some(at + 8),
        _ => None,
    }
}

impl Layers {
    /// Of a frame; nothing when a header is cut off, or something is in it that is not looked
    /// through.
    pub fn of(frame: &[u8]) -> Option<Layers> {
        Layers::behind(frame, behind_ethernet(frame, 0)?)
    }

    /// As [`of`](Self::of), of a packet that begins with its IP header.
    pub fn of_ip(packet: &[u8]) -> Option<Layers> {
        Layers::behind(packet, (0, packet.first()? >> 4 == 6))
    }

    fn behind(frame: &[u8], (mut at, mut is_ip6): (usize, bool)) -> Option<Layers> {
        let mut layers = Layers {
            ips: [IpAt::default(); IP_HEADERS_MAX],
            count: 0,
            upper: 0,
            protocol: IpProtocol::NO_NEXT_HEADER,
            destination: 0,
        };
        loop {
            if is_ip6 {
                layers.pass_ip6(frame, at)?
            } else {
                layers.pass_ip4(frame, at)?
            }
            (at, is_ip6) = match layers.protocol {
                IpProtocol::IPV4 => (layers.upper, false),
                IpProtocol::IPV6 => (layers.upper, true),
                ETHERNET => behind_ethernet(frame, layers.upper)?,
                IpProtocol::GRE => layers.pass_gre(frame)?,
                IpProtocol::UDP => match layers.pass_udp(frame) {
                    Some(behind) => behind,
                    None => return Some(layers),
                },
                _ => return Some(layers),
            };
        }
    }

    fn pass_ip4(&mut self, frame: &[u8], at: usize) -> Option<()> {
        let first = *frame.get(at)?;
        let end = at + usize::from(first & 15) * 4;
        if first >> 4 != 4 || end < at + 20 {
            return None;
        }
        self.protocol = IpProtocol(*frame.get(at + 9)?);
        self.destination = at + DESTINATION4;
        self.pass(IpAt { at, end, is_ip6: false, has_gre_checksum: false, has_udp: false })
    }

    fn pass_ip6(&mut self, frame: &[u8], at: usize) -> Option<()> {
        let mut protocol = IpProtocol(*frame.get(at + 6)?);
        let mut end = at + IP6_BYTES;
        self.destination = at + DESTINATION6;
        for _ in 0..EXTENSIONS_MAX {
            match protocol {
                IpProtocol::HOP_BY_HOP | IpProtocol::DESTINATION_OPTIONS => {}
                IpProtocol::ROUTING => {
                    self.destination = end_of_list(frame, end).unwrap_or(self.destination);
                }
                _ => break,
            }
            protocol = IpProtocol(*frame.get(end)?);
            end += (usize::from(*frame.get(end + 1)?) + 1) * 8;
        }
        self.protocol = protocol;
        (frame.get(at)? >> 4 == 6).then_some(())?;
        self.pass(IpAt { at, end, is_ip6: true, has_gre_checksum: false, has_udp: false })
    }

    /// Where IP begins behind a GRE header, and whether it is IPv6. Packets with a sequence number
    /// must each have another, so that they cannot be cut.
    fn pass_gre(&mut self, frame: &[u8]) -> Option<(usize, bool)> {
        let (header, _) = gre::Repr::parse(frame.get(self.upper..)?).ok()?;
        if header.sequence.is_some() {
            return None;
        }
        if let Some(last) = self.count.checked_sub(1).and_then(|last| self.ips.get_mut(last)) {
            last.has_gre_checksum = header.has_checksum;
        }
        let behind = self.upper + header.header_len();
        match header.protocol {
            EtherType::IPV4 => Some((behind, false)),
            EtherType::IPV6 => Some((behind, true)),
            TRANSPARENT_ETHERNET => behind_ethernet(frame, behind),
            _ => None,
        }
    }

    /// Where IP begins behind the UDP header of a tunnel and the tunnel's own, and whether it is
    /// IPv6. Nothing for datagrams to ports of other protocols.
    fn pass_udp(&mut self, frame: &[u8]) -> Option<(usize, bool)> {
        let udp = UdpHeader::overlay(frame.get(self.upper..)?)?;
        let at = self.upper + UdpHeader::LEN;
        let bytes = frame.get(at..)?;
        let behind = match udp.destination_port() {
            vxlan::PORT => behind_ethernet(frame, at + VxlanHeader::LEN)?,
            vxlan::GPE_PORT => {
                let behind = at + VxlanHeader::LEN;
                match VxlanHeader::overlay(bytes)?.next() {
                    vxlan::next::IP4 => (behind, false),
                    vxlan::next::IP6 => (behind, true),
                    vxlan::next::ETHERNET => behind_ethernet(frame, behind)?,
                    _ => return None,
                }
            }
            GENEVE_PORT => {
                let behind = at + GENEVE_BYTES + usize::from(bytes.first()? & GENEVE_OPTIONS) * 4;
                match EtherType(word(bytes, GENEVE_PROTOCOL)?) {
                    EtherType::IPV4 => (behind, false),
                    EtherType::IPV6 => (behind, true),
                    TRANSPARENT_ETHERNET => behind_ethernet(frame, behind)?,
                    _ => return None,
                }
            }
            _ => return None,
        };
        self.ips.get_mut(self.count.checked_sub(1)?)?.has_udp = true;
        Some(behind)
    }

    fn pass(&mut self, ip: IpAt) -> Option<()> {
        *self.ips.get_mut(self.count)? = ip;
        self.count += 1;
        self.upper = ip.end;
        Some(())
    }

    /// The IP headers, the outermost first.
    pub fn ips(&self) -> &[IpAt] {
        self.ips.get(..self.count).unwrap_or_default()
    }

    /// The last one, that of the packet which the transport header belongs to.
    pub fn inner(&self) -> IpAt {
        self.ips().last().copied().unwrap_or_default()
    }

    /// The pseudo header of a transport header and what follows it, `length` bytes in all (RFC 9293
    /// §3.1, RFC 8200 §8.1). `headers` is the frame up to there.
    pub fn pseudo_header(&self, headers: &[u8], length: usize) -> Option<Sum> {
        let at = self.inner().at;
        let source = at + if self.inner().is_ip6 { SOURCE6 } else { SOURCE4 };
        pseudo(headers, self.inner().is_ip6, (source, self.destination), self.protocol, length)
    }
}

/// The pseudo header of the UDP header of a tunnel that an IP header carries, and of what follows
/// it.
pub(crate) fn pseudo_header(headers: &[u8], ip: IpAt, length: usize) -> Option<Sum> {
    let ends = match ip.is_ip6 {
        true => (ip.at + SOURCE6, ip.at + DESTINATION6),
        false => (ip.at + SOURCE4, ip.at + DESTINATION4),
    };
    pseudo(headers, ip.is_ip6, ends, IpProtocol::UDP, length)
}

/// The pseudo header between addresses that stand at these places.
fn pseudo(
    headers: &[u8],
    is_ip6: bool,
    (source, destination): (usize, usize),
    protocol: IpProtocol,
    length: usize,
) -> Option<Sum> {
    if is_ip6 {
        let address = |at: usize| {
            headers.get(at..)?.first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets))
        };
        return Some(Sum::pseudo6(
            address(source)?,
            address(destination)?,
            protocol,
            length as u32,
        ));
    }
    let address =
        |at: usize| headers.get(at..)?.first_chunk::<4>().map(|octets| Ipv4Addr::from(*octets));
    Some(Sum::pseudo4(address(source)?, address(destination)?, protocol, length as u16))
}
