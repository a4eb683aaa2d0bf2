//! What a provider configures: limits, port blocks, pooling, quarantine, mapping behaviour.

use std::net::Ipv4Addr;
use std::time::Duration;

use quiver_testkit::frames::ip4;
use quiver_testkit::{Router, Settings};
use serde_json::Value;

use crate::sessions::{
    HOST, POOL, REMOTE, TCP, UDP, from_inside, router_with, sessions, tcp, udp, whole,
};

const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
const STRANGER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);

fn router(lines: &str) -> Router {
    let mut router = router_with(Settings::default(), 1000);
    router.script("provider", lines).expect("a good configuration");
    router
}

/// Send from a host inside to any host outside; the source that comes out.
fn to(
    router: &mut Router,
    host: Ipv4Addr,
    remote: Ipv4Addr,
    ports: (u16, u16),
) -> Option<(Ipv4Addr, u16)> {
    router.send("e0", &ip4(0, (host, remote), UDP, whole(), &udp(ports.0, ports.1)));
    let frame = router.sent("e1").pop()?;
    let address: [u8; 4] = frame[26..30].try_into().expect("four bytes");
    Some((address.into(), u16::from_be_bytes([frame[34], frame[35]])))
}

/// Send from outside to a port of the pool; the address and port inside that it comes to.
fn back(
    router: &mut Router,
    remote: Ipv4Addr,
    source_port: u16,
    port: u16,
) -> Option<(Ipv4Addr, u16)> {
    router.send("e1", &ip4(1, (remote, POOL), UDP, whole(), &udp(source_port, port)));
    let frame = router.sent("e0").pop()?;
    let address: [u8; 4] = frame[30..34].try_into().expect("four bytes");
    Some((address.into(), u16::from_be_bytes([frame[36], frame[37]])))
}

fn rows(router: &mut Router, show: &str) -> Vec<Value> {
    let shown = router.json(show);
    shown.as_array().unwrap_or_else(|| panic!("{shown}")).clone()
}

fn count(router: &Router, reason: &str) -> u64 {
    router.count("nat44-ed-slowpath", reason)
}

/// The sender of a refused packet gets "host unreachable" (RFC 6888 REQ-11).
fn is_answered(router: &mut Router) -> bool {
    router.sent("e0").pop().is_some_and(|frame| (frame[23], frame[34], frame[35]) == (1, 3, 1))
}

#[test]
fn a_host_over_its_sessions_is_refused_and_answered_and_others_are_not() {
    let mut router = router("nat44 subscriber-limits sessions 3");
    for port in 0..3 {
        assert!(from_inside(&mut router, HOST, UDP, &udp(4000 + port, 53)).is_some());
    }
    assert_eq!(from_inside(&mut router, HOST, UDP, &udp(5000, 53)), None);
    assert!(is_answered(&mut router));
    assert_eq!(count(&router, "subscriber-limit"), 1);
    assert!(from_inside(&mut router, HOST, UDP, &udp(4001, 53)).is_some(), "those that live stay");
    assert!(from_inside(&mut router, OTHER, UDP, &udp(4000, 53)).is_some());
    let shown = rows(&mut router, "show nat44 subscribers inside 10.0.0.2");
    assert_eq!(shown[0]["sessions"], 3);
    // One ends: there is place for one.
    router.cli("nat44 del session in 10.0.0.2 4000 udp");
    assert!(from_inside(&mut router, HOST, UDP, &udp(5000, 53)).is_some());
    assert!(from_inside(&mut router, HOST, UDP, &udp(5001, 53)).is_none());
    // When all have expired the host is forgotten.
    router.advance(Duration::from_secs(330));
    assert_eq!(sessions(&mut router), 0);
    assert_eq!(rows(&mut router, "show nat44 subscribers").len(), 0);
}

#[test]
fn a_scan_costs_its_own_host_alone_by_the_rate_of_new_sessions() {
    let mut router = router("nat44 subscriber-limits rate 10");
    let made =
        (0..100).filter(|n| from_inside(&mut router, HOST, UDP, &udp(4000 + n, 9)).is_some());
    assert_eq!(made.count(), 10, "those of one second at once");
    assert_eq!(count(&router, "subscriber-limit"), 90);
    assert!(from_inside(&mut router, OTHER, UDP, &udp(4000, 9)).is_some());
    router.advance(Duration::from_millis(500));
    router.sent("e0");
    let made =
        (0..100).filter(|n| from_inside(&mut router, HOST, UDP, &udp(5000 + n, 9)).is_some());
    assert_eq!(made.count(), 5);
}

#[test]
fn the_hosts_of_a_table_have_so_many_sessions_together() {
    let mut router = router("set nat44 session limit 4");
    let hosts = (2..10).map(|last| Ipv4Addr::new(10, 0, 0, last));
    let made: Vec<bool> =
        hosts.map(|host| from_inside(&mut router, host, UDP, &udp(4000, 53)).is_some()).collect();
    assert_eq!(made, [true, true, true, true, false, false, false, false]);
    assert_eq!(count(&router, "maximum-sessions-exceeded"), 4);
    router.cli("set nat44 session limit 0");
    assert!(from_inside(&mut router, Ipv4Addr::new(10, 0, 0, 9), UDP, &udp(4000, 53)).is_some());
}

#[test]
fn hosts_get_ports_by_blocks_and_both_sides_say_whose_they_are() {
    let mut router = router(
        "nat44 port-blocks size 64 max-blocks 2 block-timeout 20
        set nat timeout udp 10",
    );
    let mut ports = Vec::new();
    for number in 0..128 {
        let (address, port) =
            from_inside(&mut router, HOST, UDP, &udp(4000 + number, 53)).expect("a port");
        assert_eq!(address, POOL);
        ports.push(port);
    }
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 128, "each port once for a destination");
    let blocks = rows(&mut router, "show nat44 blocks inside 10.0.0.2");
    assert_eq!(blocks.len(), 2);
    for block in &blocks {
        let number = |key: &str| block[key].as_u64().expect("a number") as u16;
        let inside = (number("first_port")..=number("last_port"))
            .filter(|port| ports.binary_search(port).is_ok());
        assert_eq!((inside.count(), block["used"].as_u64()), (64, Some(64)));
    }
    // A third block is one too many; another host has its own.
    assert!(from_inside(&mut router, HOST, UDP, &udp(9000, 53)).is_none());
    assert!(is_answered(&mut router));
    assert_eq!(count(&router, "subscriber-limit"), 1);
    let (_, port) = from_inside(&mut router, OTHER, UDP, &udp(4000, 53)).expect("a port");
    assert!(ports.binary_search(&port).is_err());
    let who = rows(&mut router, &format!("show nat44 blocks outside 192.0.2.1 {port}"));
    assert_eq!((who.len(), who[0]["inside"].as_str()), (1, Some("10.0.0.3")));
    // Another destination uses the same ports again.
    assert!(from_inside(&mut router, HOST, UDP, &udp(9000, 54)).is_some());
    // The size is changed while nobody uses a block.
    let refused = router.refused("nat44 port-blocks size 128");
    assert!(refused.contains("sessions use 3 port blocks"), "{refused}");
    let refused = router.refused("nat44 port-blocks size 1000");
    assert!(refused.contains("do not divide") && refused.contains("896 or 1008"), "{refused}");
    router.advance(Duration::from_secs(25));
    assert_eq!(sessions(&mut router), 0);
    assert_eq!(rows(&mut router, "show nat44 blocks").len(), 3, "they wait for their timeout");
    router.advance(Duration::from_secs(40));
    assert_eq!(rows(&mut router, "show nat44 blocks").len(), 0);
    router.cli("nat44 port-blocks size 128");
}

#[test]
fn a_mapping_is_the_same_for_every_destination() {
    let mut router = router("nat44 mapping endpoint-independent filtering any");
    let first = to(&mut router, HOST, REMOTE, (4000, 53)).expect("mapped");
    assert_eq!(first, (POOL, 4000));
    assert_eq!(to(&mut router, HOST, REMOTE, (4000, 54)), Some(first));
    assert_eq!(to(&mut router, HOST, STRANGER, (4000, 99)), Some(first));
    // The port is nobody else's, whatever the destination.
    let other = to(&mut router, OTHER, STRANGER, (4000, 1)).expect("mapped");
    assert_ne!(other.1, 4000);
    let shown = rows(&mut router, "show nat44 mappings inside 10.0.0.2");
    assert_eq!((shown.len(), shown[0]["sessions"].as_u64()), (1, Some(3)));
    // Anybody may send to it.
    assert_eq!(back(&mut router, Ipv4Addr::new(203, 0, 113, 77), 7, 4000), Some((HOST, 4000)));
    assert_eq!(back(&mut router, REMOTE, 7, 4001), None, "no mapping");
    // Hosts inside reach one another by their mappings (RFC 4787 REQ-9).
    router.send("e0", &ip4(0, (OTHER, POOL), UDP, whole(), &udp(4000, 4000)));
    let frame = router.sent("e0").pop().expect("turned round");
    assert_eq!(&frame[26..30], &POOL.octets());
    assert_eq!(&frame[30..34], &HOST.octets());
    assert_eq!(u16::from_be_bytes([frame[34], frame[35]]), other.1, "by its own mapping");
    // Mappings end with their sessions.
    router.advance(Duration::from_secs(330));
    assert_eq!(rows(&mut router, "show nat44 mappings").len(), 0);
    assert_eq!(back(&mut router, STRANGER, 7, 4000), None);
}

#[test]
fn filtering_says_who_may_send_to_a_mapping() {
    for (word, stranger, other_port) in
        [("any", true, true), ("address", false, true), ("address-and-port", false, false)]
    {
        let mut router = router(&format!("nat44 mapping endpoint-independent filtering {word}"));
        to(&mut router, HOST, REMOTE, (4000, 53)).expect("mapped");
        assert!(back(&mut router, REMOTE, 53, 4000).is_some());
        assert_eq!(back(&mut router, STRANGER, 53, 4000).is_some(), stranger, "{word}");
        assert_eq!(back(&mut router, REMOTE, 54, 4000).is_some(), other_port, "{word}");
    }
}

#[test]
fn a_port_rests_before_another_host_gets_it() {
    for mapping in ["endpoint-dependent", "endpoint-independent"] {
        let lines = format!("nat44 mapping {mapping}\nnat44 port-reuse-timeout 120");
        let mut router = router(&lines);
        assert_eq!(to(&mut router, HOST, REMOTE, (4000, 53)), Some((POOL, 4000)));
        router.cli("nat44 del session in 10.0.0.2 4000 udp");
        assert_eq!(sessions(&mut router), 0);
        let other = to(&mut router, OTHER, REMOTE, (4000, 53)).expect("a port");
        assert_ne!(other.1, 4000, "{mapping}");
        assert_eq!(to(&mut router, HOST, REMOTE, (4000, 53)), Some((POOL, 4000)), "its own");
        router.cli("nat44 del session in 10.0.0.2 4000 udp");
        router.advance(Duration::from_secs(100));
        router.cli("nat44 del session in 10.0.0.3 4000 udp");
        router.advance(Duration::from_secs(21));
        let third = Ipv4Addr::new(10, 0, 0, 4);
        assert_eq!(to(&mut router, third, REMOTE, (4000, 53)), Some((POOL, 4000)), "{mapping}");
    }
}

#[test]
fn a_connection_that_was_seen_to_end_leaves_its_port_at_once() {
    let mut router = router("nat44 port-reuse-timeout 120");
    let open = |router: &mut Router, host| from_inside(router, host, TCP, &tcp(4000, 80, 2));
    assert_eq!(open(&mut router, HOST), Some((POOL, 4000)));
    from_inside(&mut router, HOST, TCP, &tcp(4000, 80, 0x11));
    router.send("e1", &ip4(1, (REMOTE, POOL), TCP, whole(), &tcp(80, 4000, 0x11)));
    router.cli("clear nat44 sessions");
    assert_eq!(open(&mut router, OTHER), Some((POOL, 4000)));
}

#[test]
fn a_paired_host_has_one_address_alone() {
    let lines = "nat44 add address 192.0.2.2 - 192.0.2.8\nnat44 port-blocks size 64 max-blocks 64";
    let mut router = router(&format!("{lines}\nnat44 address-pooling paired"));
    let (address, _) = to(&mut router, HOST, REMOTE, (4000, 53)).expect("mapped");
    // The pool changes; the host stays.
    router.cli("nat44 add address 192.0.2.100 - 192.0.2.200");
    for port in 4001..4100 {
        let (again, _) = to(&mut router, HOST, REMOTE, (port, 53)).expect("mapped");
        assert_eq!(again, address);
    }
    let shown = rows(&mut router, "show nat44 subscribers");
    assert_eq!(shown[0]["paired_with"], address.to_string());
    let used = |router: &mut Router| -> std::collections::BTreeSet<Ipv4Addr> {
        let hosts = (10..60).map(|last| Ipv4Addr::new(10, 0, 0, last));
        hosts.map(|host| to(router, host, REMOTE, (4000, 53)).expect("mapped").0).collect()
    };
    assert!(used(&mut router).len() > 5, "hosts are spread over the pool");
}

#[test]
fn an_excluded_destination_sees_the_host_itself() {
    let mut router = router("nat44 exclude 203.0.113.2/32");
    assert_eq!(to(&mut router, HOST, STRANGER, (4000, 53)), Some((HOST, 4000)));
    assert_eq!(to(&mut router, HOST, REMOTE, (4000, 53)), Some((POOL, 4000)));
    let refused = router.refused("nat44 exclude 203.0.113.2/24");
    assert!(refused.contains("203.0.113.0/24 would be right"), "{refused}");
    router.cli("nat44 exclude 203.0.113.2/32 del");
    assert_eq!(to(&mut router, HOST, STRANGER, (4000, 53)), Some((POOL, 4000)));
}

#[test]
fn settings_go_with_the_plugin_and_come_back_with_the_configuration() {
    let lines = "set nat44 session limit 500 vrf 0
        nat44 subscriber-limits sessions 100 ports 50 rate 7
        nat44 port-blocks size 256 max-blocks 2 block-timeout 60
        nat44 address-pooling paired
        nat44 port-reuse-timeout 30
        nat44 mapping endpoint-independent filtering address
        nat44 exclude 198.51.100.0/24
        nat44 vrf table add 0
        nat44 vrf route add table 0 0";
    let mut router = router(lines);
    let config = router.cli("show running-config");
    for line in lines.lines() {
        assert!(config.contains(line.trim()), "{line}: {config}");
    }
    assert!(to(&mut router, HOST, REMOTE, (4000, 53)).is_some());
    router.cli("nat44 plugin disable");
    router.cli("nat44 plugin enable sessions 10 bindings 64");
    router.cli("nat44 add address 192.0.2.1");
    router.cli("set interface nat44 in e0 out e1");
    assert_eq!(rows(&mut router, "show nat44 blocks").len(), 0);
    router.cli("nat44 port-blocks size 64");
    assert!(to(&mut router, HOST, REMOTE, (4000, 53)).is_some());
    assert_eq!(rows(&mut router, "show nat44 blocks").len(), 1);
}

/// No binding left: the new session is refused and answered, those that live go on.
#[test]
fn more_bindings_than_enabled_are_refused_and_answered() {
    let mut router = router_with(Settings::default(), 1000);
    router.cli("nat44 plugin disable");
    let lines = "nat44 plugin enable sessions 1000 bindings 4
        nat44 add address 192.0.2.1
        set interface nat44 in e0 out e1
        nat44 mapping endpoint-independent";
    router.script("few", lines).expect("a good configuration");
    router.run();
    router.sent("e0");
    for port in 0..3 {
        assert!(to(&mut router, HOST, REMOTE, (4000 + port, 53)).is_some());
    }
    assert!(to(&mut router, HOST, REMOTE, (5000, 53)).is_none());
    assert!(is_answered(&mut router));
    assert_eq!(count(&router, "bindings-exceeded"), 1);
    assert!(to(&mut router, HOST, REMOTE, (4002, 99)).is_some(), "a known mapping needs none");
}

#[test]
fn mappings_take_their_ports_of_blocks() {
    let mut router = router(
        "nat44 port-blocks size 64 max-blocks 1 block-timeout 0
        nat44 mapping endpoint-independent
        nat44 subscriber-limits ports 3",
    );
    for remote_port in 0..5 {
        assert!(to(&mut router, HOST, REMOTE, (4000, 50 + remote_port)).is_some());
    }
    let block = rows(&mut router, "show nat44 blocks")[0].clone();
    assert_eq!(block["used"], 1, "one port for five sessions");
    assert!(to(&mut router, HOST, REMOTE, (4001, 53)).is_some());
    assert!(to(&mut router, HOST, REMOTE, (4002, 53)).is_some());
    assert!(to(&mut router, HOST, REMOTE, (4003, 53)).is_none());
    assert_eq!(count(&router, "subscriber-limit"), 1);
    router.cli("clear nat44 sessions");
    assert_eq!(rows(&mut router, "show nat44 mappings").len(), 0);
    assert_eq!(rows(&mut router, "show nat44 blocks").len(), 0);
    assert!(to(&mut router, HOST, REMOTE, (4003, 53)).is_some());
}

/// A sequence of numbers that looks random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// Whatever hosts do under whatever settings, what they used is free when they have gone, and each
/// external end belongs to one host at a time.
#[test]
fn nothing_is_left_when_all_sessions_have_expired() {
    let mut numbers = Numbers(5);
    for round in 0..16 {
        let choose = |on: bool, line: &'static str| if on { line } else { "" };
        let lines = [
            "nat44 subscriber-limits sessions 40 rate 1000",
            choose(round & 1 != 0, "nat44 port-blocks size 64 max-blocks 2 block-timeout 15"),
            choose(round & 2 != 0, "nat44 mapping endpoint-independent filtering address"),
            choose(round & 4 != 0, "nat44 port-reuse-timeout 20"),
            choose(round & 8 != 0, "nat44 address-pooling paired"),
            "set nat timeout udp 30",
        ];
        let mut router = router(&lines.join("\n"));
        let mut owners: std::collections::HashMap<(u16, u16), Ipv4Addr> = Default::default();
        for _ in 0..400 {
            let host = Ipv4Addr::new(10, 0, 0, 2 + numbers.below(4) as u8);
            let remote_port = 50 + numbers.below(8) as u16;
            let local_port = 4000 + numbers.below(16) as u16;
            match numbers.below(20) {
                0 => router.advance(Duration::from_secs(1 + numbers.below(40))),
                1 => drop(router.execute(&format!("nat44 del session in {host} {local_port} udp"))),
                2..8 => drop(back(&mut router, STRANGER, remote_port, local_port)),
                _ => drop(to(&mut router, host, REMOTE, (local_port, remote_port))),
            }
            router.sent("e0");
        }
        for row in rows(&mut router, "show nat44 sessions") {
            let port = |key: &str| -> u16 {
                let text = row[key].as_str().expect("an end");
                text.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
            };
            let local = row["local"].as_str().expect("an end").split(':').next();
            let host: Ipv4Addr = local.and_then(|host| host.parse().ok()).expect("an address");
            let remote_port = if round & 3 != 0 { 0 } else { port("remote") };
            let owner = owners.entry((port("external"), remote_port)).or_insert(host);
            assert_eq!(*owner, host, "round {round}: {row}");
        }
        router.advance(Duration::from_secs(40));
        assert_eq!(sessions(&mut router), 0, "round {round}");
        router.advance(Duration::from_secs(70));
        for show in ["mappings", "blocks", "subscribers"] {
            let left = rows(&mut router, &format!("show nat44 {show}"));
            assert!(left.is_empty(), "round {round}: {show} {left:?}");
        }
    }
}
