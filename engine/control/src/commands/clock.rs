//! `show clock`: the time of day, and how long the router runs.

use std::time::Duration;

use quiver_core::Engine;
use quiver_core::clock::unix_ns;

use crate::args::Args;
use crate::error::Refusal;
use crate::grammar::Command;
use crate::output::Output;
use crate::registry::Registry;

/// The engine's time at its start, nanoseconds.
struct Started(u64);

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show clock [verbose]")
            .group("Seeing inside")
            .help("Show the time of day, and how long the router runs")
            .word("verbose", "also the seconds since 1970")
            .run(show),
    );
    registry.on_start(|engine| {
        let now_ns = engine.now_ns();
        engine.insert(Started(now_ns));
    });
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let start_ns = engine.get::<Started>().map_or(0, |started| started.0);
    let up = Duration::from_nanos(engine.now_ns().saturating_sub(start_ns));
    let unix = Duration::from_nanos(unix_ns());
    let date = date(unix.as_secs());
    let mut text = format!("Time now {:.6}, {date}\n", up.as_secs_f64());
    if args.has("verbose") {
        text += &format!("{:.6} seconds since 1970\n", unix.as_secs_f64());
    }
    let json = serde_json::json!({
        "up_s": up.as_secs_f64(), "unix_s": unix.as_secs_f64(), "utc": iso(unix.as_secs()),
    });
    Ok(Output::both(text, json))
}

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Year, month from 1, and day of the Gregorian calendar, so many days after 1 January 1970.
fn calendar(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that the day that is sometimes there is the last.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// `Mon, 23 Nov 2026 15:13:05 GMT`.
fn date(unix_s: u64) -> String {
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    let (year, month, day) = calendar(days);
    let weekday = DAYS[(days % 7) as usize];
    let month = MONTHS[(month - 1) as usize];
    format!("{weekday}, {day:02} {month} {year} {}", time(second) + " GMT")
}

/// `2026-11-23T15:13:05Z`.
fn iso(unix_s: u64) -> String {
    let (year, month, day) = calendar(unix_s / 86_400);
    format!("{year:04}-{month:02}-{day:02}T{}Z", time(unix_s % 86_400))
}

fn time(second: u64) -> String {
    format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(date(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(date(1_795_446_785), "Mon, 23 Nov 2026 15:13:05 GMT");
        assert_eq!(iso(4_107_542_399), "2100-02-28T23:59:59Z");
        assert_eq!(iso(4_107_542_400), "2100-03-01T00:00:00Z");
    }
}
