//! Traces read as sentences.

use quiver_testkit::Router;

use crate::toy::{frame, router};

/// The text without its times, which are those of the real clock or stand still.
fn story(router: &mut Router, line: &str) -> String {
    let without_time = |line: &str| match line.split_once(": ") {
        Some((time, rest)) if time.len() == 15 && time.starts_with("00:") => format!("{rest}\n"),
        _ => format!("{line}\n"),
    };
    router.cli(line).lines().map(without_time).collect()
}

#[test]
fn a_trace_tells_what_each_node_saw_and_decided() {
    let mut router = router();
    router.cli("trace add test-input 2");
    router.inject("e0", &frame(1, 60));
    router.inject("e0", &frame(9, 70));
    router.inject("e0", &frame(1, 80));
    router.run();
    let expected = "\
------------------- Start of thread 1 quiver_wk_0 -------------------
Packet 1

test-input
  e0: 60 bytes in
ethernet-input
  60 bytes go on to toy-forward
toy-forward
  the first byte says e1
e1-output
  e1: 60 bytes out
e1-tx
  sent 60 bytes on e1

Packet 2

test-input
  e0: 70 bytes in
ethernet-input
  70 bytes go on to toy-forward
toy-forward
  the first byte says interface-9
error-drop
  dropped by toy-forward: there is no interface of this number

";
    assert_eq!(story(&mut router, "show trace"), expected);
    let json = router.json("show trace json");
    let nodes = &json["threads"][0]["packets"][1]["nodes"];
    assert_eq!(nodes[1]["node"], "ethernet-input");
    assert_eq!(nodes[1]["next"], "toy-forward");
    assert!(nodes[3]["next"].is_null());
    assert!(nodes[0]["data"].as_str().is_some_and(|data| data.starts_with("090102")));
    router.cli("clear trace");
    assert!(story(&mut router, "show trace").contains("No packets in trace buffer"));
    router.send("e0", &frame(1, 60));
    assert!(story(&mut router, "show trace").contains("No packets in trace buffer"));
}

#[test]
fn a_shorter_view_says_how_much_more_there_is() {
    let mut router = router();
    router.cli("trace add test-input 10");
    for _ in 0..5 {
        router.inject("e0", &frame(1, 60));
    }
    router.run();
    let text = router.cli("show trace max 2");
    assert!(text.contains("Packet 2\n") && !text.contains("Packet 3\n"), "{text}");
    assert!(text.contains("3 packets more"), "{text}");
}

#[test]
fn a_filter_shows_only_what_passes_a_node() {
    let mut router = router();
    router.cli("trace add test-input 10");
    router.inject("e0", &frame(1, 60));
    router.inject("e0", &frame(9, 60));
    router.run();
    router.cli("trace filter include error-drop");
    let text = router.cli("show trace");
    assert!(text.contains("Packet 2\n") && !text.contains("Packet 1\n"), "{text}");
    assert!(text.contains("1 packet hidden by the trace filter"), "{text}");
    router.cli("trace filter exclude error-drop");
    assert!(router.cli("show trace").contains("Packet 1\n"));
    router.cli("trace filter none");
    assert!(router.cli("show trace").contains("Packet 2\n"));
}

#[test]
fn verbose_shows_the_bytes() {
    let mut router = router();
    router.cli("trace add test-input 1 verbose");
    router.send("e0", &frame(1, 20));
    let text = router.cli("show trace");
    assert!(
        text.contains("    0000: 0101 0203 0405 0607 0809 0a0b 0c0d 0e0f\n    0010: 1011 1213\n"),
        "{text}"
    );
}

#[test]
fn a_trace_begins_only_where_packets_come_in() {
    let mut router = router();
    let refusal = router.refused("trace add ethernet-input 5");
    assert!(refusal.contains("ethernet-input receives nothing from a device"), "{refusal}");
    assert!(refusal.contains("test-input"), "{refusal}");
    assert!(router.refused("trace add test-input 0").contains("from 1 to 4096"));
}

#[test]
fn traces_that_follow_one_another_keep_what_was_traced_before() {
    let mut router = router();
    router.cli("trace add test-input 100");
    for _ in 0..100 {
        router.inject("e0", &frame(1, 60));
    }
    router.run();
    router.cli("trace add test-input 1");
    router.send("e0", &frame(9, 61));
    let json = router.json("show trace max 4096 json");
    let packets = json["threads"][0]["packets"].as_array().cloned().unwrap_or_default();
    assert_eq!(packets.len(), 101);
    assert_eq!(packets[100]["nodes"][0]["bytes"], 61);
    assert_eq!(json["threads"][0]["cut"], 0);
}
