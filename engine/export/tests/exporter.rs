//! The exporter and a collector, over the loopback device.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use quiver_export::ipfix::elements::{OBSERVATION_TIME_MS, PROTOCOL};
use quiver_export::ipfix::exporter::{FLUSH_NS, IpfixExporter, Place, Settings, Stream};
use quiver_export::ipfix::message::Format;
use quiver_export::ipfix::template::Template;
use quiver_export::moment::Moment;

use crate::collector::Collector;

const TEMPLATES: &[Template] =
    &[Template::new(256, &[OBSERVATION_TIME_MS, PROTOCOL]), Template::new(257, &[PROTOCOL])];
const STREAM: Stream = Stream { domain: 5, source_port: 0, templates: TEMPLATES };
const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn at(now_ns: u64) -> Moment {
    Moment { now_ns, unix_ns: 1_700_000_000_000_000_000 + now_ns }
}

fn settings(collector: SocketAddr) -> Settings {
    let format = Format::Ipfix;
    Settings { collector, source: LOCALHOST, path_mtu: 512, template_interval_s: 20, format }
}

fn exporter(collector: SocketAddr) -> IpfixExporter {
    let mut exporter = IpfixExporter::default();
    exporter.set(at(0), Some(settings(collector)));
    exporter.open(at(0), STREAM);
    exporter
}

fn put(exporter: &mut IpfixExporter, at: Moment, number: u64) {
    exporter.put(at, STREAM.domain, &TEMPLATES[0], |fields| {
        fields.u64(number);
        fields.u8(17);
    });
}

#[test]
fn records_share_datagrams_up_to_the_path_mtu_and_none_is_missing() {
    let mut collector = Collector::new();
    let mut exporter = exporter(collector.address());
    (0..1000).for_each(|number| put(&mut exporter, at(1), number));
    exporter.flush(at(2));
    let records = collector.records();
    let numbers: Vec<u64> = records.iter().map(|record| record.fields[&323]).collect();
    assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
    // 28 bytes of headers of IPv4 and UDP, 20 of message and set, 9 a record.
    let per_datagram = (512 - 28 - 20) / 9;
    assert_eq!(collector.longest, 20 + 9 * per_datagram);
    assert_eq!(collector.datagrams, 1 + 1000_usize.div_ceil(per_datagram));
    let counts = exporter.counts();
    assert_eq!((counts.records, counts.records_lost, counts.templates), (1000, 0, 2));
    assert_eq!(counts.datagrams.sent, collector.datagrams as u64);
}

#[test]
fn a_message_waits_for_half_a_second_and_no_longer() {
    let mut collector = Collector::new();
    let mut exporter = exporter(collector.address());
    exporter.turn(at(0));
    assert_eq!((collector.records().len(), collector.decoder.templates_seen), (0, 2));
    put(&mut exporter, at(1000), 7);
    exporter.turn(at(1000 + FLUSH_NS - 1));
    assert!(collector.records().is_empty());
    exporter.turn(at(1000 + FLUSH_NS));
    assert_eq!(collector.records().len(), 1);
}

#[test]
fn what_waits_when_the_router_stops_is_sent() {
    let mut collector = Collector::new();
    let mut exporter = exporter(collector.address());
    exporter.turn(at(1));
    put(&mut exporter, at(2), 7);
    drop(exporter);
    assert_eq!(collector.records().len(), 1);
}

/// RFC 7011 §8.1: over UDP, templates are sent again at an interval.
#[test]
fn templates_are_sent_again_at_their_interval() {
    let mut collector = Collector::new();
    let mut exporter = exporter(collector.address());
    for second in 0..61 {
        exporter.turn(at(second * 1_000_000_000));
    }
    collector.records();
    assert_eq!(collector.decoder.templates_seen, 4 * TEMPLATES.len());
}

/// RFC 7011 §3.1: the collector sees by the sequence number how many records are missing.
#[test]
fn what_linux_does_not_take_is_counted_and_missing_in_the_sequence() {
    // A broadcast address, which this socket may not send to.
    let broadcast = SocketAddr::from(([255, 255, 255, 255], 4739));
    let mut exporter = exporter(broadcast);
    (0..10).for_each(|number| put(&mut exporter, at(1), number));
    exporter.flush(at(2));
    let counts = exporter.counts();
    assert_eq!((counts.records, counts.records_lost), (0, 10));
    assert!(counts.datagrams.errors > 0);
    let state = exporter.streams().next().expect("a stream");
    assert_eq!(state.sequence, 10);
    assert!(state.error.is_some());
}

#[test]
fn a_source_that_linux_does_not_have_is_named_and_tried_again() {
    let mut collector = Collector::new();
    let source = IpAddr::from([192, 0, 2, 77]);
    let mut exporter = exporter(collector.address());
    exporter.set(at(0), Some(Settings { source, ..settings(collector.address()) }));
    put(&mut exporter, at(1), 7);
    exporter.flush(at(2));
    let error = exporter.streams().next().and_then(|state| state.error.map(str::to_owned));
    assert_eq!(error.as_deref(), Some("Linux does not have the address 192.0.2.77"));
    assert_eq!(exporter.counts().records_lost, 1);
    assert!(collector.records().is_empty());
    exporter.set(at(3), Some(settings(collector.address())));
    put(&mut exporter, at(4), 8);
    exporter.flush(at(5));
    assert_eq!(collector.records().len(), 1);
    assert_eq!(exporter.streams().next().and_then(|state| state.error), None);
}

#[test]
fn a_collector_that_is_absent_refuses_and_one_that_comes_back_gets_templates() {
    let mut collector = Collector::new();
    let address = collector.address();
    let mut exporter = exporter(address);
    put(&mut exporter, at(1), 1);
    exporter.flush(at(2));
    assert_eq!(collector.records().len(), 1);
    drop(collector);
    for number in 0..5 {
        put(&mut exporter, at(3), number);
        exporter.flush(at(3));
    }
    assert!(exporter.counts().datagrams.refused > 0);
    assert_eq!(exporter.counts().datagrams.errors, 0);
    let mut back = Collector::new();
    back.socket = UdpSocket::bind(address).expect("the port is free again");
    back.socket.set_nonblocking(true).expect("an option");
    put(&mut exporter, at(2_000_000_000), 9);
    exporter.flush(at(2_000_000_000));
    assert_eq!(back.records().len(), 1, "its templates came before it");
}

#[test]
fn without_a_collector_or_a_stream_records_are_counted_as_lost() {
    let mut collector = Collector::new();
    let mut exporter = exporter(collector.address());
    put(&mut exporter, at(1), 1);
    // What waits goes to the collector that was there.
    exporter.set(at(2), None);
    put(&mut exporter, at(3), 2);
    assert_eq!(collector.records().len(), 1);
    assert_eq!((exporter.counts().records, exporter.counts().records_lost), (1, 1));
    exporter.set(at(4), Some(settings(collector.address())));
    put(&mut exporter, at(5), 3);
    exporter.close(at(6), STREAM.domain);
    put(&mut exporter, at(7), 4);
    assert_eq!((exporter.counts().records, exporter.counts().records_lost), (2, 2));
}

/// RFC 7011 §10.3.3: with the least path MTU, templates are in several messages.
#[test]
fn templates_that_fit_in_no_message_together_are_in_several() {
    const ELEMENTS: [quiver_export::ipfix::template::Element; 12] = [PROTOCOL; 12];
    const MANY: &[Template] = &[
        Template::new(256, &ELEMENTS),
        Template::new(257, &ELEMENTS),
        Template::new(258, &ELEMENTS),
        Template::new(259, &ELEMENTS),
        Template::new(260, &ELEMENTS),
    ];
    let mut collector = Collector::new();
    let mut exporter = IpfixExporter::default();
    exporter.set(at(0), Some(Settings { path_mtu: 256, ..settings(collector.address()) }));
    exporter.open(at(0), Stream { domain: 5, source_port: 0, templates: MANY });
    exporter.turn(at(1));
    collector.records();
    assert_eq!((collector.decoder.templates_seen, collector.datagrams), (5, 2));
    assert!(collector.longest <= 256 - 28);
    assert_eq!(exporter.counts().templates, 5);
}

/// RFC 7011 §3.1: a sequence number is that of a transport session, so of one collector.
#[test]
fn each_collector_gets_all_records_with_sequence_numbers_of_its_own() {
    let (mut one, mut other) = (Collector::new(), Collector::new());
    let mut exporter = exporter(one.address());
    (0..10).for_each(|number| put(&mut exporter, at(1), number));
    let place = Place::Further(other.address());
    exporter.set_at(at(2), place, Some(settings(other.address())));
    (10..400).for_each(|number| put(&mut exporter, at(3), number));
    exporter.flush(at(4));
    let numbers = |collector: &mut Collector| -> Vec<u64> {
        collector.records().iter().map(|record| record.fields[&323]).collect()
    };
    assert_eq!(numbers(&mut one), (0..400).collect::<Vec<_>>());
    assert_eq!(numbers(&mut other), (10..400).collect::<Vec<_>>());
    let sequences: Vec<u32> = exporter.streams().map(|state| state.sequence).collect();
    assert_eq!(sequences, [400, 390]);
    // What waits for a collector that is taken away goes to it.
    put(&mut exporter, at(5), 400);
    exporter.set_at(at(6), place, None);
    assert_eq!((numbers(&mut other), exporter.counts().records), (vec![400], 791));
    exporter.flush(at(7));
    assert_eq!((numbers(&mut one), exporter.counts().records), (vec![400], 792));
}

#[test]
fn a_collector_that_is_absent_keeps_nothing_from_the_others() {
    let mut here = Collector::new();
    let absent = Collector::new().address();
    let mut exporter = exporter(absent);
    exporter.set_at(at(0), Place::Further(here.address()), Some(settings(here.address())));
    for number in 0..5 {
        put(&mut exporter, at(1), number);
        exporter.flush(at(1));
    }
    assert_eq!(here.records().len(), 5);
    let of: Vec<_> = exporter.collectors().map(|(_, _, counts)| counts.datagrams.refused).collect();
    assert!(of[0] > 0 && of[1] == 0, "{of:?}");
}
