//! Helpers of servers behind twice-NAT mappings: both ends of each connection are translated.

use std::net::Ipv4Addr;

use quiver_testkit::Router;
use quiver_testkit::frames::ip4;

use crate::helpers::{ACK, DATA, OTHER, STRANGER, Segment, counts, router};
use crate::sessions::{HOST, POOL, REMOTE, TCP, whole};

/// The address of remote hosts inside (twice-NAT).
const TWICE: Ipv4Addr = Ipv4Addr::new(10, 200, 0, 1);
const TWICE_NAT: &str = "nat44 add address 10.200.0.1 twice-nat
    nat44 add static mapping tcp local 10.0.0.2 21 external 192.0.2.1 21 twice-nat
    set nat44 helper tftp port 69
    nat44 add static mapping udp local 10.0.0.2 69 external 192.0.2.1 69 twice-nat";

type Ends = (Ipv4Addr, Ipv4Addr);

/// The addresses of a frame.
fn ends_of(frame: &[u8]) -> Ends {
    let address = |at: usize| -> Ipv4Addr {
        <[u8; 4]>::try_from(&frame[at..at + 4]).expect("four bytes").into()
    };
    (address(26), address(30))
}

/// A segment that comes in by one interface, as it leaves by the other.
fn pass(
    router: &mut Router,
    (rx, tx): (&str, &str),
    ends: Ends,
    segment: &Segment,
) -> Option<(Ends, Segment)> {
    let port = rx.as_bytes()[1] - b'0';
    router.send(rx, &ip4(port, ends, TCP, whole(), &segment.bytes(ends)));
    router.sent(tx).pop().map(|frame| (ends_of(&frame), Segment::of(&frame)))
}

/// Passive and active transfers from a server inside, whose control connection a client has by a
/// twice-NAT mapping: each knows the other one by one address in both connections.
fn transfers(mut router: Router, (interface, client): (&str, Ipv4Addr)) {
    let (there, back) = ((interface, "e0"), ("e0", interface));
    let (to_server, to_client) = ((TWICE, HOST), (POOL, client));
    let syn = |ports| Segment::new(ports, (9, 0), 2, b"");
    let came = pass(&mut router, there, (client, POOL), &syn((6_000, 21)));
    let (ends, opened) = came.expect("came");
    assert_eq!((ends, opened.ports), (to_server, (6_000, 21)));
    let says = |router: &mut Router, number: u32, flags: u8, text: &[u8]| {
        let segment = Segment::new((21, 6_000), (number, 10), flags, text);
        let (ends, sent) = pass(router, back, (HOST, TWICE), &segment).expect("sent");
        assert_eq!(ends, to_client);
        sent.text
    };
    says(&mut router, 99, 0x12, b"");
    // RFC 959 §4.2: the reply 227. The client connects to the end that it names.
    let text = says(&mut router, 100, ACK, b"227 Passive (10,0,0,2,17,112).\r\n");
    assert_eq!(text, b"227 Passive (192,0,2,1,17,112).\r\n");
    let came = pass(&mut router, there, (client, POOL), &syn((6_001, DATA)));
    let (ends, data) = came.expect("came");
    assert_eq!((ends, data.ports.1), (to_server, DATA));
    let answer = Segment::new((DATA, data.ports.0), (1, 10), 0x12, b"");
    let (ends, answer) = pass(&mut router, back, (HOST, TWICE), &answer).expect("sent");
    assert_eq!((ends, answer.ports), (to_client, (DATA, 6_001)));
    // RFC 959 §4.1.2: PORT. The server connects to the end of the client that it is told.
    let [a, b, c, d] = client.octets();
    let command = format!("PORT {a},{b},{c},{d},4,1\r\n");
    let command = Segment::new((6_000, 21), (10, 100), ACK, command.as_bytes());
    let (_, came) = pass(&mut router, there, (client, POOL), &command).expect("came");
    assert_eq!(came.text, b"PORT 10,200,0,1,4,1\r\n");
    let sent = pass(&mut router, back, (HOST, TWICE), &syn((20, 1_025)));
    let (ends, sent) = sent.expect("sent");
    assert_eq!((ends, sent.ports), (to_client, (20, 1_025)));
    let answer = Segment::new((1_025, 20), (1, 10), 0x12, b"");
    let (ends, answer) = pass(&mut router, there, (client, POOL), &answer).expect("came");
    assert_eq!((ends, answer.ports), (to_server, (1_025, 20)));
    // Nobody else is let in.
    assert_eq!(pass(&mut router, ("e1", "e0"), (STRANGER, POOL), &syn((6_002, DATA))), None);
    assert_eq!(counts(&mut router, "ftp")["opened"], 2);
}

#[test]
fn a_server_behind_twice_nat_sends_files_to_a_client_outside() {
    transfers(router(TWICE_NAT), ("e1", REMOTE));
}

#[test]
fn a_server_behind_twice_nat_sends_files_to_a_client_inside() {
    transfers(router(TWICE_NAT), ("e0", OTHER));
}

/// RFC 1350 §4: the server answers from a port of its own choice.
#[test]
fn a_server_of_tftp_behind_twice_nat_answers_from_another_port() {
    let mut router = router(TWICE_NAT);
    let request = [&[0x13, 0x88, 0, 69, 0, 12, 0, 0][..], &[0, 1, b'x', 0]].concat();
    router.send("e1", &ip4(1, (REMOTE, POOL), 17, whole(), &request));
    let frame = router.sent("e0").pop().expect("came");
    assert_eq!((ends_of(&frame), &frame[34..36]), ((TWICE, HOST), &[0x13, 0x88][..]));
    let answer = [0x0b, 0xb8, 0x13, 0x88, 0, 10, 0, 0, 0, 3];
    router.send("e0", &ip4(0, (HOST, TWICE), 17, whole(), &answer));
    let frame = router.sent("e1").pop().unwrap_or_else(|| panic!("{:?}", router.dropped()));
    assert_eq!((ends_of(&frame), &frame[34..38]), ((POOL, REMOTE), &answer[..4]));
}
