//! What can be wrong with a packet that is steered into a policy, for every way to put segments
//! around or into it: what its sender hears, or why it dies, node by node and in one pass.

use quiver_testkit::{Router, Settings};

use crate::fixture::{self, WITH_SEGMENTS, assert_same_fate, ethernet};

/// How packets are steered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Steered {
    Six,
    Four,
    Frame,
    Gtpu,
}

use Steered::{Four, Frame, Gtpu, Six};

/// A policy's name in the table, what it does, and what is steered into it.
const POLICIES: [(&str, &str, Steered); 10] = [
    ("encap-6", "next fc00:0:2::1 next fc00:0:3::1 encap", Six),
    ("encap-4", "next fc00:0:2::1 next fc00:0:3::1 encap", Four),
    ("encap-red-6", "next fc00:0:2::1 encap.red", Six),
    ("encap-red-4", "next fc00:0:2::1 encap.red", Four),
    ("insert", "next fc00:0:2::1 insert", Six),
    ("insert-red", "next fc00:0:2::1 next fc00:0:3::1 insert.red", Six),
    // The first segment is the router's own.
    ("encap-own-6", "next fc00:0:1::e next fc00:0:3::1 encap", Six),
    ("encap-own-4", "next fc00:0:1::e next fc00:0:3::1 encap", Four),
    ("encap-l2", "next fc00:0:2::1 next fc00:0:3::1 encap", Frame),
    ("gtp4.d", "behavior h.m.gtp4.d fc00:2::/32 v6src_prefix fc00:1::/64", Gtpu),
];

const SETUP: [&str; 12] = [
    "set interface ip address e0 10.0.0.1/24",
    "set interface ip address e0 2001:db8::1/64",
    "set interface ip address e1 2001:db8:1::1/64",
    "ip neighbor e0 10.0.0.2 02:00:00:00:00:a0 static",
    "ip neighbor e0 2001:db8::2 02:00:00:00:00:a0 static",
    "ip neighbor e0 fe80::2 02:00:00:00:00:a0 static",
    "ip neighbor e1 2001:db8:1::2 02:00:00:00:00:b1 static",
    "ip route add fc00::/16 via 2001:db8:1::2 e1",
    "sr localsid address fc00:0:1::e behavior end",
    "set sr encaps source addr 2001:db8:1::1",
    "set ip icmp-rate-limit 1000000 burst 100000",
    "set interface mtu packet 1400 e1",
];

fn router(settings: Settings) -> Router {
    let mut router = fixture::router(settings, &WITH_SEGMENTS, &["e0", "e1", "e2"], &SETUP);
    for (number, (_, policy, steered)) in POLICIES.into_iter().enumerate() {
        router.cli(&format!("sr policy add bsid fc00:0:1::b{number} {policy}"));
        let what = match steered {
            Six => format!("l3 2001:db8:b{number}::/48"),
            Four | Gtpu => format!("l3 20.{number}.0.0/16"),
            Frame => "l2 e2".to_owned(),
        };
        router.cli(&format!("sr steer {what} via bsid fc00:0:1::b{number}"));
    }
    router
}

/// A packet that is to be steered.
#[derive(Clone, Debug)]
struct Sent {
    hops: u8,
    source6: &'static str,
    may_fragment: bool,
    /// Bytes of the IP packet.
    bytes: usize,
    /// Bytes of the frame that are there.
    cut: Option<usize>,
}

/// A datagram of so many bytes, most of them zero.
fn datagram(head: &[u8], bytes: usize) -> Vec<u8> {
    let mut datagram = head.to_vec();
    datagram.resize(bytes, 0);
    datagram
}

fn six(sent: &Sent, number: usize) -> Vec<u8> {
    let to = format!("2001:db8:b{number}::7");
    fixture::ip6(sent.source6, &to, 17, sent.hops, &datagram(&[0x30, 0x39, 0, 9], sent.bytes - 40))
}

fn four(sent: &Sent, number: usize, is_gtpu: bool) -> Vec<u8> {
    let [high, low] = ((sent.bytes - 20) as u16).to_be_bytes();
    let mut head = vec![0x30, 0x39, 0x08, 0x68, high, low, 0, 0];
    if is_gtpu {
        let [high, low] = ((sent.bytes - 36) as u16).to_be_bytes();
        head.extend([0x30, 0xff, high, low, 0, 0, 0, 7, 0x45]);
    }
    let to = [20, number as u8, 0, 7];
    fixture::ip4([10, 0, 0, 2], to, sent.hops, sent.may_fragment, &datagram(&head, sent.bytes - 20))
}

/// A frame, and the port that it comes in by.
fn frame(sent: &Sent, number: usize, steered: Steered) -> (&'static str, Vec<u8>) {
    let (port, last, kind, packet) = match steered {
        Six => ("e0", 0, 0x86dd, six(sent, number)),
        Four => ("e0", 0, 0x0800, four(sent, number, false)),
        Gtpu => ("e0", 0, 0x0800, four(sent, number, true)),
        Frame => ("e2", 2, 0x86dd, six(sent, number)),
    };
    let mut frame = ethernet([2, 0xfe, 0, 0, 0, last], kind, &packet);
    frame.truncate(sent.cut.unwrap_or(frame.len()));
    (port, frame)
}

/// What can be wrong.
type Class = (&'static str, fn(&mut Sent));

const CLASSES: [Class; 10] = [
    ("nothing", |_| ()),
    ("hop-limit-0", |sent| sent.hops = 0),
    ("hop-limit-1", |sent| sent.hops = 1),
    ("link-local-source", |sent| sent.source6 = "fe80::2"),
    ("longer-than-the-way-out", |sent| sent.bytes = 1399),
    ("longer-and-may-be-fragmented", |sent| (sent.bytes, sent.may_fragment) = (1399, true)),
    ("as-long-as-the-way-out", |sent| sent.bytes = 1320),
    ("cut-in-the-ip-header", |sent| sent.cut = Some(14 + 12)),
    ("cut-in-the-frame", |sent| sent.cut = Some(13)),
    ("shorter-than-it-says", |sent| sent.cut = Some(14 + 80)),
];

/// The whole table as it is.
fn table(router: &mut Router) -> (String, Vec<Vec<u8>>) {
    let mut policies = Vec::new();
    for (number, (name, _, steered)) in POLICIES.into_iter().enumerate() {
        policies.push((name, (number, steered)));
    }
    let classes = CLASSES.map(|(class, _)| class);
    let (text, frames) = fixture::table(router, &classes, &policies, |class, (number, steered)| {
        let mut sent =
            Sent { hops: 64, source6: "2001:db8::2", may_fragment: false, bytes: 100, cut: None };
        CLASSES[class].1(&mut sent);
        frame(&sent, number, steered)
    });
    let mut frames: Vec<_> = frames.into_iter().map(without_identification).collect();
    frames.sort();
    (text, frames)
}

/// Without the identifications of fragments, which no two routers choose alike (RFC 7739).
fn without_identification(mut frame: Vec<u8>) -> Vec<u8> {
    for at in [54, 78, 94] {
        let is_fragment = frame.get(at).is_some_and(|next| [4, 41].contains(next))
            && (frame.get(20) == Some(&44) || frame.get(54) == Some(&44));
        if is_fragment && let Some(place) = frame.get_mut(at + 4..at + 8) {
            place.fill(0);
        }
    }
    frame
}

#[test]
fn every_packet_meets_the_same_fate_at_every_policy() {
    assert_same_fate(include_str!("malformed_headend.txt"), router, table);
}
