//! Where super-frames stay whole, and where they do not.

use std::net::Ipv4Addr;

use quiver_testkit::Router;

use super::super_frames::*;

const ENDS: (Ipv4Addr, Ipv4Addr) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(198, 51, 100, 9));
/// Of an Ethernet and an IPv4 header, and a TCP header.
const HEADERS_BYTES: usize = 14 + 20 + 20;

/// A router with a tunnel to a host behind e1, made by `create`, and a route by `way`.
fn router(create: &str, way: &str) -> Router {
    let mut router = Router::new(&[
        quiver_ethernet::register,
        quiver_ip::register,
        quiver_gso::register,
        quiver_reassembly::register,
        quiver_teib::register,
        quiver_gre::register,
        quiver_ipip::register,
    ]);
    router.interface("e0");
    for line in [
        create,
        "set interface state e1 up",
        "set interface ip address e0 10.0.0.1/24",
        "set interface ip address e1 192.0.2.1/24",
        "ip route add 203.0.113.0/24 via 192.0.2.2 e1",
        "create ipip tunnel src 192.0.2.1 dst 203.0.113.2",
        "set interface state ipip0 up",
        "set interface ip address ipip0 10.1.0.1/30",
        &format!("ip route add 198.51.100.0/24 via {way}"),
    ] {
        router.cli(line);
    }
    router
}

const NEIGHBOUR: &str = "ip neighbor e1 192.0.2.2 02:00:00:00:00:b1 static";

fn frame_of(payload: usize, may_fragment: bool) -> SuperFrame {
    let packet = tcp4_of(payload, ENDS, may_fragment);
    SuperFrame::of(payload, to_port(0, &packet), false, 0)
}

fn send(router: &mut Router, frame: &SuperFrame) {
    router.send_unfinished("e0", &frame.bytes, frame.offload);
}

#[test]
fn a_device_that_takes_super_frames_gets_plain_ones_whole_and_tunnelled_ones_cut() {
    let create = "create test interface e1 takes-offloads";
    let frame = frame_of(PAYLOAD_BYTES, false);
    let mut plain = router(create, "192.0.2.2 e1");
    plain.cli(NEIGHBOUR);
    send(&mut plain, &frame);
    let sent = plain.sent("e1");
    assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), [frame.bytes.len()]);
    assert_eq!(plain.totals("e1").tx_packets, SEGMENTS);
    let mut tunnel = router(create, "ipip0");
    tunnel.cli(NEIGHBOUR);
    send(&mut tunnel, &frame);
    let sent = tunnel.sent("e1");
    assert_eq!(sent.len() as u64, SEGMENTS);
    assert_eq!(sent[0].len(), HEADERS_BYTES + 20 + usize::from(SEGMENT_BYTES));
    assert_eq!(tunnel.count("gso", "segmented"), 1);
    assert_eq!((tunnel.totals("ipip0").tx_packets, tunnel.totals("e1").tx_packets), (21, 21));
}

#[test]
fn a_super_frame_that_no_outer_header_can_be_long_enough_for_is_cut_before() {
    for (payload, whole) in [(65_535 - 20 - 40, true), (65_535 - 20 - 39, false)] {
        let mut router = router("create test interface e1", "ipip0");
        router.cli(NEIGHBOUR);
        send(&mut router, &frame_of(payload, true));
        let sent = router.sent("e1");
        assert_eq!(sent.len(), payload.div_ceil(SEGMENT_BYTES.into()));
        let node = router.engine().node_id("ipip4-encap-ip4").expect("node");
        let seen = router.engine().node_totals(quiver_core::WorkerId(0), node).vectors;
        assert_eq!(seen == 1, whole, "{payload}: {seen} packets");
        assert_eq!(router.dropped(), []);
        let numbers = sent.iter().map(|frame| u16::from_be_bytes([frame[18], frame[19]]));
        assert!(numbers.eq(0..sent.len() as u16), "identifications of outer headers count on");
    }
}

#[test]
fn segments_that_the_tunnel_is_too_narrow_for_are_told_to_the_sender() {
    let mut router = router("create test interface e1 mtu 1000", "ipip0");
    router.cli(NEIGHBOUR);
    router.cli("ip neighbor e0 10.0.0.2 02:00:00:00:00:a0 static");
    send(&mut router, &frame_of(PAYLOAD_BYTES, false));
    assert_eq!(router.sent("e1"), Vec::<Vec<u8>>::new());
    let told = router.sent("e0");
    assert_eq!((told[0][34], told[0][35]), (3, 4), "fragmentation needed");
    assert_eq!(u16::from_be_bytes([told[0][40], told[0][41]]), 980);
}

#[test]
fn segments_of_packets_that_may_be_fragmented_are_fragmented_outside() {
    let mut router = router("create test interface e1 mtu 1000", "ipip0");
    router.cli(NEIGHBOUR);
    send(&mut router, &frame_of(3000, true));
    let sent = router.sent("e1");
    assert_eq!(sent.len(), 6, "two fragments of each");
    assert!(sent.iter().all(|frame| frame.len() <= 1014));
}

#[test]
fn a_super_frame_waits_whole_for_a_neighbour() {
    let mut router = router("create test interface e1", "192.0.2.2 e1");
    send(&mut router, &frame_of(PAYLOAD_BYTES, false));
    assert_eq!(router.sent("e1").len(), 1, "a request");
    assert_eq!(router.count("ip4-arp", "held"), 1);
    router.cli(NEIGHBOUR);
    router.run();
    assert_eq!(router.sent("e1").len() as u64, SEGMENTS);
}

#[test]
fn a_super_frame_goes_on_whole_to_a_neighbour_that_is_to_be_confirmed() {
    let mut router = router("create test interface e1 takes-offloads", "192.0.2.2 e1");
    let frame = frame_of(PAYLOAD_BYTES, false);
    send(&mut router, &frame);
    // The neighbour answers, and is not heard of for a minute.
    let (mac, own_mac) = ([2, 0, 0, 0, 0, 0xb1], [2, 0xfe, 0, 0, 0, 1]);
    let mut answer = [&own_mac[..], &mac, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2]].concat();
    answer.extend([&mac[..], &[192, 0, 2, 2], &own_mac, &[192, 0, 2, 1]].concat());
    router.send("e1", &answer);
    let lengths =
        |router: &mut Router| -> Vec<usize> { router.sent("e1").iter().map(Vec::len).collect() };
    assert!(lengths(&mut router).contains(&frame.bytes.len()), "it has waited whole");
    router.advance(std::time::Duration::from_secs(61));
    router.sent("e1");
    send(&mut router, &frame);
    assert_eq!(lengths(&mut router), [frame.bytes.len()]);
    assert_eq!(router.count("ip4-confirm-neighbor", "told"), 1);
    assert_eq!(router.count("gso", "segmented"), 0);
}
