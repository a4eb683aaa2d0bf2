//! Sessions over time: made, refreshed, over, refused, ended by commands; on two workers.

use std::net::Ipv4Addr;
use std::time::Duration;

use quiver_testkit::configuration::running;
use quiver_testkit::frames::{Fragment, ip4};
use quiver_testkit::{Register, Router, Settings};

pub const FEATURES: [Register; 4] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_det44::register,
];
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const REMOTE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 0);
/// Ports of a host: 1,024 share an address.
const PORTS: u16 = 63;
const UDP: u8 = 17;
const TCP: u8 = 6;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

fn router_with(settings: Settings) -> Router {
    let mut router = Router::with(settings, &FEATURES);
    let lines = "create test interface e0 rx-queues 2
        create test interface e1 rx-queues 2
        set interface state e0 up
        set interface state e1 up
        set interface ip address e0 10.0.0.1/8
        set interface ip address e1 198.51.100.1/24
        ip neighbor e0 10.0.0.2 02:00:00:00:00:00 static
        ip neighbor e0 10.0.0.3 02:00:00:00:00:00 static
        ip neighbor e1 198.51.100.2 02:00:00:00:00:01 static
        ip route add 0.0.0.0/0 via 198.51.100.2
        det44 plugin enable
        det44 add in 10.0.0.0/16 out 192.0.2.0/26
        set interface det44 inside e0 outside e1";
    router.script("setup", lines).expect("a good configuration");
    router.run();
    router.sent("e0");
    router.sent("e1");
    router
}

fn router() -> Router {
    router_with(Settings::default())
}

fn whole() -> Fragment {
    Fragment { identification: 1, offset_bytes: 0, more: false }
}

fn udp(source: u16, destination: u16) -> Vec<u8> {
    let [a, b] = source.to_be_bytes();
    let [c, d] = destination.to_be_bytes();
    vec![a, b, c, d, 0, 8, 0, 0]
}

fn tcp(source: u16, destination: u16, flags: u8) -> Vec<u8> {
    let mut header = udp(source, destination)[..4].to_vec();
    header.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
    header
}

/// Send from a host inside; the outside port that comes out, if anything does.
fn from_inside(router: &mut Router, host: Ipv4Addr, protocol: u8, upper: &[u8]) -> Option<u16> {
    router.send("e0", &ip4(0, (host, REMOTE), protocol, whole(), upper));
    let sent = router.sent("e1");
    let frame = sent.first()?;
    assert_eq!(frame[26..30], OUTSIDE.octets());
    Some(u16::from_be_bytes([frame[34], frame[35]]))
}

/// Send from outside; does it come out inside?
fn from_outside(router: &mut Router, protocol: u8, upper: &[u8]) -> bool {
    router.send("e1", &ip4(1, (REMOTE, OUTSIDE), protocol, whole(), upper));
    !router.sent("e0").is_empty()
}

fn sessions(router: &mut Router) -> usize {
    router.json("show det44 sessions").as_array().map_or(0, Vec::len)
}

#[test]
fn a_host_gets_all_of_its_ports_and_no_other() {
    let mut router = router();
    let mut ports: Vec<u16> = (0..PORTS)
        .map(|source| from_inside(&mut router, HOST, UDP, &udp(7_000 + source, 53)).unwrap())
        .collect();
    ports.sort_unstable();
    let first = 1_024 + 2 * PORTS;
    assert_eq!(ports, (first..first + PORTS).collect::<Vec<_>>());
    assert_eq!(sessions(&mut router), usize::from(PORTS));
    assert_eq!(from_inside(&mut router, HOST, UDP, &udp(8_000, 53)), None);
    assert_eq!(router.count("det44-in2out", "out-of-ports"), 1);
    // The live ones go on, and another host has ports.
    assert!(from_inside(&mut router, HOST, UDP, &udp(7_000, 53)).is_some());
    assert!(from_inside(&mut router, Ipv4Addr::new(10, 0, 0, 3), UDP, &udp(7_000, 53)).is_some());
    for port in ports {
        assert!(from_outside(&mut router, UDP, &udp(53, port)));
    }
    let forward = router.json("det44 forward 10.0.0.2");
    assert_eq!(forward["first_port"], first);
    let reverse = router.json(&format!("det44 reverse 192.0.2.0 {first}"));
    assert_eq!(reverse["inside"], "10.0.0.2");
}

/// The sessions of `show det44 summary`, of the only mapping, and of how many.
fn counted(router: &mut Router) -> (u64, u64, u64) {
    let summary = router.json("show det44 summary");
    let mappings = router.json("show det44 mappings");
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    assert_eq!(mappings.as_array().map(Vec::len), Some(1));
    assert_eq!(summary["sessions_at_most"], mappings[0]["sessions_max"]);
    let max = number(&summary["sessions_at_most"]);
    (number(&summary["sessions"]), number(&mappings[0]["sessions"]), max)
}

#[test]
fn sessions_in_use_are_counted() {
    let mut router = router();
    let max = 64 * 1_024 * u64::from(PORTS);
    assert_eq!(counted(&mut router), (0, 0, max));
    for source in 0..3 {
        from_inside(&mut router, HOST, UDP, &udp(source, 53)).expect("sent");
    }
    from_inside(&mut router, HOST, TCP, &tcp(7, 80, SYN)).expect("sent");
    assert_eq!(counted(&mut router), (4, 4, max));
    router.advance(Duration::from_secs(241));
    assert_eq!(counted(&mut router), (3, 3, max), "the half-open connection is over");
    router.cli("det44 add in 10.0.0.0/16 out 192.0.2.0/26 del");
    router.cli("det44 add in 10.0.0.0/16 out 192.0.2.0/26");
    assert_eq!(counted(&mut router), (0, 0, max));
}

#[test]
fn sessions_last_as_long_as_packets_come() {
    let mut router = router();
    let port = from_inside(&mut router, HOST, UDP, &udp(7, 53)).unwrap();
    router.advance(Duration::from_secs(200));
    assert_eq!(from_inside(&mut router, HOST, UDP, &udp(7, 53)), Some(port));
    router.advance(Duration::from_secs(200));
    // What comes from outside refreshes UDP not (RFC 4787 REQ-6).
    assert!(from_outside(&mut router, UDP, &udp(53, port)));
    router.advance(Duration::from_secs(101));
    assert!(!from_outside(&mut router, UDP, &udp(53, port)));
    assert_eq!(sessions(&mut router), 0);
}

#[test]
fn a_connection_lasts_longer_once_it_is_established_and_ends_with_a_reset() {
    let mut router = router();
    let port = from_inside(&mut router, HOST, TCP, &tcp(7, 80, SYN)).unwrap();
    assert!(from_outside(&mut router, TCP, &tcp(80, port, SYN | ACK)));
    assert_eq!(from_inside(&mut router, HOST, TCP, &tcp(7, 80, ACK)), Some(port));
    assert_eq!(router.json("show det44 sessions")[0]["state"], "established");
    router.advance(Duration::from_secs(7_000));
    assert!(from_outside(&mut router, TCP, &tcp(80, port, ACK)));
    assert!(from_outside(&mut router, TCP, &tcp(80, port, RST)));
    router.advance(Duration::from_secs(241));
    assert!(!from_outside(&mut router, TCP, &tcp(80, port, ACK)));
    assert_eq!(from_inside(&mut router, HOST, TCP, &tcp(7, 80, ACK)), None);
    assert_eq!(router.count("det44-in2out", "non-syn"), 1);
}

#[test]
fn operators_end_sessions_and_change_timeouts() {
    let mut router = router();
    let port = from_inside(&mut router, HOST, UDP, &udp(7, 53)).unwrap();
    router.cli("det44 close session in 10.0.0.2 7 203.0.113.1 53");
    assert!(!from_outside(&mut router, UDP, &udp(53, port)));
    let port = from_inside(&mut router, HOST, UDP, &udp(7, 53)).unwrap();
    let line = format!("det44 close session out 192.0.2.0 {port} 203.0.113.1 53");
    router.cli(&line);
    assert!(router.refused(&line).contains("no such session"));
    router.cli("set det44 timeouts udp 10");
    let port = from_inside(&mut router, HOST, UDP, &udp(7, 53)).unwrap();
    router.advance(Duration::from_secs(11));
    assert!(!from_outside(&mut router, UDP, &udp(53, port)));
    let lines = router.cli("show running-config");
    assert!(lines.contains("set det44 timeouts udp 10"), "{lines}");
    router.cli("set det44 timeouts reset");
    assert!(!router.cli("show running-config").contains("timeouts"));
}

#[test]
fn both_workers_make_sessions() {
    let mut router = router_with(Settings { workers: 2, ..Settings::default() });
    for source in 0..PORTS {
        let frame = ip4(0, (HOST, REMOTE), UDP, whole(), &udp(9_000 + source, 53));
        router.inject_queue("e0", usize::from(source % 2), &frame);
    }
    router.run();
    assert_eq!(router.sent("e1").len(), usize::from(PORTS));
    assert_eq!(sessions(&mut router), usize::from(PORTS));
}

#[test]
fn what_is_configured_is_written_down_and_goes() {
    let mut router = router();
    let lines = router.cli("show running-config");
    let lines: Vec<&str> = lines.lines().filter(|line| line.contains("det44")).collect();
    assert_eq!(
        lines,
        [
            "det44 plugin enable",
            "det44 add in 10.0.0.0/16 out 192.0.2.0/26",
            "set interface det44 inside e0",
            "set interface det44 outside e1"
        ]
    );
    from_inside(&mut router, HOST, UDP, &udp(7, 53)).unwrap();
    router.cli("det44 add in 10.0.0.0/16 out 192.0.2.0/26 del");
    router.cli("det44 add in 10.0.0.0/16 out 192.0.2.0/26");
    assert_eq!(sessions(&mut router), 0, "they ended with the mapping");
    // Also of one address, whose slots are less than a large page.
    let other = "det44 add in 11.0.0.0/24 out 198.18.0.1/32";
    router.cli(other);
    router.cli("det44 add in 10.0.0.0/16 out 192.0.2.0/26 del");
    router.cli("det44 add in 10.0.0.0/24 out 192.0.2.0/32");
    from_inside(&mut router, HOST, UDP, &udp(7, 53)).unwrap();
    router.cli("det44 add in 10.0.0.0/24 out 192.0.2.0/32 del");
    router.cli("det44 add in 10.0.0.0/24 out 192.0.2.0/32");
    assert_eq!(sessions(&mut router), 0, "they ended with the mapping");
    let e1 = router.id("e1");
    router.engine().delete_interface(e1).expect("it is there");
    router.cli("det44 plugin disable");
    assert!(!router.cli("show running-config").contains("det44"));
}

#[test]
fn a_refusal_names_what_is_wrong_and_changes_nothing() {
    let mut router = router();
    let before = running(&mut router);
    for (line, says) in [
        ("det44 add in 10.1.0.0/24 out 198.18.0.0/16", "a prefix of 24 bits would do"),
        ("det44 add in 11.0.0.0/8 out 198.18.0.0/32", "23 bits or fewer"),
        ("det44 add in 10.0.4.0/24 out 198.18.0.0/30", "overlaps the mapping of 10.0.0.0/16"),
        ("det44 add in 11.0.0.0/24 out 192.0.2.8/30", "overlaps the mapping"),
        ("det44 add in 11.0.0.0/24 out 11.0.0.0/26", "overlap"),
        ("det44 add in 11.0.0.0/24 out 198.51.100.0/26", "is an address of e1"),
        ("det44 add in 11.0.0.1/24 out 198.18.0.0/26", "11.0.0.0/24 would be right"),
        ("det44 add in 11.0.0.0/8 out 224.0.0.0/20", "no host's"),
        ("det44 add in 11.0.0.0/8 out 198.16.0.0/12", "are left"),
        ("det44 add in 11.0.0.0/24 out 198.18.0.0/26 del", "there is no mapping"),
        ("set interface det44 inside e0", "already"),
        ("det44 plugin enable inside-vrf 7", "ip table add 7"),
        ("det44 forward 12.0.0.1", "in no mapping"),
        ("det44 reverse 192.0.2.0 80", "no host's"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(says), "{line}: {refusal}");
        assert_eq!(running(&mut router), before, "{line}");
    }
}
