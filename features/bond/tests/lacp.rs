//! LACP between two routers: frames are carried from one to the other by hand.

use std::time::Duration;

use quiver_testkit::Router;
use quiver_wire::MacAddress;
use quiver_wire::lacp::{Lacpdu, PDU_BYTES, PortInfo, PortState, emit_marker};

const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SLOW: [u8; 6] = [1, 0x80, 0xc2, 0, 0, 2];
const MEMBERS: [&str; 3] = ["m0", "m1", "m2"];

/// A router with a bond of some members; what `e0` receives goes out of the bond, and the other way
/// round.
fn router(number: u8, members: &[&str], words: &str) -> Router {
    let mut router = Router::new(&[quiver_bond::register, quiver_ethernet::register]);
    router.interface("e0");
    for (member, name) in MEMBERS.iter().enumerate() {
        router.cli(&format!(
            "create test interface {name} mac 02:fe:00:00:{number:02x}:{member:02x}"
        ));
        router.cli(&format!("set interface state {name} up"));
    }
    router.cli("create bond mode lacp load-balance l34");
    router.cli("set interface state BondEthernet0 up");
    for member in members {
        router.cli(&format!("bond add BondEthernet0 {member} {words}"));
    }
    router.cli("test l2patch rx e0 tx BondEthernet0");
    router.cli("set interface l2 xconnect BondEthernet0 e0");
    router
}

/// Two routers whose members of one name are linked, but for those that are cut.
struct Pair {
    one: Router,
    other: Router,
    cut: Vec<&'static str>,
}

impl Pair {
    fn new(words: [&str; 2]) -> Pair {
        let one = router(1, &["m0", "m1"], words[0]);
        let other = router(2, &["m0", "m1"], words[1]);
        Pair { one, other, cut: Vec::new() }
    }

    fn carry(&mut self) {
        for name in MEMBERS {
            let (here, there) = (self.one.sent(name), self.other.sent(name));
            if !self.cut.contains(&name) {
                here.iter().for_each(|frame| self.other.inject(name, frame));
                there.iter().for_each(|frame| self.one.inject(name, frame));
            }
        }
        self.one.run();
        self.other.run();
    }

    fn run(&mut self, seconds: u32) {
        for _ in 0..seconds * 10 {
            self.one.advance(Duration::from_millis(100));
            self.other.advance(Duration::from_millis(100));
            self.carry();
        }
    }

    /// Frames of this many flows from one router to the other: how many arrive, and by which
    /// members.
    fn pass(&mut self, flows: u16) -> (usize, Vec<&'static str>) {
        let totals = |router: &mut Router| MEMBERS.map(|name| router.totals(name).rx_packets);
        let before = totals(&mut self.other);
        (0..flows).for_each(|port| self.one.inject("e0", &udp(port)));
        self.one.run();
        self.carry();
        let after = totals(&mut self.other);
        let used = (0..3).filter(|n| after[*n] > before[*n]).map(|n| MEMBERS[n]).collect();
        (self.other.sent("e0").len(), used)
    }

    fn active(&mut self) -> [u64; 2] {
        [&mut self.one, &mut self.other]
            .map(|router| router.json("show bond")[0]["active_members"].as_u64().expect("a number"))
    }
}

fn udp(port: u16) -> Vec<u8> {
    let mut frame =
        [&[2, 0, 0, 0, 0, 9][..], &HOST, &[8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]]
            .concat();
    frame.extend([192, 0, 2, 1, 192, 0, 2, 2]);
    frame.extend(port.to_be_bytes());
    frame.extend([0, 9, 0, 8, 0, 0]);
    frame
}

fn slow(pdu: &[u8]) -> Vec<u8> {
    [&SLOW[..], &HOST, &[0x88, 0x09], pdu].concat()
}

#[test]
fn two_routers_agree_and_carry_frames() {
    for words in
        [["", ""], ["", "passive"], ["long-timeout", ""], ["passive long-timeout", "long-timeout"]]
    {
        let mut pair = Pair::new(words);
        pair.run(5);
        assert_eq!(pair.active(), [2, 2], "{words:?}");
        assert_eq!(pair.pass(100), (100, vec!["m0", "m1"]), "{words:?}");
    }
}

#[test]
fn two_passive_routers_carry_nothing() {
    let mut pair = Pair::new(["passive", "passive"]);
    pair.run(10);
    assert_eq!(pair.active(), [0, 0]);
    assert_eq!(pair.pass(10).0, 0);
    assert_eq!(
        pair.one.dropped(),
        [("BondEthernet0-output".to_owned(), "interface-down".to_owned(), 10)]
    );
}

#[test]
fn a_link_that_is_set_down_costs_nothing_on_the_other() {
    let mut pair = Pair::new(["", ""]);
    pair.run(5);
    pair.one.cli("set interface state m0 down");
    assert_eq!(pair.pass(0).0, 0); // the partner is told
    assert_eq!(pair.pass(100), (100, vec!["m1"]));
    pair.one.cli("set interface state m0 up");
    pair.run(5);
    assert_eq!(pair.pass(100), (100, vec!["m0", "m1"]));
}

#[test]
fn a_link_that_is_cut_is_left_after_three_seconds() {
    let mut pair = Pair::new(["", ""]);
    pair.run(5);
    pair.cut = vec!["m1"];
    pair.run(6);
    assert_eq!(pair.active(), [1, 1]);
    assert_eq!(pair.pass(100), (100, vec!["m0"]));
    let shown = pair.one.json("show lacp m1 details");
    assert_eq!((&shown[0]["timeouts"], &shown[0]["selected"]), (&1.into(), &false.into()));
    pair.cut.clear();
    pair.run(5);
    assert_eq!(pair.active(), [2, 2]);
}

#[test]
fn members_join_and_leave_under_traffic_without_a_loss() {
    let mut pair = Pair::new(["", ""]);
    pair.run(5);
    let mut arrived = 0;
    for round in 0..8 {
        for router in [&mut pair.one, &mut pair.other] {
            router.cli(if round % 2 == 0 { "bond add BondEthernet0 m2" } else { "bond del m2" });
        }
        for _ in 0..30 {
            arrived += pair.pass(20).0;
            pair.one.advance(Duration::from_millis(100));
            pair.other.advance(Duration::from_millis(100));
            pair.carry();
        }
    }
    assert_eq!(arrived, 8 * 30 * 20);
    assert!(
        pair.other.dropped().iter().all(|(node, ..)| node == "lacp-input"),
        "{:?}",
        pair.other.dropped()
    );
}

#[test]
fn frames_before_the_agreement_are_not_taken() {
    let mut router = router(1, &["m0"], "");
    router.send("m0", &udp(1));
    assert!(router.sent("e0").is_empty());
    assert_eq!(
        router.dropped(),
        [("bond-input".to_owned(), "bond-down".to_owned(), 1)].map(|(node, _, count)| (
            node,
            "not-collecting".to_owned(),
            count
        ))
    );
}

#[test]
fn a_member_that_leaves_tells_its_partner() {
    let mut pair = Pair::new(["", ""]);
    pair.run(5);
    pair.one.cli("bond del m1");
    pair.one.run();
    pair.carry();
    assert_eq!(pair.active(), [1, 1]);
    assert_eq!(pair.other.json("show lacp m1")[0]["mux"], "ATTACHED");
}

#[test]
fn a_member_that_is_set_down_tells_its_partner_whose_link_stays() {
    for line in ["set interface state m1 down", "set interface state BondEthernet0 down"] {
        let mut pair = Pair::new(["", ""]);
        pair.run(5);
        pair.one.cli(line);
        pair.one.run();
        pair.carry();
        assert_eq!(pair.active()[1], if line.contains("m1") { 1 } else { 0 }, "{line}");
        assert!(pair.one.dropped().is_empty(), "{line}");
    }
}

#[test]
fn a_link_to_another_system_is_not_used() {
    let mut pair = Pair::new(["", ""]);
    pair.run(5);
    let mut stranger = router(3, &["m2"], "");
    pair.one.cli("bond add BondEthernet0 m2");
    for _ in 0..60 {
        pair.run(0);
        pair.one.advance(Duration::from_millis(100));
        pair.other.advance(Duration::from_millis(100));
        stranger.advance(Duration::from_millis(100));
        pair.one.sent("m2").iter().for_each(|frame| stranger.inject("m2", frame));
        stranger.sent("m2").iter().for_each(|frame| pair.one.inject("m2", frame));
        stranger.run();
        pair.carry();
    }
    assert_eq!(pair.active(), [2, 2]);
    assert_eq!(pair.one.json("show lacp m2")[0]["note"], "another partner or key");
}

#[test]
fn a_cable_between_two_members_is_found_to_be_a_loop() {
    let mut router = router(1, &["m0", "m1"], "");
    for _ in 0..60 {
        router.advance(Duration::from_millis(100));
        let (zero, one) = (router.sent("m0"), router.sent("m1"));
        zero.iter().for_each(|frame| router.inject("m1", frame));
        one.iter().for_each(|frame| router.inject("m0", frame));
        router.run();
    }
    assert_eq!(router.json("show bond")[0]["active_members"], 0);
    assert!(router.cli("show lacp").contains("loop: the partner is this router"));
}

#[test]
fn a_bond_that_is_set_down_stops_its_partner() {
    let mut pair = Pair::new(["", ""]);
    pair.run(5);
    pair.one.cli("set interface state BondEthernet0 down");
    pair.run(6);
    assert_eq!(pair.active()[1], 0);
    pair.one.cli("set interface state BondEthernet0 up");
    pair.run(5);
    assert_eq!(pair.active(), [2, 2]);
}

#[test]
fn a_bond_with_another_address_is_agreed_on_anew() {
    let mut pair = Pair::new(["", ""]);
    pair.run(5);
    pair.one.cli("set interface mac address BondEthernet0 02:fe:00:00:aa:bb");
    pair.run(6);
    assert_eq!(pair.active(), [2, 2]);
    assert_eq!(pair.other.json("show lacp m0")[0]["partner"], "02:fe:00:00:aa:bb");
}

#[test]
fn a_marker_is_answered_by_the_port_that_it_came_by() {
    let mut router = router(1, &["m0", "m1"], "");
    router.run();
    router.sent("m1");
    let mut pdu = [0; PDU_BYTES];
    emit_marker(7, MacAddress(HOST), 99, &mut pdu).expect("room");
    router.send("m1", &slow(&pdu));
    let sent = router.sent("m1");
    let mut answer = pdu;
    answer[2] = 2;
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0][..14], [&SLOW[..], &[2, 0xfe, 0, 0, 1, 0], &[0x88, 0x09]].concat());
    assert_eq!(sent[0][14..], answer);
    router.send("m1", &slow(&answer));
    assert_eq!(router.dropped(), [("lacp-input".to_owned(), "marker-response".to_owned(), 1)]);
}

#[test]
fn what_is_no_lacpdu_is_counted_and_dropped() {
    let mut router = router(1, &["m0"], "");
    let mut pdu = [0; PDU_BYTES];
    Lacpdu::default().emit(&mut pdu).expect("room");
    let good = slow(&pdu);
    let wrong = |at: usize, value: u8| {
        let mut pdu = pdu;
        pdu[at] = value;
        slow(&pdu)
    };
    router.send("m0", &good);
    router.send("m0", &good[..good.len() - 1]);
    router.send("m0", &wrong(3, 21));
    router.send("m0", &wrong(1, 0));
    router.send("m0", &wrong(0, 3));
    router.send("m0", &slow(&[]));
    router.send("m0", &slow(&[2, 1, 1]));
    router.send("m1", &good);
    let mut dropped = router.dropped();
    dropped.retain(|(node, ..)| node == "lacp-input");
    dropped.sort();
    let expected = [("malformed", 5), ("not-lacp-member", 1), ("unknown-subtype", 1)];
    assert_eq!(
        dropped,
        expected.map(|(reason, count)| ("lacp-input".to_owned(), reason.to_owned(), count))
    );
    assert_eq!(router.count("lacp-input", "lacpdu"), 1);
}

#[test]
fn a_flood_of_lacpdus_is_bounded_by_worker() {
    let mut router = router(1, &["m0"], "");
    let mut pdu = [0; PDU_BYTES];
    Lacpdu::default().emit(&mut pdu).expect("room");
    (0..1000).for_each(|_| router.inject("m0", &slow(&pdu)));
    router.run();
    assert_eq!(router.count("lacp-input", "lacpdu"), 512);
    assert_eq!(router.count("lacp-input", "too-many"), 488);
}

#[test]
fn a_partner_that_says_anything_is_survived() {
    let mut router = router(1, &["m0", "m1"], "");
    let mut word = 1u32;
    for round in 0..400u32 {
        word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let info = |seed: u32| PortInfo {
            system: MacAddress([2, 0, 0, 0, 0, (seed >> 8) as u8 % 3]),
            key: (seed >> 4) as u16 % 2,
            port: seed as u16 % 3,
            state: PortState((seed >> 16) as u8),
            ..PortInfo::default()
        };
        let mut pdu = [0; PDU_BYTES];
        let lacpdu = Lacpdu { actor: info(word), partner: info(word.rotate_left(9)), max_delay: 0 };
        lacpdu.emit(&mut pdu).expect("room");
        router.send(MEMBERS[round as usize % 2], &slow(&pdu));
        router.advance(Duration::from_millis(u64::from(word % 700)));
    }
    router.cli("show lacp details");
    router.cli("show bond details");
}

#[test]
fn show_lacp_lists_both_ends() {
    let mut pair = Pair::new(["long-timeout", "passive"]);
    pair.run(5);
    let text = pair.one.cli("show lacp");
    assert!(text.contains("A-GSCD--") && text.contains("-TGSCD--"), "{text}");
    let details = pair.one.cli("show lacp m0 details");
    assert!(details.contains("m0 in BondEthernet0"), "{details}");
    assert!(details.contains(
        "state: 0x3d (activity, aggregation, synchronization, collecting, distributing)"
    ));
    assert!(details.contains("receive machine: CURRENT  mux machine: DISTRIBUTING  selected: yes"));
    let shown = pair.one.json("show lacp m1 details");
    assert_eq!(shown[0]["partner"]["state"]["timeout"], true);
    assert_eq!(shown[0]["partner"]["system"], "02:fe:00:00:02:00");
}

#[test]
fn the_running_config_makes_the_same_bond_again() {
    let mut one = router(1, &["m0"], "passive long-timeout");
    let config = one.cli("show running-config");
    assert!(config.contains("create bond mode lacp load-balance l34 id 0"), "{config}");
    assert!(config.contains("bond add BondEthernet0 m0 passive long-timeout"), "{config}");
    let mut other = Router::new(&[quiver_bond::register, quiver_ethernet::register]);
    other.script("config", &config).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(other.cli("show running-config"), config);
}

#[test]
fn a_trace_of_an_lacpdu_reads_as_a_sentence() {
    let mut router = router(1, &["m0"], "");
    router.cli("trace add test-input 10");
    let mut pdu = [0; PDU_BYTES];
    Lacpdu::default().emit(&mut pdu).expect("room");
    router.send("m0", &slow(&pdu));
    let trace = router.cli("show trace");
    assert!(trace.contains("an LACPDU received on m0, to packet-done"), "{trace}");
}
