//! The port for frames to stations that are not known, and ARP frames that go there.

use quiver_testkit::Router;

use super::{BROADCAST, bridge, frame, mac, sent, speak};

/// e0 to e2 in domain 1, e3 the port for what is not known there.
fn with_uu_forward() -> Router {
    let mut router = bridge(3);
    router.interface("e3");
    router.cli("set interface l2 bridge e3 1 uu-fwd");
    router
}

/// An ARP request from a station for an address.
fn ask(from: u8, for_ip: [u8; 4]) -> Vec<u8> {
    let mut frame = frame(BROADCAST, mac(from));
    let body =
        [[0, 1, 8, 0, 6, 4, 0, 1], [2, 0, 0, 0, 0, from, 10, 0], [0, from, 0, 0, 0, 0, 0, 0]]
            .concat();
    frame[12..14].copy_from_slice(&[8, 6]);
    frame[14..38].copy_from_slice(&body);
    frame[38..42].copy_from_slice(&for_ip);
    frame
}

#[test]
fn a_frame_to_an_unknown_station_goes_to_the_uu_fwd_port_alone_and_a_group_everywhere_else() {
    let mut router = with_uu_forward();
    router.send("e0", &frame(mac(9), mac(1)));
    assert_eq!(sent(&mut router, 4), [0, 0, 0, 1]);
    assert_eq!(router.count("l2-uu-fwd", "sent"), 1);
    router.send("e0", &frame(BROADCAST, mac(1)));
    assert_eq!(sent(&mut router, 4), [0, 1, 1, 0]);
    // Stations behind the port are learned, and known stations are sent to as always.
    speak(&mut router, "e3", 9);
    router.send("e0", &frame(mac(9), mac(1)));
    router.send("e3", &frame(mac(1), mac(9)));
    assert_eq!(sent(&mut router, 4), [1, 0, 0, 1]);
    assert_eq!(router.count("l2-uu-fwd", "sent"), 1);
}

#[test]
fn what_is_not_known_goes_there_even_when_such_frames_are_not_flooded() {
    let mut router = with_uu_forward();
    router.cli("set bridge-domain uu-flood 1 disable");
    router.send("e0", &frame(mac(9), mac(1)));
    assert_eq!(sent(&mut router, 4), [0, 0, 0, 1]);
    router.cli("set interface l3 e3");
    router.send("e0", &frame(mac(9), mac(1)));
    assert_eq!((sent(&mut router, 4), router.count("l2-fwd", "unknown-unicast")), (vec![0; 4], 1));
    router.cli("set bridge-domain uu-flood 1");
    router.send("e0", &frame(mac(9), mac(1)));
    assert_eq!(sent(&mut router, 4), [0, 1, 1, 0]);
}

#[test]
fn a_frame_that_nobody_is_known_for_dies_with_a_reason() {
    let mut router = with_uu_forward();
    router.send("e3", &frame(mac(9), mac(8)));
    router.cli("set interface l2 bridge e3 1 uu-fwd 7");
    router.cli("set interface l2 bridge e0 1 7");
    router.send("e0", &frame(mac(9), mac(1)));
    router.cli("set interface state e3 down");
    router.send("e1", &frame(mac(9), mac(2)));
    assert_eq!(sent(&mut router, 4), [0, 0, 0, 0]);
    for reason in ["own-port", "split-horizon", "interface-down"] {
        assert_eq!(router.count("l2-uu-fwd", reason), 1, "{reason}");
    }
}

#[test]
fn arp_frames_to_all_go_to_the_uu_fwd_port_alone_where_arp_ufwd_is_on() {
    let mut router = with_uu_forward();
    router.cli("set bridge-domain arp-ufwd 1");
    router.send("e0", &ask(1, [10, 0, 0, 5]));
    assert_eq!(sent(&mut router, 4), [0, 0, 0, 1]);
    assert_eq!(router.count("arp-term-l2bd", "arp-to-uu-fwd"), 1);
    // Other groups are flooded, and what the domain answers is answered.
    router.send("e0", &frame(BROADCAST, mac(1)));
    assert_eq!(sent(&mut router, 4), [0, 1, 1, 0]);
    router.cli("set bridge-domain arp term 1");
    router.cli("set bridge-domain arp entry 1 10.0.0.5 02:00:00:00:00:05");
    router.send("e0", &ask(1, [10, 0, 0, 5]));
    router.send("e3", &ask(8, [10, 0, 0, 5]));
    assert_eq!(sent(&mut router, 4), [1, 0, 0, 1], "both askers are answered");
    router.send("e0", &ask(1, [10, 0, 0, 6]));
    assert_eq!(sent(&mut router, 4), [0, 0, 0, 1]);
    // Without the port, and switched off, ARP is flooded.
    router.cli("set bridge-domain arp-ufwd 1 disable");
    router.send("e0", &ask(1, [10, 0, 0, 6]));
    assert_eq!(sent(&mut router, 4), [0, 1, 1, 0]);
    router.cli("set bridge-domain arp-ufwd 1");
    router.cli("set interface l3 e3");
    router.send("e0", &ask(1, [10, 0, 0, 6]));
    assert_eq!(sent(&mut router, 4), [0, 1, 1, 0]);
}

#[test]
fn a_domain_has_one_uu_fwd_port_and_the_configuration_says_so() {
    let mut router = with_uu_forward();
    let refusal = router.refused("set interface l2 bridge e2 1 uu-fwd");
    assert!(refusal.contains("e3 as its uu-fwd port"), "{refusal}");
    router.cli("set bridge-domain arp-ufwd 1");
    let config = router.cli("show running-config");
    assert!(config.contains("set interface l2 bridge e3 1 uu-fwd\n"), "{config}");
    assert!(config.contains("arp-ufwd 1"), "{config}");
    let shown = router.json("show bridge-domain 1 detail");
    assert_eq!(
        (&shown["domain"][0]["uu_fwd"], &shown["interfaces"][3]["uu_fwd"]),
        (&"e3".into(), &true.into())
    );
    // It becomes a port like any other.
    router.cli("set interface l2 bridge e3 1");
    router.send("e0", &frame(mac(9), mac(1)));
    assert_eq!(sent(&mut router, 4), [0, 1, 1, 1]);
}
