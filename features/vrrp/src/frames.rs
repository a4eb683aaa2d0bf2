//! The frames of a virtual router: advertisements, and announcements of its addresses.

use std::net::IpAddr;

use quiver_wire::icmp6::nd::{self, NdOption, NeighborFlags, Options};
use quiver_wire::ip6::address::ALL_NODES;
use quiver_wire::vrrp::{
    ADDRESSES_MAX, Advertisement, ChecksumOver, GROUP4, GROUP6, HEADER_LEN, TTL, virtual_mac,
};
use quiver_wire::{
    EtherType, EthernetHeader, Header, Ip4Header, Ip6Header, IpProtocol, MacAddress, arp, icmp6,
};

/// Differentiated services of what is sent: class selector 6, network control (RFC 4594 §3.1).
const TRAFFIC_CLASS: u8 = 48 << 2;
/// Bytes of a packet from its IP header on at most.
pub const PACKET_BYTES_MAX: usize = Ip6Header::LEN + HEADER_LEN + 16 * ADDRESSES_MAX;
/// Bytes of a frame at most, without tags.
pub const FRAME_BYTES_MAX: usize = EthernetHeader::LEN + PACKET_BYTES_MAX;

/// The group that advertisements go to.
pub fn group(is_ip6: bool) -> IpAddr {
    if is_ip6 { GROUP6.into() } else { GROUP4.into() }
}

/// Writes an advertisement as an IP packet, and returns its length; `None` when addresses of two
/// families meet, or there is no room.
pub fn advertisement(
    update: Advertisement,
    addresses: &[IpAddr],
    over: ChecksumOver,
    (from, to): (IpAddr, IpAddr),
    out: &mut [u8],
) -> Option<usize> {
    let ip_len = if from.is_ipv6() { Ip6Header::LEN } else { Ip4Header::LEN };
    let (front, message) = out.split_at_mut_checked(ip_len)?;
    let length = update.emit(from, to, addresses, over, message).ok()?;
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut header = Ip4Header::new(from, to, IpProtocol::VRRP, TTL, length)?;
            header.traffic_class = TRAFFIC_CLASS;
            header.set_checksum(0);
            header.set_checksum(quiver_wire::checksum::header_checksum(&header));
            header.write(front).ok()?;
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut header = Ip6Header::new(from, to, IpProtocol::VRRP, TTL, length as u16);
            header.set_traffic_class(TRAFFIC_CLASS);
            header.write(front).ok()?;
        }
        _ => return None,
    }
    Some(ip_len + length)
}

/// Writes the Ethernet header of an advertisement to the group: from the virtual router's address,
/// so that bridges learn where it is (§7.3).
pub fn group_header(vr_id: u8, is_ip6: bool, out: &mut [u8]) -> Option<usize> {
    let (to, kind) = match group(is_ip6) {
        IpAddr::V4(group) => (MacAddress::for_ip4_multicast(group), EtherType::IPV4),
        IpAddr::V6(group) => (MacAddress::for_ip6_multicast(group), EtherType::IPV6),
    };
    EthernetHeader::new(to, virtual_mac(vr_id, is_ip6), kind).write(out).ok()
}

/// Writes a frame that tells all hosts of the link that an address has the virtual router's MAC
/// address: a gratuitous ARP request, or an unsolicited neighbour advertisement (§6.4.1). Returns
/// its length.
pub fn announcement(vr_id: u8, address: IpAddr, out: &mut [u8]) -> Option<usize> {
    let mac = virtual_mac(vr_id, address.is_ipv6());
    match address {
        IpAddr::V4(address) => {
            let header = EthernetHeader::new(MacAddress::BROADCAST, mac, EtherType::ARP);
            let at = header.write(out).ok()?;
            let length = arp::Repr::request(mac, address, address).emit(out.get_mut(at..)?).ok()?;
            Some(at + length)
        }
        IpAddr::V6(address) => {
            let mut option = [0; 8];
            NdOption::TargetMac(mac).emit(&mut option).ok()?;
            let flags = NeighborFlags::ROUTER.with(NeighborFlags::OVERRIDE);
            let options = Options::new(&option).ok()?;
            let message = nd::Message::NeighborAdvertisement { flags, target: address, options };
            let at = EthernetHeader::LEN + Ip6Header::LEN;
            let to = MacAddress::for_ip6_multicast(ALL_NODES);
            EthernetHeader::new(to, mac, EtherType::IPV6).write(out).ok()?;
            let body = out.get_mut(at..)?;
            let length = icmp6::Message::Nd(message).emit(address, ALL_NODES, body).ok()?;
            let (next, hops) = (IpProtocol::ICMP6, nd::HOP_LIMIT);
            let header = Ip6Header::new(address, ALL_NODES, next, hops, length as u16);
            header.write(out.get_mut(EthernetHeader::LEN..)?).ok()?;
            Some(at + length)
        }
    }
}

/// An advertisement as it was received.
#[derive(Clone, Copy, Debug)]
pub struct Received<'p> {
    /// Who sent it.
    pub source: IpAddr,
    /// To whom.
    pub destination: IpAddr,
    /// TTL, or hop limit.
    pub ttl: u8,
    /// The message.
    pub message: &'p [u8],
}

impl<'p> Received<'p> {
    /// What an IP packet holds; `None` when it is not whole and in one piece.
    pub fn of(packet: &'p [u8]) -> Option<Received<'p>> {
        match packet.first()? >> 4 {
            4 => {
                let header = Ip4Header::overlay(packet)?;
                let message = packet.get(header.header_len()..header.total_length().into())?;
                Some(Received {
                    source: header.source().into(),
                    destination: header.destination().into(),
                    ttl: header.ttl(),
                    message,
                })
            }
            6 => {
                let (header, behind) = Ip6Header::split(packet)?;
                let behind = behind.get(..header.payload_length().into())?;
                let upper = quiver_wire::ip6::extension::upper_layer(header.next_header(), behind);
                let message = behind.get(upper.ok()?.offset..)?;
                Some(Received {
                    source: header.source().into(),
                    destination: header.destination().into(),
                    ttl: header.hop_limit(),
                    message,
                })
            }
            _ => None,
        }
    }
}
