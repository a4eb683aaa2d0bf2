//! Progress of a measurement: on a terminal a table that is redrawn, elsewhere a line a second.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write, stderr};

use crate::Session;
use quiver_tg_measuring::surroundings::Surroundings;
use quiver_tg_traffic::figures::{grouped, scaled};

/// Streams in the table at most; the others are in its sum.
const ROWS_MAX: usize = 16;

/// The live table on standard error.
pub struct LiveTable {
    is_terminal: bool,
    /// Lines of the last drawing.
    lines: usize,
}

impl LiveTable {
    /// A table on standard error.
    pub fn new() -> LiveTable {
        LiveTable { is_terminal: stderr().is_terminal(), lines: 0 }
    }

    /// Draw the current counts and rates.
    pub fn draw<S: Surroundings>(&mut self, session: &mut Session<S>) {
        let Some(text) = picture(session, self.is_terminal) else { return };
        let mut out = String::new();
        if self.is_terminal && self.lines > 0 {
            let _ = write!(out, "\x1b[{}A\r", self.lines);
        }
        for line in text.lines() {
            let _ = writeln!(out, "{line}{}", if self.is_terminal { "\x1b[K" } else { "" });
        }
        self.lines = text.lines().count();
        // Standard error may be closed; the measurement goes on.
        let _ = stderr().write_all(out.as_bytes());
    }

    /// Remove it before the result is printed.
    pub fn clear(&mut self) {
        if self.is_terminal && self.lines > 0 {
            let _ = write!(stderr(), "\x1b[{}A\r\x1b[J", self.lines);
        }
        self.lines = 0;
    }
}

fn picture<S: Surroundings>(session: &mut Session<S>, is_table: bool) -> Option<String> {
    if let Some(snapshot) = session.transactions() {
        return Some(crate::transactions_line(session, &snapshot));
    }
    let snapshot = session.snapshot()?;
    let facts = session.generator()?.streams().to_vec();
    let of = match snapshot.of_s {
        of_s if of_s >= crate::UNTIL_STOPPED_S => String::new(),
        of_s => format!(" of {of_s:.1}"),
    };
    let rates: Vec<_> = (0..facts.len()).map(|stream| session.rates(stream)).collect();
    let sent: u64 = snapshot.streams.iter().map(|s| s.0).sum();
    let back: u64 = snapshot.streams.iter().map(|s| s.1).sum();
    let mut text = format!(
        "{:6.1}{of} s  sent {} ({})  back {} ({})  missing {}\n",
        snapshot.at_s,
        grouped(sent),
        scaled(rates.iter().map(|r| r.sent_pps).sum(), "pps"),
        grouped(back),
        scaled(rates.iter().map(|r| r.received_pps).sum(), "pps"),
        grouped(sent.saturating_sub(back)),
    );
    if !is_table {
        return Some(text);
    }
    let _ = writeln!(
        text,
        "{:<8}{:<10}{:>16}{:>16}{:>12}{:>15}{:>15}{:>10}{:>10}",
        "stream", "ports", "sent", "back", "missing", "sends", "receives", "p50, µs", "p99, µs"
    );
    for (number, (facts, (sent, back))) in
        facts.iter().zip(&snapshot.streams).enumerate().take(ROWS_MAX)
    {
        let _ = writeln!(
            text,
            "{number:<8}{:<10}{:>16}{:>16}{:>12}{:>15}{:>15}{:>10}{:>10}",
            format!("{} -> {}", facts.from, facts.to),
            grouped(*sent),
            grouped(*back),
            grouped(sent.saturating_sub(*back)),
            scaled(rates[number].sent_pps, "pps"),
            scaled(rates[number].received_pps, "pps"),
            micros(rates[number].latency.map(|l| l.p50)),
            micros(rates[number].latency.map(|l| l.p99)),
        );
    }
    Some(text)
}

fn micros(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.1}", ns as f64 / 1e3))
}
