//! Lists of senders: who may send from an interface, by MAC and IP address.

use std::net::Ipv4Addr;

use quiver_testkit::frames::{self, Fragment};
use quiver_testkit::{Router, sources};

const NODE: &str = "acl-plugin-macip";

fn router() -> Router {
    let mut router =
        Router::new(&[quiver_ethernet::register, quiver_ip::register, quiver_acl::register]);
    sources::ports(&mut router, 2);
    router
}

/// A datagram of a host, from this MAC address.
fn frame(host: u8, mac: [u8; 6]) -> Vec<u8> {
    let addresses = (sources::host(host), Ipv4Addr::new(10, 0, 1, 2));
    let udp = [0, 1, 0, 7, 0, 14, 0, 0, 1, 2, 3, 4, 5, 6];
    let mut frame = frames::ip4(0, addresses, frames::UDP, Fragment::default(), &udp);
    frame[6..12].copy_from_slice(&mac);
    frame
}

fn passes(router: &mut Router, host: u8, mac: [u8; 6]) -> bool {
    router.send("e0", &frame(host, mac));
    !router.sent("e1").is_empty()
}

/// An ARP request (RFC 826) for an address of nobody.
fn arp(mac: [u8; 6], sender_mac: [u8; 6], sender: Ipv4Addr) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend(mac);
    frame.extend([0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend(sender_mac);
    frame.extend(sender.octets());
    frame.extend([0; 6]);
    frame.extend([203, 0, 113, 9]);
    frame
}

const HERE: [u8; 6] = [2, 0xfe, 0, 0, 0, 0x10];
const THERE: [u8; 6] = [2, 0xaa, 0, 0, 0, 0x10];

#[test]
fn a_sender_passes_with_the_addresses_of_a_rule_alone() {
    let mut router = router();
    assert!(passes(&mut router, 1, THERE));
    router.cli(
        "set acl-plugin macip acl index 2 deny ip 198.51.100.9/32, permit ip 198.51.100.1/32 mac \
         02:fe:00:00:00:10, permit ip 198.51.100.8/29 mac 02:aa:00:00:00:00 mask ff:ff:00:00:00:00",
    );
    router.cli("set acl-plugin macip interface e0 2");
    assert!(passes(&mut router, 1, HERE) && !passes(&mut router, 1, THERE));
    assert!(!passes(&mut router, 2, HERE));
    assert!(passes(&mut router, 8, THERE) && !passes(&mut router, 8, HERE));
    assert_eq!(router.count(NODE, "acl-macip-no-rule"), 3);
    assert!(!passes(&mut router, 9, THERE));
    assert_eq!(router.count(NODE, "acl-macip-deny"), 1);
    router.cli("set acl-plugin macip acl index 2 permit mac 02:aa:00:00:00:10");
    assert!(passes(&mut router, 1, THERE) && !passes(&mut router, 1, HERE));
    router.cli("set acl-plugin macip interface e0 2 del");
    assert!(passes(&mut router, 1, HERE));
}

#[test]
fn arp_is_asked_for_its_sender() {
    let mut router = router();
    router.cli("set acl-plugin macip acl index 2 permit ip 198.51.100.1/32 mac 02:fe:00:00:00:10");
    router.cli("set acl-plugin macip interface e0 2");
    let sender = sources::host(1);
    router.send("e0", &arp(HERE, HERE, sender));
    assert_eq!(router.count(NODE, "acl-macip-no-rule"), 0);
    router.send("e0", &arp(THERE, HERE, sender));
    assert_eq!(router.count(NODE, "acl-macip-arp"), 1);
    router.send("e0", &arp(HERE, HERE, sources::host(2)));
    router.send("e0", &arp(THERE, THERE, sender));
    assert_eq!(router.count(NODE, "acl-macip-no-rule"), 2);
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut router = router();
    router.cli("set acl-plugin macip acl index 1 permit ip 10.0.0.0/8 tag \"the lab\"");
    router.cli("set acl-plugin macip interface e0 1");
    let before = router.cli("show running-config");
    assert!(before.contains("macip acl index 1 permit ip 10.0.0.0/8 tag \"the lab\""), "{before}");
    for (line, what) in [
        ("set acl-plugin macip acl index 1 permit mask ff:00:00:00:00:00", "give both"),
        (
            "set acl-plugin macip acl index 1 permit mac 02:fe:00:00:00:01 mask 00:ff:00:00:00:00",
            "no mask of first bits",
        ),
        ("set acl-plugin macip interface e0 7", "no macip list 7"),
        ("set acl-plugin macip interface e1 1 del", "is not that of e1"),
        ("delete acl-plugin macip acl index 1", "that of e0"),
        ("delete acl-plugin macip acl index 7", "no macip list 7"),
    ] {
        let refused = router.refused(line);
        assert!(refused.contains(what), "{line}: {refused}");
    }
    assert_eq!(router.cli("show running-config"), before);
    let shown = router.json("show acl-plugin macip acl");
    assert_eq!((&shown[0]["acl"], &shown[0]["interfaces"][0]), (&1.into(), &"e0".into()));
    assert_eq!(router.json("show acl-plugin macip interface")[0]["acl"], 1);
}
