//! The request for one measurement.

use serde::Serialize;
use serde::ser::Serializer;

use quiver_tg_traffic::profile::quantity::RATE_PPS_MAX;

/// The longest measurement, seconds.
pub const DURATION_S_MAX: f64 = 86_400.0;
/// The longest warm-up and the longest wait for late frames, seconds.
pub const PAUSE_S_MAX: f64 = 60.0;

/// How fast, in frames; `rates` makes it of what people write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Frames a second, all streams together.
    Pps(f64),
    /// As fast as the transmit rings take them.
    Max,
}

/// A measurement to make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// How fast.
    pub rate: Rate,
    /// How long counted frames are sent, seconds.
    pub duration_s: f64,
    /// How long frames are sent before that at the same rate, seconds.
    pub warmup_s: f64,
    /// How long to wait for late frames, again after each one that comes, seconds.
    pub drain_s: f64,
    /// Frames that a delay of the generator missed are sent later, at 1/8 above the rate; if not,
    /// they are not offered.
    pub make_up: bool,
    /// Tell the histograms of times, too, so that those of several measurements can be added.
    pub histograms: bool,
}

/// Default duration of the warm-up, seconds.
pub const WARMUP_S: f64 = 0.05;
/// Default time to wait for late frames, seconds.
const DRAIN_S: f64 = 0.02;

impl Measure {
    /// With the usual warm-up and drain times.
    pub fn new(rate: Rate, duration_s: f64) -> Measure {
        Measure {
            rate,
            duration_s,
            warmup_s: WARMUP_S,
            drain_s: DRAIN_S,
            make_up: true,
            histograms: false,
        }
    }

    /// Frames in so many seconds.
    pub fn frames(&self, rate_pps: f64, seconds: f64) -> u64 {
        (rate_pps * seconds).round() as u64
    }

    /// Counted frames that a constant rate makes; 0 flat out, where nobody knows before.
    pub fn intended(&self) -> u64 {
        match self.rate {
            Rate::Pps(rate) => self.frames(rate, self.duration_s),
            Rate::Max => 0,
        }
    }

    /// Check the ranges of the request.
    ///
    /// # Errors
    /// When a time or a rate is outside its range; the message names the range.
    pub fn check(&self) -> Result<(), String> {
        if !(self.duration_s > 0.0 && self.duration_s <= DURATION_S_MAX) {
            return Err(format!(
                "duration_s {} is not above 0 and at most {DURATION_S_MAX}",
                self.duration_s
            ));
        }
        for (name, value) in [("warmup_s", self.warmup_s), ("drain_s", self.drain_s)] {
            if !(0.0..=PAUSE_S_MAX).contains(&value) {
                return Err(format!("{name} {value} is outside 0..={PAUSE_S_MAX}"));
            }
        }
        if let Rate::Pps(rate) = self.rate {
            if !(rate > 0.0 && rate <= RATE_PPS_MAX) {
                return Err(format!(
                    "a rate of {rate} frames a second; it is above 0 and at most {RATE_PPS_MAX}, \
                     or max"
                ));
            }
            if self.frames(rate, self.duration_s) == 0 {
                return Err(format!(
                    "{rate} frames a second for {} s make no frame",
                    self.duration_s
                ));
            }
        }
        Ok(())
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Rate::Pps(rate) => serializer.serialize_f64(*rate),
            Rate::Max => serializer.serialize_str("max"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impossible_request_is_refused_with_what_would_be_possible() {
        let refused = |measure: Measure| measure.check().expect_err("must be refused");
        let pps = |rate, duration_s| Measure::new(Rate::Pps(rate), duration_s);
        assert!(refused(pps(0.0, 1.0)).contains("above 0"));
        assert!(refused(Measure::new(Rate::Max, -1.0)).contains("duration_s"));
        assert!(refused(pps(1.0, 0.1)).contains("no frame"));
        assert!(refused(Measure { drain_s: 1e9, ..pps(1.0, 5.0) }).contains("drain_s"));
        assert!(refused(Measure { warmup_s: f64::NAN, ..pps(1.0, 5.0) }).contains("warmup_s"));
    }
}
