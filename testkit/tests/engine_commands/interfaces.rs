//! Interfaces and their receive queues.

use quiver_testkit::{Router, Settings};

use crate::toy::{frame, register, router};

#[test]
fn a_frame_goes_through_only_while_both_interfaces_are_up() {
    let mut router = router();
    router.send("e0", &frame(1, 60));
    assert_eq!(router.sent("e1"), [frame(1, 60)]);
    router.cli("set int state e1 down");
    router.send("e0", &frame(1, 60));
    assert_eq!(router.dropped(), [("e1-output".into(), "interface-down".into(), 1)]);
    router.cli("set interface state e0 down");
    router.send("e0", &frame(1, 60));
    assert_eq!(router.count("null-node", "interface-down"), 1);
    assert_eq!(router.totals("e0").drops, 2);
}

#[test]
fn show_interface_looks_as_operators_know_it() {
    let mut router = router();
    router.cli("set interface mtu packet 9000 e1");
    router.cli("set interface state e1 down");
    router.send("e0", &frame(1, 60));
    let expected =
        "              Name               Idx    State  MTU (L3/IP4/IP6/MPLS)     Counter          \
         Count
e0                                0      up          1500/0/0/0     rx packets                     1
                                                                    rx bytes                      60
                                                                    drops                          1
e1                                1     down         9000/0/0/0
";
    assert_eq!(router.cli("show interface"), expected);
    assert_eq!(router.cli("sh int e1").lines().count(), 2);
    router.cli("clear interfaces");
    assert_eq!(router.cli("show interface").lines().count(), 3);
}

#[test]
fn the_json_of_an_interface_is_complete() {
    let mut router = router();
    let id = router.id("e0");
    router.engine().set_feature(id, "device-input", "toy-watch", true).expect("feature");
    router.send("e0", &frame(1, 60));
    let json = router.json("show interface e0 json");
    let e0 = &json["interfaces"][0];
    assert_eq!(e0["name"], "e0");
    assert_eq!(e0["state"], "up");
    assert_eq!(e0["link"], "up");
    assert_eq!(e0["mtu_bytes"], 1500);
    assert_eq!(e0["mac"], "02:fe:00:00:00:00");
    assert_eq!(e0["input"], "ethernet-input");
    assert_eq!(e0["counters"]["rx_packets"], 1);
    assert_eq!(e0["counters"]["tx_error"], 0);
    assert_eq!(e0["rx_queues"][0]["mode"], "polling");
    assert_eq!(
        e0["features"][0],
        serde_json::json!({ "arc": "device-input", "features": ["toy-watch"] })
    );
    assert_eq!(json["interfaces"].as_array().map(Vec::len), Some(1));
}

#[test]
fn an_address_is_set_and_a_group_address_refused() {
    let mut router = router();
    router.cli("set interface mac address e0 02:00:00:00:00:aa");
    assert_eq!(router.json("show interface e0")["interfaces"][0]["mac"], "02:00:00:00:00:aa");
    let refusal = router.refused("set interface mac address e0 01:00:5e:00:00:01");
    assert!(refusal.contains("01:00:5e:00:00:01 cannot be the address"), "{refusal}");
    router.refused("set interface mac address e0 00:00:00:00:00:00");
    assert_eq!(router.json("show interface e0")["interfaces"][0]["mac"], "02:00:00:00:00:aa");
}

#[test]
fn a_name_or_number_that_cannot_be_is_refused_with_its_place() {
    let mut router = router();
    assert_eq!(
        router.refused("set interface state e7 up"),
        "no interface 'e7' (word 4): did you mean e0 or e1?"
    );
    let said = router.refused("set interface mtu 20 e0");
    assert!(said.contains("20") && said.contains("68"), "{said}");
    assert!(router.refused("set interface mtu ip6 1279 e0").contains("1280 or more"));
    assert!(
        router
            .refused("set interface rx-placement e0 worker 3")
            .contains("there is no worker 3 (word 6)")
    );
    assert!(
        router.refused("set interface rx-mode e0 queue 9 polling").contains("no receive queue 9")
    );
    assert!(router.refused("set interface rx-mode e0 interrupt").contains("only polling works"));
    assert_eq!(
        router.json("show interface e0")["interfaces"][0]["rx_queues"][0]["mode"],
        "polling"
    );
}

#[test]
fn features_of_an_interface_are_shown_by_arc() {
    let mut router = router();
    let id = router.id("e0");
    router.engine().set_feature(id, "device-input", "toy-watch", true).expect("feature");
    let text = router.cli("show interface features e0");
    assert!(text.contains("device-input:\n  toy-watch\n"), "{text}");
    assert!(text.contains("interface-output:\n  none configured\n"), "{text}");
    router.send("e0", &frame(1, 60));
    assert_eq!(router.sent("e1").len(), 1);
}

fn two_workers() -> Router {
    let mut router = Router::with(Settings { workers: 2, ..Settings::default() }, &[register]);
    router.cli("create test interface e0 rx-queues 2 wakeable");
    router.cli("set interface state e0 up");
    router
}

#[test]
fn queues_move_between_workers_and_modes() {
    let mut router = two_workers();
    let text = router.cli("show interface rx-placement");
    let expected = "\
Thread 1 (quiver_wk_0):
  node test-input:
    e0 queue 0 (polling)
Thread 2 (quiver_wk_1):
  node test-input:
    e0 queue 1 (polling)
";
    assert_eq!(text, expected);
    router.cli("set interface rx-placement e0 queue 1 worker 0");
    router.cli("set interface rx-mode e0 adaptive");
    router.cli("set interface rx-mode e0 queue 1 interrupt");
    let text = router.cli("show interface rx-placement");
    assert!(text.contains("    e0 queue 0 (adaptive)\n    e0 queue 1 (interrupt)\n"), "{text}");
    assert!(!text.contains("Thread 2"), "{text}");
    router.inject_queue("e0", 1, &frame(0, 60));
    router.run();
    assert_eq!(router.sent("e0").len(), 1);
}

#[test]
fn a_sleeping_queue_wakes_when_a_frame_comes() {
    let mut router = two_workers();
    router.cli("set interface rx-mode e0 interrupt");
    for _ in 0..100 {
        router.step();
    }
    router.send("e0", &frame(0, 60));
    for _ in 0..200 {
        router.step(); // sleepers are looked at once in a while
    }
    assert_eq!(router.sent("e0").len(), 1);
}

#[test]
fn what_was_said_of_queues_holds_for_those_that_come_later() {
    let mut router = two_workers();
    let id = router.id("e0");
    router.engine().remove_rx_queues(id).expect("removed");
    router.cli("set interface rx-mode e0 interrupt");
    router.cli("set interface rx-placement e0 queue 0 worker 1");
    let config = router.cli("show running-config");
    assert!(config.contains("set interface rx-mode e0 interrupt\n"), "{config}");
    assert!(config.contains("set interface rx-placement e0 queue 0 worker 1\n"), "{config}");
    router.cli("set interface rx-mode e0 polling");
    let config = router.cli("show running-config");
    assert!(!config.contains("interrupt"), "{config}");
    assert_eq!(config.matches("rx-placement").count(), 1);
}

#[test]
fn the_running_configuration_makes_the_same_router() {
    let mut router = two_workers();
    for line in [
        "create test interface e1",
        "create loopback interface instance 7",
        "loopback create-interface mac 02:00:00:00:00:77",
        "set interface state loop7 up",
        "set interface mac address loop0 02:00:00:00:00:01",
        "set interface mtu 1400 e1",
        "set interface promiscuous on e1",
        "set interface rx-mode e0 queue 1 adaptive",
        "set interface rx-placement e0 queue 1 worker 0",
    ] {
        router.cli(line);
    }
    let config = router.cli("show running-config");
    let mut second = Router::with(Settings { workers: 2, ..Settings::default() }, &[register]);
    second.script("running", &config).expect("accepted");
    assert_eq!(second.cli("show running-config"), config);
    let facts = |router: &mut Router, name: &str| {
        let json = router.json(&format!("show interface {name}"));
        let mut interface = json["interfaces"][0].clone();
        interface["index"] = serde_json::Value::Null;
        interface
    };
    for name in ["e0", "e1", "loop0", "loop7"] {
        assert_eq!(facts(&mut router, name), facts(&mut second, name), "{name}");
    }
}

#[test]
fn hardware_shows_what_the_device_says() {
    let mut router = router();
    router.send("e0", &frame(1, 60));
    let text = router.cli("show hardware-interfaces e1 verbose");
    assert!(text.contains("Ethernet address 02:fe:00:00:00:01"), "{text}");
    assert!(text.contains("frames sent and not yet looked at: 1"), "{text}");
    assert!(text.contains("rx queue 0: polling, served by quiver_wk_0 in test-input"), "{text}");
    let json = router.json("show hardware-interfaces");
    assert_eq!(json["interfaces"][1]["facts"]["frames_sent_and_not_yet_looked_at"], 1);
    assert_eq!(json["interfaces"][0]["hardware"], "test");
}
