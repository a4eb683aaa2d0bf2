//! The whole router: every feature that can be switched on in an arc of an interface, singly and in
//! pairs, in each mode that an interface can be in, with frames of every kind. Whatever the pair:
//! packets die in a counted way or leave, no buffer is lost, none circulates, and the block driver
//! changes nothing.

use std::time::Duration;

use quiver_testkit::{Router, Settings, flow};

/// Where frames come in; its address.
const OWN: [u8; 6] = [2, 0xfe, 0, 0, 0, 0];
const HOST: [u8; 6] = [2, 0, 0, 0, 0, 0xa0];
/// Frames of one kind in a vector.
const COPIES: usize = 4;

/// A mode that interfaces can be in: what makes it, and the interfaces on which features are
/// switched on.
struct Mode {
    name: &'static str,
    lines: &'static [&'static str],
    on: &'static [&'static str],
}

/// Behind [`COMMON`].
static MODES: [Mode; 7] = [
    Mode { name: "routed", lines: &[], on: &["e0", "e1"] },
    Mode {
        name: "routed with sub-interfaces",
        lines: &[
            "create sub-interfaces e0 5 dot1q 5 exact-match",
            "set interface state e0.5 up",
            "set interface ip address e0.5 10.5.0.1/24",
            "set interface ip address e0.5 2001:db8:5::1/64",
        ],
        on: &["e0", "e1"],
    },
    Mode {
        name: "sub-interface",
        lines: &[
            "create sub-interfaces e0 5 dot1q 5 exact-match",
            "set interface state e0.5 up",
            "set interface ip address e0.5 10.5.0.1/24",
            "set interface ip address e0.5 2001:db8:5::1/64",
        ],
        on: &["e0.5", "e1"],
    },
    Mode {
        name: "bridged",
        lines: &[
            "create bridge-domain 1",
            "set interface l2 bridge e0 1",
            "set interface l2 bridge e2 1",
            "create loopback interface mac 02:fe:00:00:00:fe instance 0",
            "set interface state loop0 up",
            "set interface l2 bridge loop0 1 bvi",
            "set interface ip address loop0 10.7.0.1/24",
        ],
        on: &["e0", "e2", "loop0"],
    },
    Mode {
        name: "bridged sub-interface",
        lines: &[
            "create bridge-domain 1",
            "create sub-interfaces e0 5 dot1q 5",
            "set interface state e0.5 up",
            "set interface l2 bridge e0.5 1",
            "set interface l2 bridge e2 1",
        ],
        on: &["e0", "e0.5", "e2"],
    },
    Mode {
        name: "cross-connected",
        lines: &["set interface l2 xconnect e0 e2", "set interface l2 xconnect e2 e0"],
        on: &["e0", "e2"],
    },
    Mode {
        name: "bond",
        lines: &[
            "create bond mode xor",
            "set interface state BondEthernet0 up",
            "bond add BondEthernet0 e0",
            "set interface ip address BondEthernet0 10.6.0.1/24",
            "set interface ip address BondEthernet0 2001:db8:6::1/64",
        ],
        on: &["e0", "BondEthernet0", "e1"],
    },
];

const COMMON: [&str; 8] = [
    "set interface ip address e1 10.0.1.1/24",
    "set interface ip address e1 2001:db8:1::1/64",
    "ip neighbor e1 10.0.1.2 02:00:00:00:00:b1 static",
    "ip neighbor e1 2001:db8:1::2 02:00:00:00:00:b1 static",
    "ip route add 192.0.2.0/24 via 10.0.1.2",
    "ip route add 2001:db8:2::/48 via 2001:db8:1::2 e1",
    "ip route add 198.51.100.0/24 via drop",
    "set interface promiscuous on e0",
];

fn ip4(to: [u8; 4], ttl: u8) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 36, 0, 1, 0, 0, ttl, 17, 0, 0, 10, 0, 0, 2];
    packet.extend(to);
    let sum = packet
        .chunks(2)
        .fold(0u32, |sum, pair| sum + u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend([0, 7, 0, 9, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    packet
}

fn ip6(to: [u16; 8], hops: u8) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 16, 17, hops];
    packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    packet.extend(to.iter().flat_map(|word| word.to_be_bytes()));
    packet.extend([0, 7, 0, 9, 0, 16, 0x12, 0x34, 1, 2, 3, 4, 5, 6, 7, 8]);
    packet
}

fn arp() -> Vec<u8> {
    let mut packet = vec![0, 1, 8, 0, 6, 4, 0, 1];
    packet.extend(HOST);
    packet.extend([10, 0, 0, 2]);
    packet.extend([0; 6]);
    packet.extend([10, 0, 0, 1]);
    packet
}

/// What frames carry: destination, protocol, packet.
fn contents() -> Vec<([u8; 6], u16, Vec<u8>)> {
    let mut options = ip4([192, 0, 2, 1], 64);
    options.splice(20..20, [1, 1, 1, 0]);
    options[0] = 0x46;
    vec![
        ([0xff; 6], 0x806, arp()),
        (OWN, 0x800, ip4([192, 0, 2, 1], 64)),
        (OWN, 0x800, ip4([10, 0, 1, 1], 64)),
        (OWN, 0x800, ip4([192, 0, 2, 1], 1)),
        (OWN, 0x800, options),
        (HOST, 0x800, ip4([192, 0, 2, 1], 64)),
        ([1, 0, 0x5e, 1, 1, 1], 0x800, ip4([239, 1, 1, 1], 64)),
        ([0xff; 6], 0x800, ip4([255, 255, 255, 255], 64)),
        (OWN, 0x86dd, ip6([0x2001, 0xdb8, 2, 0, 0, 0, 0, 1], 64)),
        (OWN, 0x86dd, ip6([0x2001, 0xdb8, 1, 0, 0, 0, 0, 1], 64)),
        ([0x33, 0x33, 0, 0, 0, 1], 0x86dd, ip6([0xff02, 0, 0, 0, 0, 0, 0, 1], 255)),
        ([1, 0x80, 0xc2, 0, 0, 0xe], 0x88cc, vec![2, 7, 4, 0, 0, 0]),
        (OWN, 0x88b5, vec![7; 50]),
        (OWN, 20, vec![0xaa; 20]),
    ]
}

/// Frames of every kind: contents behind no tag, a known tag, an unknown one, two, a priority; cut
/// at each header.
fn frames() -> Vec<Vec<u8>> {
    let tags: [&[u8]; 5] = [
        &[],
        &[0x81, 0, 0, 5],
        &[0x81, 0, 0, 77],
        &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 77],
        &[0x81, 0, 0, 0],
    ];
    let mut all = Vec::new();
    for tags in tags {
        for (to, kind, content) in contents() {
            let frame = [&to[..], &HOST, tags, &kind.to_be_bytes(), &content].concat();
            let header = 14 + tags.len();
            if kind == 0x800 && content[0] == 0x45 && to == OWN {
                all.extend(
                    [0, 5, 12, 13, header, header + 10, header + 20]
                        .map(|cut| frame[..cut].to_vec()),
                );
            }
            all.push(frame);
        }
    }
    all.retain(|frame| !frame.is_empty());
    all
}

fn router(block_driver: bool, mode: &Mode) -> Router {
    let settings = Settings { block_driver, buffers: 4096, ..Settings::default() };
    let mut router = Router::with(settings, &[quiverd::features::built_in]);
    for name in ["e0", "e1", "e2"] {
        router.cli(&format!("create test interface {name}"));
        router.cli(&format!("set interface state {name} up"));
    }
    if mode.name.starts_with("routed") || mode.name == "sub-interface" {
        router.cli("set interface ip address e0 10.0.0.1/24");
        router.cli("set interface ip address e0 2001:db8::1/64");
    }
    COMMON.iter().chain(mode.lines).for_each(|line| drop(router.cli(line)));
    router.run();
    router
}

/// Switch a feature on wherever it is off; the interfaces where it was.
fn switch_on(router: &mut Router, mode: &Mode, (arc, feature): (&str, &str)) -> Vec<&'static str> {
    let is_off = |router: &mut Router, name: &str| {
        let id = router.id(name);
        let number = router.engine().arc_id(arc).expect("an arc");
        !router.engine().features_of(id, number).iter().any(|other| other == feature)
    };
    let off: Vec<_> = mode.on.iter().copied().filter(|name| is_off(router, name)).collect();
    switch(router, &off, (arc, feature), true);
    off
}

fn switch(router: &mut Router, names: &[&str], (arc, feature): (&str, &str), on: bool) {
    for name in names {
        let id = router.id(name);
        router.engine().set_feature(id, arc, feature, on).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// All that is seen of a router from outside.
#[derive(PartialEq, Debug)]
struct Seen {
    sent: Vec<Vec<Vec<u8>>>,
    dropped: Vec<(String, String, u64)>,
    events: Vec<(String, String, u64)>,
    circulated: u64,
    in_use: usize,
}

fn seen(router: &mut Router) -> Seen {
    let sent = ["e0", "e1", "e2"].map(|name| {
        let mut frames = router.sent(name);
        frames.sort_by_cached_key(|frame| flow(frame));
        frames
    });
    let circulated = router.count("null-node", "too-many-visits");
    let in_use = router.buffers_in_use();
    let seen = Seen {
        sent: sent.into(),
        dropped: router.dropped(),
        events: router.events(),
        circulated,
        in_use,
    };
    router.cli("clear errors");
    seen
}

/// How two routers differ, in words; nothing when they do not and no packet circulated.
fn differences([fused, single]: [Seen; 2]) -> Option<String> {
    let missing = |a: &[(String, String, u64)], b: &[(String, String, u64)]| {
        a.iter()
            .filter(|line| !b.contains(line))
            .map(|line| format!("{line:?}"))
            .collect::<Vec<_>>()
    };
    if fused.circulated + single.circulated > 0 {
        return Some(format!("{} and {} packets circulated", fused.circulated, single.circulated));
    }
    (fused != single).then(|| {
        let counts = |seen: &Seen| seen.sent.iter().map(Vec::len).collect::<Vec<_>>();
        format!(
            "sent {:?} and {:?}, in use {} and {}, only fused {:?} {:?}, only single {:?} {:?}",
            counts(&fused),
            counts(&single),
            fused.in_use,
            single.in_use,
            missing(&fused.dropped, &single.dropped),
            missing(&fused.events, &single.events),
            missing(&single.dropped, &fused.dropped),
            missing(&single.events, &fused.events),
        )
    })
}

/// Send vectors of frames with these features switched on, and compare.
fn compare(
    routers: &mut [Router; 2],
    mode: &Mode,
    features: &[(&'static str, &'static str)],
    vectors: &[Vec<Vec<u8>>],
) -> Vec<String> {
    let mut wrong = Vec::new();
    let changed: Vec<_> = features
        .iter()
        .map(|feature| {
            (feature, routers.each_mut().map(|router| switch_on(router, mode, *feature)))
        })
        .collect();
    // What the router says by itself, at times that are drawn by lot, is not compared.
    routers.iter_mut().for_each(|router| drop(seen(router)));
    for vector in vectors {
        let seen = routers.each_mut().map(|router| {
            vector.iter().for_each(|frame| router.inject("e0", frame));
            router.run();
            seen(router)
        });
        let first = &vector[0];
        let what =
            || format!("{}, {features:?}, {:02x?}", mode.name, &first[..first.len().min(60)]);
        wrong.extend(differences(seen).map(|text| format!("{}: {text}", what())));
    }
    for (feature, changed) in changed.into_iter().rev() {
        for (router, names) in routers.iter_mut().zip(changed) {
            switch(router, &names, *feature, false);
            router.advance(Duration::from_millis(20)); // limits of rates
        }
    }
    wrong
}

/// Of pairs whose features stand in different arcs, each mode has one in so many: they meet less
/// than those of one arc, and there are thousands. The modes are more than that, so that each pair
/// is in one of them at least.
const SHARES: usize = 4;
/// Of vectors of one kind, each mode has one in so many with each feature alone: pairs have all
/// kinds in every mode.
const KIND_SHARES: usize = 3;
const _: () = assert!(SHARES <= MODES.len() && KIND_SHARES <= MODES.len());

fn check(mode_number: usize) {
    let mode = &MODES[mode_number];
    let mut routers = [true, false].map(|fused| router(fused, mode));
    let all: Vec<(&str, &str)> = {
        let arcs = routers[0].engine().arcs();
        arcs.iter()
            .flat_map(|arc| arc.features.iter().map(|feature| (arc.name, *feature)))
            .collect()
    };
    // Only a bridge's routed interface has it; on a port it sends every frame back into the bridge,
    // and no command switches it on there.
    let all: Vec<_> = all.into_iter().filter(|(_, feature)| *feature != "bvi-output").collect();
    assert!(all.len() > 20, "{all:?}");
    let frames = frames();
    let kinds: Vec<Vec<Vec<u8>>> = frames.iter().map(|frame| vec![frame.clone(); COPIES]).collect();
    // Half of them in each, so that the first packet of a vector is a good one and a short one.
    let mixed: Vec<Vec<Vec<u8>>> = vec![frames.clone(), frames.iter().rev().cloned().collect()];
    let mut wrong = compare(&mut routers, mode, &[], &kinds);
    for (place, feature) in all.iter().enumerate() {
        let kinds = kinds.iter().skip((place + mode_number) % KIND_SHARES).step_by(KIND_SHARES);
        let kinds: Vec<_> = kinds.cloned().collect();
        wrong.extend(compare(&mut routers, mode, &[*feature], &kinds));
    }
    for (place, one) in all.iter().enumerate() {
        for (after, other) in all[place + 1..].iter().enumerate() {
            if one.0 != other.0 && (place + after) % SHARES != mode_number % SHARES {
                continue;
            }
            wrong.extend(compare(&mut routers, mode, &[*one, *other], &mixed));
        }
    }
    for router in &mut routers {
        router.advance(Duration::from_secs(120));
        assert_eq!(router.buffers_in_use(), 0, "what waited has gone");
    }
    let shown: Vec<_> = wrong.iter().take(40).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), shown.join("\n"));
}

#[test]
fn routed_ports_keep_the_fate_of_packets_with_any_two_features() {
    check(0);
}

#[test]
fn ports_with_sub_interfaces_keep_the_fate_of_packets_with_any_two_features() {
    check(1);
}

#[test]
fn sub_interfaces_keep_the_fate_of_packets_with_any_two_features() {
    check(2);
}

#[test]
fn bridged_ports_keep_the_fate_of_packets_with_any_two_features() {
    check(3);
}

#[test]
fn bridged_sub_interfaces_keep_the_fate_of_packets_with_any_two_features() {
    check(4);
}

#[test]
fn cross_connected_ports_keep_the_fate_of_packets_with_any_two_features() {
    check(5);
}

#[test]
fn bonds_keep_the_fate_of_packets_with_any_two_features() {
    check(6);
}
