//! The log: what a collector gets of sessions, bindings and refusals (RFC 8158).

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use quiver_testkit::{Register, Router, Settings};

use crate::collector::{Collector, Record};
use crate::sessions::{FEATURES, HOST, POOL, REMOTE, TCP, UDP, behind, ip6, setup, tcp, udp};

/// Information elements of the IANA registry.
mod element {
    pub const PROTOCOL: u16 = 4;
    pub const SOURCE_PORT: u16 = 7;
    pub const DESTINATION_PORT: u16 = 11;
    pub const SOURCE_IP6: u16 = 27;
    pub const DESTINATION_IP6: u16 = 28;
    pub const POST_SOURCE: u16 = 225;
    pub const POST_DESTINATION: u16 = 226;
    pub const POST_SOURCE_PORT: u16 = 227;
    pub const EVENT: u16 = 230;
    pub const QUOTA: u16 = 466;
    pub const SESSIONS_MAX: u16 = 471;
    pub const OF_USER_MAX: u16 = 473;
}

/// natEvent (RFC 8158 §4, table 2).
mod event {
    pub const ADDRESSES_EXHAUSTED: u64 = 3;
    pub const SESSION_CREATE: u64 = 6;
    pub const SESSION_DELETE: u64 = 7;
    pub const BIB_CREATE: u64 = 10;
    pub const BIB_DELETE: u64 = 11;
    pub const PORTS_EXHAUSTED: u64 = 12;
    pub const QUOTA: u64 = 13;
}

/// A router with NAT64 and so many sessions, and a collector.
fn router(sessions: usize, lines: &str) -> (Router, Collector) {
    let collector = Collector::new();
    let mut features: Vec<Register> = vec![quiver_export::register, quiver_nat_log::register];
    features.extend(FEATURES);
    let mut router = Router::with(Settings::default(), &features);
    let exporter = format!(
        "set ipfix exporter collector 127.0.0.1 src 127.0.0.1 port {} path-mtu 1500",
        collector.address().port()
    );
    let text = format!("{}\n{exporter}\n{lines}", setup(sessions));
    router.script("setup", &text).expect("a good configuration");
    router.run();
    router.sent("e0");
    router.sent("e1");
    (router, collector)
}

/// Send from a host inside; does it come out?
fn send(router: &mut Router, host: Ipv6Addr, protocol: u8, upper: &[u8]) -> bool {
    router.send("e0", &ip6((host, behind(REMOTE)), protocol, 64, upper));
    !router.sent("e1").is_empty()
}

fn records(router: &mut Router, collector: &mut Collector) -> Vec<Record> {
    router.run();
    router.advance(Duration::from_millis(20));
    router.cli("ipfix flush");
    collector.records()
}

fn of(records: &[Record], event: u64) -> Vec<&BTreeMap<u16, u64>> {
    let all = records.iter().map(|record| &record.fields);
    all.filter(|fields| fields.get(&element::EVENT) == Some(&event)).collect()
}

fn last_half(address: Ipv6Addr) -> u64 {
    address.to_bits() as u64
}

fn number(address: Ipv4Addr) -> u64 {
    u32::from(address).into()
}

/// RFC 8158 §4: "NAT64 Session create", "NAT64 BIB create" and their ends, with the six-tuple.
#[test]
fn each_session_and_each_binding_is_logged_when_it_begins_and_when_it_ends() {
    let (mut router, mut collector) = router(1000, "nat ipfix logging");
    for destination in 0..10 {
        assert!(send(&mut router, HOST, UDP, &udp(4000, 53 + destination)));
    }
    let first = records(&mut router, &mut collector);
    let (made, bound) = (of(&first, event::SESSION_CREATE), of(&first, event::BIB_CREATE));
    assert_eq!((made.len(), bound.len(), first.len()), (10, 1, 11));
    for (at, fields) in made.iter().enumerate() {
        assert_eq!(fields[&element::PROTOCOL], 17);
        assert_eq!(fields[&element::SOURCE_IP6], last_half(HOST));
        assert_eq!(fields[&element::DESTINATION_IP6], last_half(behind(REMOTE)));
        assert_eq!(fields[&element::POST_SOURCE], number(POOL));
        assert_eq!(fields[&element::POST_DESTINATION], number(REMOTE));
        assert_eq!(fields[&element::SOURCE_PORT], 4000);
        assert_eq!(fields[&element::POST_SOURCE_PORT], 4000);
        assert_eq!(fields[&element::DESTINATION_PORT], 53 + at as u64);
    }
    assert_eq!(bound[0][&element::SOURCE_IP6], last_half(HOST));
    assert_eq!(bound[0][&element::POST_SOURCE_PORT], 4000);
    router.advance(Duration::from_secs(330));
    let last = records(&mut router, &mut collector);
    let (ended, unbound) = (of(&last, event::SESSION_DELETE), of(&last, event::BIB_DELETE));
    assert_eq!((ended.len(), unbound.len(), last.len()), (10, 1, 11));
    assert!(ended.iter().all(|f| f[&element::DESTINATION_IP6] == last_half(behind(REMOTE))));
    let events = router.json("show nat log")["events"].clone();
    let events = events.as_array().expect("rows");
    let row = events.iter().find(|row| row["event"] == "nat64-session-create");
    assert_eq!(row.expect("a row")["made"], 10);
}

#[test]
fn sessions_that_a_command_ends_are_logged_with_their_remote_host() {
    for command in ["nat64 add prefix 2001:db8:64::/96 del", "nat64 plugin disable"] {
        let (mut router, mut collector) = router(1000, "nat ipfix logging");
        assert!(send(&mut router, HOST, TCP, &tcp(4000, 80, 2)));
        router.cli(command);
        let all = records(&mut router, &mut collector);
        let ended = of(&all, event::SESSION_DELETE);
        assert_eq!((ended.len(), of(&all, event::BIB_DELETE).len()), (1, 1), "{command}");
        assert_eq!(ended[0][&element::DESTINATION_IP6], last_half(behind(REMOTE)), "{command}");
    }
}

#[test]
fn mappings_alone_name_no_remote_host() {
    let (mut router, mut collector) = router(1000, "nat ipfix logging detail mappings");
    assert!(send(&mut router, HOST, UDP, &udp(4000, 53)));
    let all = records(&mut router, &mut collector);
    assert_eq!((all.len(), of(&all, event::BIB_CREATE).len()), (1, 1));
    assert!(!all[0].fields.contains_key(&element::DESTINATION_IP6));
}

/// RFC 8158 §4: natEvent 13 with natQuotaExceededEvent 1, all sessions, and 3, those of a user.
#[test]
fn limits_that_are_reached_are_logged() {
    let (mut router, mut collector) = router(3, "nat ipfix logging detail blocks");
    for port in 0..5 {
        send(&mut router, HOST, UDP, &udp(4000 + port, 53));
    }
    let all = records(&mut router, &mut collector);
    let quota = of(&all, event::QUOTA);
    assert_eq!(quota.len(), 1, "the same is not repeated");
    assert_eq!((quota[0][&element::QUOTA], quota[0][&element::SESSIONS_MAX]), (1, 3));
    router.cli("clear nat64 sessions");
    router.cli("nat64 subscriber-limit sessions 2 prefix-length 64");
    router.advance(Duration::from_secs(2));
    for port in 0..5 {
        send(&mut router, HOST, UDP, &udp(5000 + port, 53));
    }
    let all = records(&mut router, &mut collector);
    let quota = of(&all, event::QUOTA);
    assert_eq!(quota.len(), 1);
    assert_eq!((quota[0][&element::QUOTA], quota[0][&element::OF_USER_MAX]), (3, 2));
}

/// RFC 8158 §4: natEvent 12 names the address without ports, 3 is about the pool.
#[test]
fn a_pool_without_ports_is_logged() {
    for (more, expected) in [
        ("", event::PORTS_EXHAUSTED),
        ("nat64 add pool address 192.0.2.2", event::ADDRESSES_EXHAUSTED),
    ] {
        let lines = format!("nat ipfix logging detail blocks\n{more}");
        let (mut router, mut collector) = router(200_000, &lines);
        let hosts = (0..140_000u32).map(|n| Ipv6Addr::from_bits(HOST.to_bits() + u128::from(n)));
        for host in hosts {
            if !send(&mut router, host, UDP, &udp(4000, 53)) {
                break;
            }
        }
        let all = records(&mut router, &mut collector);
        assert_eq!(of(&all, expected).len(), 1);
        let address = of(&all, expected)[0].get(&element::POST_SOURCE).copied();
        assert_eq!(address, more.is_empty().then(|| number(POOL)));
    }
}
