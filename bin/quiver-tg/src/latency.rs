//! How long frames took: an HDR histogram in nanoseconds, and its summary.

use hdrhistogram::Histogram;
use serde::Serialize;

/// The longest that is told apart, nanoseconds (a minute).
const LATENCY_NS_MAX: u64 = 60_000_000_000;
/// Values are kept to three decimal digits: a latency is right within 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

/// An empty histogram. It never grows, so a worker may record into it.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, SIGNIFICANT_DIGITS).expect("bounds are constant and valid")
}

/// What is told of a histogram, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Frames that were timed.
    pub count: u64,
    /// Shortest.
    pub min: u64,
    /// Half of the frames took at most this.
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    #[serde(rename = "p99.9")]
    pub p99_9: u64,
    /// Longest.
    pub max: u64,
    /// Arithmetic mean.
    pub mean: f64,
}

impl Latency {
    /// `None` when nothing was timed.
    pub fn of(histogram: &Histogram<u64>) -> Option<Latency> {
        (!histogram.is_empty()).then(|| Latency {
            count: histogram.len(),
            min: histogram.min(),
            p50: histogram.value_at_quantile(0.5),
            p90: histogram.value_at_quantile(0.9),
            p99: histogram.value_at_quantile(0.99),
            p99_9: histogram.value_at_quantile(0.999),
            max: histogram.max(),
            mean: (histogram.mean() * 10.0).round() / 10.0,
        })
    }
}
