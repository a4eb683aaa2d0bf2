//! Packets of one flow leave in the order in which they came, although some of them take a slow
//! path: those that are cut, that lie in several buffers, and that wait for their other fragments.

use proptest::prelude::*;
use quiver_testkit::{Register, Router, Settings};
use quiver_wire::{Header, Ip4Header, checksum};

use crate::fixture::{self, ethernet, forms, mac};

const FEATURES: [Register; 4] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_fused::register,
];

const SETUP: [&str; 5] = [
    "set interface ip address e0 10.0.0.1/24",
    "set interface ip address e1 10.0.1.1/24",
    "ip neighbor e1 10.0.1.2 02:00:00:00:00:b1 static",
    "ip route add 20.0.0.0/8 via 10.0.1.2 e1",
    "set interface mtu packet 1000 e1",
];

/// Bytes of the Ethernet header.
const ETHERNET_BYTES: usize = 14;

/// What arrives under one identification.
#[derive(Clone, Copy, Debug)]
enum Sent {
    /// A datagram of so many bytes.
    Whole(usize),
    /// Two fragments of 64 bytes and of 8.
    Fragments,
}

fn sent() -> impl Strategy<Value = Sent> {
    prop_oneof![
        8 => (8..64usize).prop_map(Sent::Whole),
        1 => (1400..1600usize).prop_map(Sent::Whole),
        1 => (2100..4000usize).prop_map(Sent::Whole),
        1 => Just(Sent::Fragments),
    ]
}

/// A packet of the flow; `fragment` holds the flags and the offset.
fn frame(to: [u8; 6], identification: usize, fragment: u16, behind: &[u8]) -> Vec<u8> {
    let mut packet = fixture::ip4([10, 0, 0, 2], [20, 0, 0, 7], 64, true, behind);
    packet[4..6].copy_from_slice(&(identification as u16).to_be_bytes());
    packet[6..8].copy_from_slice(&fragment.to_be_bytes());
    let header = Ip4Header::overlay_mut(&mut packet).expect("an IPv4 header");
    header.set_checksum(0);
    let sum = checksum::header_checksum(header);
    header.set_checksum(sum);
    ethernet(to, 0x0800, &packet)
}

/// The frames of each in turn.
fn frames(to: [u8; 6], sent: &[Sent]) -> Vec<Vec<u8>> {
    const MORE_FRAGMENTS: u16 = 0x2000;
    let each = sent.iter().enumerate().flat_map(|(identification, sent)| match sent {
        Sent::Whole(payload) => vec![frame(to, identification, 0, &fixture::udp(*payload, 0))],
        Sent::Fragments => {
            let datagram = fixture::udp(72, 0);
            let (first, second) = datagram.split_at(64);
            vec![
                frame(to, identification, MORE_FRAGMENTS, first),
                frame(to, identification, 64 / 8, second),
            ]
        }
    });
    each.collect()
}

/// Identification and offset of what has left, in its order.
fn left(router: &mut Router) -> Vec<(u16, u16)> {
    let sent = router.sent("e1");
    let header = |frame: &Vec<u8>| {
        let header = Ip4Header::overlay(&frame[ETHERNET_BYTES..]).expect("an IPv4 header");
        (header.identification(), header.fragment_offset())
    };
    sent.iter().map(header).collect()
}

fn router(form: Settings, more: &[&str]) -> Router {
    let mut router = fixture::router(form, &FEATURES, &["e0", "e1"], &SETUP);
    more.iter().for_each(|line| drop(router.cli(line)));
    router
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_flow_keeps_its_order_whichever_paths_its_packets_take(
        vectors in proptest::collection::vec(proptest::collection::vec(sent(), 1..100), 1..3),
        more in proptest::sample::select(vec![
            vec![],
            vec!["set interface l2 xconnect e0 e1"],
            vec!["test l2patch rx e0 tx e1"],
            vec!["set interface reassembly e0 virtual on"],
        ]),
    ) {
        for form in forms() {
            let mut router = router(form, &more);
            let to = mac(&mut router, "e0");
            for vector in &vectors {
                frames(to, vector).iter().for_each(|frame| router.inject("e0", frame));
                router.run();
                let seen = left(&mut router);
                prop_assert!(seen.len() >= vector.len(), "{} of {} in {form:?}", seen.len(), vector.len());
                prop_assert!(seen.is_sorted(), "{seen:?} in {form:?} with {more:?}");
            }
        }
    }
}

#[test]
fn what_is_put_together_of_fragments_keeps_its_place_in_the_flow() {
    for form in forms() {
        let mut router = router(form, &["set interface reassembly e0 full on"]);
        let to = mac(&mut router, "e0");
        let small = Sent::Whole(30);
        for _ in 0..4 {
            let vector = [
                small,
                Sent::Fragments,
                small,
                small,
                Sent::Fragments,
                small,
                Sent::Whole(1500),
                small,
            ];
            frames(to, &vector).iter().for_each(|frame| router.inject("e0", frame));
            router.run();
            let seen = left(&mut router);
            assert_eq!(seen.len(), 9, "all whole but the one that is cut in two");
            assert!(seen.is_sorted(), "{seen:?} in {form:?}");
        }
    }
}
