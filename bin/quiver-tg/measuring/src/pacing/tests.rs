//! Pacers on a clock that a test moves.

use super::*;
use proptest::prelude::*;

#[test]
fn the_first_frame_is_due_at_the_start_and_each_other_one_interval_later() {
    let mut pacer = Pacer::new(1e6, 5_000);
    let mut at = Vec::new();
    for now in (0..10_000).step_by(10) {
        let due = pacer.due(now);
        pacer.advance(due);
        at.extend((0..due).map(|_| now));
    }
    assert_eq!(at, [5_000, 6_000, 7_000, 8_000, 9_000]);
}

#[test]
fn what_a_pause_held_up_is_made_up_slowly_and_completely() {
    let mut pacer = Pacer::new(1e6, 0);
    let (mut sent, mut now) = (0, 0);
    while now < 20_000_000 {
        let due = pacer.due(now);
        assert!(due <= 256, "{due} at once at {now}");
        pacer.advance(due);
        sent += due;
        now += if now == 1_000_000 { 1_000_000 } else { 1_000 };
    }
    assert_eq!((pacer.owed_ns(), pacer.held_up_ns()), (0, 744_000));
    assert!((19_999..=20_001).contains(&sent), "{sent}");
}

#[test]
fn what_a_pause_held_up_is_not_sent_when_it_is_not_made_up() {
    let mut pacer = Pacer::new(1e6, 0).without_making_up();
    let mut sent = 0;
    for now in (0..1_000_000).chain(2_000_000..3_000_000).step_by(1_000) {
        let due = pacer.due(now);
        pacer.advance(due);
        sent += due;
    }
    assert!((2_255..=2_257).contains(&sent), "{sent}");
    assert!(pacer.held_up_ns() > 0);
}

/// Frames due at each of `times`, all sent.
fn sent_at(pacer: &mut Pacer, times: impl Iterator<Item = u64>) -> Vec<u64> {
    times
        .flat_map(|now| {
            let due = pacer.due(now);
            pacer.advance(due);
            (0..due).map(move |_| now)
        })
        .collect()
}

#[test]
fn another_rate_takes_over_in_the_middle_of_an_interval_without_a_gap_or_a_burst() {
    let mut pacer = Pacer::new(1e6, 50_000);
    assert_eq!(sent_at(&mut pacer, 50_000..52_500), [50_000, 51_000, 52_000]);
    pacer.set_rate(100e3, 52_500);
    // Half of an interval was over: half of the new one is left.
    assert_eq!(sent_at(&mut pacer, (52_500..70_000).step_by(50)), [57_550, 67_550]);
    pacer.set_rate(1e6, 70_000);
    assert_eq!(sent_at(&mut pacer, (70_000..72_000).step_by(50)), [70_800, 71_800]);
}

#[test]
fn a_pause_is_not_made_up() {
    let mut pacer = Pacer::new(1e6, 0);
    assert_eq!(sent_at(&mut pacer, 0..1_400), [0, 1_000]);
    pacer.pause(1_400);
    pacer.resume(9_000);
    assert_eq!(sent_at(&mut pacer, 9_000..11_000), [9_600, 10_600]);
}

proptest! {
    #[test]
    fn the_mean_rate_is_exact_whatever_the_passes(
        rate in 1e3f64..2e7, passes in prop::collection::vec(100u64..20_000, 1..2000),
    ) {
        let mut pacer = Pacer::new(rate, 0);
        let (mut now, mut sent) = (0, 0);
        for pass in passes {
            now += pass;
            let due = pacer.due(now);
            pacer.advance(due);
            sent += due;
        }
        let expected = now as f64 * rate / 1e9 + 1.0;
        prop_assert!((sent as f64 - expected).abs() <= 1.001, "{} of {}", sent, expected);
    }
}
