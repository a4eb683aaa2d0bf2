//! How times are spread, to look at while they are counted: eight classes in each octave of
//! nanoseconds. The histograms of a result are finer; these can be read by another thread.

use quiver_core::graph::counters::Count;
use serde::Serialize;

/// Classes in an octave, as bits.
const FINE_BITS: u32 = 3;
/// Times from 2^40 ns on, a quarter of an hour, are in the last class.
const OCTAVES: u32 = 40;
/// All classes.
pub const CLASSES: usize = ((OCTAVES - FINE_BITS + 1) << FINE_BITS) as usize;

/// Counts by class. It has one writer.
pub struct Spread([Count; CLASSES]);

impl Default for Spread {
    fn default() -> Spread {
        Spread(std::array::from_fn(|_| Count::default()))
    }
}

/// The class of a time.
#[inline(always)]
fn class(ns: u64) -> usize {
    let octave = (ns | 1).ilog2();
    if octave < FINE_BITS {
        return ns as usize;
    }
    let fine = (ns >> (octave - FINE_BITS)) as usize & ((1 << FINE_BITS) - 1);
    let class = ((octave - FINE_BITS + 1) << FINE_BITS) as usize + fine;
    class.min(CLASSES - 1)
}

/// The longest time of a class.
fn longest_ns(class: usize) -> u64 {
    let (octave, fine) = (class as u32 >> FINE_BITS, class as u64 & ((1 << FINE_BITS) - 1));
    match octave {
        0 => class as u64,
        octave => (((1 << FINE_BITS) + fine + 1) << (octave - 1)) - 1,
    }
}

/// Summary of the times of an interval, nanoseconds, each at most an eighth too long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Frames that were timed.
    pub count: u64,
    /// Half of the frames took at most this.
    pub p50: u64,
    /// 99 %.
    pub p99: u64,
    /// Longest.
    pub max: u64,
}

impl Spread {
    /// A frame took so long.
    #[inline(always)]
    pub fn note(&self, ns: u64) {
        self.0[class(ns)].add(1);
    }

    /// The counts now.
    pub fn read(&self) -> Vec<u64> {
        self.0.iter().map(Count::get).collect()
    }
}

/// Summary of the counts between two readings; `None` when there are none. Without an earlier
/// reading it is all.
pub fn between(before: &[u64], now: &[u64]) -> Option<Summary> {
    let old = before.iter().copied().chain(std::iter::repeat(0));
    let grown: Vec<u64> = now.iter().zip(old).map(|(now, old)| now.saturating_sub(old)).collect();
    let count: u64 = grown.iter().sum();
    let at = |part: f64| {
        let wanted = ((count as f64 * part).ceil() as u64).max(1);
        let mut seen = 0;
        let class = grown.iter().position(|n| {
            seen += n;
            seen >= wanted
        });
        class.map_or(0, longest_ns)
    };
    (count > 0).then(|| Summary { count, p50: at(0.5), p99: at(0.99), max: at(1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_interval_is_told_apart_from_what_was_before() {
        let spread = Spread::default();
        (0..100).for_each(|_| spread.note(1_000_000));
        let before = spread.read();
        assert_eq!(between(&before, &spread.read()), None);
        (0..98).for_each(|_| spread.note(100));
        (0..2).for_each(|_| spread.note(5_000));
        let summary = between(&before, &spread.read()).expect("times");
        assert_eq!((summary.count, summary.p50, summary.p99), (100, 103, 5_119));
    }

    proptest! {
        #[test]
        fn a_time_is_in_its_class_and_the_class_is_narrow(ns in 0u64..1 << 40) {
            let class = class(ns);
            prop_assert!(ns <= longest_ns(class) && longest_ns(class) <= ns + ns / 8 + 1);
            prop_assert!(class == 0 || longest_ns(class - 1) < ns);
        }
    }
}
