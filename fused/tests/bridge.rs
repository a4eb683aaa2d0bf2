//! Frames good and bad through a bridge domain with a routed interface, in every form of the
//! router: what comes out, what is counted, what is learned and why frames die must be the same
//! node by node and in one pass, on every variant.

use proptest::prelude::*;
use quiver_testkit::{Register, Router, Settings};
use quiver_wire::{Header, Ip4Header, checksum};

use crate::fixture::{self, Seen, alike, mac, seen_of};

const FEATURES: [Register; 4] = [
    quiver_bridge::register,
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_fused::register,
];

const PORTS: [&str; 4] = ["e0", "e1", "e2", "e3"];

/// A frame: from which port, whose, to whom, and what is wrong with it.
#[derive(Clone, Copy, Debug)]
struct Sent {
    from: usize,
    to: usize,
    length: usize,
    ip4: bool,
}

/// Stations of the domain: 0 to 11; then a filter, the router, broadcast, a group, a group of the
/// link, zero.
const ADDRESSES: usize = 18;

fn address(number: usize) -> [u8; 6] {
    match number {
        12 => [2, 0, 0, 0, 0, 0x66],
        13 => [2, 0, 0, 0, 0, 0xaa],
        14 => [0xff; 6],
        15 => [1, 0, 0x5e, 1, 2, 3],
        16 => [1, 0x80, 0xc2, 0, 0, 3],
        17 => [0; 6],
        station => [2, 0, 0, 0, 1, station as u8],
    }
}

fn sent() -> impl Strategy<Value = Sent> {
    let number = || prop_oneof![12 => 0..12usize, 1 => 12..ADDRESSES];
    let length = prop_oneof![1 => 0..20usize, 12 => 60..70usize, 1 => 2100..4000usize];
    (number(), number(), length, any::<bool>()).prop_map(|(from, to, length, ip4)| Sent {
        from,
        to,
        length,
        ip4,
    })
}

/// What happens between vectors.
#[derive(Clone, Debug)]
enum Step {
    Frames { port: usize, frames: Vec<Sent> },
    Command(&'static str),
    Minute,
}

const COMMANDS: [&str; 12] = [
    "l2fib flush-mac all",
    "l2fib flush-mac interface e1",
    "set interface l2 bridge e2 1 1",
    "set interface l2 bridge e2 1 2",
    "set interface l2 bridge e3 2",
    "set interface l2 bridge e3 1",
    "set bridge-domain learn 1 disable",
    "set bridge-domain learn 1",
    "set bridge-domain uu-flood 1 disable",
    "set bridge-domain learn-limit 1 6",
    "set bridge-domain arp term 1",
    "l2fib add 02:00:00:00:01:02 1 e1 static",
];

fn step() -> impl Strategy<Value = Step> {
    let frames = proptest::collection::vec(sent(), 1..200);
    prop_oneof![
        6 => (0..PORTS.len(), frames).prop_map(|(port, frames)| Step::Frames { port, frames }),
        3 => (0..COMMANDS.len()).prop_map(|number| Step::Command(COMMANDS[number])),
        1 => Just(Step::Minute),
    ]
}

/// Its packet is of one flow with those of other frames between the same stations only: a bridge
/// keeps the order of these, and not that of flooded frames and others (IEEE 802.1Q-2022, 8.6.6).
fn frame(sent: Sent) -> Vec<u8> {
    let mut frame = address(sent.to).to_vec();
    frame.extend(address(sent.from));
    if sent.ip4 {
        let behind = vec![0; sent.length.max(34) - 34];
        let header =
            fixture::ip4([10, 0, 1, sent.from as u8], [20, 0, 0, sent.to as u8], 64, true, &behind);
        frame.extend([8, 0]);
        frame.extend(&header[..20]);
    } else {
        frame.extend([0x88, 0xb5]);
    }
    frame.resize(sent.length.max(frame.len() * usize::from(sent.length > 20)), 0x5a);
    frame.truncate(sent.length.max(1));
    frame
}

fn router(settings: Settings) -> Router {
    let mut router = fixture::router(settings, &FEATURES, &PORTS, &[]);
    for name in PORTS {
        router.cli(&format!("set interface l2 bridge {name} 1"));
    }
    router.interface("e9");
    for line in [
        "create loopback interface mac 02:00:00:00:00:aa instance 0",
        "set interface state loop0 up",
        "set interface l2 bridge loop0 1 bvi",
        "set interface ip address loop0 10.0.0.1/24",
        "ip neighbor loop0 10.0.0.2 02:00:00:00:01:00 static",
        "set interface ip address e9 10.9.0.1/24",
        "ip neighbor e9 10.9.0.2 02:00:00:00:00:99 static",
        "ip route add 20.0.0.0/8 via 10.9.0.2 e9",
        "ip route add 21.0.0.0/8 via 10.0.0.2 loop0",
        "set bridge-domain mac-age 1 1",
        "l2fib add 02:00:00:00:00:66 1 filter",
    ] {
        router.cli(line);
    }
    router
}

/// All that can be seen from outside, and what is known of stations.
fn seen(router: &mut Router) -> (Seen, String) {
    let table = router.json("show l2fib all");
    let known = format!("{} {}", table["entries"], table["learned"]);
    (seen_of(router, &["e0", "e1", "e2", "e3", "e9"]), known)
}

fn run(settings: Settings, steps: &[Step]) -> (Seen, String) {
    let mut router = router(settings);
    for step in steps {
        match step {
            Step::Frames { port, frames } => {
                frames.iter().for_each(|sent| router.inject(PORTS[*port], &frame(*sent)));
                router.run();
            }
            Step::Command(line) => {
                // Some are refused: a port that is in another domain.
                let _ = router.execute(line);
            }
            Step::Minute => router.advance(std::time::Duration::from_secs(60)),
        }
    }
    seen(&mut router)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_form_says_the_same(steps in proptest::collection::vec(step(), 1..10)) {
        alike(|form| run(form, &steps))?;
    }
}

fn fused(router: &mut Router, node: &str) -> u64 {
    fixture::totals(router, node).fused
}

#[test]
fn known_frames_go_through_in_one_pass_with_learning_and_without() {
    for learn in [true, false] {
        let mut router = router(Settings::default());
        let there = Sent { from: 0, to: 1, length: 60, ip4: false };
        router.send("e1", &frame(Sent { from: 1, to: 14, ..there }));
        router.send("e0", &frame(Sent { from: 0, to: 14, ..there }));
        if !learn {
            router.cli("set bridge-domain learn 1 disable");
        }
        for _ in 0..10 {
            (0..200).for_each(|_| router.inject("e0", &frame(there)));
            router.run();
        }
        assert_eq!(router.sent("e1").len(), 2001);
        for (node, on) in
            [("l2-input", true), ("l2-learn", learn), ("l2-fwd", true), ("e1-output", true)]
        {
            assert_eq!(fused(&mut router, node) >= 8, on, "{node}, learning {learn}");
        }
    }
}

#[test]
fn what_is_routed_into_and_out_of_a_bridge_goes_through_in_one_pass_on_both_sides() {
    let mut router = router(Settings::default());
    let station = Sent { from: 0, to: 14, length: 60, ip4: false };
    router.send("e0", &frame(station));
    let into = frame(Sent { from: 0, to: 13, length: 60, ip4: true });
    for _ in 0..10 {
        (0..200).for_each(|_| router.inject("e0", &into));
        router.run();
    }
    assert_eq!(router.sent("e9").len(), 2000);
    for node in ["l2-input", "l2-fwd", "ethernet-input", "ip4-rewrite", "e9-output"] {
        assert!(fused(&mut router, node) >= 8, "{node}");
    }
    let own = mac(&mut router, "e9");
    let mut out = frame(Sent { from: 5, to: 1, length: 60, ip4: true });
    out[..6].copy_from_slice(&own);
    out[30] = 21;
    let header = Ip4Header::overlay_mut(&mut out[14..]).expect("an IPv4 header");
    header.set_checksum(0);
    let sum = checksum::header_checksum(header);
    header.set_checksum(sum);
    let before = fused(&mut router, "l2-fwd");
    for _ in 0..10 {
        (0..200).for_each(|_| router.inject("e9", &out));
        router.run();
    }
    assert_eq!(router.sent("e0").len(), 2000);
    assert!(fused(&mut router, "l2-fwd") >= before + 8);
}
