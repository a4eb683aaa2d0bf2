//! What operators type, and what becomes of packets.

use quiver_testkit::Router;

fn router() -> Router {
    let mut router =
        Router::new(&[quiver_ethernet::register, quiver_ip::register, quiver_urpf::register]);
    for (name, net) in [("e0", 0), ("e1", 1), ("e2", 2)] {
        router.interface(name);
        router.cli(&format!("set interface ip address {name} 10.0.{net}.1/24"));
        router.cli(&format!("set interface ip address {name} 2001:db8:{net}::1/64"));
        router.cli(&format!("ip neighbor {name} 10.0.{net}.2 02:00:00:00:00:0{net}"));
        router.cli(&format!("ip neighbor {name} 2001:db8:{net}::2 02:00:00:00:00:0{net}"));
    }
    router
}

fn sum(bytes: &[u8]) -> u16 {
    let all: u32 = bytes.chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
    !((all & 0xffff) + (all >> 16)) as u16
}

/// An IPv4 packet in a frame for the interface with this number.
fn ip4(into: u8, source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
    let mut header = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0];
    header.extend(source.iter().chain(&destination));
    let checksum = sum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    [&[2, 0xfe, 0, 0, 0, into, 2, 0, 0, 0, 0, into, 8, 0], &header[..], &[0, 1, 0, 2, 0, 8, 0, 0]]
        .concat()
}

/// An IPv6 packet in a frame for the interface with this number.
fn ip6(into: u8, source: &str, destination: &str) -> Vec<u8> {
    let address = |text: &str| text.parse::<std::net::Ipv6Addr>().unwrap().octets();
    let header =
        [&[0x60, 0, 0, 0, 0, 8, 17, 64], &address(source)[..], &address(destination)[..]].concat();
    [
        &[2, 0xfe, 0, 0, 0, into, 2, 0, 0, 0, 0, into, 0x86, 0xdd],
        &header[..],
        &[0, 1, 0, 2, 0, 8, 0, 0],
    ]
    .concat()
}

/// Does a packet from this source, which came by e0, leave by e1?
fn passes4(router: &mut Router, source: [u8; 4]) -> bool {
    router.send("e0", &ip4(0, source, [10, 0, 1, 2]));
    !router.sent("e1").is_empty()
}

fn passes6(router: &mut Router, source: &str) -> bool {
    router.send("e0", &ip6(0, source, "2001:db8:1::2"));
    !router.sent("e1").is_empty()
}

#[test]
fn strict_asks_for_the_interface_and_loose_for_a_route() {
    let mut router = router();
    for (mode, here, there, nowhere) in
        [("strict", true, false, false), ("loose", true, true, false)]
    {
        router.cli(&format!("set urpf ip4 rx {mode} e0"));
        router.cli(&format!("set urpf ip6 rx {mode} e0"));
        assert_eq!(passes4(&mut router, [10, 0, 0, 2]), here, "{mode}");
        assert_eq!(passes4(&mut router, [10, 0, 2, 2]), there, "{mode}");
        assert_eq!(passes4(&mut router, [198, 51, 100, 1]), nowhere, "{mode}");
        assert_eq!(passes6(&mut router, "2001:db8:0::2"), here, "{mode}");
        assert_eq!(passes6(&mut router, "2001:db8:2::2"), there, "{mode}");
        assert_eq!(passes6(&mut router, "2001:db8:f::1"), nowhere, "{mode}");
        // Neighbours that nobody knows yet, on the connected subnet.
        assert_eq!(passes4(&mut router, [10, 0, 0, 77]), here, "{mode}");
        assert_eq!(passes6(&mut router, "2001:db8:0::77"), here, "{mode}");
    }
    for family in ["ip4", "ip6"] {
        router.cli(&format!("set urpf {family} rx off e0"));
    }
    assert!(passes4(&mut router, [198, 51, 100, 1]) && passes6(&mut router, "2001:db8:f::1"));
}

#[test]
fn one_of_several_paths_is_enough() {
    let mut router = router();
    router.cli("ip route add 198.51.100.0/24 via 10.0.0.2 e0 via 10.0.2.2 e2 weight 7");
    router.cli("ip route add 203.0.113.0/24 via 10.0.1.2 e1 via 10.0.2.2 e2");
    router.cli("ip route add 2001:db8:f::/48 via 2001:db8:0::2 e0 via 2001:db8:2::2 e2");
    router.cli("set urpf ip4 rx strict e0");
    router.cli("set urpf ip6 rx strict e0");
    assert!(passes4(&mut router, [198, 51, 100, 1]));
    assert!(!passes4(&mut router, [203, 0, 113, 1]));
    assert!(passes6(&mut router, "2001:db8:f::1"));
    // A path that waits sends nothing: it does not count.
    router.cli("ip route add 192.0.2.0/24 via 10.0.2.2 e2 via 10.0.0.2 e0 preference 1");
    assert!(!passes4(&mut router, [192, 0, 2, 1]));
    router.cli("set interface state e2 down");
    assert!(passes4(&mut router, [192, 0, 2, 1]));
}

#[test]
fn the_default_route_counts_unless_it_is_said_not_to() {
    let mut router = router();
    router.cli("ip route add 0.0.0.0/0 via 10.0.0.2 e0");
    router.cli("ip route add 198.51.100.0/24 via 10.0.0.2 e0"); // the same path
    router.cli("ip route add ::/0 via 2001:db8:0::2 e0");
    router.cli("ip route add 2001:db8:f::/48 via 2001:db8:0::2 e0");
    for mode in ["loose", "strict"] {
        for (words, counts) in [("", true), (" no-default", false)] {
            router.cli(&format!("set urpf ip4 rx {mode} e0{words}"));
            router.cli(&format!("set urpf ip6 rx {mode} e0{words}"));
            assert_eq!(passes4(&mut router, [192, 0, 2, 1]), counts, "{mode}{words}");
            assert!(passes4(&mut router, [198, 51, 100, 1]), "{mode}{words}");
            assert_eq!(passes6(&mut router, "2001:db8:e::1"), counts, "{mode}{words}");
            assert!(passes6(&mut router, "2001:db8:f::1"), "{mode}{words}");
        }
    }
    assert_eq!(router.count("ip4-rx-urpf", "only-default-route"), 2);
    assert_eq!(router.count("ip6-rx-urpf", "only-default-route"), 2);
}

#[test]
fn sources_that_no_host_out_there_has_fail_in_both_modes() {
    let mut router = router();
    router.cli("ip route add 0.0.0.0/0 via 10.0.0.2 e0");
    router.cli("ip route add 198.51.100.0/24 via drop");
    for mode in ["loose", "strict"] {
        router.cli(&format!("set urpf ip4 rx {mode} e0"));
        router.cli(&format!("set urpf ip6 rx {mode} e0"));
        assert!(!passes4(&mut router, [10, 0, 0, 1]), "our own address");
        assert!(!passes4(&mut router, [10, 0, 1, 1]), "our own address on another interface");
        assert!(!passes4(&mut router, [10, 0, 0, 255]), "a subnet's broadcast address");
        assert!(!passes4(&mut router, [198, 51, 100, 1]), "a route that drops");
        assert!(!passes6(&mut router, "2001:db8:1::1"), "our own address");
    }
    assert_eq!(router.count("ip4-rx-urpf", "source-is-ours"), 4);
}

#[test]
fn a_source_of_another_table_is_followed_there() {
    let mut router = router();
    router.cli("ip table add 10");
    router.cli("ip route add 198.51.100.0/24 via ip4-lookup-in-table 10");
    router.cli("ip route add 198.51.100.0/25 table 10 via 10.0.0.2 e0");
    router.cli("ip route add 198.51.100.128/25 table 10 via 10.0.2.2 e2");
    router.cli("set urpf ip4 rx strict e0");
    assert!(passes4(&mut router, [198, 51, 100, 1]));
    assert!(!passes4(&mut router, [198, 51, 100, 200]));
    assert!(!passes4(&mut router, [203, 0, 113, 1]));
    router.cli("set urpf ip4 rx loose e0 table 10");
    assert!(passes4(&mut router, [198, 51, 100, 200]));
    assert!(!passes4(&mut router, [10, 0, 0, 2]), "table 10 does not know the subnet");
    assert!(router.refused("ip table del 10").contains("in use"));
    router.cli("ip route del 198.51.100.0/24");
    assert!(router.refused("ip table del 10").contains("uRPF"), "it is in use");
    router.cli("set urpf ip4 rx off e0");
    router.cli("ip table del 10");
}

#[test]
fn exempt_prefixes_pass_whatever_the_routes_say() {
    let mut router = router();
    router.cli("set urpf ip4 rx strict e0");
    router.cli("set urpf ip6 rx strict e0");
    router.cli("set urpf-accept add 198.51.100.0/24");
    router.cli("set urpf-accept add 2001:db8:f::/48");
    assert!(passes4(&mut router, [198, 51, 100, 1]) && passes6(&mut router, "2001:db8:f::1"));
    assert_eq!(
        (router.count("ip4-rx-urpf", "exempt"), router.count("ip6-rx-urpf", "exempt")),
        (1, 1)
    );
    router.cli("set urpf-accept del 198.51.100.0/24");
    assert!(!passes4(&mut router, [198, 51, 100, 1]));
}

#[test]
fn who_has_no_address_yet_is_heard() {
    let mut router = router();
    for family in ["ip4", "ip6"] {
        router.cli(&format!("set urpf {family} rx strict e0"));
    }
    router.send("e0", &ip4(0, [0, 0, 0, 0], [255, 255, 255, 255]));
    router.send("e0", &ip6(0, "::", "ff02::1:ff00:1"));
    router.send("e0", &ip6(0, "fe80::77", "2001:db8:0::1"));
    for (node, reason) in [
        ("ip4-rx-urpf", "no-route"),
        ("ip6-rx-urpf", "no-route"),
        ("ip6-rx-urpf", "wrong-interface"),
    ] {
        assert_eq!(router.count(node, reason), 0, "{node} {reason}");
    }
    router.sent("e0");
}

#[test]
fn on_the_way_out_the_interface_that_the_packet_came_by_is_asked() {
    let mut router = router();
    router.cli("set urpf ip4 tx strict e1");
    router.cli("set urpf ip6 tx strict e1");
    assert!(passes4(&mut router, [10, 0, 0, 2]) && passes6(&mut router, "2001:db8:0::2"));
    assert!(!passes4(&mut router, [10, 0, 2, 2]) && !passes6(&mut router, "2001:db8:2::2"));
    assert_eq!(router.count("ip4-tx-urpf", "wrong-interface"), 1);
    assert_eq!(router.count("ip6-tx-urpf", "wrong-interface"), 1);
    // What the router itself sends is not asked where it came from.
    router.send("e1", &ip4(1, [10, 0, 1, 2], [10, 0, 0, 9]));
    assert_eq!(router.count("ip4-tx-urpf", "no-route"), 0);
    router.send("e0", &ip4(0, [10, 0, 2, 2], [10, 0, 2, 2]));
    assert_eq!(router.sent("e2").len(), 1, "e2 does not check");
}

#[test]
fn checks_go_with_their_interface_and_are_written_down() {
    let mut router = router();
    for line in [
        "ip table add 10",
        "ip6 table add 10",
        "set urpf ip4 rx strict e0",
        "set urpf ip4 tx loose e0 table 10",
        "set urpf ip6 rx loose e1 no-default",
        "set urpf-accept table 10 add 198.51.100.0/24",
        "set urpf-accept add 2001:db8:f::/48",
    ] {
        router.cli(line);
    }
    let config = |router: &mut Router| {
        let text = router.cli("show running-config");
        text.lines()
            .filter(|line| line.contains("urpf") || line.contains("table add"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let before = config(&mut router);
    assert_eq!(before.len(), 7, "{before:#?}");
    let mut again = self::router();
    again.script("again", &before.join("\n")).expect("what it wrote itself");
    assert_eq!(config(&mut again), before);
    assert_eq!(router.json("show urpf e0").as_array().unwrap().len(), 2);
    let e0 = router.id("e0");
    router.engine().delete_interface(e0).expect("it is there");
    assert!(config(&mut router).iter().all(|line| !line.contains("e0")));
    assert!(router.refused("ip table del 10").contains("uRPF"), "an exemption holds it");
    router.cli("set urpf-accept table 10 del 198.51.100.0/24");
    router.cli("ip table del 10");
}

#[test]
fn a_refusal_names_what_is_wrong_and_changes_nothing() {
    let mut router = router();
    let before = router.cli("show running-config");
    for (line, says) in [
        ("set urpf ip4 rx strict e9", "e9"),
        ("set urpf ip4 rx strict e0 table 7", "ip table add 7"),
        ("set urpf ip4 rx off e0 no-default", "leave them out"),
        ("set urpf ip4 both strict e0", "rx"),
        ("set urpf-accept add 198.51.100.1/24", "198.51.100.0/24 would be right"),
        ("set urpf-accept del 198.51.100.0/24", "show urpf"),
        ("set urpf-accept table 9 add 198.51.100.0/24", "table 9"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(says), "`{line}`: {refusal}");
    }
    assert_eq!(router.cli("show running-config"), before);
    for n in 0..256 {
        router.cli(&format!("set urpf-accept add 198.18.{n}.0/24"));
    }
    assert!(router.refused("set urpf-accept add 198.19.0.0/24").contains("256"));
    router.cli("set urpf-accept add 198.18.7.0/24"); // it is there already
}

#[test]
fn a_trace_says_what_was_checked() {
    let mut router = router();
    router.cli("set urpf ip4 rx strict e0");
    router.cli("trace add test-input 5");
    passes4(&mut router, [10, 0, 0, 2]);
    passes4(&mut router, [10, 0, 2, 2]);
    let trace = router.cli("show trace");
    assert!(trace.contains("source 10.0.0.2 by e0, to ip4-lookup"), "{trace}");
    assert!(trace.contains("no path back to the source leads out"), "{trace}");
}

#[test]
fn adjacency_counters_do_not_change_the_source_check() {
    let mut router = router();
    router.cli("adjacency counters enable");
    router.cli("set urpf ip4 rx strict e0");
    router.cli("set urpf ip6 rx strict e0");
    assert!(passes4(&mut router, [10, 0, 0, 2]) && !passes4(&mut router, [10, 0, 2, 2]));
    assert!(passes6(&mut router, "2001:db8:0::2") && !passes6(&mut router, "2001:db8:2::2"));
}
