//! Attached routes: hosts that are reached by them, and what they say; and addresses that a route
//! makes the router's own.

use crate::stand;

use std::net::IpAddr;
use std::time::Duration;

use quiver_testkit::Router;
use quiver_wire::icmp6::nd::{Message, NdOption, NeighborFlags, Options};
use quiver_wire::{MacAddress, arp, ip6::address};
use stand::{
    advertises, answer, arp_frame, asks4, host, host_mac, host4, host6, nd_frame, ping, ping_to,
    port_mac, router, state,
};

/// The MAC addresses to which e1 has sent IP packets.
fn receivers(router: &mut Router) -> Vec<MacAddress> {
    let is_ip = |frame: &&Vec<u8>| {
        frame[12..14] == [8, 0] || frame[12..14] == [0x86, 0xdd] && frame[54] == 128
    };
    let sent = router.sent("e1");
    sent.iter().filter(is_ip).map(|frame| MacAddress(frame[..6].try_into().unwrap())).collect()
}

/// The router of the fixture, and e2 in table 7, whose packets find e1's subnets attached.
fn with_red() -> Router {
    let mut router = router();
    router.interface("e2");
    for line in [
        "ip table add 7",
        "ip6 table add 7",
        "set interface ip table e2 7",
        "set interface ip6 table e2 7",
        "set interface ip address e2 10.2.0.1/16",
        "set interface ip address e2 2001:db8:2::1/64",
        "ip route add 10.1.0.0/16 table 7 via e1",
        "ip route add 2001:db8:1::/64 table 7 via e1",
    ] {
        router.cli(line);
    }
    router
}

#[test]
fn a_subnet_attached_in_another_table_forwards_to_a_known_neighbour() {
    for six in [false, true] {
        let mut router = with_red();
        router.send("e0", &ping_to(six, 9));
        router.send("e1", &answer(six, 9));
        receivers(&mut router);
        let from = host(six, 2, 2);
        for _ in 0..20 {
            router.send("e2", &ping(2, from, host(six, 1, 9), 20));
        }
        assert_eq!(receivers(&mut router), [host_mac(9); 20]);
        // A neighbour that nobody knew before is reached, too.
        router.send("e2", &ping(2, from, host(six, 1, 8), 20));
        router.send("e1", &answer(six, 8));
        router.send("e2", &ping(2, from, host(six, 1, 8), 20));
        assert_eq!(receivers(&mut router), [host_mac(8); 2]);
        router.cli("ip route del 10.1.0.0/16 table 7");
        router.cli("ip route del 2001:db8:1::/64 table 7");
        router.send("e2", &ping(2, from, host(six, 1, 9), 20));
        assert!(receivers(&mut router).is_empty(), "the import went with its route");
        let fib = if six { "show ip6 fib table 7" } else { "show ip fib table 7" };
        let left = router.cli(fib);
        assert!(!left.contains("10.1.0.") && !left.contains("2001:db8:1::"), "{left}");
    }
}

#[test]
fn hosts_of_an_attached_route_outside_of_the_subnets_are_asked_for_and_believed() {
    for (six, table) in [(false, 0), (true, 0), (false, 7), (true, 7)] {
        let mut router = with_red();
        let of = if table == 0 { String::new() } else { format!(" table {table}") };
        router.cli(&format!("ip route add 10.9.0.0/16{of} via e1"));
        router.cli(&format!("ip route add 2001:db8:9::/64{of} via e1"));
        let (port, on) = if table == 0 { ("e0", 0) } else { ("e2", 2) };
        let to = host(six, 9, 9);
        router.send(port, &ping(on, host(six, on, 2), to, 20));
        let answer = match to {
            IpAddr::V4(to) => {
                let question = arp::Repr::request(port_mac(1), host4(1, 1), to);
                arp_frame(Some(1), host_mac(9), &question.reply(host_mac(9)))
            }
            IpAddr::V6(to) => {
                let flags = NeighborFlags::SOLICITED.with(NeighborFlags::OVERRIDE);
                advertises(to, host_mac(9), flags, false)
            }
        };
        router.send("e1", &answer);
        assert_eq!(receivers(&mut router), [host_mac(9)], "IPv6 {six}, table {table}");
        router.send(port, &ping(on, host(six, on, 2), to, 20));
        assert_eq!(receivers(&mut router), [host_mac(9)]);
    }
}

#[test]
fn an_answer_that_nobody_asked_for_makes_no_neighbour_of_a_host_elsewhere() {
    let mut router = router();
    let question = arp::Repr::request(port_mac(1), host4(1, 1), host4(9, 9));
    router.send("e1", &arp_frame(Some(1), host_mac(9), &question.reply(host_mac(9))));
    let flags = NeighborFlags::SOLICITED.with(NeighborFlags::OVERRIDE);
    router.send("e1", &advertises(host6(9, 9), host_mac(9), flags, false));
    for show in ["show ip neighbors e1", "show ip6 neighbors e1"] {
        assert_eq!(router.json(show), serde_json::json!([]));
    }
}

#[test]
fn a_host_of_an_attached_route_that_asks_first_is_answered() {
    let mut router = router();
    router.cli("ip route add 10.9.0.0/16 via e1");
    router.send(
        "e1",
        &arp_frame(None, host_mac(9), &arp::Repr::request(host_mac(9), host4(9, 9), host4(1, 1))),
    );
    let sent = router.sent("e1");
    assert!(sent.iter().any(|frame| frame[12..14] == [8, 6] && frame[21] == 2), "{sent:02x?}");
    router.send("e0", &ping(0, host(false, 0, 2), host(false, 9, 9), 20));
    assert_eq!(receivers(&mut router), [host_mac(9)]);
}

#[test]
fn an_interface_that_is_down_neither_swallows_packets_nor_answers() {
    for six in [false, true] {
        let mut router = router();
        let nodes = if six {
            ["ip6-icmp-echo-request", "ip6-drop"]
        } else {
            ["ip4-icmp-echo-request", "ip4-drop"]
        };
        router.send("e0", &ping(0, host(six, 0, 2), host(six, 1, 1), 20));
        assert_eq!(router.sent("e0").len(), 1, "the reply");
        router.cli("set interface state e1 down");
        for to in [1, 77] {
            router.send("e0", &ping(0, host(six, 0, 2), host(six, 1, to), 20));
        }
        assert_eq!(router.count(nodes[1], "no-route"), 2);
        assert_eq!(router.sent("e0").len(), 2, "the sender is told");
        // A less specific route takes over.
        router.interface("e2");
        router.cli(if six {
            "set interface ip address e2 2001:db8:5::1/64"
        } else {
            "set interface ip address e2 10.5.0.1/24"
        });
        router.cli(if six { "ip route add ::/0 via e2" } else { "ip route add 0.0.0.0/0 via e2" });
        router.sent("e2");
        router.send("e0", &ping(0, host(six, 0, 2), host(six, 1, 77), 20));
        assert_eq!(router.sent("e2").len(), 1, "it is asked for behind e2");
        router.advance(Duration::from_secs(5));
        router.cli("set interface state e1 up");
        router.sent("e0");
        router.send("e0", &ping(0, host(six, 0, 2), host(six, 1, 1), 20));
        assert_eq!(router.sent("e0").len(), 1, "the reply again");
    }
}

#[test]
fn an_answer_right_after_its_neighbour_was_deleted_is_heard() {
    for six in [false, true] {
        let mut router = router();
        router.send("e0", &ping_to(six, 9));
        router.send("e1", &answer(six, 9));
        assert_eq!(state(&mut router, six, 9).as_deref(), Some("reachable"));
        router.cli(&format!("ip neighbor del e1 {}", host(six, 1, 9)));
        router.send("e0", &ping_to(six, 9));
        router.send("e1", &answer(six, 9));
        assert_eq!(state(&mut router, six, 9).as_deref(), Some("reachable"), "IPv6 {six}");
        assert_eq!(receivers(&mut router), [host_mac(9); 2]);
    }
}

#[test]
fn a_neighbour_that_moves_there_and_back_within_a_moment_is_where_it_was_last() {
    let mut router = router();
    let asks = |mac| arp_frame(None, mac, &arp::Repr::request(mac, host4(1, 9), host4(1, 1)));
    for mac in [host_mac(9), host_mac(10), host_mac(9)] {
        router.send("e1", &asks(mac));
        assert_eq!(router.json("show ip neighbors e1")[0]["mac"], mac.to_string());
    }
}

#[test]
fn an_answer_with_the_mac_address_of_a_virtual_router_is_taken() {
    let mut router = router();
    let virtual_mac = MacAddress([0, 0, 0x5e, 0, 1, 7]);
    let question = arp::Repr::request(port_mac(1), host4(1, 1), host4(1, 9));
    router.send("e0", &ping_to(false, 9));
    router.send("e1", &arp_frame(Some(1), host_mac(9), &question.reply(virtual_mac)));
    assert_eq!(receivers(&mut router), [virtual_mac]);
    assert_eq!(router.count("arp-input", "other-sender"), 1);
}

#[test]
fn an_address_that_a_route_makes_local_is_answered_for() {
    let mut router = router();
    let (own4, own6) = (host4(1, 200), host6(1, 0xc8));
    let ask4 = arp_frame(None, host_mac(9), &arp::Repr::request(host_mac(9), host4(1, 9), own4));
    let mut option = [0; 8];
    NdOption::SourceMac(host_mac(9)).emit(&mut option).unwrap();
    let message =
        Message::NeighborSolicitation { target: own6, options: Options::new(&option).unwrap() };
    let ask6 = nd_frame(message, host_mac(9), host6(1, 9), address::solicited_node(own6));
    let answers = |router: &mut Router| {
        router.sent("e1");
        router.send("e1", &ask4);
        router.send("e1", &ask6);
        let is_answer = |frame: &&Vec<u8>| {
            frame[12..14] == [8, 6] && frame[21] == 2
                || frame[12..14] == [0x86, 0xdd] && frame[54] == 136
        };
        router.sent("e1").iter().filter(is_answer).count()
    };
    assert_eq!(answers(&mut router), 0);
    router.cli(&format!("ip route add {own4}/32 via local"));
    router.cli(&format!("ip route add {own6}/128 via local"));
    assert_eq!(answers(&mut router), 2);
    router.cli(&format!("ip route del {own4}/32"));
    router.cli(&format!("ip route del {own6}/128"));
    assert_eq!(answers(&mut router), 0);
    // Another interface's address is that interface's to answer for.
    let other = arp::Repr::request(host_mac(9), host4(1, 9), host4(0, 1));
    router.send("e1", &asks4(1, 9));
    router.sent("e1");
    router.send("e1", &arp_frame(None, host_mac(9), &other));
    assert!(router.sent("e1").is_empty());
}

#[test]
fn a_loopback_address_is_no_address_of_an_interface() {
    let mut router = router();
    for address in ["127.0.0.1/8", "127.9.9.9/32", "::1/128", "::ffff:10.0.0.1/128", "0.0.0.1/8"] {
        let refusal = router.refused(&format!("set interface ip address e0 {address}"));
        assert!(refusal.contains(address.split('/').next().unwrap()), "{refusal}");
    }
    for line in
        ["ip neighbor e0 127.0.0.1 02:00:00:00:00:01", "ip neighbor e0 ::1 02:00:00:00:00:01"]
    {
        router.refused(line);
    }
    router.refused("ip route add 192.0.2.0/24 via 127.0.0.1 e0");
}

/// ICMP type and code of what e0 is told about a ping to `to`.
fn icmp_error(router: &mut Router, to: IpAddr) -> Option<(u8, u8)> {
    router.sent("e0");
    router.send("e0", &ping(0, host(to.is_ipv6(), 0, 2), to, 20));
    let frame = router.sent("e0").pop()?;
    let icmp = if to.is_ipv6() { 54 } else { 34 };
    Some((frame[icmp], frame[icmp + 1]))
}

#[test]
fn routes_that_say_so_answer_unreachable_or_prohibited() {
    let mut router = router();
    let lines = [
        "ip route add 198.51.100.0/24 via unreachable",
        "ip route add 203.0.113.0/24 via prohibit",
        "ip route add 192.0.2.0/24 via drop",
        "ip route add 2001:db8:a::/48 via unreachable",
        "ip route add 2001:db8:b::/48 via prohibit",
    ];
    lines.iter().for_each(|line| drop(router.cli(line)));
    for (to, icmp) in [
        ("198.51.100.9", Some((3, 1))),
        ("203.0.113.9", Some((3, 13))),
        ("192.0.2.9", None),
        ("192.0.3.9", Some((3, 0))),
        ("2001:db8:a::9", Some((1, 6))),
        ("2001:db8:b::9", Some((1, 1))),
        ("2001:db8:c::9", Some((1, 0))),
    ] {
        assert_eq!(icmp_error(&mut router, to.parse().unwrap()), icmp, "{to}");
    }
    assert_eq!(router.count("ip4-drop", "route-unreachable"), 1);
    assert_eq!(router.count("ip6-drop", "route-prohibits"), 1);
    let written = router.cli("show running-config");
    assert!(lines.iter().all(|line| written.contains(line)), "{written}");
    router.cli("ip route add 198.51.101.0/24 via null-send-unreach");
    assert!(router.cli("show ip fib 198.51.101.0/24").contains("via unreachable"));
    router.cli("ip route del 198.51.101.0/24 via unreachable");
}
