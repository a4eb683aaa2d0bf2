//! What operators type: it is done, shown, written down again, or refused with a reason.

use std::time::Duration;

use quiver_testkit::Router;

fn router() -> Router {
    Router::new(&[quiver_ethernet::register, quiver_ip::register])
}

fn two_interfaces() -> Router {
    let mut router = router();
    router.interface("e0");
    router.interface("e1");
    router
}

/// The lines of a running configuration that IP writes.
fn config(router: &mut Router) -> Vec<String> {
    let text = router.cli("show running-config");
    let ours = |line: &&str| line.contains("ip") && !line.starts_with("create");
    text.lines().filter(ours).map(str::to_owned).collect()
}

#[test]
fn the_words_of_an_operators_article_are_understood() {
    let mut router = router();
    router.cli("create test interface e0");
    router.cli("create test interface e1");
    for line in [
        "set int state e0 up",
        "set int state e1 up",
        "set int ip address e0 100.64.1.1/30",
        "set int ip address e1 100.64.2.1/30",
        "ip route add 16.0.0.0/24 via 100.64.1.2",
        "ip route add 48.0.0.0/24 via 100.64.2.2",
        "ip neighbor e0 100.64.1.2 50:7c:6f:20:30:70",
        "ip neighbor e1 100.64.2.2 50:7c:6f:20:30:71",
    ] {
        router.cli(line);
    }
    let shown = router.json("show ip fib 48.0.0.7");
    assert_eq!(shown[0]["prefix"], "48.0.0.0/24");
    let hop = &shown[0]["hops"][0];
    assert_eq!(
        (&hop["next_hop"], &hop["interface"]),
        (&"100.64.2.2".into(), &"e1".into()),
        "{shown}"
    );
}

#[test]
fn the_running_configuration_makes_the_same_router() {
    let mut router = two_interfaces();
    for line in [
        "ip table add 10",
        "ip6 table add 10",
        "set interface ip table e1 10",
        "set interface ip address e0 10.0.0.1/24",
        "set interface ip address e0 10.0.1.1/24",
        "set interface ip address e1 10.0.0.1/24",
        "set interface ip address e0 2001:db8::1/64",
        "set interface ip address e1 fe80::7/64",
        "ip neighbor e0 10.0.0.2 02:00:00:00:00:22 static",
        "ip neighbor e0 2001:db8::2 02:00:00:00:00:22",
        "set ip neighbor-config limit 1000",
        "ip route add 198.51.100.0/24 via 10.0.0.2 weight 3 via 10.0.0.3 e0",
        "ip route add 203.0.113.0/32 count 200 via 10.0.0.2",
        "ip route add 0.0.0.0/0 via drop",
        "ip route add 192.0.2.0/24 table 10 via ip4-lookup-in-table 0",
        "ip route add 192.0.2.128/25 via e0 preference 2 via local preference 7",
        "ip route add 2001:db8:1::/48 via 2001:db8::2",
        "ip route add 2001:db8:2::/48 table 10 via ip6-lookup-in-table 0",
    ] {
        router.cli(line);
    }
    let before = config(&mut router);
    assert!(
        before.iter().any(|line| line.contains("203.0.113.0/32 count 200 via 10.0.0.2")),
        "{before:?}"
    );
    let mut again = two_interfaces();
    again.script("again", &before.join("\n")).expect("what it wrote itself");
    assert_eq!(config(&mut again), before);
}

#[test]
fn what_was_configured_can_be_taken_back() {
    let mut router = two_interfaces();
    let empty = config(&mut router);
    for line in [
        "ip table add 7",
        "set interface ip table e0 7",
        "set interface ip address e0 10.0.0.1/24",
        "set interface ip address e0 2001:db8::1/64",
        "ip neighbor e0 10.0.0.2 02:00:00:00:00:22",
        "ip route add 198.51.100.0/24 table 7 via 10.0.0.2 via 10.0.0.3",
        "ip route del 198.51.100.0/24 table 7 via 10.0.0.2",
        "ip route del 198.51.100.0/24 table 7",
        "ip neighbor del e0 10.0.0.2",
        "set interface ip address del e0 10.0.0.1/24",
        "set interface ip address del e0 2001:db8::1/64",
        "set interface ip table e0 0",
        "ip table del 7",
    ] {
        router.cli(line);
    }
    assert_eq!(config(&mut router), empty);
    let shown = router.json("show ip fib summary");
    assert_eq!(shown.as_array().map(Vec::len), Some(2), "only the special routes: {shown}");
}

#[test]
fn a_refusal_names_the_object_the_place_and_the_remedy_and_changes_nothing() {
    let mut router = two_interfaces();
    router.cli("set interface ip address e0 10.0.0.1/24");
    let before = config(&mut router);
    for (line, says) in [
        ("set interface ip address e9 10.0.0.1/24", "no interface 'e9'"),
        ("set interface ip address e1 10.0.0.2/24", "10.0.0.0/24"),
        ("set interface ip address e0 10.0.0.1/24", "interface e0"),
        ("set interface ip address e0 224.0.0.1/24", "224.0.0.1"),
        ("set interface ip address del e1 10.9.9.9/24", "interface e1"),
        ("set interface ip table e0 5", "table 5"),
        ("ip route add 10.1.0.1/16 via 10.0.0.2", "10.1.0.0/16 would be right"),
        ("ip route add 10.1.0.0/16 table 9 via 10.0.0.2", "ip table add 9"),
        ("ip route add 10.1.0.0/16", "give at least one `via`"),
        ("ip route add 10.1.0.0/16 via e7", "e7"),
        ("ip route add 10.1.0.0/16 via 224.0.0.1", "224.0.0.1"),
        ("ip route add 10.1.0.0/16 via ip4-lookup-in-table 0", "never end"),
        ("ip route add 255.255.255.0/24 count 2 via drop", "at most 1"),
        ("ip route del 10.1.0.0/16", "10.1.0.0/16"),
        ("ip table del 0", "table 0"),
        ("ip table add 0", "exists already"),
        ("ip neighbor e0 10.0.0.2", "MAC address"),
        ("ip neighbor e0 10.0.0.2 ff:ff:ff:ff:ff:ff", "ff:ff:ff:ff:ff:ff"),
        ("ip neighbor del e0 10.0.0.2", "interface e0"),
        ("show ip fib 192.0.2.1", "no route to 192.0.2.1"),
        ("ping 192.0.2.1", "no route"),
        ("ping fe80::1", "source IF"),
        ("ping 10.0.0.2 source e1", "set interface ip address e1"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(says), "`{line}` says: {refusal}");
    }
    assert_eq!(config(&mut router), before);
}

#[test]
fn an_interface_that_is_deleted_takes_its_addresses_routes_and_neighbours_along() {
    let mut router = two_interfaces();
    let empty = config(&mut router);
    for line in [
        "set interface ip address e0 10.0.0.1/24",
        "set interface ip address e0 2001:db8::1/64",
        "ip neighbor e0 10.0.0.2 02:00:00:00:00:22",
        "ip route add 198.51.100.0/24 via 10.0.0.2 e0",
    ] {
        router.cli(line);
    }
    let id = router.id("e0");
    router.engine().delete_interface(id).expect("it exists");
    router.interface("e2");
    assert_eq!(config(&mut router), empty);
    assert_eq!(router.json("show ip neighbors").as_array().map(Vec::len), Some(0));
    assert_eq!(router.json("show adj").as_array().map(Vec::len), Some(0));
}

#[test]
fn shows_have_json_and_say_what_is() {
    let mut router = two_interfaces();
    router.cli("set interface ip address e0 10.0.0.1/24");
    router.cli("set interface ip address e0 2001:db8::1/64");
    router.cli("ip route add 198.51.100.0/24 via 10.0.0.2 weight 3 via 10.0.0.3");
    router.cli("ip neighbor e0 10.0.0.2 02:00:00:00:00:22");
    let address = router.json("show interface address e0 json");
    assert_eq!(address[0]["addresses"][0], "10.0.0.1/24");
    assert_eq!(address[0]["link_local"], "fe80::fe:ff:fe00:0");
    let groups = router.json("show load-balance");
    assert!(groups.as_array().unwrap().iter().any(|group| group["buckets"] == 4), "{groups}");
    let adjacencies = router.json("show adj");
    let complete =
        adjacencies.as_array().unwrap().iter().find(|adj| adj["next_hop"] == "10.0.0.2").unwrap();
    assert_eq!(complete["rewrite"], "02000000002202fe000000000800");
    assert_eq!(complete["mtu_bytes"], 1500);
    assert_eq!(router.json("show ip neighbors")[0]["mac"], "02:00:00:00:00:22");
    assert!(router.cli("show ip fib").contains("198.51.100.0/24"));
    assert!(router.cli("show ip6 fib 2001:db8::7").contains("ip6-glean"));
    assert!(router.cli("show ip table").contains("Routes"));
}

#[test]
fn neighbours_age_and_static_ones_stay() {
    let mut router = two_interfaces();
    router.cli("set interface ip address e0 10.0.0.1/24");
    router.cli("ip neighbor e0 10.0.0.9 02:00:00:00:00:99");
    router.send("e0", &arp(2));
    let states = |router: &mut Router| -> Vec<String> {
        let shown = router.json("show ip neighbors");
        shown
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line["state"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(states(&mut router), ["reachable", "static"]);
    router.advance(Duration::from_secs(70));
    assert_eq!(states(&mut router), ["stale", "static"]);
    router.advance(Duration::from_secs(20 * 60));
    assert_eq!(states(&mut router), ["static"]);
}

#[test]
fn an_interface_that_goes_down_forgets_what_it_learned_and_keeps_what_is_configured() {
    let mut router = two_interfaces();
    router.cli("set interface ip address e0 10.0.0.1/24");
    router.cli("ip neighbor e0 10.0.0.9 02:00:00:00:00:99");
    router.send("e0", &arp(2));
    let known = |router: &mut Router| router.json("show ip neighbors").as_array().map(Vec::len);
    assert_eq!(known(&mut router), Some(2));
    router.cli("set interface state e0 down");
    router.cli("set interface state e0 up");
    assert_eq!(router.json("show ip neighbors")[0]["state"], "static");
    assert_eq!(known(&mut router), Some(1));
}

/// A frame in which 10.0.0.`host` asks for 10.0.0.1.
fn arp(host: u8) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, host, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend([2, 0, 0, 0, 0, host, 10, 0, 0, host, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1]);
    frame
}

#[test]
fn the_table_of_neighbours_has_a_limit_and_says_when_it_is_full() {
    let mut router = two_interfaces();
    router.cli("set interface ip address e0 10.0.0.1/24");
    router.cli("set ip neighbor-config limit 3");
    for host in 2..12 {
        router.send("e0", &arp(host));
    }
    assert_eq!(router.json("show ip neighbors")[2]["address"], "10.0.0.4");
    let shown = router.cli("show ip neighbors");
    assert!(shown.contains("7 times a neighbour was not learned"), "{shown}");
    assert_eq!(router.sent("e0").len(), 10, "all are answered all the same");
}

#[test]
fn a_million_routes_in_one_command_are_there_in_seconds() {
    let mut router = two_interfaces();
    router.cli("set interface ip address e0 10.0.0.1/24");
    let start = std::time::Instant::now();
    router.cli("ip route add 16.0.0.0/32 count 1000000 via 10.0.0.2");
    let took = start.elapsed();
    let shown = router.json("show ip fib 16.15.66.63");
    assert_eq!(shown[0]["prefix"], "16.15.66.63/32");
    router.cli("ip route del 16.0.0.0/32 count 1000000");
    assert!(took < Duration::from_secs(10), "{took:?}");
    println!("1,000,000 routes by one command: {took:?}");
}

#[test]
fn many_routes_from_a_file_are_there_in_seconds() {
    use std::fmt::Write as _;
    let mut router = two_interfaces();
    router.cli("set interface ip address e0 10.0.0.1/24");
    let mut text = String::new();
    for number in 0..200_000u32 {
        let address = std::net::Ipv4Addr::from_bits(0x1000_0000 + (number << 8));
        let _ = writeln!(text, "ip route add {address}/24 via 10.0.0.{}", 2 + number % 64);
    }
    let start = std::time::Instant::now();
    router.script("routes", &text).expect("good routes");
    let took = start.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    println!("200,000 routes from a file: {took:?}");
}
