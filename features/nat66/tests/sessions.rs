//! Sessions over time: made, refreshed, expired, refused, ended by commands.

use std::net::Ipv6Addr;
use std::time::Duration;

use quiver_testkit::Settings;
use quiver_testkit::frames::Fragment;

use crate::fixture::*;

const SYN: u8 = 2;
const ACK: u8 = 16;
const FIN: u8 = 1;

/// RFC 4787 REQ-1: "A NAT MUST have an 'Endpoint-Independent Mapping' behavior."
#[test]
fn a_binding_is_the_same_for_every_destination() {
    let mut router = router(1000);
    assert_eq!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(4000, 53)), Some((POOL, 4000)));
    let far = address([0x2001, 0xdb8, 9, 0, 0, 0, 0, 99]);
    assert_eq!(from_inside(&mut router, HOST, far, UDP, &udp(4000, 54)), Some((POOL, 4000)));
    let (seen, port) = from_inside(&mut router, OTHER, REMOTE, UDP, &udp(4000, 53)).expect("sent");
    // RFC 4787 REQ-4 is about parity.
    assert!(seen == POOL && port != 4000 && port % 2 == 0, "another one of the same parity");
    assert_eq!((summary(&mut router, "sessions"), summary(&mut router, "bindings")), (3, 2));
    let stranger = address([0x2001, 0xdb8, 8, 0, 0, 0, 0, 7]);
    let came = from_outside(&mut router, stranger, POOL, UDP, &udp(9, 4000));
    assert_eq!(came, Some((HOST, 4000)), "endpoint-independent filtering");
}

/// RFC 4787 REQ-8: "'Address-Dependent Filtering' behavior" where that is configured.
#[test]
fn address_dependent_filtering_admits_those_that_the_host_has_sent_to() {
    let mut router = router(1000);
    router.cli("nat66 filtering address-dependent");
    assert_eq!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(4000, 53)), Some((POOL, 4000)));
    let stranger = address([0x2001, 0xdb8, 8, 0, 0, 0, 0, 7]);
    assert_eq!(from_outside(&mut router, stranger, POOL, UDP, &udp(9, 4000)), None);
    assert_eq!(router.count("nat66-slowpath", "filtered"), 1);
    let came = from_outside(&mut router, REMOTE, POOL, UDP, &udp(7, 4000));
    assert_eq!(came, Some((HOST, 4000)), "another port of the same address");
}

#[test]
fn a_worker_that_owns_no_sessions_hands_packets_over_and_translates_later_ones() {
    let mut router = router_with(Settings { workers: 2, ..Settings::default() }, 1000);
    for number in 0..20u16 {
        let frame = ip6(0, (HOST, REMOTE), UDP, 64, &udp(4000 + number, 53));
        router.inject_queue("e0", usize::from(number % 2), &frame);
        router.inject_queue("e0", 1, &frame);
    }
    router.run();
    assert_eq!(router.sent("e1").len(), 40, "{:?}", router.dropped());
    assert_eq!((summary(&mut router, "sessions"), summary(&mut router, "bindings")), (20, 20));
    router.inject_queue("e1", 1, &ip6(1, (REMOTE, POOL), UDP, 64, &udp(53, 4001)));
    router.run();
    assert_eq!(router.sent("e0").len(), 1);
}

/// RFC 4787 REQ-5, RFC 6146 §4: UDP 5 minutes; the binding goes with its last session.
#[test]
fn sessions_end_when_nothing_comes_and_their_bindings_with_them() {
    let mut router = router(1000);
    assert!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(4000, 53)).is_some());
    router.advance(Duration::from_secs(290));
    let came = from_outside(&mut router, REMOTE, POOL, UDP, &udp(53, 4000));
    assert_eq!(came, Some((HOST, 4000)));
    router.advance(Duration::from_secs(290));
    assert_eq!(summary(&mut router, "sessions"), 1, "a packet from outside refreshed it");
    router.advance(Duration::from_secs(30));
    assert_eq!((summary(&mut router, "sessions"), summary(&mut router, "bindings")), (0, 0));
    assert_eq!(from_outside(&mut router, REMOTE, POOL, UDP, &udp(53, 4000)), None);
    assert_eq!(router.count("nat66-out2in", "no-translation"), 1);
}

/// RFC 5382 REQ-5: established for 2 hours 4 minutes at least, otherwise 4 minutes.
#[test]
fn tcp_sessions_live_as_long_as_their_state_says() {
    let mut router = router(1000);
    let there = |flags| tcp(4000, 80, flags);
    let back = |flags| tcp(80, 4000, flags);
    assert_eq!(from_inside(&mut router, HOST, REMOTE, TCP, &there(ACK)), None);
    assert_eq!(router.count("nat66-slowpath", "non-syn"), 1);
    assert!(from_inside(&mut router, HOST, REMOTE, TCP, &there(SYN)).is_some());
    assert!(from_outside(&mut router, REMOTE, POOL, TCP, &back(SYN | ACK)).is_some());
    assert!(from_inside(&mut router, HOST, REMOTE, TCP, &there(ACK)).is_some());
    let state = |router: &mut quiver_testkit::Router| {
        router.json("show nat66 sessions")[0]["state"].clone()
    };
    assert_eq!(state(&mut router), "established");
    router.advance(Duration::from_secs(7_000));
    assert_eq!(summary(&mut router, "sessions"), 1);
    assert!(from_inside(&mut router, HOST, REMOTE, TCP, &there(FIN | ACK)).is_some());
    assert!(from_outside(&mut router, REMOTE, POOL, TCP, &back(FIN | ACK)).is_some());
    assert_eq!(state(&mut router), "closed");
    router.advance(Duration::from_secs(260));
    assert_eq!(summary(&mut router, "sessions"), 0);
}

/// RFC 5508 REQ-1: echoes by their identifier, 60 seconds.
#[test]
fn echoes_are_known_by_their_identifier() {
    let mut router = router(1000);
    let ping = echo(128, 7);
    assert_eq!(from_inside(&mut router, HOST, REMOTE, ICMP6, &ping), Some((POOL, 7)));
    let (_, other) = from_inside(&mut router, OTHER, REMOTE, ICMP6, &ping).expect("sent");
    assert_ne!(other, 7);
    let answer = |identifier| echo(129, identifier);
    assert_eq!(from_outside(&mut router, REMOTE, POOL, ICMP6, &answer(other)), Some((OTHER, 7)));
    assert_eq!(from_outside(&mut router, REMOTE, POOL, ICMP6, &answer(7)), Some((HOST, 7)));
    router.advance(Duration::from_secs(80));
    assert_eq!(summary(&mut router, "sessions"), 0);
    assert_eq!(from_outside(&mut router, REMOTE, POOL, ICMP6, &answer(7)), None);
}

/// No port is left: "Destination Unreachable" to who sent the packet (RFC 6888 REQ-11 for IPv4).
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
    assert_eq!(router.count("nat66-slowpath", "out-of-ports"), 1);
    let answer = router.sent("e0").pop().expect("an ICMPv6 error");
    assert_eq!((answer[20], answer[54], answer[55]), (58, 1, 3), "address unreachable");
    // ICMPv6 has numbers of its own.
    assert!(from_inside(&mut router, HOST, REMOTE, ICMP6, &echo(128, 7)).is_some());
    router.cli("clear nat66 sessions");
    assert_eq!(summary(&mut router, "bindings"), 0);
    router.advance(Duration::from_secs(2));
    assert_eq!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(4000, 53)), Some((POOL, 4000)));
}

#[test]
fn sessions_beyond_a_limit_are_refused_and_answered() {
    let mut router = router(5);
    router.cli("nat66 subscriber-limit sessions 2 prefix-length 64");
    assert!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(4001, 53)).is_some());
    assert!(from_inside(&mut router, OTHER, REMOTE, UDP, &udp(4002, 53)).is_some());
    assert_eq!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(4003, 53)), None);
    assert_eq!(router.count("nat66-slowpath", "subscriber-limit"), 1);
    assert_eq!(router.sent("e0").len(), 1);
    router.cli("nat66 subscriber-limit disable");
    for port in 4003..=4005 {
        assert!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(port, 53)).is_some());
    }
    assert_eq!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(4006, 53)), None);
    assert_eq!(router.count("nat66-slowpath", "maximum-sessions-exceeded"), 1);
    assert_eq!(summary(&mut router, "sessions"), 5);
}

/// RFC 4787 REQ-9: hosts inside reach one another by the pool, and see external addresses.
#[test]
fn hosts_inside_reach_one_another_by_the_pool() {
    let mut router = router(1000);
    assert!(from_inside(&mut router, OTHER, REMOTE, UDP, &udp(5000, 53)).is_some());
    router.send("e0", &ip6(0, (HOST, POOL), UDP, 64, &udp(4000, 5000)));
    let sent = router.sent("e0");
    let frame = sent.first().unwrap_or_else(|| panic!("{:?}", router.dropped()));
    let (source, destination, _, upper) = read(frame);
    assert_eq!((source, destination), (POOL, OTHER));
    assert_eq!(upper[..4], [0x0f, 0xa0, 0x13, 0x88]);
    assert_eq!(frame[21], 63, "one hop");
    router.send("e0", &ip6(0, (OTHER, POOL), UDP, 64, &udp(5000, 4000)));
    let (source, destination, ..) = read(router.sent("e0").first().expect("the answer"));
    assert_eq!((source, destination), (POOL, HOST));
    assert!(router.sent("e1").is_empty());
    // Nobody is behind that port.
    router.send("e0", &ip6(0, (HOST, POOL), UDP, 64, &udp(4000, 5001)));
    assert_eq!(router.count("nat66-in2out", "no-translation"), 1);
}

#[test]
fn a_static_mapping_admits_everybody_and_takes_its_end_from_others() {
    let mut router = router(1000);
    assert_eq!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(4000, 53)), Some((POOL, 4000)));
    let mapping = format!("nat66 add static mapping udp local {OTHER} 53 external {POOL} 4000");
    router.cli(&mapping);
    assert_eq!(summary(&mut router, "sessions"), 0, "the session of that end is over");
    router.cli("nat66 filtering address-dependent");
    let came = from_outside(&mut router, REMOTE, POOL, UDP, &udp(9, 4000));
    assert_eq!(came, Some((OTHER, 53)));
    assert_eq!(from_inside(&mut router, OTHER, REMOTE, UDP, &udp(53, 9)), Some((POOL, 4000)));
    let again = from_inside(&mut router, HOST, REMOTE, UDP, &udp(4000, 53)).expect("sent");
    assert_ne!(again.1, 4000);
    router.advance(Duration::from_secs(400));
    assert_eq!(summary(&mut router, "bindings"), 1, "it stays without sessions");
    router.cli(&format!("{mapping} del"));
    assert_eq!(summary(&mut router, "bindings"), 0);
    assert_eq!(from_outside(&mut router, REMOTE, POOL, UDP, &udp(9, 4000)), None);
}

#[test]
fn a_host_with_an_address_of_its_own_keeps_its_ports_and_protocols() {
    let mut router = router(1000);
    let own = address([0x2001, 0xdb8, 2, 0, 0, 0, 0, 0x20]);
    router.cli(&format!("nat66 add static mapping local {HOST} external {own}"));
    assert_eq!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(53, 4000)), Some((own, 53)));
    let came = from_outside(&mut router, REMOTE, own, TCP, &tcp(4000, 80, SYN));
    assert_eq!(came, Some((HOST, 80)));
    let came = from_outside(&mut router, REMOTE, own, ICMP6, &echo(128, 9));
    assert_eq!(came, Some((HOST, 9)));
    router.send("e1", &ip6(1, (REMOTE, own), GRE, 64, &[0; 8]));
    let (_, destination, protocol, _) = read(router.sent("e0").first().expect("GRE"));
    assert_eq!((destination, protocol), (HOST, GRE));
    assert_eq!(from_outside(&mut router, REMOTE, own, TCP, &tcp(4000, 81, ACK)), None);
    assert_eq!(summary(&mut router, "bindings"), 4, "no binding is left without session");
    // Another host reaches it by that address.
    router.send("e0", &ip6(0, (OTHER, own), UDP, 64, &udp(4000, 7)));
    let (source, destination, ..) = read(router.sent("e0").first().expect("hairpinned"));
    assert_eq!((source, destination), (POOL, HOST));
    router.cli(&format!("nat66 add static mapping local {HOST} external {own} del"));
    assert_eq!((summary(&mut router, "sessions"), summary(&mut router, "bindings")), (0, 0));
    assert_eq!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(53, 4000)), Some((POOL, 53)));
}

/// A protocol without ports: an address serves one host for it.
#[test]
fn a_protocol_without_ports_passes_for_one_host_of_each_address() {
    let mut router = router(1000);
    let send = |router: &mut quiver_testkit::Router, host| {
        router.send("e0", &ip6(0, (host, REMOTE), GRE, 64, &[0; 8]));
        router.sent("e1").first().map(|frame| read(frame).0)
    };
    assert_eq!(send(&mut router, HOST), Some(POOL));
    assert_eq!(send(&mut router, OTHER), None);
    assert_eq!(router.count("nat66-slowpath", "out-of-ports"), 1);
    assert_eq!(router.sent("e0").len(), 1, "an ICMPv6 error");
    router.send("e1", &ip6(1, (REMOTE, POOL), GRE, 64, &[0; 8]));
    assert_eq!(read(router.sent("e0").first().expect("GRE")).1, HOST);
    let second = address([0x2001, 0xdb8, 2, 0, 0, 0, 0, 0x11]);
    router.cli(&format!("nat66 add pool address {second}"));
    router.advance(Duration::from_secs(2));
    assert_eq!(send(&mut router, OTHER), Some(second));
}

#[test]
fn fragments_follow_their_first_in_both_directions() {
    let mut router = router(1000);
    let place = |at: u16, more| Fragment { identification: 5, offset_bytes: at, more };
    for (protocol, data) in [(UDP, udp(4000, 53)), (ICMP6, echo(128, 7))] {
        let mut data = with_checksum((HOST, REMOTE), protocol, &data);
        data.resize(data.len().next_multiple_of(8), 0);
        let first = data.len() as u16;
        // The later one comes before.
        router.send("e0", &fragment(0, (HOST, REMOTE), protocol, place(first, false), &[1; 24]));
        assert!(router.sent("e1").is_empty());
        router.send("e0", &fragment(0, (HOST, REMOTE), protocol, place(0, true), &data));
        let sent = router.sent("e1");
        assert_eq!(sent.len(), 2, "{:?}", router.dropped());
        assert!(sent.iter().all(|frame| read(frame).0 == POOL));
    }
    let data = udp(53, 4000);
    router.send("e1", &fragment(1, (REMOTE, POOL), UDP, place(0, true), &data));
    router.send("e1", &fragment(1, (REMOTE, POOL), UDP, place(8, false), &[1; 24]));
    let sent = router.sent("e0");
    assert_eq!(sent.len(), 2, "{:?}", router.dropped());
    assert!(sent.iter().all(|frame| read(frame).1 == HOST));
}

#[test]
fn what_stays_inside_is_left_alone() {
    let mut router = router(1000);
    let far = address([0xfd00, 2, 0, 0, 0, 0, 0, 9]);
    router.send("e0", &ip6(0, (OTHER, far), UDP, 64, &udp(1, 2)));
    let (source, destination, ..) = read(router.sent("e0").first().expect("routed"));
    assert_eq!((source, destination), (OTHER, far));
    router.send(
        "e0",
        &ip6(0, (HOST, address([0xfd00, 1, 0, 0, 0, 0, 0, 1])), ICMP6, 64, &echo(128, 1)),
    );
    assert_eq!(read(router.sent("e0").first().expect("an answer")).3[0], 129);
    // From outside to a host's own address, which NAPT66 does not hide.
    router.send("e1", &ip6(1, (REMOTE, HOST), UDP, 64, &udp(1, 2)));
    assert_eq!(read(router.sent("e0").first().expect("routed")).1, HOST);
    assert_eq!(summary(&mut router, "sessions"), 0);
}

/// The address of an interface in the pool stays the router's own for what is nobody's.
#[test]
fn the_address_of_an_interface_serves_hosts_and_the_router() {
    let mut router = router(1000);
    router.cli(&format!("nat66 add pool address {POOL} del"));
    router.cli("nat66 add interface address e1");
    assert_eq!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(4000, 53)), Some((OUTSIDE, 4000)));
    let came = from_outside(&mut router, REMOTE, OUTSIDE, UDP, &udp(53, 4000));
    assert_eq!(came, Some((HOST, 4000)));
    router.send("e1", &ip6(1, (REMOTE, OUTSIDE), ICMP6, 64, &echo(128, 3)));
    assert_eq!(read(router.sent("e1").first().expect("an answer")).3[0], 129);
    router.send("e0", &ip6(0, (HOST, OUTSIDE), ICMP6, 64, &echo(128, 3)));
    assert_eq!(read(router.sent("e0").first().expect("an answer")).3[0], 129);
    router.cli("set interface ip address del e1 2001:db8:2::1/64");
    router.cli("set interface ip address e1 2001:db8:2::5/64");
    router.run();
    let (seen, _) = from_inside(&mut router, OTHER, REMOTE, UDP, &udp(4000, 53)).expect("sent");
    assert_eq!(seen, address([0x2001, 0xdb8, 2, 0, 0, 0, 0, 5]));
}
