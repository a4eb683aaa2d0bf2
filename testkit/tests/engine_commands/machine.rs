//! The graph and the machine.

use crate::toy::{frame, router};

#[test]
fn a_node_is_shown_with_its_edges_and_reasons() {
    let mut router = router();
    router.send("e0", &frame(1, 5));
    let text = router.cli("show node ethernet-input");
    assert!(text.starts_with("ethernet-input (internal): Looks at the length\n"), "{text}");
    assert!(text.contains("from: test-input, toy-watch\n"), "{text}");
    assert!(text.contains("to:   error-drop, toy-forward\n"), "{text}");
    assert!(
        text.contains("    1  truncated  error     the frame is shorter than its header\n"),
        "{text}"
    );
    let json = router.json("show node toy-forward json");
    assert_eq!(json["previous"], serde_json::json!(["ethernet-input"]));
    assert_eq!(json["reasons"][0]["reason"], "no-interface");
    assert!(router.cli("show node").contains("e1-tx"));
    assert!(router.refused("show node ethernet-inptu").contains("did you mean ethernet-input?"));
}

#[test]
fn the_graph_is_drawn_with_the_edges_of_arcs_and_interfaces() {
    let mut router = router();
    let plain = router.cli("show graph");
    assert!(
        plain.lines().any(|l| l.starts_with("test-input") && l.ends_with("ethernet-input")),
        "{plain}"
    );
    let id = router.id("e0");
    router.engine().set_feature(id, "device-input", "toy-watch", true).expect("feature");
    let dot = router.cli("show graph dot");
    assert!(dot.starts_with("digraph quiver {\n"), "{dot}");
    for edge in [
        "\"test-input\" -> \"toy-watch\";",
        "\"toy-watch\" -> \"ethernet-input\";",
        "\"e0-output\" -> \"e0-tx\";",
        "\"e0-tx\" -> \"error-drop\";",
    ] {
        assert!(dot.contains(edge), "{edge} in {dot}");
    }
    assert!(dot.ends_with("}\n"));
}

#[test]
fn what_is_built_in_is_listed_with_the_order_of_features() {
    let mut router = router();
    let text = router.cli("show features");
    assert!(text.contains("toy      the first byte says where a frame goes"), "{text}");
    assert!(text.contains("  device-input: toy-watch (filter)\n"), "{text}");
    let json = router.json("show features json");
    let feature = &json["arcs"][0]["features"][0];
    assert_eq!((&feature["node"], &feature["phase"]), (&"toy-watch".into(), &"filter".into()));
}

#[test]
fn buffers_are_counted_whole() {
    let mut router = router();
    router.send("e0", &frame(1, 9000));
    let json = router.json("show buffers json");
    let pool = &json["pools"][0];
    let count = |key: &str| pool[key].as_u64().unwrap_or_else(|| panic!("{key} in {pool}"));
    assert_eq!(count("total"), count("avail") + count("cached") + count("used"));
    assert_eq!(count("used"), 0);
    assert_eq!(count("data_bytes"), 2048);
    assert!(router.cli("show buffers").starts_with("Pool Name"));
}

#[test]
fn the_machine_is_described() {
    let mut router = router();
    let threads = router.json("show threads json");
    assert_eq!(threads["threads"][1]["name"], "quiver_wk_0");
    assert_eq!(threads["threads"][1]["id"], 1);
    let memory = router.json("show memory json");
    assert!(memory["memory"][0]["bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{memory}");
    assert!(router.cli("show memory").contains("packet buffers"));
    assert_eq!(router.json("show version json")["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(router.cli("show version").lines().count(), 1);
    let verbose = router.cli("show version verbose");
    let built_in = verbose.lines().find_map(|line| line.strip_prefix("Built in:"));
    assert_eq!(built_in.map(str::trim), Some("testkit, toy"), "{verbose}");
    let cpu = router.json("show cpu json");
    assert!(["scalar", "avx2", "avx512"].contains(&cpu["variant"].as_str().unwrap_or("")), "{cpu}");
    assert!(router.cli("show cpu").contains("Loops and look-ups:"));
}
