//! Routes by command: how next hops are looked up, why paths wait, what makes a flow, and limits.

use quiver_testkit::Router;
use quiver_testkit::configuration::loads_again;
use serde_json::json;

fn router() -> Router {
    let mut router = Router::new(&[quiver_ethernet::register, quiver_ip::register]);
    for (name, net) in [("e0", 0), ("e1", 1), ("e2", 2)] {
        router.interface(name);
        router.cli(&format!("set interface ip address {name} 10.0.{net}.1/24"));
        router.cli(&format!("set interface ip address {name} 2001:db8:{net}::1/64"));
        router.cli(&format!("ip neighbor {name} 10.0.{net}.2 02:00:00:00:00:0{net}"));
        router.cli(&format!("ip neighbor {name} 2001:db8:{net}::2 02:00:00:00:00:0{net}"));
    }
    router
}

/// The lines of a running configuration that are about routes and their tables.
fn config(router: &mut Router) -> Vec<String> {
    let text = router.cli("show running-config");
    let ours = |line: &&str| {
        ["ip route", "flow-hash", "fib limit", "table add"].iter().any(|word| line.contains(word))
    };
    text.lines().filter(ours).map(str::to_owned).collect()
}

/// A UDP packet in a frame for `e0`.
fn frame(source: [u8; 4], destination: [u8; 4], sport: u16, dport: u16) -> Vec<u8> {
    let mut frame = vec![2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 8, 0];
    let mut header = vec![0x45, 0, 0, 36, 0, 0, 0, 0, 64, 17, 0, 0];
    header.extend(source.iter().chain(&destination));
    let sum: u32 =
        header.chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(header);
    frame.extend([sport.to_be_bytes(), dport.to_be_bytes(), 16u16.to_be_bytes(), [0, 0]].concat());
    frame.extend([0; 8]);
    frame
}

/// Which of e1 and e2 a frame from e0 leaves by.
fn way(router: &mut Router, frame: &[u8]) -> &'static str {
    router.send("e0", frame);
    match (router.sent("e1").len(), router.sent("e2").len()) {
        (1, 0) => "e1",
        (0, 1) => "e2",
        other => panic!("it left as {other:?}"),
    }
}

#[test]
fn conditions_on_next_hops_are_kept_in_the_running_configuration() {
    let mut router = router();
    for line in [
        "ip table add 10",
        "ip6 table add 10",
        "ip route add 203.0.113.0/24 via 198.51.100.1 resolve-via-host",
        "ip route add 203.0.114.0/24 via 198.51.100.1 resolve-via-attached preference 3",
        "ip route add 203.0.115.0/24 via 198.51.100.1 weight 2 next-hop-table 10",
        "ip route add 203.0.116.0/24 via 2001:db8:f::1 next-hop-table 10 resolve-via-host",
        "ip route add 2001:db8:e::/48 via 2001:db8:f::1 resolve-via-attached",
        "set ip flow-hash table 10 src dst",
        "set ip6 flow-hash table 0 symmetric",
        "set fib limit ip4-routes 5000",
    ] {
        router.cli(line);
    }
    let before = config(&mut router);
    for line in [
        "ip route add 203.0.115.0/24 via 198.51.100.1 next-hop-table 10 weight 2",
        "set ip6 flow-hash table 0 src dst sport dport proto symmetric",
        "set fib limit ip4-routes 5000",
    ] {
        let words = |text: &str| {
            let mut words: Vec<_> = text.split(' ').map(str::to_owned).collect();
            words.sort();
            words
        };
        assert!(before.iter().any(|known| words(known) == words(line)), "{line} in {before:#?}");
    }
    let mut again = self::router();
    again.script("again", &before.join("\n")).expect("what it wrote itself");
    assert_eq!(config(&mut again), before);
    for line in
        ["ip route del 203.0.115.0/24 via 198.51.100.1 next-hop-table 10", "ip table del 10"]
    {
        again.cli(line);
    }
}

#[test]
fn why_a_path_is_not_used_stands_beside_it() {
    let mut router = router();
    for (line, prefix, says) in [
        (
            "ip route add 203.0.113.0/24 via 203.0.113.1",
            "203.0.113.0/24",
            "leads back to this one: a loop",
        ),
        ("ip route add 203.0.114.0/24 via 192.0.2.1", "203.0.114.0/24", "no route to 192.0.2.1"),
        ("ip route add 203.0.115.0/24 via 10.0.0.1", "203.0.115.0/24", "the router's own address"),
        (
            "ip route add 203.0.116.0/24 via 10.0.0.9 resolve-via-host",
            "203.0.116.0/24",
            "no route for 10.0.0.9 alone",
        ),
        ("ip route add 2001:db8:e::/48 via 2001:db8:e::1", "2001:db8:e::/48", "a loop"),
    ] {
        router.cli(line);
        let show = if prefix.contains(':') { "show ip6 fib" } else { "show ip fib" };
        let text = router.cli(&format!("{show} {prefix}"));
        assert!(text.contains(says), "{says} in {text}");
    }
    router.cli("ip route add 198.18.0.0/15 via 10.0.1.2 e1 via 10.0.2.2 e2 preference 1");
    let states = router.json("show ip fib 198.18.0.0/15")[0]["states"].clone();
    assert_eq!(states[0], json!({ "state": "used", "text": "used" }));
    assert_eq!(states[1]["state"], "waits");
    assert!(states[1]["text"].as_str().unwrap().contains("waits"), "{states}");
    router.cli("set interface state e1 down");
    let states = router.json("show ip fib 198.18.0.0/15")[0]["states"].clone();
    assert_eq!(states[0]["state"], "unusable");
    assert!(states[0]["text"].as_str().unwrap().contains("e1 is down"), "{states}");
    assert_eq!(states[1]["state"], "used");
}

#[test]
fn all_sources_of_a_prefix_are_shown_and_which_one_won() {
    let mut router = router();
    router.cli("ip route add 10.0.0.0/24 via drop");
    router.cli("ip route add 10.0.0.2/32 via 10.0.1.2");
    let shown = router.json("show ip fib 10.0.0.0/24");
    let sources: Vec<_> = shown
        .as_array()
        .unwrap()
        .iter()
        .map(|view| (view["source"].as_str().unwrap(), view["best"].as_bool().unwrap()))
        .collect();
    assert_eq!(sources, [("interface", true), ("static", false)]);
    let shown = router.json("show ip fib 10.0.0.2/32");
    let sources: Vec<_> =
        shown.as_array().unwrap().iter().map(|view| view["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["static", "neighbor"]);
    assert!(router.cli("show ip fib 10.0.0.2/32").contains("neighbor, not followed"));
}

#[test]
fn what_makes_no_sense_is_refused_with_a_remedy_and_changes_nothing() {
    let mut router = router();
    let before = router.cli("show running-config");
    for (line, says) in [
        ("ip route add 203.0.113.0/24 via 10.0.0.2 e0 resolve-via-host", "needs no look-up"),
        ("ip route add 203.0.113.0/24 via drop next-hop-table 0", "needs no look-up"),
        ("ip route add 203.0.113.0/24 via e0 resolve-via-attached", "needs no look-up"),
        (
            "ip route add 203.0.113.0/24 via 10.0.0.2 resolve-via-host resolve-via-attached",
            "not both",
        ),
        ("ip route add 203.0.113.0/24 via 10.0.0.2 next-hop-table 7", "ip table add 7"),
        ("set ip flow-hash table 7 src", "table 7"),
        ("set ip flow-hash table 0 src symmetric", "both src and dst"),
        ("set ip flow-hash table 0 src dst sport symmetric", "both sport and dport"),
        ("set ip flow-hash table 0 flowlabel", "flowlabel"),
        ("set ip6 flow-hash src dst symmetric flowlabel", "exclude each other"),
        ("set fib limit adjacencies 99999999", "at most"),
        ("set fib limit ip4-routes 0", "0"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(says), "`{line}`: {refusal}");
    }
    assert_eq!(router.cli("show running-config"), before);
}

#[test]
fn a_limit_refuses_more_and_says_how_much_there_is() {
    let mut router = router();
    let used = |router: &mut Router| router.json("show fib limits")[0]["used"].as_u64().unwrap();
    let now = used(&mut router);
    router.cli(&format!("set fib limit ip4-routes {}", now + 2));
    router.cli("ip route add 203.0.113.0/24 via 10.0.0.2");
    router.cli("ip route add 203.0.114.0/24 via 10.0.0.2");
    assert!(router.refused("ip route add 203.0.115.0/24 via 10.0.0.2").contains("show fib limits"));
    assert!(
        router
            .refused("ip route add 16.0.0.0/32 count 1000 via 10.0.0.2")
            .contains("show fib limits")
    );
    assert_eq!(used(&mut router), now + 2);
    // the other family has a limit of its own
    router.cli("ip route add 2001:db8:e::/48 via 2001:db8::2");
    router.cli("set fib limit ip4-routes 1");
    assert_eq!(used(&mut router), now + 2, "what is there stays");
    router.cli("ip route del 203.0.113.0/24");
}

#[test]
fn the_flow_hash_of_a_table_is_shown() {
    let mut router = router();
    router.cli("set ip flow-hash table 0 src dst symmetric");
    assert_eq!(router.json("show ip table")[0]["flow_hash"], "src dst symmetric");
    assert!(router.cli("show ip fib").contains("flow hash: src dst symmetric"));
    router.cli("set ip flow-hash table 0");
    assert_eq!(router.json("show ip table")[0]["flow_hash"], "src dst sport dport proto");
}

#[test]
fn both_directions_of_each_flow_go_the_same_way_when_the_hash_is_symmetric() {
    let mut router = router();
    router.cli("ip route add 0.0.0.0/0 via 10.0.1.2 e1 via 10.0.2.2 e2");
    let mut seen = [0, 0];
    for symmetric in [true, false] {
        router.cli(if symmetric { "set ip flow-hash symmetric" } else { "set ip flow-hash" });
        let mut differ = 0;
        for n in 0..64u16 {
            let (a, b) = ([198, 51, 100, n as u8], [203, 0, 113, 255 - n as u8]);
            let there = way(&mut router, &frame(a, b, 1000 + n, 80));
            let back = way(&mut router, &frame(b, a, 80, 1000 + n));
            differ += usize::from(there != back);
            seen[usize::from(there == "e1")] += 1;
        }
        assert_eq!(differ == 0, symmetric, "{differ} of 64 differ");
    }
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
}

#[test]
fn a_hash_of_addresses_keeps_all_ports_of_two_hosts_together() {
    let mut router = router();
    router.cli("ip route add 0.0.0.0/0 via 10.0.1.2 e1 via 10.0.2.2 e2");
    let ways = |router: &mut Router| {
        let mut ways: Vec<_> = (0..32)
            .map(|port| way(router, &frame([198, 51, 100, 1], [203, 0, 113, 1], port, 80)))
            .collect();
        ways.sort_unstable();
        ways.dedup();
        ways.len()
    };
    assert_eq!(ways(&mut router), 2);
    router.cli("set ip flow-hash src dst");
    assert_eq!(ways(&mut router), 1);
}

#[test]
fn options_do_not_hide_the_ports_from_the_hash() {
    let mut router = router();
    router.cli("ip route add 0.0.0.0/0 via 10.0.1.2 e1 via 10.0.2.2 e2");
    for port in 0..32u16 {
        let plain = frame([198, 51, 100, 1], [203, 0, 113, 1], port, 80);
        // The same packet with a no-operation option of four bytes.
        let mut with = plain.clone();
        with[14] = 0x46;
        with[17] += 4;
        with.splice(34..34, [1, 1, 1, 1]);
        let sum = |header: &[u8]| {
            let all: u32 =
                header.chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
            !((all & 0xffff) + (all >> 16)) as u16
        };
        with[24..26].copy_from_slice(&[0, 0]);
        let checksum = sum(&with[14..38]);
        with[24..26].copy_from_slice(&checksum.to_be_bytes());
        assert_eq!(way(&mut router, &plain), way(&mut router, &with), "port {port}");
    }
}

/// An IPv6 packet with a flow label in a frame for `e0`.
fn frame6(source: &str, destination: &str, ports: (u16, u16), label: u32) -> Vec<u8> {
    let address = |text: &str| text.parse::<std::net::Ipv6Addr>().unwrap().octets();
    let mut frame = vec![2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 0x86, 0xdd];
    frame.extend((0x6000_0000 | label).to_be_bytes());
    frame.extend([0, 20, 6, 64]);
    frame.extend(address(source));
    frame.extend(address(destination));
    frame.extend([ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat());
    frame.extend([0; 16]);
    frame
}

#[test]
fn both_directions_of_each_ip6_flow_go_the_same_way_when_the_hash_is_symmetric() {
    let mut router = router();
    router.cli("ip route add ::/0 via 2001:db8:1::2 e1 via 2001:db8:2::2 e2");
    for symmetric in [true, false] {
        router.cli(if symmetric { "set ip6 flow-hash symmetric" } else { "set ip6 flow-hash" });
        let mut differ = 0;
        for n in 0..64u16 {
            let (a, b) = (format!("2001:db8:a::{n:x}"), format!("2001:db8:b::{:x}", 255 - n));
            let there = way(&mut router, &frame6(&a, &b, (1000 + n, 80), 1));
            let back = way(&mut router, &frame6(&b, &a, (80, 1000 + n), 2));
            differ += usize::from(there != back);
        }
        assert_eq!(differ == 0, symmetric, "{differ} of 64 differ");
    }
}

#[test]
fn the_flow_label_spreads_what_looks_like_one_flow_when_it_is_asked_for() {
    let mut router = router();
    router.cli("ip route add ::/0 via 2001:db8:1::2 e1 via 2001:db8:2::2 e2");
    let ways = |router: &mut Router| {
        let one = |label| frame6("2001:db8:a::1", "2001:db8:b::1", (7, 7), label);
        let mut ways: Vec<_> = (0..32).map(|label| way(router, &one(label))).collect();
        ways.sort_unstable();
        ways.dedup();
        ways.len()
    };
    assert_eq!(ways(&mut router), 1);
    router.cli("set ip6 flow-hash src dst flowlabel");
    assert_eq!(ways(&mut router), 2);
    assert_eq!(router.json("show ip6 table")[0]["flow_hash"], "src dst flowlabel");
}

#[test]
fn a_recursive_ip6_route_moves_with_what_it_stands_behind() {
    let mut router = router();
    router.cli("ip route add 2001:db8:e::/48 via 2001:db8:f::1 resolve-via-host");
    router.cli("ip route add ::/0 via 2001:db8:1::2");
    let packet = frame6("2001:db8:a::1", "2001:db8:e::1", (7, 7), 0);
    router.send("e0", &packet);
    assert!(router.sent("e1").is_empty(), "the default route is not for that host alone");
    for (next_hop, out) in [("2001:db8:1::2", "e1"), ("2001:db8:2::2", "e2")] {
        router.cli(&format!("ip route add 2001:db8:f::1/128 via {next_hop}"));
        assert_eq!(way(&mut router, &packet), out);
        router.cli("ip route del 2001:db8:f::1/128");
    }
}

#[test]
fn an_ip6_backup_path_takes_over_when_the_interface_goes_down() {
    let mut router = router();
    router
        .cli("ip route add 2001:db8:e::/48 via 2001:db8:1::2 e1 via 2001:db8:2::2 e2 preference 1");
    let packet = frame6("2001:db8:a::1", "2001:db8:e::1", (7, 7), 0);
    assert_eq!(way(&mut router, &packet), "e1");
    router.cli("set interface state e1 down");
    assert_eq!(way(&mut router, &packet), "e2");
    let states = router.json("show ip6 fib 2001:db8:e::/48")[0]["states"].clone();
    assert_eq!(states[1]["state"], "used", "{states}");
}

#[test]
fn a_backup_path_of_many_routes_takes_over_for_all_of_them() {
    let mut router = router();
    router.cli("ip route add 60.0.0.0/32 count 5000 via 10.0.1.2 e1 via 10.0.2.2 e2 preference 1");
    let packet = frame([198, 51, 100, 1], [60, 0, 0x13, 0x87], 1, 2);
    assert_eq!(way(&mut router, &packet), "e1");
    router.cli("set interface state e1 down");
    assert_eq!(way(&mut router, &packet), "e2");
}

#[test]
fn a_next_hop_of_another_table_leads_where_that_table_says() {
    let mut router = router();
    router.cli("ip table add 10");
    router.cli("ip6 table add 10");
    router.cli("ip route add 198.51.100.1/32 via 10.0.1.2 e1");
    router.cli("ip route add 198.51.100.1/32 table 10 via 10.0.2.2 e2");
    router.cli("ip route add 203.0.113.0/24 via 198.51.100.1 next-hop-table 10");
    assert_eq!(way(&mut router, &frame([198, 51, 100, 9], [203, 0, 113, 1], 1, 2)), "e2");
    router.cli("ip route add 2001:db8:f::1/128 table 10 via 2001:db8:2::2 e2");
    router.cli("ip route add 2001:db8:e::/48 via 2001:db8:f::1 next-hop-table 10");
    assert_eq!(way(&mut router, &frame6("2001:db8:a::1", "2001:db8:e::1", (7, 7), 0)), "e2");
    assert!(router.refused("ip6 table del 10").contains("in use"));
}

#[test]
fn a_seed_moves_flows_and_tunnels_spread_where_asked_for() {
    let mut router = router();
    router.cli("ip route add 203.0.113.0/24 via 10.0.1.2 e1 via 10.0.2.2 e2");
    let ways = |router: &mut Router| -> Vec<&'static str> {
        (0..64)
            .map(|port| way(router, &frame([10, 0, 0, 9], [203, 0, 113, 9], 1000 + port, 80)))
            .collect()
    };
    let before = ways(&mut router);
    router.cli("set ip flow-hash seed 7");
    let seeded = ways(&mut router);
    assert_ne!(before, seeded);
    assert_eq!(seeded, ways(&mut router), "a flow stays on its path");
    assert!(seeded.contains(&"e1") && seeded.contains(&"e2"));
    // A route that is made later has the seed, too, and a table's own choice keeps it.
    router.cli("ip route del 203.0.113.0/24");
    router.cli("ip route add 203.0.113.0/24 via 10.0.1.2 e1 via 10.0.2.2 e2");
    assert_eq!(seeded, ways(&mut router));
    router.cli("set ip flow-hash table 0 src dst");
    assert!(ways(&mut router).iter().all(|way| *way == ways(&mut router)[0]));
    // G-PDUs of one pair of gateways, in 64 tunnels.
    router.cli("set ip flow-hash table 0 gtpv1teid");
    let tunnels: Vec<_> = (0..64u8)
        .map(|teid| {
            let mut gpdu = frame([10, 0, 0, 9], [203, 0, 113, 9], 2152, 2152);
            gpdu[42..50].copy_from_slice(&[0x30, 255, 0, 0, 0, 0, 0, teid]);
            way(&mut router, &gpdu)
        })
        .collect();
    assert!(tunnels.contains(&"e1") && tunnels.contains(&"e2"));
    let config = config(&mut router);
    assert!(config.iter().any(|line| line == "set ip flow-hash seed 7"), "{config:#?}");
    assert!(config.iter().any(|line| line.contains("gtpv1teid")), "{config:#?}");
    router.cli("set ip flow-hash seed 0");
    router.cli("set ip flow-hash table 0");
    assert_eq!(before, ways(&mut router));
}

#[test]
fn a_route_can_ask_for_the_source_and_receive_once_more() {
    let mut router = router();
    for line in [
        "ip table add 5",
        "ip route add 192.0.2.0/24 table 5 via 10.0.1.2 e1",
        "ip route add 0.0.0.0/0 table 5 via 10.0.2.2 e2",
        "ip route add 203.0.113.0/24 via ip4-lookup-in-table 5 src-lookup",
    ] {
        router.cli(line);
    }
    assert_eq!(way(&mut router, &frame([192, 0, 2, 9], [203, 0, 113, 9], 1, 2)), "e1");
    assert_eq!(way(&mut router, &frame([192, 0, 3, 9], [203, 0, 113, 9], 1, 2)), "e2");
    assert!(router.refused("ip table del 5").contains("looks up"));
    // As if received on e3, whose table has a route of its own.
    router.interface("e3");
    for line in [
        "ip table add 6",
        "set interface ip table e3 6",
        "set interface ip address e3 10.0.3.1/24",
        "ip route add 198.51.100.0/24 table 6 via 10.0.2.2 e2",
        "ip route add 198.51.100.0/24 via rx-ip4 e3",
        "ip6 table add 5",
        "ip route add 2001:db8:a::/48 via rx-ip6 e3",
        "ip route add 2001:db8:b::/48 via ip6-lookup-in-table 5 src-lookup",
    ] {
        router.cli(line);
    }
    assert_eq!(way(&mut router, &frame([192, 0, 2, 9], [198, 51, 100, 9], 1, 2)), "e2");
    let before = config(&mut router);
    for line in [
        "ip route add 203.0.113.0/24 via ip4-lookup-in-table 5 src-lookup",
        "ip route add 198.51.100.0/24 via rx-ip4 e3",
        "ip route add 2001:db8:a::/48 via rx-ip6 e3",
        "ip route add 2001:db8:b::/48 via ip6-lookup-in-table 5 src-lookup",
    ] {
        assert!(before.iter().any(|known| known == line), "{line} in {before:#?}");
    }
    router.cli("set interface state e3 down");
    router.send("e0", &frame([192, 0, 2, 9], [198, 51, 100, 9], 1, 2));
    assert!(router.sent("e2").is_empty());
    router.cli("set interface state e3 up");
    assert!(router.refused("ip route add 192.0.2.0/24 via drop src-lookup").contains("no table"));
}

#[test]
fn packets_that_are_received_round_and_round_die() {
    let mut router = router();
    router.cli("ip route add 198.51.100.0/24 via rx-ip4 e1");
    router.send("e0", &frame([192, 0, 2, 9], [198, 51, 100, 9], 1, 2));
    assert_eq!(router.count("ip4-interface-rx", "interface-loop"), 1);
    router.cli("ip table add 5");
    router.cli("ip route add 192.0.2.0/24 table 5 via ip4-lookup-in-table 5 src-lookup");
    router.cli("ip route add 203.0.113.0/24 via ip4-lookup-in-table 5 src-lookup");
    router.send("e0", &frame([192, 0, 2, 9], [203, 0, 113, 9], 1, 2));
    assert_eq!(router.count("ip4-source-lookup-in-table", "lookup-loop"), 1);
}

#[test]
fn a_route_by_several_interfaces_is_written_in_the_order_of_their_names() {
    let make = || Router::new(&[quiver_ethernet::register, quiver_ip::register]);
    let mut router = make();
    for name in ["e1", "e0", "e2"] {
        router.interface(name);
    }
    router.cli("ip route add 192.0.2.0/24 via 10.9.0.2 e2 via 10.9.0.2 e1 via 10.9.0.2 e0");
    let written = "ip route add 192.0.2.0/24 via 10.9.0.2 e0 via 10.9.0.2 e1 via 10.9.0.2 e2";
    assert_eq!(config(&mut router), [written]);
    let config = router.cli("show running-config");
    let fault = loads_again(make(), &config, &config);
    assert!(fault.is_none(), "{}", fault.unwrap().text);
}

#[test]
fn what_is_kept_by_table_is_written_in_the_same_order_again() {
    let make = || Router::new(&[quiver_ethernet::register, quiver_ip::register]);
    let mut router = make();
    for line in ["ip6 table add 7", "ip6 table add 10", "ip table add 20", "ip table add 10"] {
        router.cli(line);
    }
    router.cli("ip6 table del 7");
    for (peer, table) in [("2001:db8::1", 10), ("192.0.2.1", 10), ("192.0.2.1", 20)] {
        router.cli(&format!("set ip pmtu peer {peer} table {table} path-mtu 1300"));
    }
    let config = router.cli("show running-config");
    let fault = loads_again(make(), &config, &config);
    assert!(fault.is_none(), "{}", fault.unwrap().text);
}
