//! BFD over UDP over IP: which datagram a packet holds, and how one is written.

use std::net::{IpAddr, Ipv4Addr};

use quiver_wire::bfd::{
    CONTROL_LEN, CONTROL_LEN_MAX, CONTROL_PORT, MEMBER_PORT, MULTIHOP_PORT, SOURCE_PORT_FIRST,
};
use quiver_wire::checksum::header_checksum;
use quiver_wire::ip6::extension::upper_layer;
use quiver_wire::udp::{fill_checksum_over_ip4, fill_checksum_over_ip6};
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol, UdpHeader};

use crate::shared::Ends;

/// TTL and hop limit of what is sent (RFC 5881 §5).
pub const TTL: u8 = 255;
/// Differentiated services of what is sent: class selector 6, network control (RFC 4594 §3.1).
const TRAFFIC_CLASS: u8 = 48 << 2;
/// Bytes of a packet that is sent at most, from its IP header on.
pub const PACKET_BYTES_MAX: usize = Ip6Header::LEN + UdpHeader::LEN + CONTROL_LEN_MAX;

/// A datagram that was received. `ip4-local` or `ip6-local` has checked its headers.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'p> {
    /// Who sent it.
    pub source: IpAddr,
    /// To which address.
    pub destination: IpAddr,
    /// TTL, or hop limit.
    pub ttl: u8,
    /// To which port.
    pub port: u16,
    /// What it carries.
    pub payload: &'p [u8],
}

impl<'p> Datagram<'p> {
    /// The datagram of an IP packet; `None` when it holds none, whole and in one piece.
    pub fn of(packet: &'p [u8]) -> Option<Datagram<'p>> {
        let (source, destination, ttl, upper) = match packet.first()? >> 4 {
            4 => {
                let header = Ip4Header::overlay(packet)?;
                let upper = packet.get(header.header_len()..)?;
                (header.source().into(), header.destination().into(), header.ttl(), upper)
            }
            6 => {
                let (header, behind) = Ip6Header::split(packet)?;
                let upper = upper_layer(header.next_header(), behind).ok()?;
                let upper = behind.get(upper.offset..)?;
                (header.source().into(), header.destination().into(), header.hop_limit(), upper)
            }
            _ => return None,
        };
        let (udp, _) = UdpHeader::split(upper)?;
        let payload = upper.get(UdpHeader::LEN..usize::from(udp.length()))?;
        Some(Datagram { source, destination, ttl, port: udp.destination_port(), payload })
    }
}

/// A control packet of one hop over IPv4 as most are: no options, TTL 255, no authentication.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'p> {
    /// Who sent it.
    pub source: Ipv4Addr,
    /// To which address.
    pub destination: Ipv4Addr,
    /// The control packet.
    pub payload: &'p [u8; CONTROL_LEN],
}

impl<'p> Plain<'p> {
    /// The packet, if it is one; `ip4-local` has checked its headers.
    pub fn of(packet: &'p [u8]) -> Option<Plain<'p>> {
        let header = Ip4Header::overlay(packet)?;
        let (udp, behind) = UdpHeader::split(packet.get(Ip4Header::LEN..)?)?;
        let is_plain = header.header_len() == Ip4Header::LEN
            && header.ttl() == TTL
            && udp.destination_port() == CONTROL_PORT
            && usize::from(udp.length()) == UdpHeader::LEN + CONTROL_LEN;
        let payload = behind.first_chunk().filter(|_| is_plain)?;
        Some(Plain { source: header.source(), destination: header.destination(), payload })
    }

    /// Your Discriminator (RFC 5880 §4.1).
    pub fn discriminator(&self) -> u32 {
        self.payload[8..].first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }
}

/// The port that packets of a session come from: the same for all of one session.
pub fn source_port(slot: u16) -> u16 {
    SOURCE_PORT_FIRST + slot % (u16::MAX - SOURCE_PORT_FIRST)
}

/// The port that packets of a session go to.
pub fn destination_port(ends: &Ends) -> u16 {
    match ends.interface {
        Some(_) if ends.is_member => MEMBER_PORT,
        Some(_) => CONTROL_PORT,
        None => MULTIHOP_PORT,
    }
}

/// Put headers in front of a payload of `payload_len` bytes, which stands in `out` behind the room
/// for them ([`headers_len`]). Returns the length of all; `None` when the addresses are of two
/// families or `out` is too short.
pub fn write_headers(
    from: IpAddr,
    to: IpAddr,
    ports: (u16, u16),
    payload_len: usize,
    out: &mut [u8],
) -> Option<usize> {
    let udp_len = UdpHeader::LEN + payload_len;
    let udp = UdpHeader::new(ports.0, ports.1, payload_len)?;
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let (front, upper) = out.split_at_mut_checked(Ip4Header::LEN)?;
            let mut header = Ip4Header::new(from, to, IpProtocol::UDP, TTL, udp_len)?;
            header.traffic_class = TRAFFIC_CLASS;
            header.set_checksum(0);
            header.set_checksum(header_checksum(&header));
            header.write(front).ok()?;
            let datagram = upper.get_mut(..udp_len)?;
            udp.write(datagram).ok()?;
            fill_checksum_over_ip4(from, to, datagram);
            Some(Ip4Header::LEN + udp_len)
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let (front, upper) = out.split_at_mut_checked(Ip6Header::LEN)?;
            let length = u16::try_from(udp_len).ok()?;
            let mut header = Ip6Header::new(from, to, IpProtocol::UDP, TTL, length);
            header.set_traffic_class(TRAFFIC_CLASS);
            header.write(front).ok()?;
            let datagram = upper.get_mut(..udp_len)?;
            udp.write(datagram).ok()?;
            fill_checksum_over_ip6(from, to, datagram);
            Some(Ip6Header::LEN + udp_len)
        }
        _ => None,
    }
}

/// Let a packet go back to its sender: the addresses change places, and it is one hop older. False
/// when it is too short.
pub fn turn_round(packet: &mut [u8]) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let Some(header) = Ip4Header::overlay_mut(packet) else { return false };
            let (source, destination) = (header.source(), header.destination());
            header.set_source(destination);
            header.set_destination(source);
            header.set_ttl(header.ttl().saturating_sub(1));
            header.set_checksum(0);
            header.set_checksum(header_checksum(header));
            true
        }
        Some(6) => {
            let Some(header) = Ip6Header::overlay_mut(packet) else { return false };
            let (source, destination) = (header.source(), header.destination());
            header.set_source(destination);
            header.set_destination(source);
            header.set_hop_limit(header.hop_limit().saturating_sub(1));
            true
        }
        _ => false,
    }
}

/// Bytes in front of the payload.
pub fn headers_len(is_ip4: bool) -> usize {
    UdpHeader::LEN + if is_ip4 { Ip4Header::LEN } else { Ip6Header::LEN }
}
