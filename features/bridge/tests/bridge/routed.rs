//! The bridge's own routed interface.

use quiver_testkit::Router;
use quiver_wire::{EtherType, EthernetHeader, Header, Ip4Header, IpProtocol, MacAddress};

use super::{BROADCAST, FEATURES, bridge, frame, known_at, mac, sent, speak};

const BVI: [u8; 6] = [0xde, 0xad, 0, 0, 0, 0];

/// e0 and e1 bridged with loop0 as 10.0.0.1/24, e9 routed as 10.9.0.1/24.
fn routed() -> Router {
    let mut router = bridge(2);
    for line in [
        "create loopback interface instance 0",
        "set interface state loop0 up",
        "set interface l2 bridge loop0 1 bvi",
        "set interface ip address loop0 10.0.0.1/24",
    ] {
        router.cli(line);
    }
    router.interface("e9");
    router.cli("set interface ip address e9 10.9.0.1/24");
    router.cli("ip neighbor e9 10.9.0.2 02:00:00:00:00:99 static");
    router.cli("ip neighbor loop0 10.0.0.2 02:00:00:00:00:02 static");
    ["e0", "e1", "e9"].iter().for_each(|name| drop(router.sent(name))); // addresses announced
    router
}

fn ip4(to_mac: [u8; 6], from_mac: [u8; 6], from: [u8; 4], to: [u8; 4]) -> Vec<u8> {
    let mut frame = vec![0; 60];
    EthernetHeader::new(MacAddress(to_mac), MacAddress(from_mac), EtherType::IPV4)
        .write(&mut frame)
        .expect("room");
    let header = Ip4Header::new(from.into(), to.into(), IpProtocol::UDP, 64, 26).expect("short");
    header.write(&mut frame[14..]).expect("room");
    frame
}

#[test]
fn a_frame_to_the_routed_interface_is_routed() {
    let mut router = routed();
    router.send("e0", &ip4(BVI, mac(2), [10, 0, 0, 2], [10, 9, 0, 2]));
    let out = router.sent("e9");
    assert_eq!(out.len(), 1);
    assert_eq!(out[0][..6], mac(0x99));
    assert_eq!(sent(&mut router, 2), [0, 0]);
    assert_eq!(router.totals("loop0").rx_packets, 1);
}

#[test]
fn what_is_routed_out_of_it_comes_into_the_bridge_and_is_forwarded_or_flooded() {
    let mut router = routed();
    let to_host = ip4([2, 0xfe, 0, 0, 0, 2], mac(0x99), [10, 9, 0, 2], [10, 0, 0, 2]);
    router.send("e9", &to_host);
    let out = (router.sent("e0"), router.sent("e1"));
    assert_eq!((out.0.len(), out.1.len()), (1, 1), "not known, so flooded");
    assert_eq!((&out.0[0][..6], &out.0[0][6..12]), (&mac(2)[..], &BVI[..]));
    speak(&mut router, "e1", 2);
    router.send("e9", &to_host);
    assert_eq!(sent(&mut router, 2), [0, 1]);
    assert_eq!(router.totals("loop0").tx_packets, 2);
}

#[test]
fn a_broadcast_reaches_hosts_and_the_router() {
    let mut router = routed();
    speak(&mut router, "e0", 2);
    let mut ask = frame(BROADCAST, mac(2));
    ask[12..42].copy_from_slice(&[
        8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2, 10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1,
    ]);
    router.send("e0", &ask);
    assert_eq!(router.sent("e1"), [ask]);
    let answers = router.sent("e0");
    assert_eq!(answers.len(), 1);
    assert_eq!((&answers[0][..6], &answers[0][6..12], answers[0][21]), (&mac(2)[..], &BVI[..], 2));
}

#[test]
fn the_routed_interfaces_address_is_known_and_follows_it() {
    let mut router = routed();
    assert_eq!(known_at(&mut router, BVI).as_deref(), Some("loop0"));
    router.cli("set interface mac address loop0 02:00:00:00:be:ef");
    assert_eq!(known_at(&mut router, BVI), None);
    assert_eq!(known_at(&mut router, [2, 0, 0, 0, 0xbe, 0xef]).as_deref(), Some("loop0"));
    router.send("e0", &ip4([2, 0, 0, 0, 0xbe, 0xef], mac(2), [10, 0, 0, 2], [10, 9, 0, 2]));
    assert_eq!(router.sent("e9").len(), 1);
}

#[test]
fn who_speaks_with_the_routed_interfaces_address_is_not_heard() {
    let mut router = routed();
    router.send("e0", &frame(mac(7), BVI));
    assert_eq!(sent(&mut router, 2), [0, 0]);
    assert_eq!(router.count("l2-learn", "static-moved"), 1);
    assert_eq!(known_at(&mut router, BVI).as_deref(), Some("loop0"));
}

#[test]
fn taken_out_or_deleted_it_leaves_nothing_behind() {
    let mut router = routed();
    router.cli("set interface l3 loop0");
    assert_eq!(known_at(&mut router, BVI), None);
    assert!(!router.cli("show running-config").contains("bvi"));
    router.send("e0", &ip4(BVI, mac(2), [10, 0, 0, 2], [10, 9, 0, 2]));
    assert_eq!(
        (router.sent("e9").len(), router.sent("e1").len()),
        (0, 1),
        "a station like any other"
    );
    router.cli("set interface l2 bridge loop0 1 bvi");
    router.cli("delete loopback interface intfc loop0");
    assert_eq!(known_at(&mut router, BVI), None);
    router.send("e0", &frame(BROADCAST, mac(2)));
    assert_eq!(sent(&mut router, 2), [0, 1]);
    router.cli("create loopback interface instance 0");
    router.cli("set interface l2 bridge loop0 1 bvi");
}

#[test]
fn what_nobody_is_known_to_want_does_not_go_to_the_router() {
    let mut router = routed();
    router.send("e0", &frame(mac(9), mac(2)));
    assert_eq!(sent(&mut router, 2), [0, 1]);
    assert_eq!(router.totals("loop0").rx_packets, 0);
}

#[test]
fn down_it_drops_and_says_so() {
    let mut router = routed();
    router.cli("set interface state loop0 down");
    router.send("e0", &ip4(BVI, mac(2), [10, 0, 0, 2], [10, 9, 0, 2]));
    assert_eq!(router.count("bvi-input", "interface-down"), 1);
    router.send("e0", &frame(BROADCAST, mac(2)));
    assert_eq!(sent(&mut router, 2), [0, 1]);
}

#[test]
fn frames_of_other_features_at_its_output_come_before_the_bridge() {
    let mut router = Router::new(&FEATURES);
    router.cli("create loopback interface instance 0");
    router.cli("set interface l2 bridge loop0 1 bvi");
    let features = router.cli("show features");
    assert!(features.contains("bridge"), "{features}");
    assert!(router.cli("show mode").contains("bridge-domain 1 bvi"));
}

#[test]
fn a_port_that_is_cross_connected_with_a_loopback_reaches_it() {
    let mut router = bridge(1);
    router.interface("e5");
    router.cli("create loopback interface instance 0");
    router.cli("set interface state loop0 up");
    router.cli("set interface l2 xconnect e5 loop0");
    for _ in 0..3 {
        router.send("e5", &frame(BROADCAST, mac(1)));
    }
    assert_eq!(router.totals("loop0").rx_packets, 3);
}

/// The MTU of an interface, as workers see it.
fn mtu(router: &mut Router, name: &str) -> u32 {
    let id = router.id(name);
    router.engine().interface(id).expect("there").row().mtu_bytes
}

#[test]
fn the_routed_interface_has_no_greater_mtu_than_any_port() {
    let mut router = routed();
    for port in ["e0", "e1"] {
        router.cli(&format!("set interface mtu packet 9000 {port}"));
    }
    let own = mtu(&mut router, "loop0");
    assert!(own <= 9000, "its own");
    router.cli("set interface mtu packet 1400 e1");
    assert_eq!(mtu(&mut router, "loop0"), 1400);
    // What the operator wants holds when the ports take it, and is what the configuration says.
    let said = router.cli("set interface mtu packet 8000 loop0");
    assert!(said.contains("1400 bytes for now"), "{said}");
    assert_eq!(mtu(&mut router, "loop0"), 1400);
    assert!(router.cli("show running-config").contains("set interface mtu packet 8000 loop0\n"));
    router.cli("set interface mtu packet 9000 e1");
    assert_eq!(mtu(&mut router, "loop0"), 8000);
    // Ports that join and leave count as well.
    router.interface("e2");
    router.cli("set interface mtu packet 1280 e2");
    router.cli("set interface l2 bridge e2 1");
    assert_eq!(mtu(&mut router, "loop0"), 1280);
    router.cli("set interface l3 e2");
    assert_eq!(mtu(&mut router, "loop0"), 8000);
    router.cli("set interface mtu packet 1300 e0");
    router.cli("set interface l3 loop0");
    assert_eq!(mtu(&mut router, "loop0"), 8000, "alone it is itself again");
}
