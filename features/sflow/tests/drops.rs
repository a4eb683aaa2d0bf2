//! Collectors are notified of packets that are not sent on, with the reason.

use std::net::Ipv4Addr;
use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::Router;
use quiver_testkit::frames::{Fragment, UDP, ip4};

use crate::reader::{Collector, Discarded};

/// `drop_reason` of sflow_drops.txt.
const NET_UNREACHABLE: u32 = 0;
const TTL_EXCEEDED: u32 = 257;
const NO_BUFFER_SPACE: u32 = 259;
const BLACKHOLE_ROUTE: u32 = 269;
const IP_HEADER_CORRUPTED: u32 = 275;
const UNKNOWN_L2: u32 = 284;
/// Kinds of headers of sampled_header.
const ETHERNET: u32 = 1;

/// `e0` has 10.0.0.1/24, `e1` 10.0.1.1/24; the neighbour 10.0.1.2 is known.
fn router(collector: &Collector) -> Router {
    let mut router = Router::new(&[
        quiver_ethernet::register,
        quiver_ip::register,
        quiver_export::register,
        quiver_sflow::register,
    ]);
    for (name, net) in [("e0", 0), ("e1", 1)] {
        router.interface(name);
        router.cli(&format!("set interface ip address {name} 10.0.{net}.1/24"));
    }
    router.cli("set ip neighbor e0 10.0.0.9 02:00:00:00:00:09 static");
    router.cli("set ip neighbor e1 10.0.1.2 02:00:00:00:00:22 static");
    router.cli("ip route add 10.9.0.0/16 via drop");
    let port = collector.port();
    router.cli(&format!("sflow collector 127.0.0.1 src 127.0.0.1 port {port}"));
    router
}

/// A datagram from the neighbour 10.0.0.9 of `e0`.
fn datagram(destination: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let udp = [&[0, 7, 0, 9, 0, 8 + payload.len() as u8, 0, 0][..], payload].concat();
    let ends = (Ipv4Addr::new(10, 0, 0, 9), Ipv4Addr::from(destination));
    ip4(0, ends, UDP, Fragment::default(), &udp)
}

/// The same with this TTL; the checksum is right (RFC 1624).
fn with_ttl(mut frame: Vec<u8>, ttl: u8) -> Vec<u8> {
    let changed = u32::from(frame[22] - ttl) << 8;
    let sum = u32::from(u16::from_be_bytes([frame[24], frame[25]])) + changed;
    frame[22] = ttl;
    frame[24..26].copy_from_slice(&(((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    frame
}

/// Let the agent send what waits.
fn flush(router: &mut Router) {
    for _ in 0..4 {
        router.advance(Duration::from_millis(300));
        router.run();
    }
}

#[test]
fn a_notification_has_the_packet_as_it_came_with_its_reason() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.cli("sflow drop-monitoring enable");
    let to_neighbour = datagram([10, 0, 1, 2], b"passes");
    let mut corrupted = to_neighbour.clone();
    corrupted[24] ^= 1;
    let mut other_mac = to_neighbour.clone();
    other_mac[5] = 0x77;
    let cases = [
        (datagram([192, 0, 2, 1], b"lost"), NET_UNREACHABLE, "ip4-icmp-error/type-3-code-0"),
        (datagram([10, 9, 0, 1], b"hole"), BLACKHOLE_ROUTE, "ip4-drop/route-drops"),
        (with_ttl(to_neighbour.clone(), 1), TTL_EXCEEDED, "ip4-icmp-error/type-11-code-0"),
        (corrupted, IP_HEADER_CORRUPTED, "ip4-input/bad-checksum"),
        (other_mac, UNKNOWN_L2, "ethernet-input/mac-mismatch"),
    ];
    for (frame, ..) in &cases {
        router.send("e0", &to_neighbour);
        router.send("e0", frame);
    }
    flush(&mut router);
    assert_eq!(router.sent("e1").len(), cases.len(), "the others pass");
    let e0 = router.id("e0").0 + 1;
    let read = collector.read();
    let wanted = cases.iter().enumerate().map(|(place, (frame, reason, symbol))| Discarded {
        sequence: place as u32 + 1,
        source: e0,
        drops: 0,
        ports: [e0, 0],
        reason: *reason,
        protocol: ETHERNET,
        frame_bytes: frame.len() as u32,
        header: frame.clone(),
        symbol: (*symbol).to_owned(),
    });
    assert_eq!(read.discarded, wanted.collect::<Vec<_>>());
    assert!(read.flows.is_empty());
    let shown = router.json("show sflow");
    assert_eq!(shown["drop_monitoring"], "enabled");
    assert_eq!(shown["drop_notifications"], cases.len());
    assert_eq!(router.totals("e0").drops, cases.len() as u64 - 2, "the sender of two was answered");
    router.sent("e0");
}

#[test]
fn a_packet_that_dies_at_the_output_is_shown_as_it_would_have_left() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.cli("sflow header-bytes 14");
    router.cli("sflow drop-monitoring enable");
    router.stall("e1", true);
    router.send("e0", &datagram([10, 0, 1, 2], b"no room"));
    flush(&mut router);
    let (e0, e1) = (router.id("e0").0 + 1, router.id("e1").0 + 1);
    let discarded = &collector.read().discarded;
    assert_eq!(discarded.len(), 1);
    let dead = &discarded[0];
    assert_eq!((dead.ports, dead.reason), ([e0, e1], NO_BUFFER_SPACE));
    assert_eq!(dead.protocol, ETHERNET);
    assert_eq!(dead.header, [2, 0, 0, 0, 0, 0x22, 2, 0xfe, 0, 0, 0, 1, 8, 0]);
    assert_eq!(dead.symbol, "e1-tx/tx-ring-full");
    router.stall("e1", false);
}

#[test]
fn beyond_the_limit_packets_are_counted_and_each_notification_says_how_many() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.cli("sflow drop-monitor-limit 5");
    router.cli("sflow drop-monitoring enable");
    const PACKETS: u64 = 300;
    for _ in 0..PACKETS {
        router.inject("e0", &datagram([192, 0, 2, 1], b"lost"));
    }
    router.run();
    flush(&mut router);
    assert_eq!(collector.read().discarded.len(), 5, "those of a second at once");
    router.send("e0", &datagram([192, 0, 2, 1], b"lost"));
    flush(&mut router);
    let last = collector.read().discarded.last().cloned().expect("there is one");
    assert_eq!((last.sequence, u64::from(last.drops)), (6, PACKETS - 5));
    assert_eq!(router.count("ip4-drop", "no-route"), PACKETS + 1);
    assert_eq!(router.json("show sflow")["drops_not_notified"], PACKETS - 5);
}

#[test]
fn without_monitoring_nothing_is_written_down() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    for line in ["sflow drop-monitoring enable", "sflow drop-monitoring disable"] {
        router.cli(line);
        router.cli(line);
    }
    router.send("e0", &datagram([192, 0, 2, 1], b"lost"));
    flush(&mut router);
    assert!(collector.read().discarded.is_empty());
    let shown = router.json("show sflow");
    assert_eq!(shown["drop_notifications"], 0);
    assert_eq!(shown["drops_not_notified"], 0);
}

#[test]
fn notifications_and_what_is_missed_are_all_packets_that_die() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.cli("sflow drop-monitor-limit 100000");
    router.cli("sflow drop-monitoring enable");
    let whole = datagram([192, 0, 2, 1], b"lost");
    for length in 1..whole.len() {
        router.inject("e0", &whole[..length]);
        let mut changed = whole.clone();
        changed[length] ^= 0xff;
        router.inject("e0", &changed);
        router.run();
    }
    router.sent("e0");
    router.sent("e1");
    flush(&mut router);
    let read = collector.read().discarded.clone();
    // What came to `error-drop`, and what was answered instead; others came there.
    let events = router.events();
    let sent = events.iter().filter(|(node, ..)| node.ends_with("-icmp-error"));
    let answered: u64 = sent.map(|(.., count)| count).sum();
    assert!(answered > 0);
    assert_eq!(read.len() as u64, router.totals("e0").drops + answered);
    assert!(read.iter().all(|dead| dead.protocol == ETHERNET && dead.header.len() <= whole.len()));
    router.sent("e0");
    router.sent("e1");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_comes_loses_no_buffer(frames in proptest::collection::vec(
        (0..2_usize, proptest::collection::vec(any::<u8>(), 1..120)), 1..60,
    )) {
        let mut collector = Collector::new();
        let mut router = router(&collector);
        router.cli("sflow drop-monitoring enable");
        for (port, bytes) in &frames {
            let mut frame = datagram([192, 0, 2, 1], b"");
            let at = bytes.len() % frame.len();
            for (place, byte) in frame[at..].iter_mut().zip(bytes) {
                *place = *byte;
            }
            router.inject(["e0", "e1"][*port], &frame);
        }
        router.run();
        // No packet waits for a neighbour any more.
        router.advance(Duration::from_secs(10));
        collector.read();
    }
}
