//! Frames of transactions: what those that arrive say, and how those that leave are written.

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_wire::checksum::Sum;
use quiver_wire::icmp4::{Message as Icmp4Message, Repr as Icmp4, unreachable};
use quiver_wire::icmp6::{self, Message as Icmp6};
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol, MacAddress, ip4, ip6, tcp, udp};

use super::key::Key;
use super::link::Link;
use quiver_tg_traffic::profile::Tags;
use quiver_tg_traffic::profile::stateful::Kind;
use quiver_tg_traffic::profile::stateful::hosts::Hosts;

/// The shortest frame on a wire, without FCS (IEEE 802.3 §3.2.8).
const FRAME_BYTES_MIN: usize = 60;
/// Time to live and hop limit.
const HOPS: u8 = 64;
/// The option that says the maximum segment size (RFC 9293 §3.7.1).
const OPTION_MSS: u8 = 2;

/// A TCP segment that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// Of its first byte.
    pub sequence: u32,
    /// Next sequence number that the other side expects.
    pub acknowledgement: u32,
    /// Control bits.
    pub flags: tcp::Flags,
    /// Bytes that the other side takes.
    pub window: u16,
    /// Maximum segment size of the other side, if it gives one.
    pub segment_bytes_max: Option<u16>,
    /// Data.
    pub data: &'a [u8],
}

/// Content of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// A UDP packet's data.
    Udp(&'a [u8]),
    /// A TCP segment.
    Tcp(Segment<'a>),
    /// Somebody says that a packet of the transaction could not be delivered.
    Unreachable,
}

/// A packet for a host of the side.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Of whose transaction.
    pub key: Key,
    /// The layer 2 address that it came from.
    pub from: MacAddress,
    /// Its content.
    pub content: Content<'a>,
}

/// Why a frame is of no transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// For nobody here, or another protocol.
    Foreign,
    /// It contradicts itself.
    Malformed,
    /// A wrong checksum.
    BadChecksum,
    /// A fragment.
    Fragment,
}

/// Addresses of a packet and what lies behind its IP header.
struct Ip<'a> {
    protocol: IpProtocol,
    source: u128,
    destination: u128,
    /// Pseudo header of the transport (RFC 9293 §3.1).
    pseudo: Sum,
    payload: &'a [u8],
}

/// Parse a frame for one of a side's hosts.
///
/// # Errors
/// When the frame belongs to no transaction; the value says why.
#[inline]
pub fn read<'a>(frame: &'a [u8], heading: &Heading, kind: Kind) -> Result<Arrival<'a>, Unread> {
    let hosts = &heading.hosts;
    let (from, packet) = heading.link.open(frame).ok_or(Unread::Foreign)?;
    let ip = if hosts.is_ip6() { read_ip6(packet, hosts)? } else { read_ip4(packet, hosts)? };
    let near = hosts.place_of(ip.destination).ok_or(Unread::Foreign)?;
    let (key, content) = match (ip.protocol, kind) {
        (IpProtocol::UDP, Kind::Udp) => read_udp(&ip, near)?,
        (IpProtocol::TCP, Kind::Tcp) => read_tcp(&ip, near)?,
        (IpProtocol::ICMP, _) if !hosts.is_ip6() => {
            let key = undelivered4(ip.payload, hosts, kind).ok_or(Unread::Foreign)?;
            (key, Content::Unreachable)
        }
        (IpProtocol::ICMP6, _) if hosts.is_ip6() => {
            let key = undelivered6(&ip, hosts, kind).ok_or(Unread::Foreign)?;
            (key, Content::Unreachable)
        }
        _ => return Err(Unread::Foreign),
    };
    Ok(Arrival { key, from, content })
}

#[inline]
fn read_ip4<'a>(packet: &'a [u8], hosts: &Hosts) -> Result<Ip<'a>, Unread> {
    let header = Ip4Header::overlay(packet).ok_or(Unread::Malformed)?;
    if hosts.place_of(u128::from(header.destination_bits())).is_none() {
        return Err(Unread::Foreign);
    }
    ip4::validate(packet, packet.len()).map_err(|bad| match bad {
        ip4::Ip4Bad::BadChecksum => Unread::BadChecksum,
        _ => Unread::Malformed,
    })?;
    if header.is_fragment() {
        return Err(Unread::Fragment);
    }
    let payload = packet
        .get(header.header_len()..usize::from(header.total_length()))
        .ok_or(Unread::Malformed)?;
    let (source, destination) = (header.source(), header.destination());
    Ok(Ip {
        protocol: header.protocol(),
        source: u128::from(header.source_bits()),
        destination: u128::from(header.destination_bits()),
        pseudo: Sum::pseudo4(source, destination, header.protocol(), payload.len() as u16),
        payload,
    })
}

#[inline]
fn read_ip6<'a>(packet: &'a [u8], hosts: &Hosts) -> Result<Ip<'a>, Unread> {
    let header = Ip6Header::overlay(packet).ok_or(Unread::Malformed)?;
    if hosts.place_of(header.destination_bits()).is_none() {
        return Err(Unread::Foreign);
    }
    ip6::validate(packet, packet.len()).map_err(|_| Unread::Malformed)?;
    let payload = packet
        .get(Ip6Header::LEN..)
        .and_then(|rest| rest.get(..usize::from(header.payload_length())));
    let payload = payload.ok_or(Unread::Malformed)?;
    let (source, destination) = (header.source(), header.destination());
    Ok(Ip {
        protocol: header.next_header(),
        source: header.source_bits(),
        destination: header.destination_bits(),
        pseudo: Sum::pseudo6(source, destination, header.next_header(), payload.len() as u32),
        payload,
    })
}

#[inline]
fn read_udp<'a>(ip: &Ip<'a>, near: u32) -> Result<(Key, Content<'a>), Unread> {
    let (header, data) = udp::Repr::parse(ip.payload).map_err(|_| Unread::Malformed)?;
    let datagram = ip.payload.get(..udp::UdpHeader::LEN + data.len()).ok_or(Unread::Malformed)?;
    if datagram.len() != ip.payload.len() {
        return Err(Unread::Malformed);
    }
    // None is right over IPv4 (RFC 768); over IPv6 there must be one (RFC 8200 §8.1).
    let is_good = if header.checksum == 0 {
        ip.destination >> 32 == 0
    } else {
        ip.pseudo.bytes(datagram).is_good()
    };
    if !is_good {
        return Err(Unread::BadChecksum);
    }
    Ok((Key::new(near, header.destination_port, ip.source, header.source_port), Content::Udp(data)))
}

#[inline]
fn read_tcp<'a>(ip: &Ip<'a>, near: u32) -> Result<(Key, Content<'a>), Unread> {
    let (header, data) = tcp::Repr::parse(ip.payload).map_err(|_| Unread::Malformed)?;
    if !ip.pseudo.bytes(ip.payload).is_good() {
        return Err(Unread::BadChecksum);
    }
    let segment_bytes_max =
        if header.flags.contains(tcp::Flags::SYN) { mss_of(header.options) } else { None };
    let segment = Segment {
        sequence: header.sequence,
        acknowledgement: header.acknowledgement,
        flags: header.flags,
        window: header.window,
        segment_bytes_max,
        data,
    };
    Ok((
        Key::new(near, header.destination_port, ip.source, header.source_port),
        Content::Tcp(segment),
    ))
}

fn mss_of(options: &[u8]) -> Option<u16> {
    let option = tcp::Options::new(options).find(|option| option.kind == OPTION_MSS)?;
    option.data.try_into().ok().map(u16::from_be_bytes)
}

/// The transaction that an ICMP error is about: the beginning of its packet is in the error.
#[cold]
fn undelivered4(message: &[u8], hosts: &Hosts, kind: Kind) -> Option<Key> {
    let error = Icmp4::parse(message).ok()?;
    let Icmp4Message::DestinationUnreachable { code, .. } = error.message else { return None };
    if code == unreachable::FRAGMENTATION_NEEDED {
        return None;
    }
    let header = Ip4Header::overlay(error.data)?;
    let ports = error.data.get(header.header_len()..)?;
    let (source, destination) =
        (u128::from(header.source_bits()), u128::from(header.destination_bits()));
    (header.version() == 4)
        .then(|| about(header.protocol(), source, destination, ports, hosts, kind))?
}

/// As [`undelivered4`].
#[cold]
fn undelivered6(ip: &Ip<'_>, hosts: &Hosts, kind: Kind) -> Option<Key> {
    let (source, destination) =
        (Ipv6Addr::from_bits(ip.source), Ipv6Addr::from_bits(ip.destination));
    let Icmp6::DestinationUnreachable { packet, .. } =
        icmp6::Message::parse(source, destination, ip.payload).ok()?
    else {
        return None;
    };
    let (header, ports) = Ip6Header::split(packet)?;
    about(header.next_header(), header.source_bits(), header.destination_bits(), ports, hosts, kind)
}

fn about(
    protocol: IpProtocol,
    source: u128,
    destination: u128,
    ports: &[u8],
    hosts: &Hosts,
    kind: Kind,
) -> Option<Key> {
    let expected = if kind == Kind::Tcp { IpProtocol::TCP } else { IpProtocol::UDP };
    let ([a, b, c, d], near) = (*ports.first_chunk::<4>()?, hosts.place_of(source)?);
    let key = Key::new(near, u16::from_be_bytes([a, b]), destination, u16::from_be_bytes([c, d]));
    (protocol == expected).then_some(key)
}

/// A TCP segment to send.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outgoing {
    /// Of its first byte.
    pub sequence: u32,
    /// Next sequence number that we expect.
    pub acknowledgement: u32,
    /// Control bits.
    pub flags: tcp::Flags,
    /// Bytes that we take.
    pub window: u16,
    /// Say that segments may be so long.
    pub segment_bytes_max: Option<u16>,
}

/// Whose frames are written: what they begin with.
#[derive(Clone, Copy, Debug)]
pub struct Heading {
    /// The side's layer 2 address and tags.
    pub link: Link,
    /// Its hosts.
    pub hosts: Hosts,
}

impl Heading {
    /// Of these hosts at `mac`, behind these tags.
    pub fn new(mac: MacAddress, tags: &Tags, hosts: Hosts) -> Heading {
        Heading { link: Link::new(mac, tags, hosts.is_ip6()), hosts }
    }

    fn ip_bytes(&self) -> usize {
        if self.hosts.is_ip6() { Ip6Header::LEN } else { Ip4Header::LEN }
    }

    /// Bytes of a frame around a transport's header and data.
    #[inline]
    pub fn frame_bytes(&self, transport_bytes: usize) -> usize {
        (self.link.bytes() + self.ip_bytes() + transport_bytes).max(FRAME_BYTES_MIN)
    }

    /// Write layer 2 and IP headers; the place behind them, and the sum over the pseudo header.
    #[inline]
    fn begin<'a>(
        &self,
        out: &'a mut [u8],
        to: MacAddress,
        key: &Key,
        protocol: IpProtocol,
        bytes: usize,
    ) -> Option<(&'a mut [u8], Sum)> {
        let near = self.hosts.bits_at(key.near());
        let packet = self.link.write(out, to)?;
        let sum = if self.hosts.is_ip6() {
            let (source, destination) = (Ipv6Addr::from_bits(near), Ipv6Addr::from_bits(key.far()));
            Ip6Header::new(source, destination, protocol, HOPS, bytes as u16).write(packet).ok()?;
            Sum::pseudo6(source, destination, protocol, bytes as u32)
        } else {
            let (source, destination) =
                (Ipv4Addr::from_bits(near as u32), Ipv4Addr::from_bits(key.far() as u32));
            Ip4Header::new(source, destination, protocol, HOPS, bytes)?.write(packet).ok()?;
            Sum::pseudo4(source, destination, protocol, bytes as u16)
        };
        let (transport, padding) =
            packet.get_mut(self.ip_bytes()..)?.split_at_mut_checked(bytes)?;
        padding.fill(0);
        Some((transport, sum))
    }

    /// Bytes of a TCP frame.
    #[inline]
    pub fn tcp_bytes(&self, segment: &Outgoing, data_bytes: usize) -> usize {
        self.frame_bytes(header_bytes(segment) + data_bytes)
    }

    /// Write a TCP frame of [`tcp_bytes`](Self::tcp_bytes). `None` when there is no room.
    #[inline]
    pub fn write_tcp(
        &self,
        out: &mut [u8],
        to: MacAddress,
        key: &Key,
        segment: &Outgoing,
        data: &[u8],
    ) -> Option<()> {
        let header_bytes = header_bytes(segment);
        let (transport, sum) =
            self.begin(out, to, key, IpProtocol::TCP, header_bytes + data.len())?;
        let [high, low] = segment.segment_bytes_max.unwrap_or(0).to_be_bytes();
        let mss = [OPTION_MSS, 4, high, low];
        let header = tcp::Repr {
            source_port: key.near_port(),
            destination_port: key.far_port(),
            sequence: segment.sequence,
            acknowledgement: segment.acknowledgement,
            flags: segment.flags,
            window: segment.window,
            checksum: 0,
            urgent: 0,
            options: mss.get(..header_bytes - tcp::TcpHeader::LEN).unwrap_or(&[]),
        };
        header.emit(transport).ok()?;
        transport.get_mut(header_bytes..)?.copy_from_slice(data);
        let checksum = sum.bytes(transport).checksum();
        tcp::TcpHeader::overlay_mut(transport)?.set_checksum(checksum);
        Some(())
    }

    /// Bytes of a UDP frame.
    #[inline]
    pub fn udp_bytes(&self, data_bytes: usize) -> usize {
        self.frame_bytes(udp::UdpHeader::LEN + data_bytes)
    }

    /// Write a UDP frame of [`udp_bytes`](Self::udp_bytes) whose data is in two parts.
    #[inline]
    pub fn write_udp(
        &self,
        out: &mut [u8],
        to: MacAddress,
        key: &Key,
        label: &[u8],
        data: &[u8],
    ) -> Option<()> {
        let bytes = udp::UdpHeader::LEN + label.len() + data.len();
        let (transport, sum) = self.begin(out, to, key, IpProtocol::UDP, bytes)?;
        udp::UdpHeader::new(key.near_port(), key.far_port(), label.len() + data.len())?
            .write(transport)
            .ok()?;
        let (first, second) =
            transport.get_mut(udp::UdpHeader::LEN..)?.split_at_mut_checked(label.len())?;
        first.copy_from_slice(label);
        second.copy_from_slice(data);
        let checksum = sum.bytes(transport).udp_checksum();
        udp::UdpHeader::overlay_mut(transport)?.set_checksum(checksum);
        Some(())
    }
}

#[inline]
fn header_bytes(segment: &Outgoing) -> usize {
    tcp::TcpHeader::LEN + if segment.segment_bytes_max.is_some() { 4 } else { 0 }
}
