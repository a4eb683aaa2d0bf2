//! Flows of packets, and the records that a collector gets of them.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use quiver_testkit::Router;

use crate::reader::{Collector, Record};

/// Numbers of the registry of information elements.
const OCTETS: u16 = 1;
const PACKETS: u16 = 2;
const PROTOCOL: u16 = 4;
const TCP_FLAGS: u16 = 6;
const SOURCE_PORT: u16 = 7;
const INGRESS: u16 = 10;
const DESTINATION_PORT: u16 = 11;
const EGRESS: u16 = 14;
const ICMP: u16 = 32;
const DIRECTION: u16 = 61;
const VLAN: u16 = 58;
const REASON: u16 = 136;
const START: u16 = 152;
const END: u16 = 153;
const FRAME_OCTETS: u16 = 352;
/// flowEndReason.
const IDLE: u128 = 1;
const ACTIVE: u128 = 2;
const END_OF_FLOW: u128 = 3;
const FORCED: u128 = 4;

/// `e0` and `e1` give theirs to each other.
pub fn router(collector: &Collector) -> Router {
    let mut router = Router::new(&[
        quiver_ethernet::register,
        quiver_ip::register,
        quiver_export::register,
        quiver_flowprobe::register,
    ]);
    for name in ["e0", "e1"] {
        router.interface(name);
    }
    router.cli("set interface l2 xconnect e0 e1");
    router.cli("set interface l2 xconnect e1 e0");
    let port = collector.port();
    router.cli(&format!(
        "set ipfix exporter collector 127.0.0.1 src 127.0.0.1 port {port} path-mtu 1500"
    ));
    router
}

fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8];
    frame.extend(ether_type.to_be_bytes());
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

fn ip4(protocol: u8, hosts: (u8, u8), upper: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 20 + upper.len() as u8, 0, 0, 0, 0, 64, protocol, 0, 0];
    packet.extend(Ipv4Addr::new(10, 0, 0, hosts.0).octets());
    packet.extend(Ipv4Addr::new(10, 0, 1, hosts.1).octets());
    packet.extend(upper);
    ethernet(0x0800, &packet)
}

fn ip6(protocol: u8, upper: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, upper.len() as u8, protocol, 64];
    packet.extend("2001:db8::1".parse::<Ipv6Addr>().expect("an address").octets());
    packet.extend("2001:db8:1::2".parse::<Ipv6Addr>().expect("an address").octets());
    packet.extend(upper);
    ethernet(0x86dd, &packet)
}

fn udp(source: u16, destination: u16, payload: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = [source, destination].iter().flat_map(|p| p.to_be_bytes()).collect();
    bytes.extend((8 + payload as u16).to_be_bytes());
    bytes.resize(8 + payload, 0);
    bytes
}

fn tcp(source: u16, flags: u8) -> Vec<u8> {
    let mut bytes =
        [source, 80].iter().flat_map(|port: &u16| port.to_be_bytes()).collect::<Vec<_>>();
    bytes.extend([0; 8]);
    bytes.extend([0x50, flags, 0, 0, 0, 0, 0, 0]);
    bytes
}

/// Let time pass in which the clock hand goes round and messages are sent.
fn wait(router: &mut Router, seconds: u64) {
    for _ in 0..seconds * 4 {
        router.advance(Duration::from_millis(250));
        router.run();
    }
}

/// End all flows, and let their records arrive.
fn flush(router: &mut Router) {
    wait(router, 1);
    router.cli("flowprobe flush");
    wait(router, 3);
}

fn sum(records: &[Record], field: u16, direction: u128) -> u64 {
    let own = records.iter().filter(|record| record.get(DIRECTION) == direction);
    own.map(|record| record.get(field) as u64).sum()
}

#[test]
fn packets_of_a_flow_are_one_record_with_its_fields() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.cli("flowprobe feature add-del e0 ip4");
    let id = u128::from(router.id("e0").0 + 1);
    for payload in [100, 50, 0] {
        router.send("e0", &ip4(17, (1, 2), &udp(7, 9, payload)));
    }
    router.send("e0", &ip4(17, (1, 2), &udp(8, 9, 0)));
    router.send("e0", &ip4(1, (1, 2), &[8, 0, 0, 0, 0, 5, 0, 1]));
    router.send("e0", &ip6(17, &udp(7, 9, 0)));
    router.send("e1", &ip4(17, (1, 2), &udp(7, 9, 0)));
    flush(&mut router);
    let mut records = collector.records().to_vec();
    records.sort_by_key(|record| (record.get(PROTOCOL), record.get(SOURCE_PORT)));
    assert_eq!(records.len(), 3, "neither IPv6 nor what e1 received: {records:?}");
    let (icmp, first, second) = (&records[0], &records[1], &records[2]);
    assert_eq!((first.get(PACKETS), first.get(OCTETS)), (3, 3 * 28 + 150), "without padding");
    assert_eq!((first.get(SOURCE_PORT), first.get(DESTINATION_PORT)), (7, 9));
    assert_eq!(first.get(8), u128::from(Ipv4Addr::new(10, 0, 0, 1).to_bits()));
    assert_eq!(first.get(12), u128::from(Ipv4Addr::new(10, 0, 1, 2).to_bits()));
    assert_eq!((first.get(INGRESS), first.get(EGRESS), first.get(DIRECTION)), (id, 0, 0));
    assert_eq!((first.get(REASON), first.template), (FORCED, 259));
    assert!(first.get(START) <= first.get(END));
    assert_eq!((second.get(SOURCE_PORT), second.get(PACKETS)), (8, 1));
    assert_eq!((icmp.get(ICMP), icmp.get(DESTINATION_PORT)), (8 << 8, 0));
}

#[test]
fn totals_of_all_records_are_the_counters_of_the_interface() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.cli("flowprobe params record l2 l3 l4");
    router.cli("flowprobe feature add-del e0 l2 both");
    for number in 0..200_u16 {
        let host = (number % 7) as u8;
        let frames = [
            ip4(17, (host, 2), &udp(number, 9, usize::from(number % 90))),
            ip6(6, &tcp(number % 20, 0x10)),
            ethernet(0x0806, &[host; 28]),
            ip4(17, (host, 2), &[]),
            ethernet(0x0800, &[0x45; 3]),
            ethernet(0x88cc, &[number as u8; 200]),
            vec![1; 14],
        ];
        for frame in &frames {
            router.inject("e0", frame);
        }
        router.inject("e1", &frames[usize::from(number) % frames.len()]);
        router.run();
    }
    flush(&mut router);
    let (totals, records) = (router.totals("e0"), collector.records());
    assert_eq!(sum(records, PACKETS, 0), totals.rx_packets);
    assert_eq!(sum(records, FRAME_OCTETS, 0), totals.rx_bytes);
    assert_eq!(sum(records, PACKETS, 1), totals.tx_packets);
    assert_eq!(sum(records, FRAME_OCTETS, 1), totals.tx_bytes);
    assert_eq!(totals.rx_packets, 1_400);
    let shown = router.json("show flowprobe statistics");
    assert_eq!(shown["exported"], records.len());
    assert_eq!(shown["workers"][0]["flows"], 0);
}

#[test]
fn a_flow_that_goes_on_is_exported_by_the_active_timeout_and_its_counts_begin_anew() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.cli("flowprobe params record l3 l4 active 2 passive 1");
    router.cli("flowprobe feature add-del e0 ip4");
    for _ in 0..30 {
        router.send("e0", &ip4(6, (1, 2), &tcp(5, 0x10)));
        router.advance(Duration::from_millis(100));
    }
    wait(&mut router, 8);
    let records = collector.records();
    let reasons: Vec<u128> = records.iter().map(|record| record.get(REASON)).collect();
    assert_eq!(reasons.last(), Some(&IDLE));
    assert!(reasons.len() >= 2 && reasons[..reasons.len() - 1].iter().all(|r| *r == ACTIVE));
    assert_eq!(sum(records, PACKETS, 0), 30);
    // The clock hand comes by some time after the timeout.
    assert!(records.iter().all(|record| record.get(END) - record.get(START) < 3_000));
    assert!(records.iter().all(|record| record.get(TCP_FLAGS) == 0x10));
}

#[test]
fn a_connection_that_tcp_ends_is_exported_before_its_passive_timeout() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.cli("flowprobe feature add-del e0 ip6");
    for flags in [0x02, 0x10, 0x11] {
        router.send("e0", &ip6(6, &tcp(5, flags)));
    }
    wait(&mut router, 4);
    let records = collector.records();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].get(REASON), END_OF_FLOW);
    assert_eq!((records[0].get(TCP_FLAGS), records[0].get(PACKETS)), (0x13, 3));
    assert_eq!(records[0].get(27), u128::from("2001:db8::1".parse::<Ipv6Addr>().expect("one")));
}

#[test]
fn what_finds_no_place_in_the_table_is_counted_and_passes() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.cli("flowprobe table max-entries 64");
    router.cli("flowprobe feature add-del e0 ip4");
    for port in 0..100 {
        router.send("e0", &ip4(17, (1, 2), &udp(port, 9, 0)));
    }
    assert_eq!(router.sent("e1").len(), 100);
    let missed = router.count("flowprobe-input", "table-full");
    assert_eq!(missed, 36);
    flush(&mut router);
    assert_eq!(collector.records().len(), 64);
    router.send("e0", &ip4(17, (1, 2), &udp(500, 9, 0)));
    assert_eq!(router.count("flowprobe-input", "table-full"), missed, "there is room again");
    let refusal = router.refused("flowprobe table max-entries 128");
    assert!(refusal.contains("e0"), "{refusal}");
}

#[test]
fn flows_of_an_interface_that_is_recorded_no_more_are_exported() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.cli("flowprobe feature add-del e0 ip4");
    router.send("e0", &ip4(17, (1, 2), &udp(5, 9, 0)));
    router.cli("flowprobe feature add-del e0 ip4 disable");
    wait(&mut router, 3);
    assert_eq!(collector.records().len(), 1);
    router.send("e0", &ip4(17, (1, 2), &udp(5, 9, 0)));
    // Another size takes the tables away; what lives is exported before.
    router.cli("flowprobe feature add-del e0 ip4");
    router.send("e0", &ip4(17, (1, 2), &udp(6, 9, 0)));
    router.cli("flowprobe feature add-del e0 ip4 disable");
    router.cli("flowprobe table max-entries 1000");
    let records = collector.records();
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|record| record.get(REASON) == FORCED));
}

#[test]
fn tagged_frames_are_flows_of_their_sub_interface_and_of_their_port() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.cli("set interface l3 e0");
    router.cli("create sub-interfaces e0 7 dot1q 7 exact-match");
    router.cli("set interface state e0.7 up");
    router.cli("flowprobe params record l2 l3 l4");
    router.cli("flowprobe feature add-del e0.7 ip4");
    router.cli("flowprobe feature add-del e0 ip4");
    let mut frame = ip4(17, (1, 2), &udp(5, 9, 0));
    frame.splice(12..12, [0x81, 0, 0, 7]);
    router.send("e0", &frame);
    flush(&mut router);
    let ids = ["e0", "e0.7"].map(|name| u128::from(router.id(name).0 + 1));
    let records = collector.records();
    let mut found: Vec<_> = records.iter().map(|record| record.get(INGRESS)).collect();
    found.sort_unstable();
    assert_eq!(found, ids);
    assert!(records.iter().all(|record| record.get(VLAN) == 7 && record.get(PACKETS) == 1));
}

#[test]
fn whatever_comes_is_counted_once_and_loses_no_buffer() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.cli("flowprobe params record l2 l3 l4");
    router.cli("flowprobe feature add-del e0 l2");
    let mut tagged = ip6(0, &[6, 255, 0, 0]);
    tagged.splice(12..12, [0x88, 0xa8, 0, 7, 0x81, 0, 0, 9]);
    let whole = [ip4(6, (1, 2), &tcp(5, 2)), ip6(58, &[128, 0, 0, 0, 0, 1, 0, 1]), tagged];
    for frame in &whole {
        for length in 1..frame.len() {
            router.inject("e0", &frame[..length]);
            let mut changed = frame.clone();
            changed[length] ^= 0xff;
            router.inject("e0", &changed);
            router.run();
        }
    }
    flush(&mut router);
    let (packets, totals) = (sum(collector.records(), PACKETS, 0), router.totals("e0"));
    assert_eq!(packets, totals.rx_packets);
    router.sent("e1");
    assert_eq!(router.buffers_in_use(), 0);
}

#[test]
fn where_frames_are_recorded_addresses_are_whole_and_macs_make_flows() {
    const SOURCE_MAC: u16 = 56;
    const DESTINATION_MAC: u16 = 80;
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.cli("flowprobe params record l2 l3 l4");
    router.cli("flowprobe feature add-del e0 ip4");
    router.cli("flowprobe feature add-del e0 ip6");
    for mac in [8, 7] {
        for mut frame in [ip4(6, (1, 2), &tcp(5, 0x10)), ip6(17, &udp(7, 9, 20))] {
            frame[11] = mac;
            (0..mac).for_each(|_| router.inject("e0", &frame));
            router.run();
        }
    }
    router.sent("e1");
    flush(&mut router);
    let number = |address: &str| u128::from(address.parse::<Ipv6Addr>().expect("an address"));
    let mut found: Vec<_> = collector
        .records()
        .iter()
        .map(|record| {
            let (source, destination) = match record.fields.contains_key(&27) {
                true => (record.get(27), record.get(28)),
                false => (record.get(8), record.get(12)),
            };
            assert_eq!(record.get(DESTINATION_MAC), 0x0200_0000_0009);
            (record.get(PACKETS), source, destination, record.get(SOURCE_MAC))
        })
        .collect();
    found.sort_unstable();
    let ends4 = (0x0a00_0001, 0x0a00_0102);
    let ends6 = (number("2001:db8::1"), number("2001:db8:1::2"));
    let wanted = [(7, ends4), (7, ends6), (8, ends4), (8, ends6)];
    let wanted = wanted.map(|(packets, (source, destination))| {
        (packets, source, destination, 0x0200_0000_0000 | packets)
    });
    assert_eq!(found, wanted);
}
