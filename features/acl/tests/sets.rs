//! Named sets: what operators type, and what becomes of packets and sessions.

use quiver_testkit::frames::{self, Fragment};
use quiver_testkit::{Router, sources};

fn router() -> Router {
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

fn passes(router: &mut Router, host: u8, port: u8) -> bool {
    router.send("e0", &frame(host, port));
    !router.sent("e1").is_empty()
}

fn run(router: &mut Router, lines: &[&str]) {
    lines.iter().for_each(|line| {
        router.cli(line);
    });
}

#[test]
fn elements_come_and_go_while_a_list_filters() {
    let mut router = router();
    run(
        &mut router,
        &[
            "set acl-plugin set blocked addresses",
            "set acl-plugin set open ports",
            "set acl-plugin acl index 1 deny src-set blocked, permit proto udp dport-set open",
            "set acl-plugin interface e0 input acl 1",
        ],
    );
    assert!(!passes(&mut router, 1, 7), "no port is open");
    router.cli("set acl-plugin port-set open add 7-9");
    assert!(passes(&mut router, 1, 7) && passes(&mut router, 1, 9) && !passes(&mut router, 1, 10));
    router.cli("set acl-plugin address-set blocked add 198.51.100.0/24");
    assert!(!passes(&mut router, 1, 7));
    router.cli("set acl-plugin address-set blocked add 198.51.100.1/32");
    router.cli("set acl-plugin address-set blocked del 198.51.100.0/24");
    assert!(!passes(&mut router, 1, 7), "the host is an element of its own");
    // An address alone is that host.
    router.cli("set acl-plugin address-set blocked add 198.51.100.3");
    assert!(!passes(&mut router, 3, 7));
    let config = router.cli("show running-config");
    assert!(config.contains("address-set blocked add 198.51.100.3/32"), "{config}");
    router.cli("set acl-plugin address-set blocked del 198.51.100.3");
    assert!(passes(&mut router, 2, 7));
    router.cli("set acl-plugin address-set blocked del 198.51.100.1/32");
    router.cli("set acl-plugin port-set open del 7-9");
    assert!(!passes(&mut router, 1, 7));
}

#[test]
fn the_interface_that_received_a_packet_is_looked_for_in_a_set() {
    let mut router = router();
    run(
        &mut router,
        &[
            "set acl-plugin set inside interfaces",
            "set acl-plugin acl index 1 permit rx-set inside",
            "set acl-plugin interface e1 output acl 1",
        ],
    );
    assert!(!passes(&mut router, 1, 7));
    router.cli("set acl-plugin interface-set inside add e0");
    assert!(passes(&mut router, 1, 7));
    let shown = router.json("show acl-plugin sets inside");
    assert_eq!(shown["elements"][0]["element"], "e0");
    router.cli("set acl-plugin interface-set inside del e0");
    assert!(!passes(&mut router, 1, 7));
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut router = router();
    run(
        &mut router,
        &[
            "set acl-plugin set nets addresses",
            "set acl-plugin address-set nets add 10.0.0.0/8",
            "set acl-plugin address-set nets add 2001:db8::/32",
            "set acl-plugin set web ports",
            "set acl-plugin port-set web add 80-90",
            "set acl-plugin acl index 4 permit proto tcp src-set nets dport-set web",
        ],
    );
    let before = router.cli("show running-config");
    for (line, what) in [
        ("set acl-plugin acl index 5 permit src-set other", "no address-set 'other'"),
        ("set acl-plugin acl index 5 permit src-set web", "has ports, not addresses"),
        ("set acl-plugin acl index 5 permit dport-set web", "needs proto"),
        ("set acl-plugin acl index 5 permit proto icmp dport-set web", "needs proto"),
        ("set acl-plugin set nets ports", "is a set of addresses already"),
        ("set acl-plugin port-set nets add 7", "no port-set 'nets'"),
        ("set acl-plugin address-set other add 10.0.0.0/8", "no address-set 'other'"),
        ("set acl-plugin address-set nets del 11.0.0.0/8", "is not in"),
        ("set acl-plugin port-set web add 85-95", "85-95 overlaps 80-90"),
        ("set acl-plugin port-set web add 1-80", "overlaps"),
        ("set acl-plugin port-set web add 70000", "at most 65535"),
        ("set acl-plugin port-set web del 80", "is not in"),
        ("set acl-plugin set \"two words\" ports", "no name of a set"),
        ("delete acl-plugin set nets", "used by access list 4"),
        ("delete acl-plugin set none", "no set 'none'"),
        ("show acl-plugin sets none", "no set 'none'"),
    ] {
        let refused = router.refused(line);
        assert!(refused.contains(what), "{line}: {refused}");
    }
    let long = format!("set acl-plugin set {} addresses", "x".repeat(64));
    assert!(router.refused(&long).contains("at most 63"));
    assert_eq!(router.cli("show running-config"), before);
}

#[test]
fn a_set_is_shown_with_its_elements_and_users_and_goes_with_the_last() {
    let mut router = router();
    run(
        &mut router,
        &[
            "set acl-plugin set nets addresses",
            "set acl-plugin set nets addresses",
            "set acl-plugin address-set nets add 10.1.2.3/8",
            "set acl-plugin address-set nets add 10.0.0.0/8",
            "set acl-plugin address-set nets add 2001:db8::/32",
            "set acl-plugin acl index 4 permit src-set nets, permit dst-set nets",
            "set acl-plugin acl index 6 permit dst-set nets",
        ],
    );
    let shown = router.json("show acl-plugin sets");
    assert_eq!(shown[0]["set"], "nets");
    assert_eq!((&shown[0]["elements"], &shown[0]["of"]), (&2.into(), &"addresses".into()));
    assert_eq!(shown[0]["access_lists"], serde_json::json!([4, 6]));
    let elements = router.json("show acl-plugin sets nets");
    let words: Vec<&str> = elements["elements"]
        .as_array()
        .expect("elements")
        .iter()
        .filter_map(|row| row["element"].as_str())
        .collect();
    assert_eq!(words, ["10.0.0.0/8", "2001:db8::/32"]);
    router.cli("delete acl-plugin set nets when-unused");
    router.cli("delete acl-plugin acl index 4");
    assert!(router.cli("show running-config").contains("address-set nets add 10.0.0.0/8"));
    router.cli("set acl-plugin acl index 6 permit");
    assert!(!router.cli("show running-config").contains("nets"));
    router.cli("set acl-plugin set nets ports");
}

#[test]
fn a_file_replaces_the_elements_or_changes_nothing() {
    let mut router = router();
    run(
        &mut router,
        &[
            "set acl-plugin set blocked addresses",
            "set acl-plugin address-set blocked add 198.51.100.1/32",
            "set acl-plugin address-set blocked add 198.51.100.2/32",
            "set acl-plugin acl index 1 deny src-set blocked, permit",
            "set acl-plugin interface e0 input acl 1",
        ],
    );
    let folder = std::env::temp_dir().join(format!("quiver-acl-sets-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("folder");
    let (good, bad) = (folder.join("good.txt"), folder.join("bad.txt"));
    let elements = "198.51.100.2\n198.51.100.3 # new\n2001:db8::1\n";
    std::fs::write(&good, elements).expect("written");
    std::fs::write(&bad, format!("{elements}198.51.100.0/33\nnonsense\n")).expect("written");
    let done = router.json(&format!("set acl-plugin set-file blocked {}", good.display()));
    assert_eq!(
        (&done["added"], &done["removed"], &done["elements"]),
        (&2.into(), &1.into(), &3.into())
    );
    assert!(passes(&mut router, 1, 7) && !passes(&mut router, 2, 7) && !passes(&mut router, 3, 7));
    let refused = router.refused(&format!("set acl-plugin set-file blocked {}", bad.display()));
    assert!(refused.contains("line 4") && refused.contains("line 5"), "{refused}");
    assert_eq!(router.json("show acl-plugin sets")[0]["elements"], 3);
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_session_ends_with_the_element_that_permitted_it() {
    let mut router = router();
    run(
        &mut router,
        &[
            "set acl-plugin set inside addresses",
            "set acl-plugin address-set inside add 198.51.100.1/32",
            "set acl-plugin acl index 1 permit+reflect src-set inside",
            "set acl-plugin interface e0 input acl 1",
        ],
    );
    assert!(passes(&mut router, 1, 7) && passes(&mut router, 1, 7) && !passes(&mut router, 2, 7));
    router.cli("set acl-plugin address-set inside add 198.51.100.2/32");
    assert!(passes(&mut router, 1, 7) && passes(&mut router, 2, 7));
    router.cli("set acl-plugin address-set inside del 198.51.100.1/32");
    assert!(!passes(&mut router, 1, 7) && passes(&mut router, 2, 7));
}
