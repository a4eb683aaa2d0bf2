//! What operators type, and where packets go.

use quiver_testkit::Router;

/// Packets come by e0; e1, e2 and e3 have a neighbour each. The routes lead to e1.
fn router() -> Router {
    let mut router =
        Router::new(&[quiver_ethernet::register, quiver_ip::register, quiver_pbr::register]);
    for (name, net) in [("e0", 0), ("e1", 1), ("e2", 2), ("e3", 3)] {
        router.interface(name);
        router.cli(&format!("set interface ip address {name} 10.0.{net}.1/24"));
        router.cli(&format!("set interface ip address {name} 2001:db8:{net}::1/64"));
        router.cli(&format!("ip neighbor {name} 10.0.{net}.2 02:00:00:00:00:0{net}"));
        router.cli(&format!("ip neighbor {name} 2001:db8:{net}::2 02:00:00:00:00:0{net}"));
    }
    router.cli("ip route add 0.0.0.0/0 via 10.0.1.2 e1");
    router.cli("ip route add ::/0 via 2001:db8:1::2 e1");
    router
}

/// What a packet is made of.
#[derive(Clone, Copy)]
struct Packet {
    source: &'static str,
    destination: &'static str,
    protocol: u8,
    ports: (u16, u16),
    class: u8,
    /// Fragment offset and flags of an IPv4 packet.
    fragment: u16,
}

const PLAIN: Packet = Packet {
    source: "198.51.100.1",
    destination: "203.0.113.1",
    protocol: 17,
    ports: (1000, 80),
    class: 0,
    fragment: 0,
};
const PLAIN6: Packet = Packet { source: "2001:db8:a::1", destination: "2001:db8:b::1", ..PLAIN };

impl Packet {
    fn frame(&self) -> Vec<u8> {
        let (source, destination) =
            (self.source.parse().unwrap(), self.destination.parse().unwrap());
        let ports =
            [self.ports.0.to_be_bytes(), self.ports.1.to_be_bytes(), [0, 12], [0, 0]].concat();
        let mut frame = vec![2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0];
        match (source, destination) {
            (std::net::IpAddr::V4(source), std::net::IpAddr::V4(destination)) => {
                let mut header = vec![0x45, self.class, 0, 32, 0, 7];
                header.extend(self.fragment.to_be_bytes());
                header.extend([64, self.protocol, 0, 0]);
                header.extend(source.octets().iter().chain(&destination.octets()));
                let all: u32 = header
                    .chunks(2)
                    .map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])))
                    .sum();
                let sum = !((all & 0xffff) + (all >> 16)) as u16;
                header[10..12].copy_from_slice(&sum.to_be_bytes());
                frame.extend([8, 0]);
                frame.extend(header);
            }
            (std::net::IpAddr::V6(source), std::net::IpAddr::V6(destination)) => {
                frame.extend([
                    0x86,
                    0xdd,
                    0x60 | self.class >> 4,
                    self.class << 4,
                    0,
                    0,
                    0,
                    12,
                    self.protocol,
                    64,
                ]);
                frame.extend(source.octets().iter().chain(&destination.octets()));
            }
            _ => panic!("two families"),
        }
        frame.extend(ports);
        frame.extend([0; 4]);
        frame
    }
}

/// The interfaces that a packet from e0 leaves by.
fn way(router: &mut Router, packet: Packet) -> Vec<&'static str> {
    router.send("e0", &packet.frame());
    let there = router.interfaces();
    let known =
        ["e0", "e1", "e2", "e3"].into_iter().filter(|name| there.iter().any(|known| known == name));
    known.filter(|name| !router.sent(name).is_empty()).collect()
}

#[test]
fn each_field_of_a_match_decides() {
    for (words, other) in [
        ("src 198.51.100.0/24", Packet { source: "198.51.101.1", ..PLAIN }),
        ("dst 203.0.113.0/24", Packet { destination: "203.0.114.1", ..PLAIN }),
        ("proto udp", Packet { protocol: 6, ..PLAIN }),
        ("proto 17", Packet { protocol: 6, ..PLAIN }),
        ("sport 1000", Packet { ports: (1001, 80), ..PLAIN }),
        ("dport 80-443", Packet { ports: (1000, 444), ..PLAIN }),
        ("proto udp dport 70-80", Packet { ports: (1000, 81), ..PLAIN }),
        ("dport 80", Packet { fragment: 0x2000, ..PLAIN }),
        ("dport 80", Packet { fragment: 2, ..PLAIN }),
        ("dscp 0", Packet { class: 46 << 2, ..PLAIN }),
        ("src 198.51.100.0/24 dst 203.0.113.0/24 dscp 0", Packet { class: 4, ..PLAIN }),
    ] {
        let mut router = router();
        router.cli(&format!("abf policy add id 1 match {words} via 10.0.2.2 e2"));
        router.cli("abf attach ip4 policy 1 e0");
        assert_eq!(way(&mut router, PLAIN), ["e2"], "{words}");
        assert_eq!(way(&mut router, other), ["e1"], "{words}");
    }
    for (words, other) in [
        ("src 2001:db8:a::/48", Packet { source: "2001:db8:c::1", ..PLAIN6 }),
        ("dst 2001:db8:b::/48", Packet { destination: "2001:db8:c::1", ..PLAIN6 }),
        ("proto udp", Packet { protocol: 6, ..PLAIN6 }),
        ("sport 900-1000", Packet { ports: (1001, 80), ..PLAIN6 }),
        ("dport 80", Packet { ports: (1000, 81), ..PLAIN6 }),
        ("dscp 0", Packet { class: 46 << 2, ..PLAIN6 }),
    ] {
        let mut router = router();
        router.cli(&format!("abf policy add id 1 match {words} via 2001:db8:2::2 e2"));
        router.cli("abf attach ip6 policy 1 e0");
        assert_eq!(way(&mut router, PLAIN6), ["e2"], "{words}");
        assert_eq!(way(&mut router, other), ["e1"], "{words}");
    }
}

#[test]
fn policies_are_asked_in_the_order_of_their_priority() {
    let mut router = router();
    router.cli("abf policy add id 1 match src 198.51.100.0/24 via 10.0.2.2");
    router.cli("abf policy add id 2 match dst 203.0.113.0/24 via 10.0.3.2");
    router.cli("abf attach ip4 policy 1 priority 20 e0");
    assert_eq!(way(&mut router, PLAIN), ["e2"]);
    router.cli("abf attach ip4 policy 2 priority 10 e0");
    assert_eq!(way(&mut router, PLAIN), ["e3"]);
    assert_eq!(way(&mut router, Packet { destination: "192.0.2.1", ..PLAIN }), ["e2"]);
    router.cli("abf attach ip4 del policy 2 e0");
    assert_eq!(way(&mut router, PLAIN), ["e2"]);
    router.cli("abf attach ip4 del policy 1 e0");
    assert_eq!(way(&mut router, PLAIN), ["e1"]);
    // Elsewhere it decides nothing.
    router.cli("abf attach ip4 policy 1 e3");
    assert_eq!(way(&mut router, PLAIN), ["e1"]);
}

#[test]
fn paths_follow_interfaces_neighbours_and_routes_and_a_policy_without_any_is_passed_over() {
    for six in [false, true] {
        let mut router = router();
        let (packet, family, near, far, host) = match six {
            false => (PLAIN, "ip4", "10.0.2.2", "192.0.2.9", "192.0.2.9/32"),
            true => (PLAIN6, "ip6", "2001:db8:2::2", "2001:db8:f::9", "2001:db8:f::9/128"),
        };
        let next3 = if six { "2001:db8:3::2" } else { "10.0.3.2" };
        router.cli(&format!("abf policy add id 1 via {near} e2 via {next3} e3 preference 1"));
        router.cli(&format!("abf attach {family} policy 1 e0"));
        assert_eq!(way(&mut router, packet), ["e2"]);
        router.cli("set interface state e2 down");
        assert_eq!(way(&mut router, packet), ["e3"]);
        router.cli("set interface state e3 down");
        assert_eq!(way(&mut router, packet), ["e1"], "no path is left: the routes decide");
        router.cli("set interface state e2 up");
        router.cli("set interface state e3 up");
        router.cli(&format!("abf attach {family} del policy 1 e0"));
        // A next hop that is looked up.
        router.cli(&format!("abf policy add id 2 via {far}"));
        router.cli(&format!("abf attach {family} policy 2 e0"));
        router.cli(&format!("ip route add {host} via {next3} e3"));
        router.cli(&format!("ip neighbor e3 {next3} 02:00:00:00:00:03"));
        assert_eq!(way(&mut router, packet), ["e3"]);
        router.cli(&format!("ip route add {host} via {near} e2 preference 0"));
        router.cli(&format!("ip route del {host} via {next3} e3"));
        router.cli(&format!("ip neighbor e2 {near} 02:00:00:00:00:02"));
        assert_eq!(way(&mut router, packet), ["e2"]);
    }
}

#[test]
fn a_policy_that_says_drop_drops_at_once_or_when_it_cannot_send() {
    let mut router = router();
    router.cli("abf policy add id 1 match dport 80 via drop");
    router.cli("abf policy add id 2 match dport 81 drop-if-unusable via 10.0.2.2 e2");
    router.cli("abf attach ip4 policy 1 e0");
    router.cli("abf attach ip4 policy 2 priority 1 e0");
    let to = |port| Packet { ports: (1000, port), ..PLAIN };
    assert!(way(&mut router, to(80)).is_empty());
    assert_eq!(way(&mut router, to(81)), ["e2"]);
    router.cli("set interface state e2 down");
    assert!(way(&mut router, to(81)).is_empty());
    assert_eq!(way(&mut router, to(82)), ["e1"]);
    assert_eq!(router.count("abf-input-ip4", "policy-drops"), 2);
}

#[test]
fn what_is_for_the_router_itself_is_not_sent_elsewhere() {
    let mut router = router();
    router.cli("abf policy add id 1 via 10.0.2.2 e2");
    router.cli("abf policy add id 2 via 2001:db8:2::2 e2");
    router.cli("abf attach ip4 policy 1 e0");
    router.cli("abf attach ip6 policy 2 e0");
    // Port unreachable comes back by e0.
    let source = "10.0.0.2";
    let out = way(&mut router, Packet { source, destination: "10.0.3.1", ..PLAIN });
    assert_eq!(out, ["e0"], "{}", router.cli("show errors"));
    let source = "2001:db8:0::2";
    let unknown = Packet { source, destination: "2001:db8:3::1", protocol: 200, ..PLAIN6 };
    assert_eq!(way(&mut router, unknown), ["e0"], "parameter problem");
    assert_eq!(
        router.count("abf-input-ip4", "matched") + router.count("abf-input-ip6", "matched"),
        0
    );
}

#[test]
fn a_policy_can_look_up_in_another_table() {
    let mut router = router();
    router.cli("ip table add 10");
    router.cli("ip route add 0.0.0.0/0 table 10 via 10.0.3.2 e3");
    router.cli("abf policy add id 1 match src 198.51.100.0/24 via ip4-lookup-in-table 10");
    router.cli("abf attach ip4 policy 1 e0");
    assert_eq!(way(&mut router, PLAIN), ["e3"]);
    assert!(router.refused("ip table del 10").contains("in use"));
    router.cli("abf attach ip4 del policy 1 e0");
    router.cli("abf policy del id 1");
    router.cli("ip table del 10");
}

#[test]
fn flows_share_the_paths_of_a_policy() {
    let mut router = router();
    router.cli("abf policy add id 1 via 10.0.2.2 e2 via 10.0.3.2 e3");
    router.cli("abf attach ip4 policy 1 e0");
    let mut seen = [0, 0];
    for port in 0..64 {
        let out = way(&mut router, Packet { ports: (port, 80), ..PLAIN });
        seen[usize::from(out == ["e2"])] += 1;
        assert_eq!(
            way(&mut router, Packet { ports: (port, 80), ..PLAIN }),
            out,
            "a flow stays on its path"
        );
    }
    assert!(seen.iter().all(|count| *count > 16), "{seen:?}");
}

fn config(router: &mut Router) -> Vec<String> {
    let text = router.cli("show running-config");
    text.lines().filter(|line| line.starts_with("abf")).map(str::to_owned).collect()
}

#[test]
fn policies_are_written_down_and_shown() {
    let mut router = router();
    for line in [
        "abf policy add id 1 match src 198.51.100.0/24 dst 203.0.113.0/24 proto tcp sport 1-2 \
         dport 80 dscp 46 via 10.0.2.2 e2 weight 3 via 10.0.3.2",
        "abf policy add id 2 drop-if-unusable via 10.0.2.2 e2 preference 1",
        "abf policy add id 3 match proto 89 via drop",
        "abf policy add id 4 match dst 2001:db8:f::/48 via 2001:db8:2::2",
        "abf policy add id 5 match dscp 0",
        "abf attach ip4 policy 1 priority 10 e0",
        "abf attach ip4 policy 2 e0",
        "abf attach ip6 policy 4 priority 7 e1",
    ] {
        router.cli(line);
    }
    let before = config(&mut router);
    assert_eq!(before.len(), 8, "{before:#?}");
    let mut again = self::router();
    again.script("again", &before.join("\n")).expect("what it wrote itself");
    assert_eq!(config(&mut again), before);
    let shown = router.json("show abf policy");
    assert_eq!(
        shown[0]["match"],
        "src 198.51.100.0/24 dst 203.0.113.0/24 proto tcp sport 1-2 dport 80 dscp 46"
    );
    let used = |family: &str| serde_json::json!({ "family": family, "usable": true });
    assert_eq!(shown[0]["attached"], serde_json::json!([used("ip4")]));
    assert_eq!(shown[2]["attached"], serde_json::json!([]));
    assert_eq!(
        (&shown[0]["drop_if_unusable"], &shown[1]["drop_if_unusable"]),
        (&false.into(), &true.into())
    );
    let state = |router: &mut Router, id: u32| router.cli(&format!("show abf policy {id}"));
    assert!(state(&mut router, 1).contains("in use"));
    assert!(state(&mut router, 3).contains("not attached"));
    let attached = router.json("show abf attach e0");
    let order: Vec<_> =
        attached.as_array().unwrap().iter().map(|row| row["policy"].as_u64().unwrap()).collect();
    assert_eq!(order, [2, 1]);
}

#[test]
fn an_interface_that_goes_takes_its_attachments_and_paths() {
    let mut router = router();
    router.cli("abf policy add id 1 via 10.0.2.2 e2 via 10.0.3.2 e3");
    router.cli("abf policy add id 2 drop-if-unusable via 10.0.2.2 e2");
    router.cli("abf attach ip4 policy 1 e0");
    router.cli("abf attach ip4 policy 2 e2");
    let e2 = router.id("e2");
    router.engine().delete_interface(e2).expect("it is there");
    assert_eq!(way(&mut router, PLAIN), ["e3"]);
    let lines = config(&mut router);
    assert_eq!(
        lines,
        [
            "abf policy add id 1 via 10.0.3.2 e3",
            "abf policy add id 2 drop-if-unusable",
            "abf attach ip4 policy 1 priority 0 e0"
        ]
    );
    router.cli("abf attach ip4 policy 2 priority 1 e0");
    assert_eq!(way(&mut router, PLAIN), ["e3"]);
    router.cli("abf attach ip4 del policy 1 e0");
    assert!(way(&mut router, PLAIN).is_empty(), "it drops when it cannot send");
}

#[test]
fn a_refusal_names_what_is_wrong_and_changes_nothing() {
    let mut router = router();
    router.cli("abf policy add id 1 match dst 203.0.113.0/24 via 10.0.2.2 e2");
    router.cli("abf attach ip4 policy 1 e0");
    let before = router.cli("show running-config");
    for (line, says) in [
        ("abf policy add id 1 match dst 203.0.114.0/24 via drop", "abf policy del id 1"),
        ("abf policy del id 1 via 10.0.2.2 e2", "no path left"),
        ("abf policy del id 1 via 10.0.3.2 e3", "no such path"),
        (
            "abf policy add id 2 match src 198.51.100.1/24 via drop",
            "198.51.100.0/24 would be right",
        ),
        (
            "abf policy add id 2 match src 198.51.100.0/24 dst 2001:db8::/32 via drop",
            "two families",
        ),
        ("abf policy add id 2 match sport 9-1 via drop", "no range of ports"),
        ("abf policy add id 2 match sport banana via drop", "no range of ports"),
        ("abf policy add id 2 match proto icmp dport 1 via drop", "no ports"),
        ("abf policy add id 2 match dscp 64 via drop", "63"),
        ("abf policy add id 2 via 224.0.0.1", "policy 2: 224.0.0.1"),
        ("abf policy add id 2 via 10.0.2.2 e9", "e9"),
        ("abf policy add id 2 via e2", "interface e2 has neighbours"),
        ("abf policy add id 2 via ip4-lookup-in-table 9", "ip table add 9"),
        ("abf policy add id 2 via 10.0.2.2 e2 next-hop-table 0", "looked up in no table"),
        ("abf policy del id 7", "no policy 7"),
        ("abf policy del id 1", "attached to interface e0"),
        ("abf attach ip4 policy 7 e0", "no policy 7"),
        ("abf attach ip6 policy 1 e0", "other family"),
        ("abf attach ip4 policy 1 e0", "already"),
        ("abf attach ip4 del policy 1 e1", "not attached"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(says), "`{line}`: {refusal}");
    }
    assert_eq!(router.cli("show running-config"), before);
}

/// Packets and bytes of a policy, as `show abf policy` tells them.
fn counted(router: &mut Router, policy: u32) -> (u64, u64) {
    let shown = router.json(&format!("show abf policy {policy}"));
    (shown[0]["packets"].as_u64().unwrap(), shown[0]["bytes"].as_u64().unwrap())
}

#[test]
fn each_policy_counts_what_it_has_sent_or_dropped_wherever_it_is_attached() {
    let mut router = router();
    router.cli("abf policy add id 1 match dport 80 via 10.0.2.2 e2");
    router.cli("abf policy add id 2 match dport 81 via drop");
    router.cli("abf policy add id 3 match dport 82 via 10.9.9.9 next-hop-table 0");
    router.cli("abf policy add id 4 match dport 80 via 2001:db8:2::2 e2");
    for line in [
        "ip4 policy 1 e0",
        "ip4 policy 2 e0",
        "ip4 policy 3 e0",
        "ip4 policy 1 e3",
        "ip6 policy 4 e0",
    ] {
        router.cli(&format!("abf attach {line}"));
    }
    router.cli("ip route add 10.9.9.9/32 via drop");
    for port in [80, 80, 81, 82] {
        way(&mut router, Packet { ports: (1000, port), ..PLAIN });
    }
    way(&mut router, PLAIN6);
    let mut on_e3 = PLAIN.frame();
    on_e3[5] = 3;
    router.send("e3", &on_e3);
    assert_eq!(router.sent("e2").len(), 1);
    assert_eq!(counted(&mut router, 1), (3, 96));
    assert_eq!(counted(&mut router, 2), (1, 32));
    assert_eq!(counted(&mut router, 3), (0, 0), "passed over");
    assert_eq!(counted(&mut router, 4), (1, 52));
    // A policy keeps its counts while it is attached elsewhere.
    router.cli("abf attach ip4 del policy 1 e0");
    assert_eq!(counted(&mut router, 1), (3, 96));
}

#[test]
fn what_waits_for_a_policys_neighbour_goes_to_it_and_not_by_the_routes() {
    let mut router = router();
    router.cli("abf policy add id 1 via 10.0.2.9 e2");
    router.cli("abf policy add id 2 via 2001:db8:2::9 e2");
    router.cli("abf attach ip4 policy 1 e0");
    router.cli("abf attach ip6 policy 2 e0");
    for packet in [PLAIN, PLAIN6] {
        router.send("e0", &packet.frame());
        assert_eq!(router.sent("e2").len(), 1, "a question");
    }
    router.cli("ip neighbor e2 10.0.2.9 02:00:00:00:00:29");
    router.cli("ip neighbor e2 2001:db8:2::9 02:00:00:00:00:29");
    router.run();
    let arrived = router.sent("e2");
    assert_eq!(arrived.len(), 2);
    assert!(arrived.iter().all(|frame| frame[..6] == [2, 0, 0, 0, 0, 0x29]));
    assert!(router.sent("e1").is_empty());
    assert!(router.dropped().is_empty(), "{:?}", router.dropped());
}

#[test]
fn a_policy_on_many_interfaces_follows_on_all_of_them() {
    let mut router = router();
    router.cli("abf policy add id 1 via 10.0.2.2 e2 via 10.0.3.2 e3 preference 1");
    router.cli("abf attach ip4 policy 1 e0");
    router.cli("abf attach ip4 policy 1 e1");
    let e2 = router.id("e2");
    router.engine().delete_interface(e2).expect("it is there");
    assert_eq!(way(&mut router, PLAIN), ["e3"]);
    let mut on_e1 = PLAIN.frame();
    on_e1[5] = 1;
    router.send("e1", &on_e1);
    assert_eq!(router.sent("e3").len(), 1);
    for port in ["e0", "e1"] {
        router.cli(&format!("abf attach ip4 del policy 1 {port}"));
    }
    router.cli("abf policy del id 1");
    assert_eq!(way(&mut router, PLAIN), ["e1"]);
}
