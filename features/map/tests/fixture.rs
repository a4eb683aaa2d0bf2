//! A border relay: the Internet of IPv4 at e0, the network of IPv6 with the customers at e1; and
//! packets built apart from the router's own code.

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_testkit::frames::{Fragment, ip4};
use quiver_testkit::{Register, Router, Settings};
use quiver_wire::IpProtocol;
use quiver_wire::checksum::{Sum, of};

pub const FEATURES: [Register; 6] = [
    quiver_ethernet::register,
    quiver_gso::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_ipip::register,
    quiver_map::register,
];
pub const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
/// The shared address of the example of RFC 7597 appendix A.
pub const SHARED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 18);
/// The shared address of lightweight 4over6.
pub const SOFTWIRE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
/// The customer of MAP-E with PSID 0x34 (RFC 7597 appendix A, example 1).
pub const CUSTOMER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x12, 0x3400, 0, 0xc000, 0x212, 0x34);
/// The customer of lightweight 4over6 with PSID 5.
pub const B4: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x4446, 5, 0, 0, 0, 1);
pub const BORDER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1);
/// A port of PSID 0x34 with offset 6 and length 8.
pub const PORT: u16 = 1232;
/// A port of PSID 5 with offset 0 and length 6.
pub const SOFTWIRE_PORT: u16 = 5 << 10 | 7;
pub const IPIP: u8 = 4;
pub const UDP: u8 = 17;
/// Bytes of the link header.
pub const LINK: usize = 14;

const SETUP: &str = "create test interface e0
    create test interface e1
    set interface state e0 up
    set interface state e1 up
    set interface ip address e0 198.51.100.1/24
    set interface ip address e1 2001:db8:1::1/64
    ip neighbor e0 198.51.100.7 02:00:00:00:00:00 static
    ip neighbor e1 2001:db8:1::2 02:00:00:00:00:01 static
    ip route add ::/0 via 2001:db8:1::2 e1
    map interface e0
    map interface e1
    map add domain ip4-pfx 192.0.2.0/24 ip6-pfx 2001:db8::/40 ip6-src 2001:db8:ffff::1 \
ea-bits-len 16 psid-offset 6 psid-len 8
    map add domain tag softwires ip4-pfx 203.0.113.1/32 ip6-pfx ::/0 \
ip6-src 2001:db8:ffff::1 psid-len 6
    map add rule index 1 psid 5 ip6-dst 2001:db8:4446:5::1";

/// A border relay of MAP-E and lightweight 4over6.
pub fn border() -> Router {
    border_with(Settings::default())
}

/// The same, set up otherwise.
pub fn border_with(settings: Settings) -> Router {
    let mut router = Router::with(settings, &FEATURES);
    router.script("setup", SETUP).unwrap_or_else(|refusal| panic!("{refusal}"));
    router.run();
    router.sent("e0");
    router.sent("e1");
    router
}

pub fn whole() -> Fragment {
    Fragment { identification: 7, offset_bytes: 0, more: false }
}

/// A datagram whose checksum nobody has made.
pub fn udp(source: u16, destination: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = [source.to_be_bytes(), destination.to_be_bytes()].concat();
    bytes.extend((8 + data.len() as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(data);
    bytes
}

/// The same with its checksum over IPv6.
pub fn udp6(ends: (Ipv6Addr, Ipv6Addr), ports: (u16, u16), data: &[u8]) -> Vec<u8> {
    let mut bytes = udp(ports.0, ports.1, data);
    let sum = Sum::pseudo6(ends.0, ends.1, IpProtocol::UDP, bytes.len() as u32);
    let sum = sum.bytes(&bytes).udp_checksum();
    bytes[6..8].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// An ICMP message with its checksum.
pub fn icmp(kind: u8, code: u8, rest: [u8; 4], data: &[u8]) -> Vec<u8> {
    let mut bytes = [&[kind, code, 0, 0], &rest[..], data].concat();
    let sum = of(&bytes);
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// An ICMPv6 message with its checksum.
pub fn icmp6(
    ends: (Ipv6Addr, Ipv6Addr),
    kind: u8,
    code: u8,
    rest: [u8; 4],
    data: &[u8],
) -> Vec<u8> {
    let mut bytes = [&[kind, code, 0, 0], &rest[..], data].concat();
    let sum = Sum::pseudo6(ends.0, ends.1, IpProtocol::ICMP6, bytes.len() as u32);
    let sum = sum.bytes(&bytes).checksum();
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// A frame of IPv6 to e1.
pub fn ip6(ends: (Ipv6Addr, Ipv6Addr), next: u8, hops: u8, data: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0xfe, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x86, 0xdd, 0x60, 0, 0, 0];
    frame.extend((data.len() as u16).to_be_bytes());
    frame.extend([next, hops]);
    frame.extend(ends.0.octets());
    frame.extend(ends.1.octets());
    frame.extend(data);
    frame
}

/// A packet of IPv4 without link header.
pub fn packet4(
    ends: (Ipv4Addr, Ipv4Addr),
    protocol: u8,
    fragment: Fragment,
    data: &[u8],
) -> Vec<u8> {
    ip4(0, ends, protocol, fragment, data)[LINK..].to_vec()
}

/// A frame from a customer with a packet of IPv4.
pub fn from(customer: Ipv6Addr, packet: &[u8]) -> Vec<u8> {
    ip6((customer, BORDER), IPIP, 64, packet)
}

/// Let the sender of a packet of IPv4 forbid fragments.
pub fn forbid_fragments(packet: &mut [u8]) {
    packet[6] |= 0x40;
    packet[10..12].fill(0);
    let sum = of(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// One frame that left, without its link header.
pub fn one(router: &mut Router, interface: &str) -> Vec<u8> {
    let mut sent = router.sent(interface);
    assert_eq!(sent.len(), 1, "{:?} {:?}", router.dropped(), router.events());
    sent.remove(0)[LINK..].to_vec()
}

/// Source and destination of a packet of IPv6.
pub fn ends6(packet: &[u8]) -> (Ipv6Addr, Ipv6Addr) {
    let address = |at: usize| {
        let octets: [u8; 16] = packet[at..at + 16].try_into().expect("16 bytes");
        Ipv6Addr::from(octets)
    };
    (address(8), address(24))
}
