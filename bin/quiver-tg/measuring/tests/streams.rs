//! What streams send and when, over wires that note every frame, on a clock that a test moves.

use crate::wire;

use std::sync::{Arc, Mutex};

use quiver_tg_measuring::report::{Kind, Report, StreamReport};
use quiver_tg_measuring::request::{Measure, Rate};
use quiver_tg_measuring::surroundings::NoObserver;
use wire::{check_balance, cross, generator};

const NO_LIMIT: usize = usize::MAX;

/// Frames as they entered the wires: the port, and the bytes.
type Seen = Arc<Mutex<Vec<(usize, Vec<u8>)>>>;

/// Measure for so long over perfect wires; what was found, and what was seen.
fn measure(streams: &str, rate: Rate, duration_s: f64) -> (Report, Vec<(usize, Vec<u8>)>) {
    let seen = Seen::default();
    let own = seen.clone();
    let note = move |port: usize, _: u64, bytes: &mut Vec<u8>| {
        own.lock().expect("seen").push((port, bytes.clone()));
        cross(port, 5_000)
    };
    let mut generator = generator(streams, NO_LIMIT, Box::new(note));
    seen.lock().expect("seen").clear();
    let request = Measure { warmup_s: 0.0, drain_s: 0.02, ..Measure::new(rate, duration_s) };
    let report = generator.measure(&request, &mut NoObserver).expect("report");
    check_balance(&mut generator);
    let seen = seen.lock().expect("seen").clone();
    (report, seen)
}

/// A stream with one more entry; `number` is in its addresses.
fn stream(from: usize, number: u8, more: &str) -> String {
    let to = 1 - from;
    format!(
        "  - {{from: {from}, to: {to}, layers: {{ethernet: {{dst: \"02:fe:00:00:00:01\"}}, \
         ip4: {{src: 10.0.0.{number}, dst: 10.1.0.1}}, udp: {{}}}}, {more}}}\n"
    )
}

/// The last octets of the source addresses, in the order of sending, runs as one.
fn order(seen: &[(usize, Vec<u8>)]) -> Vec<(u8, usize)> {
    seen.chunk_by(|a, b| a.1[29] == b.1[29]).map(|run| (run[0].1[29], run.len())).collect()
}

fn counts(stream: &StreamReport) -> (u64, u64, u64) {
    (stream.intended, stream.offered, stream.received)
}

#[test]
fn a_stream_with_a_rate_of_its_own_keeps_it_and_the_others_share_what_is_asked_for() {
    let streams = format!(
        "streams:\n{}{}{}",
        stream(0, 1, "rate: 1000"),
        stream(0, 2, "weight: 3"),
        stream(1, 3, "weight: 1")
    );
    let (report, _) = measure(&streams, Rate::Pps(4000.0), 1.0);
    let offered: Vec<_> = report.per_stream.iter().map(counts).collect();
    assert_eq!(offered, [1000, 3000, 1000].map(|frames| (frames, frames, frames)));
    assert_eq!((report.intended, report.offered, report.lost, report.limit), (5000, 5000, 0, None));
}

#[test]
fn a_latency_stream_goes_beside_a_load_that_fills_the_ring() {
    let streams =
        format!("streams:\n{}{}", stream(0, 1, "weight: 1"), stream(0, 2, "latency: true"));
    let (report, _) = measure(&streams, Rate::Max, 0.01);
    let kinds: Vec<_> = report.per_stream.iter().map(|s| s.kind).collect();
    assert_eq!(kinds, [Kind::Load, Kind::Latency]);
    // 9,000 frames a second, and a pass of 1 µs.
    let latency = &report.per_stream[1];
    assert_eq!(counts(latency), (90, 90, 90));
    assert!(latency.departure_ns.as_ref().is_some_and(|d| d.count == 90 && d.max <= 1_100));
    assert_eq!(report.per_stream[0].departure_ns, None);
    assert_eq!(report.offered, report.per_stream[0].offered);
}

#[test]
fn a_burst_stops_and_bursts_follow_one_another_with_their_gap() {
    let streams = format!(
        "streams:\n{}{}",
        stream(0, 1, "rate: 1M, bursts: {packets: 7}"),
        stream(0, 2, "rate: 1M, delay: 1ms, bursts: {packets: 3, count: 4, gap: 2ms}")
    );
    let (report, seen) = measure(&streams, Rate::Max, 0.02);
    assert_eq!(order(&seen), [(1, 7), (2, 12)]);
    let offered: Vec<_> = report.per_stream.iter().map(counts).collect();
    assert_eq!(offered, [(7, 7, 7), (12, 12, 12)]);
}

#[test]
fn a_chain_goes_from_port_to_port_as_often_as_it_says() {
    let streams = format!(
        "streams:\n{}{}{}",
        stream(0, 1, "name: first, rate: 1M, loops: 3, bursts: {packets: 2}"),
        stream(1, 2, "name: second, rate: 1M, after: first, delay: 100us, bursts: {packets: 3}"),
        stream(0, 3, "name: third, rate: max, after: second, bursts: {packets: 4}")
    );
    let (report, seen) = measure(&streams, Rate::Max, 0.1);
    assert_eq!(order(&seen), [(1, 2), (2, 3), (3, 4)].repeat(3));
    assert!(seen.iter().all(|(port, bytes)| *port == usize::from(bytes[29] == 2)));
    assert_eq!((report.offered, report.lost), (27, 0));
    let names: Vec<_> = report.per_stream.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["first", "second", "third"]);
}

#[test]
fn poisson_and_bursts_have_the_rate_that_was_asked_for() {
    let streams = format!(
        "streams:\n{}{}",
        stream(0, 1, "rate: 163840, pacing: poisson"),
        stream(0, 2, "rate: 100k, pacing: {bursts_of: 16}")
    );
    let (report, seen) = measure(&streams, Rate::Max, 0.1);
    // As many gaps as one round of the table has: their sum is exact.
    assert_eq!(report.per_stream[0].offered, 16_384);
    assert_eq!(report.per_stream[1].offered, 10_000);
    let runs = order(&seen).into_iter().filter(|(stream, _)| *stream == 2);
    assert!(runs.clone().all(|(_, count)| count % 16 == 0), "{:?}", runs.collect::<Vec<_>>());
}

#[test]
fn packets_are_sent_as_they_are_written_and_counted_by_their_stamps() {
    let udp = "02fe00000001 020000000001 0800 4500002c00004000 4011 26bf 0a000001 0a010001 \
               0400 0400 0018 0000 00112233445566778899aabbccddeeff";
    let arp = "ffffffffffff 020000000001 0806 0001080006040001 020000000001 0a000001 000000000000 \
        0a010001";
    let streams = format!(
        "streams:\n  - {{from: 0, to: 1, packets: [\"{udp}\", \"{arp}\"]}}\n\
         \x20 - {{from: 1, to: 0, packets: [\"{arp}\"], stamp: false, rate: 1000}}\n"
    );
    let (report, seen) = measure(&streams, Rate::Pps(1000.0), 0.1);
    assert_eq!(counts(&report.per_stream[0]), (100, 100, 100));
    assert_eq!(report.per_stream[1].kind, Kind::Unstamped);
    assert_eq!((report.offered, report.lost), (100, 0));
    let lengths: Vec<_> =
        seen.iter().filter(|(port, _)| *port == 0).map(|(_, b)| b.len()).take(3).collect();
    // The payload has room for the stamp; behind an ARP question it is appended.
    assert_eq!(lengths, [58, 58, 58]);
    assert!(seen.iter().filter(|(port, _)| *port == 1).all(|(_, bytes)| bytes.len() == 42));
}
