//! A router with NAPT66 between two test interfaces, and packets for it.

use std::net::Ipv6Addr;

use quiver_testkit::frames::{Fragment, ip6_fragment};
use quiver_testkit::{Register, Router, Settings};
use quiver_wire::IpProtocol;
use quiver_wire::checksum::Sum;

pub const FEATURES: [Register; 4] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_nat66::register,
];
pub const UDP: u8 = 17;
pub const TCP: u8 = 6;
pub const ICMP6: u8 = 58;
pub const GRE: u8 = 47;

pub const fn address(text: [u16; 8]) -> Ipv6Addr {
    let [a, b, c, d, e, f, g, h] = text;
    Ipv6Addr::new(a, b, c, d, e, f, g, h)
}
pub const HOST: Ipv6Addr = address([0xfd00, 1, 0, 0, 0, 0, 0, 2]);
pub const OTHER: Ipv6Addr = address([0xfd00, 1, 0, 0, 0, 0, 0, 3]);
pub const REMOTE: Ipv6Addr = address([0x2001, 0xdb8, 9, 0, 0, 0, 0, 1]);
pub const POOL: Ipv6Addr = address([0x2001, 0xdb8, 2, 0, 0, 0, 0, 0x10]);
/// The router's own address outside.
pub const OUTSIDE: Ipv6Addr = address([0x2001, 0xdb8, 2, 0, 0, 0, 0, 1]);

/// An end of a packet.
pub type End = (Ipv6Addr, u16);

pub fn setup(sessions: usize) -> String {
    format!(
        "create test interface e0 rx-queues 2
        create test interface e1 rx-queues 2
        set interface state e0 up
        set interface state e1 up
        set interface ip address e0 fd00:1::1/64
        set interface ip address e1 2001:db8:2::1/64
        ip neighbor e0 fd00:1::2 02:00:00:00:00:00 static
        ip neighbor e0 fd00:1::3 02:00:00:00:00:00 static
        ip neighbor e1 2001:db8:2::2 02:00:00:00:00:01 static
        ip route add ::/0 via 2001:db8:2::2
        ip route add fd00:2::/32 via fd00:1::2
        nat66 plugin enable sessions {sessions}
        nat66 add pool address {POOL}
        set interface nat66 in e0
        set interface nat66 out e1"
    )
}

pub fn router(sessions: usize) -> Router {
    router_with(Settings::default(), sessions)
}

pub fn router_with(settings: Settings, sessions: usize) -> Router {
    let mut router = Router::with(settings, &FEATURES);
    router.script("setup", &setup(sessions)).expect("a good configuration");
    router.run();
    router.sent("e0");
    router.sent("e1");
    router
}

/// The frame of an IPv6 packet; the upper layer's checksum is made right where it has one.
pub fn ip6(port: u8, ends: (Ipv6Addr, Ipv6Addr), next: u8, hops: u8, data: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0xfe, 0, 0, 0, port, 2, 0, 0, 0, 0, 9, 0x86, 0xdd, 0x60, 0, 0, 0];
    frame.extend((data.len() as u16).to_be_bytes());
    frame.extend([next, hops]);
    frame.extend(ends.0.octets());
    frame.extend(ends.1.octets());
    frame.extend(with_checksum(ends, next, data));
    frame
}

fn checksum_at(protocol: u8) -> Option<usize> {
    match protocol {
        TCP => Some(16),
        UDP => Some(6),
        ICMP6 => Some(2),
        _ => None,
    }
}

pub fn with_checksum(ends: (Ipv6Addr, Ipv6Addr), protocol: u8, data: &[u8]) -> Vec<u8> {
    let mut data = data.to_vec();
    let Some(at) = checksum_at(protocol).filter(|at| data.len() >= at + 2) else { return data };
    data[at..at + 2].fill(0);
    let length = data.len() as u32;
    let sum = Sum::pseudo6(ends.0, ends.1, IpProtocol(protocol), length).bytes(&data).checksum();
    // RFC 8200 §8.1: "if that computation yields a result of zero, it must be changed to hex FFFF".
    let sum = if protocol == UDP && sum == 0 { 0xffff } else { sum };
    data[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    data
}

/// The ends of a frame's packet, its protocol and its upper layer, whose checksum is right.
pub fn read(frame: &[u8]) -> (Ipv6Addr, Ipv6Addr, u8, Vec<u8>) {
    let at = |at: usize| {
        let bytes: [u8; 16] = frame[at..at + 16].try_into().expect("sixteen bytes");
        Ipv6Addr::from(bytes)
    };
    let (source, destination, protocol, upper) = (at(22), at(38), frame[20], &frame[54..]);
    if checksum_at(protocol).is_some() {
        let sum = Sum::pseudo6(source, destination, IpProtocol(protocol), upper.len() as u32);
        assert!(sum.bytes(upper).is_good(), "the checksum of {frame:02x?}");
    }
    (source, destination, protocol, upper.to_vec())
}

/// A datagram without payload.
pub fn udp(source: u16, destination: u16) -> Vec<u8> {
    let [a, b] = source.to_be_bytes();
    let [c, d] = destination.to_be_bytes();
    vec![a, b, c, d, 0, 8, 0, 0]
}

pub fn tcp(source: u16, destination: u16, flags: u8) -> Vec<u8> {
    let mut header = udp(source, destination)[..4].to_vec();
    header.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
    header
}

pub fn echo(kind: u8, identifier: u16) -> Vec<u8> {
    let [a, b] = identifier.to_be_bytes();
    vec![kind, 0, 0, 0, a, b, 0, 1, 1, 2, 3, 4]
}

/// A fragment of a packet, in a frame to a port.
pub fn fragment(
    port: u8,
    ends: (Ipv6Addr, Ipv6Addr),
    protocol: u8,
    place: Fragment,
    data: &[u8],
) -> Vec<u8> {
    ip6_fragment(port, ends, protocol, place, data)
}

fn port_at(protocol: u8, is_source: bool) -> usize {
    match (protocol, is_source) {
        (ICMP6, _) => 4,
        (_, true) => 0,
        (_, false) => 2,
    }
}

fn port_of(upper: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([upper[at], upper[at + 1]])
}

/// Send from a host inside; the source that comes out, if anything does.
pub fn from_inside(
    router: &mut Router,
    host: Ipv6Addr,
    remote: Ipv6Addr,
    protocol: u8,
    upper: &[u8],
) -> Option<End> {
    router.send("e0", &ip6(0, (host, remote), protocol, 64, upper));
    let sent = router.sent("e1");
    let (source, destination, _, upper) = read(sent.first()?);
    assert_eq!(destination, remote);
    Some((source, port_of(&upper, port_at(protocol, true))))
}

/// Send from outside to an address; the destination that comes out inside, if anything does.
pub fn from_outside(
    router: &mut Router,
    remote: Ipv6Addr,
    to: Ipv6Addr,
    protocol: u8,
    upper: &[u8],
) -> Option<End> {
    router.send("e1", &ip6(1, (remote, to), protocol, 64, upper));
    let sent = router.sent("e0");
    let (source, destination, _, upper) = read(sent.first()?);
    assert_eq!(source, remote);
    Some((destination, port_of(&upper, port_at(protocol, false))))
}

pub fn summary(router: &mut Router, key: &str) -> u64 {
    router.json("show nat66 summary")[key].as_u64().expect("a number")
}
