//! Clients hear of stations that are learned, move and age, and of interfaces.

use std::time::Duration;

use quiver_control::{Collected, Started, Step};
use quiver_testkit::Router;
use serde_json::Value as Json;

use super::{BROADCAST, bridge, frame, mac};

/// Begin `line`, do `work`, and hear what was told of it.
fn heard(router: &mut Router, line: &str, work: impl FnOnce(&mut Router)) -> Vec<Json> {
    let commands = router.commands();
    let started = commands.borrow().start(router.engine(), line).expect("starts");
    let Started::Running(mut job) = started else { panic!("{line} is done at once") };
    let mut sink = Collected::default();
    let mut step = |router: &mut Router, sink: &mut Collected| {
        job.step(&commands.borrow(), router.engine(), sink).expect("goes on")
    };
    step(router, &mut sink);
    work(router);
    while matches!(step(router, &mut sink), Step::Again) {}
    sink.outputs.iter().map(|output| output.to_json()).collect()
}

#[test]
fn a_client_hears_of_stations_that_are_learned_move_and_age() {
    let mut router = bridge(2);
    router.cli("set bridge-domain mac-age 1 1");
    router.send("e0", &frame(BROADCAST, mac(9))); // before
    let events = heard(&mut router, "subscribe event mac", |router| {
        router.send("e0", &frame(BROADCAST, mac(1)));
        router.send("e1", &frame(BROADCAST, mac(1)));
        router.cli("set interface state e0 down"); // of another topic
        router.advance(Duration::from_secs(300));
    });
    let said = |event: &Json| {
        ["topic", "event", "mac", "interface", "from"]
            .map(|key| event[key].as_str().unwrap_or("-").to_owned())
    };
    let expected = [
        ["mac", "learned", "02:00:00:00:00:01", "e0", "-"],
        ["mac", "moved", "02:00:00:00:00:01", "e1", "e0"],
        ["mac", "aged", "02:00:00:00:00:01", "e1", "-"],
    ];
    assert_eq!(events.iter().map(said).collect::<Vec<_>>(), expected);
    assert!(events.iter().all(|event| event["domain"] == 1 && event["time_s"].is_number()));
}

#[test]
fn a_client_that_takes_nothing_for_long_is_told_how_many_events_it_lost() {
    let mut router = bridge(2);
    let events = heard(&mut router, "subscribe event mac event interface", |router| {
        for n in 0..5000u32 {
            let [.., a, b] = n.to_be_bytes();
            router.inject("e0", &frame(BROADCAST, [2, 1, 0, 0, a, b]));
            if n % 200 == 0 {
                router.run();
                router.advance(Duration::from_millis(1));
            }
        }
        router.run();
        router.cli("set interface state e1 down");
    });
    assert_eq!(events[0]["lost"], 5000 - 4096);
    assert_eq!(events.len(), 1 + 4096 + 1);
    let last = events.last().expect("many");
    assert_eq!(
        (&last["topic"], &last["event"], &last["interface"]),
        (&"interface".into(), &"down".into(), &"e1".into())
    );
    assert_eq!(router.json("show subscriptions")[0]["subscribers"], 0, "the client left");
}

#[test]
fn an_event_that_nobody_declared_is_refused() {
    let mut router = bridge(1);
    let refusal = router.refused("subscribe event weather");
    assert!(refusal.contains("weather"), "{refusal}");
    let events: Vec<String> = router
        .json("show subscriptions")
        .as_array()
        .expect("a table")
        .iter()
        .map(|row| row["event"].as_str().unwrap_or_default().to_owned())
        .collect();
    for event in ["interface", "mac", "neighbor", "duplicate-address-detection"] {
        assert!(events.iter().any(|known| known == event), "{events:?}");
    }
}
