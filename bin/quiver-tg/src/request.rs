//! What is asked of a generator: one measurement.

use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

/// The fastest that may be asked for, frames a second and stream.
pub const RATE_PPS_MAX: f64 = 500e6;
/// The longest measurement, seconds.
pub const DURATION_S_MAX: f64 = 86_400.0;
/// The longest warm-up and the longest wait for late frames, seconds.
pub const PAUSE_S_MAX: f64 = 60.0;

/// How fast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Frames a second, all streams together.
    Pps(f64),
    /// As fast as the transmit rings take them.
    Max,
}

/// A measurement to make.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// How fast.
    #[serde(rename = "rate_pps")]
    pub rate: Rate,
    /// How long counted frames are sent, seconds.
    pub duration_s: f64,
    /// How long frames are sent before that at the same rate, seconds.
    #[serde(default)]
    pub warmup_s: f64,
    /// How long to wait for late frames, again after each one that comes, seconds.
    #[serde(default = "default_drain_s")]
    pub drain_s: f64,
    /// Frames that a delay of the generator missed are sent later, at 1/8 above the rate; if not, they
    /// are not offered.
    #[serde(default = "makes_up")]
    pub make_up: bool,
    /// Tell the histograms of times, too, so that those of several measurements can be added.
    #[serde(default)]
    pub histograms: bool,
}

fn makes_up() -> bool {
    true
}

fn default_drain_s() -> f64 {
    0.02
}

impl Measure {
    /// With the usual warm-up and drain times.
    pub fn new(rate: Rate, duration_s: f64) -> Measure {
        Measure {
            rate,
            duration_s,
            warmup_s: 0.05,
            drain_s: default_drain_s(),
            make_up: makes_up(),
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

    /// What is impossible about it, and what would be possible.
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
                return Err(format!("rate_pps {rate} is not above 0 and at most {RATE_PPS_MAX}, or \"max\""));
            }
            if self.frames(rate, self.duration_s) == 0 {
                return Err(format!("{rate} frames a second for {} s make no frame", self.duration_s));
            }
        }
        Ok(())
    }
}

impl std::str::FromStr for Rate {
    type Err = String;

    /// `max`, or a number with k, M or G and with or without `pps`.
    fn from_str(text: &str) -> Result<Rate, String> {
        if text == "max" {
            return Ok(Rate::Max);
        }
        let wrong = || format!("rate `{text}` is neither max nor like 500kpps, 1.5Mpps or 20000");
        let number = text.strip_suffix("pps").unwrap_or(text);
        let (number, factor) = match number.as_bytes().last() {
            Some(b'k') => (&number[..number.len() - 1], 1e3),
            Some(b'M') => (&number[..number.len() - 1], 1e6),
            Some(b'G') => (&number[..number.len() - 1], 1e9),
            _ => (number, 1.0),
        };
        let rate = number.parse::<f64>().map_err(|_| wrong())? * factor;
        if rate > 0.0 && rate <= RATE_PPS_MAX { Ok(Rate::Pps(rate)) } else { Err(wrong()) }
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

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RateVisitor;
        impl Visitor<'_> for RateVisitor {
            type Value = Rate;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("frames a second as a number, or \"max\"")
            }
            fn visit_f64<E: Error>(self, rate: f64) -> Result<Rate, E> {
                Ok(Rate::Pps(rate))
            }
            fn visit_u64<E: Error>(self, rate: u64) -> Result<Rate, E> {
                Ok(Rate::Pps(rate as f64))
            }
            fn visit_i64<E: Error>(self, rate: i64) -> Result<Rate, E> {
                Ok(Rate::Pps(rate as f64))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Rate, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(RateVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        for (text, rate) in [("1Mpps", 1e6), ("500kpps", 5e5), ("2.5M", 2.5e6), ("1000", 1e3), ("1e6", 1e6)] {
            assert_eq!(text.parse(), Ok(Rate::Pps(rate)), "{text}");
        }
        assert_eq!("max".parse(), Ok(Rate::Max));
        for text in ["", "k", "fast", "-1", "0", "1Gbps", "NaN", "inf", "1e99", "\u{e9}"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_impossible_request_is_refused_with_what_would_be_possible() {
        let refused = |json: &str| {
            let request: Result<Measure, _> = serde_json::from_str(json);
            request.map_err(|e| e.to_string()).and_then(|r| r.check()).expect_err("must be refused")
        };
        assert!(refused(r#"{"rate_pps": 0, "duration_s": 1}"#).contains("above 0"));
        assert!(refused(r#"{"rate_pps": "fast", "duration_s": 1}"#).contains("neither max"));
        assert!(refused(r#"{"rate_pps": "max", "duration_s": -1}"#).contains("duration_s"));
        assert!(refused(r#"{"rate_pps": 1, "duration_s": 0.1}"#).contains("no frame"));
        assert!(refused(r#"{"rate_pps": 1, "duration_s": 5, "speed": 1}"#).contains("speed"));
        assert!(refused(r#"{"rate_pps": 1, "duration_s": 5, "drain_s": 1e9}"#).contains("drain_s"));
        assert!(refused(r#"{"rate_pps": null, "duration_s": 5}"#).contains("number"));
    }
}
