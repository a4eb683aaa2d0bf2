//! Sub-interfaces as an operator sees them: made, refused, following their parent, deleted under
//! traffic.

use quiver_testkit::{Register, Router};

const FEATURES: [Register; 2] = [quiver_ethernet::register, quiver_ip::register];

fn router() -> Router {
    let mut router = Router::new(&FEATURES);
    router.interface("e0");
    router.interface("e1");
    router
}

/// An IPv4 packet to 10.0.1.2 from 10.1.0.2, in a frame to e0 with these bytes between addresses
/// and type.
fn frame(tags: &[u8]) -> Vec<u8> {
    let ip = [
        0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0x65, 0xcd, 10, 1, 0, 2, 10, 0, 1, 2, 0, 1, 0, 2, 0, 8,
        0, 0,
    ];
    let addresses = [2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0xa1];
    [&addresses[..], tags, &[8, 0], &ip].concat()
}

fn state(router: &mut Router, name: &str) -> serde_json::Value {
    router.json(&format!("show interface {name}"))["interfaces"][0].clone()
}

#[test]
fn every_way_to_say_which_frames_is_written_back_as_it_was_said() {
    let mut router = router();
    let commands = [
        "create sub-interfaces e0 1 default",
        "create sub-interfaces e0 2 untagged",
        "create sub-interfaces e0 3 dot1q any",
        "create sub-interfaces e0 4 dot1q 4094",
        "create sub-interfaces e0 5 dot1q 5 inner-dot1q any",
        "create sub-interfaces e0 6 dot1ad 6 inner-dot1q 7 exact-match",
        "create sub-interfaces e0 100 dot1q 100 exact-match",
    ];
    commands.iter().for_each(|command| drop(router.cli(command)));
    let config = router.cli("show running-config");
    let written: Vec<&str> =
        config.lines().filter(|line| line.contains("sub-interfaces")).collect();
    assert_eq!(written, commands);
    let shown = router.cli("show vlan");
    assert!(shown.contains("dot1ad 6 inner-dot1q 7 exact-match"), "{shown}");
}

#[test]
fn what_is_taken_already_or_makes_no_sense_is_refused_and_nothing_changes() {
    let mut router = router();
    router.cli("create sub-interfaces e0 100");
    for (command, says) in [
        ("create sub-interfaces e0 100", "e0.100 already"),
        ("create sub-interfaces e0 7 dot1q 100", "is e0.100 already"),
        ("create sub-interfaces e0 100 dot1q 5", "interface e0.100 exists already"),
        ("create sub-interfaces e0.100 5", "e0.100 is a sub-interface itself"),
        ("create sub-interfaces e0 5000", "5000 is no VLAN"),
        ("create sub-interfaces e0 1-5000", "5000 is no VLAN"),
        ("create sub-interfaces e0 90-110", "e0.100 already"),
        ("create sub-interfaces e0 1-3 dot1q 9", "a range makes one"),
        ("create sub-interfaces e0 4294967296 dot1q 9", "32 bits"),
        ("delete sub-interface e0", "e0 is not a sub-interface"),
        ("set interface mac address e0.100 02:00:00:00:00:01", "its parent's"),
        ("set interface mtu 9000 e0.100", "more than the"),
    ] {
        let refusal = router.refused(command);
        assert!(refusal.contains(says), "{command}: {refusal}");
    }
    assert_eq!(router.engine().all_interfaces().count(), 3);
    for refused in ["create sub-interfaces e0 1 dot1q 0", "create sub-interfaces e0 1 dot1q 4095"] {
        router.refused(refused);
    }
}

#[test]
fn layer_3_needs_exact_match() {
    let mut router = router();
    router.cli("create sub-interfaces e0 1 dot1q 5");
    for command in [
        "set interface ip address e0.1 10.0.0.1/24",
        "set interface ip address e0.1 fd00::1/64",
        "set interface ip table e0.1 0",
    ] {
        let refusal = router.refused(command);
        assert!(refusal.contains("exact-match"), "{refusal}");
    }
    router.cli("create sub-interfaces e0 2 untagged");
    router.cli("set interface ip address e0.2 10.0.0.1/24");
}

#[test]
fn a_sub_interface_follows_its_parent() {
    let mut router = router();
    router.cli("create sub-interfaces e0 100");
    router.cli("create sub-interfaces e0 101");
    router.cli("set interface state e0.100 up");
    assert_eq!(state(&mut router, "e0.100")["mac"], "02:fe:00:00:00:00");
    router.cli("set interface mac address e0 02:00:00:00:00:77");
    assert_eq!(state(&mut router, "e0.100")["mac"], "02:00:00:00:00:77");
    router.cli("set interface mtu 9000 e0");
    router.cli("set interface mtu 4000 e0.101");
    let mtu = |router: &mut Router| {
        (state(router, "e0.100")["mtu_bytes"].clone(), state(router, "e0.101")["mtu_bytes"].clone())
    };
    assert_eq!(mtu(&mut router), (9000.into(), 4000.into()));
    router.cli("set interface mtu 3000 e0");
    assert_eq!(mtu(&mut router), (3000.into(), 3000.into()));
    router.cli("set interface mtu 5000 e0");
    assert_eq!(mtu(&mut router), (5000.into(), 4000.into()));
    assert_eq!(state(&mut router, "e0.100")["link"], "up");
    router.cli("set interface state e0 down");
    assert_eq!(state(&mut router, "e0.100")["link"], "down");
    assert_eq!(state(&mut router, "e0.100")["state"], "up");
    router.cli("set interface state e0 up");
    assert_eq!(state(&mut router, "e0.100")["link"], "up");
}

#[test]
fn only_what_the_operator_set_is_in_the_configuration() {
    let mut router = router();
    router.cli("create sub-interfaces e0 100");
    router.cli("create sub-interfaces e0 101");
    router.cli("set interface state e0.100 up");
    router.cli("set interface mtu 9000 e0");
    router.cli("set interface mac address e0 02:00:00:00:00:77");
    router.cli("set interface mtu 4000 e0.101");
    let config = router.cli("show running-config");
    let about: Vec<&str> = config.lines().filter(|line| line.contains("e0.")).collect();
    assert_eq!(about, ["set interface state e0.100 up", "set interface mtu packet 4000 e0.101"]);
}

#[test]
fn a_sub_interface_can_be_deleted_with_packets_under_way_and_made_again() {
    let mut router = router();
    router.cli("set interface ip address e1 10.0.1.1/24");
    router.cli("ip neighbor e1 10.0.1.2 02:00:00:00:00:b1 static");
    for round in 0..3 {
        router.cli("create sub-interfaces e0 100");
        router.cli("set interface state e0.100 up");
        router.cli("set interface ip address e0.100 10.1.0.1/24");
        router.send("e0", &frame(&[0x81, 0, 0, 100]));
        assert_eq!(router.sent("e1").len(), 1, "round {round}");
        assert_eq!(router.totals("e0.100").rx_packets, 1);
        router.inject("e0", &frame(&[0x81, 0, 0, 100]));
        router.cli("delete sub-interface e0.100");
        router.run();
        assert!(router.sent("e1").is_empty());
        assert_eq!(
            router.dropped(),
            [("vlan-input".to_owned(), "unknown-vlan".to_owned(), round + 1)]
        );
    }
    assert!(router.refused("show interface e0.100").contains("no interface"));
}

#[test]
fn a_port_that_goes_takes_its_sub_interfaces_along() {
    let mut router = Router::new(&FEATURES);
    router.cli("create loopback interface instance 3");
    router.cli("create sub-interfaces loop3 1-50");
    router.cli("set interface ip address loop3.7 10.1.0.1/24");
    assert_eq!(router.engine().all_interfaces().count(), 51);
    router.cli("delete loopback interface intfc loop3");
    assert_eq!(router.engine().all_interfaces().count(), 0);
    assert_eq!(router.cli("show running-config"), "");
    router.cli("create loopback interface instance 3");
    router.cli("create sub-interfaces loop3 1-50");
}
