//! DS-Lite: hosts behind B4s, which may have the same addresses; and hostile B4s.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::frames::{Fragment, ip4, ip6_fragment};
use quiver_testkit::{Register, Router, Settings};
use quiver_wire::IpProtocol;
use quiver_wire::checksum::{Sum, of};
use serde_json::Value;

use crate::sessions::{REMOTE, TCP, UDP, sessions, tcp, udp, whole};

pub const FEATURES: [Register; 6] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_ipip::register,
    quiver_map::register,
    quiver_nat44::register,
];
pub const AFTR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1);
pub const B4: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x4000, 0, 0, 0, 0, 1);
/// In another prefix of 56 bits.
const OTHER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x4000, 0x100, 0, 0, 0, 1);
/// Every customer has such a host.
pub const HOST: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 2);
pub const POOL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
const AFTR4: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 1);
const ICMP: u8 = 1;
const IPIP: u8 = 4;
const LINK: usize = 14;
/// Bytes of the headers of IPv6 and IPv4.
const BOTH: usize = 60;

fn router_with(settings: Settings, lines: &str) -> Router {
    router_of(settings, &FEATURES, lines)
}

/// A router of these features that is an AFTR.
pub fn router_of(settings: Settings, features: &[Register], lines: &str) -> Router {
    let mut router = Router::with(settings, features);
    let setup = "create test interface e0 rx-queues 2
        create test interface e1 rx-queues 2
        set interface state e0 up
        set interface state e1 up
        set interface ip address e0 2001:db8:1::1/64
        set interface ip address e1 198.51.100.1/24
        ip neighbor e0 2001:db8:1::2 02:00:00:00:00:00 static
        ip neighbor e1 198.51.100.2 02:00:00:00:00:01 static
        ip route add 0.0.0.0/0 via 198.51.100.2
        ip route add 2001:db8:4000::/34 via 2001:db8:1::2 e0
        nat44 plugin enable sessions 1000
        set interface nat44 out e1
        dslite add pool address 192.0.2.9
        dslite set aftr-tunnel-endpoint-address 2001:db8:ffff::1 b4s 64";
    router.script("setup", setup).expect("a good configuration");
    router.script("more", lines).expect("a good configuration");
    router.run();
    router.sent("e0");
    router.sent("e1");
    router
}

fn router(lines: &str) -> Router {
    router_with(Settings::default(), lines)
}

pub fn packet4(
    ends: (Ipv4Addr, Ipv4Addr),
    protocol: u8,
    fragment: Fragment,
    data: &[u8],
) -> Vec<u8> {
    ip4(0, ends, protocol, fragment, data)[LINK..].to_vec()
}

/// A frame of IPv6 to e0.
fn ip6(ends: (Ipv6Addr, Ipv6Addr), next: u8, data: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 0x86, 0xdd, 0x60, 0, 0, 0];
    frame.extend((data.len() as u16).to_be_bytes());
    frame.extend([next, 64]);
    frame.extend(ends.0.octets());
    frame.extend(ends.1.octets());
    frame.extend(data);
    frame
}

/// A packet of a host behind a B4; the source that it has outside.
pub fn out(
    router: &mut Router,
    b4: Ipv6Addr,
    ends: (Ipv4Addr, Ipv4Addr),
    protocol: u8,
    upper: &[u8],
) -> Option<(Ipv4Addr, u16)> {
    router.send("e0", &ip6((b4, AFTR), IPIP, &packet4(ends, protocol, whole(), upper)));
    let frame = router.sent("e1").pop()?;
    assert_eq!(of(&frame[LINK..LINK + 20]), 0, "IPv4's checksum");
    Some((address(&frame, 26), u16::from_be_bytes([frame[34], frame[35]])))
}

/// A packet from outside to a port of the pool; the packet that goes to a B4, and to which.
pub fn back(router: &mut Router, port: u16, packet: &[u8]) -> Option<(Ipv6Addr, Vec<u8>)> {
    let _ = port;
    router.send("e1", &[&[2, 0xfe, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0], packet].concat());
    to_b4(router)
}

/// What went to a B4: its address, and the packet of IPv4.
fn to_b4(router: &mut Router) -> Option<(Ipv6Addr, Vec<u8>)> {
    let frame = router.sent("e0").pop()?;
    assert_eq!(frame[20], IPIP, "{frame:02x?}");
    let octets: [u8; 16] = frame[38..54].try_into().expect("an address");
    assert_eq!(&frame[22..38], &AFTR.octets(), "from the AFTR");
    Some((octets.into(), frame[54..].to_vec()))
}

/// What goes to a B4 when the host behind another one sends to an external port.
pub fn hairpin(router: &mut Router, b4: Ipv6Addr, port: u16) -> (Ipv6Addr, Vec<u8>) {
    let packet = packet4((HOST, POOL), UDP, whole(), &udp(4000, port));
    router.send("e0", &ip6((b4, AFTR), IPIP, &packet));
    to_b4(router).unwrap_or_else(|| panic!("{:?}", router.dropped()))
}

pub fn address(bytes: &[u8], at: usize) -> Ipv4Addr {
    <[u8; 4]>::try_from(&bytes[at..at + 4]).expect("four bytes").into()
}

fn icmp(kind: u8, code: u8, rest: [u8; 4], data: &[u8]) -> Vec<u8> {
    let mut bytes = [&[kind, code, 0, 0], &rest[..], data].concat();
    let sum = of(&bytes);
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    bytes
}

fn slow(router: &Router, reason: &str) -> u64 {
    router.count("nat44-ed-slowpath", reason)
}

pub fn rows(router: &mut Router, show: &str) -> Vec<Value> {
    let shown = router.json(show);
    shown.as_array().unwrap_or_else(|| panic!("{shown}")).clone()
}

/// RFC 6333 §6.6: "This IPv6 address is used to disambiguate between the overlapping IPv4 address
/// space of the service provider customers."
#[test]
fn hosts_with_the_same_address_behind_two_b4s_are_two_hosts() {
    for workers in [1, 2] {
        let mut router = router_with(Settings { workers, ..Settings::default() }, "");
        let one = out(&mut router, B4, (HOST, REMOTE), UDP, &udp(4000, 53)).expect("sent");
        let other = out(&mut router, OTHER, (HOST, REMOTE), UDP, &udp(4000, 53)).expect("sent");
        assert_eq!((one.0, other.0), (POOL, POOL));
        assert_ne!(one.1, other.1);
        assert_eq!(sessions(&mut router), 2);
        for (port, b4) in [(one.1, B4), (other.1, OTHER)] {
            let answer = packet4((REMOTE, POOL), UDP, whole(), &udp(53, port));
            let (to, inner) = back(&mut router, port, &answer).expect("sent");
            assert_eq!((to, address(&inner, 16)), (b4, HOST));
            assert_eq!(&inner[20..24], &[0, 53, 15, 160], "port 4000");
            assert_eq!(of(&inner[..20]), 0);
            // Packets of the session are translated without the slow path.
            let made = slow(&router, "sessions-made");
            let again = out(&mut router, b4, (HOST, REMOTE), UDP, &udp(4000, 53));
            assert_eq!(again, Some((POOL, port)));
            assert_eq!(slow(&router, "sessions-made"), made);
        }
        let shown = rows(&mut router, "show nat44 sessions");
        let of_b4 =
            |b4: Ipv6Addr| shown.iter().filter(|row| row["b4"] == b4.to_string().as_str()).count();
        assert_eq!((of_b4(B4), of_b4(OTHER)), (1, 1), "{shown:?}");
        assert_eq!(rows(&mut router, "show dslite b4s").len(), 2);
    }
}

#[test]
fn a_b4_is_forgotten_with_its_last_session_and_its_number_is_given_again() {
    let mut router = router(
        "set nat timeout udp 10
        nat44 port-blocks size 64 max-blocks 2 block-timeout 20",
    );
    out(&mut router, B4, (HOST, REMOTE), UDP, &udp(4000, 53)).expect("sent");
    let shown = rows(&mut router, "show nat44 blocks");
    assert_eq!((shown.len(), &shown[0]["b4"]), (1, &Value::from(B4.to_string())));
    router.advance(Duration::from_secs(40));
    assert_eq!(sessions(&mut router), 0);
    assert_eq!(rows(&mut router, "show dslite b4s").len(), 1, "kept for a while");
    router.advance(Duration::from_secs(150));
    assert_eq!(rows(&mut router, "show dslite b4s").len(), 0);
    assert_eq!(rows(&mut router, "show nat44 blocks").len(), 0);
    out(&mut router, OTHER, (HOST, REMOTE), UDP, &udp(4000, 53)).expect("sent");
    assert_eq!(rows(&mut router, "show nat44 blocks")[0]["b4"], OTHER.to_string().as_str());
}

#[test]
fn all_hosts_behind_a_b4_are_one_subscriber() {
    let mut router = router(
        "nat44 port-blocks size 64 max-blocks 1
        nat44 subscriber-limits sessions 3",
    );
    let hosts = [2, 3, 4, 5].map(|last| Ipv4Addr::new(192, 168, 1, last));
    let sent = hosts.map(|host| out(&mut router, B4, (host, REMOTE), UDP, &udp(4000, 53)));
    assert_eq!(sent.map(|sent| sent.is_some()), [true, true, true, false]);
    assert_eq!(slow(&router, "subscriber-limit"), 1);
    // RFC 6888 REQ-11: the sender is told, in its softwire.
    let (to, inner) = to_b4(&mut router).expect("an ICMP error");
    assert_eq!((to, address(&inner, 12), address(&inner, 16)), (B4, AFTR4, hosts[3]));
    assert_eq!((inner[9], inner[20], inner[21]), (ICMP, 3, 1), "host unreachable");
    assert_eq!((of(&inner[..20]), of(&inner[20..])), (0, 0));
    let first = rows(&mut router, "show nat44 blocks");
    assert_eq!((first.len(), &first[0]["used"]), (1, &Value::from(3)));
    assert!(out(&mut router, OTHER, (HOST, REMOTE), UDP, &udp(4000, 53)).is_some());
    assert_eq!(rows(&mut router, "show nat44 subscribers").len(), 2);
}

/// RFC 7785 §4: policies hold for the prefix of a subscriber, not for an address.
#[test]
fn a_subscriber_cannot_take_all_b4s_with_addresses_of_its_prefix() {
    let mut router = router("dslite set b4-limit prefix-length 56 b4s 4");
    let made = (1..200u16).filter(|last| {
        let b4 = Ipv6Addr::new(0x2001, 0xdb8, 0x4000, last % 200, 0, 0, 0, *last);
        out(&mut router, b4, (HOST, REMOTE), UDP, &udp(4000, 53)).is_some()
    });
    assert_eq!(made.count(), 4);
    assert_eq!(slow(&router, "b4-limit"), 195);
    assert!(out(&mut router, OTHER, (HOST, REMOTE), UDP, &udp(4000, 53)).is_some());
    // The table is full, which costs nobody what is there.
    for net in 2..200u16 {
        let b4 = Ipv6Addr::new(0x2001, 0xdb8, 0x4000, net << 8, 0, 0, 0, 1);
        out(&mut router, b4, (HOST, REMOTE), UDP, &udp(4000, 53));
    }
    assert_eq!(rows(&mut router, "show dslite b4s").len(), 64);
    assert!(slow(&router, "b4s-exceeded") > 0);
    assert!(out(&mut router, OTHER, (HOST, REMOTE), UDP, &udp(4000, 54)).is_some());
}

/// RFC 6333 §11: the AFTR limits its service to the B4s of its own customers.
#[test]
fn who_is_not_admitted_is_no_b4() {
    let mut router = router("dslite add b4-prefix 2001:db8:4000:100::/56");
    assert_eq!(out(&mut router, B4, (HOST, REMOTE), UDP, &udp(4000, 53)), None);
    assert_eq!(slow(&router, "b4-not-admitted"), 1);
    assert!(out(&mut router, OTHER, (HOST, REMOTE), UDP, &udp(4000, 53)).is_some());
    let group = Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 1);
    assert_eq!(out(&mut router, group, (HOST, REMOTE), UDP, &udp(4000, 53)), None);
    // Its sessions end when it is admitted no more.
    router.cli("dslite add b4-prefix 2001:db8:4000::/56");
    router.cli("dslite add b4-prefix 2001:db8:4000:100::/56 del");
    assert_eq!(sessions(&mut router), 0);
    assert_eq!(out(&mut router, OTHER, (HOST, REMOTE), UDP, &udp(4000, 53)), None);
    assert!(out(&mut router, B4, (HOST, REMOTE), UDP, &udp(4000, 53)).is_some());
    // Nobody sends as a group, as the router, or to a group.
    let group = Ipv4Addr::new(224, 0, 0, 1);
    for source in [group, AFTR4, Ipv4Addr::UNSPECIFIED] {
        assert_eq!(out(&mut router, B4, (source, REMOTE), UDP, &udp(4000, 53)), None);
    }
    assert_eq!((slow(&router, "inner-source"), slow(&router, "inner-wrong")), (1, 2));
    assert_eq!(out(&mut router, B4, (HOST, group), UDP, &udp(4000, 53)), None);
}

/// RFC 6333 §6.5: 192.0.0.1 "can then be used to report ICMP problems and will appear in traceroute
/// outputs."
#[test]
fn the_aftr_answers_pings_and_the_last_hop() {
    let mut router = router("");
    let ping = icmp(8, 0, [0, 7, 0, 1], b"data");
    assert_eq!(out(&mut router, B4, (HOST, AFTR4), ICMP, &ping), None);
    let (to, inner) = to_b4(&mut router).expect("an answer");
    assert_eq!((to, address(&inner, 12), address(&inner, 16)), (B4, AFTR4, HOST));
    assert_eq!((inner[20], of(&inner[..20]), of(&inner[20..])), (0, 0, 0));
    assert_eq!(&inner[24..], &ping[4..]);
    let mut packet = packet4((HOST, REMOTE), UDP, whole(), &udp(4000, 33434));
    packet[8] = 1;
    packet[10..12].fill(0);
    let sum = of(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    router.send("e0", &ip6((B4, AFTR), IPIP, &packet));
    let (to, inner) = to_b4(&mut router).expect("an ICMP error");
    assert_eq!((to, address(&inner, 12), inner[20]), (B4, AFTR4, 11));
    assert_eq!(&inner[28..], &packet, "quoted as it was sent");
    assert_eq!(rows(&mut router, "show dslite b4s").len(), 0, "neither makes a B4");
    // No error about an error, and none to what is no ping.
    assert_eq!(out(&mut router, B4, (HOST, AFTR4), UDP, &udp(4000, 53)), None);
    assert_eq!(slow(&router, "aftr-address"), 1);
    assert_eq!(to_b4(&mut router), None);
}

#[test]
fn a_destination_that_no_outside_interface_leads_to_is_answered() {
    let mut router = router("");
    let own = Ipv4Addr::new(198, 51, 100, 1);
    assert_eq!(out(&mut router, B4, (HOST, own), UDP, &udp(4000, 53)), None);
    let (_, inner) = to_b4(&mut router).expect("an ICMP error");
    assert_eq!((inner[20], inner[21]), (3, 0));
}

#[test]
fn errors_from_outside_and_from_inside_find_the_other_end() {
    let mut router = router("");
    let (_, port) = out(&mut router, B4, (HOST, REMOTE), UDP, &udp(4000, 53)).expect("sent");
    let quoted = packet4((POOL, REMOTE), UDP, whole(), &udp(port, 53));
    let hop = Ipv4Addr::new(203, 0, 113, 77);
    let error = packet4((hop, POOL), ICMP, whole(), &icmp(11, 0, [0; 4], &quoted));
    let (to, inner) = back(&mut router, port, &error).expect("the error");
    assert_eq!((to, address(&inner, 12), address(&inner, 16)), (B4, hop, HOST));
    assert_eq!(address(&inner, 28 + 12), HOST);
    assert_eq!(&inner[48..50], &4000u16.to_be_bytes());
    let quoted = packet4((REMOTE, HOST), UDP, whole(), &udp(53, 4000));
    let error = icmp(3, 3, [0; 4], &quoted);
    router.send("e0", &ip6((B4, AFTR), IPIP, &packet4((HOST, REMOTE), ICMP, whole(), &error)));
    let frame = router.sent("e1").pop().expect("the error");
    assert_eq!((address(&frame, 26), address(&frame, 30)), (POOL, REMOTE));
    assert_eq!(address(&frame, 42 + 16), POOL);
    assert_eq!(&frame[64..66], &port.to_be_bytes());
}

/// RFC 6333 §6.3, RFC 2473 §7.2: outer fragments where the sender allows them, else an ICMP error.
#[test]
fn long_packets_are_cut_behind_the_encapsulation_or_answered() {
    let mut router = router("dslite set tunnel-mtu 1280");
    let (_, port) = out(&mut router, B4, (HOST, REMOTE), UDP, &udp(4000, 53)).expect("sent");
    let mut data = udp(53, port);
    data.extend([7; 1392]);
    data[4..6].copy_from_slice(&1400u16.to_be_bytes());
    let mut packet = packet4((REMOTE, POOL), UDP, whole(), &data);
    let frame = |packet: &[u8]| [&[2, 0xfe, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0], packet].concat();
    router.send("e1", &frame(&packet));
    let sent = router.sent("e0");
    assert_eq!(sent.len(), 2, "{:?}", router.dropped());
    assert!(sent.iter().all(|frame| frame[20] == 44 && frame.len() <= LINK + 1280));
    let bytes: usize = sent.iter().map(|frame| frame.len() - LINK - 48).sum();
    assert_eq!(bytes, packet.len());
    packet[6] = 0x40;
    packet[10..12].fill(0);
    let sum = of(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    router.send("e1", &frame(&packet));
    assert_eq!(router.sent("e0").len(), 0);
    let error = router.sent("e1").pop().expect("an ICMP error");
    assert_eq!((address(&error, 30), error[34], error[35]), (REMOTE, 3, 4));
    assert_eq!(u16::from_be_bytes([error[40], error[41]]), 1240);
    assert_eq!(&error[42..42 + 28], &packet[..28], "quoted as it was sent");
}

#[test]
fn fragments_of_either_version_reach_the_server() {
    let mut router = router("");
    // Outer ones: put together where the tunnel ends (RFC 6333 §6.3).
    let mut data = udp(4000, 53);
    data.extend([9; 100]);
    data[4..6].copy_from_slice(&108u16.to_be_bytes());
    let packet = packet4((HOST, REMOTE), UDP, whole(), &data);
    for (from, to) in [(64, packet.len()), (0, 64)] {
        let fragment =
            Fragment { identification: 5, offset_bytes: from as u16, more: to != packet.len() };
        router.send("e0", &ip6_fragment(0, (B4, AFTR), IPIP, fragment, &packet[from..to]));
    }
    let frame = router.sent("e1").pop().unwrap_or_else(|| panic!("{:?}", router.dropped()));
    assert_eq!((address(&frame, 26), &frame[42..142]), (POOL, &[9; 100][..]));
    // Inner ones: the first one says the port of all.
    for (offset_bytes, more, piece) in [(0, true, &data[..64]), (64, false, &data[64..])] {
        let fragment = Fragment { identification: 6, offset_bytes, more };
        let inner = packet4((HOST, REMOTE), UDP, fragment, piece);
        router.send("e0", &ip6((B4, AFTR), IPIP, &inner));
        let frame = router.sent("e1").pop().unwrap_or_else(|| panic!("{:?}", router.dropped()));
        assert_eq!(
            (address(&frame, 26), &frame[34 + piece.len() - 8..34 + piece.len()]),
            (POOL, &piece[piece.len() - 8..])
        );
    }
    // Another B4's fragment is not of that packet.
    let fragment = Fragment { identification: 6, offset_bytes: 64, more: false };
    let inner = packet4((HOST, REMOTE), UDP, fragment, &data[64..]);
    router.send("e0", &ip6((OTHER, AFTR), IPIP, &inner));
    assert_eq!(router.sent("e1").len(), 0);
    assert_eq!(slow(&router, "fragment-without-first"), 1);
}

/// RFC 4787 REQ-9, between two B4s whose hosts have the same address.
#[test]
fn hosts_behind_two_b4s_reach_each_other_by_their_outside_ends() {
    let mut router = router("nat44 mapping endpoint-independent filtering any");
    let (_, one) = out(&mut router, B4, (HOST, REMOTE), UDP, &udp(4000, 53)).expect("sent");
    let (_, other) = out(&mut router, OTHER, (HOST, REMOTE), UDP, &udp(4000, 53)).expect("sent");
    for _ in 0..2 {
        for (from, own, to, port) in [(B4, one, OTHER, other), (OTHER, other, B4, one)] {
            let (at, inner) = hairpin(&mut router, from, port);
            assert_eq!((at, address(&inner, 12), address(&inner, 16)), (to, POOL, HOST));
            assert_eq!(&inner[20..24], &[own.to_be_bytes(), 4000u16.to_be_bytes()].concat());
        }
    }
    // To itself.
    let (at, inner) = hairpin(&mut router, B4, one);
    assert_eq!((at, address(&inner, 12), address(&inner, 16)), (B4, POOL, HOST));
}

/// RFC 2473 §8: a router of the access network says that a packet to a B4 is too big.
#[test]
fn an_error_of_the_access_network_is_relayed_to_the_sender_outside() {
    let mut router = router("dslite set tunnel-mtu 1500");
    let (_, port) = out(&mut router, B4, (HOST, REMOTE), UDP, &udp(4000, 53)).expect("sent");
    let mut data = udp(53, port);
    data.extend([7; 1392]);
    let mut packet = packet4((REMOTE, POOL), UDP, whole(), &data);
    packet[6] = 0x40;
    packet[10..12].fill(0);
    let sum = of(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    router.send("e1", &[&[2, 0xfe, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0], &packet[..]].concat());
    let frame = router.sent("e0").pop().expect("sent");
    let quoted = &frame[LINK..LINK + 600];
    let hop = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 9);
    let message = |source: Ipv6Addr, mtu: u32, quoted: &[u8]| {
        let mut bytes = [&[2, 0, 0, 0][..], &mtu.to_be_bytes(), quoted].concat();
        let sum = Sum::pseudo6(source, AFTR, IpProtocol::ICMP6, bytes.len() as u32);
        let sum = sum.bytes(&bytes).checksum();
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        ip6((source, AFTR), 58, &bytes)
    };
    router.send("e0", &message(hop, 1400, quoted));
    let error = router.sent("e1").pop().unwrap_or_else(|| panic!("{:?}", router.dropped()));
    assert_eq!((address(&error, 30), error[34], error[35]), (REMOTE, 3, 4));
    assert_eq!(u16::from_be_bytes([error[40], error[41]]), 1360);
    assert_eq!((address(&error, 54), address(&error, 58)), (REMOTE, POOL));
    assert_eq!(&error[62..66], &[[0, 53], port.to_be_bytes()].concat());
    // Forged ones: of no session, below the minimum, about another source.
    let mut strange = quoted.to_vec();
    strange[BOTH] ^= 1;
    router.send("e0", &message(hop, 1400, &strange));
    router.send("e0", &message(hop, 1000, quoted));
    let mut other = quoted.to_vec();
    other[20] ^= 1;
    router.send("e0", &message(hop, 1400, &other));
    assert_eq!(router.sent("e1").len(), 0);
    assert_eq!(router.count("ip6-dslite", "not-ours"), 2);
    assert_eq!(router.count("ip6-dslite", "mtu-not-believed"), 1);
}

#[test]
fn an_error_of_the_link_outside_reaches_the_host_that_sent_the_packet() {
    let mut router = router("set interface mtu packet 1000 e1");
    out(&mut router, B4, (HOST, REMOTE), UDP, &udp(4000, 53)).expect("sent");
    let mut data = udp(4000, 53);
    data.extend([7; 1200]);
    let mut packet = packet4((HOST, REMOTE), UDP, whole(), &data);
    packet[6] = 0x40;
    packet[10..12].fill(0);
    let sum = of(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    router.send("e0", &ip6((B4, AFTR), IPIP, &packet));
    let (to, inner) = to_b4(&mut router).unwrap_or_else(|| panic!("{:?}", router.dropped()));
    assert_eq!((to, address(&inner, 16), inner[20], inner[21]), (B4, HOST, 3, 4));
    assert_eq!((address(&inner, 40), address(&inner, 44)), (HOST, REMOTE));
}

#[test]
fn what_is_configured_comes_back_and_goes() {
    let mut router = router(
        "dslite add pool address 192.0.2.20 - 192.0.2.22
        dslite add b4-prefix 2001:db8:4000::/34
        dslite set b4-limit prefix-length 64 b4s 2
        dslite set tunnel-mtu 1540",
    );
    let text = router.cli("show running-config");
    for line in [
        "dslite add pool address 192.0.2.9\n",
        "dslite add pool address 192.0.2.20 - 192.0.2.22\n",
        "dslite add b4-prefix 2001:db8:4000::/34\n",
        "dslite set b4-limit prefix-length 64 b4s 2\n",
        "dslite set tunnel-mtu 1540\n",
        "dslite set aftr-tunnel-endpoint-address 2001:db8:ffff::1 b4s 64\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let shown = router.json("show dslite aftr-tunnel-endpoint-address");
    assert_eq!(
        (&shown["aftr"], &shown["tunnel_mtu_bytes"]),
        (&AFTR.to_string().into(), &1540.into())
    );
    assert_eq!(shown["b4_prefixes"][0]["prefix"], "2001:db8:4000::/34");
    let pool = rows(&mut router, "show dslite pool");
    assert_eq!((pool.len(), &pool[1]["last"]), (2, &Value::from("192.0.2.22")));
    router.refused("dslite set aftr-tunnel-endpoint-address 2001:db8:ffff::1 b4s 65");
    router.refused("dslite set aftr-tunnel-endpoint-address ff02::1 b4s 64");
    router.refused("nat44 add address 192.0.2.9");
    router.refused("dslite add pool address 192.0.2.21");
    out(&mut router, B4, (HOST, REMOTE), TCP, &tcp(4000, 80, 2)).expect("sent");
    router.cli("dslite del aftr-tunnel-endpoint-address");
    assert_eq!(sessions(&mut router), 0);
    router.refused("dslite del aftr-tunnel-endpoint-address");
    assert_eq!(out(&mut router, B4, (HOST, REMOTE), TCP, &tcp(4000, 80, 2)), None);
    router.cli("dslite set aftr-tunnel-endpoint-address 2001:db8:ffff::1 b4s 65");
    out(&mut router, B4, (HOST, REMOTE), TCP, &tcp(4000, 80, 2)).expect("sent");
    router.cli("nat44 plugin disable");
    assert_eq!(out(&mut router, B4, (HOST, REMOTE), TCP, &tcp(4000, 80, 2)), None);
    assert!(!router.cli("show running-config").contains("dslite"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_a_b4_sends_loses_no_buffer_and_lying_lengths_go_nowhere(
        packets in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..90), any::<bool>(), 0u8..4, any::<u8>()), 1..20)
    ) {
        let mut router = router("");
        for (mut bytes, is_whole, next, place) in packets {
            // Often a good packet with one wrong byte.
            if is_whole {
                let inner = bytes.clone();
                let protocol = [UDP, TCP, ICMP, 47][usize::from(next)];
                bytes = packet4((HOST, REMOTE), protocol, whole(), &inner);
                if let Some(byte) = bytes.get_mut(usize::from(place) % 24) {
                    *byte = byte.wrapping_add(place);
                }
            }
            let next = [IPIP, 44, 60, 58][usize::from(next)];
            router.send("e0", &ip6((B4, AFTR), next, &bytes));
        }
        // A nested packet is not taken out twice.
        let inner = packet4((HOST, REMOTE), UDP, whole(), &udp(1, 2));
        let nested = packet4((HOST, REMOTE), IPIP, whole(), &inner);
        router.send("e0", &ip6((B4, AFTR), IPIP, &nested));
        router.sent("e0");
        router.sent("e1");
        router.advance(Duration::from_secs(70));
        router.sent("e0");
        router.sent("e1");
        prop_assert_eq!(router.buffers_in_use(), 0);
    }
}
