//! FTP's control connections name ends: over segments that are cut, lost and sent again.

use std::net::Ipv4Addr;
use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::frames::ip4;
use quiver_testkit::{Router, Settings};
use quiver_wire::IpProtocol;
use quiver_wire::checksum::Sum;
use serde_json::Value;

use crate::sessions::{HOST, POOL, REMOTE, TCP, from_inside, router_with, tcp, whole};

pub const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
pub const STRANGER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
const CONTROL: (u16, u16) = (4_000, 21);
pub const ACK: u8 = 0x10;

pub fn router(lines: &str) -> Router {
    let mut router = router_with(Settings::default(), 1000);
    router.script("helpers", lines).expect("a good configuration");
    router
}

/// A segment as it stands behind the IP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub ports: (u16, u16),
    pub sequence: u32,
    pub acknowledgement: u32,
    pub flags: u8,
    pub options: Vec<u8>,
    pub text: Vec<u8>,
}

impl Segment {
    pub fn new(ports: (u16, u16), numbers: (u32, u32), flags: u8, text: &[u8]) -> Segment {
        let (sequence, acknowledgement) = numbers;
        let text = text.to_vec();
        Segment { ports, sequence, acknowledgement, flags, options: Vec::new(), text }
    }

    pub fn bytes(&self, (source, destination): (Ipv4Addr, Ipv4Addr)) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.ports.0.to_be_bytes());
        bytes.extend(self.ports.1.to_be_bytes());
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.acknowledgement.to_be_bytes());
        bytes.extend([((20 + self.options.len()) / 4 * 16) as u8, self.flags, 16, 0, 0, 0, 0, 0]);
        bytes.extend(&self.options);
        bytes.extend(&self.text);
        let pseudo = Sum::pseudo4(source, destination, IpProtocol::TCP, bytes.len() as u16);
        let checksum = pseudo.bytes(&bytes).checksum();
        bytes[16..18].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    /// What a frame carries; its lengths and checksums must be right.
    pub fn of(frame: &[u8]) -> Segment {
        let total = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        assert!(frame.len() - 14 == total || frame.len() == 60, "the length is that of the frame");
        assert_eq!(quiver_wire::checksum::of(&frame[14..34]), 0, "IPv4's checksum");
        let address = |at: usize| -> Ipv4Addr {
            <[u8; 4]>::try_from(&frame[at..at + 4]).expect("four bytes").into()
        };
        let bytes = &frame[34..14 + total];
        let pseudo = Sum::pseudo4(address(26), address(30), IpProtocol::TCP, bytes.len() as u16);
        assert!(pseudo.bytes(bytes).is_good(), "TCP's checksum");
        let short = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let long = |at: usize| u32::from(short(at)) << 16 | u32::from(short(at + 2));
        let header = usize::from(bytes[12] >> 4) * 4;
        Segment {
            ports: (short(0), short(2)),
            sequence: long(4),
            acknowledgement: long(8),
            flags: bytes[13],
            options: bytes[20..header].to_vec(),
            text: bytes[header..].to_vec(),
        }
    }
}

/// A control connection between a host inside and a server outside.
struct Ftp {
    router: Router,
    /// The numbers of the first byte of each, from inside and from outside.
    first: (u32, u32),
    /// The port of the client outside.
    external: u16,
}

impl Ftp {
    fn open(router: Router, first: (u32, u32)) -> Ftp {
        let mut ftp = Ftp { router, first, external: 0 };
        let (ours, theirs) = (first.0.wrapping_sub(1), first.1.wrapping_sub(1));
        let syn = ftp.out(&Segment::new(CONTROL, (ours, 0), 2, b"")).expect("a SYN");
        ftp.external = syn.ports.0;
        let back = (CONTROL.1, ftp.external);
        ftp.back(&Segment::new(back, (theirs, first.0), 0x12, b"")).expect("a SYN");
        ftp.out(&Segment::new(CONTROL, first, ACK, b"")).expect("an ACK");
        ftp
    }

    /// A segment from inside, as it comes out.
    fn out(&mut self, segment: &Segment) -> Option<Segment> {
        let ends = (HOST, REMOTE);
        self.router.send("e0", &ip4(0, ends, TCP, whole(), &segment.bytes(ends)));
        self.router.sent("e1").pop().map(|frame| Segment::of(&frame))
    }

    /// A segment from outside, as it comes in.
    fn back(&mut self, segment: &Segment) -> Option<Segment> {
        let ends = (REMOTE, POOL);
        self.router.send("e1", &ip4(1, ends, TCP, whole(), &segment.bytes(ends)));
        self.router.sent("e0").pop().map(|frame| Segment::of(&frame))
    }

    /// Text from inside, `at` bytes behind the first one.
    fn say(&mut self, at: usize, text: &[u8]) -> Option<Segment> {
        let numbers = (self.first.0.wrapping_add(at as u32), self.first.1);
        self.out(&Segment::new(CONTROL, numbers, ACK, text))
    }
}

fn ftp(first: (u32, u32)) -> Ftp {
    Ftp::open(router(""), first)
}

/// A SYN from outside to an end of the pool: where inside it comes to.
fn syn_to(router: &mut Router, remote: (Ipv4Addr, u16), port: u16) -> Option<(Ipv4Addr, u16)> {
    let ends = (remote.0, POOL);
    let syn = Segment::new((remote.1, port), (1, 0), 2, b"").bytes(ends);
    router.send("e1", &ip4(1, ends, TCP, whole(), &syn));
    let frame = router.sent("e0").pop()?;
    let address: [u8; 4] = frame[30..34].try_into().expect("four bytes");
    Some((address.into(), Segment::of(&frame).ports.1))
}

pub fn counts(router: &mut Router, helper: &str) -> Value {
    let all = router.json("show nat44 helpers");
    let all = all.as_array().expect("rows").clone();
    all.into_iter().find(|row| row["helper"] == helper).expect("a row")
}

const PORT: &[u8] = b"PORT 10,0,0,2,17,112\r\n";
const NEW_PORT: &[u8] = b"PORT 192,0,2,1,17,112\r\n";
pub const DATA: u16 = 17 * 256 + 112;

/// RFC 959 §4.1.2: "PORT h1,h2,h3,h4,p1,p2"; RFC 5382 REQ-6 lets FTP be helped by default.
#[test]
fn a_port_command_names_the_pool_and_all_numbers_behind_it_move() {
    let mut ftp = ftp((u32::MAX - 5, 7_000));
    let sent = ftp.say(0, PORT).expect("sent");
    assert_eq!((&sent.text[..], sent.sequence), (NEW_PORT, u32::MAX - 5));
    let gained = NEW_PORT.len() as u32 - PORT.len() as u32;
    // Sent again, it is the same; what comes behind it has moved.
    assert_eq!(ftp.say(0, PORT).expect("sent").text, NEW_PORT);
    let next = ftp.say(PORT.len(), b"LIST\r\n").expect("sent");
    assert_eq!(next.sequence, (u32::MAX - 5).wrapping_add(NEW_PORT.len() as u32));
    // Both at once.
    let both = [PORT, b"LIST\r\n"].concat();
    assert_eq!(ftp.say(0, &both).expect("sent").text, [NEW_PORT, b"LIST\r\n"].concat());
    // The server's acknowledgements and SACK blocks move back (RFC 2018 §3).
    let end = next.sequence.wrapping_add(6);
    let mut answer = Segment::new((21, 4_000), (7_000, next.sequence), ACK, b"200 ok\r\n");
    let edges = [next.sequence, end].map(u32::to_be_bytes).concat();
    answer.options = [&[1, 1, 5, 10][..], &edges].concat();
    let came = ftp.back(&answer).expect("came");
    assert_eq!(came.acknowledgement, next.sequence.wrapping_sub(gained));
    let edges = [next.sequence, end].map(|edge| edge.wrapping_sub(gained).to_be_bytes()).concat();
    assert_eq!((&came.options[4..], &came.text[..]), (&edges[..], &b"200 ok\r\n"[..]));
    assert_eq!(counts(&mut ftp.router, "ftp")["rewritten"], 1);
}

#[test]
fn the_server_alone_may_connect_to_the_announced_end_once_and_within_a_minute() {
    let mut ftp = ftp((1, 1));
    ftp.say(0, PORT).expect("sent");
    assert_eq!(syn_to(&mut ftp.router, (STRANGER, 20), DATA), None);
    assert_eq!(syn_to(&mut ftp.router, (REMOTE, 20), DATA), Some((HOST, DATA)));
    assert_eq!(syn_to(&mut ftp.router, (REMOTE, 20), DATA), Some((HOST, DATA)), "it comes again");
    assert_eq!(syn_to(&mut ftp.router, (REMOTE, 2_000), DATA), None, "another one");
    ftp.say(PORT.len(), b"PORT 10,0,0,2,17,113\r\n").expect("sent");
    ftp.router.advance(Duration::from_secs(80));
    assert_eq!(syn_to(&mut ftp.router, (REMOTE, 20), DATA + 1), None, "too late");
    assert_eq!(counts(&mut ftp.router, "ftp")["opened"], 2);
}

/// RFC 2577 §3: a server must not be led to other hosts or to well-known ports.
#[test]
fn an_end_of_another_host_or_with_a_well_known_port_is_not_opened() {
    let mut ftp = ftp((1, 1));
    let mut at = 0;
    for line in ["PORT 10,0,0,3,17,112\r\n", "EPRT |1|10.0.0.3|4464|\r\n", "PORT 10,0,0,2,0,22\r\n"]
    {
        let sent = ftp.say(at, line.as_bytes()).expect("sent");
        assert_eq!(sent.text, line.as_bytes());
        at += line.len();
    }
    assert_eq!(syn_to(&mut ftp.router, (REMOTE, 20), DATA), None);
    let counts = counts(&mut ftp.router, "ftp");
    assert_eq!((&counts["refused"], &counts["opened"]), (&3.into(), &0.into()));
}

#[test]
fn two_hosts_with_the_same_port_get_different_ends() {
    let mut ftp = ftp((1, 1));
    ftp.say(0, PORT).expect("sent");
    let ends = (OTHER, REMOTE);
    let mut other = |numbers: (u32, u32), flags: u8, text: &[u8]| {
        let segment = Segment::new((5_000, 21), numbers, flags, text).bytes(ends);
        ftp.router.send("e0", &ip4(0, ends, TCP, whole(), &segment));
        Segment::of(&ftp.router.sent("e1").pop().expect("sent"))
    };
    other((0, 0), 2, b"");
    let sent = other((1, 1), ACK, b"EPRT |1|10.0.0.3|4464|\r\n");
    let text = String::from_utf8(sent.text).expect("a line");
    let port: u16 = text.split('|').nth(3).and_then(|port| port.parse().ok()).expect("a port");
    assert!(text.starts_with("EPRT |1|192.0.2.1|") && port != DATA, "{text}");
    assert_eq!(syn_to(&mut ftp.router, (REMOTE, 20), port), Some((OTHER, DATA)));
    assert_eq!(syn_to(&mut ftp.router, (REMOTE, 20), DATA), Some((HOST, DATA)));
}

/// A segment that ends within a command is dropped, so that its sender sends it again with the
/// rest; so is what came before the missing part.
#[test]
fn a_command_that_is_cut_waits_for_its_rest_but_not_for_ever() {
    let mut ftp = ftp((1, 1));
    assert_eq!(ftp.say(0, &PORT[..9]), None);
    assert_eq!(ftp.say(9, &PORT[9..]), None, "its front is missing");
    assert_eq!(ftp.say(0, PORT).expect("sent").text, NEW_PORT);
    let at = PORT.len();
    for _ in 0..4 {
        assert_eq!(ftp.say(at, b"EPRT |1|10"), None);
    }
    assert_eq!(ftp.say(at, b"EPRT |1|10").expect("sent").text, b"EPRT |1|10");
    assert_eq!(ftp.router.count("nat44-ed-slowpath", "helper-held"), 5);
    assert_eq!(ftp.router.count("nat44-ed-slowpath", "helper-gap"), 1);
    // What is whole in front of it goes on alone.
    let at = at + 10;
    let sent = ftp.say(at, b"8\r\nNOOP\r\nPORT 10,0").expect("sent");
    assert_eq!(sent.text, b"8\r\nNOOP\r\n");
    assert_eq!(ftp.say(at + 9, PORT).expect("sent").text, NEW_PORT);
    // A part of a replaced text cannot be sent alone; a probe of one byte can.
    assert_eq!(ftp.say(8, &PORT[8..]), None);
    assert!(ftp.say(PORT.len() - 1, b"\n").is_some());
}

/// RFC 4217 §4: behind the reply 234 there is no text, but for what was sent before.
#[test]
fn a_connection_that_goes_on_enciphered_is_left_alone() {
    let mut ftp = ftp((1, 1));
    ftp.say(0, PORT).expect("sent");
    let number = 1 + NEW_PORT.len() as u32;
    let reply = Segment::new((21, ftp.external), (1, number), ACK, b"234 go on\r\n");
    ftp.back(&reply).expect("came");
    assert_eq!(ftp.say(PORT.len(), b"PORT 10").expect("sent").text, b"PORT 10");
    let sent = ftp.say(PORT.len() + 7, PORT).expect("sent");
    assert_eq!((&sent.text[..], sent.sequence), (PORT, number + 7));
    assert_eq!(ftp.say(0, PORT).expect("sent").text, NEW_PORT);
}

/// One host cannot take the places of all.
#[test]
fn a_host_that_announces_without_end_leaves_places_to_others() {
    let mut ftp = ftp((1, 1));
    let mut at = 0;
    for port in 2_000..2_400 {
        let line = format!("EPRT |1|10.0.0.2|{port}|\r\n");
        ftp.say(at, line.as_bytes()).expect("sent");
        at += line.len();
    }
    let counts = |router: &mut Router| {
        let counts = counts(router, "ftp");
        (counts["opened"].clone(), counts["failed"].clone())
    };
    assert_eq!(counts(&mut ftp.router), (256.into(), 144.into()));
    ftp.router.advance(Duration::from_secs(70));
    ftp.say(at, PORT).expect("sent");
    assert_eq!(counts(&mut ftp.router), (257.into(), 144.into()), "their time is over");
}

#[test]
fn packets_that_come_to_another_worker_are_translated_by_the_owner() {
    let settings = Settings { workers: 2, ..Settings::default() };
    let mut router = router_with(settings, 1000);
    let ends = (HOST, REMOTE);
    let mut out = |numbers: (u32, u32), flags: u8, text: &[u8]| {
        let segment = Segment::new(CONTROL, numbers, flags, text).bytes(ends);
        router.inject_queue("e0", 1, &ip4(0, ends, TCP, whole(), &segment));
        router.run();
        Segment::of(&router.sent("e1").pop().expect("sent"))
    };
    out((0, 0), 2, b"");
    assert_eq!(out((1, 1), ACK, PORT).text, NEW_PORT);
    assert_eq!(
        out((1 + PORT.len() as u32, 1), ACK, b"NOOP\r\n").sequence,
        1 + NEW_PORT.len() as u32
    );
    let syn = Segment::new((20, DATA), (1, 0), 2, b"").bytes((REMOTE, POOL));
    router.inject_queue("e1", 1, &ip4(1, (REMOTE, POOL), TCP, whole(), &syn));
    router.run();
    assert_eq!(router.sent("e0").len(), 1);
}

#[test]
fn a_segment_with_a_wrong_checksum_opens_nothing_and_stays_wrong() {
    let mut ftp = ftp((1, 1));
    let mut bytes = Segment::new(CONTROL, (1, 1), ACK, PORT).bytes((HOST, REMOTE));
    bytes[16] ^= 1;
    ftp.router.send("e0", &ip4(0, (HOST, REMOTE), TCP, whole(), &bytes));
    let frame = ftp.router.sent("e1").pop().expect("sent");
    assert_eq!(&frame[54..54 + PORT.len()], PORT);
    let pseudo = Sum::pseudo4(POOL, REMOTE, IpProtocol::TCP, bytes.len() as u16);
    assert!(!pseudo.bytes(&frame[34..34 + bytes.len()]).is_good());
    assert_eq!(counts(&mut ftp.router, "ftp")["opened"], 0);
}

/// RFC 959 §4.1.2 and RFC 2428 §3, of a server inside behind a static mapping.
#[test]
fn a_server_inside_names_its_outside_address_when_it_waits_for_clients() {
    let line = "nat44 add static mapping tcp local 10.0.0.2 21 external 192.0.2.1 21";
    let mut router = router(line);
    let back = (REMOTE, POOL);
    let ends = (HOST, REMOTE);
    let syn = Segment::new((6_000, 21), (9, 0), 2, b"").bytes(back);
    router.send("e1", &ip4(1, back, TCP, whole(), &syn));
    router.sent("e0");
    let mut says = |number: u32, flags: u8, text: &[u8]| {
        let segment = Segment::new((21, 6_000), (number, 10), flags, text).bytes(ends);
        router.send("e0", &ip4(0, ends, TCP, whole(), &segment));
        Segment::of(&router.sent("e1").pop().expect("sent"))
    };
    says(99, 0x12, b"");
    let old = b"227 Entering Passive Mode (10,0,0,2,17,112).\r\n";
    let sent = says(100, ACK, old);
    assert_eq!(sent.text, b"227 Entering Passive Mode (192,0,2,1,17,112).\r\n");
    let number = 100 + old.len() as u32;
    let sent = says(number, ACK, b"229 Entering Extended Passive Mode (|||4465|)\r\n");
    assert_eq!(sent.text, b"229 Entering Extended Passive Mode (|||4465|)\r\n");
    assert_eq!(sent.sequence, number + 1);
    for port in [DATA, DATA + 1] {
        assert_eq!(syn_to(&mut router, (STRANGER, 6_001), port), None);
        assert_eq!(syn_to(&mut router, (REMOTE, 6_001), port), Some((HOST, port)));
    }
    // In active mode it connects from the address that the client knows.
    let port = b"PORT 203,0,113,1,4,1\r\n";
    let command = Segment::new((6_000, 21), (10, 100), ACK, port).bytes(back);
    router.send("e1", &ip4(1, back, TCP, whole(), &command));
    assert_eq!(Segment::of(&router.sent("e0").pop().expect("came")).text, port);
    assert_eq!(from_inside(&mut router, HOST, TCP, &tcp(20, 1_025, 2)), Some((POOL, 20)));
    assert_eq!(counts(&mut router, "ftp")["opened"], 3);
}

/// With endpoint-independent mapping and port blocks an announced end is the host's like others.
#[test]
fn an_announced_end_is_of_the_blocks_and_mappings_of_its_host() {
    let lines = "nat44 port-blocks size 64 max-blocks 2
        nat44 mapping endpoint-independent filtering address-and-port";
    let mut ftp = Ftp::open(router(lines), (1, 1));
    let sent = ftp.say(0, PORT).expect("sent");
    let text = String::from_utf8(sent.text).expect("a line");
    let numbers: Vec<u16> =
        text.trim()[5..].split(',').map(|n| n.parse().expect("a number")).collect();
    let port = numbers[4] * 256 + numbers[5];
    let block = |port: u16| (port - 1024) / 64;
    assert_eq!(block(port), block(ftp.external), "{text}");
    let used = |router: &mut Router| router.json("show nat44 blocks")[0]["used"].clone();
    assert_eq!(used(&mut ftp.router), 2);
    assert_eq!(syn_to(&mut ftp.router, (REMOTE, 20), port), Some((HOST, DATA)));
    ftp.router.cli("nat44 del session in 10.0.0.2 4464 tcp");
    ftp.router.advance(Duration::from_secs(30));
    assert_eq!(used(&mut ftp.router), 1, "none is left");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// A sender that cuts its text anywhere and sends it again until it is acknowledged: the
    /// receiver has the text in the end, with the pool's address in each command.
    #[test]
    fn a_text_arrives_translated_however_it_is_cut_and_sent_again(
        first: u32,
        words in proptest::collection::vec(0usize..4, 1..7),
        sizes in proptest::collection::vec((1usize..60, any::<bool>()), 8),
    ) {
        let lines = [
            "PORT 10,0,0,2,17,112\r\n",
            "NOOP\r\n",
            "EPRT |1|10.0.0.2|5000|\r\n",
            "PORT 9,9,9,9,9,9\r\n",
        ];
        let text: String = words.iter().map(|word| lines[*word]).collect();
        let wanted = text.replace("10,0,0,2", "192,0,2,1").replace("10.0.0.2", "192.0.2.1");
        let mut ftp = ftp((first, 50));
        let (mut sent, mut received, mut turn) = (0, Vec::new(), 0);
        while sent < text.len() {
            prop_assert!(turn < 200, "{sent} of {} bytes", text.len());
            // Longer and longer, until it gets through.
            let (size, is_lost) = sizes[turn % sizes.len()];
            let end = (sent + (size + turn * 8).min(80)).min(text.len());
            turn += 1;
            let Some(out) = ftp.say(sent, &text.as_bytes()[sent..end]) else { continue };
            // Not all are lost.
            if is_lost && turn % sizes.len() != 0 {
                continue;
            }
            // What the receiver has already it drops; there are no gaps.
            let at = out.sequence.wrapping_sub(first) as usize;
            prop_assert!(at <= received.len(), "a gap");
            let new = received.len() - at;
            received.extend(out.text.get(new..).unwrap_or_default());
            let number = first.wrapping_add(received.len() as u32);
            let ack = ftp.back(&Segment::new((21, 4_000), (50, number), ACK, b"")).expect("came");
            let acknowledged = ack.acknowledgement.wrapping_sub(first) as usize;
            prop_assert!(acknowledged >= sent && acknowledged <= end);
            sent = acknowledged;
        }
        prop_assert_eq!(String::from_utf8(received).expect("text"), wanted);
    }

    /// Texts that are almost commands, with any numbers and flags: what comes out is whole, and
    /// no buffer is lost.
    #[test]
    fn no_text_breaks_a_control_connection(
        segments in proptest::collection::vec(
            (
                0u32..200,
                any::<u32>(),
                any::<u8>(),
                "(PORT |EPRT \\||227 |229 |)[0-9,|.()\r\n ]{0,60}",
                any::<bool>(),
                proptest::collection::vec(any::<u8>(), 0..5),
            ),
            1..200,
        ),
    ) {
        let mut ftp = ftp((u32::MAX - 30, 50));
        ftp.router.cli("set nat44 helper pptp port 1723");
        for (at, acknowledgement, flags, text, is_out, options) in segments {
            let first = if is_out { u32::MAX - 30 } else { 50 };
            let ports = if is_out { CONTROL } else { (CONTROL.1, CONTROL.0) };
            let numbers = (first.wrapping_add(at), acknowledgement);
            let mut segment = Segment::new(ports, numbers, flags & 0x3d, text.as_bytes());
            segment.options = options.iter().flat_map(|kind| [5, *kind, 1, 5]).collect();
            let out = if is_out { ftp.out(&segment) } else { ftp.back(&segment) };
            prop_assert!(out.is_none_or(|out| out.text.len() <= segment.text.len() + 80));
        }
        ftp.router.advance(Duration::from_secs(70));
    }
}
