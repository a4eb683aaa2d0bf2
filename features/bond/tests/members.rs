//! Bonds without LACP: who sends what, and that members come and go without a loss.

use quiver_testkit::Router;

const PARTNER: [u8; 6] = [2, 0, 0, 0, 0, 9];
const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// Two ports outside, `e0` and `e1`; three members to be, `m0` to `m2`. What `e0` receives goes out
/// of the bond as it is.
fn router(mode: &str, members: usize) -> Router {
    let mut router = Router::new(&[quiver_bond::register, quiver_ethernet::register]);
    for name in ["e0", "e1", "m0", "m1", "m2"] {
        router.interface(name);
    }
    router.cli(&format!("create bond mode {mode}"));
    router.cli("set interface state BondEthernet0 up");
    for member in 0..members {
        router.cli(&format!("bond add BondEthernet0 m{member}"));
    }
    router.cli("test l2patch rx e0 tx BondEthernet0");
    router.cli("set interface l2 xconnect BondEthernet0 e1");
    router
}

/// An IPv4 frame with UDP from `port`.
fn udp(port: u16) -> Vec<u8> {
    let mut frame =
        [&PARTNER[..], &HOST, &[8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]].concat();
    frame.extend([192, 0, 2, 1, 192, 0, 2, 2]);
    frame.extend(port.to_be_bytes());
    frame.extend([0, 9, 0, 8, 0, 0]);
    frame
}

/// A frame from the partner.
fn to(destination: [u8; 6], ether_type: u16) -> Vec<u8> {
    [&destination[..], &PARTNER, &ether_type.to_be_bytes(), &[0; 46]].concat()
}

/// Put `count` flows in, and say how many frames each member sent.
fn spread(router: &mut Router, count: u16) -> [usize; 3] {
    (0..count).for_each(|port| router.inject("e0", &udp(port)));
    router.run();
    ["m0", "m1", "m2"].map(|name| router.sent(name).len())
}

fn mac(router: &mut Router, name: &str) -> [u8; 6] {
    let id = router.id(name);
    router.engine().interface(id).expect("there").row().mac
}

#[test]
fn xor_keeps_a_flow_on_its_member_and_spreads_flows() {
    let mut router = router("xor load-balance l34", 3);
    let sent = spread(&mut router, 600);
    assert_eq!(sent.iter().sum::<usize>(), 600);
    assert!(sent.iter().all(|count| (150..250).contains(count)), "{sent:?}");
    (0..50).for_each(|_| router.inject("e0", &udp(7)));
    router.run();
    let sent = ["m0", "m1", "m2"].map(|name| router.sent(name).len());
    assert!(sent.contains(&50), "{sent:?}");
    assert_eq!(router.totals("BondEthernet0").tx_packets, 650);
}

#[test]
fn the_default_balance_looks_at_mac_addresses_alone() {
    let mut router = router("xor", 3);
    assert!(spread(&mut router, 90).contains(&90));
}

#[test]
fn round_robin_takes_members_in_turn() {
    let mut router = router("round-robin", 3);
    assert_eq!(spread(&mut router, 90), [30, 30, 30]);
    router.cli("set interface state m1 down");
    assert_eq!(spread(&mut router, 90), [45, 0, 45]);
}

#[test]
fn broadcast_sends_a_copy_by_each_member() {
    let mut router = router("broadcast", 3);
    assert_eq!(spread(&mut router, 10), [10, 10, 10]);
    router.inject("e0", &udp(5));
    router.run();
    for name in ["m0", "m1", "m2"] {
        assert_eq!(router.sent(name), [udp(5)]);
    }
}

#[test]
fn broadcast_counts_the_copies_that_an_empty_pool_cost() {
    let settings = quiver_testkit::Settings { buffers: 256, ..Default::default() };
    let mut router = Router::with(settings, &[quiver_bond::register, quiver_ethernet::register]);
    for name in ["e0", "m0", "m1"] {
        router.interface(name);
    }
    router.cli("create bond mode broadcast");
    router.cli("set interface state BondEthernet0 up");
    router.cli("bond add BondEthernet0 m0");
    router.cli("bond add BondEthernet0 m1");
    router.cli("test l2patch rx e0 tx BondEthernet0");
    (0..200).for_each(|port| router.inject("e0", &udp(port)));
    router.run();
    let (sent, copies) = (router.sent("m0").len(), router.sent("m1").len());
    let missing = router.count("BondEthernet0-tx", "no-buffer");
    assert_eq!(sent, 200);
    assert_eq!(copies as u64 + missing, 200);
    assert!(missing > 0);
}

#[test]
fn active_backup_sends_by_one_member_until_it_goes_down() {
    let mut router = router("active-backup", 3);
    assert_eq!(spread(&mut router, 20), [20, 0, 0]);
    router.cli("set interface state m0 down");
    assert_eq!(spread(&mut router, 20), [0, 20, 0]);
    router.cli("set interface state m0 up");
    assert_eq!(spread(&mut router, 20), [0, 20, 0], "the one that sends goes on");
    assert!(router.dropped().is_empty());
}

#[test]
fn a_heavier_member_takes_over_when_it_is_there() {
    let mut router = router("active-backup", 3);
    router.cli("set interface bond m2 weight 10");
    assert_eq!(spread(&mut router, 20), [0, 0, 20]);
    router.cli("set interface state m2 down");
    assert_eq!(spread(&mut router, 20), [20, 0, 0]);
    router.cli("set interface state m2 up");
    assert_eq!(spread(&mut router, 20), [0, 0, 20]);
    assert!(router.cli("show bond details").contains("m2 (active, weight 10)"));
}

#[test]
fn a_backup_takes_only_what_is_addressed_to_the_bond() {
    let mut router = router("active-backup", 2);
    let own = mac(&mut router, "BondEthernet0");
    router.send("m0", &to([0xff; 6], 0x0806));
    router.send("m1", &to([0xff; 6], 0x0806));
    router.send("m1", &to(own, 0x0800));
    assert_eq!(router.sent("e1").len(), 2);
    assert_eq!(router.dropped(), [("bond-input".to_owned(), "backup-member".to_owned(), 1)]);
}

#[test]
fn what_a_member_receives_is_the_bonds() {
    let mut router = router("xor", 2);
    router.send("m0", &to(HOST, 0x0800));
    router.send("m1", &to(HOST, 0x86dd));
    assert_eq!(router.sent("e1").len(), 2);
    let totals = router.totals("BondEthernet0");
    assert_eq!((totals.rx_packets, totals.rx_bytes), (2, 120));
    assert_eq!(router.totals("m0").rx_packets, 1);
}

#[test]
fn what_belongs_to_the_link_stays_with_the_member() {
    let mut router = router("xor", 1);
    router.send("m0", &to([1, 0x80, 0xc2, 0, 0, 0x0e], 0x88cc));
    router.send("m0", &to(HOST, 0x0800));
    assert_eq!(router.sent("e1").len(), 1);
    assert_eq!(
        router.dropped(),
        [("ethernet-input".to_owned(), "unknown-ethertype".to_owned(), 1)]
    );
    assert_eq!(router.totals("BondEthernet0").rx_packets, 1);
}

#[test]
fn a_frame_cut_off_dies_at_the_member() {
    let mut router = router("xor", 1);
    router.send("m0", &[0; 13]);
    assert_eq!(router.dropped(), [("bond-input".to_owned(), "truncated".to_owned(), 1)]);
}

#[test]
fn a_bond_is_up_as_long_as_a_member_is() {
    let mut router = router("xor", 0);
    let link = |router: &mut Router| {
        router.json("show interface BondEthernet0")["interfaces"][0]["link"].clone()
    };
    assert_eq!(link(&mut router), "down");
    router.send("e0", &udp(1));
    router.cli("bond add BondEthernet0 m0");
    router.cli("bond add BondEthernet0 m1");
    assert_eq!(link(&mut router), "up");
    router.cli("set interface state m0 down");
    assert_eq!(link(&mut router), "up");
    router.cli("bond del m1");
    assert_eq!(link(&mut router), "down");
    router.send("m1", &to(HOST, 0x0800));
    assert_eq!(router.sent("e1").len(), 0);
    let mut dropped = router.dropped();
    dropped.sort();
    assert_eq!(
        dropped,
        [
            ("BondEthernet0-output".to_owned(), "interface-down".to_owned(), 1),
            ("ethernet-input".to_owned(), "mac-mismatch".to_owned(), 1)
        ]
    );
}

#[test]
fn a_bond_that_is_down_takes_nothing() {
    let mut router = router("xor", 1);
    router.cli("set interface state BondEthernet0 down");
    router.send("m0", &to(HOST, 0x0800));
    assert_eq!(router.dropped(), [("bond-input".to_owned(), "bond-down".to_owned(), 1)]);
}

#[test]
fn members_are_what_their_bond_is_and_again_what_they_were() {
    let mut router = router("xor", 0);
    let (first, second) = (mac(&mut router, "m0"), mac(&mut router, "m1"));
    router.cli("bond add BondEthernet0 m0");
    router.cli("bond add BondEthernet0 m1");
    assert_eq!(mac(&mut router, "BondEthernet0"), first);
    assert_eq!(mac(&mut router, "m1"), first);
    router.cli("set interface mac address BondEthernet0 02:fe:00:00:77:77");
    router.cli("set interface mtu packet 9000 BondEthernet0");
    router.cli("set interface promiscuous on BondEthernet0");
    let shown = router.json("show interface m1")["interfaces"][0].clone();
    assert_eq!((&shown["mac"], &shown["mtu_bytes"]), (&"02:fe:00:00:77:77".into(), &9000.into()));
    assert_eq!(shown["promiscuous"], true);
    router.cli("delete bond BondEthernet0");
    let shown = router.json("show interface m1")["interfaces"][0].clone();
    assert_eq!((&shown["mtu_bytes"], &shown["promiscuous"]), (&1500.into(), &false.into()));
    assert_eq!((mac(&mut router, "m0"), mac(&mut router, "m1")), (first, second));
}

#[test]
fn members_come_and_go_without_a_loss() {
    for mode in ["xor load-balance l34", "round-robin", "active-backup"] {
        let mut router = router(mode, 1);
        let mut sent = 0;
        for round in 0..20 {
            (0..50).for_each(|port| router.inject("e0", &udp(port)));
            router.step();
            match round % 4 {
                0 => drop(router.cli("bond add BondEthernet0 m1")),
                1 => drop(router.cli("bond add BondEthernet0 m2")),
                2 => drop(router.cli("bond del m1")),
                _ => drop(router.cli("bond del m2")),
            }
            router.run();
            sent += ["m0", "m1", "m2"].map(|name| router.sent(name).len()).iter().sum::<usize>();
        }
        assert_eq!(sent, 1000, "{mode}");
        assert!(router.dropped().is_empty(), "{mode}");
    }
}

#[test]
fn a_member_that_is_deleted_leaves_its_bond() {
    let mut router = router("xor load-balance l34", 3);
    let gone = router.id("m1");
    router.engine().delete_interface(gone).expect("deleted");
    (0..90).for_each(|port| router.inject("e0", &udp(port)));
    router.run();
    assert_eq!(router.sent("m0").len() + router.sent("m2").len(), 90);
    assert_eq!(router.json("show bond")[0]["members"], 2);
    assert!(router.dropped().is_empty());
}

#[test]
fn a_member_whose_ring_is_full_costs_the_others_nothing() {
    let mut router = router("round-robin", 2);
    router.stall("m0", true);
    (0..40).for_each(|port| router.inject("e0", &udp(port)));
    router.send("m1", &to(HOST, 0x0800));
    assert_eq!(router.sent("m1").len(), 20);
    assert_eq!(router.sent("e1").len(), 1);
    assert_eq!(router.dropped(), [("m0-tx".to_owned(), "tx-ring-full".to_owned(), 20)]);
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut router = router("xor", 1);
    router.cli("create loopback interface");
    router.cli("create bond mode round-robin id 5");
    let before = router.cli("show running-config");
    for (line, why) in [
        ("bond add BondEthernet0 m0", "m0 is a member of BondEthernet0 already"),
        ("bond add BondEthernet5 m0", "m0 is a member of BondEthernet0 already"),
        ("bond add BondEthernet0 BondEthernet5", "BondEthernet5 is a bond"),
        ("bond add BondEthernet0 loop0", "loop0 is a loopback"),
        ("bond add m1 m2", "m1 is not a bond"),
        ("bond del m2", "m2 is no member of a bond"),
        ("delete bond m1", "m1 is not a bond"),
        ("set interface bond m0 weight 3", "weights are for active-backup"),
        ("set interface bond m2 weight 3", "m2 is no member of a bond"),
        ("create bond mode xor id 5", "BondEthernet5 exists already"),
        ("create bond mode round-robin load-balance l2", "does not balance load"),
        ("create bond mode xor hw-addr 01:00:00:00:00:01", "cannot be the address"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(why), "{line}: {refusal}");
    }
    router.cli("set interface l2 xconnect m1 e1");
    assert!(
        router
            .refused("bond add BondEthernet0 m1")
            .contains("gives what it receives to l2-xconnect")
    );
    router.cli("set interface l3 m1");
    assert_eq!(router.cli("show running-config"), before);
}

#[test]
fn thirty_two_members_are_enough() {
    let mut router = router("xor load-balance l34", 3);
    for more in 3..32 {
        router.interface(&format!("m{more}"));
        router.cli(&format!("bond add BondEthernet0 m{more}"));
    }
    router.interface("m32");
    assert!(router.refused("bond add BondEthernet0 m32").contains("has 32 members already"));
    (0..3200).for_each(|port| router.inject("e0", &udp(port)));
    router.run();
    let sent: Vec<usize> = (0..32).map(|n| router.sent(&format!("m{n}")).len()).collect();
    assert_eq!(sent.iter().sum::<usize>(), 3200);
    assert!(sent.iter().all(|count| *count > 50), "{sent:?}");
}

#[test]
fn the_running_config_makes_the_same_bonds_again() {
    let mut one = router("active-backup hw-addr 02:fe:00:00:00:77", 2);
    one.cli("set interface bond m1 weight 5");
    one.cli("create bond mode xor load-balance l23 id 9");
    one.cli("bond add BondEthernet9 m2 passive long-timeout");
    let config = one.cli("show running-config");
    let mut other = Router::new(&[quiver_bond::register, quiver_ethernet::register]);
    other.script("config", &config).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(other.cli("show running-config"), config);
    assert_eq!(other.json("show bond details"), one.json("show bond details"));
}

#[test]
fn the_running_config_says_what_members_are_by_themselves() {
    let mut one = router("xor", 0);
    one.cli("set interface mac address m1 02:fe:00:00:00:11");
    one.cli("set interface mtu packet 1400 m1");
    one.cli("bond add BondEthernet0 m0");
    one.cli("bond add BondEthernet0 m1");
    one.cli("set interface mtu packet 9000 BondEthernet0");
    let config = one.cli("show running-config");
    let set = |line: &&str| line.starts_with("set interface m") && !line.contains("Bond");
    let own: Vec<&str> = config.lines().filter(set).collect();
    assert_eq!(
        own,
        ["set interface mac address m1 02:fe:00:00:00:11", "set interface mtu packet 1400 m1"]
    );
    let mut other = Router::new(&[quiver_bond::register, quiver_ethernet::register]);
    other.script("config", &config).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(other.cli("show running-config"), config);
    other.cli("bond del m1");
    assert_eq!(mac(&mut other, "m1"), [2, 0xfe, 0, 0, 0, 0x11]);
}

#[test]
fn a_member_neither_routes_nor_is_changed_by_itself() {
    let mut router =
        Router::new(&[quiver_bond::register, quiver_ethernet::register, quiver_ip::register]);
    router.interface("m0");
    router.interface("m1");
    router.cli("create bond mode xor");
    router.cli("set interface ip address m1 192.0.2.1/24");
    assert!(router.refused("bond add BondEthernet0 m1").contains("m1 has addresses"));
    router.cli("bond add BondEthernet0 m0");
    let before = router.cli("show running-config");
    for line in [
        "set interface ip address m0 192.0.2.2/24",
        "enable ip6 interface m0",
        "set interface mac address m0 02:fe:00:00:00:11",
        "set interface mtu packet 1400 m0",
        "set interface promiscuous on m0",
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains("m0 is a member of BondEthernet0"), "{line}: {refusal}");
    }
    assert_eq!(router.cli("show running-config"), before);
}

#[test]
fn a_trace_reads_as_sentences() {
    let mut router = router("xor", 1);
    router.cli("trace add test-input 10");
    router.send("m0", &to(HOST, 0x0800));
    router.send("e0", &udp(1));
    let trace = router.cli("show trace");
    assert!(trace.contains("60 bytes received on BondEthernet0, to l2-xconnect"), "{trace}");
    assert!(trace.contains("42 bytes sent on BondEthernet0 go to m0-output"), "{trace}");
}

/// A router that also bridges.
fn bridging() -> Router {
    let mut router =
        Router::new(&[quiver_bond::register, quiver_bridge::register, quiver_ethernet::register]);
    for name in ["e0", "m0", "m1"] {
        router.interface(name);
    }
    router.cli("create bond mode active-backup");
    router.cli("set interface state BondEthernet0 up");
    router
}

#[test]
fn a_member_has_no_parts_no_bridge_and_no_cross_connect_of_its_own() {
    let mut router = bridging();
    router.cli("bond add BondEthernet0 m0");
    let before = router.cli("show running-config");
    for line in [
        "create sub-interfaces m0 7",
        "set interface l2 bridge m0 1",
        "set interface l2 xconnect m0 e0",
        "test l2patch rx m0 tx e0",
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains("m0 is a member of BondEthernet0"), "`{line}`: {refusal}");
        assert!(refusal.contains("bond del"), "`{line}`: {refusal}");
    }
    assert_eq!(router.cli("show running-config"), before);
    // The bond itself has all of them, and a former member again.
    router.cli("set interface l2 bridge BondEthernet0 1");
    router.cli("create sub-interfaces BondEthernet0 7");
    router.cli("bond del m0");
    router.cli("create sub-interfaces m0 7");
    router.cli("set interface l2 bridge m0 1");
}

#[test]
fn a_port_that_is_bridged_or_has_parts_joins_no_bond() {
    let mut router = bridging();
    router.cli("set interface l2 bridge m0 1");
    router.cli("create sub-interfaces m1 7");
    let before = router.cli("show running-config");
    let refusal = router.refused("bond add BondEthernet0 m0");
    assert!(refusal.contains("set interface l3 m0"), "{refusal}");
    let refusal = router.refused("bond add BondEthernet0 m1");
    assert!(refusal.contains("m1 has sub-interfaces"), "{refusal}");
    assert_eq!(router.cli("show running-config"), before);
    router.cli("set interface l3 m0");
    router.cli("delete sub-interface m1.7");
    router.cli("bond add BondEthernet0 m0");
    router.cli("bond add BondEthernet0 m1");
}

#[test]
fn a_member_that_is_deleted_leaves_its_number_free() {
    let mut router = bridging();
    router.cli("bond add BondEthernet0 m0");
    let m0 = router.id("m0");
    router.engine().delete_interface(m0).expect("it is there");
    router.interface("m0");
    router.cli("create sub-interfaces m0 7");
}

#[test]
fn what_answers_for_other_hosts_is_no_member() {
    let mut router =
        Router::new(&[quiver_bond::register, quiver_ethernet::register, quiver_ip::register]);
    router.interface("m0");
    router.cli("create bond mode xor");
    for (line, back) in [
        ("set ip6 nd proxy m0 2001:db8::5", "set ip6 nd proxy m0 del 2001:db8::5"),
        (
            "set interface ip6-nd-mirror-proxy m0 enable",
            "set interface ip6-nd-mirror-proxy m0 disable",
        ),
    ] {
        router.cli(line);
        let refused = router.refused("bond add BondEthernet0 m0");
        assert!(refused.contains("for other hosts"), "{line}: {refused}");
        router.cli(back);
    }
    router.cli("bond add BondEthernet0 m0");
}
