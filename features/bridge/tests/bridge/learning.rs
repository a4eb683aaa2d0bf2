//! What the bridge knows, from when on, and for how long.

use std::time::Duration;

use quiver_testkit::Settings;

use super::{BROADCAST, bridge, bridge_with, frame, known_at, mac, sent, speak};

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_source_is_learned_and_told_once() {
    let mut router = bridge(2);
    (0..10).for_each(|_| router.inject("e0", &frame(mac(2), mac(1))));
    router.run();
    assert_eq!(known_at(&mut router, mac(1)).as_deref(), Some("e0"));
    assert_eq!(
        (router.count("l2-learn", "new"), router.count("l2-learn", "asked-already")),
        (1, 9)
    );
    router.send("e0", &frame(mac(2), mac(1)));
    assert_eq!((router.count("l2-learn", "new"), router.count("l2-learn", "stamped")), (1, 0));
}

#[test]
fn a_station_that_moves_is_followed() {
    let mut router = bridge(3);
    speak(&mut router, "e0", 1);
    speak(&mut router, "e2", 1);
    assert_eq!(known_at(&mut router, mac(1)).as_deref(), Some("e2"));
    router.send("e1", &frame(mac(1), mac(3)));
    assert_eq!(sent(&mut router, 3), [0, 0, 1]);
    let events = router.json("show l2fib events");
    let moved = &events["events"][1];
    assert_eq!(
        (&moved["event"], &moved["from"], &moved["interface"]),
        (&"moved".into(), &"e0".into(), &"e2".into())
    );
    assert_eq!(
        (
            router.json("show l2fib")["moved_since_start"].as_u64(),
            router.count("l2-learn", "moved")
        ),
        (Some(1), 1)
    );
}

#[test]
fn what_one_worker_learned_every_worker_knows() {
    let mut router = bridge_with(Settings { workers: 2, ..Settings::default() }, 3);
    speak(&mut router, "e0", 1);
    // Interfaces take turns among the workers.
    router.send("e1", &frame(mac(1), mac(2)));
    assert_eq!(sent(&mut router, 3), [1, 0, 0]);
    router.send("e2", &frame(mac(1), mac(3)));
    assert_eq!(sent(&mut router, 3), [1, 0, 0]);
}

#[test]
fn an_address_that_is_not_seen_for_so_many_minutes_is_forgotten() {
    let mut router = bridge(2);
    router.cli("set bridge-domain mac-age 1 2");
    speak(&mut router, "e0", 1);
    speak(&mut router, "e1", 2);
    for _ in 0..4 {
        router.advance(MINUTE);
        router.send("e1", &frame(mac(9), mac(2))); // this one goes on speaking
    }
    assert_eq!(known_at(&mut router, mac(1)), None);
    assert_eq!(known_at(&mut router, mac(2)).as_deref(), Some("e1"));
    assert_eq!(router.count("l2-learn", "stamped"), 4);
    let events = router.json("show l2fib events since 2");
    assert_eq!(
        (&events["events"][0]["event"], &events["events"][0]["interface"]),
        (&"aged".into(), &"e0".into())
    );
    assert_eq!(router.json("show l2fib")["aged_since_start"], 1);
}

#[test]
fn a_stamp_is_written_once_a_minute() {
    let mut router = bridge(2);
    speak(&mut router, "e0", 1);
    router.advance(MINUTE);
    (0..50).for_each(|_| router.send("e0", &frame(mac(2), mac(1))));
    assert_eq!(router.count("l2-learn", "stamped"), 1);
}

#[test]
fn what_was_configured_does_not_age_and_static_entries_do_not_move() {
    let mut router = bridge(3);
    router.cli("set bridge-domain mac-age 1 1");
    router.cli("l2fib add 02:00:00:00:00:01 1 e0 static");
    router.cli("l2fib add 02:00:00:00:00:02 1 e0");
    router.advance(MINUTE * 5);
    assert_eq!(known_at(&mut router, mac(1)).as_deref(), Some("e0"));
    router.send("e2", &frame(BROADCAST, mac(1)));
    assert_eq!(sent(&mut router, 3), [0, 0, 0]);
    assert_eq!(router.count("l2-learn", "static-moved"), 1);
    assert_eq!(known_at(&mut router, mac(1)).as_deref(), Some("e0"));
    // One that is not static follows its station, and ages from then on.
    speak(&mut router, "e2", 2);
    assert_eq!(known_at(&mut router, mac(2)).as_deref(), Some("e2"));
    router.advance(MINUTE * 3);
    assert_eq!(known_at(&mut router, mac(2)), None);
}

#[test]
fn flushing_forgets_what_was_learned_at_once() {
    let mut router = bridge(3);
    router.interface("e3");
    router.cli("set interface l2 bridge e3 2");
    let known = |router: &mut quiver_testkit::Router| {
        [1, 2, 3, 4].map(|n| known_at(router, mac(n)).is_some())
    };
    for (flush, left) in [
        ("l2fib flush-mac interface e0", [false, true, true, true]),
        ("l2fib flush-mac bridge-domain 1", [false, false, true, true]),
        ("l2fib flush-mac all", [false, false, false, true]),
        ("clear l2fib", [false, false, false, false]),
    ] {
        speak(&mut router, "e0", 1);
        speak(&mut router, "e1", 2);
        speak(&mut router, "e3", 3);
        router.cli("l2fib add 02:00:00:00:00:04 1 e2 static");
        router.cli(flush);
        assert_eq!(known(&mut router), left, "{flush}");
        router.send("e2", &frame(mac(1), mac(4)));
        assert_eq!(sent(&mut router, 3), [1, 1, 0], "{flush}: unknown, so flooded");
        router.cli("clear l2fib");
    }
}

#[test]
fn a_station_is_learned_again_by_its_first_frame_after_its_entry_is_gone() {
    let mut router = bridge(2);
    for gone in [
        "l2fib flush-mac interface e0",
        "l2fib flush-mac bridge-domain 1",
        "l2fib flush-mac all",
        "clear l2fib",
        "l2fib del 02:00:00:00:00:01 1",
        "set interface l3 e0",
        "set interface state e0 down",
    ] {
        speak(&mut router, "e0", 1);
        assert_eq!(known_at(&mut router, mac(1)).as_deref(), Some("e0"), "before `{gone}`");
        router.cli(gone);
        assert_eq!(known_at(&mut router, mac(1)), None, "{gone}");
        router.cli("set interface state e0 up");
        router.cli("set interface l2 bridge e0 1");
        // No time has passed: what a worker remembers to have asked for is of no use any more.
        speak(&mut router, "e0", 1);
        assert_eq!(known_at(&mut router, mac(1)).as_deref(), Some("e0"), "after `{gone}`");
    }
}

#[test]
fn a_domain_learns_no_more_than_it_may_and_floods() {
    let mut router = bridge(2);
    router.cli("set bridge-domain learn-limit 1 2");
    (1..=4).for_each(|n| speak(&mut router, "e0", n));
    let known = (1..=4).filter(|n| known_at(&mut router, mac(*n)).is_some()).count();
    assert_eq!(known, 2);
    assert!(router.count("l2-learn", "table-full") >= 1);
    router.send("e1", &frame(mac(4), mac(1)));
    assert_eq!(sent(&mut router, 2), [1, 0]);
    router.cli("set bridge-domain learn-limit 1 3");
    router.advance(Duration::from_secs(1));
    (3..=4).for_each(|n| speak(&mut router, "e0", n));
    assert_eq!((1..=4).filter(|n| known_at(&mut router, mac(*n)).is_some()).count(), 3);
}

#[test]
fn all_domains_together_learn_no_more_than_they_may() {
    let mut router = bridge(2);
    router.cli("set l2 learn limit 1");
    speak(&mut router, "e0", 1);
    speak(&mut router, "e0", 2);
    assert_eq!(router.json("show l2fib")["learned"], 1);
    // A known one may still move.
    speak(&mut router, "e1", 1);
    assert_eq!(known_at(&mut router, mac(1)).as_deref(), Some("e1"));
}

#[test]
fn learning_switched_off_learns_nothing_and_keeps_what_is_known() {
    let mut router = bridge(3);
    speak(&mut router, "e0", 1);
    router.cli("set bridge-domain learn 1 disable");
    speak(&mut router, "e1", 2);
    assert_eq!(known_at(&mut router, mac(2)), None);
    router.send("e2", &frame(mac(1), mac(3)));
    assert_eq!(sent(&mut router, 3), [1, 0, 0]);
    router.cli("set bridge-domain learn 1");
    router.cli("set interface l2 learn e1 disable");
    speak(&mut router, "e1", 2);
    speak(&mut router, "e2", 3);
    assert_eq!(
        (known_at(&mut router, mac(2)), known_at(&mut router, mac(3)).is_some()),
        (None, true)
    );
}

#[test]
fn a_flood_of_new_addresses_loses_no_frame_and_no_buffer() {
    let mut router = bridge(2);
    for round in 0..100u32 {
        for n in 0..250 {
            let [.., a, b, c] = (round * 250 + n).to_be_bytes();
            router.inject("e0", &frame(mac(9), [2, 1, 0, a, b, c]));
        }
        router.run();
        router.advance(Duration::from_millis(1));
    }
    assert_eq!(sent(&mut router, 2), [0, 25_000]);
    assert_eq!(router.json("show l2fib")["learned"], 25_000);
    assert_eq!(router.count("l2-learn", "queue-full"), 0);
    assert_eq!(router.count("l2-learn", "not-yet"), 0);
    let shown = router.json("show l2fib all");
    assert_eq!(
        (shown["entries"].as_array().map(Vec::len), &shown["not_shown"]),
        (Some(1000), &24_000.into())
    );
}
