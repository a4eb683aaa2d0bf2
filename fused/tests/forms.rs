//! A vector of good and bad packets through every form of the router: what comes out, what is
//! counted and why packets die must be the same node by node and in one pass, on every variant.

use proptest::prelude::*;
use quiver_testkit::{Register, Router, Settings};

use crate::fixture::{
    self, Fault, PACKETS, ROUNDS, Seen, alike, assert_one_pass, ethernet, in_any_order, mac, seen,
    totals, without_identifications,
};

const FEATURES: [Register; 6] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_srv6::register,
    quiver_urpf::register,
    quiver_fused::register,
];

/// What can be wrong with a frame beside what can be with any packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    OtherMac,
    Broadcast,
    EtherType(u16),
}

/// A packet: where to, how long, and what is wrong with it.
#[derive(Clone, Debug)]
struct Sent {
    six: bool,
    destination: usize,
    payload: usize,
    fault: Fault<Wrong>,
}

fn fault() -> impl Strategy<Value = Fault<Wrong>> {
    prop_oneof![
        8 => Just(Fault::None),
        1 => Just(Fault::Other(Wrong::OtherMac)),
        1 => Just(Fault::Other(Wrong::Broadcast)),
        1 => any::<u16>().prop_map(|value| Fault::Other(Wrong::EtherType(value))),
        1 => (0..80usize).prop_map(Fault::Cut),
        1 => (1..40usize).prop_map(Fault::Padding),
        1 => (0..3u8).prop_map(Fault::HopsLeft),
        4 => (0..80usize, 0..8u8).prop_map(|(byte, bit)| Fault::Flip { byte, bit }),
    ]
}

fn sent() -> impl Strategy<Value = Sent> {
    let payload = prop_oneof![8 => 8..64usize, 1 => 1400..1600usize, 1 => 2100..4000usize];
    (any::<bool>(), 0..DESTINATIONS4.len(), payload, fault())
        .prop_map(|(six, destination, payload, fault)| Sent { six, destination, payload, fault })
}

/// Reachable by one next hop, by two, by none, a drop route, ourselves, a neighbour, a broadcast.
const DESTINATIONS4: [[u8; 4]; 7] = [
    [20, 0, 0, 7],
    [21, 0, 0, 7],
    [99, 0, 0, 1],
    [22, 0, 0, 1],
    [10, 0, 0, 1],
    [10, 0, 1, 2],
    [10, 0, 1, 255],
];
const DESTINATIONS6: [&str; 7] = [
    "2001:db8:20::7",
    "2001:db8:21::7",
    "2001:db9::1",
    "2001:db8:22::1",
    "fd00::1",
    "fd00:1::2",
    "ff02::1",
];

const SETUP: [&str; 18] = [
    "set interface ip address e0 10.0.0.1/24",
    "set interface ip address e1 10.0.1.1/24",
    "set interface ip address e2 10.0.2.1/24",
    "set interface ip address e0 fd00::1/64",
    "set interface ip address e1 fd00:1::1/64",
    "set interface ip address e2 fd00:2::1/64",
    "ip neighbor e0 10.0.0.2 02:00:00:00:00:a0 static",
    "ip neighbor e1 10.0.1.2 02:00:00:00:00:b1 static",
    "ip neighbor e2 10.0.2.2 02:00:00:00:00:c2 static",
    "ip neighbor e0 fd00::2 02:00:00:00:00:a0 static",
    "ip neighbor e1 fd00:1::2 02:00:00:00:00:b1 static",
    "ip neighbor e2 fd00:2::2 02:00:00:00:00:c2 static",
    "ip route add 20.0.0.0/8 via 10.0.1.2 e1",
    "ip route add 21.0.0.0/8 via 10.0.1.2 e1 via 10.0.2.2 e2",
    "ip route add 22.0.0.0/8 via drop",
    "ip route add 2001:db8:20::/48 via fd00:1::2 e1",
    "ip route add 2001:db8:21::/48 via fd00:1::2 e1 via fd00:2::2 e2",
    "ip route add 2001:db8:22::/48 via drop",
];

fn router(settings: Settings) -> Router {
    fixture::router(settings, &FEATURES, &["e0", "e1", "e2"], &SETUP)
}

fn frame(sent: &Sent, mac: [u8; 6]) -> Vec<u8> {
    let (hops, datagram) = (sent.fault.hops(), fixture::udp(sent.payload, 0));
    let mut frame = match sent.six {
        true => {
            let to = DESTINATIONS6[sent.destination];
            ethernet(mac, 0x86dd, &fixture::ip6("fd00::2", to, 17, hops, &datagram))
        }
        false => {
            let to = DESTINATIONS4[sent.destination];
            ethernet(mac, 0x0800, &fixture::ip4([10, 0, 0, 2], to, hops, true, &datagram))
        }
    };
    match sent.fault {
        Fault::Other(Wrong::OtherMac) => frame[..6].copy_from_slice(&[2, 9, 9, 9, 9, 9]),
        Fault::Other(Wrong::Broadcast) => frame[..6].fill(0xff),
        Fault::Other(Wrong::EtherType(value)) => {
            frame[12..14].copy_from_slice(&value.to_be_bytes())
        }
        fault => fault.spoil(&mut frame),
    }
    frame
}

fn run(settings: Settings, vectors: &[Vec<Sent>], features: &[&str]) -> Seen {
    let mut router = router(settings);
    features.iter().for_each(|line| {
        router.cli(line);
    });
    let mac = mac(&mut router, "e0");
    for vector in vectors {
        vector.iter().for_each(|sent| router.inject("e0", &frame(sent, mac)));
        router.run();
    }
    seen(&mut router)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_form_says_the_same(
        vectors in proptest::collection::vec(proptest::collection::vec(sent(), 1..200), 1..4)
    ) {
        alike(|form| run(form, &vectors, &[]))?;
    }

    #[test]
    fn cross_connects_say_the_same(
        vectors in proptest::collection::vec(proptest::collection::vec(sent(), 1..200), 1..3),
        patch in any::<bool>(),
    ) {
        let line = if patch { "test l2patch rx e0 tx e1" } else { "set interface l2 xconnect e0 e1" };
        alike(|form| run(form, &vectors, &[line]))?;
    }
}

/// Sub-interfaces of e0 that route and that pass frames on, the port itself routes; and of e1 to
/// route out of.
const VLANS: [&str; 19] = [
    "create sub-interfaces e0 100",
    "create sub-interfaces e0 2 dot1ad 200 inner-dot1q 300 exact-match",
    "create sub-interfaces e0 3 dot1q 300",
    "create sub-interfaces e0 4",
    "create sub-interfaces e1 3 dot1q 300",
    "create sub-interfaces e1 100",
    "set interface state e0.100 up",
    "set interface state e0.2 up",
    "set interface state e0.3 up",
    "set interface state e1.3 up",
    "set interface state e1.100 up",
    "set interface ip address e0.100 10.0.100.1/24",
    "set interface ip address e0.100 fd00:100::1/64",
    "set interface ip address e0.2 10.0.200.1/24",
    "set interface ip address e1.100 10.1.100.1/24",
    "ip neighbor e1.100 10.1.100.2 02:00:00:00:00:b2 static",
    "set interface l2 xconnect e0.3 e1.3",
    "ip route del 20.0.0.0/8 via 10.0.1.2 e1",
    "ip route add 20.0.0.0/8 via 10.1.100.2 e1.100",
];

/// What stands between addresses and type: nothing, tags of each sub-interface, of one that is
/// down, of none, priorities, and too many.
const TAGS: [&[u8]; 10] = [
    &[],
    &[0x81, 0, 0, 100],
    &[0x81, 0, 0xe0, 100],
    &[0x88, 0xa8, 0, 200, 0x81, 0, 1, 44],
    &[0x81, 0, 1, 44],
    &[0x81, 0, 1, 44, 0x81, 0, 0, 5],
    &[0x81, 0, 0, 4],
    &[0x81, 0, 0, 101],
    &[0x81, 0, 0x20, 0],
    &[0x81, 0, 0, 100, 0x81, 0, 0, 100],
];

/// Vectors whose frames have all the same tags, or nearly all, or any.
fn tagged_vector() -> impl Strategy<Value = Vec<(usize, Sent)>> {
    let any_tags = 0..TAGS.len();
    (any_tags.clone(), 0..4u8, proptest::collection::vec((any_tags, 0..10u8, sent()), 1..200))
        .prop_map(|(usual, mixture, packets)| {
            let mixed = |often: u8| match mixture {
                0 => true,
                1 => often == 0,
                _ => false,
            };
            let tags = |(own, often, sent)| (if mixed(often) { own } else { usual }, sent);
            packets.into_iter().map(tags).collect()
        })
}

fn run_tagged(settings: Settings, vectors: &[Vec<(usize, Sent)>], more: &[&str]) -> Seen {
    let mut router = router(settings);
    VLANS.iter().chain(more).for_each(|line| {
        router.cli(line);
    });
    let mac = mac(&mut router, "e0");
    for vector in vectors {
        for (tags, sent) in vector {
            let mut frame = frame(sent, mac);
            let at = frame.len().min(12);
            frame.splice(at..at, TAGS[*tags].iter().copied());
            router.inject("e0", &frame);
        }
        router.run();
    }
    // What came in by different interfaces has no order.
    in_any_order(seen(&mut router))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn sub_interfaces_say_the_same(
        vectors in proptest::collection::vec(tagged_vector(), 1..4),
        more in proptest::sample::select(vec![
            "", "set interface l2 xconnect e0 e2", "test l2patch rx e0.3 tx e2", "test l2patch rx e0.100 tx e1.3",
            "set interface l2 tag-rewrite e0.3 push dot1ad 9", "create sub-interfaces e0 9 default",
            "create sub-interfaces e0 9 untagged", "set interface state e1 down",
        ]),
    ) {
        let more: Vec<&str> = more.split_terminator('\n').collect();
        alike(|form| run_tagged(form, &vectors, &more))?;
    }
}

#[test]
fn vectors_of_one_vlan_go_through_in_one_pass_whether_routed_or_passed_on() {
    let mut router = router(Settings::default());
    VLANS.iter().for_each(|line| drop(router.cli(line)));
    let mac = mac(&mut router, "e0");
    let sent = Sent { six: false, destination: 0, payload: 26, fault: Fault::None };
    for tags in [TAGS[1], TAGS[3], TAGS[0], TAGS[4]] {
        router.cli("clear runtime");
        for _ in 0..ROUNDS {
            let mut frame = frame(&sent, mac);
            frame.splice(12..12, tags.iter().copied());
            (0..PACKETS).for_each(|_| router.inject("e0", &frame));
            router.run();
        }
        let last = if tags == TAGS[4] { "l2-xconnect" } else { "ip4-rewrite" };
        assert_one_pass(
            &mut router,
            &["vlan-input", last, "sub-interface-output", "e1-output"],
            "",
        );
    }
}

#[test]
fn a_vector_of_good_packets_goes_through_in_one_pass() {
    let mut router = router(Settings::default());
    let mac = mac(&mut router, "e0");
    let sent = Sent { six: false, destination: 0, payload: 26, fault: Fault::None };
    for round in 0..64 {
        (0..200).for_each(|_| router.inject("e0", &frame(&sent, mac)));
        router.run();
        assert!(
            round > 0 || totals(&mut router, "ip4-rewrite").clocks > 0,
            "from the first vector on"
        );
    }
    for name in ["ethernet-input", "ip4-input", "ip4-lookup", "ip4-rewrite", "e1-output"] {
        let totals = totals(&mut router, name);
        assert_eq!((totals.calls, totals.vectors, totals.fused), (64, 64 * 200, 64), "{name}");
        assert!(totals.clocks > 0, "{name} has its share of the clocks");
    }
}

#[test]
fn features_of_an_interface_are_part_of_the_pass() {
    let mut router = router(Settings::default());
    router.cli("set urpf ip6 rx loose e0");
    router.cli("set interface reassembly e0 virtual on");
    let mac = mac(&mut router, "e0");
    let sent = Sent { six: true, destination: 0, payload: 26, fault: Fault::None };
    for _ in 0..8 {
        (0..200).for_each(|_| router.inject("e0", &frame(&sent, mac)));
        router.run();
    }
    let features = ["ip6-sv-reassembly-feature", "ip6-rx-urpf"];
    for name in ["ethernet-input", "ip6-input", "ip6-lookup", "ip6-rewrite"].iter().chain(&features)
    {
        let totals = totals(&mut router, name);
        assert_eq!((totals.vectors, totals.fused), (8 * 200, 8), "{name}");
    }
}

#[test]
fn a_traced_vector_goes_node_by_node() {
    let mut router = router(Settings::default());
    router.cli("trace add test-input 5");
    let mac = mac(&mut router, "e0");
    let sent = Sent { six: false, destination: 0, payload: 26, fault: Fault::None };
    (0..5).for_each(|_| router.inject("e0", &frame(&sent, mac)));
    router.run();
    let trace = router.cli("show trace");
    for name in ["ethernet-input", "ip4-input", "ip4-lookup", "ip4-rewrite", "e1-output", "e1-tx"] {
        assert!(trace.contains(name), "{name} is not in the trace:\n{trace}");
    }
}

/// Policies of every behaviour, with lists that share flows, and what goes into them.
const POLICIES: [&str; 9] = [
    "set sr encaps source addr fd00:1::1",
    "ip route add fc00::/16 via fd00:1::2 e1",
    "ip route add fc01::/16 via fd00:1::2 e1 via fd00:2::2 e2",
    "sr policy add bsid fc00:f::1 next fc00::1 next fc00::2 weight 2 encap",
    "sr policy mod bsid fc00:f::1 add sl next fc01::3",
    "sr policy add bsid fc00:f::2 next fc00::1 next fc00::2 insert",
    "sr steer l3 2001:db8:20::/48 via bsid fc00:f::1",
    "sr steer l3 20.0.0.0/8 via bsid fc00:f::1",
    "sr steer l3 2001:db8:21::/48 via bsid fc00:f::2",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn policies_say_the_same(
        vectors in proptest::collection::vec(proptest::collection::vec(sent(), 1..200), 1..4),
        more in proptest::sample::select(vec![
            "", "sr steer l2 e0 via bsid fc00:f::1", "set interface mtu packet 1400 e1",
            "sr policy mod bsid fc00:f::1 del sl index 1", "set sr encaps hop-limit propagate",
        ]),
    ) {
        let lines: Vec<&str> = POLICIES.into_iter().chain(more.split_terminator('\n')).collect();
        alike(|form| without_identifications(run(form, &vectors, &lines)))?;
    }
}
