//! What operators type, and what becomes of packets when something around a tunnel changes.

use quiver_core::memory::buffer::Offload;
use quiver_testkit::{Register, Router, configuration};

const FEATURES: [Register; 5] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_urpf::register,
    quiver_teib::register,
    quiver_gre::register,
];

/// Hosts at e0, the underlay at e1 and e2, and a tunnel to 203.0.113.2.
fn router() -> Router {
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
        "ip route add 203.0.113.0/24 via 192.0.2.2 e1",
        "create gre tunnel src 192.0.2.1 dst 203.0.113.2",
        "set interface state gre0 up",
        "set interface ip address gre0 10.1.0.1/30",
        "ip route add 198.51.100.0/24 via gre0",
    ] {
        router.cli(line);
    }
    router
}

fn sum(bytes: &[u8]) -> u16 {
    let all: u32 = bytes
        .chunks(2)
        .map(|two| u32::from(two[0]) << 8 | two.get(1).map_or(0, |low| u32::from(*low)))
        .sum();
    !((all & 0xffff) + (all >> 16)) as u16
}

/// An IPv4 packet with so many bytes behind its header.
fn packet(source: [u8; 4], destination: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let total = (20 + payload.len()) as u16;
    let mut header = vec![0x45, 0, (total >> 8) as u8, total as u8, 0, 7, 0, 0, 64, protocol, 0, 0];
    header.extend(source.iter().chain(&destination));
    let checksum = sum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    [&header[..], payload].concat()
}

fn frame(to: u8, packet: &[u8]) -> Vec<u8> {
    [&[2, 0xfe, 0, 0, 0, to, 2, 0, 0, 0, 0, 0xb1, 8, 0][..], packet].concat()
}

fn host_packet(payload: usize) -> Vec<u8> {
    frame(0, &packet([10, 0, 0, 2], [198, 51, 100, 2], 253, &vec![0x5a; payload]))
}

/// By which of the two links a packet of a host leaves, if it does.
fn leaves(router: &mut Router) -> Option<&'static str> {
    router.send("e0", &host_packet(40));
    ["e1", "e2"].into_iter().find(|link| !router.sent(link).is_empty())
}

#[test]
fn packets_follow_the_route_of_the_outer_destination_at_once() {
    let mut router = router();
    assert_eq!(leaves(&mut router), Some("e1"));
    router.cli("ip route add 203.0.113.2/32 via 198.18.0.2 e2");
    assert_eq!(leaves(&mut router), Some("e2"));
    router.cli("set interface state e2 down");
    router.cli("ip route del 203.0.113.2/32 via 198.18.0.2 e2");
    assert_eq!(leaves(&mut router), Some("e1"));
    router.cli("ip route del 203.0.113.0/24");
    assert_eq!(leaves(&mut router), None);
    let shown = router.json("show gre tunnel");
    assert_eq!(shown[0]["underlay"], "unusable");
    assert_eq!(shown[0]["reason"], "no route to 203.0.113.2");
}

#[test]
fn a_tunnel_that_would_go_through_itself_is_told_and_works_again_when_it_does_not() {
    let mut router = router();
    router.cli("ip route add 203.0.113.2/32 via gre0");
    assert_eq!(leaves(&mut router), None);
    let shown = router.json("show gre tunnel gre0");
    assert_eq!(shown[0]["underlay"], "unusable");
    assert!(
        shown[0]["reason"].as_str().is_some_and(|why| why.contains("would go through itself")),
        "{shown}"
    );
    router.cli("ip route del 203.0.113.2/32 via gre0");
    assert_eq!(leaves(&mut router), Some("e1"));

    // The same by way of another tunnel.
    router.cli("create gre tunnel src 192.0.2.1 dst 203.0.113.3");
    router.cli("set interface state gre1 up");
    router.cli("ip route add 203.0.113.2/32 via gre1");
    assert_eq!(leaves(&mut router), Some("e1"), "a tunnel in a tunnel");
    router.cli("ip route add 203.0.113.3/32 via gre0");
    assert_eq!(leaves(&mut router), None);
    let shown = router.json("show gre tunnel");
    let loops =
        |place: usize| shown[place]["reason"].as_str().is_some_and(|said| said.contains("itself"));
    assert!(loops(0) || loops(1), "{shown}");
    router.cli("ip route del 203.0.113.3/32 via gre0");
    assert_eq!(leaves(&mut router), Some("e1"));
    router.cli("ip route del 203.0.113.2/32 via gre1");
    assert_eq!(leaves(&mut router), Some("e1"));
}

#[test]
fn packets_longer_than_the_tunnel_takes_are_fragmented_for_it() {
    let mut router = router();
    router.cli("set interface mtu packet 620 gre0");
    router.send("e0", &host_packet(1180));
    let sent = router.sent("e1");
    assert_eq!(sent.len(), 2);
    // Ethernet, IPv4, GRE, and then fragments of the packet inside, which have counted one hop.
    let inner = |frame: &[u8]| (frame[23], frame[38 + 6..][..2].to_vec(), frame[38 + 8]);
    assert_eq!(inner(&sent[0]), (47, vec![0x20, 0], 63));
    assert_eq!(inner(&sent[1]), (47, vec![0, 75], 63));
    assert_eq!(router.totals("gre0").tx_packets, 2);
}

#[test]
fn features_of_the_tunnels_interface_see_what_comes_out_of_it() {
    let mut router = router();
    let tunnelled = |source: [u8; 4]| {
        let inner = packet(source, [10, 0, 0, 2], 253, b"inside");
        frame(
            1,
            &packet([203, 0, 113, 2], [192, 0, 2, 1], 47, &[&[0, 0, 8, 0][..], &inner].concat()),
        )
    };
    router.send("e1", &tunnelled([198, 51, 100, 2]));
    assert_eq!(router.sent("e0").len(), 1);
    router.cli("set urpf ip4 rx strict gre0");
    router.send("e1", &tunnelled([198, 51, 100, 2]));
    assert_eq!(router.sent("e0").len(), 1);
    router.send("e1", &tunnelled([192, 0, 2, 77]));
    assert_eq!(router.sent("e0").len(), 0, "the source is behind e1, not the tunnel");
    router.cli("set interface state gre0 down");
    router.send("e1", &tunnelled([198, 51, 100, 2]));
    assert_eq!(router.count("gre4-input", "interface-down"), 1);
}

#[test]
fn a_tunnel_that_cannot_be_is_refused_and_changes_nothing() {
    let mut router = router();
    router.cli("create gre tunnel src 192.0.2.1 multipoint instance 9");
    let before = router.cli("show running-config");
    for (words, why) in [
        ("src 192.0.2.1 dst 2001:db8::1", "one family"),
        ("src 192.0.2.1 dst 224.0.0.1", "no address that one host has"),
        ("src 0.0.0.0 dst 203.0.113.9", "no address that one host has"),
        ("src 192.0.2.1 dst 203.0.113.2", "gre0 has the same ends"),
        ("src 192.0.2.1 dst 203.0.113.9 instance 0", "gre0 exists already"),
        ("src 192.0.2.1 dst 203.0.113.9 outer-table-id 5", "no IPv4 table 5"),
        ("src 192.0.2.1 multipoint", "gre9 has the same ends"),
        ("src 192.0.2.5 multipoint teb", "carries packets, not frames"),
        ("src 192.0.2.1", "one destination"),
        ("src 192.0.2.1 dst 203.0.113.9 multipoint", "one destination"),
        ("src 192.0.2.1 dst 203.0.113.9 del", "no GRE tunnel with these ends"),
    ] {
        let refusal = router.refused(&format!("create gre tunnel {words}"));
        assert!(refusal.contains(why), "{words}: {refusal}");
        assert_eq!(router.cli("show running-config"), before, "{words}");
    }
    for line in [
        "create teib interface gre0 peer 10.1.0.2 nh 203.0.113.9",
        "create teib interface gre9 peer 10.1.0.2 nh 2001:db8::9",
        "create teib interface gre9 peer 10.1.0.2 nh 203.0.113.9 nh-table-id 8",
        "delete teib interface gre9 peer 10.1.0.2",
        "delete gre tunnel e0",
    ] {
        router.refused(line);
        assert_eq!(router.cli("show running-config"), before, "{line}");
    }
}

#[test]
fn tunnels_are_written_back_as_they_were_given_and_leave_nothing_behind() {
    let mut router = router();
    router.cli("ip table add 7 name blue");
    for line in [
        "create gre tunnel src 192.0.2.1 dst 203.0.113.2 outer-table-id 7 key 42 ttl 9 dscp 46 instance 7",
        "create gre tunnel src 2001:db8::1 dst 2001:db8::2 teb instance 3",
        "create gre tunnel src 192.0.2.1 multipoint instance 9",
        "set interface ip address gre9 10.9.0.1/24",
        "create teib interface gre9 peer 10.9.0.2 nh 203.0.113.4",
        "create teib interface gre9 peer 10.9.0.3 nh 203.0.113.4 nh-table-id 7",
    ] {
        router.cli(line);
    }
    let config = configuration::running(&mut router);
    for part in [
        "outer-table-id 7 key 42 ttl 9 dscp 46",
        "teb",
        "peer 10.9.0.3 nh 203.0.113.4 nh-table-id 7",
    ] {
        assert!(config.contains(part), "{part}\n{config}");
    }
    router.refused("ip table del 7");
    let shown = router.json("show teib");
    assert_eq!((&shown[0]["peer"], &shown[1]["nh_table_id"]), (&"10.9.0.2".into(), &7.into()));
    router.cli("create gre tunnel src 192.0.2.1 dst 203.0.113.2 outer-table-id 7 key 42 del");
    router.cli("delete gre tunnel gre9");
    router.cli("delete gre tunnel gre3");
    assert_eq!(router.json("show teib"), serde_json::json!([]));
    router.cli("ip table del 7");
    router.cli("delete gre tunnel gre0");
    assert_eq!(router.json("show gre tunnel"), serde_json::json!([]));
    assert_eq!(leaves(&mut router), None);
}

/// An inner packet for the host, in a frame of the tunnel's other end. Its GRE header has a checksum
/// field with this in it.
fn tunnelled(inner: &[u8], field: u16) -> Vec<u8> {
    let field = field.to_be_bytes();
    let behind = [&[0x80, 0, 8, 0, field[0], field[1], 0, 0], inner].concat();
    frame(1, &packet([203, 0, 113, 2], [192, 0, 2, 1], 47, &behind))
}

#[test]
fn a_checksum_of_the_tunnel_header_that_was_left_to_the_device_counts_as_completed() {
    let mut router = router();
    let inner = packet([198, 51, 100, 2], [10, 0, 0, 2], 253, &[0x5a; 41]);
    let gre_bytes = inner.len() as u16 + 8;
    let right = sum(&[&[0x80, 0, 8, 0, 0, 0, 0, 0], &inner[..]].concat());
    router.send("e1", &tunnelled(&inner, right));
    let routed = router.sent("e0");
    assert_eq!(routed.len(), 1);
    router.send("e1", &tunnelled(&inner, right ^ 1));
    assert!(router.sent("e0").is_empty());

    let open = Offload { checksum_bytes: gre_bytes, checksum_offset: 4, ..Default::default() };
    router.send_unfinished("e1", &tunnelled(&inner, 0), open);
    // Nothing is left to be done behind the tunnel.
    assert_eq!(router.sent("e0"), routed);
}
