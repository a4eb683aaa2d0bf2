//! Packets good and bad to local SIDs of every kind and to binding SIDs, through every form of the
//! router: what comes out, what is counted for nodes, reasons and SIDs must be the same node by
//! node and in one pass, on every variant.

use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::{Router, Settings};

use crate::fixture::{
    self, Fault, PACKETS, ROUNDS, Seen, Srh, WITH_SEGMENTS, alike, assert_one_pass, ethernet,
    in_any_order, ip6, mac, seen, without_identifications,
};

const SETUP: [&str; 38] = [
    "set interface ip address e0 fd00::1/64",
    "set interface ip address e1 10.0.1.1/24",
    "set interface ip address e1 fd00:1::1/64",
    "set interface ip address e2 fd00:2::1/64",
    "ip table add 10",
    "ip6 table add 10",
    "ip neighbor e0 fd00::2 02:00:00:00:00:a0 static",
    "ip neighbor e1 10.0.1.2 02:00:00:00:00:b1 static",
    "ip neighbor e1 fd00:1::2 02:00:00:00:00:b1 static",
    "ip neighbor e2 fd00:2::2 02:00:00:00:00:c2 static",
    // Of many packets the latest wait for a neighbour, and flows have no order among each other.
    "ip neighbor e1 fd00:1::9 02:00:00:00:00:b9 static",
    "ip route add 20.0.0.0/8 via 10.0.1.2 e1",
    "ip route add 20.0.0.0/8 table 10 via 10.0.1.2 e1",
    "ip route add 2001:db8:20::/48 via fd00:1::2 e1",
    "ip route add 2001:db8:21::/48 via fd00:1::2 e1 via fd00:2::2 e2",
    "ip route add 2001:db8:22::/48 via drop",
    "ip route add 2001:db8:20::/48 table 10 via fd00:2::2 e2",
    "ip route add fc00:0:30::/48 via fd00:1::2 e1",
    "sr localsid address fc00::1 behavior end",
    "sr localsid address fc00::2 behavior end psp usp usd",
    "sr localsid address fc00::3 behavior end.x e1 fd00:1::2",
    "sr localsid address fc00::4 behavior end.x e1 fd00:1::2 e2 fd00:2::2 psp usd",
    "sr localsid address fc00::5 behavior end.t 10",
    "sr localsid address fc00::6 behavior end.dx4 e1 10.0.1.2",
    "sr localsid address fc00::7 behavior end.dx6 e1 fd00:1::2",
    "sr localsid address fc00::8 behavior end.dt4 10",
    "sr localsid address fc00::9 behavior end.dt6 0",
    "sr localsid address fc00::a behavior end.dt46 10",
    "sr localsid address fc00::b behavior end.dx2 e2",
    "sr localsid address fc00:0:10::/48 behavior un",
    "sr localsid address fc00:0:11::/48 behavior un psp usd",
    "sr localsid address fc00:0:12::/48 behavior ua e1 fd00:1::2 psp",
    "sr localsid address fc00:0:13::/48 behavior end.dt4 10",
    "sr localsid address fc00:0:14::/48 behavior end.replace",
    "sr localsid address fc00:0:15::/48 behavior ut 10",
    "set sr encaps source addr fd00:1::1",
    "sr policy add bsid fc00::c next fc00:0:30::1 next fc00:0:30::2 encap",
    "sr policy add bsid fc00::d next fc00:0:30::3 next fc00:0:30::4 insert",
];

/// Local SIDs and binding SIDs, and destinations that are none: segments too, and inner
/// destinations.
const ADDRESSES: [&str; 29] = [
    "fc00::1",
    "fc00::2",
    "fc00::3",
    "fc00::4",
    "fc00::5",
    "fc00::6",
    "fc00::7",
    "fc00::8",
    "fc00::9",
    "fc00::a",
    "fc00::b",
    "fc00::c",
    "fc00::d",
    "fc00:0:10:30::",
    "fc00:0:10:11:30::",
    "fc00:0:11::",
    "fc00:0:12:30::",
    "fc00:0:12::",
    "fc00:0:13::",
    "fc00:0:14::2",
    "fc00:0:15:30::",
    "2001:db8:20::7",
    "2001:db8:21::7",
    "2001:db8:22::7",
    "2001:db9::1",
    "fd00::1",
    "fd00:1::9",
    "ff02::1",
    "::",
];
/// Those of them that are SIDs.
const SIDS: usize = 21;

/// What is behind the headers in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inner {
    Udp,
    Echo,
    Ip4,
    Ip6(usize),
    Frame,
    Unknown,
}

/// What can be wrong with segments beside what can be with any packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Congestion,
    Oam,
    ListTooShort,
    OtherRouting,
    DestinationOptions,
}

/// A packet: to which address, with which segments behind it, and what is inside.
#[derive(Clone, Debug)]
struct Sent {
    to: usize,
    /// As they stand in the list; `None` for no SRH.
    list: Option<Vec<usize>>,
    left: u8,
    inner: Inner,
    payload: usize,
    fault: Fault<Wrong>,
}

fn inner() -> impl Strategy<Value = Inner> {
    prop_oneof![
        Just(Inner::Udp),
        Just(Inner::Echo),
        Just(Inner::Ip4),
        (0..ADDRESSES.len()).prop_map(Inner::Ip6),
        Just(Inner::Frame),
        Just(Inner::Unknown),
    ]
}

fn fault() -> impl Strategy<Value = Fault<Wrong>> {
    prop_oneof![
        20 => Just(Fault::None),
        1 => (0..3u8).prop_map(Fault::HopsLeft),
        1 => (14..200usize).prop_map(Fault::Cut),
        1 => (1..40usize).prop_map(Fault::Padding),
        1 => Just(Fault::Other(Wrong::Congestion)),
        1 => Just(Fault::Other(Wrong::Oam)),
        1 => Just(Fault::Other(Wrong::ListTooShort)),
        1 => Just(Fault::Other(Wrong::OtherRouting)),
        1 => Just(Fault::Other(Wrong::DestinationOptions)),
        4 => (14..160usize, 0..8u8).prop_map(|(byte, bit)| Fault::Flip { byte, bit }),
    ]
}

fn sent() -> impl Strategy<Value = Sent> {
    let to = prop_oneof![8 => 0..SIDS, 1 => 0..ADDRESSES.len()];
    let list = proptest::option::weighted(0.8, proptest::collection::vec(0..ADDRESSES.len(), 1..4));
    let payload = prop_oneof![10 => 8..64usize, 1 => 1300..1600usize];
    (to, list, 0..4u8, inner(), payload, fault()).prop_map(
        |(to, list, left, inner, payload, fault)| Sent { to, list, left, inner, payload, fault },
    )
}

/// Packets that go all the way in one pass: to each kind of SID what it is for.
fn plain() -> impl Strategy<Value = Sent> {
    let on = |to: usize| (to, Some(vec![19, to]), 1, Inner::Udp);
    let ends = |to: usize, inner| (to, Some(vec![to, 24]), 0, inner);
    let kinds = [
        on(0),
        on(1),
        on(2),
        on(3),
        on(4),
        ends(5, Inner::Ip4),
        ends(6, Inner::Ip6(24)),
        ends(7, Inner::Ip4),
        ends(8, Inner::Ip6(19)),
        ends(9, Inner::Ip4),
        ends(9, Inner::Ip6(19)),
        ends(10, Inner::Frame),
        (8, None, 0, Inner::Ip6(20)),
        (11, None, 0, Inner::Udp),
        (12, Some(vec![19, 12]), 1, Inner::Udp),
        on(13),
        (14, None, 0, Inner::Udp),
        (19, None, 0, Inner::Udp),
    ];
    (proptest::sample::select(kinds.to_vec()), 8..64usize).prop_map(
        |((to, list, left, inner), payload)| Sent {
            to,
            list,
            left,
            inner,
            payload,
            fault: Fault::None,
        },
    )
}

/// Packets of a vector at most: two blocks, and no more errors than are sent at once (RFC 4443
/// §2.4), for which of them are sent depends on the order.
const PACKETS_MAX: usize = 100;

/// Vectors whose packets are all of one kind, or nearly all, or any.
fn vector() -> impl Strategy<Value = Vec<Sent>> {
    (plain(), 0..5u8, proptest::collection::vec((0..10u8, plain(), sent()), 1..PACKETS_MAX))
        .prop_map(|(usual, mixture, packets)| {
            let chosen = |(often, plain, sent): (u8, Sent, Sent)| match (mixture, often) {
                (0, _) | (1, 0) => sent,
                (1, 1) => plain,
                (2, 0..5) => plain,
                (3, 0) => sent,
                (_, payload) => {
                    Sent { payload: usual.payload + usize::from(payload), ..usual.clone() }
                }
            };
            packets.into_iter().map(chosen).collect()
        })
}

/// The inner IPv4 packet of a payload.
fn ip4(payload: usize) -> Vec<u8> {
    fixture::ip4([10, 0, 9, 9], [20, 0, 0, 7], 64, true, &fixture::udp(payload, 1))
}

/// The protocol and the bytes of what is inside.
fn inside(sent: &Sent) -> (u8, Vec<u8>) {
    let payload = sent.payload;
    match sent.inner {
        Inner::Udp => (17, fixture::udp(payload, 1)),
        Inner::Echo => (58, [vec![128, 0, 0, 0, 0, 1, 0, 1], vec![7; payload]].concat()),
        Inner::Ip4 => (4, ip4(payload)),
        Inner::Ip6(to) => (41, ip6("fd00::2", ADDRESSES[to], 17, 64, &fixture::udp(payload, 1))),
        Inner::Frame => {
            let addresses = [2, 0, 0, 0, 9, 1, 2, 0, 0, 0, 9, 2, 8, 0];
            (143, [addresses.to_vec(), ip4(payload)].concat())
        }
        Inner::Unknown => (253, vec![1; payload]),
    }
}

fn frame(sent: &Sent, mac: [u8; 6]) -> Vec<u8> {
    let fault = sent.fault;
    let (mut next, mut rest) = inside(sent);
    if let Some(list) = &sent.list {
        let segments: Vec<&str> = list.iter().map(|segment| ADDRESSES[*segment]).collect();
        let mut srh = Srh::new(&segments, sent.left);
        if fault.is(Wrong::ListTooShort) {
            let count = list.len() as u8 - 1;
            (srh.length, srh.last) = (Some(count * 2), Some(count.wrapping_sub(1)));
        }
        srh.kind = if fault.is(Wrong::OtherRouting) { 3 } else { fixture::SRH };
        srh.flags = if fault.is(Wrong::Oam) { 0x20 } else { 0 };
        (next, rest) = (43, [srh.bytes(next), rest].concat());
    }
    if fault.is(Wrong::DestinationOptions) {
        (next, rest) = (60, [vec![next, 0, 1, 4, 0, 0, 0, 0], rest].concat());
    }
    let mut packet = ip6("fd00::2", ADDRESSES[sent.to], next, fault.hops(), &rest);
    if fault.is(Wrong::Congestion) {
        packet[1] |= 0x30;
    }
    let mut frame = ethernet(mac, 0x86dd, &packet);
    fault.spoil(&mut frame);
    frame
}

fn router(settings: Settings) -> Router {
    fixture::router(settings, &WITH_SEGMENTS, &["e0", "e1", "e2"], &SETUP)
}

/// What comes out, and what SIDs count.
fn run(settings: Settings, vectors: &[Vec<Sent>], more: &[&str]) -> (Seen, String) {
    let mut router = router(settings);
    more.iter().for_each(|line| drop(router.cli(line)));
    let mac = mac(&mut router, "e0");
    for vector in vectors {
        vector.iter().for_each(|sent| router.inject("e0", &frame(sent, mac)));
        router.run();
        router.advance(Duration::from_secs(10));
    }
    let counted = router.cli("show sr localsids");
    (in_any_order(without_identifications(seen(&mut router))), counted)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn local_sids_say_the_same(
        vectors in proptest::collection::vec(vector(), 1..5),
        more in proptest::sample::select(vec![
            "", "set interface mtu packet 1400 e1", "set interface state e2 down",
            "sr localsid del address fc00::1", "ip route del 2001:db8:20::/48 via fd00:1::2 e1",
        ]),
    ) {
        let more: Vec<&str> = more.split_terminator('\n').collect();
        alike(|form| run(form, &vectors, &more))?;
    }
}

/// Which of the addresses this is.
fn place(address: &str) -> usize {
    ADDRESSES.iter().position(|known| *known == address).expect("one of the addresses")
}

/// Packets to a SID, and the nodes that all of a vector pass behind `ip6-lookup`.
fn ways() -> Vec<(Sent, &'static [&'static str])> {
    const OUT: &str = "2001:db8:20::7";
    let six = |address| Inner::Ip6(place(address));
    let ways: [(&[&str], Inner, &[&str]); 16] = [
        (&[OUT, "fc00::1"], Inner::Udp, &["sr-localsid", "ip6-rewrite"]),
        (&[OUT, "fc00::2"], Inner::Udp, &["sr-localsid", "ip6-rewrite"]),
        (&["fc00::2"], six(OUT), &["sr-localsid", "ip6-rewrite"]),
        (&["fc00::2"], Inner::Ip4, &["sr-localsid", "ip4-rewrite"]),
        (&[OUT, "fc00::3"], Inner::Udp, &["sr-localsid-x", "ip6-rewrite"]),
        (&[OUT, "fc00::5"], Inner::Udp, &["sr-localsid", "ip6-rewrite"]),
        (&["fc00::6"], Inner::Ip4, &["sr-localsid-dx", "ip4-rewrite"]),
        (&["fc00::7"], six("fd00:1::9"), &["sr-localsid-dx", "ip6-rewrite"]),
        (&["fc00::8"], Inner::Ip4, &["sr-localsid-dt", "ip4-rewrite"]),
        (&["fc00::9"], six(OUT), &["sr-localsid-dt", "ip6-rewrite"]),
        (&["fc00::b"], Inner::Frame, &["sr-localsid-dx2"]),
        (&[OUT, "fc00::c"], Inner::Udp, &["sr-pl-rewrite-b-encaps"]),
        (&[OUT, "fc00::d"], Inner::Udp, &["sr-pl-rewrite-b-insert"]),
        (&[OUT, "fc00:0:10:30::"], Inner::Udp, &["sr-next-csid", "ip6-rewrite"]),
        (&["fc00:0:11::"], six(OUT), &["sr-next-csid", "ip6-rewrite"]),
        (&[OUT, "fc00:0:12:30::"], Inner::Udp, &["sr-next-csid-x", "ip6-rewrite"]),
    ];
    let sent = |list: &[&str], inner| {
        let list: Vec<usize> = list.iter().map(|address| place(address)).collect();
        let (to, left) = (list[list.len() - 1], list.len() as u8 - 1);
        Sent { to, list: Some(list), left, inner, payload: 26, fault: Fault::None }
    };
    ways.into_iter().map(|(list, inner, nodes)| (sent(list, inner), nodes)).collect()
}

#[test]
fn vectors_to_one_kind_of_sid_go_through_in_one_pass() {
    let mut router = router(Settings::default());
    let mac = mac(&mut router, "e0");
    for (sent, behind) in ways() {
        let to = ADDRESSES[sent.to];
        router.cli("clear runtime");
        for _ in 0..ROUNDS {
            (0..PACKETS).for_each(|_| router.inject("e0", &frame(&sent, mac)));
            router.run();
        }
        assert_one_pass(&mut router, &["ethernet-input", "ip6-input", "ip6-lookup"], to);
        assert_one_pass(&mut router, behind, to);
    }
}

#[test]
fn what_comes_from_one_side_goes_its_way_while_other_things_come_from_the_other() {
    let mut router = router(Settings::default());
    let (mac, other, ways) = (mac(&mut router, "e0"), mac(&mut router, "e1"), ways());
    let [there, back] = [&ways[0].0, &ways[4].0]; // End, End.X
    for _ in 0..ROUNDS {
        (0..PACKETS).for_each(|_| router.inject("e0", &frame(there, mac)));
        (0..PACKETS).for_each(|_| router.inject("e1", &frame(back, other)));
        router.run();
    }
    assert_one_pass(&mut router, &["sr-localsid", "sr-localsid-x"], "beside the other");
}

#[test]
fn a_traced_packet_shows_every_node_of_its_way() {
    let mut router = router(Settings::default());
    let mac = mac(&mut router, "e0");
    for (sent, behind) in ways() {
        let to = ADDRESSES[sent.to];
        (0..5).for_each(|_| router.inject("e0", &frame(&sent, mac)));
        router.run();
        router.cli("clear trace");
        router.cli("trace add test-input 5");
        (0..5).for_each(|_| router.inject("e0", &frame(&sent, mac)));
        router.run();
        let trace = router.cli("show trace");
        for name in ["ethernet-input", "ip6-input", "ip6-lookup"].iter().chain(behind) {
            assert!(trace.contains(name), "{name} is not in the trace of {to}:\n{trace}");
        }
    }
}
