//! Interfaces that use another one's addresses, and broadcasts into subnets.

use quiver_testkit::Router;
use quiver_wire::{MacAddress, arp};

use crate::stand;
use stand::{arp_frame, host_mac, ping};

/// `loop0` has the addresses, e0 is an ordinary interface, e1 uses those of `loop0`.
fn router() -> Router {
    let mut router = Router::new(&[quiver_ethernet::register, quiver_ip::register]);
    for line in [
        "create loopback interface instance 0",
        "set interface state loop0 up",
        "set interface ip address loop0 192.0.2.1/32",
        "set interface ip address loop0 2001:db8:9::1/128",
    ] {
        router.cli(line);
    }
    router.interface("e0");
    router.interface("e1");
    router.cli("set interface ip address e0 10.0.0.1/24");
    router.cli("set interface ip address e0 2001:db8:0::1/64");
    router.cli("ip neighbor e0 10.0.0.2 02:00:00:00:00:02");
    router.cli("ip neighbor e0 2001:db8:0::2 02:00:00:00:00:02");
    router.cli("set interface unnumbered e1 use loop0");
    router
}

fn ip4(text: &str) -> std::net::IpAddr {
    text.parse().unwrap()
}

/// The destination MAC addresses of what an interface has sent, and whether it is ARP.
fn sent(router: &mut Router, interface: &str) -> Vec<(Vec<u8>, bool)> {
    router
        .sent(interface)
        .into_iter()
        .map(|frame| (frame[..6].to_vec(), frame[12..14] == [8, 6]))
        .collect()
}

#[test]
fn an_unnumbered_interface_answers_for_the_addresses_that_it_uses() {
    let mut router = router();
    let question = arp::Repr::request(
        host_mac(7),
        "203.0.113.7".parse().unwrap(),
        "192.0.2.1".parse().unwrap(),
    );
    router.send("e1", &arp_frame(None, host_mac(7), &question));
    let answers = router.sent("e1");
    assert_eq!(answers.len(), 1);
    let (answer, _) = arp::Repr::parse(&answers[0][14..]).unwrap();
    assert_eq!(
        (answer.operation, answer.sender_ip),
        (arp::Operation::Reply, "192.0.2.1".parse().unwrap())
    );
    // Who asked is a neighbour, though on no subnet; it draws no traffic by itself.
    assert!(router.cli("show ip neighbors e1").contains("203.0.113.7"));
    assert!(router.refused("show ip fib 203.0.113.7").contains("no route"));
}

#[test]
fn a_host_behind_an_unnumbered_interface_is_asked_for_with_the_borrowed_address() {
    let mut router = router();
    router.cli("ip route add 203.0.113.7/32 via e1");
    router.send("e0", &ping(0, ip4("10.0.0.2"), ip4("203.0.113.7"), 20));
    let asked = router.sent("e1");
    assert_eq!(asked.len(), 1);
    let (question, _) = arp::Repr::parse(&asked[0][14..]).unwrap();
    assert_eq!(
        (question.sender_ip, question.target_ip),
        ("192.0.2.1".parse().unwrap(), "203.0.113.7".parse().unwrap())
    );
    router.send("e1", &arp_frame(Some(1), host_mac(7), &question.reply(host_mac(7))));
    router.send("e0", &ping(0, ip4("10.0.0.2"), ip4("203.0.113.7"), 20));
    assert!(sent(&mut router, "e1").iter().all(|(to, is_arp)| to == &host_mac(7).0 && !is_arp));
}

#[test]
fn hosts_of_a_subnet_that_a_route_attaches_are_reached_each_by_its_own_address() {
    let mut router = router();
    router.cli("ip route add 203.0.113.0/24 via e1");
    for host in [7, 8] {
        let address = format!("203.0.113.{host}");
        router.cli(&format!("ip neighbor e1 {address} 02:00:00:00:00:0{host}"));
        router.send("e0", &ping(0, ip4("10.0.0.2"), ip4(&address), 20));
        assert_eq!(sent(&mut router, "e1"), [(vec![2, 0, 0, 0, 0, host], false)]);
    }
    router.cli("ip route add 2001:db8:e::/64 via e1");
    router.cli("ip neighbor e1 2001:db8:e::7 02:00:00:00:00:07");
    router.send("e0", &ping(0, ip4("2001:db8:0::2"), ip4("2001:db8:e::7"), 20));
    assert_eq!(sent(&mut router, "e1"), [(vec![2, 0, 0, 0, 0, 7], false)]);
    // Without the route they are nobody's again.
    router.cli("ip route del 203.0.113.0/24");
    assert!(router.refused("show ip fib 203.0.113.7").contains("no route"));
    // And with it, though it comes behind the neighbour.
    router.cli("ip route add 203.0.113.0/25 via e1");
    assert_eq!(router.json("show ip fib 203.0.113.7")[0]["source"], "neighbor");
}

#[test]
fn the_router_is_reached_by_an_unnumbered_interface_and_errors_come_from_the_borrowed_address() {
    let mut router = router();
    router.cli("ip route add 203.0.113.7/32 via e1");
    router.cli("ip neighbor e1 203.0.113.7 02:00:00:00:00:07");
    router.send("e1", &ping(1, ip4("203.0.113.7"), ip4("192.0.2.1"), 20));
    let answer = router.sent("e1");
    assert_eq!(answer.len(), 1);
    assert_eq!(
        (&answer[0][26..30], answer[0][34]),
        (&[192, 0, 2, 1][..], 0),
        "an echo reply of 192.0.2.1"
    );
    // No route: an error, from the borrowed address.
    router.send("e1", &ping(1, ip4("203.0.113.7"), ip4("198.51.100.1"), 20));
    let error = router.sent("e1");
    assert_eq!((&error[0][26..30], error[0][34]), (&[192, 0, 2, 1][..], 3));
    router.cli("ip route add 2001:db8:e::7/128 via e1");
    router.cli("ip neighbor e1 2001:db8:e::7 02:00:00:00:00:07");
    router.send("e1", &ping(1, ip4("2001:db8:e::7"), ip4("2001:db8:f::1"), 20));
    let error = router.sent("e1");
    assert_eq!(&error[0][22..38], "2001:db8:9::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
}

#[test]
fn an_unnumbered_interface_follows_its_lender() {
    let mut router = router();
    let shown = |router: &mut Router| router.cli("show interface address e1");
    assert!(shown(&mut router).contains("unnumbered, uses loop0"));
    assert!(shown(&mut router).contains("link-local"), "it speaks IPv6, as its lender does");
    router.cli("set interface ip address del loop0 2001:db8:9::1/128");
    assert!(!shown(&mut router).contains("link-local"));
    router.cli("set interface ip address del loop0 192.0.2.1/32");
    router.cli("set interface ip address loop0 192.0.2.9/32");
    let question = arp::Repr::request(
        host_mac(7),
        "203.0.113.7".parse().unwrap(),
        "192.0.2.9".parse().unwrap(),
    );
    router.send("e1", &arp_frame(None, host_mac(7), &question));
    assert_eq!(router.sent("e1").len(), 1);
    router.cli("delete loopback interface intfc loop0");
    assert!(!shown(&mut router).contains("unnumbered"));
    router.send("e1", &arp_frame(None, host_mac(7), &question));
    assert!(router.sent("e1").is_empty());
    router.cli("set interface ip address e1 10.0.1.1/24");
}

#[test]
fn unnumbered_is_written_down_taken_back_and_refused_where_it_makes_no_sense() {
    let mut router = router();
    router.cli("create loopback interface instance 1");
    router.cli("ip table add 10");
    let before = router.cli("show running-config");
    assert!(before.contains("set interface unnumbered e1 use loop0"), "{before}");
    for (line, says) in [
        ("set interface unnumbered e0 use loop0", "addresses of its own"),
        ("set interface unnumbered loop1 use loop1", "its own"),
        ("set interface unnumbered loop1 use e1", "it is unnumbered"),
        ("set interface unnumbered loop0 use e0", "addresses of its own"),
        ("set interface unnumbered del e0", "not unnumbered"),
        ("set interface ip address e1 10.9.0.1/24", "set interface unnumbered del e1"),
        ("set interface ip table e1 10", "set interface unnumbered del e1"),
        ("set interface ip table loop0 10", "has addresses"),
        ("set interface unnumbered e1 use e9", "e9"),
    ] {
        let refusal = router.refused(line);
        assert!(
            refusal.contains(says) || refusal.contains("uses the addresses"),
            "`{line}`: {refusal}"
        );
    }
    router.cli("set interface ip table loop1 10");
    assert!(router.refused("set interface unnumbered loop1 use loop0").contains("same tables"));
    router.cli("set interface ip table loop1 0");
    assert_eq!(router.cli("show running-config"), before);
    router.cli("set interface unnumbered del e1");
    router.cli("set interface ip address e1 10.9.0.1/24");
}

#[test]
fn a_ping_by_an_unnumbered_interface_goes_out_with_the_borrowed_address() {
    let mut router = router();
    router.cli("ip route add 203.0.113.7/32 via e1");
    router.cli("ip neighbor e1 203.0.113.7 02:00:00:00:00:07");
    for line in ["ping 203.0.113.7 repeat 1", "ping 203.0.113.7 source e1 repeat 1"] {
        let said = router.cli(line);
        assert!(said.contains("from 192.0.2.1"), "{said}");
    }
    assert_eq!(router.sent("e1").len(), 2);
}

/// A UDP packet to 10.0.0.255, as a frame for all or for the router's port.
fn to_subnet(port: u8, from: &str, to_all: bool) -> Vec<u8> {
    let mut frame = ping(port, ip4(from), ip4("10.0.0.255"), 20);
    if to_all {
        frame[..6].copy_from_slice(&MacAddress::BROADCAST.0);
    }
    frame
}

#[test]
fn a_broadcast_into_a_subnet_is_forwarded_only_when_that_was_asked_for() {
    let mut router = router();
    router.cli("set interface unnumbered del e1");
    router.cli("set interface ip address e1 10.0.1.1/24");
    router.send("e1", &to_subnet(1, "10.0.1.2", false));
    assert!(router.sent("e0").is_empty() && router.sent("e1").is_empty());
    assert_eq!(router.count("ip4-directed-broadcast", "not-forwarded"), 1);
    router.cli("set interface ip directed-broadcast e0 enable");
    assert!(
        router.cli("show running-config").contains("set interface ip directed-broadcast e0 enable")
    );
    router.send("e1", &to_subnet(1, "10.0.1.2", false));
    let out = router.sent("e0");
    assert_eq!(out.len(), 1);
    assert_eq!((&out[0][..6], out[0][22]), (&[0xff; 6][..], 63), "to all, with one hop less");
    router.cli("set interface ip directed-broadcast e0 disable");
    router.send("e1", &to_subnet(1, "10.0.1.2", false));
    assert!(router.sent("e0").is_empty());
}

#[test]
fn a_broadcast_on_the_subnet_itself_is_for_the_router_and_goes_nowhere_else() {
    let mut router = router();
    for state in ["disable", "enable"] {
        router.cli(&format!("set interface ip directed-broadcast e0 {state}"));
        router.send("e0", &to_subnet(0, "10.0.0.2", true));
        router.send("e0", &to_subnet(0, "10.0.0.2", false));
        assert!(router.sent("e0").is_empty() && router.sent("e1").is_empty(), "{state}");
    }
    // Heard by the router, but an echo request to all is not answered (RFC 1122 §3.2.2.6).
    assert_eq!(router.count("ip4-icmp-echo-request", "to-group"), 4);
}

#[test]
fn a_frame_for_all_brings_only_broadcasts_of_its_own_subnet() {
    let mut router = router();
    router.cli("set interface unnumbered del e1");
    router.cli("set interface ip address e1 10.0.1.1/30");
    router.cli("set interface ip directed-broadcast e1 enable");
    router.cli("ip neighbor e0 10.0.0.3 02:00:00:00:00:03");
    let mut send = |from: u8, to: &str| {
        let mut frame = ping(from, ip4("10.0.0.2"), ip4(to), 20);
        frame[..6].copy_from_slice(&MacAddress::BROADCAST.0);
        router.send(if from == 0 { "e0" } else { "e1" }, &frame);
        assert!(router.sent("e0").is_empty() && router.sent("e1").is_empty(), "to {to}");
        [("ip4-input", "unicast-in-l2-group"), ("ip4-icmp-echo-request", "to-group")]
            .map(|(node, reason)| router.count(node, reason))
    };
    // Addresses of hosts, of the router, and the broadcast address of another subnet (RFC 1812
    // §5.3.4).
    assert_eq!(send(0, "10.0.0.3"), [1, 0]);
    assert_eq!(send(0, "10.0.0.1"), [2, 0]);
    assert_eq!(send(0, "10.0.1.3"), [3, 0]);
    assert_eq!(send(0, "192.0.2.255"), [4, 0]);
    // The broadcast address of its own subnet is for the router, too (RFC 1122 §3.3.6).
    assert_eq!(send(1, "10.0.1.3"), [4, 1]);
    assert_eq!(send(0, "10.0.0.255"), [4, 2]);
    // So is the limited broadcast (RFC 919 §7).
    assert_eq!(send(0, "255.255.255.255"), [4, 3]);
}

#[test]
fn the_broadcast_route_of_a_subnet_is_shown_and_a_line_with_one_end_has_none() {
    let mut router = router();
    assert!(router.cli("show ip fib 10.0.0.255/32").contains("broadcast e0 own-hosts"));
    router.cli("set interface ip directed-broadcast e0 enable");
    assert!(router.cli("show ip fib 10.0.0.255/32").contains("broadcast e0\n"));
    router.cli("set interface ip address e0 10.7.0.0/31");
    assert_eq!(router.json("show ip fib 10.7.0.1")[0]["prefix"], "10.7.0.0/31");
    assert!(router.refused("set interface ip directed-broadcast e9 enable").contains("e9"));
}
