//! Pings of the router's own, and packets that a test makes: flows over several paths, traces.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use quiver_testkit::Router;
use quiver_wire::{EtherType, EthernetHeader, Header, IpProtocol, MacAddress, ip4, udp};

fn router() -> Router {
    let mut router = Router::new(&[quiver_ethernet::register, quiver_ip::register]);
    for name in ["e0", "e1", "e2"] {
        router.interface(name);
    }
    router.cli("set interface ip address e0 10.0.0.1/24");
    router.cli("set interface ip address e1 10.0.1.1/24");
    router.cli("set interface ip address e2 10.0.2.1/24");
    router.cli("set interface ip address e0 2001:db8::1/64");
    router
}

/// A UDP packet in a frame for e0.
fn frame(destination: Ipv4Addr, source_port: u16) -> Vec<u8> {
    let mut out = vec![0; 14 + 20 + 8];
    let (from, to) = (MacAddress([2, 0, 0, 0, 0, 0xa0]), MacAddress([2, 0xfe, 0, 0, 0, 0]));
    EthernetHeader::new(to, from, EtherType::IPV4).write(&mut out).unwrap();
    let source = Ipv4Addr::new(10, 0, 0, 2);
    ip4::Repr::new(source, destination, IpProtocol::UDP, 8).emit(&mut out[14..]).unwrap();
    udp::Repr { source_port, destination_port: 9, payload_len: 0, checksum: 0 }
        .emit(&mut out[34..])
        .unwrap();
    out
}

#[test]
fn the_routers_own_addresses_answer_its_pings() {
    let mut router = router();
    for address in ["10.0.0.1", "10.0.2.1", "2001:db8::1"] {
        let said = router.cli(&format!("ping {address} repeat 3 interval 0.01 size 100"));
        assert!(said.contains("108 bytes from"), "{said}");
        assert!(said.contains("3 sent, 3 received, 0% packet loss"), "{said}");
    }
    let said = router.cli("ping fe80::fe:ff:fe00:0 source e0 repeat 1");
    assert!(said.contains("1 sent, 1 received"), "{said}");
    assert!(router.dropped().is_empty(), "{:?}", router.dropped());
}

#[test]
fn a_ping_nobody_answers_says_so_and_ends() {
    let mut router = router();
    router.cli("ip neighbor e1 10.0.1.2 02:00:00:00:00:b1");
    let said = router.cli("ping 10.0.1.2 repeat 2 interval 0.01");
    assert!(said.contains("2 sent, 0 received, 100% packet loss"), "{said}");
    let sent = router.sent("e1");
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0][30..34], [10, 0, 1, 2]);
    // Larger than the way out: in fragments.
    router.cli("ping 10.0.1.2 repeat 1 size 4000");
    assert_eq!(router.sent("e1").len(), 3);
}

#[test]
fn a_ping_that_is_dropped_frees_its_place() {
    let mut router = router();
    for _ in 0..100 {
        router.cli("ping 10.0.0.1 repeat 1");
    }
}

#[test]
fn flows_share_the_paths_by_weight_and_each_keeps_its_own() {
    let mut router = router();
    router.cli("ip neighbor e1 10.0.1.2 02:00:00:00:00:b1");
    router.cli("ip neighbor e2 10.0.2.2 02:00:00:00:00:c2");
    router.cli("ip route add 192.0.2.0/24 via 10.0.1.2 weight 3 via 10.0.2.2");
    let mut ways: BTreeMap<u16, &str> = BTreeMap::new();
    for round in 0..2 {
        for port in 0..400 {
            router.send("e0", &frame(Ipv4Addr::new(192, 0, 2, 1), port));
            let way = if router.sent("e1").len() == 1 { "e1" } else { "e2" };
            let before = ways.insert(port, way);
            assert!(round == 0 || before == Some(way), "flow {port} moved");
        }
    }
    router.sent("e2");
    let first = ways.values().filter(|way| **way == "e1").count();
    assert!((260..340).contains(&first), "{first} of 400 flows took the path of weight 3 of 4");
}

#[test]
fn a_neighbour_that_changes_moves_all_routes_through_it_at_once() {
    let mut router = router();
    router.cli("ip neighbor e1 10.0.1.2 02:00:00:00:00:b1");
    router.cli("ip route add 192.0.2.0/24 count 100 via 10.0.1.2");
    router.send("e0", &frame(Ipv4Addr::new(192, 0, 50, 1), 1));
    assert_eq!(router.sent("e1")[0][..6], [2, 0, 0, 0, 0, 0xb1]);
    router.cli("ip neighbor e1 10.0.1.2 02:00:00:00:00:b2");
    router.send("e0", &frame(Ipv4Addr::new(192, 0, 50, 1), 1));
    assert_eq!(router.sent("e1")[0][..6], [2, 0, 0, 0, 0, 0xb2]);
}

#[test]
fn routes_follow_the_state_of_their_interface() {
    let mut router = router();
    router.cli("ip neighbor e1 10.0.1.2 02:00:00:00:00:b1");
    router.cli("ip neighbor e2 10.0.2.2 02:00:00:00:00:c2");
    router.cli("ip route add 192.0.2.0/24 via 10.0.1.2 preference 1 via 10.0.2.2 preference 2");
    let to = Ipv4Addr::new(192, 0, 2, 1);
    router.send("e0", &frame(to, 1));
    assert_eq!((router.sent("e1").len(), router.sent("e2").len()), (1, 0));
    router.cli("set interface state e1 down");
    router.send("e0", &frame(to, 1));
    assert_eq!((router.sent("e1").len(), router.sent("e2").len()), (0, 1));
    router.cli("set interface state e1 up");
    router.send("e0", &frame(to, 1));
    assert_eq!((router.sent("e1").len(), router.sent("e2").len()), (1, 0));
}

#[test]
fn a_changed_mac_address_or_mtu_is_followed() {
    let mut router = router();
    router.cli("ip neighbor e1 10.0.1.2 02:00:00:00:00:b1");
    router.cli("set interface mac address e1 02:00:00:00:77:77");
    router.send("e0", &frame(Ipv4Addr::new(10, 0, 1, 2), 1));
    assert_eq!(router.sent("e1")[0][6..12], [2, 0, 0, 0, 0x77, 0x77]);
    router.cli("set interface mac address e0 02:00:00:00:88:88");
    let shown = router.cli("show interface address e0");
    assert!(shown.contains("fe80::ff:fe00:8888"), "{shown}");
}

#[test]
fn a_trace_says_in_words_where_a_packet_went() {
    let mut router = router();
    router.cli("ip neighbor e1 10.0.1.2 02:00:00:00:00:b1");
    router.cli("trace add test-input 10");
    router.send("e0", &frame(Ipv4Addr::new(10, 0, 1, 2), 1));
    router.send("e0", &frame(Ipv4Addr::new(192, 0, 2, 9), 1));
    let shown = router.cli("show trace");
    println!("{shown}");
    assert!(shown.contains("10.0.0.2 → 10.0.1.2 udp, ttl 64, 28 bytes"), "{shown}");
}

#[test]
fn a_burst_of_requests_is_sent_at_once() {
    let mut router = router();
    // The second burst is of one, and half a second later.
    let said = router.cli("ping 10.0.0.1 repeat 4 burst 3 interval 0.5");
    assert!(said.contains("4 sent, 4 received"), "{said}");
    let said = router.cli("ping 10.0.0.1 repeat 3 burst 3 interval 3600");
    assert!(said.contains("3 sent, 3 received"), "{said}");
}
