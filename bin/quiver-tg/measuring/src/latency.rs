//! How times are distributed: HDR histograms in nanoseconds, their summary, and their exchange
//! format.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use schemars::JsonSchema;
use serde::Serialize;

/// The highest value of the histograms, nanoseconds (a minute).
pub const LATENCY_NS_MAX: u64 = 60_000_000_000;
/// Values are kept to three decimal digits: a latency is right within 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

/// An empty histogram. It never grows, so a worker may record into it.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, SIGNIFICANT_DIGITS)
        .expect("bounds are constant and valid")
}

/// Summary of a histogram, nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Distribution {
    /// Values in it.
    pub count: u64,
    /// Smallest.
    pub min: u64,
    /// Half of the values are at most this.
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    #[serde(rename = "p99.9")]
    pub p99_9: u64,
    /// 99.99 %.
    #[serde(rename = "p99.99")]
    pub p99_99: u64,
    /// 99.9999 %.
    #[serde(rename = "p99.9999")]
    pub p99_9999: u64,
    /// Largest.
    pub max: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// The histogram itself, as HDR interval logs have it (V2, compressed, base64), when it was
    /// asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hdr: Option<String>,
}

impl Distribution {
    /// `None` when nothing was recorded.
    pub fn of(histogram: &Histogram<u64>) -> Option<Distribution> {
        (!histogram.is_empty()).then(|| Distribution {
            count: histogram.len(),
            min: histogram.min(),
            p50: histogram.value_at_quantile(0.5),
            p90: histogram.value_at_quantile(0.9),
            p99: histogram.value_at_quantile(0.99),
            p99_9: histogram.value_at_quantile(0.999),
            p99_99: histogram.value_at_quantile(0.9999),
            p99_9999: histogram.value_at_quantile(0.999999),
            max: histogram.max(),
            mean: (histogram.mean() * 10.0).round() / 10.0,
            hdr: None,
        })
    }

    /// As [`of`](Self::of), with the histogram itself if `whole`.
    pub fn with_histogram(histogram: &Histogram<u64>, whole: bool) -> Option<Distribution> {
        let hdr = whole.then(|| encode(histogram));
        Distribution::of(histogram).map(|summary| Distribution { hdr, ..summary })
    }
}

/// The payload of a line of an HDR interval log: `HISTFAAA…`. Histograms from there can be added.
pub fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(histogram, &mut bytes).expect("memory takes every byte");
    STANDARD.encode(bytes)
}

/// How long the frames of a stream took, and how much that varied from one to the next.
///
/// Latency is RFC 7679's one-way delay of frames that say when they left. Its variation is RFC
/// 3393's one-way IPDV, absolute, where the selection function takes each pair of timed frames that
/// were sent one after the other: numbers n and n + `every`. A pair of which one is lost, or which
/// comes in the other order, has none (RFC 3393 §2).
pub struct Times {
    /// One-way delay.
    pub latency: Histogram<u64>,
    /// Absolute differences of the delays of pairs.
    pub ipdv: Histogram<u64>,
    /// Frames that left after they came, or longer ago than a minute: the clock was set meanwhile.
    pub impossible: u64,
    /// Every so manieth frame is timed.
    every: u64,
    /// The number that makes a pair with the last one timed.
    next: u64,
    /// How long the last one took.
    before_ns: u64,
}

impl Times {
    /// Of a stream of which every so manieth frame is timed.
    pub fn new(every: u64) -> Times {
        let (latency, ipdv) = (histogram(), histogram());
        Times { latency, ipdv, impossible: 0, every, next: u64::MAX, before_ns: 0 }
    }

    /// Frame number `sequence` took `age_ns`.
    #[inline(always)]
    pub fn note(&mut self, sequence: u64, age_ns: u64) {
        if age_ns > LATENCY_NS_MAX {
            self.impossible += 1;
            return;
        }
        self.latency.saturating_record(age_ns);
        if sequence == self.next {
            self.ipdv.saturating_record(age_ns.abs_diff(self.before_ns));
        }
        if sequence >= self.next || self.next == u64::MAX {
            self.next = sequence + self.every;
            self.before_ns = age_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variation_is_of_frames_sent_one_after_the_other_that_came_in_that_order() {
        let mut times = Times::new(16);
        // 48 is lost, 96 and 80 change places: pairs are (0, 16), (16, 32), (96, 112).
        for (sequence, age) in
            [(0, 100), (16, 130), (32, 130), (64, 500), (96, 90), (80, 300), (112, 95)]
        {
            times.note(sequence, age);
        }
        assert_eq!(times.latency.len(), 7);
        let mut pairs: Vec<u64> =
            times.ipdv.iter_recorded().map(|v| v.value_iterated_to()).collect();
        pairs.sort_unstable();
        assert_eq!(pairs, [0, 5, 30]);
    }

    #[test]
    fn a_time_that_cannot_be_is_counted_and_spoils_no_histogram() {
        let mut times = Times::new(1);
        times.note(0, 100);
        times.note(1, (1 << 40) - 500); // came 500 ns before it left
        times.note(2, 100);
        assert_eq!((times.latency.len(), times.latency.max(), times.impossible), (2, 100, 1));
        assert!(times.ipdv.is_empty());
    }

    #[test]
    fn an_exported_histogram_comes_back_whole() {
        let mut histogram = histogram();
        (0..100_000u64).for_each(|n| histogram.saturating_record(n * n % 7_777_777));
        let text = encode(&histogram);
        assert!(text.starts_with("HISTFAAA"), "{}", &text[..16]);
        let bytes = STANDARD.decode(&text).expect("base64");
        let back: Histogram<u64> = hdrhistogram::serialization::Deserializer::new()
            .deserialize(&mut &bytes[..])
            .expect("histogram");
        assert_eq!(back, histogram);
    }
}
