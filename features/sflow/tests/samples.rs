//! What is sampled, what collectors get of it, and what operators type.

use std::time::Duration;

use quiver_core::memory::buffer::Offload;
use quiver_testkit::configuration::running;
use quiver_testkit::{Router, Settings};

use crate::reader::Collector;

/// `e0` and `e1` give theirs to each other.
fn router(collector: &Collector) -> Router {
    router_with(Settings::default(), collector)
}

fn router_with(settings: Settings, collector: &Collector) -> Router {
    let mut router = Router::with(
        settings,
        &[
            quiver_ethernet::register,
            quiver_ip::register,
            quiver_export::register,
            quiver_sflow::register,
        ],
    );
    for name in ["e0", "e1"] {
        router.interface(name);
    }
    router.cli("set interface l2 xconnect e0 e1");
    router.cli("set interface l2 xconnect e1 e0");
    let port = collector.port();
    router.cli(&format!("sflow collector 127.0.0.1 src 127.0.0.1 port {port}"));
    router.cli("sflow polling-interval 0");
    router
}

fn frame(number: u8, length: usize) -> Vec<u8> {
    let mut frame = vec![number; length];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
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
fn with_a_rate_of_one_each_packet_is_a_sample_as_it_was_on_the_wire() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.cli("sflow sampling-rate 1");
    router.cli("sflow enable-disable e0");
    let frames = [frame(1, 60), frame(2, 129), frame(3, 1514), frame(4, 64)];
    frames.iter().for_each(|frame| router.send("e0", frame));
    router.send("e1", &frame(5, 60));
    flush(&mut router);
    assert_eq!(router.sent("e1"), frames, "packets go on");
    let read = collector.read();
    assert_eq!(read.flows.len(), 4, "what e1 received is not sampled");
    let id = router.id("e0").0 + 1;
    for (place, (flow, frame)) in read.flows.iter().zip(&frames).enumerate() {
        assert_eq!((flow.sequence, flow.source, flow.rate), (place as u32 + 1, id, 1));
        assert_eq!((flow.drops, flow.ports), (0, [id, 0]));
        assert_eq!(flow.frame_bytes as usize, frame.len() + 4);
        assert_eq!(flow.header, frame[..frame.len().min(128)]);
    }
    assert_eq!(read.flows[3].pool, 4);
}

#[test]
fn what_an_interface_sends_is_sampled_with_where_it_came_in() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.cli("sflow sampling-rate 1");
    router.cli("sflow header-bytes 14");
    router.cli("sflow enable-disable e1 tx");
    router.send("e0", &frame(1, 60));
    router.send("e1", &frame(2, 60));
    flush(&mut router);
    let (e0, e1) = (router.id("e0").0 + 1, router.id("e1").0 + 1);
    let flows = &collector.read().flows;
    assert_eq!(flows.len(), 1);
    assert_eq!((flows[0].source, flows[0].ports), (e1, [e0, e1]));
    assert_eq!(flows[0].header, frame(1, 14));
}

#[test]
fn samples_and_pool_of_many_packets_agree_within_the_error_of_sampling() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.cli("sflow sampling-rate 20");
    router.cli("sflow enable-disable e0");
    const PACKETS: usize = 20_000;
    for _ in 0..PACKETS / 2_000 {
        (0..2_000).for_each(|_| router.inject("e0", &frame(1, 60)));
        router.run();
        router.sent("e1");
        flush(&mut router);
        collector.read();
    }
    let read = collector.read();
    let samples = read.flows.len() as f64;
    let estimate = samples * 20.0;
    // Five deviations: 1 in two million runs is outside.
    let deviation = (PACKETS as f64 * 20.0).sqrt();
    assert!((estimate - PACKETS as f64).abs() < 5.0 * deviation, "{samples} samples");
    let shown = router.json("show sflow");
    assert_eq!(shown["interfaces"][0]["packets"], PACKETS);
    assert_eq!(shown["flow_samples"], read.flows.len());
    let numbers: Vec<u32> = read.flows.iter().map(|flow| flow.sequence).collect();
    assert_eq!(numbers, (1..=read.flows.len() as u32).collect::<Vec<_>>());
    let datagrams: Vec<u32> = (1..=read.sequences.len() as u32).collect();
    assert_eq!(read.sequences, datagrams);
}

#[test]
fn a_ring_that_is_full_loses_samples_and_says_how_many() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.cli("sflow sampling-rate 1");
    router.cli("sflow enable-disable e0");
    const PACKETS: u64 = 5_000;
    for _ in 0..PACKETS / 100 {
        (0..100).for_each(|_| router.inject("e0", &frame(1, 60)));
        router.step();
    }
    router.run();
    router.sent("e1");
    flush(&mut router);
    router.send("e0", &frame(1, 60));
    flush(&mut router);
    let (sampled, lost) =
        (router.count("sflow-input", "sampled"), router.count("sflow-input", "lost"));
    assert_eq!(sampled + lost, PACKETS + 1);
    let read = collector.read();
    let last = read.flows.last().expect("one was sampled");
    assert_eq!(u64::from(last.drops), lost);
    assert_eq!(u64::from(last.pool), PACKETS + 1);
}

#[test]
fn a_super_frame_is_sampled_as_often_as_it_has_packets() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.cli("sflow sampling-rate 1");
    router.cli("sflow enable-disable e0");
    let offload = Offload {
        checksum_bytes: 4_520,
        checksum_offset: 16,
        segment_bytes: 1_000,
        payload_bytes: 4_500,
        segment_kind: 1,
        encapsulations: 0,
    };
    router.send("e0", &frame(1, 60));
    router.send_unfinished("e0", &frame(2, 54 + 4_500), offload);
    router.send("e0", &frame(3, 60));
    flush(&mut router);
    let flows = &collector.read().flows;
    let kinds: Vec<u8> = flows.iter().map(|flow| flow.header[6]).collect();
    assert_eq!(kinds, [1, 2, 2, 2, 2, 2, 3]);
    assert_eq!(flows[1].frame_bytes, (4_500 + 5 * 54) / 5 + 4, "of a packet, with its checksum");
    assert_eq!(router.json("show sflow")["interfaces"][0]["packets"], 7);
    router.sent("e1");
}

#[test]
fn vectors_are_sampled_alike_whole_and_node_by_node() {
    let mut results = Vec::new();
    for block_driver in [true, false] {
        let mut collector = Collector::new();
        let settings = Settings { block_driver, ..Settings::default() };
        let mut router = router_with(settings, &collector);
        router.cli("sflow sampling-rate 1");
        router.cli("sflow enable-disable e0 both");
        let frames: Vec<_> =
            (0..300_u16).map(|number| frame(number as u8, 60 + usize::from(number))).collect();
        for frames in frames.chunks(130) {
            frames.iter().for_each(|frame| router.inject("e0", frame));
            frames.iter().take(7).for_each(|frame| router.inject("e1", frame));
            router.run();
            flush(&mut router);
        }
        assert_eq!(router.sent("e1"), frames);
        router.sent("e0");
        let flows = collector.read().flows.iter();
        let mut seen: Vec<_> = flows.map(|flow| (flow.ports, flow.header.clone())).collect();
        seen.sort_unstable();
        results.push((seen, router.json("show sflow")["interfaces"].clone()));
    }
    assert_eq!(results[0].0.len(), 300 + 21);
    assert_eq!(results[0], results[1]);
}

#[test]
fn counters_are_those_of_the_interface() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.cli("sflow polling-interval 1");
    router.cli("sflow enable-disable e0 both");
    (0..7).for_each(|_| router.send("e0", &frame(1, 100)));
    router.send("e1", &frame(1, 60));
    for _ in 0..8 {
        router.advance(Duration::from_millis(300));
        router.run();
    }
    let read = collector.read();
    let last = read.counters.last().expect("they were polled");
    assert_eq!(last[0], router.id("e0").0 + 1);
    assert_eq!(last[1], 6, "ethernetCsmacd");
    assert_eq!(last[5], 0b11, "up");
    assert_eq!((last[6], last[7], last[8]), (0, 700, 7), "bytes and packets in");
    assert_eq!((last[14], last[15], last[16]), (0, 60, 1), "bytes and packets out");
}

#[test]
fn what_is_configured_is_written_down_and_taken_back() {
    let collector = Collector::new();
    let mut router = router(&collector);
    let before = running(&mut router);
    for (line, undo) in [
        ("sflow sampling-rate 77", "sflow sampling-rate 10000"),
        ("sflow header-bytes 64", "sflow header-bytes 128"),
        ("sflow drop-monitor-limit 5", "sflow drop-monitor-limit 1000"),
        ("sflow drop-monitoring enable", "sflow drop-monitoring disable"),
        ("sflow agent address 2001:db8::1 sub-agent 5", "sflow agent default"),
        ("sflow collector ::1 src ::1", "sflow collector ::1 src ::1 del"),
        ("sflow enable-disable e1 both", "sflow enable-disable e1 disable"),
    ] {
        router.cli(line);
        assert!(router.cli("show running-config").contains(line), "{line}");
        router.cli(undo);
        assert_eq!(running(&mut router), before, "{undo}");
    }
    router.cli("sflow enable-disable e1 tx");
    let e1 = router.id("e1");
    router.engine().delete_interface(e1).expect("it is there");
    assert!(!router.cli("show running-config").contains("sflow enable-disable"));
}

#[test]
fn a_refusal_names_what_is_wrong_and_changes_nothing() {
    let collector = Collector::new();
    let mut router = router(&collector);
    let before = running(&mut router);
    for (line, says) in [
        ("sflow sampling-rate 0", "1"),
        ("sflow header-bytes 257", "256"),
        ("sflow drop-monitor-limit 0", "1"),
        ("sflow drop-monitoring maybe", "enable"),
        ("sflow collector 192.0.2.1 src ::1", "family"),
        ("sflow collector 0.0.0.0 src 127.0.0.1", "no address of a host"),
        ("sflow collector 192.0.2.1 src 127.0.0.1 del", "no collector"),
        ("sflow enable-disable e9", "e9"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(says), "{line}: {refusal}");
        assert_eq!(running(&mut router), before, "{line}");
    }
}
