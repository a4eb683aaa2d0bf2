//! The log: what a collector gets of sessions, mappings, blocks and refusals.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use quiver_core::WorkerId;
use quiver_testkit::frames::ip4;
use quiver_testkit::{Register, Router, Settings};

use crate::collector::{Collector, Record};
use crate::sessions::{FEATURES, HOST, POOL, REMOTE, TCP, UDP, from_inside, tcp, udp, whole};

const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);

/// Information elements of the IANA registry.
mod element {
    pub const PROTOCOL: u16 = 4;
    pub const SOURCE_PORT: u16 = 7;
    pub const SOURCE: u16 = 8;
    pub const DESTINATION_PORT: u16 = 11;
    pub const DESTINATION: u16 = 12;
    pub const LOST: u16 = 166;
    pub const POST_SOURCE: u16 = 225;
    pub const POST_DESTINATION: u16 = 226;
    pub const POST_SOURCE_PORT: u16 = 227;
    pub const POST_DESTINATION_PORT: u16 = 228;
    pub const EVENT: u16 = 230;
    pub const VRF: u16 = 234;
    pub const TIME_MS: u16 = 323;
    pub const FIRST_PORT: u16 = 361;
    pub const LAST_PORT: u16 = 362;
    pub const QUOTA: u16 = 466;
    pub const SESSIONS_MAX: u16 = 471;
    pub const MAPPINGS_MAX: u16 = 472;
    pub const OF_USER_MAX: u16 = 473;
}

/// natEvent (RFC 8158 §4).
mod event {
    pub const ADDRESSES_EXHAUSTED: u64 = 3;
    pub const SESSION_CREATE: u64 = 4;
    pub const SESSION_DELETE: u64 = 5;
    pub const MAPPING_CREATE: u64 = 8;
    pub const MAPPING_DELETE: u64 = 9;
    pub const PORTS_EXHAUSTED: u64 = 12;
    pub const QUOTA: u64 = 13;
    pub const BLOCK: u64 = 16;
    pub const BLOCK_RELEASE: u64 = 17;
}

/// A router with NAT44 and so many sessions, and a collector.
fn router(sessions: usize, lines: &str) -> (Router, Collector) {
    let collector = Collector::new();
    let mut features: Vec<Register> = vec![quiver_export::register, quiver_nat_log::register];
    features.extend(FEATURES);
    let mut router = Router::with(Settings::default(), &features);
    let setup = format!(
        "create test interface e0
        create test interface e1
        set interface state e0 up
        set interface state e1 up
        set interface ip address e0 10.0.0.1/8
        set interface ip address e1 198.51.100.1/24
        ip neighbor e0 10.0.0.2 02:00:00:00:00:00 static
        ip neighbor e0 10.0.0.3 02:00:00:00:00:00 static
        ip neighbor e1 198.51.100.2 02:00:00:00:00:01 static
        ip route add 0.0.0.0/0 via 198.51.100.2
        set ipfix exporter collector 127.0.0.1 src 127.0.0.1 port {} path-mtu 1500
        nat44 plugin enable sessions {sessions}
        nat44 add address 192.0.2.1
        set interface nat44 in e0 out e1
        {lines}",
        collector.address().port()
    );
    router.script("setup", &setup).expect("a good configuration");
    router.run();
    router.sent("e0");
    router.sent("e1");
    (router, collector)
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

fn number(address: Ipv4Addr) -> u64 {
    u32::from(address).into()
}

#[test]
fn each_session_is_logged_once_when_it_begins_and_once_when_it_ends() {
    let (mut router, mut collector) = router(1000, "nat ipfix logging domain 7");
    let mut seen = BTreeMap::new();
    for at in 0..300u16 {
        let host = if at % 2 == 0 { HOST } else { OTHER };
        let sent = from_inside(&mut router, host, UDP, &udp(4000 + at / 2, 53)).expect("sent");
        seen.insert((number(host), u64::from(4000 + at / 2)), sent);
    }
    let first = records(&mut router, &mut collector);
    assert!(first.iter().all(|record| record.domain == 7));
    let made = of(&first, event::SESSION_CREATE);
    assert_eq!((made.len(), first.len()), (300, 300));
    let mut of_log = BTreeMap::new();
    for fields in &made {
        // RFC 8158 §4: the four-tuple inside, and the one outside, as the server sees it.
        assert_eq!(fields[&element::PROTOCOL], 17);
        assert_eq!(fields[&element::DESTINATION], number(REMOTE));
        assert_eq!(fields[&element::POST_DESTINATION], number(REMOTE));
        assert_eq!(fields[&element::DESTINATION_PORT], 53);
        assert_eq!(fields[&element::POST_DESTINATION_PORT], 53);
        assert_eq!(fields[&element::VRF], 0);
        assert!(fields[&element::TIME_MS] > 1_700_000_000_000);
        let inside = (fields[&element::SOURCE], fields[&element::SOURCE_PORT]);
        let address = Ipv4Addr::from(fields[&element::POST_SOURCE] as u32);
        of_log.insert(inside, (address, fields[&element::POST_SOURCE_PORT] as u16));
    }
    assert_eq!(of_log, seen);
    router.advance(Duration::from_secs(330));
    let last = records(&mut router, &mut collector);
    let ended = of(&last, event::SESSION_DELETE);
    assert_eq!((ended.len(), last.len()), (300, 300));
    let tuple = |fields: &&BTreeMap<u16, u64>| {
        let keys = [element::SOURCE, element::SOURCE_PORT, element::POST_SOURCE_PORT];
        keys.map(|key| fields[&key])
    };
    let sorted = |all: &[&BTreeMap<u16, u64>]| {
        let mut all: Vec<_> = all.iter().map(tuple).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(sorted(&made), sorted(&ended));
    let shown = router.json("show ipfix exporter");
    assert_eq!((&shown["records"], &shown["records_lost"]), (&600.into(), &0.into()));
    assert_eq!(shown["streams"][0]["sequence"], 600);
}

#[test]
fn sessions_of_every_protocol_end_in_the_log_when_they_are_cleared_or_nat_is_disabled() {
    let (mut router, mut collector) = router(1000, "nat ipfix logging");
    let echo = [8, 0, 0, 0, 0x12, 0x34, 0, 1];
    for end in ["clear nat44 sessions", "nat44 plugin disable"] {
        from_inside(&mut router, HOST, UDP, &udp(4000, 53)).expect("sent");
        from_inside(&mut router, HOST, TCP, &tcp(4000, 80, 2)).expect("sent");
        router.send("e0", &ip4(0, (HOST, REMOTE), 1, whole(), &echo));
        router.cli(end);
        let all = records(&mut router, &mut collector);
        let protocols = |event| {
            let mut protocols: Vec<_> =
                of(&all, event).iter().map(|fields| fields[&element::PROTOCOL]).collect();
            protocols.sort_unstable();
            protocols
        };
        assert_eq!(protocols(event::SESSION_CREATE), [1, 6, 17], "{end}");
        assert_eq!(protocols(event::SESSION_DELETE), [1, 6, 17], "{end}");
        let icmp = all.iter().find(|record| record.fields[&element::PROTOCOL] == 1);
        let icmp = &icmp.expect("one of ICMP").fields;
        assert_eq!((icmp[&element::SOURCE_PORT], icmp[&element::DESTINATION_PORT]), (0x1234, 0));
    }
}

#[test]
fn a_block_is_one_record_when_it_is_given_and_one_when_it_is_free() {
    let (mut router, mut collector) = router(
        1000,
        "nat44 port-blocks size 64 max-blocks 2 block-timeout 20
        set nat timeout udp 10
        nat ipfix logging detail blocks",
    );
    let mut ports = Vec::new();
    for at in 0..100 {
        ports.push(from_inside(&mut router, HOST, UDP, &udp(4000 + at, 53)).expect("sent").1);
    }
    let given = records(&mut router, &mut collector);
    let blocks = of(&given, event::BLOCK);
    assert_eq!((blocks.len(), given.len()), (2, 2), "no sessions");
    for fields in &blocks {
        assert_eq!(fields[&element::SOURCE], number(HOST));
        assert_eq!(fields[&element::POST_SOURCE], number(POOL));
        assert_eq!(fields[&element::LAST_PORT] - fields[&element::FIRST_PORT], 63);
    }
    // RFC 8158: whose a port was follows from the ranges alone.
    let is_covered = |port: &u16| {
        let port = u64::from(*port);
        blocks.iter().any(|b| (b[&element::FIRST_PORT]..=b[&element::LAST_PORT]).contains(&port))
    };
    assert!(ports.iter().all(is_covered));
    router.advance(Duration::from_secs(60));
    let free = records(&mut router, &mut collector);
    let ranges = |all: &[Record], event| {
        let range = |f: &&BTreeMap<u16, u64>| (f[&element::FIRST_PORT], f[&element::LAST_PORT]);
        let mut ranges: Vec<_> = of(all, event).iter().map(range).collect();
        ranges.sort_unstable();
        ranges
    };
    assert_eq!(free.len(), 2);
    assert_eq!(ranges(&free, event::BLOCK_RELEASE), ranges(&given, event::BLOCK));
}

#[test]
fn a_mapping_is_logged_once_for_all_its_sessions() {
    let (mut router, mut collector) = router(
        1000,
        "nat44 mapping endpoint-independent filtering any
        nat ipfix logging detail mappings",
    );
    let mut external = None;
    for port in 50..60 {
        external = from_inside(&mut router, HOST, UDP, &udp(4000, port));
    }
    let (address, port) = external.expect("sent");
    let made = records(&mut router, &mut collector);
    // RFC 6888 REQ-12: no destination is logged.
    assert!(made.iter().all(|record| !record.fields.contains_key(&element::DESTINATION)));
    let mappings = of(&made, event::MAPPING_CREATE);
    assert_eq!((mappings.len(), made.len()), (1, 1));
    let fields = mappings[0];
    assert_eq!((fields[&element::SOURCE], fields[&element::SOURCE_PORT]), (number(HOST), 4000));
    assert_eq!(fields[&element::POST_SOURCE], number(address));
    assert_eq!(fields[&element::POST_SOURCE_PORT], u64::from(port));
    router.cli("clear nat44 sessions");
    let ended = records(&mut router, &mut collector);
    assert_eq!((of(&ended, event::MAPPING_DELETE).len(), ended.len()), (1, 1));
}

#[test]
fn limits_are_logged_with_what_they_are_and_are_not_repeated() {
    let (mut router, mut collector) = router(
        4,
        "nat44 subscriber-limits sessions 3
        nat ipfix logging detail blocks",
    );
    let send = |router: &mut Router, host| {
        for port in 0..20 {
            let _ = from_inside(router, host, UDP, &udp(5000 + port, 53));
        }
    };
    send(&mut router, HOST);
    let all = records(&mut router, &mut collector);
    let quota = of(&all, event::QUOTA);
    assert_eq!((quota.len(), all.len()), (1, 1));
    // RFC 8158 §4: 3 is "maximum entries per user", 1 "maximum session entries".
    assert_eq!((quota[0][&element::QUOTA], quota[0][&element::OF_USER_MAX]), (3, 3));
    assert_eq!(quota[0][&element::SOURCE], number(HOST));
    send(&mut router, OTHER);
    let all = records(&mut router, &mut collector);
    let quota = of(&all, event::QUOTA);
    assert_eq!((quota.len(), all.len()), (1, 1));
    assert_eq!((quota[0][&element::QUOTA], quota[0][&element::SESSIONS_MAX]), (1, 4));
    // The session that the first one may not have, and those that nobody may have.
    assert!(router.json("show nat log")["repeated_notices"].as_u64() > Some(30));
    router.advance(Duration::from_secs(10));
    send(&mut router, HOST);
    assert_eq!(records(&mut router, &mut collector).len(), 1, "again after ten seconds");
}

#[test]
fn bindings_and_ports_that_run_out_are_logged() {
    let (mut router, mut collector) = router(
        1000,
        "nat44 port-blocks size 16128 max-blocks 1
        nat ipfix logging detail blocks",
    );
    // Four blocks are all that the address has: the fifth host gets none.
    for last in 2..7 {
        let host = Ipv4Addr::new(10, 0, 0, last);
        assert_eq!(from_inside(&mut router, host, UDP, &udp(4000, 53)).is_some(), last < 6);
    }
    let all = records(&mut router, &mut collector);
    assert_eq!(of(&all, event::BLOCK).len(), 4);
    let exhausted = of(&all, event::PORTS_EXHAUSTED);
    assert_eq!(exhausted.len(), 1);
    assert_eq!(exhausted[0][&element::POST_SOURCE], number(POOL));
    // With two addresses it is the whole pool that is exhausted.
    router.cli("nat44 add address 192.0.2.2");
    for last in 6..12 {
        let _ = from_inside(&mut router, Ipv4Addr::new(10, 0, 0, last), UDP, &udp(4000, 53));
    }
    let all = records(&mut router, &mut collector);
    assert_eq!(of(&all, event::ADDRESSES_EXHAUSTED).len(), 1);
}

#[test]
fn all_bindings_in_use_are_a_quota_of_their_own() {
    let collector_lines = "nat44 plugin disable
        nat44 plugin enable sessions 1000 bindings 8
        nat44 add address 192.0.2.1
        set interface nat44 in e0 out e1
        nat44 mapping endpoint-independent
        nat ipfix logging detail blocks";
    let (mut router, mut collector) = router(1000, collector_lines);
    for port in 0..20 {
        let _ = from_inside(&mut router, HOST, UDP, &udp(5000 + port, 53));
    }
    let all = records(&mut router, &mut collector);
    let quota = of(&all, event::QUOTA);
    assert_eq!(quota.len(), 1);
    assert_eq!((quota[0][&element::QUOTA], quota[0][&element::MAPPINGS_MAX]), (2, 8));
}

/// More sessions than the ring has places begin in one pass of the worker after another, without a
/// turn of the control thread in between.
#[test]
fn a_ring_that_overflows_loses_counted_records_and_tells_the_collector() {
    const HOSTS: u32 = 70;
    const PORTS: u16 = 1000;
    let (mut router, mut collector) = router(100_000, "nat ipfix logging");
    for host in 0..HOSTS {
        // An address has 64,512 ports for one destination.
        let to = 53 + (host % 2) as u16;
        let host = Ipv4Addr::from(u32::from(HOST) + host);
        for port in 0..PORTS {
            let packet = ip4(0, (host, REMOTE), UDP, whole(), &udp(20_000 + port, to));
            router.inject("e0", &packet);
            // As many as a pass makes sessions of.
            if port % 12 == 11 || port == PORTS - 1 {
                let worker = router.engine().inline_worker(WorkerId(0));
                worker.expect("on this thread").pass();
                router.sent("e1");
            }
        }
    }
    let made = u64::from(HOSTS) * u64::from(PORTS);
    let log = router.json("show nat log");
    let of_kind = |log: &serde_json::Value, key: &str| log["events"][0][key].as_u64();
    assert_eq!(of_kind(&log, "made"), Some(made));
    let mut got = Vec::new();
    for _ in 0..100 {
        // A turn's datagrams fit into the socket's receive buffer.
        router.engine().tick();
        got.extend(collector.records());
    }
    router.advance(Duration::from_secs(2));
    router.cli("ipfix flush");
    got.extend(collector.records());
    let lost = of_kind(&router.json("show nat log"), "lost").expect("a number");
    assert!(lost > 0);
    assert_eq!(of(&got, event::SESSION_CREATE).len() as u64 + lost, made);
    // RFC 7011 §4.3: the collector hears how many records were not sent.
    let told = got.iter().filter_map(|record| record.fields.get(&element::LOST)).max();
    assert_eq!(told, Some(&lost));
}

#[test]
fn a_collector_that_is_absent_hurts_no_packet() {
    let (mut router, mut collector) = router(1000, "nat ipfix logging");
    from_inside(&mut router, HOST, UDP, &udp(3999, 53)).expect("sent");
    assert_eq!(records(&mut router, &mut collector).len(), 1);
    drop(collector);
    for port in 0..100 {
        assert!(from_inside(&mut router, HOST, UDP, &udp(4000 + port, 53)).is_some());
        router.cli("ipfix flush");
    }
    router.cli("set ipfix exporter disable");
    for port in 0..100 {
        assert!(from_inside(&mut router, HOST, UDP, &udp(5000 + port, 53)).is_some());
    }
    router.advance(Duration::from_millis(20));
    let shown = router.json("show ipfix exporter");
    assert!(shown["refused"].as_u64() > Some(0));
    let count = |key: &str| shown[key].as_u64().expect("a number");
    assert_eq!(count("records") + count("records_lost"), 201, "each is sent or lost");
    assert!(count("records_lost") >= 100);
}

#[test]
fn syslog_has_the_same_events_in_words() {
    let (mut router, mut collector) = router(1000, "nat syslog logging");
    router.cli(&format!(
        "set syslog sender collector 127.0.0.1 src 127.0.0.1 port {}",
        collector.address().port()
    ));
    let (address, port) = from_inside(&mut router, HOST, TCP, &tcp(4000, 80, 2)).expect("sent");
    router.cli("clear nat44 sessions");
    router.advance(Duration::from_millis(20));
    let lines: Vec<String> = collector
        .datagrams()
        .into_iter()
        .map(|line| String::from_utf8(line).expect("text"))
        .collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    for (line, id) in lines.iter().zip(["SADD", "SDEL"]) {
        let (head, data) = line.split_once(" [").expect("structured data");
        let words: Vec<&str> = head.split(' ').collect();
        assert_eq!((words[0], words[2], words[3], words[5]), ("<134>1", "127.0.0.1", "NAT", id));
        assert_eq!(
            data,
            format!(
                "nsess IVRF=\"0\" IATYP=\"IPv4\" ISADDR=\"{HOST}\" ISPORT=\"4000\" \
                 IDADDR=\"{REMOTE}\" IDPORT=\"80\" XATYP=\"IPv4\" XSADDR=\"{address}\" \
                 XSPORT=\"{port}\" XDADDR=\"{REMOTE}\" XDPORT=\"80\" PROTO=\"6\"]"
            )
        );
    }
}

#[test]
fn the_log_is_in_the_configuration_and_taken_back() {
    let (mut router, _) = router(
        1000,
        "nat ipfix logging domain 9 src-port 45454 detail mappings
        nat syslog logging detail blocks",
    );
    let written = router.cli("show running-config");
    assert!(written.contains("nat ipfix logging domain 9 src-port 45454 detail mappings"));
    assert!(written.contains("nat syslog logging detail blocks"));
    router.cli("nat ipfix logging disable");
    router.cli("nat syslog logging disable");
    assert!(!router.cli("show running-config").contains(" logging"));
    // Nothing is recorded any more.
    from_inside(&mut router, HOST, UDP, &udp(4000, 53)).expect("sent");
    let log = router.json("show nat log");
    assert_eq!((&log["events"][0]["made"], &log["ipfix"]), (&0.into(), &serde_json::Value::Null));
}
