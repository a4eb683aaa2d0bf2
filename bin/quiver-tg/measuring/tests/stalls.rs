//! A host that lets the generator stand still, told from a generator that is at its end.

use crate::wire;

use std::sync::atomic::Ordering;

use quiver_tg_measuring::generator::Generator;
use quiver_tg_measuring::report::{Limit, Report};
use quiver_tg_measuring::request::{Measure, Rate};
use quiver_tg_measuring::surroundings::NoObserver;
use wire::{Bench, Fault, ONE_WAY, check_balance, check_counts, generator};

const NO_LIMIT: usize = usize::MAX;
/// Frames that a receive ring holds here: more than a vector, which is sent at once behind a stall.
const RING: usize = 512;
/// The clock jumps by so much, as it does for a worker that is not run.
const STALL_NS: u64 = 20_000_000;
/// It does when this frame passes.
const STALLS_AT: u64 = 5_000;

/// Without a warm-up, and without making up for what was missed.
fn measure(generator: &mut Generator<Bench>, rate_pps: f64) -> Report {
    let rate = Rate::Pps(rate_pps);
    let request = Measure { warmup_s: 0.0, make_up: false, ..Measure::new(rate, 0.5) };
    let report = generator.measure(&request, &mut NoObserver).expect("report");
    check_counts(&report);
    check_balance(generator);
    report
}

/// Behind a wire that says when each frame arrives, given its number and the time.
fn behind(arrives_ns: fn(u64, u64) -> u64, stalls_at: Option<u64>) -> Generator<Bench> {
    let mut generator = generator(ONE_WAY, NO_LIMIT, Box::new(|_, _, _| vec![]));
    let time = generator.surroundings().time.clone();
    let fault: Fault = Box::new(move |_, number, _| {
        let now_ns = time.load(Ordering::Relaxed);
        if Some(number) == stalls_at {
            time.fetch_add(STALL_NS, Ordering::Relaxed);
        }
        vec![(1, arrives_ns(number, now_ns) - now_ns)]
    });
    let wires = generator.surroundings().wires.clone();
    let mut wires = wires.lock().expect("wires");
    wires.set_fault(fault);
    wires.set_ring(RING);
    drop(wires);
    generator
}

#[test]
fn a_ring_that_filled_while_the_worker_did_not_run_is_the_hosts_doing() {
    // 1,000 frames are under way when it stands still: they find a ring of 512.
    let mut generator = behind(|_, now_ns| now_ns + 20_000_000, Some(STALLS_AT));
    let report = measure(&mut generator, 50_000.0);
    assert!((440..=540).contains(&report.lost), "{}", report.lost);
    assert_eq!(
        (report.limit, report.limited_by_generator, report.host_stalled),
        (None, false, true)
    );
    let stalls = report.host_stalls;
    assert_eq!((stalls.count, stalls.rings_filled), (1, 1), "{stalls:?}");
    assert!(
        (0.02..0.021).contains(&stalls.longest_s) && stalls.total_s == stalls.longest_s,
        "{stalls:?}"
    );
}

#[test]
fn a_ring_that_the_load_filled_is_the_generators() {
    // What was sent in 20 ms comes all at once.
    let mut generator = behind(|_, now_ns| (now_ns / 20_000_000 + 1) * 20_000_000, None);
    let report = measure(&mut generator, 50_000.0);
    assert!(report.lost > 5_000, "{}", report.lost);
    assert_eq!((report.limit, report.host_stalled), (Some(Limit::Receive), false));
    assert_eq!((report.host_stalls.count, report.host_stalls.rings_filled), (0, 0));
}

#[test]
fn a_stall_that_filled_no_ring_excuses_no_loss() {
    let mut generator = behind(|_, now_ns| now_ns + 5_000, Some(STALLS_AT));
    let wires = generator.surroundings().wires.clone();
    let time = generator.surroundings().time.clone();
    wires.lock().expect("wires").set_fault(Box::new(move |_, number, _| {
        if number == STALLS_AT {
            time.fetch_add(1_000_000, Ordering::Relaxed);
        }
        if number % 100 == 0 { vec![] } else { vec![(1, 5_000)] }
    }));
    let report = measure(&mut generator, 50_000.0);
    assert!(report.lost > 200, "{}", report.lost);
    assert_eq!((report.limit, report.host_stalled, report.host_stalls.count), (None, false, 1));
}

#[test]
fn frames_that_a_stall_missed_do_not_make_the_generator_too_slow() {
    let mut generator = behind(|_, now_ns| now_ns + 5_000, Some(STALLS_AT));
    let report = measure(&mut generator, 50_000.0);
    // They were sent behind the end: the rate was less than asked for by 20 ms of half a second.
    assert!(report.offered_pps < 0.98 * 50_000.0, "{}", report.offered_pps);
    assert_eq!((report.lost, report.limit, report.host_stalled), (0, None, true));
}
