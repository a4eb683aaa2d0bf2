//! Labelled packets through every form of the router: swapped, taken off, with and without a route,
//! with stacks that never end, cut off, or with flipped bits.

use proptest::prelude::*;
use quiver_testkit::{Register, Settings};

use crate::fixture::{self, Seen, alike, ethernet, mac, seen_of, without_identifications};

const FEATURES: [Register; 5] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_mpls::register,
    quiver_fused::register,
];

const SETUP: [&str; 23] = [
    "set interface ip address e0 10.0.0.1/24",
    "set interface ip address e1 10.0.1.1/24",
    "set interface ip address e0 fd00::1/64",
    "set interface ip address e1 fd00:1::1/64",
    "ip neighbor e0 10.0.0.2 02:00:00:00:00:a0 static",
    "ip neighbor e1 10.0.1.2 02:00:00:00:00:b1 static",
    "ip neighbor e0 fd00::2 02:00:00:00:00:a0 static",
    "ip route add 20.0.0.0/8 via 10.0.1.2 e1",
    "ip route add 21.0.0.0/8 via 10.0.1.2 e1 out-labels 900",
    "ip route add 22.0.0.0/8 via 10.0.1.2 e1 out-labels 900 901 uniform",
    "ip route add fd00:2::/64 via 10.0.1.2 e1 out-labels 902",
    "mpls table add 0",
    "set interface mpls e0 enable",
    "mpls local-label add 16 eos via 10.0.1.2 e1 out-labels 100",
    "mpls local-label add 16 non-eos via 10.0.1.2 e1 out-labels 100",
    "mpls local-label add 17 eos via 10.0.1.2 e1",
    "mpls local-label add 17 non-eos via 10.0.1.2 e1",
    "mpls local-label add 18 eos via ip4-lookup-in-table 0",
    "mpls local-label add 18 non-eos via mpls-lookup-in-table 0",
    "mpls local-label add 19 eos via ip6-lookup-in-table 0 uniform",
    "mpls local-label add 20 eos via 10.0.1.2 e1 out-labels 1 2 3 4 5 6 uniform",
    "mpls local-label add 21 eos via 10.0.1.2 e1 out-labels 50 via 10.0.0.2 e0 out-labels 51",
    "mpls local-label add 22 eos via rx-ip4 e0",
];

/// A frame: its labels with TTLs, what is behind them, and what is wrong.
#[derive(Clone, Debug)]
struct Sent {
    labels: Vec<(u32, u8)>,
    six: bool,
    network: u8,
    hops: u8,
    payload: usize,
    cut: Option<usize>,
    flip: Option<(usize, u8)>,
}

fn sent() -> impl Strategy<Value = Sent> {
    let label = prop_oneof![12 => 15u32..24, 1 => 0u32..16, 1 => Just(4_000u32)];
    let ttl = prop_oneof![8 => Just(64u8), 1 => 0u8..4];
    let labels = prop_oneof![
        8 => prop::collection::vec((label.clone(), ttl.clone()), 0..4),
        1 => prop::collection::vec((label, ttl), 15..20),
    ];
    let payload = prop_oneof![8 => 8..64usize, 1 => 1400..1600usize];
    let cut = prop_oneof![8 => Just(None), 1 => (0..80usize).prop_map(Some)];
    let flip = prop_oneof![8 => Just(None), 1 => (0..60usize, 0..8u8).prop_map(Some)];
    (labels, any::<bool>(), 19u8..24, 0u8..5, payload, cut, flip).prop_map(
        |(labels, six, network, hops, payload, cut, flip)| {
            let hops = if hops < 4 { 64 } else { 1 };
            Sent { labels, six, network, hops, payload, cut, flip }
        },
    )
}

fn frame(sent: &Sent, mac: [u8; 6]) -> Vec<u8> {
    let datagram = fixture::udp(sent.payload, 0);
    let (kind, packet) = match sent.six {
        true => (0x86dd, fixture::ip6("fd00::2", "fd00:2::7", 17, sent.hops, &datagram)),
        false => {
            let to = [sent.network, 0, 0, 7];
            (0x0800, fixture::ip4([10, 0, 0, 2], to, sent.hops, true, &datagram))
        }
    };
    let entry = |(place, (label, ttl)): (usize, &(u32, u8))| {
        let is_last = place + 1 == sent.labels.len();
        (label << 12 | u32::from(is_last) << 8 | u32::from(*ttl)).to_be_bytes()
    };
    let stack: Vec<u8> = sent.labels.iter().enumerate().flat_map(entry).collect();
    let kind = if stack.is_empty() { kind } else { 0x8847 };
    let mut frame = ethernet(mac, kind, &[stack, packet].concat());
    if let Some((byte, bit)) = sent.flip
        && let Some(byte) = frame.get_mut(14 + byte)
    {
        *byte ^= 1 << bit;
    }
    if let Some(length) = sent.cut {
        frame.truncate(length);
    }
    frame
}

fn run(settings: Settings, vectors: &[Vec<Sent>]) -> Seen {
    let mut router = fixture::router(settings, &FEATURES, &["e0", "e1"], &SETUP);
    let mac = mac(&mut router, "e0");
    for vector in vectors {
        vector.iter().for_each(|sent| router.inject("e0", &frame(sent, mac)));
        router.run();
    }
    let mut seen = without_identifications(seen_of(&mut router, &["e0", "e1"]));
    // Errors about packets of several flows, which pass different nodes, leave in any order.
    seen.frames.iter_mut().for_each(|frames| frames.sort());
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn labelled_packets_meet_the_same_fate_in_every_form(
        vectors in prop::collection::vec(prop::collection::vec(sent(), 1..160), 1..3)
    ) {
        alike(|form| run(form, &vectors))?;
    }
}
