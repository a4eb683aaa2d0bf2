//! Loopbacks.

use crate::toy::{frame, router};

#[test]
fn what_is_sent_to_a_loopback_comes_back_as_received_on_it() {
    let mut router = router();
    assert_eq!(router.cli("create loopback interface"), "loop0\n");
    router.cli("set interface state loop0 up");
    router.cli("trace add test-input 1");
    router.send("e0", &frame(2, 60));
    // The frame names the loopback, so it comes back until it has gone round too often.
    assert_eq!(router.dropped(), [("loopback-input".into(), "loop".into(), 1)]);
    let totals = router.totals("loop0");
    assert_eq!(totals.tx_packets, totals.rx_packets);
    assert!((2..40).contains(&totals.rx_packets), "{totals:?}");
    assert_eq!(totals.drops, 1);
    let trace = router.cli("show trace");
    assert!(trace.contains("loopback-input\n  60 bytes came back as received on loop0"), "{trace}");
}

#[test]
fn a_loopback_that_is_down_sends_nothing() {
    let mut router = router();
    router.cli("create loopback interface");
    router.send("e0", &frame(2, 60));
    assert_eq!(router.dropped(), [("loop0-output".into(), "interface-down".into(), 1)]);
}

#[test]
fn instances_and_addresses_are_taken_as_given_and_only_once() {
    let mut router = router();
    assert_eq!(router.cli("create loopback interface instance 1 mac 02:00:00:00:00:09"), "loop1\n");
    assert_eq!(router.cli("loopback create-interface"), "loop0\n");
    assert_eq!(router.cli("loopback create-interface"), "loop2\n");
    assert!(
        router.refused("create loopback interface instance 1").contains("loop1 exists already")
    );
    assert!(
        router.refused("create loopback interface mac ff:ff:ff:ff:ff:ff").contains("group address")
    );
    let json = router.json("show interface loop1");
    assert_eq!(json["interfaces"][0]["mac"], "02:00:00:00:00:09");
    assert_eq!(json["interfaces"][0]["mtu_bytes"], 9000);
    assert_eq!(router.json("show interface loop2")["interfaces"][0]["mac"], "de:ad:00:00:00:02");
}

#[test]
fn only_loopbacks_are_deleted_as_loopbacks() {
    let mut router = router();
    router.cli("create loopback interface");
    assert!(router.refused("delete loopback interface intfc e0").contains("e0 is not a loopback"));
    router.cli("delete loopback interface intfc loop0");
    router.refused("show interface loop0");
    assert!(!router.cli("show running-config").contains("loopback"));
    router.send("e0", &frame(2, 60));
    assert_eq!(router.count("toy-forward", "no-interface"), 1);
    assert_eq!(router.cli("create loopback interface"), "loop0\n");
}

#[test]
fn loopbacks_of_two_routers_differ_in_address_and_those_of_one_router_never_change() {
    let mac = |number: [u8; 3]| {
        let mut router = router();
        router.engine().insert(quiver_control::commands::RouterNumber(number));
        router.cli("create loopback interface instance 5");
        router.json("show interface loop5")["interfaces"][0]["mac"].as_str().unwrap().to_owned()
    };
    assert_eq!(mac([1, 2, 3]), "de:01:02:03:00:05");
    assert_eq!(mac([1, 2, 3]), mac([1, 2, 3]));
    assert_ne!(mac([1, 2, 3]), mac([1, 2, 4]));
}
