//! A report as people read it.

use std::fmt::Write;

use crate::latency::Latency;
use crate::report::{Limit, Report};

/// A count with commas.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate with a unit: `1.234 Mpps`.
pub fn scaled(value: f64, unit: &str) -> String {
    match value.abs() {
        v if v >= 1e9 => format!("{:.3} G{unit}", value / 1e9),
        v if v >= 1e6 => format!("{:.3} M{unit}", value / 1e6),
        v if v >= 1e3 => format!("{:.3} k{unit}", value / 1e3),
        _ => format!("{value:.1} {unit}"),
    }
}

fn micros(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}

fn latency_row(text: &mut String, name: &str, latency: Option<&Latency>) {
    let Some(l) = latency else { return };
    let values = [l.min, l.p50, l.p90, l.p99, l.p99_9, l.max].map(micros);
    let _ = write!(text, "{name:<12}");
    for value in values {
        let _ = write!(text, "{value:>10}");
    }
    let _ = writeln!(text, "{:>12}", grouped(l.count));
}

/// The whole report.
pub fn render(report: &Report) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{:<12}{:>16}{:>16}{:>14}{:>12}{:>12}",
        "direction", "offered", "received", "lost", "reordered", "duplicates"
    );
    for d in &report.per_direction {
        let name = format!("{} -> {}", d.from, d.to);
        let lost = grouped(d.lost.unsigned_abs());
        let counts = [d.offered, d.received].map(grouped);
        let _ = writeln!(
            text,
            "{name:<12}{:>16}{:>16}{lost:>14}{:>12}{:>12}",
            counts[0],
            counts[1],
            grouped(d.reordered),
            grouped(d.duplicated)
        );
    }
    let percent = 100.0 * report.lost as f64 / (report.offered as f64).max(1.0);
    let _ = writeln!(
        text,
        "lost        {} of {} ({percent:.4} %)",
        grouped(report.lost.unsigned_abs()),
        grouped(report.offered)
    );
    let _ = writeln!(
        text,
        "rate        offered {} ({}), received {} ({}), for {:.3} s",
        scaled(report.offered_pps, "pps"),
        scaled(report.offered_l1_bps, "bit/s on a wire"),
        scaled(report.received_pps, "pps"),
        scaled(report.received_l1_bps, "bit/s on a wire"),
        report.duration_s
    );
    let others = [
        ("misdelivered", report.misdelivered),
        ("corrupted", report.corrupted),
        ("too late", report.too_late),
        ("stale", report.stale),
        ("foreign", report.foreign),
        ("ring full", report.ring_full),
    ];
    let others: Vec<String> =
        others.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name} {}", grouped(*n))).collect();
    if !others.is_empty() {
        let _ = writeln!(text, "also        {}", others.join(", "));
    }
    if report.held_up_s > 0.0 {
        let _ = writeln!(text, "held up     {:.1} ms by other programs on its core", report.held_up_s * 1e3);
    }
    if report.latency_ns.is_some() {
        let _ = write!(text, "{:<12}", "latency, µs");
        for heading in ["min", "p50", "p90", "p99", "p99.9", "max"] {
            let _ = write!(text, "{heading:>10}");
        }
        let _ = writeln!(text, "{:>12}", "frames");
        for d in &report.per_direction {
            latency_row(&mut text, &format!("{} -> {}", d.from, d.to), d.latency_ns.as_ref());
        }
    }
    match report.limit {
        Some(Limit::Transmit) => text.push_str("The generator was the limit: it could not send more.\n"),
        Some(Limit::Receive) => {
            text.push_str(
                "The generator was the limit: its receive ring was full, what was lost may be its fault.\n",
            );
        }
        None => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_scaled() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(scaled(1_234_000.0, "pps"), "1.234 Mpps");
        assert_eq!(scaled(12.0, "pps"), "12.0 pps");
    }
}
