//! White lists of EtherTypes: which frames pass a bridge port and a routed interface.

use quiver_testkit::frames::{self, Fragment};
use quiver_testkit::{Router, sources};

/// e0 and e1 are routed, e2 and e3 are ports of a bridge.
fn router() -> Router {
    let mut router = Router::new(&[
        quiver_ethernet::register,
        quiver_bridge::register,
        quiver_ip::register,
        quiver_acl::register,
    ]);
    sources::ports(&mut router, 2);
    router.cli("create bridge-domain 1");
    for name in ["e2", "e3"] {
        router.interface(name);
        router.cli(&format!("set interface l2 bridge {name} 1"));
    }
    router
}

/// A frame to everybody whose header ends with these bytes.
fn frame(kinds: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0xaa, 0, 0, 0, 1];
    frame.extend(kinds);
    frame.extend([0; 46]);
    frame
}

fn is_bridged(router: &mut Router, kinds: &[u8]) -> bool {
    router.send("e2", &frame(kinds));
    !router.sent("e3").is_empty()
}

const ARP: &[u8] = &[8, 6];
const LLDP: &[u8] = &[0x88, 0xcc];
const PPPOE: &[u8] = &[0x88, 0x63];
const TAGGED_ARP: &[u8] = &[0x81, 0, 0, 7, 8, 6];
const TAGGED_PPPOE: &[u8] = &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 0x88, 0x63];
const SPANNING_TREE: &[u8] = &[0, 38, 0x42, 0x42, 3];
const IP4: &[u8] = &[8, 0];
const IP6: &[u8] = &[0x86, 0xdd];

#[test]
fn a_bridge_port_passes_ip_and_what_is_listed() {
    for (on, node) in
        [("e2 input", "acl-plugin-in-nonip-l2"), ("e3 output", "acl-plugin-out-nonip-l2")]
    {
        let mut router = router();
        let all = [ARP, LLDP, PPPOE, TAGGED_ARP, TAGGED_PPPOE, SPANNING_TREE, IP4, IP6];
        let which = |router: &mut Router| all.map(|kinds| is_bridged(router, kinds));
        let before = which(&mut router);
        router.cli(&format!("set acl-plugin ethertype-whitelist {on} 0x806 0x88cc"));
        let expected = [true, true, false, true, false, false, true, true];
        let both: Vec<bool> = before.iter().zip(expected).map(|(was, is)| *was && is).collect();
        assert_eq!(which(&mut router).to_vec(), both, "{on}");
        assert!(router.count(node, "acl-ethertype") >= 2, "{on}");
        // Another list takes its place.
        router.cli(&format!("set acl-plugin ethertype-whitelist {on} 0x8863 llc"));
        let found = which(&mut router);
        assert_eq!((found[0], found[2], found[4]), (false, before[2], before[4]), "{on}");
        router.cli(&format!("set acl-plugin ethertype-whitelist {on} off"));
        assert_eq!(which(&mut router), before, "{on}");
    }
}

#[test]
fn a_routed_interface_drops_arp_unless_it_is_listed_and_routes_on() {
    let mut router = router();
    router.cli("set acl-plugin ethertype-whitelist e0 input 0x8847");
    let addresses = (sources::host(1), std::net::Ipv4Addr::new(10, 0, 1, 2));
    let udp = [0, 1, 0, 7, 0, 8, 0, 0];
    router.send("e0", &frames::ip4(0, addresses, frames::UDP, Fragment::default(), &udp));
    assert_eq!(router.sent("e1").len(), 1);
    router.send("e0", &frame(ARP));
    assert_eq!(router.count("acl-plugin-in-nonip-l2", "acl-ethertype"), 1);
    router.cli("set acl-plugin ethertype-whitelist e0 input 0x806");
    router.send("e0", &frame(ARP));
    assert_eq!(router.count("acl-plugin-in-nonip-l2", "acl-ethertype"), 1);
}

#[test]
fn mistakes_are_refused_and_what_is_written_can_be_typed_again() {
    let mut router = router();
    router.cli("set acl-plugin ethertype-whitelist e0 input 0x88cc 2054 llc");
    let before = router.cli("show running-config");
    let line = "set acl-plugin ethertype-whitelist e0 input 0x88cc 0x806 llc";
    assert!(before.lines().any(|written| written == line), "{before}");
    for (line, why) in [
        ("set acl-plugin ethertype-whitelist e0 input 0x5ff", "EtherType"),
        ("set acl-plugin ethertype-whitelist e0 input 65536", "EtherType"),
        ("set acl-plugin ethertype-whitelist e0 output off", "has no white list"),
        ("set acl-plugin ethertype-whitelist e9 input 0x806", "e9"),
    ] {
        let refused = router.refused(line);
        assert!(refused.contains(why), "{line}: {refused}");
    }
    assert_eq!(router.cli("show running-config"), before);
    router.cli(line);
    assert_eq!(router.cli("show running-config"), before);
    let rows = router.json("show acl-plugin ethertype-whitelist e0");
    assert_eq!(rows[0]["ethertypes"], serde_json::json!(["0x88cc", "0x806", "llc"]));
    let long: Vec<String> = (0..65).map(|at| format!("{:#x}", 0x9000 + at)).collect();
    let refused =
        router.refused(&format!("set acl-plugin ethertype-whitelist e0 input {}", long.join(" ")));
    assert!(refused.contains("at most 64"), "{refused}");
}
