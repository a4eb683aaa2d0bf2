//! Faults that are done on purpose and faults that are found: the same, frame by frame; and counts
//! that balance whatever comes, with a clock that jumps, too.

use crate::wire;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use proptest::prelude::*;
use quiver_tg_measuring::generator::Generator;
use quiver_tg_measuring::report::Report;
use quiver_tg_measuring::request::{Measure, Rate};
use quiver_tg_measuring::surroundings::NoObserver;
use wire::{BOTH_WAYS, Bench, ONE_WAY, check_balance, check_counts, cross, generator_with};

const NO_LIMIT: usize = usize::MAX;

/// A wire of 5 µs; port 1 has these faults.
fn faulty(streams: &str, faults: &str) -> Generator<Bench> {
    generator_with(
        streams,
        &format!(", faults: {{{faults}}}"),
        NO_LIMIT,
        Box::new(|p, _, _| cross(p, 5_000)),
    )
}

/// As [`faulty`]; when so manieth frames of port 0 leave, the clock is set by so many nanoseconds.
fn faulty_with_steps(
    streams: &str,
    faults: &str,
    delay_ns: u64,
    steps: Vec<(u64, i64)>,
) -> Generator<Bench> {
    let clock: Arc<OnceLock<Arc<AtomicU64>>> = Arc::default();
    let set = clock.clone();
    let fault = move |port: usize, number: u64, _: &mut Vec<u8>| {
        for (_, step) in steps.iter().filter(|(at, _)| port == 0 && *at == number) {
            let time = set.get().expect("the clock");
            time.store(
                time.load(Ordering::Relaxed).saturating_add_signed(*step),
                Ordering::Relaxed,
            );
        }
        cross(port, delay_ns)
    };
    let keys = format!(", faults: {{{faults}}}");
    // Announcements leave before there is a clock, and are frames of port 0.
    let mut generator =
        generator_with(streams, &keys, NO_LIMIT, Box::new(|p, _, _| cross(p, 5_000)));
    let _ = clock.set(generator.surroundings().time.clone());
    generator.surroundings().wires.lock().expect("wires").set_fault(Box::new(fault));
    generator
}

fn measure(generator: &mut Generator<Bench>) -> Report {
    let request =
        Measure { warmup_s: 0.0, drain_s: 0.03, ..Measure::new(Rate::Pps(20_000.0), 0.2) };
    let report = generator.measure(&request, &mut NoObserver).expect("report");
    check_counts(&report);
    report
}

#[test]
fn each_fault_is_found_as_often_as_it_was_done() {
    let mut generator =
        faulty(ONE_WAY, "loss: 0.02, duplicate: 0.03, reorder: 0.01, corrupt: 0.02");
    for _ in 0..3 {
        let report = measure(&mut generator);
        let done = report.per_port[1].faults.expect("faults");
        assert!(
            done.lost > 40 && done.duplicated > 60 && done.reordered > 20 && done.corrupted > 40
        );
        assert_eq!((done.missed, done.overflowed), (0, 0));
        assert_eq!(report.lost as u64, done.lost + done.corrupted);
        let found = (report.duplicated, report.reordered, report.corrupted);
        assert_eq!(found, (done.duplicated, done.reordered, done.corrupted));
        assert_eq!(report.per_stream[0].reordered_behind_max >= 3, done.reordered > 0);
        check_balance(&mut generator);
    }
}

#[test]
fn the_same_seed_hits_the_same_frames_and_another_seed_others() {
    let gaps = |seed: u64| {
        let report = measure(&mut faulty(ONE_WAY, &format!("loss: 0.1, seed: {seed}")));
        (report.lost, report.per_stream[0].gaps.runs)
    };
    assert_eq!(gaps(7), gaps(7));
    assert_ne!(gaps(7), gaps(8));
}

#[test]
fn frames_lost_together_are_gaps_of_that_length() {
    let report = measure(&mut faulty(ONE_WAY, "loss: 0.001, loss_run: 40"));
    let gaps = report.per_stream[0].gaps;
    assert!(gaps.runs >= 1 && gaps.longest_frames >= 40, "{gaps:?}");
    assert_eq!(report.per_port[1].faults.expect("faults").lost, report.lost as u64);
}

#[test]
fn delayed_frames_are_in_the_tail_of_the_latencies() {
    let report = measure(&mut faulty(ONE_WAY, "delay: 0.1, delay_us: 300"));
    let done = report.per_port[1].faults.expect("faults");
    let latency = report.latency_ns.expect("latency");
    assert_eq!(report.lost, 0);
    assert!(
        (5_000..8_000).contains(&latency.p50) && (305_000..310_000).contains(&latency.p99),
        "{latency:?}"
    );
    let tenth = 0.1 * report.offered as f64;
    assert!((done.delayed as f64 - tenth).abs() < 0.2 * tenth, "{done:?}");
    // Each is overtaken by the six frames sent in 300 µs, as far as these are not delayed
    // themselves.
    assert!(report.reordered > 0 && report.reordered <= done.delayed);
}

#[test]
fn faults_of_one_port_leave_the_other_alone() {
    let report = measure(&mut faulty(BOTH_WAYS, "loss: 0.5"));
    let lost: Vec<i64> = report.per_direction.iter().map(|d| d.lost).collect();
    assert!(lost[0] > 800 && lost[1] == 0, "{lost:?}");
    assert!(report.per_port[0].faults.is_none());
}

#[test]
fn a_clock_that_goes_back_makes_no_huge_latencies_and_is_counted() {
    let mut generator =
        faulty_with_steps(ONE_WAY, "", 5_000, vec![(1_000, -10_000_000), (2_000, -3_000_000)]);
    let report = measure(&mut generator);
    assert_eq!((report.offered, report.lost), (4_000, 0));
    assert_eq!((report.clock_steps, report.time_impossible), (2, 2));
    let latency = report.latency_ns.expect("latency");
    assert_eq!((latency.count, latency.max / 1_000), (3_998, 5), "{latency:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn counts_balance_whatever_befalls_frames_and_clock(
        loss in 0u32..20, loss_run in 1u32..30, duplicate in 0u32..20, reorder in 0u32..20,
        reorder_by in 1u32..50, corrupt in 0u32..20, delay in 0u32..20, delay_us in 1u64..20_000,
        seed: u64,
        steps in prop::collection::vec((0u64..2_000, -20_000_000i64..20_000_000), 0..4),
    ) {
        let share = |percent: u32| f64::from(percent) / 100.0;
        let faults = format!(
            "loss: {}, loss_run: {loss_run}, duplicate: {}, reorder: {}, reorder_by: {reorder_by}, \
             corrupt: {}, delay: {}, delay_us: {delay_us}, seed: {seed}",
            share(loss),
            share(duplicate),
            share(reorder),
            share(corrupt),
            share(delay),
        );
        let is_steady = steps.is_empty();
        let mut generator = faulty_with_steps(BOTH_WAYS, &faults, 5_000, steps);
        let report = measure(&mut generator);
        let done = report.per_port[1].faults.expect("faults");
        prop_assert_eq!(done.overflowed, 0);
        prop_assert_eq!(report.corrupted, done.corrupted);
        if is_steady {
            let stream = &report.per_stream[0];
            prop_assert_eq!(stream.lost as u64, done.lost + done.corrupted + stream.too_late);
            prop_assert_eq!(stream.duplicated, done.duplicated);
            // A frame that was to be overtaken by one that is late keeps its place.
            prop_assert!(stream.reordered.abs_diff(done.reordered) <= done.delayed);
            prop_assert_eq!((report.clock_steps, report.time_impossible), (0, 0));
        }
        if let Some(latency) = &report.latency_ns {
            prop_assert!(latency.max < 200_000_000, "{:?}", latency);
        }
        check_balance(&mut generator);
    }
}
