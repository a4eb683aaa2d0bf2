//! Quantities with their units, as people write them: rates, times, MAC addresses.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// The highest rate of a stream, frames a second.
pub const RATE_PPS_MAX: f64 = 500e6;
/// The longest time, seconds.
pub const TIME_S_MAX: f64 = 86_400.0;
/// The fastest line, bits a second.
pub const LINE_RATE_BPS_MAX: f64 = 1e13;
/// Preamble, start delimiter and gap between two frames on a wire (IEEE 802.3 §4.2.7, §4.4), bytes.
pub const WIRE_OVERHEAD_BYTES: f64 = 20.0;
/// Frame check sequence, bytes. Frame sizes here do not contain it.
pub const FCS_BYTES: f64 = 4.0;

/// How fast a stream, or all of them, are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StreamRate {
    /// Frames a second.
    Pps(f64),
    /// Bits a second on a wire: with FCS, preamble and gap.
    L1(f64),
    /// Bits a second of frames with FCS.
    L2(f64),
    /// Of the line rate that the sending port states, on layer 1.
    Percent(f64),
    /// As fast as the ring takes them.
    Max,
}

/// Makes a rate of a number.
type Unit = fn(f64) -> StreamRate;

impl StreamRate {
    /// Parse a rate like `20000`, `1.5Mpps`, `10Gbps`, `10GbpsL2`, `40%` or `max`.
    ///
    /// # Errors
    /// When the text is no rate; the message says what would be right.
    pub fn read(text: &str) -> Result<StreamRate, String> {
        let wrong = || {
            format!(
                "rate `{text}` is none of max, 1.5Mpps, 500kpps, 20000, 10Gbps (layer 1), \
                 10GbpsL2 and 40%"
            )
        };
        // Nobody sends thousandths of a frame: `m` is a million, too.
        let lower = text.to_ascii_lowercase();
        if lower == "max" {
            return Ok(StreamRate::Max);
        }
        let units: [(&str, Unit); 5] = [
            ("%", StreamRate::Percent),
            ("bpsl2", StreamRate::L2),
            ("bpsl1", StreamRate::L1),
            ("bps", StreamRate::L1),
            ("pps", StreamRate::Pps),
        ];
        let unit =
            units.iter().find_map(|(name, unit)| lower.strip_suffix(name).map(|n| (n, *unit)));
        let (number, unit) = unit.unwrap_or((&lower, StreamRate::Pps));
        let rate = unit(scaled(number).ok_or_else(wrong)?);
        rate.check().map(|()| rate).map_err(|_| wrong())
    }

    /// Check the range.
    ///
    /// # Errors
    /// When the rate is outside its range.
    pub fn check(self) -> Result<(), String> {
        let (value, most, unit) = match self {
            StreamRate::Pps(value) => (value, RATE_PPS_MAX, " frames a second"),
            StreamRate::L1(value) | StreamRate::L2(value) => (value, LINE_RATE_BPS_MAX, " bit/s"),
            StreamRate::Percent(value) => (value, 100.0, " %"),
            StreamRate::Max => return Ok(()),
        };
        if value > 0.0 && value <= most {
            return Ok(());
        }
        Err(format!("a rate of {value}{unit}; it is above 0 and at most {most}{unit}"))
    }

    /// Frames a second of frames that are so long on average, on a line of so many bits a second;
    /// `None` when as many as the ring takes.
    ///
    /// # Errors
    /// When the rate is in per cent and there is no line rate, or comes out of range.
    pub fn pps(self, frame_bytes: f64, line_rate_bps: Option<f64>) -> Result<Option<f64>, String> {
        let l1_bits = (frame_bytes + FCS_BYTES + WIRE_OVERHEAD_BYTES) * 8.0;
        Ok(Some(match self {
            StreamRate::Pps(rate) => rate,
            StreamRate::L1(bits) => bits / l1_bits,
            StreamRate::L2(bits) => bits / ((frame_bytes + FCS_BYTES) * 8.0),
            StreamRate::Percent(percent) => {
                let line = line_rate_bps.ok_or(
                    "a rate in per cent needs the `line_rate` of the sending port, like 10G",
                )?;
                line * percent / 100.0 / l1_bits
            }
            StreamRate::Max => return Ok(None),
        }))
    }
}

impl fmt::Display for StreamRate {
    /// As [`read`](Self::read) reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self {
            StreamRate::Pps(value) => (*value, "pps"),
            StreamRate::L1(value) => (*value, "bps"),
            StreamRate::L2(value) => (*value, "bpsL2"),
            StreamRate::Percent(value) => return write!(f, "{value}%"),
            StreamRate::Max => return f.write_str("max"),
        };
        let (factor, letter) = match value {
            _ if value >= 1e9 => (1e9, "G"),
            _ if value >= 1e6 => (1e6, "M"),
            _ if value >= 1e3 => (1e3, "k"),
            _ => (1.0, ""),
        };
        write!(f, "{}{letter}{unit}", value / factor)
    }
}

/// A number with k, M or G behind it, in lower case.
fn scaled(lower: &str) -> Option<f64> {
    let (number, factor) = match lower.as_bytes().last()? {
        b'k' => (&lower[..lower.len() - 1], 1e3),
        b'm' => (&lower[..lower.len() - 1], 1e6),
        b'g' => (&lower[..lower.len() - 1], 1e9),
        _ => (lower, 1.0),
    };
    number.parse::<f64>().ok().filter(|value| value.is_finite()).map(|value| value * factor)
}

/// Seconds from a time with its unit, whatever its case; `m` is minutes.
///
/// # Errors
/// When the text is no time, or the time is below 0.
pub fn read_seconds(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is not a time like 10s, 500ms, 20us or 2m");
    let units = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let lower = text.to_ascii_lowercase();
    let unit = units.iter().find(|(name, _)| lower.ends_with(name));
    let (name, factor) = unit.copied().unwrap_or(("", 1.0));
    let number = lower[..lower.len() - name.len()].parse::<f64>().map_err(|_| wrong())?;
    let seconds = number * factor;
    if (0.0..=TIME_S_MAX).contains(&seconds) { Ok(seconds) } else { Err(wrong()) }
}

/// A line rate: bits a second with k, M or G.
///
/// # Errors
/// When the text is no line rate above 0.
pub fn read_line_rate(text: &str) -> Result<f64, String> {
    let lower = text.to_ascii_lowercase();
    let number = lower.strip_suffix("bps").or(lower.strip_suffix("bit/s")).unwrap_or(&lower);
    let rate = scaled(number).filter(|rate| *rate > 0.0 && *rate <= LINE_RATE_BPS_MAX);
    rate.ok_or_else(|| format!("line rate `{text}` is not like 10G, 2.5Gbps or 100M"))
}

/// Reads a text or a number by a function.
struct Either<T> {
    what: &'static str,
    of_text: fn(&str) -> Result<T, String>,
    of_number: fn(f64) -> Result<T, String>,
}

impl<T> Visitor<'_> for Either<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.of_text)(text).map_err(E::custom)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        (self.of_number)(number).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.visit_f64(number as f64)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.visit_f64(number as f64)
    }
}

impl<'de> Deserialize<'de> for StreamRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either {
            what: "a rate: 1.5Mpps, 20000 (frames a second), 10Gbps, 10GbpsL2, 40% or max",
            of_text: StreamRate::read,
            of_number: |number| {
                let rate = StreamRate::Pps(number);
                rate.check().map(|()| rate)
            },
        })
    }
}

/// A time: seconds as a number, or with a unit.
///
/// # Errors
/// When the value is no time.
pub fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    deserializer.deserialize_any(Either {
        what: "a time: 10s, 500ms, 20us, or seconds as a number",
        of_text: read_seconds,
        of_number: |number| read_seconds(&number.to_string()),
    })
}

/// A line rate, if it is stated.
///
/// # Errors
/// When the value is no line rate.
pub fn line_rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let either = Either {
        what: "a line rate: 10G, 2.5Gbps, or bits a second as a number",
        of_text: read_line_rate,
        of_number: |number| read_line_rate(&number.to_string()),
    };
    deserializer.deserialize_any(either).map(Some)
}

/// MAC addresses.
pub mod mac {
    use quiver_wire::MacAddress;
    use serde::de::{Deserialize, Deserializer, Error};

    fn parse<E: Error>(text: &str) -> Result<MacAddress, E> {
        text.parse().map_err(|_| {
            E::custom(format!(
                "`{text}` is not a MAC address; one looks like \"02:fe:00:00:00:01\""
            ))
        })
    }

    /// One that may be left out.
    ///
    /// # Errors
    /// When the text is no MAC address.
    pub fn optional<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<MacAddress>, D::Error> {
        Option::<String>::deserialize(deserializer)?.map(|text| parse(&text)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_with_their_units_and_come_out_as_frames_a_second() {
        for (text, pps) in [
            ("1Mpps", 1e6),
            ("2.5M", 2.5e6),
            ("1000", 1e3),
            ("5mpps", 5e6),
            ("20KPPS", 2e4),
            ("704mbpsl1", 1e6),
            // 64 B are 88 B on a wire.
            ("704Mbps", 1e6),
            ("704MbpsL1", 1e6),
            ("544MbpsL2", 1e6),
            ("50%", 5e5),
        ] {
            let rate = StreamRate::read(text).expect(text);
            let found = rate.pps(64.0, Some(704e6)).expect(text).expect(text);
            assert!((found - pps).abs() < 1e-3, "{text}: {found}");
        }
        assert_eq!(StreamRate::read("max"), Ok(StreamRate::Max));
        assert_eq!(read_line_rate("2.5gbps"), read_line_rate("2.5G"));
        for text in [
            "",
            "k",
            "%",
            "bps",
            "fast",
            "-1",
            "0",
            "101%",
            "NaN",
            "inf",
            "1e99",
            "\u{e9}",
            "\u{e9}bps",
        ] {
            assert!(StreamRate::read(text).is_err(), "{text}");
        }
        assert!(
            StreamRate::Percent(50.0).pps(64.0, None).expect_err("no line").contains("line_rate")
        );
    }

    #[test]
    fn rates_are_written_as_they_are_read() {
        for text in ["1.5Mpps", "20kpps", "10Gbps", "5.25GbpsL2", "40%", "max", "7pps"] {
            assert_eq!(StreamRate::read(text).map(|rate| rate.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn times_have_units() {
        for (text, seconds) in [
            ("10s", 10.0),
            ("500ms", 0.5),
            ("20us", 20e-6),
            ("2m", 120.0),
            ("3", 3.0),
            ("5MS", 5e-3),
        ] {
            assert!(
                read_seconds(text).is_ok_and(|found| (found - seconds).abs() < 1e-12),
                "{text}"
            );
        }
        for text in ["", "s", "-1s", "1 day", "1e9s", "\u{e9}s"] {
            assert!(read_seconds(text).is_err(), "{text}");
        }
    }
}
