//! What operators type, and what becomes of packets.

use quiver_testkit::frames::{self, Fragment};
use quiver_testkit::{Router, sources};

pub fn router() -> Router {
    let mut router = Router::new(&[
        quiver_ethernet::register,
        quiver_bridge::register,
        quiver_ip::register,
        quiver_reassembly::register,
        quiver_acl::register,
    ]);
    sources::ports(&mut router, 2);
    router
}

fn frame(host: u8, port: u8) -> Vec<u8> {
    let addresses = (sources::host(host), std::net::Ipv4Addr::new(10, 0, 1, 2));
    let udp = [0, 1, 0, port, 0, 14, 0, 0, 1, 2, 3, 4, 5, 6];
    frames::ip4(0, addresses, frames::UDP, Fragment::default(), &udp)
}

pub fn passes(router: &mut Router, host: u8, port: u8) -> bool {
    router.send("e0", &frame(host, port));
    !router.sent("e1").is_empty()
}

#[test]
fn lists_get_numbers_are_replaced_and_deleted() {
    let mut router = router();
    assert_eq!(router.cli("set acl-plugin acl permit").trim(), "ACL index:0");
    assert_eq!(router.cli("set acl-plugin acl deny tag \"my list\"").trim(), "ACL index:1");
    router.cli("set acl-plugin acl index 5 permit ipv4, deny");
    router.cli("delete acl-plugin acl index 0");
    assert_eq!(router.json("set acl-plugin acl permit ipv6")["index"], 0);
    let lists = router.json("show acl-plugin acl");
    let of = |key: &str| -> Vec<serde_json::Value> {
        lists.as_array().expect("acls").iter().map(|acl| acl[key].clone()).collect()
    };
    assert_eq!(of("acl"), [0, 1, 5]);
    assert_eq!(of("rules"), [1, 1, 2]);
    assert_eq!(of("tag"), ["", "my list", ""]);
    assert!(router.refused("delete acl-plugin acl index 7").contains("no access list 7"));
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut router = router();
    router.cli("set acl-plugin acl index 1 deny proto udp dport 7, permit");
    router.cli("set acl-plugin interface e0 input acl 1");
    let before = router.json("show acl-plugin acl index 1");
    for (line, what) in [
        ("set acl-plugin acl index 1 permit, permit sport 7", "need proto"),
        ("set acl-plugin acl index 1 permit proto 50 dport 7", "no ports"),
        ("set acl-plugin acl index 1 permit src 10.0.0.0/8 dst ::/0", "family"),
        ("set acl-plugin acl index 1 permit ipv6 src 10.0.0.0/8", "family"),
        ("set acl-plugin acl index 1 permit ipv4 ipv6", "one family"),
        ("set acl-plugin acl index 1 permit proto tcp tcpflags 2", "together"),
        ("set acl-plugin acl index 1", ""),
        ("set acl-plugin acl index 1 permit proto udp dport 9-7", ""),
        ("set acl-plugin interface e0 input acl 2", "no access list 2"),
        ("set acl-plugin interface e0 input acl 1", "already"),
        ("set acl-plugin interface e0 output acl 1 del", "is not for output"),
        ("delete acl-plugin acl index 1", "input of e0"),
        ("set acl-plugin acl-rest 1 from 3 permit", "fewer than 3"),
        ("set acl-plugin acl-rest 1 from 0", "no rule left"),
        ("set acl-plugin acl-rule 1 insert 3 permit", "fewer than 3"),
        ("set acl-plugin acl-rule 1 replace 2 permit", "fewer than 3"),
        ("set acl-plugin acl-rule 1 insert 0 permit src-set nobody", "no address-set 'nobody'"),
        ("set acl-plugin acl-rule 1 insert 0 permit sport 7", "need proto"),
        ("set acl-plugin acl-rule 7 insert 0 permit", "no access list 7"),
        ("delete acl-plugin acl-rule 1 2", "fewer than 3"),
        ("delete acl-plugin acl-rule 1 1 count 1048576", "fewer than 1048577"),
        ("delete acl-plugin acl-rule 1 0 count 2", "no rule left"),
    ] {
        let refused = router.refused(line);
        assert!(refused.contains(what), "{line}: {refused}");
    }
    assert_eq!(router.json("show acl-plugin acl index 1"), before);
    assert!(!passes(&mut router, 1, 7) && passes(&mut router, 1, 8));
}

#[test]
fn lists_of_an_interface_decide_in_order_and_end() {
    let mut router = router();
    router.cli("set acl-plugin acl index 1 deny src 198.51.100.1/32");
    router.cli("set acl-plugin acl index 2 permit");
    router.cli("set acl-plugin interface e0 input acl 2 sequence 5");
    assert!(passes(&mut router, 1, 7));
    router.cli("set acl-plugin interface e0 input acl 1");
    assert!(passes(&mut router, 1, 7), "the first list permits it");
    router.cli("set acl-plugin interface e0 input acl 1 del");
    router.cli("set acl-plugin interface e0 input acl 1 sequence 1");
    assert!(!passes(&mut router, 1, 7) && passes(&mut router, 2, 7));
    router.cli("set acl-plugin interface e0 input acl 2 del");
    assert!(!passes(&mut router, 2, 7), "what no rule matches is dropped");
    router.cli("set acl-plugin interface e0 input acl 1 del");
    assert!(passes(&mut router, 1, 7));
    let rows = router.json("show acl-plugin interface");
    assert_eq!(rows.as_array().map(Vec::len), Some(0));
}

#[test]
fn rules_count_when_they_are_to() {
    let mut router = router();
    router.cli("set acl-plugin acl index 3 permit");
    router.cli("set acl-plugin acl index 4 deny proto udp dport 7, permit");
    router.cli("set acl-plugin interface e0 input acl 4");
    router.cli("set acl-plugin interface e1 output acl 3");
    passes(&mut router, 1, 7);
    router.cli("set acl-plugin counters on");
    for port in [7, 8, 8] {
        passes(&mut router, 1, port);
    }
    let counts = |router: &mut Router, acl: u32| -> Vec<(u64, u64)> {
        let shown = router.json(&format!("show acl-plugin acl index {acl}"));
        let rules = shown["rules"].as_array().expect("rules").clone();
        let number = |rule: &serde_json::Value, key: &str| rule[key].as_u64().expect("number");
        rules.iter().map(|rule| (number(rule, "packets"), number(rule, "bytes"))).collect()
    };
    assert_eq!(counts(&mut router, 4), [(1, 34), (2, 68)]);
    assert_eq!(counts(&mut router, 3), [(2, 68)], "bytes from the IP header on");
    router.cli("set acl-plugin counters off");
    passes(&mut router, 1, 7);
    assert_eq!(counts(&mut router, 4)[0], (1, 34));
}

#[test]
fn a_rule_that_asks_a_set_comes_and_goes_in_a_long_list() {
    let mut router = router();
    let fillers: Vec<String> =
        (0..600).map(|at| format!("deny src 203.0.{}.{}/32", at / 256, at % 256)).collect();
    router.cli(&format!("set acl-plugin acl index 1 {}, permit", fillers.join(", ")));
    router.cli("set acl-plugin interface e0 input acl 1");
    router.cli("set acl-plugin set blocked addresses");
    router.cli("set acl-plugin acl-rule 1 insert 300 deny src-set blocked");
    assert_eq!(router.json("show acl-plugin tables")[0]["changes"], 1);
    assert!(passes(&mut router, 1, 7), "the set is empty");
    router.cli("set acl-plugin address-set blocked add 198.51.100.1");
    assert!(!passes(&mut router, 1, 7) && passes(&mut router, 2, 7));
    assert!(router.refused("delete acl-plugin set blocked").contains("access list 1"));
    router.cli("delete acl-plugin acl-rule 1 300");
    assert_eq!(router.json("show acl-plugin tables")[0]["changes"], 0);
    assert!(passes(&mut router, 1, 7));
    router.cli("delete acl-plugin set blocked");
    let deleted = router.json("show acl-plugin acl index 1");
    assert_eq!(deleted["rules"].as_array().map(Vec::len), Some(601));
}

#[test]
fn a_port_that_joins_or_leaves_a_bridge_stays_filtered() {
    let mut router = router();
    router.cli("set acl-plugin acl index 1 permit proto udp dport 7");
    router.cli("set acl-plugin interface e0 input acl 1");
    let bridged = |router: &mut Router, port: u8| {
        let mut frame = frame(1, port);
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 9, 9]);
        router.send("e0", &frame);
        !router.sent("e1").is_empty()
    };
    assert!(passes(&mut router, 1, 7) && !passes(&mut router, 1, 8));
    router.cli("set interface l2 bridge e0 1");
    router.cli("set interface l2 bridge e1 1");
    assert!(bridged(&mut router, 7) && !bridged(&mut router, 8));
    router.cli("set interface l3 e0");
    router.cli("set interface l3 e1");
    assert!(passes(&mut router, 1, 7) && !passes(&mut router, 1, 8));
    assert_eq!(router.count("acl-plugin-in-ip4-fa", "acl-no-rule"), 2);
    assert_eq!(router.count("acl-plugin-in-ip4-l2", "acl-no-rule"), 1);
}

#[test]
fn files_of_rules_are_read_and_their_mistakes_listed_by_line() {
    let folder = std::env::temp_dir().join(format!("quiver-acl-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("folder");
    let (good, bad) = (folder.join("good.rules"), folder.join("bad.rules"));
    let rule = |n| format!("deny proto udp src 10.{}.{}.0/24 dport {n}\n", n / 256, n % 256);
    let rules: String = (0..2000).map(rule).collect();
    std::fs::write(&good, format!("# rules\n{rules}permit proto udp dport 7\n")).expect("written");
    std::fs::write(&bad, "permit\nallow\n\ndeny src 300.0.0.0/8\n").expect("written");
    let mut router = router();
    router.cli("set acl-plugin acl index 1 deny");
    router.cli("set acl-plugin interface e0 input acl 1");
    let refused = router.refused(&format!("set acl-plugin acl-file index 1 {}", bad.display()));
    assert!(refused.contains("line 2") && refused.contains("line 4"), "{refused}");
    assert!(!passes(&mut router, 1, 7));
    router.cli(&format!("set acl-plugin acl-file index 1 {} tag big", good.display()));
    assert!(passes(&mut router, 1, 7) && !passes(&mut router, 1, 8));
    let tables = router.json("show acl-plugin tables");
    assert_eq!(tables[0]["structure"], "tuples");
    assert_eq!(tables[0]["rules"], 2001);
    assert_eq!(router.json("show acl 1 cost")[0]["tuples"], 2);
    let config = router.cli("show running-config");
    assert_eq!(config.lines().filter(|line| line.contains("acl-rest 1 from ")).count(), 5);
    let mut again = Router::new(&[
        quiver_ethernet::register,
        quiver_bridge::register,
        quiver_ip::register,
        quiver_reassembly::register,
        quiver_acl::register,
    ]);
    sources::ports(&mut again, 2);
    for line in config.lines().filter(|line| line.contains("acl-plugin")) {
        again.cli(line);
    }
    assert!(passes(&mut again, 1, 7) && !passes(&mut again, 1, 8));
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn an_interface_that_goes_takes_its_lists_along() {
    let mut router = router();
    router.cli("set acl-plugin acl index 1 permit");
    router.cli("create loopback interface instance 0");
    router.cli("set acl-plugin interface loop0 input acl 1");
    router.cli("set acl-plugin virtual-reassembly on");
    router.cli("delete loopback interface intfc loop0");
    router.cli("delete acl-plugin acl index 1");
    let tables = router.json("show acl-plugin tables");
    assert_eq!(tables.as_array().map(Vec::len), Some(0));
}
