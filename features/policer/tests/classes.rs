//! Policers of access lists.

use std::net::Ipv4Addr;
use std::time::Duration;

use quiver_testkit::frames::{self, Fragment};
use quiver_testkit::{Router, sources};

pub fn router() -> Router {
    let mut router = Router::new(&[
        quiver_ethernet::register,
        quiver_ip::register,
        quiver_acl::register,
        quiver_policer::register,
    ]);
    for (name, net) in [("e0", 0), ("e1", 1)] {
        router.interface(name);
        router.cli(&format!("set interface ip address {name} 10.0.{net}.1/24"));
        router.cli(&format!("ip neighbor {name} 10.0.{net}.2 02:00:00:00:00:0{net}"));
        router.cli(&format!("set interface ip address {name} 2001:db8:{net}::1/64"));
        router.cli(&format!("ip neighbor {name} 2001:db8:{net}::2 02:00:00:00:00:0{net}"));
    }
    router
}

fn run(router: &mut Router, lines: &[&str]) {
    lines.iter().for_each(|line| {
        router.cli(line);
    });
}

/// A datagram of a host with a traffic class, in a frame.
pub fn datagram(class: u8, host: u8, port: u8) -> Vec<u8> {
    let addresses = (sources::host(host), Ipv4Addr::new(10, 0, 1, 2));
    let udp = [0, 1, 0, port, 0, 14, 0, 0, 1, 2, 3, 4, 5, 6];
    let mut frame = frames::ip4(0, addresses, frames::UDP, Fragment::default(), &udp);
    frame[15] = class;
    frame[24..26].fill(0);
    let words = frame[14..34].chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])));
    let sum: u32 = words.sum();
    frame[24..26].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    frame
}

/// How many of so many datagrams to a port pass, all in one vector.
fn passed(router: &mut Router, count: usize, port: u8) -> usize {
    (0..count).for_each(|_| router.inject("e0", &datagram(0, 1, port)));
    router.run();
    router.sent("e1").len()
}

fn packets(router: &mut Router, policer: &str) -> [u64; 2] {
    let rows = router.json(&format!("show policer {policer}"));
    [0, 2].map(|row| rows[row]["packets"].as_u64().expect("a number"))
}

const WEB: &str = "set acl-plugin acl index 5 deny src 198.51.100.9/32, permit proto udp dport 80";

#[test]
fn what_a_list_permits_is_metered_and_all_else_passes() {
    for direction in ["input e0", "output e1"] {
        let (word, on) = direction.split_once(' ').expect("two words");
        let mut router = router();
        run(
            &mut router,
            &[
                WEB,
                "policer add name gold rate pps cir 100 cb 10",
                &format!("set policer classify interface {on} {word} acl 5 policer gold"),
            ],
        );
        assert_eq!(passed(&mut router, 30, 80), 10, "{direction}");
        assert_eq!(passed(&mut router, 30, 81), 30, "no rule matches");
        router.advance(Duration::from_millis(50));
        assert_eq!(passed(&mut router, 30, 80), 5);
        assert_eq!(packets(&mut router, "gold"), [15, 45], "{direction}");
        (0..9).for_each(|_| router.inject("e0", &datagram(0, 9, 80)));
        router.run();
        assert_eq!(router.sent("e1").len(), 9, "deny: the policer is not for it");
        let node = format!("policer-classify-{word}-ip4");
        assert_eq!(router.count(&node, "policed"), 45);
        router.cli(&format!("set policer classify interface {on} {word} acl 5 del"));
        assert_eq!(passed(&mut router, 30, 80), 30);
    }
}

#[test]
fn bytes_are_those_of_frames_and_ip6_has_its_own_rules() {
    let mut router = router();
    run(
        &mut router,
        &[
            "set acl-plugin acl index 6 permit ipv6 proto udp",
            "policer add name six rate kbps cir 8 cb 620",
            "set policer classify interface e0 input acl 6 policer six",
        ],
    );
    let source = "2001:db8:a::1".parse::<std::net::Ipv6Addr>().expect("an address");
    let mut frame = vec![2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0x86, 0xdd];
    frame.extend([0x60, 0, 0, 0, 0, 8, 17, 64]);
    frame.extend(source.octets());
    frame.extend("2001:db8:1::2".parse::<std::net::Ipv6Addr>().expect("an address").octets());
    frame.extend([0, 1, 0, 80, 0, 8, 0, 0]);
    (0..20).for_each(|_| router.inject("e0", &frame));
    router.run();
    assert_eq!(router.sent("e1").len(), 10, "each frame is 62 bytes of the burst");
    assert_eq!(router.json("show policer six")[0]["bytes"], 620);
    assert_eq!(passed(&mut router, 30, 80), 30);
}

#[test]
fn packets_are_marked_and_coloured_by_the_policer_of_their_list() {
    let mut router = router();
    run(
        &mut router,
        &[
            WEB,
            "policer add name m rate pps cir 1 cb 3 violate-action mark-and-transmit 8",
            "set policer classify interface e0 input acl 5 policer m",
            "set acl-plugin acl index 4 permit proto udp dport 99",
            "policer add name a rate pps cir 1 cb 3 eb 2 type 1r3c color-aware",
            "set policer classify interface e0 input acl 4 policer a",
        ],
    );
    (0..5).for_each(|_| router.inject("e0", &datagram(3, 1, 80)));
    router.run();
    let classes: Vec<u8> = router.sent("e1").iter().map(|frame| frame[15]).collect();
    assert_eq!(classes, [3, 3, 3, 8 << 2 | 3, 8 << 2 | 3], "ECN stays");
    // AF13 was red, AF12 yellow (RFC 2597 §6).
    for (class, expected) in [(14 << 2, 0), (12 << 2, 2), (10 << 2, 3)] {
        (0..4).for_each(|_| router.inject("e0", &datagram(class, 1, 99)));
        router.run();
        assert_eq!(router.sent("e1").len(), expected, "{class}");
    }
}

#[test]
fn the_first_list_decides_and_the_interface_meters_what_is_left() {
    let mut router = router();
    run(
        &mut router,
        &[
            "set acl-plugin acl index 1 permit proto udp dport 80",
            "set acl-plugin acl index 2 permit",
            "policer add name web rate pps cir 1 cb 4",
            "policer add name rest rate pps cir 1 cb 6",
            "policer add name all rate pps cir 1 cb 8",
            "set policer classify interface e0 input acl 2 policer rest",
            "set policer classify interface e0 input acl 1 policer web",
        ],
    );
    assert_eq!((passed(&mut router, 9, 80), passed(&mut router, 9, 81)), (4, 6));
    for name in ["web", "rest"] {
        router.cli(&format!("policer reset name {name}"));
    }
    router.cli("policer input name all e0");
    assert_eq!((passed(&mut router, 9, 80), passed(&mut router, 9, 81)), (4, 4));
    // Two lists with one policer share its rate.
    router.cli("policer input name all e0 unapply");
    router.cli("set policer classify interface e0 input acl 2 policer web");
    router.cli("policer reset name web");
    assert_eq!((passed(&mut router, 3, 80), passed(&mut router, 9, 81)), (3, 1));
}

#[test]
fn lists_and_policers_in_use_stay_and_changes_take_effect_at_once() {
    let mut router = router();
    run(
        &mut router,
        &[
            WEB,
            "policer add name gold rate pps cir 1 cb 4",
            "policer add name lead rate pps cir 1 cb 2",
            "set policer classify interface e0 input acl 5 policer gold",
        ],
    );
    let config = router.cli("show running-config");
    let line = "set policer classify interface e0 input acl 5 policer gold";
    assert!(config.lines().any(|written| written == line), "{config}");
    for (line, why) in [
        ("policer del name gold", "meters what access list 5 takes of the input of e0"),
        ("delete acl-plugin acl index 5", "is used by a policer of the input of e0"),
        ("set policer classify interface e0 input acl 6 policer gold", "no access list 6"),
        ("set policer classify interface e0 input acl 5 policer x", "no policer x"),
        ("set policer classify interface e0 output acl 5 del", "no policer meters"),
        ("set policer classify interface e9 input acl 5 policer gold", "e9"),
    ] {
        let refused = router.refused(line);
        assert!(refused.contains(why), "{line}: {refused}");
    }
    assert_eq!(router.cli("show running-config"), config);
    router.cli("set acl-plugin acl index 5 permit proto udp dport 81");
    assert_eq!((passed(&mut router, 9, 80), passed(&mut router, 9, 81)), (9, 4));
    router.cli("set policer classify interface e0 input acl 5 policer lead");
    assert_eq!(passed(&mut router, 9, 81), 2);
    router.cli("policer del name gold");
    let rows = router.json("show policer classify e0");
    assert_eq!((&rows[0]["acl"], &rows[0]["policer"]), (&5.into(), &"lead".into()));
    router.cli("set policer classify interface e0 input acl 5 del");
    run(&mut router, &["policer del name lead", "delete acl-plugin acl index 5"]);
    assert_eq!(passed(&mut router, 9, 81), 9);
}

#[test]
fn an_interface_that_goes_lets_its_lists_go() {
    let mut router = router();
    run(
        &mut router,
        &[
            WEB,
            "policer add name gold rate pps cir 1 cb 4",
            "create loopback interface instance 3",
            "set policer classify interface loop3 output acl 5 policer gold",
            "delete loopback interface intfc loop3",
            "policer del name gold",
            "delete acl-plugin acl index 5",
        ],
    );
}
