//! Sessions over time: made, refreshed, expired, refused, ended by commands.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use quiver_testkit::configuration::running;
use quiver_testkit::frames::{Fragment, ip4};
use quiver_testkit::{Register, Router, Settings};

pub const FEATURES: [Register; 4] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_nat64::register,
];
pub const HOST: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2);
pub const OTHER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 3);
pub const REMOTE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
pub const POOL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const UDP: u8 = 17;
pub const TCP: u8 = 6;
const ICMP6: u8 = 58;
const SYN: u8 = 2;
const ACK: u8 = 16;
const FIN: u8 = 1;

pub fn setup(sessions: usize) -> String {
    format!(
        "create test interface e0 rx-queues 2
        create test interface e1 rx-queues 2
        set interface state e0 up
        set interface state e1 up
        set interface ip address e0 2001:db8:1::1/64
        set interface ip address e1 198.51.100.1/24
        ip neighbor e0 2001:db8:1::2 02:00:00:00:00:00 static
        ip neighbor e0 2001:db8:1::3 02:00:00:00:00:00 static
        ip neighbor e1 198.51.100.2 02:00:00:00:00:01 static
        ip route add 0.0.0.0/0 via 198.51.100.2
        ip route add 2001:db8:2::/48 via 2001:db8:1::2
        nat64 plugin enable sessions {sessions}
        nat64 add prefix 2001:db8:64::/96
        nat64 add pool address 192.0.2.1
        set interface nat64 in e0
        set interface nat64 out e1"
    )
}

pub fn router(sessions: usize) -> Router {
    router_with(Settings::default(), sessions)
}

fn router_with(settings: Settings, sessions: usize) -> Router {
    let mut router = Router::with(settings, &FEATURES);
    router.script("setup", &setup(sessions)).expect("a good configuration");
    router.run();
    router.sent("e0");
    router.sent("e1");
    router
}

/// An IPv4 address behind the prefix.
pub fn behind(address: Ipv4Addr) -> Ipv6Addr {
    let prefix: Ipv6Addr = "2001:db8:64::".parse().expect("an address");
    Ipv6Addr::from_bits(prefix.to_bits() | u128::from(u32::from(address)))
}

/// A frame with an IPv6 packet to the first test interface.
pub fn ip6(ends: (Ipv6Addr, Ipv6Addr), next: u8, hops: u8, data: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 0x86, 0xdd, 0x60, 0, 0, 0];
    frame.extend((data.len() as u16).to_be_bytes());
    frame.extend([next, hops]);
    frame.extend(ends.0.octets());
    frame.extend(ends.1.octets());
    frame.extend(data);
    frame
}

pub fn whole() -> Fragment {
    Fragment { identification: 1, offset_bytes: 0, more: false }
}

/// A datagram without payload, with a checksum that no packet needs to have here.
pub fn udp(source: u16, destination: u16) -> Vec<u8> {
    let [a, b] = source.to_be_bytes();
    let [c, d] = destination.to_be_bytes();
    vec![a, b, c, d, 0, 8, 1, 1]
}

pub fn tcp(source: u16, destination: u16, flags: u8) -> Vec<u8> {
    let mut header = udp(source, destination)[..4].to_vec();
    header.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
    header
}

/// Send from a host inside; the source address and port that come out, if anything does.
pub fn from_inside(
    router: &mut Router,
    host: Ipv6Addr,
    remote: Ipv4Addr,
    protocol: u8,
    upper: &[u8],
) -> Option<(Ipv4Addr, u16)> {
    router.send("e0", &ip6((host, behind(remote)), protocol, 64, upper));
    let sent = router.sent("e1");
    let frame = sent.first()?;
    let address: [u8; 4] = frame[26..30].try_into().expect("four bytes");
    Some((address.into(), u16::from_be_bytes([frame[34], frame[35]])))
}

/// Send from outside to the pool; the destination address and port that come out inside.
pub fn from_outside(
    router: &mut Router,
    remote: Ipv4Addr,
    protocol: u8,
    upper: &[u8],
) -> Option<(Ipv6Addr, u16)> {
    router.send("e1", &ip4(1, (remote, POOL), protocol, whole(), upper));
    let sent = router.sent("e0");
    let frame = sent.first()?;
    let address: [u8; 16] = frame[38..54].try_into().expect("sixteen bytes");
    Some((address.into(), u16::from_be_bytes([frame[56], frame[57]])))
}

fn summary(router: &mut Router, key: &str) -> u64 {
    router.json("show nat64 summary")[key].as_u64().expect("a number")
}

/// RFC 6146 §3.5.1: the binding of a host's end is the same for all remote ends.
#[test]
fn a_binding_is_the_same_for_every_destination() {
    let mut router = router(1000);
    assert_eq!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(4000, 53)), Some((POOL, 4000)));
    let far = Ipv4Addr::new(203, 0, 113, 99);
    assert_eq!(from_inside(&mut router, HOST, far, UDP, &udp(4000, 54)), Some((POOL, 4000)));
    let (address, port) =
        from_inside(&mut router, OTHER, REMOTE, UDP, &udp(4000, 53)).expect("sent");
    assert!(address == POOL && port != 4000 && port % 2 == 0, "another one of the same parity");
    assert_eq!((summary(&mut router, "sessions"), summary(&mut router, "bindings")), (3, 2));
    let stranger = Ipv4Addr::new(198, 51, 100, 77);
    let came = from_outside(&mut router, stranger, UDP, &udp(9, 4000));
    assert_eq!(came, Some((HOST, 4000)), "endpoint-independent filtering");
    router.cli("nat64 filtering address-dependent");
    let other = Ipv4Addr::new(198, 51, 100, 78);
    assert_eq!(from_outside(&mut router, other, UDP, &udp(9, 4000)), None);
    assert_eq!(router.count("nat64-slowpath", "filtered"), 1);
    assert_eq!(from_outside(&mut router, far, UDP, &udp(7, 4000)), Some((HOST, 4000)));
}

#[test]
fn a_worker_that_owns_no_sessions_hands_packets_over_and_translates_later_ones() {
    let mut router = router_with(Settings { workers: 2, ..Settings::default() }, 1000);
    for number in 0..20u16 {
        let frame = ip6((HOST, behind(REMOTE)), UDP, 64, &udp(4000 + number, 53));
        router.inject_queue("e0", usize::from(number % 2), &frame);
        router.inject_queue("e0", 1, &frame);
    }
    router.run();
    assert_eq!(router.sent("e1").len(), 40, "{:?}", router.dropped());
    assert_eq!((summary(&mut router, "sessions"), summary(&mut router, "bindings")), (20, 20));
    router.inject_queue("e1", 1, &ip4(1, (REMOTE, POOL), UDP, whole(), &udp(53, 4001)));
    router.run();
    assert_eq!(router.sent("e0").len(), 1);
}

/// RFC 6146 §4: UDP 5 minutes; the binding goes with its last session.
#[test]
fn sessions_end_when_nothing_comes_and_their_bindings_with_them() {
    let mut router = router(1000);
    assert!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(4000, 53)).is_some());
    router.advance(Duration::from_secs(290));
    assert_eq!(from_outside(&mut router, REMOTE, UDP, &udp(53, 4000)), Some((HOST, 4000)));
    router.advance(Duration::from_secs(290));
    assert_eq!(summary(&mut router, "sessions"), 1, "a packet from outside refreshed it");
    router.advance(Duration::from_secs(30));
    assert_eq!((summary(&mut router, "sessions"), summary(&mut router, "bindings")), (0, 0));
    assert_eq!(from_outside(&mut router, REMOTE, UDP, &udp(53, 4000)), None);
    assert_eq!(router.count("nat64-out2in", "no-translation"), 1);
}

/// RFC 6146 §3.5.2.2, §4: established for 2 hours and 4 minutes, otherwise 4 minutes.
#[test]
fn tcp_sessions_live_as_long_as_their_state_says() {
    let mut router = router(1000);
    let there = |flags| tcp(4000, 80, flags);
    let back = |flags| tcp(80, 4000, flags);
    assert_eq!(from_inside(&mut router, HOST, REMOTE, TCP, &there(ACK)), None);
    assert_eq!(router.count("nat64-slowpath", "non-syn"), 1);
    assert!(from_inside(&mut router, HOST, REMOTE, TCP, &there(SYN)).is_some());
    assert!(from_outside(&mut router, REMOTE, TCP, &back(SYN | ACK)).is_some());
    assert!(from_inside(&mut router, HOST, REMOTE, TCP, &there(ACK)).is_some());
    let state = |router: &mut Router| router.json("show nat64 session table")[0]["state"].clone();
    assert_eq!(state(&mut router), "established");
    router.advance(Duration::from_secs(7_000));
    assert_eq!(summary(&mut router, "sessions"), 1);
    assert!(from_inside(&mut router, HOST, REMOTE, TCP, &there(FIN | ACK)).is_some());
    assert!(from_outside(&mut router, REMOTE, TCP, &back(FIN | ACK)).is_some());
    assert_eq!(state(&mut router), "closed");
    router.advance(Duration::from_secs(260));
    assert_eq!(summary(&mut router, "sessions"), 0);
}

/// RFC 6146 §3.5.1.1: no port is left: "Address Unreachable" to who sent the packet.
#[test]
fn every_port_is_used_and_then_the_next_is_refused_and_answered() {
    let mut router = router(70_000);
    let mut seen = vec![false; 65_536];
    for number in 0..64_512u32 {
        let host = Ipv6Addr::from_bits(HOST.to_bits() + (1 << 80) + u128::from(number));
        let (_, port) = from_inside(&mut router, host, REMOTE, UDP, &udp(4000, 53))
            .unwrap_or_else(|| panic!("{number} made, then {:?}", router.dropped()));
        assert!(port >= 1024 && !std::mem::replace(&mut seen[usize::from(port)], true));
    }
    assert_eq!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(4000, 53)), None);
    assert_eq!(router.count("nat64-slowpath", "out-of-ports"), 1);
    let answer = router.sent("e0").pop().expect("an ICMPv6 error");
    assert_eq!((answer[20], answer[54], answer[55]), (58, 1, 3), "address unreachable");
    // ICMP has numbers of its own.
    let echo = [128, 0, 0, 0, 0, 7, 0, 1];
    assert!(from_inside(&mut router, HOST, REMOTE, ICMP6, &echo).is_some());
    router.cli("clear nat64 sessions");
    assert_eq!(summary(&mut router, "bindings"), 0);
    router.advance(Duration::from_secs(2));
    assert_eq!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(4000, 53)), Some((POOL, 4000)));
}

#[test]
fn sessions_beyond_a_limit_are_refused_and_answered() {
    let mut router = router(5);
    router.cli("nat64 subscriber-limit sessions 2 prefix-length 64");
    assert!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(4001, 53)).is_some());
    assert!(from_inside(&mut router, OTHER, REMOTE, UDP, &udp(4002, 53)).is_some());
    assert_eq!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(4003, 53)), None);
    assert_eq!(router.count("nat64-slowpath", "subscriber-limit"), 1);
    assert_eq!(router.sent("e0").len(), 1);
    router.cli("nat64 subscriber-limit disable");
    for port in 4003..=4005 {
        assert!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(port, 53)).is_some());
    }
    assert_eq!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(4006, 53)), None);
    assert_eq!(router.count("nat64-slowpath", "maximum-sessions-exceeded"), 1);
    assert_eq!(summary(&mut router, "sessions"), 5);
}

/// RFC 6146 §3.8: two hosts inside reach one another by the pool.
#[test]
fn hosts_inside_reach_one_another_by_the_pool() {
    let mut router = router(1000);
    assert!(from_inside(&mut router, OTHER, REMOTE, UDP, &udp(5000, 53)).is_some());
    router.send("e0", &ip6((HOST, behind(POOL)), UDP, 64, &udp(4000, 5000)));
    let sent = router.sent("e0");
    let frame = sent.first().unwrap_or_else(|| panic!("{:?}", router.dropped()));
    assert_eq!(frame[22..38], behind(POOL).octets());
    assert_eq!(frame[38..54], OTHER.octets());
    assert_eq!(frame[54..58], [0x0f, 0xa0, 0x13, 0x88]);
    assert_eq!(frame[21], 63, "one hop");
    assert!(router.sent("e1").is_empty());
}

#[test]
fn what_cannot_be_translated_is_counted_or_answered() {
    let mut router = router(1000);
    let to = (HOST, behind(REMOTE));
    let mut send = |frame: &[u8]| {
        router.send("e0", frame);
        (router.sent("e0").pop().map(|answer| (answer[54], answer[55])), router.sent("e1").len())
    };
    // RFC 7915 §5.1: hop limit 0 and 1.
    assert_eq!(send(&ip6(to, UDP, 1, &udp(1, 2))), (Some((3, 0)), 0));
    assert_eq!(send(&ip6(to, UDP, 0, &udp(1, 2))), (Some((3, 0)), 0));
    // RFC 6146 §3.4: another protocol.
    assert_eq!(send(&ip6(to, 132, 64, &[0; 16])), (Some((1, 4)), 0));
    // A chain of headers is left out (RFC 7915 §5.1).
    let mut options = vec![60, 0, 1, 4, 0, 0, 0, 0, UDP, 0, 1, 4, 0, 0, 0, 0];
    options.extend(udp(1, 2));
    assert_eq!(send(&ip6(to, 60, 64, &options)), (None, 1));
    // A routing header with segments left.
    let mut routing = vec![UDP, 0, 0, 1, 0, 0, 0, 0];
    routing.extend(udp(1, 2));
    assert_eq!(send(&ip6(to, 43, 64, &routing)), (Some((4, 0)), 0));
    // Lengths that lie.
    let mut cut = ip6(to, TCP, 64, &tcp(1, 2, SYN)[..12]);
    assert_eq!(send(&cut), (None, 0));
    cut[20] = 60;
    assert_eq!(send(&cut).1, 0);
    // From the prefix itself: it would go round.
    assert_eq!(send(&ip6((behind(POOL), behind(REMOTE)), UDP, 64, &udp(1, 2))), (None, 0));
    assert_eq!(router.count("nat64-in2out", "from-prefix"), 1);
    assert_eq!(router.count("nat64-in2out", "unknown-protocol"), 1);
    assert_eq!(router.count("nat64-in2out", "source-route"), 1);
}

/// RFC 6052 §3.1: "The Well-Known Prefix MUST NOT be used to represent non-global IPv4 addresses".
#[test]
fn private_addresses_are_not_reached_behind_the_well_known_prefix() {
    let mut router = router(1000);
    router.cli("nat64 add prefix 2001:db8:64::/96 del");
    router.cli("nat64 add prefix 64:ff9b::/96");
    let to = |text: &str| (HOST, text.parse().expect("an address"));
    router.send("e0", &ip6(to("64:ff9b::10.0.0.1"), UDP, 64, &udp(1, 2)));
    assert_eq!(router.count("nat64-in2out", "not-global"), 1);
    assert!(router.sent("e1").is_empty());
    router.send("e0", &ip6(to("64:ff9b::8.8.8.8"), UDP, 64, &udp(1, 2)));
    assert_eq!(router.sent("e1").len(), 1);
}

#[test]
fn errors_from_outside_quote_the_packet_as_it_was_sent() {
    let mut router = router(1000);
    router.send("e0", &ip6((HOST, behind(REMOTE)), UDP, 64, &udp(4000, 53)));
    let sent = router.sent("e1").pop().expect("translated");
    let quoted = &sent[14..];
    let mut message = vec![3, 3, 0, 0, 0, 0, 0, 0];
    message.extend(quoted);
    let sum = quiver_wire::checksum::of(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let between = Ipv4Addr::new(198, 51, 100, 9);
    router.send("e1", &ip4(1, (between, POOL), 1, whole(), &message));
    let error = router.sent("e0").pop().unwrap_or_else(|| panic!("{:?}", router.dropped()));
    assert_eq!((error[20], error[54], error[55]), (58, 1, 4));
    assert_eq!(error[22..38], behind(between).octets());
    assert_eq!(error[62 + 8..62 + 24], HOST.octets());
    assert_eq!(error[62 + 24..62 + 40], behind(REMOTE).octets());
    assert_eq!(error[62 + 40..62 + 44], [0x0f, 0xa0, 0, 53]);
    // About a packet that nobody sent.
    message[28 + 3] ^= 1;
    message[2..4].fill(0);
    let sum = quiver_wire::checksum::of(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    router.send("e1", &ip4(1, (between, POOL), 1, whole(), &message));
    assert_eq!(router.count("nat64-slowpath", "inner-has-no-session"), 1);
    // With a wrong checksum.
    message[2] ^= 0xff;
    router.send("e1", &ip4(1, (between, POOL), 1, whole(), &message));
    assert_eq!(router.count("nat64-slowpath", "truncated"), 1);
    assert!(router.sent("e0").is_empty());
}

#[test]
fn a_static_binding_admits_everybody_and_takes_its_end_from_others() {
    let mut router = router(1000);
    assert_eq!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(4000, 53)), Some((POOL, 4000)));
    router.cli("nat64 add static bib 2001:db8:1::3 53 192.0.2.1 4000 udp");
    assert_eq!(summary(&mut router, "sessions"), 0, "the session of that end is over");
    assert_eq!(from_outside(&mut router, REMOTE, UDP, &udp(9, 4000)), Some((OTHER, 53)));
    let again = from_inside(&mut router, HOST, REMOTE, UDP, &udp(4000, 53)).expect("sent");
    assert_ne!(again.1, 4000);
    let refusal = router.refused("nat64 add static bib 2001:db8:1::2 9 192.0.2.1 4000 udp");
    assert!(refusal.contains("already"), "{refusal}");
    router.advance(Duration::from_secs(400));
    assert_eq!(summary(&mut router, "bindings"), 1, "it stays without sessions");
    router.cli("nat64 add static bib 2001:db8:1::3 53 192.0.2.1 4000 udp del");
    assert_eq!(summary(&mut router, "bindings"), 0);
    assert_eq!(from_outside(&mut router, REMOTE, UDP, &udp(9, 4000)), None);
}

#[test]
fn what_is_configured_is_written_down_and_can_be_typed_again() {
    let mut router = router(1000);
    for line in [
        "ip6 table add 7",
        "nat64 add prefix 2001:db8:77::/48 tenant-vrf 7",
        "nat64 add pool address 192.0.2.8 - 192.0.2.9 tenant-vrf 7",
        "nat64 add interface address e1",
        "nat64 add static bib 2001:db8:1::3 53 192.0.2.1 4000 udp",
        "nat64 add static bib 2001:db8:7::3 9 192.0.2.7 9 icmp vrf-table 7",
        "nat64 filtering address-dependent",
        "nat64 subscriber-limit sessions 100 prefix-length 56",
        "set nat64 timeouts udp 30 icmp 20",
        "nat64 mss-clamping 1400",
    ] {
        router.cli(line);
    }
    let text = router.cli("show running-config");
    for line in ["nat64 add interface address e1", "set nat64 timeouts udp 30 icmp 20"] {
        assert!(text.contains(line), "{text}");
    }
    let before = running(&mut router);
    let refusal = router.refused("ip6 table del 7");
    assert!(refusal.contains("nat64"), "{refusal}");
    for line in [
        "nat64 add prefix 2001:db8:65::/95",
        "nat64 add prefix 2001:db8:65::/96",
        "nat64 add pool address 192.0.2.1",
        "nat64 add pool address 192.0.2.9 - 192.0.2.8",
        "nat64 add pool address 224.0.0.1",
        "nat64 add static bib ff02::1 1 192.0.2.1 1 tcp",
        "set interface nat64 in e0",
        "nat64 add prefix 2001:db8:66::/96 del",
        "nat64 plugin enable sessions 7",
    ] {
        router.refused(line);
        assert_eq!(running(&mut router), before, "{line}");
    }
    router.cli("nat64 plugin disable");
    let text = router.cli("show running-config");
    assert!(!text.contains("nat64 add") && !text.contains("nat64 in"), "{text}");
    router.cli("ip6 table del 7");
    router.cli("nat64 plugin enable sessions 20");
}
