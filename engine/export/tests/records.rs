//! Rings from workers to the control thread.

use proptest::prelude::*;
use quiver_export::records::{KindCounts, Record, Records};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbered {
    number: u64,
    kind: usize,
}

impl Record for Numbered {
    const KINDS: &'static [&'static str] = &["even", "odd"];

    fn kind(&self) -> usize {
        self.kind
    }
}

fn numbered(number: u64) -> Numbered {
    Numbered { number, kind: (number % 2) as usize }
}

fn counts(records: &Records<Numbered>) -> Vec<KindCounts> {
    records.counts().map(|(_, counts)| counts).collect()
}

#[test]
fn a_full_ring_loses_the_newest_and_counts_them_by_kind() {
    let mut records = Records::default();
    let mut recorder = records.open(4);
    (0..7).for_each(|number| {
        recorder.write(numbered(number));
    });
    let mut taken = Vec::new();
    assert!(!records.take(usize::MAX, |record: Numbered| taken.push(record.number)));
    assert_eq!(taken, [0, 1, 2, 3]);
    // 4 and 6 were lost of the even ones, 5 of the odd ones.
    assert_eq!(
        counts(&records),
        [KindCounts { made: 4, lost: 2 }, KindCounts { made: 3, lost: 1 }]
    );
}

#[test]
fn a_writer_that_goes_leaves_its_records_and_its_counts() {
    let mut records = Records::default();
    for number in 0..3 {
        let mut recorder = records.open(2);
        (0..5).for_each(|_| {
            recorder.write(numbered(number));
        });
    }
    assert!(!records.is_idle());
    let mut taken = 0;
    assert!(records.take(1, |_| taken += 1), "more wait");
    assert!(!records.take(1, |_| taken += 1));
    assert_eq!(taken, 6);
    assert!(records.is_idle());
    let expected = [KindCounts { made: 10, lost: 6 }, KindCounts { made: 5, lost: 3 }];
    assert_eq!(counts(&records), expected);
}

proptest! {
    /// Whatever is written and taken in between: what was made is what was taken and what was lost.
    #[test]
    fn made_is_taken_and_lost(steps in prop::collection::vec((0..40u64, 0..40usize), 1..40)) {
        let mut records = Records::default();
        let mut recorder = records.open(16);
        let (mut next, mut taken) = (0, Vec::new());
        for (writes, takes) in steps {
            for _ in 0..writes {
                recorder.write(numbered(next));
                next += 1;
            }
            records.take(takes, |record: Numbered| taken.push(record.number));
        }
        records.take(usize::MAX, |record: Numbered| taken.push(record.number));
        prop_assert!(taken.is_sorted_by(|a, b| a < b));
        let all = counts(&records);
        let lost: u64 = all.iter().map(|counts| counts.lost).sum();
        prop_assert_eq!(all.iter().map(|counts| counts.made).sum::<u64>(), next);
        prop_assert_eq!(taken.len() as u64 + lost, next);
    }
}

/// A worker on a thread of its own that outruns the control thread by far.
#[test]
fn a_slow_reader_hurts_nobody_and_the_counts_are_exact() {
    const WRITTEN: u64 = 200_000;
    let mut records = Records::default();
    let mut recorder = records.open(64);
    let writer = std::thread::spawn(move || {
        (0..WRITTEN).for_each(|number| {
            recorder.write(numbered(number));
        });
    });
    let mut taken = 0;
    while !records.is_idle() || !writer.is_finished() {
        records.take(8, |_| taken += 1);
        std::thread::yield_now();
    }
    writer.join().expect("no panic");
    records.take(usize::MAX, |_| taken += 1);
    let all = counts(&records);
    let lost: u64 = all.iter().map(|counts| counts.lost).sum();
    assert_eq!(all.iter().map(|counts| counts.made).sum::<u64>(), WRITTEN);
    assert_eq!(taken + lost, WRITTEN);
}
