//! A report as text: tables for people.

use std::fmt::Write;

use quiver_tg_traffic::figures::{grouped, scaled};

use crate::latency::Distribution;
use crate::report::{Kind, Limit, Report, StreamReport};
use crate::stall::HostStalls;

fn micros(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}

/// Characters of the first column at least.
const LABEL_WIDTH_MIN: usize = 14;

/// `0: 0 -> 1`: number, sending port, receiving port; `0 up: 0 -> 1` of a stream with a name.
fn label(stream: &StreamReport) -> String {
    let number = stream.stream.to_string();
    let name = if stream.name == number { String::new() } else { format!(" {}", stream.name) };
    format!("{number}{name}: {} -> {}", stream.from, stream.to)
}

/// Characters of the first column: the longest label and a space behind it.
fn label_width(report: &Report) -> usize {
    let longest = report.per_stream.iter().map(|stream| label(stream).chars().count()).max();
    LABEL_WIDTH_MIN.max(longest.unwrap_or(0) + 1)
}

/// A signed count in groups of three digits.
fn signed(count: i64) -> String {
    let sign = if count < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(count.unsigned_abs()))
}

/// A table of times with a row for each distribution.
fn times(text: &mut String, width: usize, title: &str, rows: &[(String, Option<&Distribution>)]) {
    if rows.iter().all(|(_, row)| row.is_none()) {
        return;
    }
    let _ = write!(text, "{title:<width$}");
    for heading in ["min", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "p99.9999", "max"] {
        let _ = write!(text, "{heading:>9}");
    }
    let _ = writeln!(text, "{:>12}", "frames");
    for (name, row) in rows {
        let Some(d) = row else { continue };
        let _ = write!(text, "{name:<width$}");
        for value in
            [d.min, d.mean as u64, d.p50, d.p90, d.p99, d.p99_9, d.p99_99, d.p99_9999, d.max]
        {
            let _ = write!(text, "{:>9}", micros(value));
        }
        let _ = writeln!(text, "{:>12}", grouped(d.count));
    }
}

/// Counts of each stream.
fn streams(text: &mut String, width: usize, report: &Report) {
    let _ = writeln!(
        text,
        "{:<width$}{:>14}{:>14}{:>11}{:>9}{:>10}{:>10}{:>10}{:>14}{:>17}",
        "stream",
        "offered",
        "received",
        "lost",
        "gaps",
        "longest",
        "reordered",
        "duplicate",
        "received",
        "on a wire"
    );
    for s in &report.per_stream {
        let counts = [s.gaps.runs, s.gaps.longest_frames, s.reordered, s.duplicated].map(grouped);
        let _ = writeln!(
            text,
            "{:<width$}{:>14}{:>14}{:>11}{:>9}{:>10}{:>10}{:>10}{:>14}{:>17}{}",
            label(s),
            grouped(s.offered),
            grouped(s.received),
            signed(s.lost),
            counts[0],
            counts[1],
            counts[2],
            counts[3],
            scaled(s.received_pps, "pps"),
            scaled(s.received_l1_bps, "bit/s"),
            if s.kind == Kind::Latency { "  (latency)" } else { "" }
        );
    }
}

/// Frames that count nowhere as received, captures, faults, and disturbances of the generator.
fn others(text: &mut String, report: &Report) {
    let others = [
        ("misdelivered", report.misdelivered),
        ("corrupted", report.corrupted),
        ("too late", report.too_late),
        ("stale", report.stale),
        ("foreign", report.foreign),
        ("clock steps", report.clock_steps),
        ("impossible times", report.time_impossible),
    ];
    let others: Vec<String> = others
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(name, n)| format!("{name} {}", grouped(*n)))
        .collect();
    if !others.is_empty() {
        let _ = writeln!(text, "also        {}", others.join(", "));
    }
    for capture in &report.captures {
        let (written, file) = (grouped(capture.written), capture.file.display());
        let _ = write!(text, "capture     {written} of {} to {file}", grouped(capture.wanted));
        let why = capture.error.as_deref().unwrap_or("no room for them");
        let _ = match capture.dropped {
            0 => writeln!(text),
            dropped => writeln!(text, "; {} dropped: {why}", grouped(dropped)),
        };
    }
    for port in &report.per_port {
        let Some(faults) = port.faults else { continue };
        let done = [
            ("lost", faults.lost),
            ("duplicated", faults.duplicated),
            ("reordered", faults.reordered),
            ("corrupted", faults.corrupted),
            ("delayed", faults.delayed),
            ("missed", faults.missed),
            ("overflowed", faults.overflowed),
        ];
        let done: Vec<String> =
            done.iter().map(|(name, n)| format!("{name} {}", grouped(*n))).collect();
        let _ = writeln!(text, "faults      port {}: {}", port.port, done.join(", "));
    }
    let not_sent = [
        ("ring full", report.not_sent.ring_full),
        ("held up", report.not_sent.held_up),
        ("no buffers", report.not_sent.no_buffers),
    ];
    let not_sent: Vec<String> = not_sent
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(name, n)| format!("{name} {}", grouped(*n)))
        .collect();
    if !not_sent.is_empty() {
        let _ =
            writeln!(text, "not sent    {} of {}", not_sent.join(", "), grouped(report.intended));
    }
    if report.host_stalls.count > 0 {
        let HostStalls { count, total_s, longest_s, rings_filled } = report.host_stalls;
        let _ = writeln!(
            text,
            "stalls      the host stopped the worker {count} times, {:.1} ms in all, {:.1} ms the \
             longest; a \
             receive ring was full after {rings_filled} of them",
            total_s * 1e3,
            longest_s * 1e3
        );
    }
    if report.held_up_s > 0.0 {
        let _ = writeln!(
            text,
            "held up     {:.1} ms by other programs on its core",
            report.held_up_s * 1e3
        );
    }
}

/// The whole report.
pub fn render(report: &Report) -> String {
    let mut text = String::new();
    let width = label_width(report);
    streams(&mut text, width, report);
    let percent = 100.0 * report.lost as f64 / (report.offered as f64).max(1.0);
    let _ = writeln!(
        text,
        "lost        {} of {} ({percent:.4} %)",
        signed(report.lost),
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
    others(&mut text, report);
    let of = |each: fn(&StreamReport) -> Option<&Distribution>| -> Vec<_> {
        report.per_stream.iter().map(|s| (label(s), each(s))).collect()
    };
    times(&mut text, width, "latency, µs", &of(|s| s.latency_ns.as_ref()));
    times(&mut text, width, "jitter, µs", &of(|s| s.ipdv_ns.as_ref()));
    if let Some(own) = &report.own_latency {
        let row = [(format!("at {}", scaled(own.offered_pps, "pps")), Some(&own.latency_ns))];
        times(&mut text, width, "own share, µs", &row);
    }
    if report.host_stalled {
        let _ = writeln!(text, "host-stalled: what is missing may be the work of these stalls");
    }
    if let Some(bound) = &report.generator_bound {
        let side = if bound.side == Limit::Transmit { "sending" } else { "receiving" };
        let ceiling = match bound.ceiling_pps {
            Some(pps) => format!("; by itself it sends and receives {} here", scaled(pps, "pps")),
            None => String::new(),
        };
        let _ = writeln!(text, "generator-bound ({side}): {}{ceiling}", bound.why);
    }
    text
}
