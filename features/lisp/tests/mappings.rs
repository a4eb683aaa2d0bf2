//! What operators type, and where packets go then.

use std::time::Duration;

use quiver_testkit::configuration::running;
use quiver_testkit::{Register, Router};

const FEATURES: [Register; 4] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_lisp::register,
];

/// A host at e0, the underlay at e1 and e2, and one remote EID.
pub(crate) fn router() -> Router {
    let mut router = Router::new(&FEATURES);
    for (name, address, neighbour) in [
        ("e0", "10.0.0.1", "10.0.0.2"),
        ("e1", "192.0.2.1", "192.0.2.2"),
        ("e2", "198.18.0.1", "198.18.0.2"),
    ] {
        router.interface(name);
        router.cli(&format!("set interface ip address {name} {address}/24"));
        router.cli(&format!("ip neighbor {name} {neighbour} 02:00:00:00:00:b1"));
    }
    for line in [
        "set interface ip address e1 2001:db8:1::1/64",
        "ip route add 203.0.113.0/24 via 192.0.2.2 e1",
        "lisp enable",
        "lisp locator-set add site iface e1 p 1 w 1",
        "lisp eid-table add eid 10.0.0.0/24 locator-set site",
        "lisp remote-mapping add eid 198.51.100.0/24 rloc 203.0.113.2 p 1 w 1 \
         rloc 203.0.113.3 p 2 w 1",
    ] {
        router.cli(line);
    }
    router
}

fn sum(bytes: &[u8]) -> u16 {
    let all: u32 = bytes.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
    !((all & 0xffff) + (all >> 16)) as u16
}

/// A frame of the host with a UDP datagram to this address.
pub(crate) fn frame(to: [u8; 4], port: u8) -> Vec<u8> {
    let mut header = vec![0x45, 0, 0, 48, 0, 7, 0, 0, 64, 17, 0, 0, 10, 0, 0, 2];
    header.extend(to);
    let checksum = sum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    let link = [2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0xb1, 8, 0];
    [&link[..], &header, &[0, port, 0, 9, 0, 28, 0, 0], &[0; 20]].concat()
}

/// The outer source and destination of a frame that was sent.
pub(crate) fn ends(frame: &[u8]) -> ([u8; 4], [u8; 4]) {
    let address = |at: usize| [frame[at], frame[at + 1], frame[at + 2], frame[at + 3]];
    (address(26), address(30))
}

fn outer(router: &mut Router, interface: &str) -> Vec<[u8; 4]> {
    router.sent(interface).iter().map(|frame| ends(frame).1).collect()
}

#[test]
fn the_next_locator_takes_over_when_the_first_cannot_be_reached() {
    let mut router = router();
    router.send("e0", &frame([198, 51, 100, 9], 1));
    assert_eq!(outer(&mut router, "e1"), [[203, 0, 113, 2]]);
    // No route leads to either, then to the second one.
    router.cli("ip route del 203.0.113.0/24");
    router.cli("ip route add 203.0.113.3/32 via 192.0.2.2 e1");
    router.advance(Duration::from_secs(1));
    router.send("e0", &frame([198, 51, 100, 9], 1));
    assert_eq!(outer(&mut router, "e1"), [[203, 0, 113, 3]]);
    router.cli("ip route add 203.0.113.2/32 via 192.0.2.2 e1");
    router.advance(Duration::from_secs(1));
    router.send("e0", &frame([198, 51, 100, 9], 1));
    assert_eq!(outer(&mut router, "e1"), [[203, 0, 113, 2]]);
}

#[test]
fn locators_share_the_flows_by_their_weights() {
    let mut router = router();
    router.cli(
        "lisp remote-mapping add eid 198.51.100.0/24 rloc 203.0.113.2 p 1 w 3 \
                rloc 203.0.113.3 p 1 w 1",
    );
    for port in 0..200 {
        router.inject("e0", &frame([198, 51, 100, port], port));
    }
    router.run();
    let sent = outer(&mut router, "e1");
    let first = sent.iter().filter(|to| **to == [203, 0, 113, 2]).count();
    assert_eq!(sent.len(), 200);
    assert!((110..=185).contains(&first), "{first}");
}

#[test]
fn the_source_is_the_address_of_the_first_locator_and_follows_it() {
    let mut router = router();
    let source = |router: &mut Router| {
        router.send("e0", &frame([198, 51, 100, 9], 1));
        router.sent("e1").first().map(|frame| ends(frame).0)
    };
    assert_eq!(source(&mut router), Some([192, 0, 2, 1]));
    router.cli("lisp locator add locator-set site iface e2 p 0 w 1");
    assert_eq!(source(&mut router), Some([198, 18, 0, 1]));
    router.cli("set interface ip address del e2 198.18.0.1/24");
    router.advance(Duration::from_secs(1));
    assert_eq!(source(&mut router), Some([192, 0, 2, 1]));
    router.cli("lisp locator del locator-set site iface e1");
    assert_eq!(source(&mut router), None);
    router.cli("lisp locator add locator-set site iface e1");
    assert_eq!(source(&mut router), Some([192, 0, 2, 1]));
    router.cli("lisp disable");
    assert_eq!(source(&mut router), None);
    router.cli("lisp enable");
    assert_eq!(source(&mut router), Some([192, 0, 2, 1]));
}

#[test]
fn a_configuration_is_written_back_as_it_was_given_and_leaves_nothing_behind() {
    let mut router = router();
    let before = running(&mut Router::new(&FEATURES));
    for line in [
        "one eid-table map vni 7 vrf 70",
        "one remote-mapping add vni 7 eid 2001:db8:b::/48 action send-map-request",
        "one map-resolver add 203.0.113.9",
        "one pitr ls site",
        "one adjacency add vni 7 reid 10.2.0.0/16 leid 10.1.0.0/16",
        "one header plain",
    ] {
        router.cli(line);
    }
    let config = running(&mut router);
    for line in [
        "lisp eid-table map vni 7 vrf 70",
        "lisp remote-mapping add vni 7 eid 2001:db8:b::/48 action send-map-request",
        "lisp locator-set add site iface e1 p 1 w 1",
        "lisp eid-table add eid 10.0.0.0/24 locator-set site",
        "lisp header plain",
    ] {
        assert!(config.lines().any(|written| written == line), "{line}\n{config}");
    }
    for line in [
        "lisp remote-mapping del del-all",
        "lisp eid-table del eid 10.0.0.0/24 locator-set site",
        "lisp pitr disable",
        "lisp locator-set del site",
        "lisp map-resolver del 203.0.113.9",
        "lisp adjacency del vni 7 reid 10.2.0.0/16 leid 10.1.0.0/16",
        "lisp header gpe",
        "lisp eid-table map del vni 7 vrf 70",
        "lisp disable",
        "ip table del 70",
        "ip6 table del 70",
    ] {
        router.cli(line);
    }
    let left = running(&mut router);
    assert!(!left.contains("lisp") && !left.contains("table 70"), "{left}\n{before}");
}

#[test]
fn what_is_refused_changes_nothing() {
    let mut router = router();
    for (line, why) in [
        ("lisp locator-set del site", "has the locators of EID 10.0.0.0/24"),
        ("lisp eid-table add eid 10.1.0.0/16 locator-set none", "no locator set none"),
        ("lisp eid-table add eid 10.1.0.1/16 locator-set site", "bits behind its length"),
        ("lisp remote-mapping add eid 10.1.0.0/16 rloc 224.0.0.1 p 1 w 1", "no address"),
        (
            "lisp remote-mapping add eid 10.1.0.0/16 rloc 10.9.9.9 p 1 w 1 rloc 10.9.9.9 p 2 w 1",
            "named twice",
        ),
        ("lisp remote-mapping add eid 10.1.0.0/16 action drop rloc 10.9.9.9 p 1 w 1", "an action"),
        ("lisp remote-mapping del eid 10.1.0.0/16", "no mapping"),
        ("lisp map-resolver del 10.9.9.9", "no map resolver"),
        ("lisp locator del locator-set site iface e0", "e0 is not in site"),
        ("lisp eid-table map del vni 7 vrf 7", "not in table 7"),
        ("ip table del 0", ""),
    ] {
        let before = running(&mut router);
        let refusal = router.refused(line);
        assert!(refusal.contains(why), "{line}: {refusal}");
        assert_eq!(running(&mut router), before, "{line}");
    }
}
