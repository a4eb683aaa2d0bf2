//! The moment of a turn, on the router's clock and in Unix time; times as RFC 3339 writes them.

use std::fmt::Write as _;

use quiver_core::Engine;
use quiver_core::clock::unix_ns;

/// Nanoseconds of a second.
const SECOND_NS: u64 = 1_000_000_000;
/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// A moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Nanoseconds of the router's clock.
    pub now_ns: u64,
    /// Nanoseconds since 1970.
    pub unix_ns: u64,
}

impl Moment {
    /// Now.
    pub fn of(engine: &Engine) -> Moment {
        Moment { now_ns: engine.now_ns(), unix_ns: unix_ns() }
    }

    /// Nanoseconds since 1970 when the router's clock stood at `at_ns`. A worker may be ahead of
    /// the turn that reads its record: that counts as now.
    pub fn unix_ns_at(self, at_ns: u64) -> u64 {
        self.unix_ns.saturating_sub(self.now_ns.saturating_sub(at_ns))
    }

    /// Seconds since 1970, as 32 bits (RFC 7011 §3.1).
    pub fn unix_s(self) -> u32 {
        (self.unix_ns / SECOND_NS) as u32
    }
}

/// Append a time in UTC with milliseconds, as RFC 5424 §6.2.3 has it: `2026-01-31T23:59:59.123Z`.
pub fn write_time(text: &mut String, unix_ns: u64) {
    let (seconds, milliseconds) = (unix_ns / SECOND_NS, unix_ns / 1_000_000 % 1_000);
    let (year, month, day) = date(seconds / DAY_S);
    let of_day = seconds % DAY_S;
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    // Writing to a string never fails.
    let _ = write!(
        text,
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z"
    );
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400)
}

/// Year, month and day of the Gregorian calendar, of a day since 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    /// Days of 400 years.
    const CYCLE_DAYS: u64 = 146_097;
    let (mut year, mut left) = (1970 + 400 * (days / CYCLE_DAYS), days % CYCLE_DAYS);
    // At most 400 steps, however great the number is.
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if left < length {
            break;
        }
        left -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(unix_ns: u64) -> String {
        let mut text = String::new();
        write_time(&mut text, unix_ns);
        text
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(time(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(time(951_782_400_007_000_000), "2000-02-29T00:00:00.007Z");
        assert_eq!(time(1_000_000_000_999_999_999), "2001-09-09T01:46:40.999Z");
        assert_eq!(time(4_107_542_399_000_000_000), "2100-02-28T23:59:59.000Z");
        assert_eq!(time(4_107_542_400_000_000_000), "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn a_record_has_the_time_when_it_was_made() {
        let at = Moment { now_ns: 5 * SECOND_NS, unix_ns: 100 * SECOND_NS };
        assert_eq!(at.unix_ns_at(3 * SECOND_NS), 98 * SECOND_NS);
        assert_eq!(at.unix_ns_at(6 * SECOND_NS), 100 * SECOND_NS, "never in the future");
        assert_eq!(at.unix_s(), 100);
    }
}
