//! The log of hosts behind B4s: each record names the B4, by IPFIX and by syslog.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::Duration;

use quiver_testkit::{Register, Router, Settings};

use crate::collector::{Collector, Record};
use crate::sessions::{REMOTE, UDP, udp};
use crate::softwires::{B4, FEATURES, HOST, POOL, out, router_of};

/// Its last eight bytes, which the collector's decoder keeps, are its own.
const OTHER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x4000, 0x200, 0, 0, 0, 7);
/// natEvent (RFC 8158 §4) and information elements of the IANA registry.
const SESSION_CREATE: u64 = 4;
const SESSION_DELETE: u64 = 5;
const MAPPING_CREATE: u64 = 8;
const MAPPING_DELETE: u64 = 9;
const QUOTA: u64 = 13;
const BLOCK: u64 = 16;
const BLOCK_RELEASE: u64 = 17;
const SOURCE_PORT: u16 = 7;
const SOURCE: u16 = 8;
const SOURCE_IP6: u16 = 27;
const POST_SOURCE: u16 = 225;
const POST_SOURCE_PORT: u16 = 227;
const EVENT: u16 = 230;
const VRF: u16 = 234;
const FIRST_PORT: u16 = 361;
const LAST_PORT: u16 = 362;

fn router(lines: &str) -> (Router, Collector) {
    let collector = Collector::new();
    let mut features: Vec<Register> = vec![quiver_export::register, quiver_nat_log::register];
    features.extend(FEATURES);
    let mut router = router_of(Settings::default(), &features, lines);
    let port = collector.address().port();
    let to = format!("collector 127.0.0.1 src 127.0.0.1 port {port}");
    router.cli(&format!("set ipfix exporter {to} path-mtu 1500"));
    router.cli(&format!("set syslog sender {to}"));
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
    all.filter(|fields| fields.get(&EVENT) == Some(&event)).collect()
}

/// The last eight bytes of an address.
fn low(address: Ipv6Addr) -> u64 {
    address.to_bits() as u64
}

/// RFC 6333 §6.6: the address of the B4 tells hosts with the same address apart.
#[test]
fn sessions_mappings_and_blocks_name_the_b4() {
    let (mut router, mut collector) = router(
        "nat44 port-blocks size 64 max-blocks 1 block-timeout 0
        nat44 mapping endpoint-independent filtering any
        nat ipfix logging",
    );
    let mut seen = BTreeMap::new();
    for b4 in [B4, OTHER] {
        let sent = out(&mut router, b4, (HOST, REMOTE), UDP, &udp(4000, 53)).expect("sent");
        assert_eq!(sent.0, POOL);
        seen.insert(low(b4), u64::from(sent.1));
    }
    let made = records(&mut router, &mut collector);
    router.cli("clear nat44 sessions");
    router.advance(Duration::from_secs(400));
    let ended = records(&mut router, &mut collector);
    for (all, [session, mapping, block]) in [
        (&made, [SESSION_CREATE, MAPPING_CREATE, BLOCK]),
        (&ended, [SESSION_DELETE, MAPPING_DELETE, BLOCK_RELEASE]),
    ] {
        for event in [session, mapping] {
            let found: BTreeMap<_, _> = of(all, event)
                .into_iter()
                .map(|fields| {
                    assert_eq!(fields[&SOURCE], u64::from(u32::from(HOST)));
                    assert_eq!((fields[&SOURCE_PORT], fields[&VRF]), (4000, 0));
                    assert_eq!(fields[&POST_SOURCE], u64::from(u32::from(POOL)));
                    (fields[&SOURCE_IP6], fields[&POST_SOURCE_PORT])
                })
                .collect();
            assert_eq!(found, seen, "event {event}");
        }
        let blocks = of(all, block);
        assert_eq!(blocks.len(), 2, "event {block}");
        for fields in blocks {
            let ports = fields[&FIRST_PORT]..=fields[&LAST_PORT];
            assert!(ports.contains(&seen[&fields[&SOURCE_IP6]]), "{fields:?}");
            // RFC 6333 §5.7: the address of a B4, for all hosts behind it.
            assert_eq!(fields[&SOURCE], 0xc000_0002);
        }
    }
}

#[test]
fn what_a_b4_may_not_have_names_it() {
    let (mut router, mut collector) =
        router("nat44 subscriber-limits sessions 1\nnat ipfix logging detail blocks");
    for b4 in [B4, OTHER] {
        assert!(out(&mut router, b4, (HOST, REMOTE), UDP, &udp(4000, 53)).is_some());
        assert!(out(&mut router, b4, (HOST, REMOTE), UDP, &udp(4001, 53)).is_none());
    }
    let all = records(&mut router, &mut collector);
    let named: Vec<u64> = of(&all, QUOTA).iter().map(|fields| fields[&SOURCE_IP6]).collect();
    assert_eq!(named, [low(B4), low(OTHER)]);
}

#[test]
fn syslog_names_the_b4_and_shows_do() {
    let (mut router, mut collector) = router(
        "nat44 port-blocks size 64 max-blocks 1
        nat44 mapping endpoint-independent filtering any
        nat syslog logging",
    );
    out(&mut router, OTHER, (HOST, REMOTE), UDP, &udp(4000, 53)).expect("sent");
    router.advance(Duration::from_millis(20));
    let lines: Vec<String> = collector
        .datagrams()
        .into_iter()
        .map(|line| String::from_utf8(line).expect("text"))
        .collect();
    assert_eq!(lines.len(), 3, "a block, a mapping, a session: {lines:?}");
    let b4 = format!("SV6ENC=\"{OTHER}\"");
    assert!(lines.iter().all(|line| line.contains(&b4)), "{lines:?}");
    for show in ["show nat44 sessions", "show nat44 blocks", "show nat44 mappings"] {
        let shown = router.json(show);
        assert_eq!(shown[0]["b4"], OTHER.to_string().as_str(), "{show}");
    }
}
