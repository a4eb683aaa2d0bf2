//! Measurements over wires whose faults are known frame by frame: every number must come out.

use crate::wire;

use quiver_tg_measuring::generator::Generator;
use quiver_tg_measuring::report::{Limit, NotSent, Report};
use quiver_tg_measuring::request::{Measure, Rate};
use quiver_tg_measuring::surroundings::NoObserver;
use wire::{BOTH_WAYS, Bench, Fate, ONE_WAY, check_balance, check_counts, cross, generator};

const NO_LIMIT: usize = usize::MAX;

/// 10,000 frames a second for a second, behind a warm-up of 100 ms; a wire takes 5 µs.
fn measure(generator: &mut Generator<Bench>, rate: Rate) -> Report {
    let request = Measure { warmup_s: 0.1, ..Measure::new(rate, 1.0) };
    let report = generator.measure(&request, &mut NoObserver).expect("report");
    check_counts(&report);
    check_balance(generator);
    report
}

fn one_way(fault: impl FnMut(u64, &mut Vec<u8>) -> Fate + Send + 'static) -> Report {
    let mut fault = fault;
    let mut generator =
        generator(ONE_WAY, NO_LIMIT, Box::new(move |_, number, bytes| fault(number, bytes)));
    measure(&mut generator, Rate::Pps(10_000.0))
}

/// The place of a frame among those that count; `None` for the 1,000 frames of the warm-up.
fn counted(number: u64) -> Option<u64> {
    number.checked_sub(1_000)
}

#[test]
fn a_perfect_wire_loses_nothing_and_takes_as_long_as_it_is() {
    let mut generator = generator(BOTH_WAYS, NO_LIMIT, Box::new(|port, _, _| cross(port, 5_000)));
    for _ in 0..3 {
        let report = measure(&mut generator, Rate::Pps(10_000.0));
        assert_eq!((report.intended, report.offered, report.received), (10_000, 10_000, 10_000));
        assert_eq!(
            (report.lost, report.reordered, report.duplicated, report.corrupted),
            (0, 0, 0, 0)
        );
        assert_eq!(
            (report.misdelivered, report.foreign, report.too_late, report.not_sent.ring_full),
            (0, 0, 0, 0)
        );
        assert_eq!(report.stale, 1_000);
        assert_eq!(report.limit, None);
        assert!((report.duration_s - 1.0).abs() < 1e-4, "{}", report.duration_s);
        let latency = report.latency_ns.expect("latency");
        assert_eq!((latency.count, latency.min / 10, latency.max / 10), (10_000, 500, 500));
        let each: Vec<_> =
            report.per_direction.iter().map(|d| (d.from, d.to, d.received)).collect();
        assert_eq!(each, [(0, 1, 5_000), (1, 0, 5_000)]);
        // 64 B with FCS, preamble and gap are 88 B.
        assert!(
            (report.offered_l1_bps - 10_000.0 * 88.0 * 8.0).abs() < 1e3,
            "{}",
            report.offered_l1_bps
        );
    }
}

/// Through the kernel a pass takes a fifth of a millisecond, however many frames it sends.
#[test]
fn a_paced_load_sends_all_that_came_due_while_a_pass_was_slow() {
    let mut generator = generator(ONE_WAY, NO_LIMIT, Box::new(|_, _, _| vec![(1, 5_000)]));
    generator.surroundings().pass_ns = 200_000;
    let request = Measure { warmup_s: 0.0, ..Measure::new(Rate::Pps(1e6), 0.1) };
    let report = generator.measure(&request, &mut NoObserver).expect("report");
    check_counts(&report);
    assert_eq!((report.intended, report.offered), (100_000, 100_000));
    assert_eq!((report.limit, report.not_sent), (None, NotSent::default()));
}

#[test]
fn lost_frames_are_counted_one_by_one() {
    let report = one_way(|number, _| match counted(number) {
        Some(n) if n % 100 == 7 => vec![],
        _ => vec![(1, 5_000)],
    });
    assert_eq!((report.offered, report.received, report.lost), (10_000, 9_900, 100));
    assert_eq!((report.reordered, report.duplicated), (0, 0));
    let gaps = report.per_stream[0].gaps;
    assert_eq!((gaps.runs, gaps.longest_frames), (100, 1));
}

#[test]
fn frames_lost_together_are_one_gap() {
    let report = one_way(|number, _| match counted(number) {
        Some(0..=2 | 4_000..4_500 | 9_990..) => vec![],
        _ => vec![(1, 5_000)],
    });
    let gaps = report.per_stream[0].gaps;
    assert_eq!((report.lost, gaps.runs, gaps.longest_frames), (513, 3, 500));
}

#[test]
fn jitter_is_how_much_the_delay_of_neighbours_differs() {
    // Delays of 5, 5, 8 µs and so on: differences of 0, 3 and 3 µs.
    let report = one_way(|number, _| vec![(1, if number % 3 == 2 { 8_000 } else { 5_000 })]);
    let ipdv = report.ipdv_ns.expect("jitter");
    assert_eq!(ipdv.count, 9_999);
    let near = |ns: u64| (2_990..=3_010).contains(&ns);
    assert!(ipdv.min < 10 && near(ipdv.p50) && near(ipdv.max), "{ipdv:?}");
    assert!((ipdv.mean - 2_000.0).abs() < 10.0, "{ipdv:?}");
}

#[test]
fn bytes_are_those_of_the_frames_that_came() {
    let report = one_way(|number, _| if number % 5 != 0 { vec![(1, 5_000)] } else { vec![] });
    let stream = &report.per_stream[0];
    let mean = stream.received_bytes as f64 / stream.received as f64;
    assert!((mean - stream.frame_bytes).abs() < 5.0, "{mean} and {}", stream.frame_bytes);
    let l2_bits = 8.0 * (stream.received_bytes + 4 * stream.received) as f64;
    assert!((stream.received_l2_bps * report.duration_s - l2_bits).abs() < 1.0);
    assert!(stream.received_l1_bps > stream.received_l2_bps);
}

#[test]
fn late_frames_are_reordered_and_received() {
    // Every hundredth frame takes a millisecond longer: ten others overtake it.
    let report = one_way(|number, _| match counted(number) {
        Some(n) if n % 100 == 7 => vec![(1, 1_005_000)],
        _ => vec![(1, 5_000)],
    });
    assert_eq!((report.received, report.lost, report.reordered), (10_000, 0, 100));
    let latency = report.latency_ns.expect("latency");
    assert_eq!((latency.p50 / 10, latency.max / 1_000), (500, 1_005));
    assert!((9..=10).contains(&report.per_stream[0].reordered_behind_max));
}

#[test]
fn repeated_frames_are_duplicates_and_not_received_twice() {
    let report = one_way(|number, _| match counted(number) {
        Some(n) if n % 50 == 0 => vec![(1, 5_000), (1, 5_000), (1, 2_000_000)],
        _ => vec![(1, 5_000)],
    });
    assert_eq!(
        (report.received, report.lost, report.duplicated, report.reordered),
        (10_000, 0, 400, 0)
    );
}

#[test]
fn damaged_and_misdelivered_frames_are_lost_and_named() {
    let report = one_way(|number, bytes| match counted(number) {
        Some(n) if n % 100 == 1 => {
            let last = bytes.len() - 4;
            bytes[last] ^= 0x10;
            vec![(1, 5_000)]
        }
        Some(n) if n % 100 == 2 => vec![(0, 5_000)],
        _ => vec![(1, 5_000)],
    });
    assert_eq!((report.received, report.lost), (9_800, 200));
    assert_eq!((report.corrupted, report.misdelivered), (100, 100));
}

#[test]
fn frames_of_others_do_not_count() {
    let report = one_way(|number, bytes| {
        if counted(number).is_some_and(|n| n % 10 == 0) {
            let end = bytes.len() - 16;
            bytes[end..].fill(0xee);
        }
        vec![(1, 5_000)]
    });
    assert_eq!((report.received, report.lost, report.foreign), (9_000, 1_000, 1_000));
}

#[test]
fn frames_of_an_earlier_measurement_that_arrive_late_are_stale() {
    let mut sent = 0;
    let fault = move |_: usize, _: u64, _: &mut Vec<u8>| {
        sent += 1;
        // The last 50 of the first measurement (1,000 of warm-up, 10,000 counted) take three
        // seconds.
        vec![(1, if (10_951..=11_000).contains(&sent) { 1_500_000_000 } else { 5_000 })]
    };
    let mut generator = generator(ONE_WAY, NO_LIMIT, Box::new(fault));
    let first = measure(&mut generator, Rate::Pps(10_000.0));
    assert_eq!((first.received, first.lost), (9_950, 50));
    let request = Measure { warmup_s: 0.0, ..Measure::new(Rate::Pps(10_000.0), 2.0) };
    let second = generator.measure(&request, &mut NoObserver).expect("report");
    assert_eq!((second.received, second.lost, second.stale), (20_000, 0, 50));
}

#[test]
fn a_frame_that_found_the_ring_full_was_not_sent_and_is_no_loss() {
    // Frames stay in the wire for 10 ms, and it holds 50: half of the 100 that come in that time.
    let mut generator = generator(ONE_WAY, 50, Box::new(|_, _, _| vec![(1, 10_000_000)]));
    let report = measure(&mut generator, Rate::Pps(10_000.0));
    assert_eq!((report.intended, report.offered, report.lost), (10_000, report.received, 0));
    let not_sent = NotSent { ring_full: report.intended - report.offered, ..NotSent::default() };
    assert_eq!((report.not_sent, report.per_stream[0].not_sent), (not_sent, not_sent));
    assert!((4_900..=5_100).contains(&report.received), "{}", report.received);
    assert_eq!(report.limit, None, "the forwarder did not take them");
}

#[test]
fn flat_out_a_full_ring_is_waited_for_and_nothing_is_lost() {
    let mut generator = generator(BOTH_WAYS, 1_000, Box::new(|port, _, _| cross(port, 1_000_000)));
    let report = measure(&mut generator, Rate::Max);
    assert_eq!((report.lost, report.not_sent), (0, NotSent::default()));
    assert_eq!(report.intended, report.offered);
    // A thousand frames a millisecond.
    assert!((980_000..=1_002_000).contains(&report.offered), "{}", report.offered);
    assert_eq!(report.limit, None);
}

#[test]
fn flat_out_before_a_wire_that_takes_everything_the_generator_is_the_limit() {
    let mut generator = generator(ONE_WAY, NO_LIMIT, Box::new(|_, _, _| vec![(1, 5_000)]));
    let request = Measure { warmup_s: 0.0, drain_s: 0.001, ..Measure::new(Rate::Max, 0.001) };
    let report = generator.measure(&request, &mut NoObserver).expect("report");
    assert_eq!((report.lost, report.limit), (0, Some(Limit::Transmit)));
    // 256 frames in each of a thousand passes.
    assert!((250_000..=256_256).contains(&report.offered), "{}", report.offered);
}

#[test]
fn a_rate_that_the_generator_cannot_reach_is_told_and_is_no_loss() {
    let mut generator = generator(ONE_WAY, NO_LIMIT, Box::new(|_, _, _| vec![(1, 5_000)]));
    // Passes take 4 µs here and make at most 256 frames.
    generator.surroundings().pass_ns = 4_000;
    for (duration_s, offered) in [(0.002, 200_000..=200_000), (0.1, 7_600_000..=7_700_000)] {
        let request =
            Measure { warmup_s: 0.0, drain_s: 0.001, ..Measure::new(Rate::Pps(100e6), duration_s) };
        let report = generator.measure(&request, &mut NoObserver).expect("report");
        assert_eq!((report.intended as f64, report.lost), (100e6 * duration_s, 0));
        // A short one is completed in its overtime (20 ms), and was too slow all the same.
        assert!(offered.contains(&report.offered), "{}", report.offered);
        assert!((report.offered_pps - 64e6).abs() < 1e6, "{}", report.offered_pps);
        assert!(report.held_up_s > 0.0);
        assert_eq!(report.limit, Some(Limit::Transmit));
        assert!(report.limited_by_generator);
    }
}

#[test]
fn weights_divide_the_rate() {
    let streams = BOTH_WAYS.replacen("frame: 64", "frame: 64\n    weight: 3", 1);
    let mut generator = generator(&streams, NO_LIMIT, Box::new(|port, _, _| cross(port, 5_000)));
    let report = measure(&mut generator, Rate::Pps(9_999.0));
    let offered: Vec<u64> = report.per_direction.iter().map(|d| d.offered).collect();
    assert_eq!(offered, [7_499, 2_500]);
    assert_eq!(report.lost, 0);
}

#[test]
fn two_streams_of_a_port_share_its_ring_flat_out() {
    let streams = format!("{BOTH_WAYS}{}", &ONE_WAY.trim_start().replacen("streams:\n", "", 1));
    let mut generator = generator(&streams, 1_000, Box::new(|port, _, _| cross(port, 1_000_000)));
    let report = measure(&mut generator, Rate::Max);
    assert_eq!((report.lost, report.per_direction.len()), (0, 2));
}

#[test]
fn a_question_for_a_played_address_is_answered_while_measuring_and_costs_no_frame() {
    let question = {
        let mut frame = vec![0xff; 6];
        frame.extend([2, 0xfe, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
        frame.extend([2, 0xfe, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
        frame.resize(60, 0);
        frame
    };
    let answers = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let seen = answers.clone();
    let fault = move |port: usize, number: u64, bytes: &mut Vec<u8>| {
        if bytes[12..14] == [8, 6] && bytes[21] == 2 {
            assert_eq!((port, &bytes[..6]), (0, &[2, 0xfe, 0, 0, 0, 1][..]));
            seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            return vec![];
        }
        if port == 1 && number.is_multiple_of(100) {
            *bytes = question.clone(); // a frame of stream 1 is replaced by a question to port 0
        }
        cross(port, 5_000)
    };
    let mut generator = generator(BOTH_WAYS, NO_LIMIT, Box::new(fault));
    let report = measure(&mut generator, Rate::Pps(10_000.0));
    assert_eq!((report.offered, report.lost, report.foreign), (10_000, 50, 55));
    assert_eq!(answers.load(std::sync::atomic::Ordering::Relaxed), 55);
}

#[test]
fn every_frame_is_timed_or_some_or_none_as_the_profile_says() {
    for (word, every) in [("every", 1), ("sampled", 16), ("off", 0)] {
        let streams = format!("{ONE_WAY}latency: {word}\n");
        let mut generator = generator(&streams, NO_LIMIT, Box::new(|_, _, _| vec![(1, 5_000)]));
        let request = Measure { warmup_s: 0.0, ..Measure::new(Rate::Pps(1e6), 0.02) };
        let report = generator.measure(&request, &mut NoObserver).expect("report");
        assert_eq!((report.received, report.lost), (20_000, 0));
        let timed = report.latency_ns.map_or(0, |latency| latency.count);
        assert_eq!(timed, 20_000u64.checked_div(every).unwrap_or(0), "{word}");
        // Pairs are of timed frames sent one after the other.
        assert_eq!(report.ipdv_ns.map_or(0, |ipdv| ipdv.count), timed.saturating_sub(1), "{word}");
    }
}

#[test]
fn a_latency_stream_goes_beside_the_load_and_is_in_none_of_its_counts() {
    let streams = format!(
        "{ONE_WAY}  - {{from: 0, to: 1, latency: true, frame: 64, layers: {{ethernet: {{dst: \
         \"02:00:00:00:00:02\"}}}}}}\nlatency: off\n"
    );
    // Every tenth frame of the load is lost, none of the other stream.
    let fault = |_: usize, number: u64, bytes: &mut Vec<u8>| {
        if bytes.len() != 64 && number.is_multiple_of(10) { vec![] } else { vec![(1, 5_000)] }
    };
    let mut generator = generator(&streams, NO_LIMIT, Box::new(fault));
    let report = measure(&mut generator, Rate::Pps(10_000.0));
    assert_eq!((report.intended, report.offered), (10_000, 10_000));
    assert!(report.lost > 0);
    let beside = report.latency_streams.expect("latency streams");
    assert_eq!((beside.offered, beside.received, beside.lost), (9_000, 9_000, 0));
    // 9 kpps, as in CSIT: all of them timed, and nothing of the load.
    assert_eq!(report.latency_ns.expect("latency").count, 9_000);
    assert!(report.per_stream[0].latency_ns.is_none());
    assert_eq!(report.per_direction[0].offered, 10_000);
}
