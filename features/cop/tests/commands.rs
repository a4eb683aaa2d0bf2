//! What operators type, and what becomes of packets.

use quiver_testkit::Router;

fn router() -> Router {
    let mut router =
        Router::new(&[quiver_ethernet::register, quiver_ip::register, quiver_cop::register]);
    for (name, net) in [("e0", 0), ("e1", 1)] {
        router.interface(name);
        router.cli(&format!("set interface ip address {name} 10.0.{net}.1/24"));
        router.cli(&format!("set interface ip address {name} 2001:db8:{net}::1/64"));
        router.cli(&format!("ip neighbor {name} 10.0.{net}.2 02:00:00:00:00:0{net}"));
        router.cli(&format!("ip neighbor {name} 2001:db8:{net}::2 02:00:00:00:00:0{net}"));
    }
    for line in [
        "ip table add 10",
        "ip6 table add 10",
        "ip route add 192.0.2.0/24 table 10 via local",
        "ip route add 192.0.2.128/25 table 10 via drop",
        "ip route add 198.51.100.0/24 table 10 via 10.0.0.2 e0",
        "ip route add 2001:db8:f::/48 table 10 via local",
    ] {
        router.cli(line);
    }
    router
}

fn ip4(source: [u8; 4]) -> Vec<u8> {
    let mut header = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0];
    header.extend(source.iter().chain(&[10, 0, 1, 2]));
    let all: u32 =
        header.chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
    let sum = !((all & 0xffff) + (all >> 16)) as u16;
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    [&[2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 8, 0], &header[..], &[0, 1, 0, 2, 0, 8, 0, 0]]
        .concat()
}

fn ip6(source: &str) -> Vec<u8> {
    let address = |text: &str| text.parse::<std::net::Ipv6Addr>().unwrap().octets();
    let header =
        [&[0x60, 0, 0, 0, 0, 8, 17, 64], &address(source)[..], &address("2001:db8:1::2")[..]]
            .concat();
    [&[2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0x86, 0xdd], &header[..], &[0, 1, 0, 2, 0, 8, 0, 0]]
        .concat()
}

fn passes(router: &mut Router, frame: &[u8]) -> bool {
    router.send("e0", frame);
    !router.sent("e1").is_empty()
}

#[test]
fn only_listed_sources_pass_while_it_is_on() {
    let mut router = router();
    router.cli("cop whitelist e0 ip4 fib-id 10");
    assert!(passes(&mut router, &ip4([203, 0, 113, 1])), "it is not on yet");
    router.cli("cop interface e0");
    assert!(passes(&mut router, &ip4([192, 0, 2, 1])), "via local");
    assert!(passes(&mut router, &ip4([198, 51, 100, 1])), "via a neighbour");
    assert!(!passes(&mut router, &ip4([192, 0, 2, 200])), "via drop");
    assert!(!passes(&mut router, &ip4([203, 0, 113, 1])), "no route");
    assert!(passes(&mut router, &ip6("2001:db8:e::1")), "IPv6 has no list");
    router.cli("cop whitelist e0 ip6 fib-id 10");
    assert!(passes(&mut router, &ip6("2001:db8:f::1")));
    assert!(!passes(&mut router, &ip6("2001:db8:e::1")));
    assert_eq!(router.count("ip4-cop-whitelist", "not-listed"), 2);
    assert_eq!(router.count("ip6-cop-whitelist", "not-listed"), 1);
    router.cli("cop interface e0 disable");
    assert!(
        passes(&mut router, &ip4([203, 0, 113, 1])) && passes(&mut router, &ip6("2001:db8:e::1"))
    );
}

#[test]
fn a_list_can_be_another_table_and_end() {
    let mut router = router();
    router.cli("cop interface e0");
    router.cli("cop whitelist e0 ip4");
    assert!(!passes(&mut router, &ip4([192, 0, 2, 1])), "table 0 does not know it");
    router.cli("cop whitelist e0 ip4 fib-id 10");
    assert!(passes(&mut router, &ip4([192, 0, 2, 1])));
    router.cli("cop whitelist e0 ip4 disable");
    assert!(passes(&mut router, &ip4([203, 0, 113, 1])));
}

#[test]
fn lists_are_written_down_and_hold_their_table() {
    let mut router = router();
    for line in
        ["cop interface e0", "cop whitelist e0 ip4 fib-id 10", "cop whitelist e1 ip6 fib-id 10"]
    {
        router.cli(line);
    }
    let config = |router: &mut Router| {
        let text = router.cli("show running-config");
        text.lines().filter(|line| line.starts_with("cop")).map(str::to_owned).collect::<Vec<_>>()
    };
    let before = config(&mut router);
    assert_eq!(
        before,
        ["cop whitelist e0 ip4 fib-id 10", "cop interface e0", "cop whitelist e1 ip6 fib-id 10"]
    );
    let mut again = self::router();
    again.script("again", &before.join("\n")).expect("what it wrote itself");
    assert_eq!(config(&mut again), before);
    let shown = router.json("show cop");
    assert_eq!(
        (shown[0]["state"].as_str(), shown[0]["ip4_table"].as_u64()),
        (Some("on"), Some(10))
    );
    assert_eq!(shown[1]["state"], "off");
    assert!(router.refused("ip table del 10").contains("COP"));
    assert!(router.refused("ip6 table del 10").contains("COP"));
    let e0 = router.id("e0");
    router.engine().delete_interface(e0).expect("it is there");
    assert_eq!(config(&mut router), ["cop whitelist e1 ip6 fib-id 10"]);
    router.cli("ip table del 10");
    router.cli("cop whitelist e1 ip6 disable");
    router.cli("ip6 table del 10");
}

#[test]
fn a_refusal_names_what_is_wrong_and_changes_nothing() {
    let mut router = router();
    let before = router.cli("show running-config");
    for (line, says) in [
        ("cop interface e9", "e9"),
        ("cop whitelist e0 ip4 fib-id 7", "ip table add 7"),
        ("cop whitelist e0 ip4 disable", "no IPv4 whitelist"),
        ("cop whitelist e0 fib-id 10", "ip4"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(says), "`{line}`: {refusal}");
    }
    assert_eq!(router.cli("show running-config"), before);
}
