//! ICMPv6 errors, and packets that cannot be translated.

use std::net::Ipv6Addr;

use quiver_testkit::Router;

use crate::fixture::*;

const SYN: u8 = 2;
/// A router between this one and the remote host.
const BETWEEN: Ipv6Addr = address([0x2001, 0xdb8, 7, 0, 0, 0, 0, 7]);

/// An error about a packet, which a frame holds.
fn about(frame: &[u8], kind: u8, code: u8) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0, 0, 0, 0, 0];
    message.extend(&frame[14..]);
    message
}

/// The packet that an error quotes, in a frame.
fn quoted(upper: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 14];
    frame.extend(&upper[8..]);
    frame
}

/// RFC 5508 REQ-4: the packet inside is as its sender knows it, with its checksums.
#[test]
fn errors_from_outside_quote_the_packet_as_it_was_sent() {
    let mut router = router(1000);
    for (protocol, upper) in
        [(UDP, udp(4000, 53)), (TCP, tcp(4000, 80, SYN)), (ICMP6, echo(128, 7))]
    {
        let original = ip6(0, (HOST, REMOTE), protocol, 64, &upper);
        // Another host has the port, so that it changes.
        router.send("e0", &ip6(0, (OTHER, REMOTE), protocol, 64, &upper));
        router.send("e0", &original);
        let sent = router.sent("e1").pop().expect("translated");
        router.send("e1", &ip6(1, (BETWEEN, POOL), ICMP6, 64, &about(&sent, 1, 4)));
        let error = router.sent("e0").pop().unwrap_or_else(|| panic!("{:?}", router.dropped()));
        let (source, destination, _, message) = read(&error);
        assert_eq!((source, destination), (BETWEEN, HOST));
        assert_eq!(message[..2], [1, 4]);
        let (source, destination, _, inner) = read(&quoted(&message));
        assert_eq!((source, destination), (HOST, REMOTE));
        assert_eq!(inner, read(&original).3);
    }
}

/// RFC 5508 REQ-5: an error of a host inside comes from its external address.
#[test]
fn errors_from_inside_come_from_the_external_address() {
    let mut router = router(1000);
    let (_, port) = from_inside(&mut router, HOST, REMOTE, UDP, &udp(4000, 53)).expect("sent");
    let outside = ip6(1, (REMOTE, POOL), UDP, 64, &udp(53, port));
    router.send("e1", &outside);
    let came = router.sent("e0").pop().expect("translated");
    router.send("e0", &ip6(0, (HOST, REMOTE), ICMP6, 64, &about(&came, 1, 4)));
    let error = router.sent("e1").pop().unwrap_or_else(|| panic!("{:?}", router.dropped()));
    let (source, destination, _, message) = read(&error);
    assert_eq!((source, destination), (POOL, REMOTE));
    let (source, destination, _, inner) = read(&quoted(&message));
    assert_eq!((source, destination), (REMOTE, POOL));
    assert_eq!(inner, read(&outside).3);
}

#[test]
fn errors_about_hairpinned_packets_reach_their_sender() {
    let mut router = router(1000);
    assert!(from_inside(&mut router, OTHER, REMOTE, UDP, &udp(5000, 53)).is_some());
    let original = ip6(0, (HOST, POOL), UDP, 64, &udp(4000, 5000));
    router.send("e0", &original);
    let came = router.sent("e0").pop().expect("hairpinned");
    router.send("e0", &ip6(0, (OTHER, POOL), ICMP6, 64, &about(&came, 1, 4)));
    let error = router.sent("e0").pop().unwrap_or_else(|| panic!("{:?}", router.dropped()));
    let (source, destination, _, message) = read(&error);
    assert_eq!((source, destination), (POOL, HOST));
    let (source, destination, _, inner) = read(&quoted(&message));
    assert_eq!((source, destination), (HOST, POOL));
    assert_eq!(inner, read(&original).3);
}

/// The router's own errors about packets that it has translated already.
#[test]
fn the_router_itself_tells_senders_on_both_sides_of_a_short_link() {
    let mut router = router(1000);
    let long = |source, destination| {
        let mut data = udp(source, destination);
        data.resize(1400, 0);
        data[4..6].copy_from_slice(&1400u16.to_be_bytes());
        data
    };
    assert!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(4000, 53)).is_some());
    for (mtu, to) in
        [("set interface mtu packet 1300 e1", "e0"), ("set interface mtu packet 1300 e0", "e1")]
    {
        router.cli(mtu);
        let original = match to {
            "e0" => ip6(0, (HOST, REMOTE), UDP, 64, &long(4000, 53)),
            _ => ip6(1, (REMOTE, POOL), UDP, 64, &long(53, 4000)),
        };
        let from = to;
        router.send(from, &original);
        let error = router.sent(to).pop().unwrap_or_else(|| panic!("{:?}", router.dropped()));
        let (_, destination, _, message) = read(&error);
        assert_eq!(destination, if to == "e0" { HOST } else { REMOTE });
        assert_eq!((message[0], &message[4..8]), (2, &1300u32.to_be_bytes()[..]));
        let inner = quoted(&message);
        assert_eq!(inner[14 + 8..14 + 46], original[14 + 8..14 + 46], "as it was sent");
        router.cli(&mtu.replace("1300", "9000"));
    }
}

fn sent_by(router: &mut Router, frame: &[u8]) -> (Option<(u8, u8)>, usize) {
    router.send("e0", frame);
    let answer = router.sent("e0").pop().map(|answer| (answer[54], answer[55]));
    (answer, router.sent("e1").len())
}

#[test]
fn what_cannot_be_translated_is_counted_or_answered() {
    let mut router = router(1000);
    let to = (HOST, REMOTE);
    // RFC 4443 §3.3: the error quotes the packet as its sender knows it.
    router.send("e0", &ip6(0, to, UDP, 1, &udp(1, 2)));
    let error = router.sent("e0").pop().expect("time exceeded");
    let (.., message) = read(&error);
    assert_eq!((message[0], read(&quoted(&message)).0), (3, HOST));
    // RFC 4302: the addresses are authenticated.
    let mut authenticated = vec![UDP, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1];
    authenticated.extend(udp(1, 2));
    assert_eq!(sent_by(&mut router, &ip6(0, to, 51, 64, &authenticated)), (Some((4, 1)), 0));
    // A chain of headers in front of UDP.
    let mut options = vec![60, 0, 1, 4, 0, 0, 0, 0, UDP, 0, 1, 4, 0, 0, 0, 0];
    options.extend(udp(1, 2));
    assert_eq!(sent_by(&mut router, &ip6(0, to, 60, 64, &options)), (None, 1));
    // A routing header with segments left.
    let mut routing = vec![UDP, 0, 0, 1, 0, 0, 0, 0];
    routing.extend(udp(1, 2));
    assert_eq!(sent_by(&mut router, &ip6(0, to, 43, 64, &routing)), (Some((4, 0)), 0));
    // Lengths that lie.
    assert_eq!(sent_by(&mut router, &ip6(0, to, TCP, 64, &tcp(1, 2, SYN)[..12])), (None, 0));
    // ICMPv6 that has no session: a node information query.
    assert_eq!(sent_by(&mut router, &ip6(0, to, ICMP6, 64, &echo(139, 1))), (None, 0));
    // An address of the pool as source.
    assert_eq!(sent_by(&mut router, &ip6(0, (POOL, REMOTE), UDP, 64, &udp(1, 2))), (None, 0));
    assert_eq!(router.count("nat66-in2out", "authentication-header"), 1);
    assert_eq!(router.count("nat66-in2out", "source-route"), 1);
    assert_eq!(router.count("nat66-in2out", "truncated"), 1);
    assert_eq!(router.count("nat66-in2out", "bad-icmp-type"), 1);
    assert_eq!(router.count("nat66-in2out", "from-pool"), 1);
}

#[test]
fn errors_about_nothing_and_with_wrong_checksums_are_dropped() {
    let mut router = router(1000);
    let unknown = ip6(1, (POOL, REMOTE), UDP, 64, &udp(4000, 53));
    router.send("e1", &ip6(1, (BETWEEN, POOL), ICMP6, 64, &about(&unknown, 1, 4)));
    assert_eq!(router.count("nat66-slowpath", "inner-has-no-session"), 1);
    assert!(from_inside(&mut router, HOST, REMOTE, UDP, &udp(4000, 53)).is_some());
    let mut wrong = ip6(1, (BETWEEN, POOL), ICMP6, 64, &about(&unknown, 1, 4));
    wrong[56] ^= 0xff;
    router.send("e1", &wrong);
    assert_eq!(router.count("nat66-slowpath", "truncated"), 1);
    assert!(router.sent("e0").is_empty());
}
