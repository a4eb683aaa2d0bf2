//! What commands refuse, and that what they made is written back.

use quiver_testkit::Router;

use super::{FEATURES, bridge, frame, known_at, mac, sent, speak};

#[test]
fn the_running_configuration_makes_the_same_router() {
    let mut router = bridge(3);
    for line in [
        "create bridge-domain 16777215 learn 0 uu-flood 0 arp-term 1 mac-age 255",
        "set bridge-domain learn-limit 16777215 77",
        "set bridge-domain arp entry 16777215 192.0.2.1 02:00:00:00:00:01",
        "set bridge-domain arp entry 16777215 2001:db8::1 02:00:00:00:00:01",
        "set interface l2 bridge e2 1 9",
        "set interface l2 flood e2 disable",
        "create loopback interface instance 3",
        "set interface l2 bridge loop3 1 bvi",
        "l2fib add 02:00:00:00:01:00 1 e0 static",
        "l2fib add 02:00:00:00:02:00 1 e1 count 500",
        "l2fib add 02:00:00:00:04:00 1 e1 filter",
        "l2fib add 02:00:00:00:05:00 1 filter count 3",
        "set l2fib entries-max 100000",
        "set l2 learn limit 5000",
        "set l2fib events 10",
    ] {
        router.cli(line);
    }
    speak(&mut router, "e0", 1); // learned, not configured
    let config = router.cli("show running-config");
    let mut again = Router::new(&FEATURES);
    for n in 0..3 {
        again.interface(&format!("e{n}"));
    }
    let own: String = config
        .lines()
        .filter(|line| !line.contains("test interface") && !line.contains("state e"))
        .map(|line| format!("{line}\n"))
        .collect();
    again.script("running.cli", &own).expect("what was written is read");
    assert_eq!(again.cli("show running-config"), config);
    assert!(config.contains("l2fib add 02:00:00:00:02:00 1 e1 count 500"), "{config}");
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut router = bridge(2);
    router.interface("e2");
    router.cli("create loopback interface instance 0");
    router.cli("create loopback interface instance 1");
    router.cli("set interface l2 bridge loop0 1 bvi");
    let before = (router.cli("show running-config"), router.cli("show bridge-domain 1 detail"));
    for (line, why) in [
        ("create bridge-domain 1", "exists already"),
        ("create bridge-domain 0", ""),
        ("create bridge-domain 16777216", ""),
        ("create bridge-domain 1 del", "has 3 interfaces"),
        ("create bridge-domain 7 del", "no bridge domain 7"),
        ("create bridge-domain 7 mac-age 256", ""),
        ("set bridge-domain learn 7", "no bridge domain 7"),
        ("set bridge-domain mac-age 7 1", "no bridge domain 7"),
        ("set bridge-domain arp entry 1 192.0.2.1 ff:ff:ff:ff:ff:ff", "no station"),
        ("set bridge-domain arp entry 1 192.0.2.1 02:00:00:00:00:01 del", "does not know"),
        ("set interface l2 bridge loop1 1 bvi", "has loop0 as its routed interface"),
        ("set interface l2 bridge loop1 1", "is a loopback"),
        ("set interface l2 bridge e2 1 bvi", "cannot be the routed interface"),
        ("set interface l2 bridge e9 1", "no interface"),
        ("set interface l2 bridge e2 1 256", ""),
        ("set interface l2 learn e2 disable", "is in no bridge domain"),
        ("set interface l3 e2", "routes already"),
        ("l2fib add 02:00:00:00:00:01 1 e2", "e2 is not in bridge domain 1"),
        ("l2fib add 02:00:00:00:00:01 7 e0", "no bridge domain 7"),
        ("l2fib add 01:00:00:00:00:01 1 e0", "no station"),
        ("l2fib add 00:00:00:00:00:00 1 e0", "no station"),
        ("l2fib add de:ad:00:00:00:00 1 e0", "own routed interface"),
        ("l2fib add 02:ff:ff:ff:ff:ff 1 e0 count 2", ""),
        ("l2fib add 02:00:00:00:00:00 1 e0 count 16777216", "has 1 of"),
        ("l2fib del 02:00:00:00:00:01 1", "does not know"),
        ("l2fib del de:ad:00:00:00:00 1", "own routed interface"),
        ("l2fib flush-mac interface e2", "is in no bridge domain"),
        ("l2fib flush-mac bridge-domain 7", "no bridge domain 7"),
        ("show bridge-domain 7", "no bridge domain 7"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(why), "{line}: {refusal}");
    }
    assert_eq!(
        (router.cli("show running-config"), router.cli("show bridge-domain 1 detail")),
        before
    );
}

#[test]
fn an_interface_is_in_one_mode_at_a_time() {
    let mut router = bridge(2);
    router.interface("e2");
    router.cli("set interface l2 xconnect e0 e2");
    assert_eq!(router.json("show bridge-domain 1")[0]["interfaces"], 1);
    router.send("e0", &frame(mac(2), mac(1)));
    assert_eq!(sent(&mut router, 3), [0, 0, 1]);
    router.cli("set interface l2 bridge e0 1");
    assert!(!router.cli("show running-config").contains("xconnect"));
    router.send("e0", &frame(mac(2), mac(1)));
    assert_eq!(sent(&mut router, 3), [0, 1, 0]);
    router.cli("set interface l3 e0");
    let modes = router.json("show mode");
    let mode = |name: &str| {
        let row = modes
            .as_array()
            .expect("rows")
            .iter()
            .find(|row| row["interface"] == name)
            .expect("a row");
        row["mode"].as_str().expect("a word").to_owned()
    };
    assert_eq!((mode("e0").as_str(), mode("e1").as_str()), ("l3", "l2_bridge"));
    router.cli("set interface ip address e0 10.0.0.1/24");
    router.send("e0", &frame(mac(2), mac(1)));
    assert_eq!(
        router.count("ethernet-input", "mac-mismatch")
            + router.count("ethernet-input", "unknown-ethertype"),
        1
    );
}

#[test]
fn an_interface_that_moves_to_another_domain_takes_nothing_along() {
    let mut router = bridge(2);
    router.cli("l2fib add 02:00:00:00:00:05 1 e0 static");
    speak(&mut router, "e0", 1);
    router.cli("set interface l2 bridge e0 2");
    assert_eq!((known_at(&mut router, mac(1)), known_at(&mut router, mac(5))), (None, None));
    router.cli("set interface l2 bridge e0 1");
    assert_eq!((known_at(&mut router, mac(1)), known_at(&mut router, mac(5))), (None, None));
    assert_eq!(router.json("show bridge-domain").as_array().map(Vec::len), Some(2));
    router.cli("create bridge-domain 2 del");
}

#[test]
fn deleted_interfaces_leave_their_domain() {
    let mut router = bridge(3);
    router.cli("l2fib add 02:00:00:00:00:05 1 e1 static");
    speak(&mut router, "e1", 1);
    let id = router.id("e1");
    router.engine().delete_interface(id).expect("deleted");
    assert_eq!((known_at(&mut router, mac(1)), known_at(&mut router, mac(5))), (None, None));
    router.send("e0", &frame(mac(1), mac(3)));
    assert_eq!((router.sent("e0").len(), router.sent("e2").len()), (0, 1));
    // Another one with the same number starts afresh.
    router.advance(std::time::Duration::from_secs(1));
    router.interface("e1");
    assert!(router.cli("show mode e1").contains("l3"));
    router.cli("set interface l2 bridge e1 1");
    assert_eq!(known_at(&mut router, mac(5)), None);
}

#[test]
fn a_hundred_thousand_entries_by_one_command() {
    let mut router = bridge(2);
    router.cli("l2fib add 02:00:00:00:00:00 1 e0 count 100000");
    assert_eq!(router.json("show l2fib")["entries"], 100_000);
    router.send("e1", &frame([2, 0, 0, 1, 0x86, 0x9f], [2, 7, 0, 0, 0, 1]));
    assert_eq!(sent(&mut router, 2), [1, 0]);
    let removed = router.json("l2fib del 02:00:00:00:00:00 1 count 100000");
    assert_eq!(removed["removed"], 100_000);
    assert_eq!(router.json("show l2fib")["entries"], 1, "the one that spoke");
}

#[test]
fn the_tables_limit_is_set_while_it_runs_and_kept() {
    let mut router = bridge(2);
    router.cli("set l2fib entries-max 3");
    router.cli("l2fib add 02:00:00:00:00:01 1 e0");
    router.cli("l2fib add 02:00:00:00:00:02 1 e0");
    speak(&mut router, "e0", 3);
    assert!(
        router
            .refused("l2fib add 02:00:00:00:00:04 1 e0")
            .contains("full at its limit of 3 entries")
    );
    speak(&mut router, "e0", 5);
    assert_eq!(known_at(&mut router, mac(5)), None);
    router.cli("set l2fib entries-max 4");
    router.advance(std::time::Duration::from_secs(1));
    speak(&mut router, "e0", 5);
    assert_eq!(known_at(&mut router, mac(5)).as_deref(), Some("e0"));
    assert_eq!(router.json("show bridge-domain 1")[0]["learn_limit"], 4);
    router.cli("set bridge-domain learn-limit 1 7");
    router.cli("set l2fib entries-max 9");
    router.cli("set l2 learn limit 5");
    router.cli("set l2fib entries-max 4");
    assert_eq!(router.json("show l2fib")["learned_at_most"], 4);
    router.cli("set l2fib entries-max 9");
    assert_eq!(router.json("show bridge-domain 1")[0]["learn_limit"], 7);
}

#[test]
fn a_trace_reads_as_sentences() {
    let mut router = bridge(3);
    speak(&mut router, "e1", 2);
    router.cli("trace add test-input 10");
    router.send("e0", &frame(mac(2), mac(1)));
    router.send("e0", &frame(mac(9), mac(1)));
    let trace = router.cli("show trace");
    for words in [
        "02:00:00:00:00:01 → 02:00:00:00:00:02",
        "from e0, to l2-learn",
        "the source is behind e0; to l2-fwd",
        "the destination is behind e1; to e1-output",
        "the destination is not known; to l2-uu-flood",
        "flooded, the last copy by e2",
    ] {
        assert!(trace.contains(words), "`{words}` is not in\n{trace}");
    }
}
