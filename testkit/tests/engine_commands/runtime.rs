//! What nodes did, and why packets died.

use std::time::Duration;

use quiver_testkit::{Router, Settings};

use crate::toy::{frame, register, router};

fn node<'j>(json: &'j serde_json::Value, name: &str) -> &'j serde_json::Value {
    let nodes = json["threads"][0]["nodes"].as_array().expect("nodes");
    nodes.iter().find(|node| node["name"] == name).unwrap_or_else(|| panic!("no node {name}"))
}

#[test]
fn show_runtime_has_the_columns_that_operators_know() {
    let mut router = router();
    router.cli("clear runtime");
    for _ in 0..3 {
        router.inject("e0", &frame(1, 60));
    }
    router.run();
    router.send("e0", &frame(9, 60));
    router.advance(Duration::from_secs(2));
    let text = router.cli("show runtime");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("Thread 1 quiver_wk_0 (lcore 0)"));
    let time = lines.next().expect("time");
    assert!(
        time.starts_with("Time 2.0, 10 sec internal node vector rate 2.20 loops/sec "),
        "{time}"
    );
    assert_eq!(
        lines.next(),
        Some("  vector rates in 2.0000e0, out 1.5000e0, drop 5.0000e-1, punt 0.0000e0")
    );
    let heads: Vec<&str> = lines.next().expect("heads").split_whitespace().collect();
    assert_eq!(heads, ["Name", "State", "Calls", "Vectors", "Suspends", "Clocks", "Vectors/Call"]);
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split_whitespace().collect()).collect();
    let row = |name: &str| {
        rows.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{name}: {text}"))
    };
    assert_eq!(row("toy-forward")[1..5], ["active", "2", "4", "0"]);
    assert_eq!(row("toy-forward")[6], "2.00");
    assert_eq!(row("test-input")[1], "polling");
    assert_eq!(row("e1-tx")[6], "3.00");
    assert!(row("toy-forward")[5].contains('e'));
    assert!(!text.contains("toy-watch"));
    let verbose = router.cli("show runtime verbose");
    assert!(verbose.contains("toy-watch"));
    let row = verbose.lines().find(|line| line.starts_with("toy-forward")).expect("a node");
    assert!(
        verbose.contains("Vectors/Call In block driver\n") && row.ends_with("   0"),
        "{verbose}"
    );
    assert_eq!(router.cli("show run summary").lines().count(), 3);
    assert!(router.cli("show runtime max").contains("Max Node Clocks"));
}

#[test]
fn the_json_of_the_runtime_is_what_the_lab_reads() {
    let mut router = router();
    router.send("e0", &frame(1, 60));
    router.advance(Duration::from_millis(500));
    let json = router.json("show runtime json");
    let thread = &json["threads"][0];
    assert_eq!((&thread["name"], &thread["id"]), (&"quiver_wk_0".into(), &1.into()));
    assert_eq!(thread["core"], 0);
    for key in ["elapsed_s", "loops_per_s", "vector_rate_in", "vector_rate_out", "vector_rate_drop"]
    {
        assert!(thread[key].is_number(), "{key}");
    }
    let forward = node(&json, "toy-forward");
    assert_eq!(forward["calls"], 1);
    assert_eq!(forward["vectors"], 1);
    assert_eq!(forward["vectors_per_call"], 1.0);
    assert_eq!(forward["suspends"], 0);
    assert_eq!(forward["clocks"].as_f64(), forward["clocks_per_packet"].as_f64());
    assert!(node(&json, "toy-watch")["clocks_per_packet"].is_null());
    router.cli("clear runtime");
    let json = router.json("show runtime json");
    assert_eq!(node(&json, "toy-forward")["vectors"], 0);
}

#[test]
fn each_worker_has_its_own_part() {
    let mut router = Router::with(Settings { workers: 2, ..Settings::default() }, &[register]);
    router.cli("create test interface e0 rx-queues 2");
    router.cli("set interface state e0 up");
    router.inject_queue("e0", 1, &frame(0, 60));
    router.run();
    let text = router.cli("show runtime");
    assert!(text.contains("---------------\nThread 2 quiver_wk_1 (lcore 1)\n"), "{text}");
    let json = router.json("show runtime");
    let forward = |worker: usize| {
        let nodes = json["threads"][worker]["nodes"].as_array().cloned().unwrap_or_default();
        nodes.iter().find(|n| n["name"] == "toy-forward").map(|n| n["vectors"].clone())
    };
    assert_eq!((forward(0), forward(1)), (Some(0.into()), Some(1.into())));
}

#[test]
fn the_rates_look_back_ten_seconds_and_start_afresh_at_a_clear() {
    let mut router = router();
    router.cli("clear runtime");
    for _ in 0..8 {
        router.inject("e0", &frame(1, 60));
    }
    router.run();
    let rate = |router: &mut Router| {
        router.json("show runtime")["threads"][0]["internal_vectors_per_call"]
            .as_f64()
            .expect("a rate")
    };
    assert_eq!(rate(&mut router), 8.0);
    router.advance(Duration::from_secs(20));
    assert_eq!(rate(&mut router), 0.0);
    router.send("e0", &frame(1, 60));
    assert_eq!(rate(&mut router), 1.0);
    router.cli("clear runtime");
    assert_eq!(rate(&mut router), 0.0);
}

#[test]
fn deaths_are_told_in_sentences_and_cleared() {
    let mut router = router();
    router.inject("e0", &frame(1, 9));
    router.inject("e0", &frame(7, 60));
    router.inject("e0", &frame(1, 5000));
    router.run();
    let expected = "\
Count  Node            Reason                                Severity
    1  ethernet-input  the frame is shorter than its header  error
    1  ethernet-input  frames of more than one buffer        info
    1  toy-forward     there is no interface of this number  error
";
    assert_eq!(router.cli("show errors"), expected);
    assert_eq!(router.events(), [("ethernet-input".into(), "long".into(), 1)]);
    let json = router.json("show errors json");
    assert_eq!(json["errors"][0]["reason"], "truncated");
    assert_eq!(json["errors"][0]["severity"], "error");
    let verbose = router.cli("show errors verbose");
    assert!(verbose.contains("tx-ring-full"), "{verbose}");
    router.cli("clear errors");
    assert_eq!(router.cli("show errors").lines().count(), 1);
    assert_eq!(router.json("show errors")["errors"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_full_ring_is_a_counted_death() {
    let mut router = router();
    router.stall("e1", true);
    router.send("e0", &frame(1, 60));
    assert_eq!(router.dropped(), [("e1-tx".into(), "tx-ring-full".into(), 1)]);
    assert_eq!(router.totals("e1").tx_errors, 1);
    router.stall("e1", false);
    router.send("e0", &frame(1, 60));
    assert_eq!(router.sent("e1").len(), 1);
}
