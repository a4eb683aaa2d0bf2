//! Helpers of TFTP and PPTP: answers from another port, calls in place of ports.

use std::net::Ipv4Addr;

use quiver_testkit::Router;
use quiver_testkit::frames::ip4;

use crate::helpers::{ACK, OTHER, STRANGER, Segment, router};
use crate::sessions::{HOST, POOL, REMOTE, TCP, UDP, from_inside, udp, whole};

const GRE: u8 = 47;

/// RFC 1350 §4: the server's answer comes from a port of its own choice.
#[test]
fn a_tftp_server_may_answer_from_another_port_once() {
    let request = [&udp(5_000, 69)[..], &[0, 1, b'x', 0]].concat();
    let answer = |router: &mut Router, remote: Ipv4Addr, port: u16| {
        let ends = (remote, POOL);
        router.send("e1", &ip4(1, ends, UDP, whole(), &udp(port, 5_000)));
        router.sent("e0").pop().map(|frame| u16::from_be_bytes([frame[36], frame[37]]))
    };
    let mut router = router("");
    from_inside(&mut router, HOST, UDP, &request);
    assert_eq!(answer(&mut router, REMOTE, 3_000), None, "it is off");
    router.cli("set nat44 helper tftp port 69");
    router.cli("clear nat44 sessions");
    from_inside(&mut router, HOST, UDP, &request);
    assert_eq!(answer(&mut router, STRANGER, 3_000), None);
    assert_eq!(answer(&mut router, REMOTE, 3_000), Some(5_000));
    assert_eq!(answer(&mut router, REMOTE, 3_001), None);
    assert_eq!(answer(&mut router, REMOTE, 3_000), Some(5_000), "its session");
    from_inside(&mut router, HOST, UDP, &request);
    assert_eq!(answer(&mut router, REMOTE, 3_001), Some(5_000), "it was asked again");
}

fn gre(call: u16) -> Vec<u8> {
    let [high, low] = call.to_be_bytes();
    vec![0x30, 0x01, 0x88, 0x0b, 0, 4, high, low, 0, 0, 0, 0, 0xff, 3, 0, 0x21]
}

fn call_message(kind: u8, calls: [u16; 2]) -> Vec<u8> {
    let mut bytes = vec![0, 16, 0, 1, 0x1a, 0x2b, 0x3c, 0x4d, 0, kind, 0, 0];
    calls.iter().for_each(|call| bytes.extend(call.to_be_bytes()));
    bytes
}

fn call_at(segment: &Segment, at: usize) -> u16 {
    u16::from_be_bytes([segment.text[at], segment.text[at + 1]])
}

/// RFC 2637 §2.7, §2.8 and §4.1: two hosts that name their calls alike to one server.
#[test]
fn calls_of_two_hosts_reach_one_server_and_come_back() {
    let mut router = router("set nat44 helper pptp port 1723");
    let mut outside = Vec::new();
    for (host, port, theirs) in [(HOST, 4_001, 100), (OTHER, 4_002, 101)] {
        let (ends, back) = ((host, REMOTE), (REMOTE, POOL));
        let out = |router: &mut Router, segment: Segment| {
            router.send("e0", &ip4(0, ends, TCP, whole(), &segment.bytes(ends)));
            Segment::of(&router.sent("e1").pop().expect("sent"))
        };
        out(&mut router, Segment::new((port, 1_723), (0, 0), 2, b""));
        let request = Segment::new((port, 1_723), (1, 1), ACK, &call_message(7, [7, 0]));
        let call = call_at(&out(&mut router, request.clone()), 12);
        assert_eq!(call_at(&out(&mut router, request), 12), call, "sent again");
        let reply = Segment::new((1_723, port), (1, 17), ACK, &call_message(8, [theirs, call]));
        router.send("e1", &ip4(1, back, TCP, whole(), &reply.bytes(back)));
        let came = Segment::of(&router.sent("e0").pop().expect("came"));
        assert_eq!((call_at(&came, 12), call_at(&came, 14)), (theirs, 7));
        outside.push((host, call, theirs));
    }
    assert_ne!(outside[0].1, outside[1].1);
    for (host, call, theirs) in outside {
        router.send("e1", &ip4(1, (REMOTE, POOL), GRE, whole(), &gre(call)));
        let frame = router.sent("e0").pop().expect("came");
        assert_eq!((&frame[30..34], &frame[34..50]), (&host.octets()[..], &gre(7)[..]));
        router.send("e0", &ip4(0, (host, REMOTE), GRE, whole(), &gre(theirs)));
        let frame = router.sent("e1").pop().expect("sent");
        assert_eq!((&frame[26..30], &frame[34..50]), (&POOL.octets()[..], &gre(theirs)[..]));
    }
    // A call that nobody named.
    router.send("e0", &ip4(0, (HOST, REMOTE), GRE, whole(), &gre(555)));
    assert!(router.sent("e1").is_empty());
    assert_eq!(router.count("nat44-ed-slowpath", "no-call"), 1);
    router.send("e1", &ip4(1, (REMOTE, POOL), GRE, whole(), &gre(555)));
    assert!(router.sent("e0").is_empty());
}

#[test]
fn without_the_helper_one_host_uses_gre_to_a_server_as_before() {
    let mut router = router("");
    router.send("e0", &ip4(0, (HOST, REMOTE), GRE, whole(), &gre(555)));
    assert_eq!(router.sent("e1").len(), 1);
    router.send("e1", &ip4(1, (REMOTE, POOL), GRE, whole(), &gre(7)));
    assert_eq!(&router.sent("e0").pop().expect("came")[34..50], &gre(7)[..]);
}
