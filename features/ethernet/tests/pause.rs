//! A port that is paused, down or full costs nobody else a packet.

use quiver_testkit::Router;

const PEER: [u8; 6] = [2, 0, 0, 0, 0, 9];
const OURS: [u8; 6] = [2, 0xfe, 0, 0, 0, 0];
const PAUSE_GROUP: [u8; 6] = [1, 0x80, 0xc2, 0, 0, 1];

fn control(destination: [u8; 6], rest: &[u8]) -> Vec<u8> {
    let mut frame = [&destination[..], &PEER, &[0x88, 0x08], rest].concat();
    frame.resize(60, 0);
    frame
}

fn pause(quanta: u16) -> Vec<u8> {
    control(PAUSE_GROUP, &[&[0, 1][..], &quanta.to_be_bytes()].concat())
}

/// Four ports: `e0` and `e1` give theirs to each other, `e2` gives its own to `e3`.
fn router() -> Router {
    let mut router = Router::new(&[quiver_ethernet::register]);
    for name in ["e0", "e1", "e2", "e3"] {
        router.interface(name);
    }
    for (from, to) in [("e0", "e1"), ("e1", "e0"), ("e2", "e3")] {
        router.cli(&format!("test l2patch rx {from} tx {to}"));
    }
    router
}

fn count(router: &Router, reason: &str) -> u64 {
    router.count("mac-control-input", reason)
}

#[test]
fn pause_frames_are_counted_and_end() {
    let mut router = Router::new(&[quiver_ethernet::register]);
    router.interface("e0");
    router.interface("e1");
    router.send("e0", &pause(0xffff));
    router.send("e0", &pause(0));
    router.send("e0", &control(OURS, &[0, 1, 0, 9]));
    router.send("e0", &control(PAUSE_GROUP, &[1, 1, 0, 0xff, 0, 9]));
    assert_eq!((count(&router, "pause"), count(&router, "pause-end")), (2, 1));
    assert_eq!(count(&router, "priority-pause"), 1);
    assert!(router.dropped().is_empty());
    assert!(router.sent("e0").is_empty() && router.sent("e1").is_empty());
}

#[test]
fn other_mac_control_is_dropped_and_never_forwarded() {
    let mut router = Router::new(&[quiver_ethernet::register]);
    router.interface("e0");
    router.send("e0", &control(PAUSE_GROUP, &[0, 2]));
    for cut in 14..18 {
        router.send("e0", &pause(7)[..cut]);
    }
    let mut dropped = router.dropped();
    dropped.sort();
    let expected = [("truncated", 4), ("unknown-opcode", 1)];
    assert_eq!(dropped, expected.map(|(r, n)| ("mac-control-input".to_owned(), r.to_owned(), n)));
}

#[test]
fn a_trace_of_a_pause_reads_as_a_sentence() {
    let mut router = Router::new(&[quiver_ethernet::register]);
    router.interface("e0");
    router.cli("trace add test-input 1");
    router.send("e0", &pause(7));
    let trace = router.cli("show trace");
    assert!(trace.contains("PAUSE received on e0, to packet-done"), "{trace}");
}

/// Let `e0`, `e1` and `e2` receive 600 frames each, in turns, while something happens to `e3`.
fn load(router: &mut Router, mut happens: impl FnMut(&mut Router, u32)) {
    let frame = control(OURS, &[9]).iter().map(|byte| byte ^ 0x40).collect::<Vec<u8>>();
    for round in 0..60 {
        happens(router, round);
        for _ in 0..10 {
            ["e0", "e1", "e2"].iter().for_each(|name| router.inject(name, &frame));
        }
        router.run();
    }
    assert_eq!(router.sent("e0").len(), 600);
    assert_eq!(router.sent("e1").len(), 600);
}

#[test]
fn a_port_that_is_set_down_costs_the_others_nothing() {
    let mut router = router();
    load(&mut router, |router, round| {
        router
            .cli(&format!("set interface state e3 {}", if round % 2 == 0 { "down" } else { "up" }));
    });
    assert_eq!(router.sent("e3").len(), 300);
    assert_eq!(router.dropped(), [("e3-output".to_owned(), "interface-down".to_owned(), 300)]);
}

#[test]
fn a_peer_that_stops_reading_costs_the_others_nothing() {
    let mut router = router();
    router.stall("e3", true);
    load(&mut router, |_, _| {});
    assert_eq!(router.dropped(), [("e3-tx".to_owned(), "tx-ring-full".to_owned(), 600)]);
    router.stall("e3", false);
    router.cli("clear errors");
    load(&mut router, |_, _| {});
    assert!(router.dropped().is_empty());
    assert_eq!(router.sent("e3").len(), 600);
}

#[test]
fn a_peer_that_sends_pause_gets_its_frames_and_costs_the_others_nothing() {
    let mut router = router();
    load(&mut router, |router, _| router.inject("e3", &pause(0xffff)));
    assert_eq!(router.sent("e3").len(), 600);
    assert_eq!(count(&router, "pause"), 60);
    assert!(router.dropped().is_empty());
}
