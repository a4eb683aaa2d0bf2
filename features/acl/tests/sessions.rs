//! Sessions that `permit+reflect` makes: who passes by them, for how long, and what ends them.
//!
//! Inside is `e1`, outside `e0`: list 1 lets sessions begin from inside, list 2 lets in nothing.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use quiver_testkit::frames::{Fragment, ip4};
use quiver_testkit::{Register, Router, Settings};

pub const FEATURES: [Register; 5] = [
    quiver_ethernet::register,
    quiver_bridge::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_acl::register,
];
pub const INSIDE: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);
pub const OUTSIDE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub const ICMP: u8 = 1;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const ACK: u8 = 16;

pub fn router_with(settings: Settings) -> Router {
    let mut router = Router::with(settings, &FEATURES);
    for number in 0..2 {
        let lines = format!(
            "create test interface e{number} rx-queues 2
            set interface state e{number} up
            set interface ip address e{number} 10.0.{number}.1/24
            set interface ip address e{number} fd00:{number}::1/64
            ip neighbor e{number} 10.0.{number}.2 02:00:00:00:00:0{number} static
            ip neighbor e{number} fd00:{number}::2 02:00:00:00:00:0{number} static"
        );
        router.script("setup", &lines).expect("a good configuration");
    }
    router.cli("set acl-plugin acl index 1 permit+reflect");
    router.cli("set acl-plugin acl index 2 deny");
    router.cli("set acl-plugin interface e0 output acl 1");
    router.cli("set acl-plugin interface e0 input acl 2");
    router.run();
    for name in ["e0", "e1"] {
        router.sent(name);
    }
    router
}

pub fn router() -> Router {
    router_with(Settings::default())
}

pub fn upper(protocol: u8, ports: (u16, u16), flags: u8) -> Vec<u8> {
    let mut bytes = [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat();
    match protocol {
        TCP => bytes.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, 1, 0, 0, 0, 0, 0]),
        _ => bytes.extend([0, 8, 0, 0]),
    }
    bytes
}

pub fn echo(kind: u8, identifier: u16) -> Vec<u8> {
    let [high, low] = identifier.to_be_bytes();
    vec![kind, 0, 0, 0, high, low, 0, 1]
}

pub fn outward(protocol: u8, data: &[u8]) -> Vec<u8> {
    ip4(1, (INSIDE, OUTSIDE), protocol, Fragment::default(), data)
}

pub fn inward(protocol: u8, data: &[u8]) -> Vec<u8> {
    ip4(0, (OUTSIDE, INSIDE), protocol, Fragment::default(), data)
}

/// Does a frame from inside leave?
pub fn leaves(router: &mut Router, frame: &[u8]) -> bool {
    router.send("e1", frame);
    !router.sent("e0").is_empty()
}

/// Does a frame from outside come in?
pub fn enters(router: &mut Router, frame: &[u8]) -> bool {
    router.send("e0", frame);
    !router.sent("e1").is_empty()
}

fn tcp(ports: (u16, u16), flags: u8) -> Vec<u8> {
    upper(TCP, ports, flags)
}

fn sessions(router: &mut Router) -> u64 {
    router.json("show acl-plugin sessions max 0")["sessions"].as_u64().expect("a number")
}

fn listed(router: &mut Router) -> Vec<serde_json::Value> {
    let answer = router.json("show acl-plugin sessions");
    answer["entries"].as_array().expect("rows").clone()
}

fn establish(router: &mut Router, port: u16) {
    assert!(leaves(router, &outward(TCP, &tcp((port, 80), SYN))));
    assert!(enters(router, &inward(TCP, &tcp((80, port), SYN | ACK))));
    assert!(leaves(router, &outward(TCP, &tcp((port, 80), ACK))));
}

#[test]
fn answers_come_in_and_nothing_else_does() {
    let mut router = router();
    assert!(!enters(&mut router, &inward(UDP, &upper(UDP, (53, 4000), 0))));
    assert!(leaves(&mut router, &outward(UDP, &upper(UDP, (4000, 53), 0))));
    assert!(enters(&mut router, &inward(UDP, &upper(UDP, (53, 4000), 0))));
    for ports in [(53, 4001), (54, 4000), (4000, 53)] {
        assert!(!enters(&mut router, &inward(UDP, &upper(UDP, ports, 0))), "{ports:?}");
    }
    assert!(!enters(&mut router, &inward(TCP, &tcp((53, 4000), SYN))));
    assert_eq!(sessions(&mut router), 1);
    let rows = listed(&mut router);
    assert_eq!(rows[0]["initiator"], "10.0.1.2:4000", "{rows:?}");
    assert_eq!(rows[0]["responder"], "10.0.0.2:53");
    assert_eq!(rows[0]["interface"], "e0");
}

#[test]
fn a_list_of_what_an_interface_receives_lets_its_answers_out_of_it() {
    let mut router = router();
    router.cli("set acl-plugin interface e0 input acl 2 del");
    router.cli("set acl-plugin interface e0 output acl 1 del");
    router.cli("set acl-plugin interface e1 input acl 1");
    assert!(leaves(&mut router, &outward(TCP, &tcp((4000, 80), SYN))));
    // Without a list for what leaves by e1 all passes, and the session is tracked all the same.
    assert!(enters(&mut router, &inward(TCP, &tcp((80, 4000), SYN | ACK))));
    assert!(leaves(&mut router, &outward(TCP, &tcp((4000, 80), ACK))));
    assert_eq!(listed(&mut router)[0]["state"], "established");
    router.cli("set acl-plugin interface e1 output acl 2");
    assert!(enters(&mut router, &inward(TCP, &tcp((80, 4000), ACK))));
    assert!(!enters(&mut router, &inward(TCP, &tcp((80, 4001), ACK))));
}

#[test]
fn a_connection_begins_with_syn_and_is_followed_to_its_end() {
    let mut router = router();
    for flags in [ACK, SYN | ACK, FIN | ACK, RST, SYN | FIN, 0] {
        assert!(!leaves(&mut router, &outward(TCP, &tcp((4000, 80), flags))), "{flags}");
    }
    assert_eq!(router.count("acl-plugin-out-ip4-fa", "acl-not-syn"), 6);
    establish(&mut router, 4000);
    assert_eq!(listed(&mut router)[0]["state"], "established");
    // Longer than the transient timeout.
    router.advance(Duration::from_secs(1_000));
    assert!(enters(&mut router, &inward(TCP, &tcp((80, 4000), ACK))));
    assert!(enters(&mut router, &inward(TCP, &tcp((80, 4000), FIN | ACK))));
    assert!(leaves(&mut router, &outward(TCP, &tcp((4000, 80), FIN | ACK))));
    assert!(enters(&mut router, &inward(TCP, &tcp((80, 4000), ACK))));
    assert!(!enters(&mut router, &inward(TCP, &tcp((80, 4000), SYN))), "opened from outside");
    assert!(leaves(&mut router, &outward(TCP, &tcp((4000, 80), SYN))), "the ports are used again");
    router.advance(Duration::from_secs(140));
    assert_eq!(sessions(&mut router), 0);
}

/// RFC 5382 REQ-5: an established connection lasts for 2 hours 4 minutes without packets. What
/// comes later is dropped in silence.
#[test]
fn a_connection_that_is_idle_for_too_long_is_forgotten() {
    let mut router = router();
    establish(&mut router, 4000);
    router.advance(Duration::from_secs(7_400));
    assert!(leaves(&mut router, &outward(TCP, &tcp((4000, 80), ACK))));
    router.advance(Duration::from_secs(7_470));
    assert!(!leaves(&mut router, &outward(TCP, &tcp((4000, 80), ACK))));
    assert!(!enters(&mut router, &inward(TCP, &tcp((80, 4000), ACK))));
    let summary = router.json("show acl-plugin sessions max 0");
    assert_eq!(summary["sessions_expired"], 1);
}

/// RFC 5961 §3.2: a blind attacker's RST is answered by a challenge ACK, which passes and says that
/// the RST was not the end.
#[test]
fn a_reset_ends_a_connection_only_when_nothing_follows() {
    let mut router = router();
    establish(&mut router, 4000);
    assert!(enters(&mut router, &inward(TCP, &tcp((80, 4000), RST))));
    assert_eq!(listed(&mut router)[0]["state"], "reset");
    assert!(leaves(&mut router, &outward(TCP, &tcp((4000, 80), ACK))));
    assert_eq!(listed(&mut router)[0]["state"], "established");
    assert!(enters(&mut router, &inward(TCP, &tcp((80, 4000), RST))));
    router.advance(Duration::from_secs(140));
    assert_eq!(sessions(&mut router), 0);
}

#[test]
fn queries_pass_by_their_identifier_and_errors_by_the_packet_inside() {
    let mut router = router();
    assert!(!enters(&mut router, &inward(ICMP, &echo(0, 7))));
    assert!(leaves(&mut router, &outward(ICMP, &echo(8, 7))));
    assert!(enters(&mut router, &inward(ICMP, &echo(0, 7))));
    assert!(!enters(&mut router, &inward(ICMP, &echo(0, 8))));
    assert!(!enters(&mut router, &inward(ICMP, &echo(8, 7))), "a request from outside");
    assert!(leaves(&mut router, &outward(UDP, &upper(UDP, (4000, 33434), 0))));
    let error = |kind: u8, sent: &[u8], bytes: usize| {
        // A router on the path answers, not the host that the packet was for.
        let data = [&[kind, 0, 0, 0, 0, 0, 0, 0], &sent[14..14 + bytes]].concat();
        ip4(0, (Ipv4Addr::new(10, 0, 0, 9), INSIDE), ICMP, Fragment::default(), &data)
    };
    let known = outward(UDP, &upper(UDP, (4000, 33434), 0));
    for kind in [3, 11, 12] {
        assert!(enters(&mut router, &error(kind, &known, 28)), "{kind}");
    }
    assert!(enters(&mut router, &error(3, &outward(ICMP, &echo(8, 7)), 28)));
    assert!(!enters(&mut router, &error(5, &known, 28)), "a redirect");
    assert!(!enters(&mut router, &error(3, &known, 27)), "cut off");
    assert!(!enters(&mut router, &error(3, &outward(UDP, &upper(UDP, (4001, 33434), 0)), 28)));
    let from_outside = inward(UDP, &upper(UDP, (33434, 4000), 0));
    assert!(!enters(&mut router, &error(3, &from_outside, 28)), "nobody inside has sent it");
    assert_eq!(router.count("acl-plugin-in-ip4-fa", "acl-icmp-errors"), 4);
}

pub fn ip6(port: u8, ends: (Ipv6Addr, Ipv6Addr), protocol: u8, data: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0xfe, 0, 0, 0, port, 2, 0, 0, 0, 0, 9, 0x86, 0xdd, 0x60, 0, 0, 0];
    frame.extend((data.len() as u16).to_be_bytes());
    frame.extend([protocol, 64]);
    frame.extend(ends.0.octets());
    frame.extend(ends.1.octets());
    frame.extend(data);
    frame
}

#[test]
fn sessions_are_of_ip6_too() {
    let mut router = router();
    let address = |number| Ipv6Addr::new(0xfd00, number, 0, 0, 0, 0, 0, 2);
    let (inside, outside) = (address(1), address(0));
    let out = |protocol, data: &[u8]| ip6(1, (inside, outside), protocol, data);
    let back = |protocol, data: &[u8]| ip6(0, (outside, inside), protocol, data);
    assert!(!enters(&mut router, &back(UDP, &upper(UDP, (53, 4000), 0))));
    assert!(leaves(&mut router, &out(UDP, &upper(UDP, (4000, 53), 0))));
    assert!(enters(&mut router, &back(UDP, &upper(UDP, (53, 4000), 0))));
    assert!(leaves(&mut router, &out(58, &echo(128, 5))));
    assert!(enters(&mut router, &back(58, &echo(129, 5))));
    assert!(!enters(&mut router, &back(58, &echo(128, 5))));
    let sent = out(UDP, &upper(UDP, (4000, 53), 0));
    for (kind, passes) in [(1, true), (2, true), (3, true), (4, true), (5, false), (137, false)] {
        let data = [&[kind, 0, 0, 0, 0, 0, 0, 0], &sent[14..]].concat();
        assert_eq!(enters(&mut router, &back(58, &data)), passes, "{kind}");
    }
    assert!(leaves(&mut router, &out(TCP, &tcp((4000, 80), SYN))));
    assert!(enters(&mut router, &back(TCP, &tcp((80, 4000), SYN | ACK))));
    let rows = listed(&mut router);
    assert!(rows.iter().any(|row| row["initiator"] == "[fd00:1::2]:4000"), "{rows:?}");
}

#[test]
fn fragments_belong_to_the_session_of_their_first() {
    let mut router = router();
    assert!(leaves(&mut router, &outward(UDP, &upper(UDP, (4000, 53), 0))));
    let part = |offset_bytes, more, data: &[u8]| {
        let fragment = Fragment { identification: 77, offset_bytes, more };
        ip4(0, (OUTSIDE, INSIDE), UDP, fragment, data)
    };
    let first = [upper(UDP, (53, 4000), 0), vec![0; 8]].concat();
    router.inject("e0", &part(16, false, &[1; 8]));
    router.inject("e0", &part(0, true, &first));
    router.run();
    assert_eq!(router.sent("e1").len(), 2, "the later one came first");
    router.inject(
        "e0",
        &ip4(
            0,
            (OUTSIDE, INSIDE),
            UDP,
            Fragment { identification: 78, offset_bytes: 0, more: true },
            &[upper(UDP, (53, 4001), 0), vec![0; 8]].concat(),
        ),
    );
    router.run();
    assert_eq!(router.sent("e1").len(), 0);
}

#[test]
fn a_bridge_port_has_sessions() {
    let mut router = router();
    for number in 0..2 {
        router.cli(&format!("set interface l2 bridge e{number} 1"));
    }
    let to = |mut frame: Vec<u8>, port: u8| {
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 9, port]);
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 9, 1 - port]);
        frame
    };
    let out = |ports| to(outward(UDP, &upper(UDP, ports, 0)), 0);
    let back = |ports| to(inward(UDP, &upper(UDP, ports, 0)), 1);
    assert!(!enters(&mut router, &back((53, 4000))));
    assert!(leaves(&mut router, &out((4000, 53))));
    assert!(enters(&mut router, &back((53, 4000))));
    assert!(!enters(&mut router, &back((53, 4001))));
    assert_eq!(router.count("acl-plugin-in-ip4-l2", "acl-deny"), 2);
}

#[test]
fn sessions_are_matched_again_when_their_lists_are_replaced() {
    let mut router = router();
    let answer = |port| inward(UDP, &upper(UDP, (port, 4000), 0));
    for port in [53, 123] {
        assert!(leaves(&mut router, &outward(UDP, &upper(UDP, (4000, port), 0))));
    }
    router.cli("set acl-plugin acl index 1 permit+reflect proto udp dport 53");
    assert!(enters(&mut router, &answer(53)));
    assert!(!enters(&mut router, &answer(123)));
    router.cli("set acl-plugin acl index 1 permit+reflect");
    assert!(!enters(&mut router, &answer(123)), "what has ended does not come back");
    router.cli("set acl-plugin reclassify-sessions 0");
    router.cli("set acl-plugin acl index 1 deny");
    assert!(enters(&mut router, &answer(53)), "no list makes sessions, but no new one either");
}

#[test]
fn sessions_end_by_command_and_with_their_lists() {
    let mut router = router();
    let answer = inward(UDP, &upper(UDP, (53, 4000), 0));
    let begin = |router: &mut Router| {
        assert!(leaves(router, &outward(UDP, &upper(UDP, (4000, 53), 0))));
        assert!(enters(router, &answer));
    };
    begin(&mut router);
    router.cli("clear acl-plugin sessions e1");
    assert_eq!(sessions(&mut router), 1);
    router.cli("clear acl-plugin sessions e0");
    assert!(!enters(&mut router, &answer));
    begin(&mut router);
    router.cli("clear acl-plugin sessions");
    assert_eq!(sessions(&mut router), 0);
    begin(&mut router);
    let refused = router.refused("set acl-plugin session table max-entries 64");
    assert!(refused.contains("e0"), "{refused}");
    router.cli("set acl-plugin interface e0 output acl 1 del");
    assert!(!enters(&mut router, &answer));
    router.advance(Duration::from_secs(12));
    assert_eq!(sessions(&mut router), 0);
    router.cli("set acl-plugin session table max-entries 64");
    router.cli("set acl-plugin interface e0 output acl 1");
    begin(&mut router);
}

#[test]
fn a_full_table_refuses_new_sessions_and_keeps_all_live_ones() {
    let mut router = router();
    router.cli("set acl-plugin interface e0 output acl 1 del");
    router.cli("set acl-plugin session table max-entries 64");
    router.cli("set acl-plugin interface e0 output acl 1");
    establish(&mut router, 1000);
    for port in 0..100 {
        leaves(&mut router, &outward(TCP, &tcp((2000 + port, 80), SYN)));
    }
    assert_eq!(sessions(&mut router), 64);
    assert_eq!(router.count("acl-plugin-slowpath", "acl-sessions-full"), 37);
    assert!(enters(&mut router, &inward(TCP, &tcp((80, 1000), ACK))));
    router.cli("set acl-plugin on-full stateless");
    assert!(leaves(&mut router, &outward(TCP, &tcp((3000, 80), SYN))));
    assert!(!enters(&mut router, &inward(TCP, &tcp((80, 3000), SYN | ACK))));
    // Connections that nobody answers give way early in a table that is nearly full.
    router.advance(Duration::from_secs(30));
    assert_eq!(sessions(&mut router), 1);
    establish(&mut router, 3000);
}

/// The second worker finds sessions, and hands what makes one over to the first.
#[test]
fn a_worker_that_owns_no_sessions_hands_new_flows_over_and_loses_none() {
    const FLOWS: u16 = 20_000;
    let settings = Settings { workers: 2, buffers: 32_768, ..Settings::default() };
    let mut router = router_with(settings);
    for port in 0..FLOWS {
        let data = upper(UDP, (4000 + port, 53), 0);
        router.inject_queue("e1", 1, &outward(UDP, &data));
    }
    router.run();
    assert_eq!(router.sent("e0").len(), usize::from(FLOWS));
    assert_eq!(sessions(&mut router), u64::from(FLOWS));
    for port in 0..FLOWS {
        let data = upper(UDP, (53, 4000 + port), 0);
        router.inject_queue("e0", usize::from(port % 2), &inward(UDP, &data));
    }
    router.run();
    assert_eq!(router.sent("e1").len(), usize::from(FLOWS));
    assert_eq!(router.count("acl-plugin-slowpath", "acl-congestion"), 0);
    assert_eq!(router.count("acl-plugin-slowpath", "acl-sessions-made"), u64::from(FLOWS));
}

#[test]
fn a_full_table_that_is_cleared_takes_the_next_packet() {
    let mut router = router();
    router.cli("set acl-plugin interface e0 output acl 1 del");
    router.cli("set acl-plugin session table max-entries 64");
    router.cli("set acl-plugin interface e0 output acl 1");
    for round in 0..3 {
        for port in 0..64 {
            let frame = outward(UDP, &upper(UDP, (4000 + port, 53), 0));
            assert!(leaves(&mut router, &frame), "round {round}, port {port}");
        }
        assert_eq!(sessions(&mut router), 64);
        match round {
            0 => drop(router.cli("clear acl-plugin sessions")),
            _ => router.advance(Duration::from_secs(320)),
        }
    }
}

#[test]
fn what_is_typed_is_written_down() {
    let mut router = router();
    router.cli("set acl-plugin session timeout udp idle 20");
    router.cli("set acl-plugin session timeout tcp idle 3600");
    router.cli("set acl-plugin session timeout tcp transient 30");
    router.cli("set acl-plugin on-full stateless");
    router.cli("set acl-plugin reclassify-sessions 0");
    let config = router.cli("show running-config");
    for line in [
        "set acl-plugin session timeout udp idle 20",
        "set acl-plugin session timeout tcp idle 3600",
        "set acl-plugin session timeout tcp transient 30",
        "set acl-plugin on-full stateless",
        "set acl-plugin reclassify-sessions 0",
        "set acl-plugin acl index 1 permit+reflect",
    ] {
        assert!(config.contains(line), "{line} is missing:\n{config}");
    }
    assert!(leaves(&mut router, &outward(UDP, &upper(UDP, (4000, 53), 0))));
    router.advance(Duration::from_secs(40));
    assert_eq!(sessions(&mut router), 0);
}
