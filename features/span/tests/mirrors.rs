//! Mirrors: who gets copies of what, and what cannot go wrong.

use quiver_testkit::{Router, Settings};

const FEATURES: &[quiver_testkit::Register] =
    &[quiver_bond::register, quiver_ethernet::register, quiver_span::register];

/// `e0` and `e1` give theirs to each other; `e2` and `e3` watch.
fn router() -> Router {
    let mut router = Router::new(FEATURES);
    for name in ["e0", "e1", "e2", "e3"] {
        router.interface(name);
    }
    router.cli("set interface l2 xconnect e0 e1");
    router.cli("set interface l2 xconnect e1 e0");
    router
}

fn frame(number: u8, length: usize) -> Vec<u8> {
    let mut frame = vec![number; length];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    frame
}

#[test]
fn what_is_received_is_copied_as_it_came() {
    let mut router = router();
    router.cli("set interface span e0 destination e2 rx");
    let frames = [frame(1, 60), frame(2, 1514), frame(3, 14), frame(4, 9000)];
    frames.iter().for_each(|frame| router.inject("e0", frame));
    router.send("e1", &frame(5, 60));
    assert_eq!(router.sent("e2"), frames);
    assert_eq!(router.sent("e1"), frames);
    assert_eq!(router.sent("e0"), [frame(5, 60)]);
    assert_eq!(router.count("span-input", "copied"), 4);
    assert!(router.dropped().is_empty());
}

#[test]
fn what_is_sent_is_copied_as_it_leaves() {
    let mut router = router();
    router.cli("set interface span e0 destination e2 tx");
    router.send("e1", &frame(1, 60));
    router.send("e0", &frame(2, 60));
    assert_eq!(router.sent("e2"), [frame(1, 60)]);
    assert_eq!((router.totals("e2").tx_packets, router.totals("e0").tx_packets), (1, 1));
}

#[test]
fn both_directions_are_the_rule() {
    let mut router = router();
    router.cli("set interface span e0 destination e2");
    router.send("e1", &frame(1, 60));
    router.send("e0", &frame(2, 60));
    assert_eq!(router.sent("e2"), [frame(1, 60), frame(2, 60)]);
    assert_eq!(router.json("show interface span")[0]["directions"], "both");
}

#[test]
fn several_destinations_get_a_copy_each() {
    let mut router = router();
    router.cli("set interface span e0 destination e2 rx");
    router.cli("set interface span e0 destination e3");
    (0..50).for_each(|number| router.inject("e0", &frame(number, 60)));
    router.run();
    assert_eq!(router.sent("e2").len(), 50);
    assert_eq!(router.sent("e3"), router.sent("e1"));
    router.cli("set interface span e0 disable destination e3");
    router.send("e0", &frame(1, 60));
    assert_eq!((router.sent("e2").len(), router.sent("e3").len()), (1, 0));
}

#[test]
fn copies_are_never_copied_again() {
    let mut router = router();
    router.cli("create loopback interface");
    router.cli("set interface state loop0 up");
    for (from, to) in [("e0", "e2"), ("e2", "e3"), ("e3", "e0"), ("e2", "loop0"), ("loop0", "e0")] {
        router.cli(&format!("set interface span {from} destination {to}"));
    }
    router.send("e0", &frame(1, 60));
    assert_eq!((router.sent("e1").len(), router.sent("e2").len()), (1, 1));
    assert_eq!((router.sent("e3").len(), router.sent("e0").len()), (0, 0));
    assert_eq!(router.count("span-output", "already-a-copy"), 1);
}

#[test]
fn a_mirror_into_a_bond_of_the_mirrored_ends_after_one_turn() {
    let mut router = router();
    router.cli("create bond mode broadcast");
    router.cli("set interface state BondEthernet0 up");
    router.cli("bond add BondEthernet0 e2");
    router.cli("bond add BondEthernet0 e3");
    router.cli("set interface span e2 destination BondEthernet0");
    router.cli("set interface span e0 destination BondEthernet0 rx");
    router.send("e0", &frame(1, 60));
    assert_eq!((router.sent("e2").len(), router.sent("e3").len()), (1, 1));
    assert_eq!(router.count("span-output", "already-a-copy"), 1);
}

#[test]
fn a_destination_that_is_down_costs_copies_and_nothing_else() {
    let mut router = router();
    router.cli("set interface span e0 destination e2 rx");
    router.cli("set interface state e2 down");
    router.send("e0", &frame(1, 60));
    assert_eq!(router.sent("e1").len(), 1);
    assert_eq!(router.count("span-input", "destination-down"), 1);
    router.cli("set interface state e2 up");
    router.send("e0", &frame(1, 60));
    assert_eq!(router.sent("e2").len(), 1);
    assert!(router.dropped().is_empty());
}

#[test]
fn a_destination_that_takes_nothing_costs_copies_and_nothing_else() {
    let mut router = router();
    router.cli("set interface span e0 destination e2 rx");
    router.stall("e2", true);
    (0..30).for_each(|number| router.inject("e0", &frame(number, 60)));
    router.run();
    assert_eq!(router.sent("e1").len(), 30);
    assert_eq!(router.dropped(), [("e2-tx".to_owned(), "tx-ring-full".to_owned(), 30)]);
}

#[test]
fn an_empty_pool_costs_copies_and_nothing_else() {
    let mut router = Router::with(Settings { buffers: 256, ..Settings::default() }, FEATURES);
    for name in ["e0", "e1", "e2"] {
        router.interface(name);
    }
    router.cli("test l2patch rx e0 tx e1");
    router.cli("set interface span e0 destination e2 rx");
    (0..200).for_each(|number| router.inject("e0", &frame(number, 60)));
    router.run();
    let copies = router.sent("e2").len() as u64;
    assert_eq!(router.sent("e1").len(), 200);
    assert_eq!(copies + router.count("span-input", "no-buffer"), 200);
    assert!(copies < 200);
}

#[test]
fn interfaces_that_go_take_their_mirrors_along() {
    let mut router = router();
    router.cli("set interface span e0 destination e2");
    router.cli("set interface span e0 destination e3");
    router.cli("set interface span e3 destination e0");
    let gone = router.id("e3");
    router.engine().delete_interface(gone).expect("deleted");
    router.send("e0", &frame(1, 60));
    assert_eq!(router.sent("e2").len(), 1);
    assert_eq!(router.json("show interface span").as_array().map(Vec::len), Some(1));
    let gone = router.id("e2");
    router.engine().delete_interface(gone).expect("deleted");
    assert_eq!(
        router.json("show interface features e0")["arcs"][0],
        serde_json::json!({ "arc": "device-input", "features": [] })
    );
    router.send("e0", &frame(1, 60));
    assert_eq!(router.sent("e1").len(), 2);
}

#[test]
fn mirrors_come_and_go_under_traffic_without_a_loss() {
    let mut router = router();
    let mut passed = 0;
    for round in 0..40 {
        (0..20).for_each(|number| router.inject("e0", &frame(number, 60)));
        router.cli(
            ["set interface span e0 destination e2", "set interface span e0 disable"][round % 2],
        );
        router.run();
        passed += router.sent("e1").len();
    }
    assert_eq!(passed, 800);
    assert!(router.dropped().is_empty());
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut router = router();
    for more in 4..13 {
        router.interface(&format!("e{more}"));
    }
    router.cli("set interface span e0 destination e2 rx");
    (4..11).for_each(|more| {
        drop(router.cli(&format!("set interface span e0 destination e{more} rx")))
    });
    let before = router.cli("show running-config");
    for (line, why) in [
        ("set interface span e0 destination e0", "cannot be mirrored to itself"),
        ("set interface span e0", "where are the copies to go?"),
        ("set interface span e1 disable", "e1 is not mirrored"),
        ("set interface span e0 disable destination e3", "e0 is not mirrored to e3"),
        ("set interface span e0 disable destination e2 tx", "e0 is not mirrored to e2"),
        ("set interface span e0 destination e11", "mirrored to 8 interfaces already"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(why), "{line}: {refusal}");
    }
    assert_eq!(router.cli("show running-config"), before);
}

#[test]
fn the_running_config_makes_the_same_mirrors_again() {
    let mut one = router();
    one.cli("set interface span e0 destination e2");
    one.cli("set interface span e0 destination e3 tx");
    one.cli("set interface span e1 destination e3 rx");
    let config = one.cli("show running-config");
    let mut other = Router::new(FEATURES);
    other.script("config", &config).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(other.cli("show running-config"), config);
    assert_eq!(other.cli("show interface span"), one.cli("show interface span"));
}

#[test]
fn a_trace_reads_as_sentences() {
    let mut router = router();
    router.cli("set interface span e0 destination e2 rx");
    router.cli("trace add test-input 1");
    router.send("e0", &frame(1, 60));
    let trace = router.cli("show trace");
    assert!(trace.contains("received on e0: mirrored, goes on to l2-xconnect"), "{trace}");
}

/// A frame with an 802.1Q tag that no sub-interface has.
fn tagged(number: u8) -> Vec<u8> {
    let mut tagged = frame(number, 64);
    tagged[12..18].copy_from_slice(&[0x81, 0, 0, 77, 8, 0]);
    tagged
}

#[test]
fn a_tagged_frame_on_a_mirrored_port_that_routes_dies_as_of_an_unknown_vlan() {
    for sub_interface in [false, true] {
        let mut router = Router::new(FEATURES);
        for name in ["e0", "e2"] {
            router.interface(name);
        }
        router.cli("set interface span e0 destination e2 rx");
        if sub_interface {
            router.cli("create sub-interfaces e0 5");
        }
        (0..40).for_each(|number| router.inject("e0", &tagged(number)));
        router.run();
        assert_eq!(router.sent("e2").len(), 40);
        assert_eq!(router.count("vlan-input", "unknown-vlan"), 40);
        assert_eq!(router.count("span-input", "copied"), 40);
    }
}

#[test]
fn a_tagged_frame_of_a_bond_that_routes_dies_as_of_an_unknown_vlan() {
    for mirrored in [false, true] {
        let mut router = Router::new(FEATURES);
        for name in ["e0", "e1", "e2"] {
            router.interface(name);
        }
        router.cli("create bond mode active-backup");
        router.cli("set interface state BondEthernet0 up");
        router.cli("bond add BondEthernet0 e0");
        router.cli("bond add BondEthernet0 e1");
        if mirrored {
            router.cli("set interface span BondEthernet0 destination e2 rx");
        }
        (0..40).for_each(|number| router.inject("e0", &tagged(number)));
        router.run();
        assert_eq!(router.count("vlan-input", "unknown-vlan"), 40);
        assert_eq!(router.sent("e2").len(), if mirrored { 40 } else { 0 });
    }
}
