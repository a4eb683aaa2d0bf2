//! Packets good and bad to gateways of the mobile user plane, to proxies and back from their
//! functions, through every form of the router: what comes out and what is counted must be the same
//! node by node and in one pass, on every variant.

use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::{Router, Settings};
use quiver_wire::gtpu::{self, Direction, PduSession};
use quiver_wire::{Header, Ip4Header, UdpHeader, checksum, udp};

use crate::fixture::{
    self, Fault, PACKETS, ROUNDS, Seen, Srh, WITH_SEGMENTS, alike, assert_one_pass, ethernet,
    in_any_order, mac, seen, without_identifications,
};

const SETUP: [&str; 29] = [
    "set interface ip address e0 10.0.0.1/24",
    "set interface ip address e0 fd00::1/64",
    "set interface ip address e1 10.0.1.1/24",
    "set interface ip address e1 fd00:1::1/64",
    "set interface ip address e2 10.0.2.1/24",
    "set interface ip address e2 fd00:2::1/64",
    "ip neighbor e0 fd00::2 02:00:00:00:00:a0 static",
    "ip neighbor e0 10.0.0.2 02:00:00:00:00:a0 static",
    "ip neighbor e1 10.0.1.2 02:00:00:00:00:b1 static",
    "ip neighbor e1 fd00:1::2 02:00:00:00:00:b1 static",
    "ip6 table add 10",
    "ip route add 192.0.3.0/24 via 10.0.1.2 e1",
    "ip route add fc00::/32 via fd00:1::2 e1",
    "ip route add fc00:2::/32 via fd00:1::2 e1",
    "ip route add fc00:9::/32 via fd00:1::2 e1",
    "ip route add fc00:2::/32 table 10 via fd00:1::2 e1",
    "sr policy add bsid fc00:1::d1 behavior h.m.gtp4.d fc00:2::/32 v6src_prefix fc00:1::/64",
    "sr policy add bsid fc00:1::d2 behavior h.m.gtp4.d fc00:2::/48 v6src_prefix fc00:1::/64 drop-in next fc00:9::1",
    "sr steer l3 192.0.2.0/24 via bsid fc00:1::d1",
    "sr localsid address fc01::/32 behavior end.m.gtp4.e",
    "sr localsid address fc03::/64 behavior end.m.gtp6.e",
    "sr localsid address fc04::/64 behavior end.m.gtp6.e source fc00:1::6 zero-checksum uplink",
    "sr localsid address fc05::/64 behavior end.m.gtp6.d fc00:2::/48 fib-table 10",
    "sr localsid address fc06::/64 behavior end.m.gtp6.d.di fc00:2::/64 source fc00:1::1 next fc00:9::1",
    "sr localsid address fc07::/48 behavior end.map fc00:2::/48",
    "sr localsid address fc08::1 behavior end.as nh 10.0.1.2 oif e1 iif e2 src fc00:1::1 next fc00:9::1 next fc00:9::2",
    "sr localsid address fc08::2 behavior end.as nh fd00:1::2 oif e1 iif e3 src fc00:1::1 next fc00:9::1",
    "sr localsid address fc08::3 behavior end.ad nh 10.0.1.2 oif e1 iif e3",
    "sr localsid address fc08::4 behavior end.am nh fd00:1::2 oif e1 iif e2 cache",
];

/// Where a packet goes, and what it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gtpu4,
    /// To one of these addresses.
    Gtpu6(&'static str),
    /// Behind nothing but an IPv6 header.
    Bare(&'static str),
    /// With that many segments left: the list is the address behind and this one.
    Segments(&'static str, &'static str, u8),
    /// From a function: an IPv4 packet, or one whose segments are masked.
    Back4,
    BackMasked,
}

/// All of them, the inner packet that each is for, the port that it comes by, and the nodes that it
/// passes behind the first look-up, or behind `ip6-input`.
const KINDS: [(Kind, Inner, &str, &[&str]); 15] = [
    (Kind::Gtpu4, Inner::Ip4, "e0", &["ip4-lookup", "sr-pl-gtp4-d", "ip6-rewrite"]),
    (
        Kind::Gtpu6("fc05::1"),
        Inner::Ip4,
        "e0",
        &["ip6-lookup", "sr-localsid-gtp6-d", "ip6-rewrite"],
    ),
    (
        Kind::Gtpu6("fc06::1"),
        Inner::Ip6,
        "e0",
        &["ip6-lookup", "sr-localsid-gtp6-d", "ip6-rewrite"],
    ),
    (
        Kind::Bare("fc01:0:c000:301:2401:203:400:0"),
        Inner::Ip4,
        "e0",
        &["ip6-lookup", "sr-localsid-gtp4-e", "ip4-rewrite"],
    ),
    (
        Kind::Bare("fc01:0:c000:301:1:203:400:0"),
        Inner::Ip6,
        "e0",
        &["ip6-lookup", "sr-localsid-gtp4-e", "ip4-rewrite"],
    ),
    (
        Kind::Segments("fc03::2401:203:400:0", "fc00:9::7", 1),
        Inner::Ip4,
        "e0",
        &["ip6-lookup", "sr-localsid-gtp6-e", "ip6-rewrite"],
    ),
    (
        Kind::Segments("fc03::1:203:400:0", "fc00:9::7", 1),
        Inner::Frame,
        "e0",
        &["ip6-lookup", "sr-localsid-gtp6-e", "ip6-rewrite"],
    ),
    (
        Kind::Segments("fc04::2401:203:400:0", "fc00:9::7", 1),
        Inner::Ip6,
        "e0",
        &["ip6-lookup", "sr-localsid-gtp6-e", "ip6-rewrite"],
    ),
    (
        Kind::Bare("fc07::5:6:7"),
        Inner::Ip6,
        "e0",
        &["ip6-lookup", "sr-localsid-map", "ip6-rewrite"],
    ),
    (
        Kind::Segments("fc08::1", "fc00:9::7", 1),
        Inner::Ip4,
        "e0",
        &["ip6-lookup", "sr-localsid-as", "ip4-rewrite"],
    ),
    (
        Kind::Segments("fc08::2", "fc00:9::7", 1),
        Inner::Ip6,
        "e0",
        &["ip6-lookup", "sr-localsid-as", "ip6-rewrite"],
    ),
    (
        Kind::Segments("fc08::3", "fc00:9::7", 1),
        Inner::Ip4,
        "e0",
        &["ip6-lookup", "sr-localsid-ad", "ip4-rewrite"],
    ),
    (
        Kind::Segments("fc08::4", "fc00:9::7", 1),
        Inner::Ip6,
        "e0",
        &["ip6-lookup", "sr-localsid-am", "ip6-rewrite"],
    ),
    (Kind::Back4, Inner::Ip4, "e2", &["sr-proxy-ip4"]),
    (Kind::BackMasked, Inner::Ip6, "e2", &["sr-proxy-am", "ip6-rewrite"]),
];

/// What is inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inner {
    Ip4,
    Ip6,
    Frame,
    Unknown,
}

/// A packet.
#[derive(Clone, Copy, Debug)]
struct Sent {
    kind: usize,
    inner: Inner,
    payload: usize,
    /// Of GTP-U: a container, a sequence number, a checksum, another message.
    container: bool,
    sequence: bool,
    checksum: bool,
    message: u8,
    fault: Fault,
}

fn plain() -> impl Strategy<Value = Sent> {
    (0..KINDS.len(), 8..64usize, any::<bool>(), any::<bool>()).prop_map(
        |(kind, payload, container, checksum)| {
            let message = gtpu::message::G_PDU;
            let inner = KINDS[kind].1;
            Sent {
                kind,
                inner,
                payload,
                container,
                sequence: false,
                checksum,
                message,
                fault: Fault::None,
            }
        },
    )
}

fn sent() -> impl Strategy<Value = Sent> {
    let fault = prop_oneof![
        20 => Just(Fault::None),
        2 => (0..3u8).prop_map(Fault::HopsLeft),
        1 => (14..200usize).prop_map(Fault::Cut),
        1 => (1..40usize).prop_map(Fault::Padding),
        6 => (14..160usize, 0..8u8).prop_map(|(byte, bit)| Fault::Flip { byte, bit }),
    ];
    let inner =
        proptest::sample::select(vec![Inner::Ip4, Inner::Ip6, Inner::Frame, Inner::Unknown]);
    let payload = prop_oneof![10 => 8..64usize, 1 => 1100..1600usize];
    let messages = proptest::sample::select(vec![gtpu::message::G_PDU, 1, 2, 26, 254, 7]);
    (plain(), inner, payload, 0..4u8, messages, fault).prop_map(
        |(plain, inner, payload, change, message, fault)| match change {
            0 => Sent { payload, fault, ..plain },
            1 => Sent { inner, fault, ..plain },
            2 => Sent { sequence: true, ..plain },
            _ => Sent { message, fault, ..plain },
        },
    )
}

/// Vectors whose packets are nearly all of one kind, or any; no more than may be complained about
/// at once.
fn vector() -> impl Strategy<Value = Vec<Sent>> {
    let packets = proptest::collection::vec((0..10u8, sent()), 1..100);
    (plain(), any::<bool>(), packets).prop_map(|(usual, mixed, packets)| {
        let chosen = |(often, sent): (u8, Sent)| match (mixed, often) {
            (true, _) | (_, 0) => Sent { kind: if mixed { sent.kind } else { usual.kind }, ..sent },
            (_, more) => Sent { payload: usual.payload + usize::from(more), ..usual },
        };
        // All come by one port.
        let port = KINDS[usual.kind].2;
        packets.into_iter().map(chosen).filter(|sent| KINDS[sent.kind].2 == port).collect()
    })
}

/// A gateway's address: prefix, IPv4 address, UDP port.
const SOURCE: &str = "fc00:1::a00:2:9c40:0";

fn ip6(to: &str, next: u8, hops: u8, behind: &[u8]) -> Vec<u8> {
    fixture::ip6(SOURCE, to, next, hops, behind)
}

fn ip4(to: [u8; 4], hops: u8, behind: &[u8]) -> Vec<u8> {
    fixture::ip4([10, 0, 0, 2], to, hops, true, behind)
}

fn datagram(payload: usize) -> Vec<u8> {
    fixture::udp(8 + payload, 1)
}

fn inside(inner: Inner, payload: usize) -> (u8, Vec<u8>) {
    match inner {
        Inner::Ip4 => (4, ip4([192, 0, 3, 7], 64, &datagram(payload))),
        Inner::Ip6 => (41, ip6("fc00:9::8", 17, 64, &datagram(payload))),
        Inner::Frame => (143, [vec![2; 12], vec![0x88, 0xb5], vec![7; payload]].concat()),
        Inner::Unknown => (253, vec![1; payload]),
    }
}

fn gtpu(sent: Sent, user: &[u8]) -> Vec<u8> {
    let session =
        PduSession { direction: Direction::Downlink, qfi: 9, reflective: sent.payload % 2 == 1 };
    let repr = gtpu::Repr {
        message_type: sent.message,
        teid: 0x0102_0304,
        sequence: sent.sequence.then_some(7),
        session: sent.container.then_some(session),
        payload_len: user.len(),
    };
    let mut bytes = vec![0; 8 + repr.len()];
    UdpHeader::new(7, gtpu::PORT, repr.len() + user.len())
        .expect("short")
        .write(&mut bytes)
        .expect("room");
    repr.emit(&mut bytes[8..]).expect("room");
    [bytes, user.to_vec()].concat()
}

fn frame(sent: Sent, mac: [u8; 6]) -> Vec<u8> {
    let hops = sent.fault.hops();
    let (protocol, user) = inside(sent.inner, sent.payload);
    let (ether_type, packet) = match KINDS[sent.kind].0 {
        Kind::Gtpu4 => {
            (0x0800, ip4([192, 0, 2, 1 + (sent.payload % 2) as u8], hops, &gtpu(sent, &user)))
        }
        Kind::Gtpu6(to) => {
            let mut datagram = gtpu(sent, &user);
            if sent.checksum {
                let [from, to] = [SOURCE, to].map(|address| fixture::octets(address).into());
                udp::fill_checksum_over_ip6(from, to, &mut datagram);
            }
            (0x86dd, ip6(to, 17, hops, &datagram))
        }
        Kind::Bare(to) => (0x86dd, ip6(to, protocol, hops, &user)),
        Kind::Segments(to, last, left) => {
            let srh = Srh::new(&[last, to], left).bytes(protocol);
            (0x86dd, ip6(to, 43, hops, &[srh, user].concat()))
        }
        Kind::Back4 => (0x0800, ip4([192, 0, 3, 7], hops, &datagram(sent.payload))),
        Kind::BackMasked => {
            let behind =
                [Srh::new(&["fc00:9::7", "fc00:9::6"], 1).bytes(17), datagram(sent.payload)]
                    .concat();
            (0x86dd, ip6("fc00:9::7", 43, hops, &behind))
        }
    };
    let mut frame = ethernet(mac, ether_type, &packet);
    sent.fault.spoil(&mut frame);
    frame
}

fn router(settings: Settings) -> Router {
    fixture::router(settings, &WITH_SEGMENTS, &["e0", "e1", "e2", "e3"], &SETUP)
}

/// Without what tells fragmented packets of the router apart: who leaves a vector first gets his
/// number first.
fn without_numbers(mut seen: Seen) -> Seen {
    for frame in seen.frames.iter_mut().flatten() {
        if frame.get(12..15) == Some(&[8, 0, 0x45])
            && let Some(header) = Ip4Header::overlay_mut(&mut frame[14..])
        {
            header.set_identification(0);
            let sum = checksum::header_checksum(header);
            header.set_checksum(sum);
        }
        if frame.get(12..15) == Some(&[8, 0, 0x45])
            && frame[23] == 1
            && frame.len() >= 42 + Ip4Header::LEN
        {
            let quoted = 42; // behind Ethernet, IPv4 and ICMP headers
            for bytes in [36..38, quoted + 4..quoted + 6, quoted + 10..quoted + 12] {
                frame[bytes].fill(0); // checksum of ICMP; identification and checksum of the quoted header
            }
        }
        if let (Some([0x86, 0xdd]), Some(44)) = (frame.get(12..14), frame.get(20)) {
            frame[58..62].fill(0);
        }
    }
    without_identifications(seen)
}

/// What comes out, and what SIDs and policies count.
fn run(settings: Settings, vectors: &[Vec<Sent>], more: &[&str]) -> (Seen, String) {
    let mut router = router(settings);
    more.iter().for_each(|line| drop(router.cli(line)));
    for vector in vectors {
        for sent in vector {
            let port = KINDS[sent.kind].2;
            let mac = mac(&mut router, port);
            router.inject(port, &frame(*sent, mac));
        }
        router.run();
        router.advance(Duration::from_secs(10));
    }
    let shows = ["show sr localsids", "show sr policies", "show sr proxies"];
    let counted = shows.map(|show| router.cli(show)).concat();
    (in_any_order(without_numbers(seen(&mut router))), counted)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn gateways_and_proxies_say_the_same(
        vectors in proptest::collection::vec(vector(), 1..5),
        more in proptest::sample::select(vec![
            "", "set interface mtu packet 1400 e1", "set interface state e1 down",
            "ip neighbor e2 fd00:2::2 02:00:00:00:00:c2 static\nip route add fc00:2::/32 via fd00:2::2 e2\n\
             ip route add fc00:9::/32 via fd00:2::2 e2",
        ]),
    ) {
        let more: Vec<&str> = more.split_terminator('\n').collect();
        alike(|form| run(form, &vectors, &more))?;
    }
}

#[test]
fn vectors_of_one_kind_go_through_in_one_pass_and_leave() {
    let mut router = router(Settings::default());
    for (kind, (what, inner, port, nodes)) in KINDS.into_iter().enumerate() {
        let mac = mac(&mut router, port);
        router.cli("clear runtime");
        router.sent("e1");
        let message = gtpu::message::G_PDU;
        let (container, checksum) = (true, true);
        let sent = Sent {
            kind,
            inner,
            payload: 26,
            container,
            sequence: false,
            checksum,
            message,
            fault: Fault::None,
        };
        for _ in 0..ROUNDS {
            (0..PACKETS).for_each(|_| router.inject(port, &frame(sent, mac)));
            router.run();
        }
        assert_eq!(router.sent("e1").len() as u64, ROUNDS * PACKETS, "{what:?}");
        assert_one_pass(&mut router, nodes, &format!("{what:?}"));
    }
}
