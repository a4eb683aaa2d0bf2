//! Where frames to one station go, and which frames go nowhere.

use super::{BROADCAST, bridge, frame, mac, sent, speak};

#[test]
fn a_frame_to_an_unknown_mac_is_flooded_except_to_its_port() {
    let mut router = bridge(4);
    router.send("e1", &frame(mac(9), mac(1)));
    assert_eq!(sent(&mut router, 4), [1, 0, 1, 1]);
    assert_eq!(router.count("l2-uu-flood", "copied"), 2);
}

#[test]
fn a_frame_to_a_learned_mac_goes_to_its_port_alone_and_unchanged() {
    let mut router = bridge(4);
    speak(&mut router, "e2", 2);
    let there = frame(mac(2), mac(1));
    router.send("e0", &there);
    assert_eq!(router.sent("e2"), [there]);
    assert_eq!(sent(&mut router, 4), [0, 0, 0, 0]);
}

#[test]
fn a_frame_never_goes_out_of_the_port_that_it_came_in_by() {
    let mut router = bridge(3);
    speak(&mut router, "e0", 1);
    router.send("e0", &frame(mac(1), mac(2)));
    assert_eq!(sent(&mut router, 3), [0, 0, 0]);
    assert_eq!(router.count("l2-fwd", "own-port"), 1);
}

#[test]
fn ports_of_one_split_horizon_group_do_not_see_each_other() {
    let mut router = bridge(2);
    for port in ["e2", "e3", "e4"] {
        router.interface(port);
        router
            .cli(&format!("set interface l2 bridge {port} 1 {}", if port == "e4" { 2 } else { 1 }));
    }
    router.send("e2", &frame(BROADCAST, mac(3)));
    assert_eq!(sent(&mut router, 5), [1, 1, 0, 0, 1]);
    router.send("e3", &frame(mac(3), mac(4)));
    assert_eq!(sent(&mut router, 5), [0, 0, 0, 0, 0]);
    assert_eq!(router.count("l2-fwd", "split-horizon"), 1);
    router.send("e4", &frame(mac(3), mac(5)));
    assert_eq!(sent(&mut router, 5), [0, 0, 1, 0, 0]);
    // The same command with another group moves it.
    router.cli("set interface l2 bridge e3 1 3");
    router.send("e3", &frame(mac(3), mac(4)));
    assert_eq!(sent(&mut router, 5), [0, 0, 1, 0, 0]);
}

#[test]
fn domains_do_not_mix_even_with_the_same_addresses() {
    let mut router = bridge(2);
    for port in ["e2", "e3"] {
        router.interface(port);
        router.cli(&format!("set interface l2 bridge {port} 2"));
    }
    speak(&mut router, "e1", 7);
    speak(&mut router, "e3", 7);
    router.send("e0", &frame(mac(7), mac(1)));
    assert_eq!(sent(&mut router, 4), [0, 1, 0, 0]);
    router.send("e2", &frame(mac(7), mac(1)));
    assert_eq!(sent(&mut router, 4), [0, 0, 0, 1]);
}

#[test]
fn frames_that_no_bridge_forwards_die_with_a_reason() {
    let mut router = bridge(2);
    router.send("e0", &frame(mac(2), mac(1))[..13]);
    router.send("e0", &frame(mac(2), BROADCAST));
    router.send("e0", &frame(mac(2), [1, 0, 0x5e, 0, 0, 1]));
    router.send("e0", &frame(mac(2), [0; 6]));
    router.send("e0", &frame([1, 0x80, 0xc2, 0, 0, 2], mac(1)));
    assert_eq!(sent(&mut router, 2), [0, 0]);
    assert_eq!(router.count("l2-input", "truncated"), 1);
    assert_eq!(router.count("l2-input", "bad-source"), 3);
    assert_eq!(router.count("l2-input", "link-local-group"), 1);
    assert_eq!(router.json("show l2fib")["entries"], 0);
    // The spanning tree's own group passes a bridge that takes no part in it.
    router.send("e0", &frame([1, 0x80, 0xc2, 0, 0, 0], mac(1)));
    assert_eq!(sent(&mut router, 2), [0, 1]);
}

#[test]
fn tagged_and_length_frames_pass_as_they_are() {
    let mut router = bridge(2);
    let mut tagged = frame(BROADCAST, mac(1));
    tagged[12..18].copy_from_slice(&[0x81, 0, 0x60, 7, 8, 0]);
    let mut length = frame(BROADCAST, mac(1));
    length[12..14].copy_from_slice(&[0, 46]);
    router.send("e0", &tagged);
    router.send("e0", &length);
    assert_eq!(router.sent("e1"), [tagged, length]);
}

#[test]
fn a_jumbo_frame_in_many_buffers_is_flooded_whole() {
    let mut router = bridge(4);
    let mut jumbo = frame(BROADCAST, mac(1));
    jumbo.extend((0..8900).map(|i| i as u8));
    router.send("e0", &jumbo);
    for port in ["e1", "e2", "e3"] {
        assert_eq!(router.sent(port), std::slice::from_ref(&jumbo), "{port}");
    }
}

#[test]
fn a_switch_that_is_off_drops_and_says_so() {
    let mut router = bridge(2);
    speak(&mut router, "e1", 2);
    let counted = |router: &mut quiver_testkit::Router, to, node, reason| {
        let before = router.count(node, reason);
        router.send("e0", &frame(to, mac(1)));
        assert_eq!(sent(router, 2), [0, 0]);
        assert_eq!(router.count(node, reason), before + 1);
    };
    for (off, on, to, node, reason) in [
        ("forward 1 disable", "forward 1", mac(2), "l2-learn", "forward-off"),
        ("flood 1 disable", "flood 1", BROADCAST, "l2-learn", "flood-off"),
        ("uu-flood 1 disable", "uu-flood 1", mac(9), "l2-fwd", "unknown-unicast"),
    ] {
        router.cli(&format!("set bridge-domain {off}"));
        counted(&mut router, to, node, reason);
        router.cli(&format!("set bridge-domain {on}"));
        router.send("e0", &frame(to, mac(1)));
        assert_eq!(sent(&mut router, 2), [0, 1], "{on}");
    }
    // The same by port; without learning, too, where l2-input decides.
    router.cli("set bridge-domain learn 1 disable");
    for (off, to, node, reason) in [
        ("forward e0 disable", mac(2), "l2-input", "forward-off"),
        ("flood e0 disable", BROADCAST, "l2-input", "flood-off"),
    ] {
        router.cli(&format!("set interface l2 {off}"));
        counted(&mut router, to, node, reason);
    }
    router.send("e1", &frame(mac(1), mac(2)));
    assert_eq!(sent(&mut router, 2), [1, 0], "the other port is not concerned");
}

#[test]
fn a_filter_drops_what_comes_from_an_address_and_what_goes_to_it() {
    let mut router = bridge(2);
    router.cli("l2fib add 02:00:00:00:00:66 1 e1 filter");
    router.cli("l2fib add 02:00:00:00:00:77 1 filter");
    for bad in [0x66, 0x77] {
        router.send("e0", &frame(mac(bad), mac(1)));
        router.send("e0", &frame(mac(1), mac(bad)));
        router.send("e1", &frame(mac(1), mac(bad)));
    }
    assert_eq!(sent(&mut router, 2), [0, 0]);
    assert_eq!(router.count("l2-fwd", "destination-filtered"), 2);
    assert_eq!(router.count("l2-learn", "source-filtered"), 4);
}

#[test]
fn a_port_without_a_link_gets_nothing_and_is_forgotten() {
    let mut router = bridge(3);
    speak(&mut router, "e1", 2);
    router.cli("set interface state e1 down");
    router.send("e0", &frame(mac(2), mac(1)));
    assert_eq!(sent(&mut router, 3), [0, 0, 1], "the address may be elsewhere now");
    router.cli("set interface state e1 up");
    router.send("e0", &frame(mac(2), mac(1)));
    assert_eq!(sent(&mut router, 3), [0, 1, 1]);
}
