//! Frames put together layer by layer, for the paths whose packets have several headers.

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_wire::gtpu::{self, Direction, PduSession};
use quiver_wire::ip6::Ip6Header;
use quiver_wire::srh::SEGMENT_BYTES;
use quiver_wire::{Header, Ip4Header, IpProtocol, UdpHeader, udp};

use crate::population::{OUR_MAC, PEER_MAC, ip4_frame, ip6_frame};

/// Where packets come from.
pub const SOURCE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xfffe, 0, 0, 0, 0, 2);
/// Where the packets inside go to: 20.0.0.0, and this address.
const DESTINATION: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0);
const DESTINATION4: u32 = 0x1400_0000;
/// Bytes of an Ethernet header.
pub const ETHERNET: usize = 14;
/// Bytes of an SRH of two segments.
pub const SRH: usize = 8 + 2 * SEGMENT_BYTES;
/// The tunnel and the QoS flow of users' packets.
const TEID: u32 = 0x0102_0304;
const QFI: u8 = 9;

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// An IPv4 packet of 46 bytes.
    Ip4,
    /// An IPv6 packet of 60 bytes.
    Ip6,
    /// An Ethernet frame of 60 bytes.
    Frame,
    /// UDP.
    Udp,
}

impl Inside {
    /// Its bytes.
    pub fn bytes(self) -> Vec<u8> {
        match self {
            Inside::Ip4 => ip4_frame(DESTINATION4)[ETHERNET..].to_vec(),
            Inside::Ip6 => ip6_frame(DESTINATION)[ETHERNET..].to_vec(),
            Inside::Udp => ip6_frame(DESTINATION)[ETHERNET + Ip6Header::LEN..].to_vec(),
            Inside::Frame => ip4_frame(DESTINATION4).to_vec(),
        }
    }

    /// How the header in front names it.
    pub fn protocol(self) -> IpProtocol {
        match self {
            Inside::Ip4 => IpProtocol::IPV4,
            Inside::Ip6 => IpProtocol::IPV6,
            Inside::Udp => IpProtocol::UDP,
            Inside::Frame => IpProtocol(143),
        }
    }
}

/// An Ethernet header to the router.
pub fn ethernet(kind: u16, packet: &[u8]) -> Vec<u8> {
    [&OUR_MAC[..], &PEER_MAC, &kind.to_be_bytes(), packet].concat()
}

/// An IPv6 packet.
pub fn ip6(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    protocol: IpProtocol,
    payload: &[u8],
) -> Vec<u8> {
    let mut header = [0; Ip6Header::LEN];
    // The header fits in its own length.
    let _ =
        Ip6Header::new(source, destination, protocol, 64, payload.len() as u16).write(&mut header);
    [&header, payload].concat()
}

/// A frame with a list of two segments, the last of the path first, of which `left` are left.
pub fn segments(source: Ipv6Addr, list: [Ipv6Addr; 2], left: u8, inside: Inside) -> Vec<u8> {
    let mut srh = vec![inside.protocol().0, (SRH / 8 - 1) as u8, 4, left, 1, 0, 0, 0];
    srh.extend(list.iter().flat_map(|segment| segment.octets()));
    srh.extend(inside.bytes());
    ethernet(0x86dd, &ip6(source, list[usize::from(left) % 2], IpProtocol::ROUTING, &srh))
}

/// A user's IPv4 packet in GTP-U, with a PDU session container.
fn gtpu() -> Vec<u8> {
    let user = Inside::Ip4.bytes();
    let session = PduSession { direction: Direction::Downlink, qfi: QFI, reflective: false };
    let header = gtpu::Repr {
        message_type: gtpu::message::G_PDU,
        teid: TEID,
        sequence: None,
        session: Some(session),
        payload_len: user.len(),
    };
    let mut bytes = vec![0; header.len()];
    // The room was made for it.
    let _ = header.emit(&mut bytes);
    bytes.extend(user);
    bytes
}

/// A UDP datagram to the port of GTP-U with no checksum yet.
fn datagram() -> Vec<u8> {
    let payload = gtpu();
    let mut bytes = vec![0; UdpHeader::LEN];
    let written =
        UdpHeader::new(gtpu::PORT, gtpu::PORT, payload.len()).map(|udp| udp.write(&mut bytes));
    debug_assert!(matches!(written, Some(Ok(_))));
    bytes.extend(payload);
    bytes
}

/// The same over IPv4.
pub fn gtpu4(destination: Ipv4Addr) -> Vec<u8> {
    let datagram = datagram();
    let source = Ipv4Addr::new(10, 0, 0, 2);
    let header = Ip4Header::new(source, destination, IpProtocol::UDP, 64, datagram.len());
    let mut bytes = vec![0; Ip4Header::LEN];
    let written = header.map(|header| header.write(&mut bytes));
    debug_assert!(matches!(written, Some(Ok(_))));
    ethernet(0x0800, &[bytes, datagram].concat())
}

/// The same over IPv6, with its checksum.
pub fn gtpu6(destination: Ipv6Addr) -> Vec<u8> {
    let mut datagram = datagram();
    udp::fill_checksum_over_ip6(SOURCE, destination, &mut datagram);
    ethernet(0x86dd, &ip6(SOURCE, destination, IpProtocol::UDP, &datagram))
}

/// The value of Args.Mob.Session of the users' packets: 40 bits (RFC 9433 §6.1).
pub const SESSION: u64 = (QFI as u64) << 34 | TEID as u64;
