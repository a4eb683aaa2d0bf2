//! Commands, shows, traces and memory of reassembly.

use crate::stand;

use std::time::Duration;

use quiver_testkit::Settings;
use stand::{Family, Four, Whole, replies, router, router_with, send_all};

const DATA: usize = 4000;

#[test]
fn the_trace_of_a_packet_that_is_held_tells_that_it_waits_and_what_became_of_it() {
    for family in Family::BOTH {
        let mut router = router();
        let frames = Whole::echo(family, 1, DATA).frames(1232);
        router.cli("trace add test-input 10");
        send_all(&mut router, &frames);
        let trace = router.cli("show trace");
        assert_eq!(trace.matches("waits for the others of its packet").count(), 4, "{trace}");
        assert!(trace.contains("bytes 0 to 1232"), "{trace}");
        assert!(trace.contains("bytes 3696 to 4008, the last"), "{trace}");
        assert_eq!(replies(&mut router, family, "e0").len(), 1);
    }
}

#[test]
fn the_trace_of_the_first_fragment_goes_on_as_the_whole_packets() {
    for family in Family::BOTH {
        let mut router = router();
        let mut frames = Whole::echo(family, 1, DATA).frames(1232);
        frames.rotate_left(1);
        router.cli("trace add test-input 10");
        send_all(&mut router, &frames);
        let trace = router.json("show trace max 100");
        let packets = trace["threads"][0]["packets"].as_array().expect("packets");
        let whole = packets.iter().find(|packet| packet.to_string().contains("whole again"));
        assert!(whole.expect("a whole one").to_string().contains("e0-tx"), "{trace}");
    }
}

#[test]
fn a_trace_that_was_cleared_while_its_packet_was_held_is_not_continued() {
    for family in Family::BOTH {
        let mut router = router();
        let frames = Whole::echo(family, 1, DATA).frames(1232);
        router.cli("trace add test-input 10");
        send_all(&mut router, &frames[..3]);
        router.cli("clear trace");
        router.cli("trace add test-input 1");
        send_all(&mut router, &frames[3..]);
        let trace = router.json("show trace");
        let packets = trace["threads"][0]["packets"].as_array().expect("packets");
        assert_eq!(packets.len(), 1, "only the last fragment: {trace}");
        assert_eq!(replies(&mut router, family, "e0").len(), 1);
    }
}

#[test]
fn the_trace_of_a_packet_that_times_out_ends_with_its_reason() {
    let mut router = router();
    router.cli("trace add test-input 10");
    send_all(&mut router, &Whole::echo(Four, 1, DATA).frames(1232)[1..2]);
    router.advance(Duration::from_secs(61));
    let trace = router.cli("show trace");
    assert!(trace.contains("the other fragments did not come in time"), "{trace}");
}

#[test]
fn a_packet_that_is_handed_over_is_told_of_under_the_worker_that_marked_it() {
    let mut router = router_with(Settings { workers: 2, ..Settings::default() });
    router.cli("trace add test-input 100");
    for number in 0..32 {
        router.inject_queue("e0", 0, &Whole::echo(Four, number, DATA).frames(1232)[1]);
    }
    router.run();
    let trace = router.cli("show trace max 100");
    assert!(trace.contains("handed to the worker that puts its packet together"), "{trace}");
    assert!(trace.contains(" of quiver_wk_0"), "{trace}");
}

#[test]
fn shows_tell_limits_and_what_waits() {
    for family in Family::BOTH {
        let mut router = router();
        router.cli("set interface reassembly e0 on");
        send_all(&mut router, &Whole::echo(family, 77, DATA).frames(1232)[..2]);
        let name =
            if family == Four { "show ip4-full-reassembly" } else { "show ip6-full-reassembly" };
        let shown = router.json(&format!("{name} details"));
        assert_eq!(shown["packets_under_way"], 1);
        assert_eq!(shown["buffers_held"], 2);
        assert_eq!(shown["timeout_ms"], 60_000);
        assert_eq!(shown["interfaces"][0]["interface"], "e0");
        assert_eq!(shown["interfaces"][0]["needed_by"][0], "operator");
        assert_eq!(shown["packets"][0]["id"], 77);
        assert_eq!(shown["packets"][0]["fragments"], 2);
        assert_eq!(shown["packets"][0]["bytes"], 2464);
        router.advance(Duration::from_secs(61));
        assert_eq!(router.json(name)["packets_under_way"], 0);
        assert_eq!(router.json(name)["buffers_held"], 0);
        router.sent("e0");
    }
}

#[test]
fn the_running_configuration_makes_the_same_router() {
    let mut router = router();
    let lines = [
        "set ip reassembly max-buffers 500",
        "set ip reassembly full ip4 timeout 1000 max-reassemblies 10 max-reassembly-length 3 \
         expire-walk-interval 50",
        "set ip reassembly virtual ip6 timeout 500 max-reassemblies 1024 max-reassembly-length 128 \
         expire-walk-interval 100",
        "set interface reassembly e0 full on",
        "set interface reassembly e0 virtual ip6",
        "set interface reassembly e1 virtual ip4",
    ];
    lines.iter().for_each(|line| drop(router.cli(line)));
    let config = router.cli("show running-config");
    for line in lines {
        assert!(config.contains(line), "{line} is missing in\n{config}");
    }
    let mut other = stand::router();
    lines.iter().for_each(|line| drop(other.cli(line)));
    assert_eq!(other.cli("show running-config"), config);
}

#[test]
fn a_router_as_it_begins_writes_nothing_of_reassembly() {
    assert!(!router().cli("show running-config").contains("reassembly"));
}

#[test]
fn settings_hold_for_the_kinds_and_families_that_are_named() {
    let mut router = router();
    let timeouts = |router: &mut quiver_testkit::Router| {
        ["ip4-full", "ip6-full", "ip4-sv", "ip6-sv"].map(|kind| {
            router.json(&format!("show {kind}-reassembly"))["timeout_ms"]
                .as_u64()
                .expect("a number")
        })
    };
    assert_eq!(timeouts(&mut router), [60_000, 60_000, 2000, 2000]);
    router.cli("set ip reassembly ip6 timeout 5");
    assert_eq!(timeouts(&mut router), [60_000, 5, 2000, 5]);
    router.cli("set ip reassembly full timeout 6");
    assert_eq!(timeouts(&mut router), [6, 6, 2000, 5]);
    router.cli("set ip reassembly virtual ip4 timeout 7");
    assert_eq!(timeouts(&mut router), [6, 6, 7, 5]);
    router.cli("set ip reassembly timeout 8");
    assert_eq!(timeouts(&mut router), [8; 4]);
}

#[test]
fn wrong_settings_are_refused_and_change_nothing() {
    let mut router = router();
    let config = router.cli("show running-config");
    for line in [
        "set ip reassembly",
        "set ip reassembly full",
        "set ip reassembly timeout 0",
        "set ip reassembly max-reassemblies 100000",
        "set ip reassembly max-buffers 1500",
        "set ip reassembly max-buffers 1",
        "set interface reassembly e7 on",
        "set interface reassembly e0 maybe",
    ] {
        router.refused(line);
    }
    assert_eq!(router.cli("show running-config"), config);
}

#[test]
fn limits_change_while_packets_are_under_way() {
    for family in Family::BOTH {
        let mut router = router();
        let wholes: Vec<_> = (0..20).map(|number| Whole::echo(family, number, DATA)).collect();
        for whole in &wholes {
            send_all(&mut router, &whole.frames(1232)[..3]);
        }
        router.cli("set ip reassembly max-reassemblies 64");
        router.cli("set ip reassembly max-reassembly-length 44");
        router.cli("set ip reassembly max-buffers 600");
        assert_eq!(router.buffers_in_use(), 60);
        // Fewer than wait: the oldest go.
        router.cli("set ip reassembly max-reassemblies 10");
        router.run();
        assert_eq!(router.buffers_in_use(), 30);
        assert_eq!(router.count(family.full(), "table-full"), 30);
        wholes[10..].iter().for_each(|whole| router.send("e0", &whole.frames(1232)[3]));
        assert_eq!(replies(&mut router, family, "e0").len(), 10);
        router.advance(Duration::from_secs(61));
        assert_eq!(router.buffers_in_use(), 0);
    }
}

#[test]
fn a_feature_is_on_while_anybody_needs_it() {
    let mut router = router();
    let id = router.id("e0");
    let (arc, feature) = ("ip4-unicast", "ip4-sv-reassembly-feature");
    let features = |router: &mut quiver_testkit::Router| router.cli("show interface features e0");
    router.engine().need_feature(id, arc, feature, "acl", true).expect("there");
    router.cli("set interface reassembly e0 virtual ip4");
    router.engine().need_feature(id, arc, feature, "acl", false).expect("there");
    assert!(features(&mut router).contains(feature));
    router.engine().need_feature(id, arc, feature, "nat44", true).expect("there");
    router.cli("set interface reassembly e0 virtual off");
    assert!(features(&mut router).contains(feature));
    assert!(router.cli("show ip4-sv-reassembly").contains("nat44"));
    router.engine().need_feature(id, arc, feature, "nat44", false).expect("there");
    assert!(!features(&mut router).contains(feature));
}

#[test]
fn what_is_held_at_the_end_goes_back_to_the_pool() {
    let mut router = router();
    for family in Family::BOTH {
        send_all(&mut router, &Whole::echo(family, 1, DATA).frames(1232)[..2]);
    }
    assert_eq!(router.buffers_in_use(), 4); // the balance is looked at when the router is dropped
}

#[test]
fn memory_of_reassembly_is_told() {
    assert!(router().cli("show memory").contains("reassembly"));
}
